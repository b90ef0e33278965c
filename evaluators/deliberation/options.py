"""Options of `evaluate_deliberation`: answering questions over a knowledge graph by proposed relation paths.

A *proposer* names relation paths for a question, the graph follows them to entities, and a *generator* chooses paths
and verifies the answers. The options come from a command line, a release or a demonstration.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.methods import deliberation, path_recall, running

Labels = Literal["gold", "weak"]
SplitRule = Literal["question", "template"]
NO_GRAPH = path_recall.NAME
BASELINES = ("oracle", "majority", "nearest", NO_GRAPH)
CANDIDATES = 3
_NAMED_SPEC = re.compile(r"([^:=]+)=(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The options of the command; making them raises ``UserError`` if they contradict each other."""

    questions: tuple[str, ...]
    paths: tuple[str, ...]
    output: Path
    kb: Path | None = None
    benchmark: str = "metaqa"
    split: str = "test"
    generator: str | None = None
    limit: Count | None = None
    per_hop: Count | None = None
    draw: bool = False
    train: Path | None = None
    splits: SplitRule = "question"
    held_out: bool = False
    labels: Labels = "gold"
    candidates: Count | None = None
    free: bool = False
    joint: bool = False
    max_hops: Count | None = None
    constraint_kinds: Path | None = None
    loop: deliberation.PathOptions = field(default_factory=deliberation.PathOptions)
    at_once: Count = running.AT_ONCE
    on_error: Literal["stop", "keep"] = "stop"
    seed: int = 0
    repeats: Count = 1
    in_flight: Count = 64

    def __post_init__(self) -> None:
        engines_of(self.paths)
        check_names((name or spec, spec) for name, spec in map(split_name, self.paths))
        if self.labels == "weak" and self.train is None:
            raise UserError("--labels weak: name the set that holds them with --train")
        if self.held_out and self.train is None:
            raise UserError("--held-out: name the set whose test split is meant with --train")
        if self.generator is None and NO_GRAPH in {split_name(text)[1] for text in self.paths}:
            raise UserError(f"--paths {NO_GRAPH}: name the model that answers alone with --generator")
        if self.joint and not self.free:
            raise UserError("--joint: a reply of all paths can't be held to the graph; add --free (ways: [free])")
        if self.constraint_kinds and not (self.generator and self.loop.introspection and self.loop.predefined):
            raise UserError("--constraint-kinds: needs --generator, and the extraction of constraints: no --no-...")

    @property
    def engines(self) -> tuple[str, ...]:
        """The specs of all engines without repeats, as a proposer may also be the generator."""
        return tuple(dict.fromkeys(spec for spec in (*engines_of(self.paths), self.generator) if spec is not None))

    @property
    def candidates_per_topic(self) -> int:
        """The number of paths to propose from each topic entity."""
        return self.candidates or (CANDIDATES if self.generator else 1)

    @property
    def conditions(self) -> dict[str, Any]:
        """The options that distinguish runs of the same players in a record, without those at their defaults."""
        values: Mapping[str, tuple[Any, Any]] = {
            "candidates": (self.candidates_per_topic, CANDIDATES if self.generator else 1),
            "free": (self.free, False),
            "joint": (self.joint, False),
            "max_hops": (self.max_hops, None),
            "labels": (self.labels, "gold"),
            "seed": (self.seed, 0),
        }
        return {name: value for name, (value, default) in values.items() if value != default}


def split_name(spec: str) -> tuple[str, str]:
    """Split ``NAME=SPEC`` into the name of a run and the spec of its proposer; without a name return ""."""
    match = _NAMED_SPEC.fullmatch(spec)
    return (match[1].strip(), match[2]) if match else ("", spec)


def engines_of(specs: Sequence[str]) -> list[str]:
    """Return the engines' specs of ``--paths``, without the runs' names; raise ``UserError`` for a misspelt baseline.

    >>> engines_of(["nearest", "SFT=vllm:m+a"])
    ['vllm:m+a']
    """
    proposers = [split_name(text)[1] for text in specs]
    for spec in proposers:
        if spec not in BASELINES and (matches := difflib.get_close_matches(spec, BASELINES, n=1)):
            raise UserError(f"--paths {spec}: is not known; did you mean {matches[0]}?")
    return [spec for spec in proposers if spec not in BASELINES]


def check_names(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise ``UserError`` if two of ``--paths`` have the same name; ``pairs`` are names and specs."""
    names = set[str]()
    for name, spec in pairs:
        if name in names:
            raise UserError(f"--paths: two are called {name!r}; name them, as NAME={spec}")
        names.add(name)
