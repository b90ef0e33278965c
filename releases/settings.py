"""What an evaluation of a manifest runs over all its questions, and who plays in it."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from evaluators.run.trial import SHOWN
from releases.manifest import MEASURED_RATE, OPTIONS, OWN_ADAPTER, OWN_GENERATOR, EvaluationEntry
from safe_stepwise.errors import UserError, at_place, one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.options import published_values
from safe_stepwise.open import check_spec
from safe_stepwise.records import VERDICT_ORDERS


@dataclass(frozen=True, slots=True)
class Setting:
    """A method with its players and options."""

    method: str
    generator: str
    verifier: str | None
    options: tuple[tuple[str, Any], ...]
    gold: tuple[bool, Path | None]
    """Whether a gold passage is taken away, and where another is searched."""
    examples: tuple[str, ...]
    """The roles that are shown some."""


def settings_of(entry: EvaluationEntry) -> Iterator[Setting]:
    """Each method with every combination of the players and options that it has."""
    gold = entry.drop_gold, entry.corpus
    default = SHOWN if entry.as_published else ()
    examples = default if entry.examples is None else entry.examples
    for name in entry.methods:
        kind = options_type(METHODS[name])
        known = {field.name for field in fields(kind)}
        tried = {key: tuple(getattr(entry, key)) for key in OPTIONS if key in known}
        published = published_values(kind) if entry.as_published else {}
        tried |= {key: (value,) for key, value in published.items() if not tried.get(key)}
        values = {key: tuple(dict.fromkeys(several)) for key, several in tried.items() if several}
        verifiers = entry.verifier if "verifier" in METHODS[name].roles else (None,)
        for generator, verifier, *chosen in product(entry.generator, verifiers, *values.values()):
            options = tuple(zip(values, chosen, strict=True))
            yield Setting(name, str(generator), verifier, options, gold, examples)


def check_evaluation(entry: EvaluationEntry, where: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` with the key of a manifest's evaluation that is wrong.

    ``trained`` are those of `OWN_ADAPTER` and `OWN_GENERATOR` that stand for something.
    """
    for name in entry.methods:
        one_of(name, METHODS, f"{where}.methods")
    for role, specs in (("generator", entry.generator), ("verifier", entry.verifier)):
        for spec in specs:
            check_player(spec, f"{where}.{role}", trained)
        if not specs or len(set(specs)) < len(specs):
            raise UserError(f"{where}.{role}: name at least one, and each once")
    if entry.judge is not None:
        check_player(entry.judge, f"{where}.judge", trained)
    if entry.matched and (entry.matched[0] == entry.verifier[0] or "safe" not in entry.methods):
        raise UserError(
            f"{where}.verifier: {MEASURED_RATE} is the rate of the first verifier in safe: name "
            "that one before it, and the method"
        )
    if not entry.methods or (entry.limit is not None and entry.limit < 1):
        raise UserError(f"{where}.methods and {where}.limit: name at least one")
    if entry.verdict_order is not None:
        one_of(entry.verdict_order, VERDICT_ORDERS, f"{where}.verdict_order")
    for role in entry.examples or ():
        one_of(role, SHOWN, f"{where}.examples:")
    if entry.judge_without_question and entry.judge is None:
        raise UserError(f"{where}.judge_without_question: there is no judge; name one")
    known = {option.name for name in entry.methods for option in fields(options_type(METHODS[name]))}
    for key in OPTIONS:
        if getattr(entry, key) and key not in known:
            raise UserError(f"{where}.{key}: none of {', '.join(entry.methods)} has it")
    for setting in settings_of(entry):
        with at_place(where, ValueError):
            options_type(METHODS[setting.method])(**dict(setting.options))


_PLACEHOLDER = re.compile(r"\{\w*\}")


def check_player(spec: str, where: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` for a spec of no engine, and of a model that is not trained here."""
    meant = spec.replace(MEASURED_RATE, "0") if where.endswith(".verifier") else spec
    for placeholder, what in ((OWN_ADAPTER, "an adapter"), (OWN_GENERATOR, "a generator")):
        if placeholder in spec and placeholder not in trained:
            key = what.partition(" ")[2]
            raise UserError(f"{where}: {placeholder} stands for {what}; add {key} to the manifest")
        meant = meant.replace(placeholder, "trained")
    if strange := _PLACEHOLDER.search(meant):
        names = f"{OWN_ADAPTER}, {OWN_GENERATOR} or, of a verifier, {MEASURED_RATE}"
        raise UserError(f"{where}: {strange[0]} stands for nothing; write {names}")
    with at_place(where):
        check_spec(meant)
