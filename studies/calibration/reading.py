"""The options of `calibrate_faithfulness`, and the questions that it reads."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated, TypeVar

from builders.benchmarks import BENCHMARKS
from builders.paths.sources import derive, path_question, read_films, with_paths
from builders.verified.evaluation_questions import read
from builders.verified.lookup import Labelled, drop_repeats, labelled
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.derivations import Derivation
from evaluators.outcomes import grouped
from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.checking.statements import state
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.comparisons import is_comparison
from safe_stepwise.records import Triple
from safe_stepwise.scoring import CUSTOM
from studies.calibration.cases import CalibrationSource, word_film_fact, word_plainly

T = TypeVar("T")
Derivations = Mapping[str, Sequence[Derivation]]


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions:
    """The options of `calibrate_faithfulness`, which name questions, verified or a benchmark's, and its output."""

    verified: Path | None = None
    questions: Sequence[str] = ()
    benchmark: Sequence[Annotated[str, Name([*BENCHMARKS, CUSTOM])]] = ()
    derivations: Path | None = None
    retrieval: Sequence[Annotated[str, Name(RETRIEVALS)]] = ("words",)
    output: Path
    kb: Path | None = None
    kb_questions: Path | None = None
    seed: int = 0
    rows: Count | None = None

    def __post_init__(self) -> None:
        if self.verified and self.questions:
            raise UserError("--verified and --questions are two ways to name questions: give one")
        if not (self.verified or self.questions or self.kb):
            raise UserError("nothing to calibrate on; give --verified, --questions or --kb; see --help")
        if bool(self.kb) != bool(self.kb_questions):
            raise UserError("--kb and --kb-questions go together: give both, or neither")


@dataclass(slots=True)
class BenchmarkSources:
    """A benchmark's sources, further true facts (``graph``), and numbers of left-out questions by reason."""

    sources: list[CalibrationSource] = field(default_factory=list)
    graph: Iterable[Triple] = ()
    left_out: Counter[str] = field(default_factory=Counter)


def labelled_rows(options: CalibrationOptions) -> Iterator[tuple[str, Iterable[Labelled]]]:
    """Yield each benchmark's questions with labels: verified ones, or a file's, labelled by their annotations."""
    if options.verified:
        yield from ((name, drop_repeats(rows)) for name, rows in labelled(options.verified))
        return
    by_benchmark: dict[str, list[Labelled]] = {}
    for source in options.questions:
        for question in read(source, [*options.benchmark], skip=True, all_passages=True).questions:
            label = asyncio.run(verify(question, AnnotationsTeacher()))
            by_benchmark.setdefault(question.benchmark, []).append((question, label))
    yield from ((name, drop_repeats(rows)) for name, rows in by_benchmark.items())


def shuffle_rows(rows: Iterable[T], id_of: Callable[[T], str], seed: int) -> list[T]:
    """Return rows in an order that their ids and the seed give, as the first rows of a file may be of one kind."""
    return sorted(rows, key=lambda row: (choice_for(str(seed), id_of(row)), id_of(row)))


def select_questions(
    rows: Iterable[Labelled], derivations: Derivations, options: CalibrationOptions
) -> BenchmarkSources:
    """Select sound questions with a gold path, ``--rows`` of them, in the order that ``--seed`` gives."""
    benchmark = BenchmarkSources()
    for question, label in shuffle_rows(rows, lambda row: row[0].id, options.seed):
        gold = derivations.get(question.id, ()) if question.benchmark == "hotpotqa" else ()
        source = path_question(question, label, gold)
        if isinstance(source, str):
            benchmark.left_out[source] += 1
            continue
        graph, compares = label.knowledge_graph, is_comparison(question)
        grounds = grounds_of_paths(source.question, source.accepted, source.paths, graph, question.passages, compares)
        benchmark.sources.append(CalibrationSource(source, grounds, word_plainly if gold else state))
        if len(benchmark.sources) == options.rows:
            break
    return benchmark


def select_films(options: CalibrationOptions, kb: Path, kb_questions: Path) -> BenchmarkSources:
    """Select MetaQA's questions whose gold paths its knowledge base gives."""
    triples, graph, questions = read_films(kb, kb_questions)
    benchmark = BenchmarkSources(graph=triples)
    by_head = grouped(triples, attrgetter("head"))

    def refuse(_: str, __: str, reason: str) -> None:
        benchmark.left_out[reason] += 1

    gold = derive(graph, questions)
    rows = shuffle_rows(questions, lambda row: row.id, options.seed)
    for question in islice(with_paths(graph, rows, gold, refuse), options.rows):
        heads = dict.fromkeys(t.head for path in question.paths[:1] for t in path)
        facts = chain.from_iterable(by_head.get(name, ()) for name in heads)
        grounds = grounds_of_paths(question.question, question.accepted, question.paths, facts)
        benchmark.sources.append(CalibrationSource(question, grounds, word_film_fact))
    return benchmark
