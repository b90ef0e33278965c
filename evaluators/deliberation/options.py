"""What an evaluation is asked for, by a command line, a release or a demonstration."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.commands.asking import Asking
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import HOPS, NO_TOPIC, Convention
from safe_stepwise.methods.deliberation import Deliberating
from safe_stepwise.methods.running import AT_ONCE

Labels = Literal["gold", "weak"]
Way = Literal["question", "template"]
BASELINES = ("oracle", "majority", "nearest")
CANDIDATES = 3
"""Paths a topic entity that a generator chooses from, if not said; without one the first counts."""
IN_FLIGHT = 64
"""Requests under way at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Asking):
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
    limit: Count | None = None
    per_hop: Count | None = None
    train: Path | None = None
    splits: Way = "question"
    held_out: bool = False
    labels: Labels = "gold"
    candidates: Count | None = None
    """A topic entity; if not said, as many as there is somebody to choose from."""
    free: bool = False
    max_hops: Count = HOPS
    convention: Convention = NO_TOPIC
    loop: Deliberating = field(default_factory=Deliberating)
    at_once: Count = AT_ONCE
    seed: int = 0
    in_flight: Count = IN_FLIGHT

    def __post_init__(self) -> None:
        engines_of(self.paths)
        check_names((name or spec, spec) for name, spec in map(split_name, self.paths))
        if self.labels == "weak" and self.train is None:
            raise UserError("--labels weak: name the set that holds them with --train")
        if self.held_out and self.train is None:
            raise UserError("--held-out: name the set whose test split is meant with --train")

    @property
    def engines(self) -> tuple[str, ...]:
        """The specs of all who are asked, each once: who proposes may verify, too."""
        specs = (*engines_of(self.paths), self.generator)
        return tuple(dict.fromkeys(spec for spec in specs if spec is not None))

    @property
    def candidates_per_topic(self) -> int:
        """How many paths are proposed from each topic entity."""
        return self.candidates or self._usual_candidates

    @property
    def _usual_candidates(self) -> int:
        return CANDIDATES if self.generator else 1

    @property
    def conditions(self) -> dict[str, Any]:
        """What sets its runs apart from others by the same players; what is usual is left out."""
        values: Mapping[str, tuple[Any, Any]] = {
            "candidates": (self.candidates_per_topic, self._usual_candidates),
            "free": (self.free, False),
            "max_hops": (self.max_hops, HOPS),
            "convention": (self.convention, NO_TOPIC),
            "labels": (self.labels, "gold"),
            "seed": (self.seed, 0),
        }
        return {name: value for name, (value, default) in values.items() if value != default}


_NAMED_SPEC = re.compile(r"([^:=]+)=(.+)")


def split_name(spec: str) -> tuple[str, str]:
    """The name that a run is given and what proposes its paths; "" where it is given none.

    >>> split_name("SFT=vllm:m+a"), split_name("symbolic:error_rate=0.3")
    (('SFT', 'vllm:m+a'), ('', 'symbolic:error_rate=0.3'))
    """
    match = _NAMED_SPEC.fullmatch(spec)
    return (match[1].strip(), match[2]) if match else ("", spec)


def engines_of(specs: Sequence[str]) -> list[str]:
    """The specs of those who have to be asked; ``UserError`` for a baseline that is misspelt.

    >>> engines_of(["nearest", "SFT=vllm:m+a"])
    ['vllm:m+a']
    """
    proposing = [split_name(text)[1] for text in specs]
    for spec in proposing:
        if spec not in BASELINES and (matches := difflib.get_close_matches(spec, BASELINES, n=1)):
            raise UserError(f"--paths {spec}: is not known; did you mean {matches[0]}?")
    return [spec for spec in proposing if spec not in BASELINES]


def check_names(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise ``UserError`` for two of ``--paths`` that are given, or have, one name; pairs are of name and spec."""
    names = set[str]()
    for name, spec in pairs:
        if name in names:
            raise UserError(f"--paths: two are called {name!r}; name them, as NAME={spec}")
        names.add(name)
