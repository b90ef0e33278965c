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

from safe_stepwise.commands.model_options import ModelOptions
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import NO_TOPIC, Convention
from safe_stepwise.methods.deliberation import PathOptions
from safe_stepwise.methods.running import AT_ONCE

Labels = Literal["gold", "weak"]
SplitRule = Literal["question", "template"]
BASELINES = ("oracle", "majority", "nearest")
CANDIDATES = 3
"""The default number of paths per topic entity with a generator; without one only the first path counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ModelOptions):
    """The options of the command; making them raises ``UserError`` if they don't go together."""

    questions: tuple[str, ...]
    """Files or ``hub-id@revision``."""
    paths: tuple[str, ...]
    """The proposers of relation paths: `BASELINES` and specs of engines, each perhaps as ``NAME=SPEC``."""
    output: Path
    kb: Path | None = None
    """The graph's file; None if the rows bring their own graphs."""
    benchmark: str = "metaqa"
    split: str = "test"
    """The split that the questions are from, for the record only."""
    generator: str | None = None
    """The spec of the engine that chooses paths and verifies answers; None: the first path with an end answers."""
    limit: Count | None = None
    per_hop: Count | None = None
    """The maximum of questions for each number of hops."""
    draw: bool = False
    """Whether ``limit`` and ``per_hop`` draw the questions by ``seed``; else they take the first ones."""
    train: Path | None = None
    """The set that baselines learn from; None: each question learns from all others."""
    splits: SplitRule = "question"
    """Whether no question, or no template of questions, is in both splits of ``train``."""
    held_out: bool = False
    """Whether to use only questions of the test split of ``train``."""
    labels: Labels = "gold"
    """The paths of ``train`` to learn from: gold ones, or weakly labelled ones."""
    candidates: Count | None = None
    """Paths per topic entity; None: `CANDIDATES` with a generator, else 1."""
    free: bool = False
    """Whether a proposer may name any path, not only those that the graph has."""
    joint: bool = False
    """Whether an engine names all paths of a question in one reply; else a path from one topic entity."""
    max_hops: Count | None = None
    """The most relations of a path; None: those that the benchmark's questions need."""
    convention: Convention = NO_TOPIC
    """The entities that a path must not return to."""
    loop: PathOptions = field(default_factory=PathOptions)
    at_once: Count = AT_ONCE
    """Questions that are answered concurrently."""
    on_error: Literal["stop", "keep"] = "stop"
    """Whether a row that can't be read ends the run, or is kept apart."""
    seed: int = 0
    in_flight: Count = 64
    """The maximum of concurrent requests to an engine."""

    def __post_init__(self) -> None:
        engines_of(self.paths)
        check_names((name or spec, spec) for name, spec in map(split_name, self.paths))
        if self.labels == "weak" and self.train is None:
            raise UserError("--labels weak: name the set that holds them with --train")
        if self.held_out and self.train is None:
            raise UserError("--held-out: name the set whose test split is meant with --train")
        if self.joint and not self.free:
            raise UserError("--joint: a reply of all paths can't be held to the graph; add --free (ways: [free])")

    @property
    def engines(self) -> tuple[str, ...]:
        """The specs of all engines, each once, as a proposer may also be the generator."""
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
            "convention": (self.convention, NO_TOPIC),
            "labels": (self.labels, "gold"),
            "seed": (self.seed, 0),
        }
        return {name: value for name, (value, default) in values.items() if value != default}


_NAMED_SPEC = re.compile(r"([^:=]+)=(.+)")


def split_name(spec: str) -> tuple[str, str]:
    """Split ``NAME=SPEC`` into the name of a run and the spec of its proposer; without a name return "".

    >>> split_name("SFT=vllm:m+a"), split_name("symbolic:error_rate=0.3")
    (('SFT', 'vllm:m+a'), ('', 'symbolic:error_rate=0.3'))
    """
    match = _NAMED_SPEC.fullmatch(spec)
    return (match[1].strip(), match[2]) if match else ("", spec)


def engines_of(specs: Sequence[str]) -> list[str]:
    """Return those of ``--paths`` that are engines, without names; raise ``UserError`` for a misspelt baseline.

    >>> engines_of(["nearest", "SFT=vllm:m+a"])
    ['vllm:m+a']
    """
    proposing = [split_name(text)[1] for text in specs]
    for spec in proposing:
        if spec not in BASELINES and (matches := difflib.get_close_matches(spec, BASELINES, n=1)):
            raise UserError(f"--paths {spec}: is not known; did you mean {matches[0]}?")
    return [spec for spec in proposing if spec not in BASELINES]


def check_names(pairs: Iterable[tuple[str, str]]) -> None:
    """Raise ``UserError`` if two of ``--paths`` have the same name; ``pairs`` are names and specs."""
    names = set[str]()
    for name, spec in pairs:
        if name in names:
            raise UserError(f"--paths: two are called {name!r}; name them, as NAME={spec}")
        names.add(name)
