"""Read the questions over a graph to evaluate on, with their graphs and gold paths."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource, RawRow, canonical_split, decode, id_of
from builders.paths import relation_readers
from builders.paths.weak import Explored, Templates, explore_all
from builders.work.rejects import Reject, RejectPolicy
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import CONSTRAINT_KINDS, Constraint, KGQuestion, RelationPath
from safe_stepwise.store.boundary import read
from safe_stepwise.store.progress import show_progress

ANNOTATED = "annotated"
OF_SET = "those of their templates in the set"
DERIVED = "derived: of all questions of a template, the path that yields their answers best"
BEST = "none is known: those of the best execution F1 stand for them"
"""Origins of gold paths, as a record states them."""

GoldPaths = dict[str, tuple[RelationPath, ...]]
"""Gold paths by topic entity."""


class Questions:
    """The questions of files, with their graphs; ``kb`` is the file of a graph that all share.

    ``hops``: the maximum number of relations in a path (None: the benchmark's). Making them reads the files; raises
    ``UserError`` for an unreadable file, a row that can't be read or repeats an id (unless ``keeps_rejects``), for a
    missing ``kb``, and for a ``kb`` though each row has a graph.
    """

    def __init__(
        self,
        benchmark: str,
        sources: Sequence[str],
        split: str,
        kb: Path | None = None,
        hops: int | None = None,
        *,
        keeps_rejects: bool = False,
    ) -> None:
        relation_readers.check_graph(benchmark, kb)
        self.benchmark, self.sources, self.split = benchmark, sources, split
        self.hops = hops or relation_readers.reader_of(benchmark).HOPS
        self._shared_graph = None if kb is None else relation_readers.GraphFile.read(kb)
        self.questions: list[KGQuestion] = []
        self._rejects: dict[int, bytes] = {}
        self._triples_left_out = 0
        self._read(RejectPolicy(benchmark, split, keeps_rejects))
        if not self.questions:
            raise UserError(f"{', '.join(sources)}: none of the {len(self._rejects)} rows can be read")

    def _read(self, policy: RejectPolicy) -> None:
        ids = set[str]()
        for number, raw in enumerate(self._rows()):
            content: Mapping[str, Any] = {}
            try:
                content = decode(raw)
                question = relation_readers.reader_of(self.benchmark).parse(content, canonical_split(self.split))
                constraints = read(tuple[Constraint, ...], content.get("constraints") or (), "constraints", exact=True)
                if unknown := {constraint.kind for constraint in constraints} - {*CONSTRAINT_KINDS}:
                    raise RowError(f"constraints: no kind {min(unknown)}; write {', '.join(CONSTRAINT_KINDS)}")
                question = replace(question, constraints=constraints)
                graph = relation_readers.own_graph(self.benchmark, content)
                if question.id in ids:
                    raise RowError(f"the id {question.id!r} was there before")
            except ValueError as error:  # a RowError, or a fault of the constraints
                reject = Reject(number, raw.location, id_of(content), str(error), content or raw.payload)
                self._rejects[number] = policy.line(reject)
                continue
            ids.add(question.id)
            self.questions.append(question)
            self._triples_left_out += graph.left_out

    @classmethod
    def of_options(cls, options: Any) -> "Questions":
        """Read the questions that an evaluation's options name."""
        sources = options.benchmark, options.questions, options.split, options.kb
        return cls(*sources, options.max_hops, keeps_rejects=options.on_error == "keep")

    @property
    def description(self) -> dict[str, Any]:
        """The sources of the questions, for a record."""
        graph = self._shared_graph
        return {
            "benchmark": self.benchmark,
            "sources": {source.name: source.digest for source in map(InputSource.describe, self.sources)},
            "split": self.split,
            "graph": None if graph is None else {"name": graph.file.name, "sha256": graph.digest},
            "max_hops": self.hops,
            "rejected": len(self._rejects),
            "triples_left_out": self._triples_left_out,
        }

    @property
    def rejects(self) -> list[bytes]:
        """The lines of ``rejects.jsonl``: rows that can't be read, with the reasons."""
        return [*self._rejects.values()]

    def graphs(self) -> Iterator[GraphStore]:
        """Yield each question's graph, in order; a shared graph is yielded again and again, without end."""
        if self._shared_graph is not None:
            yield from repeat(self._shared_graph.open())
        for number, raw in enumerate(self._rows()):
            if number not in self._rejects:
                yield relation_readers.own_graph(self.benchmark, decode(raw))

    def find_gold_paths(
        self, by_template: Mapping[str, tuple[RelationPath, ...]], indices: Collection[int]
    ) -> tuple[list[GoldPaths], str]:
        """Return the gold paths of each question, and a text on the origin of those at ``indices``.

        They are annotated, else those of its template in the training set (``by_template``), else derived from all
        questions. If the hops are unknown, paths with the best F1 take their place, searched only at ``indices``.
        """
        chosen, questions = frozenset(indices), self.questions
        templates = [masked(question.question, question.topics) for question in questions]
        gold_paths: dict[int, GoldPaths] = {
            index: dict.fromkeys(question.topics, by_template[template])
            for index, (question, template) in enumerate(zip(questions, templates, strict=True))
            if template in by_template
        }
        origins = dict.fromkeys(gold_paths, OF_SET)
        for index, question in enumerate(questions):
            if gold := question.gold_paths:
                gold_paths[index] = {c.topic: tuple(g.path for g in gold if g.topic == c.topic) for c in gold}
                origins[index] = ANNOTATED
        pending = [n for n, question in enumerate(questions) if n not in gold_paths and (question.hops or n in chosen)]
        if chosen.intersection(pending):
            gold_paths |= _derive_gold_paths(questions, templates, pending, self.graphs(), self.hops)
            origins |= {index: DERIVED if questions[index].hops else BEST for index in pending}
        counts = Counter(origins[index] for index in sorted(chosen & origins.keys()))
        return [gold_paths.get(index, {}) for index in range(len(questions))], _describe_origins(counts)

    def _rows(self) -> Iterator[RawRow]:
        for source in self.sources:
            yield from relation_readers.reader_of(self.benchmark).read_rows(source, canonical_split(self.split))


def _describe_origins(counts: Counter[str]) -> str:
    """Describe where gold paths come from, with the number of questions if there are several origins.

    >>> _describe_origins(Counter({"annotated": 1, "derived": 2}))
    'derived (2 questions); annotated (1 questions)'
    """
    if len(counts) < 2:
        return next(iter(counts), "")
    return "; ".join(f"{origin} ({n:,} questions)" for origin, n in counts.most_common())


def _derive_gold_paths(
    questions: Sequence[KGQuestion],
    templates: Sequence[str],
    indices: Sequence[int],
    graphs: Iterator[GraphStore],
    hops: int,
) -> dict[int, GoldPaths]:
    searched: dict[int, GoldPaths] = {}
    template_paths, remaining = Templates(), frozenset(indices)
    with show_progress("gold paths", "question", len(remaining), lambda: len(searched)):
        for index, (question, graph) in enumerate(zip(questions, graphs, strict=False)):
            if index not in remaining:
                continue
            explored = explore_all(graph, question, hops)
            for topic in explored.values():
                template_paths.add(templates[index], question.hops, [(c.path, c.f1) for c in topic.candidates])
            searched[index] = {} if question.hops else _select_best_paths(explored)
    gold = template_paths.gold()
    return {
        index: dict.fromkeys(questions[index].topics, (gold[templates[index]],))
        if questions[index].hops and templates[index] in gold
        else paths
        for index, paths in searched.items()
    }


def _select_best_paths(explored: Mapping[str, Explored]) -> GoldPaths:
    """Return the paths that tie for the best F1 over all topics, without topics that have none."""
    top = max((c.f1 for topic in explored.values() for c in topic.candidates), default=0.0)
    best = {
        name: tuple(c.path for c in topic.candidates if c.is_best and c.f1 == top) for name, topic in explored.items()
    }
    return {topic: paths for topic, paths in best.items() if paths}
