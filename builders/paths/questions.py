"""Questions over a graph as they are put to whoever answers: with their graphs and gold paths."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource, RawRow, canonical_split, decode
from builders.paths.relation_inputs import Graph, GraphFile, graph_of
from builders.paths.relation_readers import Reader, check_graph, reader_of
from builders.paths.weak import Explored, Templates, explore
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.store import GraphStore, MemoryGraph
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.store.progress import counts, telling

ANNOTATED, OF_SET = "annotated by the benchmark", "those of their templates in the set"
DERIVED = "derived: of all questions of a template, the path that yields their answers best"
BEST = "none is known: those of the best execution F1 stand for them"
"""Where gold paths come from."""
_SIZE = 100

Gold = dict[str, tuple[RelationPath, ...]]
"""By topic entity."""


@dataclass(frozen=True)
class Questions:
    """The questions of some files (or ``hub-id@rev``) and their graph, which is ``kb`` or theirs.

    Raises ``UserError`` where the graph is missing, or given though each row brings its own.
    """

    benchmark: str
    sources: tuple[str, ...]
    split: str
    kb: Path | None
    hops: int
    """Of a path, at most."""
    work: Path
    """A folder that a large graph is put into."""

    def __post_init__(self) -> None:
        check_graph(self.benchmark, self.kb)

    @property
    def reader(self) -> Reader:
        """Who reads the rows."""
        return reader_of(self.benchmark)

    @cached_property
    def about(self) -> dict[str, Any]:
        """What they are, for a record; raises ``UserError`` for a source that can't be read, and
        for a ``kb`` that is no graph."""
        graph = None if self._shared is None else self._shared[1]
        return {
            "benchmark": self.benchmark,
            "sources": {source.name: source.digest for source in map(InputSource.of, self.sources)},
            "split": self.split,
            "graph": None if graph is None else {"name": graph.name, "sha256": graph.digest},
            "max_hops": self.hops,
        }

    def read(self) -> list[KGQuestion]:
        """All questions; ``UserError`` with the place of a row that can't be read, or repeats an
        id."""
        found: dict[str, KGQuestion] = {}
        for raw, content in self._rows():
            try:
                one = self.reader.parse(content, canonical_split(self.split))
                self._graph(content)
            except RowError as error:
                raise _bad(raw, str(error)) from None
            if one.id in found:
                raise _bad(raw, f"the id {one.id!r} was there before")
            found[one.id] = one
        return [*found.values()]

    def graphs(self) -> Iterator[GraphStore]:
        """The graph of each question, in their order; raises as `read`, and for a bad file."""
        if self._shared is not None:
            yield from repeat(self._shared[0].open())
        for raw, content in self._rows():
            try:
                found = self._graph(content)
            except RowError as error:
                raise _bad(raw, str(error)) from None
            yield found

    def gold(
        self, asked: Sequence[KGQuestion], known: Mapping[str, tuple[RelationPath, ...]], put: Collection[int]
    ) -> tuple[list[Gold], str]:
        """`gold_paths` of what was read, of which the places ``put`` are to be answered."""
        return gold_paths(asked, known, self.graphs(), self.hops, put)

    @cached_property
    def _shared(self) -> tuple[GraphFile, Graph] | None:
        return None if self.kb is None else graph_of(self.kb, self.work)

    def _graph(self, content: Mapping[str, Any]) -> MemoryGraph:
        try:
            return MemoryGraph(self.reader.triples(content))
        except RowError:
            raise
        except ValueError as error:
            raise RowError(str(error)) from None

    def _rows(self) -> Iterator[tuple[RawRow, Mapping[str, Any]]]:
        split = canonical_split(self.split)
        for source in self.sources:
            for chunk in self.reader.chunks(source, split, size=_SIZE, limit=None):
                for raw in chunk.rows:
                    try:
                        content = decode(raw)
                    except RowError as error:
                        raise _bad(raw, str(error)) from None
                    yield raw, content


def _bad(raw: RawRow, reason: str) -> UserError:
    return UserError(f"{raw.location}: {reason}; mend the row")


def gold_paths(
    asked: Sequence[KGQuestion],
    known: Mapping[str, tuple[RelationPath, ...]],
    graphs: Iterator[GraphStore],
    hops: int,
    put: Collection[int] | None = None,
) -> tuple[list[Gold], str]:
    """The gold paths of each question by topic, and where they come from, in words.

    What the benchmark annotates goes first, then what is ``known`` of a template. Of the others
    they are derived (`weak.Templates`), from all questions however few are ``put`` (places; all, if
    not said): what tells paths of one template apart is how many questions of others have them.
    Where the number of hops isn't known either, the paths of the best execution F1 stand for them,
    searched for what is put alone.
    """
    wanted = frozenset(range(len(asked)) if put is None else put)
    templates = [masked(one.question, one.topics) for one in asked]
    found: dict[int, Gold] = {}
    origins: dict[int, str] = {}
    for place, one in enumerate(asked):
        of_set = known.get(templates[place], ())
        if gold := _annotated(one) or (dict.fromkeys(one.topics, of_set) if of_set else {}):
            found[place] = gold
            origins[place] = ANNOTATED if one.gold_paths else OF_SET
    left = [place for place in range(len(asked)) if place not in found]
    owed = [place for place in left if asked[place].hops or place in wanted]
    if wanted.intersection(owed):
        found |= _derived(asked, templates, owed, graphs, hops)
        origins |= {place: DERIVED if asked[place].hops else BEST for place in owed}
    told = Counter(origins[place] for place in sorted(wanted & origins.keys()))
    return [found.get(place, {}) for place in range(len(asked))], _origin(told)


def _annotated(one: KGQuestion) -> Gold:
    found: Gold = {}
    for candidate in one.gold_paths:
        found[candidate.topic] = (*found.get(candidate.topic, ()), candidate.path)
    return found


def _origin(times: Counter[str]) -> str:
    """Where gold paths come from; of how many questions, if from several places.

    >>> _origin(Counter({"annotated": 1, "derived": 2}))
    'derived (2 questions); annotated (1 questions)'
    """
    if len(times) < 2:
        return next(iter(times), "")
    return "; ".join(f"{name} ({n:,} questions)" for name, n in times.most_common())


def _derived(
    asked: Sequence[KGQuestion], templates: Sequence[str], owed: Sequence[int], graphs: Iterator[GraphStore], hops: int
) -> dict[int, Gold]:
    searched: dict[int, Gold] = {}
    counted, left = Templates(), frozenset(owed)

    def told() -> str:
        return counts(len(searched), 0, len(left) - len(searched))

    with telling("gold paths", "question", len(left), lambda: len(searched), told):
        for place, (one, graph) in enumerate(zip(asked, graphs, strict=False)):
            if place not in left:
                continue
            most = max(hops, one.hops)
            of = {t: explore(graph, t, one.answers, one.hops, most) for t in one.topics}
            for explored in of.values():
                paths = [(c.path, c.f1) for c in explored.candidates]
                counted.add(templates[place], one.hops, paths)
            searched[place] = {} if one.hops else _best(of)
    gold = counted.gold()
    return {
        place: dict.fromkeys(asked[place].topics, (gold[templates[place]],))
        if asked[place].hops and templates[place] in gold
        else paths
        for place, paths in searched.items()
    }


def _best(explored: Mapping[str, Explored]) -> Gold:
    """Of all topics the paths that tie for the best; a topic without one is left out."""
    top = max((c.f1 for of in explored.values() for c in of.candidates), default=0.0)
    found = {topic: tuple(c.path for c in of.candidates if c.tied and c.f1 == top) for topic, of in explored.items()}
    return {topic: paths for topic, paths in found.items() if paths}
