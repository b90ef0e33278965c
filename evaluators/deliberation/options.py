"""The options of an evaluation, from a command line, a release or a demonstration."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.commands.model_options import ModelOptions
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import HOPS, NO_TOPIC, Convention
from safe_stepwise.methods.deliberation import Deliberating
from safe_stepwise.methods.running import AT_ONCE

Labels = Literal["gold", "weak"]
SplitRule = Literal["question", "template"]
BASELINES = ("oracle", "majority", "nearest")
CANDIDATES = 3
"""The default number of paths per topic entity with a generator; without one the first path counts."""
IN_FLIGHT = 64
"""Requests under way at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The options of `scripts.evaluate_deliberation`, by their names.

    Raises ``UserError`` for options that are wrong whatever the files hold.
    """

    questions: tuple[str, ...]
    """Files or ``hub-id@revision``."""
    paths: tuple[str, ...]
    """The proposers: baselines and engines' specs, each perhaps as ``NAME=SPEC``."""
    output: Path
    kb: Path | None = None
    benchmark: str = "metaqa"
    split: str = "test"
    generator: str | None = None
    limit: Count | None = None
    per_hop: Count | None = None
    train: Path | None = None
    splits: SplitRule = "question"
    held_out: bool = False
    labels: Labels = "gold"
    candidates: Count | None = None
    """Paths per topic entity; None: `CANDIDATES` with a generator, else 1."""
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
        """The specs of all engines, each once: a proposer may verify, too."""
        specs = (*engines_of(self.paths), self.generator)
        return tuple(dict.fromkeys(spec for spec in specs if spec is not None))

    @property
    def candidates_per_topic(self) -> int:
        """The number of paths to propose from each topic entity."""
        return self.candidates or self._usual_candidates

    @property
    def _usual_candidates(self) -> int:
        return CANDIDATES if self.generator else 1

    @property
    def conditions(self) -> dict[str, Any]:
        """The conditions that set its runs apart from others by the same players; defaults are left out."""
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
    """Split ``NAME=SPEC`` into the run's name and its proposer; the name may be missing.

    >>> split_name("SFT=vllm:m+a"), split_name("symbolic:error_rate=0.3")
    (('SFT', 'vllm:m+a'), ('', 'symbolic:error_rate=0.3'))
    """
    match = _NAMED_SPEC.fullmatch(spec)
    return (match[1].strip(), match[2]) if match else ("", spec)


def engines_of(specs: Sequence[str]) -> list[str]:
    """Return the specs that are engines; raises ``UserError`` for a misspelt baseline.

    >>> engines_of(["nearest", "SFT=vllm:m+a"])
    ['vllm:m+a']
    """
    proposing = [split_name(text)[1] for text in specs]
    for spec in proposing:
        if spec not in BASELINES and (matches := difflib.get_close_matches(spec, BASELINES, n=1)):
            raise UserError(f"--paths {spec}: is not known; did you mean {matches[0]}?")
    return [spec for spec in proposing if spec not in BASELINES]


def check_names(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise ``UserError`` if two of ``--paths`` share a name; pairs are of name and spec."""
    names = set[str]()
    for name, spec in pairs:
        if name in names:
            raise UserError(f"--paths: two are called {name!r}; name them, as NAME={spec}")
        names.add(name)
