"""What an evaluation is asked for, by a command line, a release or a demonstration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.deliberation.contending import CANDIDATES, Proposing, check_paths, engines_of
from evaluators.deliberation.labelled import Labels, Way
from safe_stepwise.engines.allowance import AS_PROMPTED, Allowance
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS, NO_TOPIC, Convention
from safe_stepwise.methods.deliberation import Deliberating
from safe_stepwise.methods.running import AT_ONCE
from safe_stepwise.open import check_spec

IN_FLIGHT = 64
"""Requests under way at a time."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `scripts.evaluate_deliberation`, by their names.

    Raises ``UserError`` for what is wrong with them whatever the files hold.
    """

    questions: tuple[str, ...]
    """Files or ``hub-id@revision``."""
    paths: tuple[str, ...]
    """Who proposes: baselines and engines' specs, each perhaps named as ``NAME=SPEC``."""
    output: Path
    kb: Path | None = None
    benchmark: str = "metaqa"
    split: str = "test"
    generator: str | None = None
    limit: int | None = None
    per_hop: int | None = None
    train: Path | None = None
    splits: Way = "question"
    held_out: bool = False
    labels: Labels = "gold"
    candidates: int | None = None
    """A topic entity; if not said, as many as there is somebody to choose from."""
    free: bool = False
    max_hops: int = HOPS
    convention: Convention = NO_TOPIC
    loop: Deliberating = field(default_factory=Deliberating)
    at_once: int = AT_ONCE
    seed: int = 0
    cache: Path | None = None
    in_flight: int = IN_FLIGHT
    timeout: float | None = None
    allowance: Allowance = AS_PROMPTED

    def __post_init__(self) -> None:
        check_paths(self.paths)
        for spec in self.engines:
            check_spec(spec)
        if self.labels == "weak" and self.train is None:
            raise UserError("--labels weak: name the set that holds them with --train")
        if self.held_out and self.train is None:
            raise UserError("--held-out: name the set whose test split is meant with --train")

    @property
    def engines(self) -> tuple[str, ...]:
        """The specs of all who are asked, each once: who proposes may verify, too."""
        asked = (*engines_of(self.paths), self.generator)
        return tuple(dict.fromkeys(spec for spec in asked if spec is not None))

    @property
    def proposing(self) -> Proposing:
        """How paths are proposed."""
        many = self.candidates or self._usual_candidates
        return Proposing(many, not self.free, self.labels, self.seed)

    @property
    def _usual_candidates(self) -> int:
        return CANDIDATES if self.generator else 1

    @property
    def conditions(self) -> dict[str, Any]:
        """What sets its runs apart from others by the same players; what is usual is left out."""
        told: Mapping[str, tuple[Any, Any]] = {
            "candidates": (self.proposing.candidates, self._usual_candidates),
            "free": (self.free, False),
            "max_hops": (self.max_hops, HOPS),
            "convention": (self.convention, NO_TOPIC),
            "labels": (self.labels, "gold"),
            "seed": (self.seed, 0),
        }
        return {name: value for name, (value, usual) in told.items() if value != usual}
