"""Check a manifest's evaluation: its methods, players and options.

A player is an engine's spec for a role (generator, verifier, judge); it may have placeholders, such as ``{adapter}``.
"""

import re
from collections.abc import Collection

from evaluators.run.trial import PROBED_ROLES
from releases.manifest import MEASURED_RATE, OWN_ADAPTER, OWN_GENERATOR, EvaluationEntry
from releases.paths_manifest import OWN_SFT
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.methods import METHODS
from safe_stepwise.open import check_spec


def check_evaluation(entry: EvaluationEntry, place: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` with a bad key; ``trained`` are the placeholders of models that the release trains."""
    for name in entry.methods:
        check_choice(name, METHODS, f"{place}.methods")
    for role, specs in (("generator", entry.generator), ("verifier", entry.verifier)):
        for spec in specs:
            check_player(spec, f"{place}.{role}", trained)
        if not specs or len(set(specs)) < len(specs):
            raise UserError(f"{place}.{role}: name at least one, and each once")
    if entry.judge is not None:
        check_player(entry.judge, f"{place}.judge", trained)
    if entry.matched and (entry.matched[0] == entry.verifier[0] or "safe" not in entry.methods):
        raise UserError(
            f"{place}.verifier: {MEASURED_RATE} is the rate of the first verifier in safe: name "
            "that one before it, and the method"
        )
    if not entry.methods:
        raise UserError(f"{place}.methods: name at least one")
    for role in entry.examples or ():
        check_choice(role, PROBED_ROLES, f"{place}.examples:")
    if entry.judge_without_question and entry.judge is None:
        raise UserError(f"{place}.judge_without_question: there is no judge; name one")


_PLACEHOLDER = re.compile(r"\{\w*\}")
_TRAINED_BY = {OWN_ADAPTER: "adapter", OWN_GENERATOR: "generator", OWN_SFT: "adapter.kto"}
"""The manifest's key that trains the model for which a placeholder stands."""


def check_player(spec: str, place: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` for an unknown engine's spec, or the placeholder of a model that is not trained."""
    resolved = spec.replace(MEASURED_RATE, "0") if place.endswith(".verifier") else spec
    for placeholder, key in _TRAINED_BY.items():
        if placeholder in spec and placeholder not in trained:
            raise UserError(f"{place}: {placeholder} stands for no model of the release; add {key} to the manifest")
        resolved = resolved.replace(placeholder, "trained")
    if unknown := _PLACEHOLDER.search(resolved):
        names = f"{', '.join(_TRAINED_BY)} or, of a verifier, {MEASURED_RATE}"
        raise UserError(f"{place}: {unknown[0]} stands for nothing; write {names}")
    with at_place(place):
        check_spec(resolved)
