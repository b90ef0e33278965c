"""Read the questions over a graph to evaluate on, with their graphs and gold paths."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource, RawRow, canonical_split, decode, id_of
from builders.paths import relation_readers
from builders.paths.relation_inputs import GraphFile, graph_of
from builders.paths.weak import Explored, Templates, explore_all
from builders.work.rejects import Reject, RejectPolicy
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath
from safe_stepwise.store.progress import show_progress

ANNOTATED, OF_SET = "annotated by the benchmark", "those of their templates in the set"
DERIVED = "derived: of all questions of a template, the path that yields their answers best"
BEST = "none is known: those of the best execution F1 stand for them"
"""Origins of gold paths."""

Gold = dict[str, tuple[RelationPath, ...]]
"""Gold paths by topic entity."""


@dataclass(frozen=True)
class Questions:
    """The questions of files and their graph; raises ``UserError`` if ``kb`` is missing, or each row has a graph."""

    benchmark: str
    sources: tuple[str, ...]
    split: str
    kb: Path | None
    hops: int
    """The most relations of a path."""
    work: Path
    """The folder into which a large graph is written."""
    keep_rejects: bool = False
    """Whether rows that can't be read are kept apart."""

    def __post_init__(self) -> None:
        relation_readers.check_graph(self.benchmark, self.kb)

    @cached_property
    def description(self) -> dict[str, Any]:
        """Describe the questions for a record; raise ``UserError`` for an unreadable source, row or ``kb``."""
        graph = None if self._shared is None else self._shared[1]
        return {
            "benchmark": self.benchmark,
            "sources": {source.name: source.digest for source in map(InputSource.describe, self.sources)},
            "split": self.split,
            "graph": None if graph is None else {"name": graph["name"], "sha256": graph["digest"]},
            "max_hops": self.hops,
            "rejected": len(self.rejects),
            "triples_left_out": self._readable[2],
        }

    @classmethod
    def of_options(cls, options: Any, work: Path) -> "Questions":
        """Return the questions that an evaluation's options name; raise ``UserError`` for an unknown benchmark."""
        benchmark = relation_readers.known_benchmark(options.benchmark)
        hops = options.max_hops or relation_readers.reader_of(benchmark).HOPS
        return cls(benchmark, options.questions, options.split, options.kb, hops, work, options.on_error == "keep")

    def read(self) -> list[KGQuestion]:
        """Read all questions; raise ``UserError``, with the place, for a row that can't be read or repeats an id."""
        return [*self._readable[0].values()]

    @property
    def rejects(self) -> list[bytes]:
        """The lines of ``rejects.jsonl``: rows that can't be read, with the reasons."""
        return [*self._readable[1].values()]

    @cached_property
    def _readable(self) -> tuple[dict[str, KGQuestion], dict[int, bytes], int]:
        """The questions by id, the rejects by the number of their row, and how many triples are left out."""
        questions, rejects, left_out = dict[str, KGQuestion](), dict[int, bytes](), 0
        policy = RejectPolicy(self.benchmark, self.split, self.keep_rejects)
        for number, raw in enumerate(self._rows()):
            content: Mapping[str, Any] = {}
            try:
                content = decode(raw)
                question = relation_readers.reader_of(self.benchmark).parse(content, canonical_split(self.split))
                graph = relation_readers.own_graph(self.benchmark, content)
                if question.id in questions:
                    raise RowError(f"the id {question.id!r} was there before")
            except RowError as error:
                reject = Reject(number, raw.location, id_of(content), str(error), content or raw.payload)
                rejects[number] = policy.line(reject)
                continue
            questions[question.id] = question
            left_out += graph.left_out
        if not questions:
            raise UserError(f"{', '.join(self.sources)}: none of the {len(rejects)} rows can be read")
        return questions, rejects, left_out

    def graphs(self) -> Iterator[GraphStore]:
        """Yield each question's graph, in order, or a shared one without end; raise ``UserError`` for a bad graph."""
        if self._shared is not None:
            yield from repeat(self._shared[0].open())
        for number, raw in enumerate(self._rows()):
            if number not in self._readable[1]:
                with relation_readers.locate_errors(raw):
                    graph = relation_readers.own_graph(self.benchmark, decode(raw))
                yield graph

    def gold(
        self, questions: Sequence[KGQuestion], trained: Mapping[str, tuple[RelationPath, ...]], places: Collection[int]
    ) -> tuple[list[Gold], str]:
        """Return the gold paths of each question by topic, and a text on their origin.

        They are annotated, else ``trained`` (those of the template in the training set), else derived from all
        questions (`weak.Templates`). Where the number of hops is unknown, those of the best F1 stand for them, at
        ``places`` alone.
        """
        chosen = frozenset(places)
        templates = [masked(question.question, question.topics) for question in questions]
        gold: dict[int, Gold] = {}
        origins: dict[int, str] = {}
        for position, question in enumerate(questions):
            of_template = trained.get(templates[position], ())
            if paths := _annotated(question) or (dict.fromkeys(question.topics, of_template) if of_template else {}):
                gold[position] = paths
                origins[position] = ANNOTATED if question.gold_paths else OF_SET
        pending = [n for n, question in enumerate(questions) if n not in gold and (question.hops or n in chosen)]
        if chosen.intersection(pending):
            gold |= _derived(questions, templates, pending, self.graphs(), self.hops)
            origins |= {position: DERIVED if questions[position].hops else BEST for position in pending}
        times = Counter(origins[position] for position in sorted(chosen & origins.keys()))
        return [gold.get(position, {}) for position in range(len(questions))], _origin(times)

    @cached_property
    def _shared(self) -> tuple[GraphFile, dict[str, Any]] | None:
        return None if self.kb is None else graph_of(self.kb, self.work)

    def _rows(self) -> Iterator[RawRow]:
        for source in self.sources:
            yield from relation_readers.raw_rows(self.benchmark, source, self.split)


def _annotated(question: KGQuestion) -> Gold:
    gold: Gold = {}
    for candidate in question.gold_paths:
        gold[candidate.topic] = (*gold.get(candidate.topic, ()), candidate.path)
    return gold


def _origin(times: Counter[str]) -> str:
    """Describe where gold paths come from, with the number of questions if there are several origins.

    >>> _origin(Counter({"annotated": 1, "derived": 2}))
    'derived (2 questions); annotated (1 questions)'
    """
    if len(times) < 2:
        return next(iter(times), "")
    return "; ".join(f"{name} ({n:,} questions)" for name, n in times.most_common())


def _derived(
    questions: Sequence[KGQuestion],
    templates: Sequence[str],
    places: Sequence[int],
    graphs: Iterator[GraphStore],
    hops: int,
) -> dict[int, Gold]:
    searched: dict[int, Gold] = {}
    template_paths, remaining = Templates(), frozenset(places)
    with show_progress("gold paths", "question", len(remaining), lambda: len(searched)):
        for position, (question, graph) in enumerate(zip(questions, graphs, strict=False)):
            if position not in remaining:
                continue
            explored = explore_all(graph, question, hops)
            for topic in explored.values():
                template_paths.add(templates[position], question.hops, [(c.path, c.f1) for c in topic.candidates])
            searched[position] = {} if question.hops else _best(explored)
    gold = template_paths.gold()
    return {
        position: dict.fromkeys(questions[position].topics, (gold[templates[position]],))
        if questions[position].hops and templates[position] in gold
        else paths
        for position, paths in searched.items()
    }


def _best(explored: Mapping[str, Explored]) -> Gold:
    """Return the paths that tie for the best F1 over all topics; a topic without one is left out."""
    top = max((c.f1 for topic in explored.values() for c in topic.candidates), default=0.0)
    best = {
        name: tuple(c.path for c in topic.candidates if c.tied and c.f1 == top) for name, topic in explored.items()
    }
    return {topic: paths for topic, paths in best.items() if paths}
