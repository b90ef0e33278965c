"""Which questions are put, over which graph, with which gold paths: joined; no command itself."""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import digest
from builders.paths.questions import Questions, gold_paths
from evaluators.deliberation.asked import Asked
from evaluators.deliberation.contending import held_out
from evaluators.deliberation.labelled import PathsSet, read_set
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.store.files import sha256_of
from scripts.cli import warn


@dataclass(frozen=True, slots=True)
class Joined:
    """A `deliberation.asked.Source`: some of the questions."""

    questions: Questions
    every: tuple[Asked, ...]
    places: tuple[int, ...]
    graph: str

    @property
    def asked(self) -> tuple[Asked, ...]:
        """See `Source`."""
        return tuple(self.every[place] for place in self.places)

    def knowledge(self) -> Iterator[GraphKnowledge]:
        """See `Source`."""
        put, hops = frozenset(self.places), self.questions.hops
        pairs = zip(self.every, self.questions.graphs(), strict=False)
        for place, (one, graph) in enumerate(pairs):
            if place in put:
                yield GraphKnowledge(graph, hops=max(hops, one.question.hops))


def source_of(options: argparse.Namespace) -> tuple[Joined, PathsSet | None, dict[str, Any]]:
    """What is put by the options, the set that is learnt from, and notes for the record.

    Raises ``UserError`` for what the user can mend.
    """
    questions = Questions(
        options.benchmark, tuple(options.questions), options.split, options.kb, options.max_hops
    )
    learnt = read_set(options.train, options.benchmark, options.splits) if options.train else None
    read = questions.read()
    known = learnt.gold if learnt else {}
    gold, origin = gold_paths(read, known, questions.graphs(), options.max_hops)
    asked = tuple(
        Asked(one, masked(one.question, one.topics), paths)
        for one, paths in zip(read, gold, strict=True)
    )
    places, splits, note = held_out(asked, learnt, options.held_out)
    if note:
        warn(note)
    put = tuple(_first(asked, places, options.per_hop))[: options.limit]
    notes = {
        "benchmark": options.benchmark,
        "sources": {_name(one): digest(one) for one in options.questions},
        "split": options.split,
        "graph": _graph(options.kb),
        "max_hops": options.max_hops,
        "gold": origin,
        "train": learnt.about if learnt else None,
        "labels": options.labels,
        "held_out": options.held_out,
        "of_splits": splits,
        "limit": options.limit,
        "per_hop": options.per_hop,
    }
    graph = f"{notes['graph'] or notes['sources']} {options.max_hops}"
    return Joined(questions, asked, put, graph), learnt, notes


def _first(asked: tuple[Asked, ...], places: Iterable[int], most: int | None) -> Iterator[int]:
    """The first of each number of hops."""
    seen = Counter[int]()
    for place in places:
        hops = asked[place].question.hops
        seen[hops] += 1
        if most is None or seen[hops] <= most:
            yield place


def _graph(kb: Path | None) -> dict[str, str] | None:
    try:
        return {"name": kb.name, "sha256": sha256_of(kb)} if kb else None
    except OSError as error:
        raise UserError(f"{kb}: can't be read: {error.strerror}") from None


def _name(source: str) -> str:
    return Path(source).name if Path(source).exists() else source
