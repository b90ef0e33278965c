"""What a manifest says of evaluations, its own and its blocks', and of the players in them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_origin, get_type_hints

from evaluators.run.trial import Trial
from releases.reading import RecipeEntry
from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance

OWN_ADAPTER = "{adapter}"
"""In an engine's spec: the folder of the release's own adapter; in a block that trains adapters,
of each of them in turn."""
OWN_GENERATOR = "{generator}"
"""Likewise: the model that the release trains to write steps."""
MEASURED_RATE = "{rate}"
"""In a verifier's spec, as ``chance:reject={rate}``: the share of steps that the first of the
verifiers rejects. That is measured first."""
LOOP = ("no_verification", "self_verification", "safe")
"""The methods of the papers' main table, which an evaluation has where it names none."""
OPTIONS = tuple(name for name, hint in get_type_hints(Trial).items() if get_origin(hint) is Sequence)
"""Options of methods that an evaluation may name, each with several values."""
_SEVERAL = ("generator", "verifier", "methods", "examples", *OPTIONS)


@dataclass(frozen=True, slots=True)
class AdapterEntry(RecipeEntry):
    """``adapter``: what judges steps once it is trained."""

    verifier: str | None = None
    """An engine's spec to measure the adapter with on the test split; not measured if not said."""
    incomplete_evidence: bool = False
    """Whether it learns to say that evidence is missing (SAFE v2, finding 5)."""

    @property
    def changes(self) -> dict[str, Any]:
        """All that the recipe is told beside its file."""
        return {**self.change, **({"incomplete_evidence": True} if self.incomplete_evidence else {})}


@dataclass(frozen=True, slots=True)
class EvaluationEntry(Trial):
    """``evaluation``: the loop over the evaluation samples, by engine specs.

    Where several values may be given, one alone need not be a list; ``corpus`` is beside the manifest.
    """

    generator: tuple[str, ...]
    verifier: tuple[str, ...]
    methods: tuple[str, ...] = LOOP
    verdict_order: str | None = None
    """What verdicts begin with in the loop, where players that we trained do not say it."""
    examples: tuple[str, ...] | None = None
    """The roles that are shown some, of `evaluators.run.options.SHOWN`."""

    @property
    def matched(self) -> tuple[str, ...]:
        """The verifiers whose rate is that of the first one, which has to be measured before."""
        return tuple(spec for spec in self.verifier if MEASURED_RATE in spec)

    def names(self, placeholder: str) -> bool:
        """Whether a model that the release trains plays in it."""
        return any(placeholder in spec for spec in (*self.generator, *self.verifier, self.judge or ""))

    def allowed(self, allowance: Allowance) -> Allowance:
        """What its roles have beside their prompts, with examples of its own."""
        allowance = replace(allowance, examples=None)
        return allowance if self.examples is None else allowance.showing(prompts.examples(self.examples))


@dataclass(frozen=True, slots=True)
class RefinementEntry:
    """``verifier_steps.refinement``: what mines hard cases with the adapter just trained."""

    rows: int
    """Hard cases that a round may add."""
    generator: str
    verifier: str
    """``{adapter}`` in it is the one that the round trained."""
    teacher: str = "annotations"
    """Who words the labels: an engine's spec, or annotations, the checker's own words."""
    limit: int | None = None
    """Training questions of a round; as many as steps are made of, if not said."""
    rounds: int = 1


def list_values(values: Any) -> Any:
    """An evaluation of a manifest with a list for each single value where several may be given."""
    if not isinstance(values, dict):
        return values
    several = {key: value if isinstance(value, list) else [value] for key, value in values.items() if key in _SEVERAL}
    return {**values, **{key: tuple(listed) for key, listed in several.items()}}
