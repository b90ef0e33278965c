"""Read the questions that `calibrate_faithfulness` measures on: verified ones, a benchmark's, or MetaQA's."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from builders.paths import metaqa
from builders.paths.questions import Questions
from builders.paths.sources import find_gold, path_question, with_paths
from builders.verified.evaluation_questions import read
from builders.verified.lookup import Labelled, drop_repeats, labelled
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.derivations import Derivation
from evaluators.outcomes import grouped
from safe_stepwise.checking import statements, wordings
from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.graphs.comparisons import is_comparison
from safe_stepwise.graphs.graph_store import read_triples
from safe_stepwise.records import Triple
from safe_stepwise.store import names
from studies.calibration.cases import CalibrationSource, word_film_fact, word_plainly

T = TypeVar("T")


@dataclass(slots=True)
class BenchmarkSources:
    """A benchmark's sources, further true facts (``graph``), and the number of left-out questions by reason."""

    sources: list[CalibrationSource] = field(default_factory=list)
    graph: Iterable[Triple] = ()
    left_out: Counter[str] = field(default_factory=Counter)


def labelled_rows(
    verified: Path | None, files: Sequence[str], benchmarks: Sequence[str]
) -> Iterator[tuple[str, Iterable[Labelled]]]:
    """Yield each benchmark's questions with labels: verified ones, or those of files, labelled by annotations."""
    groups: Iterable[tuple[str, Iterable[Labelled]]]
    if verified:
        groups = labelled(verified)
    else:
        questions = chain.from_iterable(
            read(file, [*benchmarks], skip=True, all_passages=True).questions for file in files
        )
        rows = ((question, asyncio.run(verify(question, AnnotationsTeacher()))) for question in questions)
        groups = grouped(rows, lambda row: row[0].benchmark).items()
    yield from ((name, drop_repeats(rows)) for name, rows in groups)


def shuffle_rows(rows: Iterable[T], id_of: Callable[[T], str], seed: int) -> list[T]:
    """Shuffle rows by their ids and the seed, as the first rows of a file may be of one kind."""
    return sorted(rows, key=lambda row: (wordings.choice_for(str(seed), id_of(row)), id_of(row)))


def select_questions(
    rows: Iterable[Labelled], derivations: Mapping[str, Sequence[Derivation]], seed: int = 0, limit: int | None = None
) -> BenchmarkSources:
    """Select sound questions with a gold path, at most ``limit``, in the order that the seed gives."""
    benchmark = BenchmarkSources()
    for question, label in shuffle_rows(rows, lambda row: row[0].id, seed):
        annotated = derivations.get(question.id, ()) if question.benchmark == "hotpotqa" else ()
        source = path_question(question, label, annotated)
        if isinstance(source, str):  # the reason why there is no gold path
            benchmark.left_out[source] += 1
            continue
        graph, compares = label.knowledge_graph, is_comparison(question)
        grounds = grounds_of_paths(source.question, source.accepted, source.paths, graph, question.passages, compares)
        benchmark.sources.append(CalibrationSource(source, grounds, word_plainly if annotated else statements.state))
        if len(benchmark.sources) == limit:
            break
    return benchmark


def select_metaqa_questions(graph_file: Path, file: Path, seed: int = 0, limit: int | None = None) -> BenchmarkSources:
    """Select MetaQA's questions whose gold paths can be derived from its knowledge base."""
    questions = Questions(metaqa.NAME, [str(file)], names.TEST, graph_file)
    triples = tuple(Triple(*triple) for triple in dict.fromkeys(read_triples(graph_file)))
    benchmark = BenchmarkSources(graph=triples)
    by_head = grouped(triples, attrgetter("head"))

    def refuse(_: str, __: str, reason: str) -> None:
        benchmark.left_out[reason] += 1

    rows = shuffle_rows(find_gold(questions), lambda row: row[0].id, seed)
    for question in islice(with_paths(rows, refuse), limit):
        heads = dict.fromkeys(t.head for path in question.paths[:1] for t in path)
        facts = chain.from_iterable(by_head.get(name, ()) for name in heads)
        grounds = grounds_of_paths(question.question, question.accepted, question.paths, facts)
        benchmark.sources.append(CalibrationSource(question, grounds, word_film_fact))
    return benchmark
