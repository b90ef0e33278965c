"""Questions over a graph as they are put to whoever answers: with their graphs and gold paths."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource, RawRow, canonical_split
from builders.paths import relation_readers
from builders.paths.relation_inputs import GraphFile, graph_of
from builders.paths.relation_readers import check_graph, own_graph, placed, raw_rows, reader_of
from builders.paths.weak import Explored, Templates, explore_all
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.store.progress import counts, telling

ANNOTATED, OF_SET = "annotated by the benchmark", "those of their templates in the set"
DERIVED = "derived: of all questions of a template, the path that yields their answers best"
BEST = "none is known: those of the best execution F1 stand for them"
"""Where gold paths come from."""

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

    @cached_property
    def about(self) -> dict[str, Any]:
        """What they are, for a record; ``UserError`` for a source that can't be read, or a ``kb`` that is no graph."""
        graph = None if self._shared is None else self._shared[1]
        return {
            "benchmark": self.benchmark,
            "sources": {source.name: source.digest for source in map(InputSource.describe, self.sources)},
            "split": self.split,
            "graph": None if graph is None else {"name": graph["name"], "sha256": graph["digest"]},
            "max_hops": self.hops,
        }

    @classmethod
    def of_options(cls, options: Any, work: Path) -> "Questions":
        """Those that the options of an evaluation name; raises ``UserError`` for a benchmark that is none."""
        benchmark = relation_readers.known_benchmark(options.benchmark)
        return cls(benchmark, options.questions, options.split, options.kb, options.max_hops, work)

    def read(self) -> list[KGQuestion]:
        """All questions; ``UserError`` with the place of a row that can't be read, or repeats an id."""
        questions: dict[str, KGQuestion] = {}
        for raw, content in self._rows():
            with placed(raw):
                question = reader_of(self.benchmark).parse(content, canonical_split(self.split))
                own_graph(self.benchmark, content)
                if question.id in questions:
                    raise RowError(f"the id {question.id!r} was there before")
            questions[question.id] = question
        return [*questions.values()]

    def graphs(self) -> Iterator[GraphStore]:
        """The graph of each question, in their order; raises as `read`, and for a bad file."""
        if self._shared is not None:
            yield from repeat(self._shared[0].open())
        for raw, content in self._rows():
            with placed(raw):
                graph = own_graph(self.benchmark, content)
            yield graph

    def gold(
        self, asked: Sequence[KGQuestion], known: Mapping[str, tuple[RelationPath, ...]], put: Collection[int]
    ) -> tuple[list[Gold], str]:
        """The gold paths of each question by topic, and where they come from, in words.

        What the benchmark annotates goes first, then what is ``known`` of a template. Of the others they are derived
        (`weak.Templates`), from all questions however few are ``put`` to be answered (places): what tells paths of one
        template apart is how many questions of others have them. Where the number of hops isn't known either, the
        paths of the best execution F1 stand for them, searched for what is put alone.
        """
        wanted = frozenset(put)
        templates = [masked(question.question, question.topics) for question in asked]
        gold: dict[int, Gold] = {}
        origins: dict[int, str] = {}
        for place, question in enumerate(asked):
            of_set = known.get(templates[place], ())
            if paths := _annotated(question) or (dict.fromkeys(question.topics, of_set) if of_set else {}):
                gold[place] = paths
                origins[place] = ANNOTATED if question.gold_paths else OF_SET
        owed = [n for n, question in enumerate(asked) if n not in gold and (question.hops or n in wanted)]
        if wanted.intersection(owed):
            gold |= _derived(asked, templates, owed, self.graphs(), self.hops)
            origins |= {place: DERIVED if asked[place].hops else BEST for place in owed}
        times = Counter(origins[place] for place in sorted(wanted & origins.keys()))
        return [gold.get(place, {}) for place in range(len(asked))], _origin(times)

    @cached_property
    def _shared(self) -> tuple[GraphFile, dict[str, Any]] | None:
        return None if self.kb is None else graph_of(self.kb, self.work)

    def _rows(self) -> Iterator[tuple[RawRow, Mapping[str, Any]]]:
        for source in self.sources:
            yield from raw_rows(self.benchmark, source, self.split)


def _annotated(question: KGQuestion) -> Gold:
    gold: Gold = {}
    for candidate in question.gold_paths:
        gold[candidate.topic] = (*gold.get(candidate.topic, ()), candidate.path)
    return gold


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

    def standing() -> str:
        return counts(len(searched), 0, len(left) - len(searched))

    with telling("gold paths", "question", len(left), lambda: len(searched), standing):
        for place, (question, graph) in enumerate(zip(asked, graphs, strict=False)):
            if place not in left:
                continue
            explored = explore_all(graph, question, hops)
            for topic in explored.values():
                counted.add(templates[place], question.hops, [(c.path, c.f1) for c in topic.candidates])
            searched[place] = {} if question.hops else _best(explored)
    gold = counted.gold()
    return {
        place: dict.fromkeys(asked[place].topics, (gold[templates[place]],))
        if asked[place].hops and templates[place] in gold
        else paths
        for place, paths in searched.items()
    }


def _best(explored: Mapping[str, Explored]) -> Gold:
    """The paths that tie for the best of all topics; a topic without one is left out."""
    top = max((c.f1 for topic in explored.values() for c in topic.candidates), default=0.0)
    best = {
        name: tuple(c.path for c in topic.candidates if c.tied and c.f1 == top) for name, topic in explored.items()
    }
    return {topic: paths for topic, paths in best.items() if paths}
