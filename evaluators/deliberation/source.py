"""Which questions are put, over which graph, with which gold paths.

In two steps, so that what is wrong with the files shows before anything takes long.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from evaluators.deliberation.asked import Asked, Gold
from evaluators.deliberation.contending import held_out
from evaluators.deliberation.labelled import PathsSet, read_set
from evaluators.deliberation.options import Options
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.graphs.relation_paths import Convention
from safe_stepwise.graphs.store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath, identity


class Rows(Protocol):
    """Questions with their graphs, as a builder reads them; all raise ``UserError``."""

    @property
    def hops(self) -> int:
        """Of a path, at most."""

    @property
    def about(self) -> dict[str, Any]:
        """What they are, for the record."""

    def read(self) -> list[KGQuestion]:
        """All questions."""

    def graphs(self) -> Iterator[GraphStore]:
        """The graph of each, in their order."""

    def gold(
        self, asked: Sequence[KGQuestion], known: Mapping[str, tuple[RelationPath, ...]], put: Collection[int]
    ) -> tuple[Sequence[Gold], str]:
        """The gold paths of each, and where they come from; ``known`` are those of templates."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An `asked.Source`: some of the questions."""

    rows: Rows
    every: tuple[Asked, ...]
    places: tuple[int, ...]
    convention: Convention
    graph: str

    @property
    def asked(self) -> tuple[Asked, ...]:
        """See `Source`."""
        return tuple(self.every[place] for place in self.places)

    def knowledge(self) -> Iterator[GraphKnowledge]:
        """See `Source`."""
        put, hops = frozenset(self.places), self.rows.hops
        pairs = zip(self.every, self.rows.graphs(), strict=False)
        for place, (one, graph) in enumerate(pairs):
            if place in put:
                yield GraphKnowledge(graph, self.convention, max(hops, one.question.hops))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The questions as they were read, and which of them are put; no gold path is known yet."""

    rows: Rows
    every: tuple[Asked, ...]
    places: tuple[int, ...]
    learnt: PathsSet | None
    """The set that is learnt from."""
    about: Mapping[str, Any]
    """For the record."""
    note: str
    """For the user, if there is anything to know."""

    @property
    def learnt_from(self) -> dict[str, str]:
        """The set that is learnt from and how it is split, as a condition; empty without one."""
        if self.learnt is None:
            return {}
        digest = identity(self.about["train"])[:8]
        return {"train": f"{self.learnt.folder.name} by {self.learnt.way}@{digest}"}

    def joined(self, convention: Convention) -> tuple[Joined, dict[str, Any]]:
        """With gold paths, which may take long; and all of the record."""
        known = self.learnt.gold if self.learnt else {}
        gold, origin = self.rows.gold([one.question for one in self.every], known, self.places)
        pairs = zip(self.every, gold, strict=True)
        every = tuple(replace(one, gold=paths) for one, paths in pairs)
        about = {**self.about, "gold": origin, "convention": convention}
        walked = [about["graph"] or about["sources"], about["max_hops"], convention]
        graph = " ".join(map(str, walked))
        return Joined(self.rows, every, self.places, convention, graph), about


def chosen(options: Options, rows: Rows) -> Chosen:
    """What is put by the options; raises ``UserError`` for what the user can mend in the files."""
    about = rows.about
    learnt = read_set(options.train, options.benchmark, options.splits) if options.train else None
    every = tuple(Asked(one, masked(one.question, one.topics), {}) for one in rows.read())
    places, splits, note = held_out(every, learnt, options.held_out)
    put = tuple(_first(every, places, options.per_hop))[: options.limit]
    told = {
        **about,
        "train": learnt.about if learnt else None,
        "labels": options.labels,
        "held_out": options.held_out,
        "of_splits": splits,
        "limit": options.limit,
        "per_hop": options.per_hop,
    }
    return Chosen(rows, every, put, learnt, told, note)


def _first(every: Sequence[Asked], places: Iterable[int], most: int | None) -> Iterator[int]:
    """The first of each number of hops."""
    seen = Counter[int]()
    for place in places:
        hops = every[place].question.hops
        seen[hops] += 1
        if most is None or seen[hops] <= most:
            yield place
