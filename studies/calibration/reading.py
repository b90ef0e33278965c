"""What `calibrate_faithfulness` calibrates on: its options, and how questions are read."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, TypeVar

from builders.benchmarks import BENCHMARKS
from builders.paths.sources import derived, read_films, with_paths
from builders.steps.making import AnnotationsMaker
from builders.verified.evaluation_questions import read
from builders.verified.lookup import Labelled, labelled, once
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.derivations import Derivation
from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.commands.values import Count, Known
from safe_stepwise.errors import UserError
from safe_stepwise.records import Step, Triple
from safe_stepwise.scoring import CUSTOM
from studies.calibration.distances import Distance, of_people, of_trajectories, sentences_of, sentences_told
from studies.calibration.sources import Source, of_films, of_question

T = TypeVar("T")
Derivations = Mapping[str, Sequence[Derivation]]


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """Which questions a study is of, verified or a benchmark's, and where its results go."""

    verified: Path | None = None
    questions: Sequence[str] = ()
    benchmark: Sequence[Annotated[str, Known([*BENCHMARKS, CUSTOM])]] = ()
    derivations: Path | None = None
    retrieval: Sequence[Annotated[str, Known(RETRIEVALS)]] = ("words",)
    output: Path


@dataclass(frozen=True, kw_only=True)
class CalibrationOptions(QuestionOptions):
    """The options of `calibrate_faithfulness`."""

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
class Benchmark:
    """A benchmark's sources, with what is true beside them and why others were left out."""

    sources: list[Source] = field(default_factory=list)
    graph: Iterable[Triple] = ()
    left_out: Counter[str] = field(default_factory=Counter)


def rows_of(options: QuestionOptions) -> Iterator[tuple[str, Iterable[Labelled]]]:
    """Verified questions, or a file's with the labels that their annotations give them."""
    if options.verified:
        yield from ((name, once(rows)) for name, rows in labelled(options.verified))
        return
    found: dict[str, list[Labelled]] = {}
    for source in options.questions:
        for question in read(source, [*options.benchmark], skip=True, whole=True).questions:
            label = asyncio.run(verify(question, AnnotationsTeacher()))
            found.setdefault(question.benchmark, []).append((question, label))
    yield from ((name, once(rows)) for name, rows in found.items())


def drawn(rows: Iterable[T], id_of: Callable[[T], str], seed: int) -> list[T]:
    """Rows in an order drawn by their ids and the seed: the first of a file may be of one kind."""
    return sorted(rows, key=lambda row: (choice_for(str(seed), id_of(row)), id_of(row)))


def benchmark_of(rows: Iterable[Labelled], derivations: Derivations, options: CalibrationOptions) -> Benchmark:
    """Sound questions with a gold path, as many as ``--rows`` says, drawn by ``--seed``."""
    found = Benchmark()
    for question, label in drawn(rows, lambda row: row[0].id, options.seed):
        given = derivations.get(question.id, ()) if question.benchmark == "hotpotqa" else ()
        if label.noise_type != "none" and not given:
            found.left_out[f"not verified ({label.noise_type})"] += 1
        elif source := of_question(question, label.knowledge_graph, given):
            found.sources.append(source)
        else:
            found.left_out["no annotated path"] += 1
        if len(found.sources) == options.rows:
            break
    return found


def films_of(options: CalibrationOptions, kb: Path, kb_questions: Path) -> Benchmark:
    """MetaQA's questions whose gold paths its knowledge base gives."""
    triples, graph, questions = read_films(kb, kb_questions)
    found = Benchmark(graph=triples)
    about: dict[str, list[Triple]] = {}
    for triple in triples:
        about.setdefault(triple.head, []).append(triple)

    def refuse(_: str, __: str, why: str) -> None:
        found.left_out[why] += 1

    gold = derived(graph, questions)
    rows = drawn(questions, lambda row: row.id, options.seed)
    for asked in with_paths(graph, rows, gold, refuse):
        told = dict.fromkeys(t.head for path in asked.paths[:1] for t in path)
        near = chain.from_iterable(about.get(name, ()) for name in told)
        grounds = grounds_of_paths(asked.question, asked.accepted, asked.paths, near)
        found.sources.append(Source(asked.benchmark, asked.id, grounds, of_films))
        if len(found.sources) == options.rows:
            break
    return found


def distances_of(rows: Sequence[Labelled], derivations: Derivations) -> list[Distance]:
    """People against each other on the rows that have an ideal trajectory, and it against them."""
    told = {}
    for question, label in rows:
        if question.id in derivations and label.noise_type == "none":
            made = AnnotationsMaker().make(question, label).rows
            steps: list[Step] = []
            for row in made:  # behind the trajectory come twins of its steps, numbered as they are
                if row.origin == "ideal" and row.step.number == len(steps) + 1:
                    steps.append(row.step)
            if steps:
                told[question.id] = sentences_told(question, steps)
    people = {id_: [sentences_of(one) for one in derivations[id_]] for id_ in told}
    if not told:
        raise UserError("--derivations: none of the questions has one; give HotpotQA's rows")
    return [*of_people(list(people.values())), of_trajectories(people, told)]
