"""The options of `calibrate_faithfulness`, the questions it reads, and distances between derivations.

Two people word one fact in two ways. So a fact of a derivation (R4C) is identified by the sentence it was read from,
(title, index from 0), not by its triple. A derivation is the sequence of its facts' sentences. A trajectory is that of
its Attribution steps: each stands for the sentence of the cited passage that shares most content words with it. The
distance between two sequences is their edit distance over the longer length (arXiv 2402.11199, C.3).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, TypeVar

from rapidfuzz.distance import Levenshtein

from builders.benchmarks import BENCHMARKS
from builders.paths.sources import derive, read_films, with_paths
from builders.steps.making import AnnotationsMaker
from builders.verified.evaluation_questions import read
from builders.verified.lookup import Labelled, drop_repeats, labelled
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from evaluators.derivations import Derivation
from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.checking.step_reading import content_words, read_step
from safe_stepwise.checking.wordings import choice_for
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, Step, Triple
from safe_stepwise.scoring import CUSTOM
from studies.calibration.sources import CalibrationSource, question_source, word_film_fact
from studies.calibration.tables import Distance

Place = tuple[str, int]
"""A sentence: the title of its passage, and its index from 0."""


def distance(source: Sequence[Hashable], target: Sequence[Hashable]) -> float:
    """Return the edit distance of two sequences, divided by the length of the longer one (0-1).

    >>> distance("ab", "ba"), distance("abc", "abd"), distance("", "")
    (1.0, 0.3333333333333333, 0.0)
    """
    return Levenshtein.distance(source, target) / max(len(source), len(target), 1)


def trajectory_sentences(question: Question, steps: Iterable[Step]) -> tuple[Place, ...]:
    """List the sentence that each citing step of a trajectory restates, in the order of the steps.

    >>> from safe_stepwise.records import Passage
    >>> page = Passage("Oru", ("Oru is a town.", "It lies on the Vel."))
    >>> question = Question("q", "b", "train", "Where?", "Vel", passages=(page,))
    >>> trajectory_sentences(question, [Step(1, "As Passage 1 says, Oru lies on the Vel.", "Attribution")])
    (('Oru', 1),)
    """
    sentences = []
    for step in steps:
        reading = read_step(step.text)
        cited = [n for n in reading.cited if n <= len(question.passages)]
        if step.kind == "Attribution" and cited and question.passages[cited[0] - 1].sentences:
            page = question.passages[cited[0] - 1]
            shared = [len(content_words(s) & reading.words) for s in page.sentences]
            sentences.append((page.title, shared.index(max(shared))))
    return tuple(sentences)


def annotator_distances(people: Sequence[Sequence[Sequence[Place]]]) -> list[Distance]:
    """Measure how far annotators are from the others; ``people``: by question, each one's derivation as sentences."""
    distances = []
    for index in range(max(map(len, people), default=0)):
        rows = [(annotators[index], _leave_out(annotators, index)) for annotators in people if len(annotators) > index]
        distances.append(_mean_distance(f"annotator {index + 1}", "the others", rows))
    pairs = [(sentences, _leave_out(annotators, n)) for annotators in people for n, sentences in enumerate(annotators)]
    return [*distances, _mean_distance("people", "each other", pairs)]


def trajectory_distance(
    people: Mapping[str, Sequence[Sequence[Place]]], trajectories: Mapping[str, Sequence[Place]]
) -> Distance:
    """Measure the distance of ideal trajectories to human derivations (both by question id), as between people."""
    pairs = ((id_, pair) for id_, a in people.items() for pair in combinations(a, max(1, len(a) - 1)))
    rows = [(trajectories[id_], pair) for id_, pair in pairs if id_ in trajectories]
    return _mean_distance("ideal trajectories", "people", rows)


def _leave_out(annotators: Sequence[Sequence[Place]], index: int) -> list[Sequence[Place]]:
    return [sentences for n, sentences in enumerate(annotators) if n != index]


def _mean_distance(
    subject: str, reference: str, rows: Sequence[tuple[Sequence[Place], Sequence[Sequence[Place]]]]
) -> Distance:
    rows = [(source, targets) for source, targets in rows if targets]

    def mean(measure: Callable[[list[float]], float], form: Callable[..., Sequence[Place]]) -> float:
        shares = (measure([distance(form(source), form(target)) for target in targets]) for source, targets in rows)
        return round(fmean([*shares] or [0.0]), 6)

    pairs, once = sum(len(targets) for _, targets in rows), mean(fmean, lambda places: tuple(dict.fromkeys(places)))
    return Distance(subject, reference, pairs, mean(fmean, tuple), mean(min, tuple), once, mean(fmean, sorted))


T = TypeVar("T")
Derivations = Mapping[str, Sequence[Derivation]]


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """The options that name a study's questions, verified or a benchmark's, and its output."""

    verified: Path | None = None
    questions: Sequence[str] = ()
    benchmark: Sequence[Annotated[str, Name([*BENCHMARKS, CUSTOM])]] = ()
    derivations: Path | None = None
    retrieval: Sequence[Annotated[str, Name(RETRIEVALS)]] = ("words",)
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
class BenchmarkSources:
    """A benchmark's sources, further true facts (``graph``), and numbers of left-out questions by reason."""

    sources: list[CalibrationSource] = field(default_factory=list)
    graph: Iterable[Triple] = ()
    left_out: Counter[str] = field(default_factory=Counter)


def labelled_rows(options: QuestionOptions) -> Iterator[tuple[str, Iterable[Labelled]]]:
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
        if label.noise_type != "none" and not gold:
            benchmark.left_out[f"not verified ({label.noise_type})"] += 1
        elif source := question_source(question, label.knowledge_graph, gold):
            benchmark.sources.append(source)
        else:
            benchmark.left_out["no annotated path"] += 1
        if len(benchmark.sources) == options.rows:
            break
    return benchmark


def select_films(options: CalibrationOptions, kb: Path, kb_questions: Path) -> BenchmarkSources:
    """Select MetaQA's questions whose gold paths its knowledge base gives."""
    triples, graph, questions = read_films(kb, kb_questions)
    benchmark = BenchmarkSources(graph=triples)
    by_head: dict[str, list[Triple]] = {}
    for triple in triples:
        by_head.setdefault(triple.head, []).append(triple)

    def refuse(_: str, __: str, reason: str) -> None:
        benchmark.left_out[reason] += 1

    gold = derive(graph, questions)
    rows = shuffle_rows(questions, lambda row: row.id, options.seed)
    for question in with_paths(graph, rows, gold, refuse):
        heads = dict.fromkeys(t.head for path in question.paths[:1] for t in path)
        facts = chain.from_iterable(by_head.get(name, ()) for name in heads)
        grounds = grounds_of_paths(question.question, question.accepted, question.paths, facts)
        benchmark.sources.append(CalibrationSource(question.benchmark, question.id, grounds, word_film_fact))
        if len(benchmark.sources) == options.rows:
            break
    return benchmark


def measure_distances(rows: Sequence[Labelled], derivations: Derivations) -> list[Distance]:
    """Measure how far human derivations and ideal trajectories are from each other, on questions that have both."""
    trajectories = {}
    for question, label in rows:
        if question.id in derivations and label.noise_type == "none":
            step_rows = AnnotationsMaker().make(question, label).rows
            steps: list[Step] = []
            for row in step_rows:  # after the trajectory come twins of its steps, with the same numbers
                if row.origin == "ideal" and row.step.number == len(steps) + 1:
                    steps.append(row.step)
            if steps:
                trajectories[question.id] = trajectory_sentences(question, steps)
    people = {id_: [[(title, n) for title, n, _ in facts] for facts in derivations[id_]] for id_ in trajectories}
    if not trajectories:
        raise UserError("--derivations: none of the questions has one; give HotpotQA's rows")
    return [*annotator_distances(list(people.values())), trajectory_distance(people, trajectories)]
