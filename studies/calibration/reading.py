"""What `calibrate_faithfulness` calibrates on: its options, and how questions are read.

How far derivations (R4C) are from each other is told by their sentences. Two people word one fact in two ways, so that
a fact is told apart by the sentence it was read from, which R4C gives as (title, index from 0), not by its triple. A
derivation is the row of its facts' sentences, one that two facts come from twice; a trajectory that of its
Attribution steps, each for the sentence of the passage it cites that shares most content words with it. The distance
of two is the edits that make one of the other, over the longer of both (arXiv 2402.11199, C.3).
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
from builders.paths.sources import derived, read_films, with_paths
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
from safe_stepwise.commands.values import Count, Known
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, Step, Triple
from safe_stepwise.scoring import CUSTOM
from studies.calibration.sources import Source, of_films, of_question
from studies.calibration.tables import Distance

Place = tuple[str, int]
"""A sentence: title of its passage, index from 0."""


def distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> float:
    """Edits between two, over the longer (0-1).

    >>> distance("ab", "ba"), distance("abc", "abd"), distance("", "")
    (1.0, 0.3333333333333333, 0.0)
    """
    return Levenshtein.distance(one, other) / max(len(one), len(other), 1)


def sentences_of(derivation: Derivation) -> tuple[Place, ...]:
    """The sentences that a derivation's facts were read from, in its order."""
    return tuple((title, sentence) for title, sentence, _ in derivation)


def sentences_told(question: Question, steps: Iterable[Step]) -> tuple[Place, ...]:
    """The sentences that a trajectory's steps tell, in its order.

    >>> from safe_stepwise.records import Passage
    >>> page = Passage("Oru", ("Oru is a town.", "It lies on the Vel."))
    >>> asked = Question("q", "b", "train", "Where?", "Vel", passages=(page,))
    >>> sentences_told(asked, [Step(1, "As Passage 1 says, Oru lies on the Vel.", "Attribution")])
    (('Oru', 1),)
    """
    told = []
    for step in steps:
        reading = read_step(step.text)
        cited = [n for n in reading.cited if n <= len(question.passages)]
        if step.kind == "Attribution" and cited and question.passages[cited[0] - 1].sentences:
            page = question.passages[cited[0] - 1]
            shared = [len(content_words(s) & reading.words) for s in page.sentences]
            told.append((page.title, shared.index(max(shared))))
    return tuple(told)


def of_people(people: Sequence[Sequence[Sequence[Place]]]) -> list[Distance]:
    """Each annotator against the others, then all pairs; a question a row of ``people``."""
    found = []
    for place in range(max(map(len, people), default=0)):
        rows = [(those[place], _without(those, place)) for those in people if len(those) > place]
        found.append(_mean(f"annotator {place + 1}", "the others", rows))
    every = [(one, _without(those, n)) for those in people for n, one in enumerate(those)]
    return [*found, _mean("people", "each other", every)]


def of_trajectories(people: Mapping[str, Sequence[Sequence[Place]]], told: Mapping[str, Sequence[Place]]) -> Distance:
    """Trajectories, by question id, against people, two at a time, as people are."""
    rows = [
        (told[id_], pair)
        for id_, those in people.items()
        if id_ in told
        for pair in combinations(those, max(1, len(those) - 1))
    ]
    return _mean("ideal trajectories", "people", rows)


def _without(those: Sequence[Sequence[Place]], place: int) -> list[Sequence[Place]]:
    return [other for n, other in enumerate(those) if n != place]


def _mean(who: str, against: str, rows: Sequence[tuple[Sequence[Place], Sequence[Sequence[Place]]]]) -> Distance:
    """``rows``: a derivation, and those it is compared with; a row without any is none."""
    rows = [(one, others) for one, others in rows if others]

    def mean(measure: Callable[[list[float]], float], form: Callable[..., Sequence[Place]]) -> float:
        shares = (measure([distance(form(one), form(o)) for o in others]) for one, others in rows)
        return round(fmean([*shares] or [0.0]), 6)

    return Distance(
        who,
        against,
        sum(len(others) for _, others in rows),
        mean(fmean, tuple),
        mean(min, tuple),
        mean(fmean, lambda places: tuple(dict.fromkeys(places))),
        mean(fmean, sorted),
    )


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
        yield from ((name, drop_repeats(rows)) for name, rows in labelled(options.verified))
        return
    found: dict[str, list[Labelled]] = {}
    for source in options.questions:
        for question in read(source, [*options.benchmark], skip=True, all_passages=True).questions:
            label = asyncio.run(verify(question, AnnotationsTeacher()))
            found.setdefault(question.benchmark, []).append((question, label))
    yield from ((name, drop_repeats(rows)) for name, rows in found.items())


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
