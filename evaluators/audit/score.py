"""Read the judgements of a sample, and score them: rates with intervals, agreement of reviewers, doubtful rows.

The page exports a file of judgements. Each line is a JSON object with one reviewer's answers about one row::

    {"of": "labels", "sample": "9f…", "benchmark": "musique", "id": "2hop__1", "sha256": "07…",
     "stratum": ["musique", "wrong_answer"], "reviewer": "ann", "label": "right", "type": "wrong",
     "explanation": "true", "lacks_evidence": null, "note": ""}

``sample`` and ``sha256`` identify the sample and the content of the row that the page showed. A
question that the reviewer left open, or that does not apply to the row, is null.

A row counts once, however many reviewers judged it: its answer is the one that more than half of them gave,
else `DISPUTED`. Shares are of the rows for which somebody answered the question, with Wilson's 95%
interval. A sample is balanced over strata, so the share over all its rows is not the whole set's.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from operator import attrgetter
from pathlib import Path

from evaluators.audit.rows import Key, Stratum
from evaluators.comparison.significance import cohens_kappa, wilson
from evaluators.outcomes import grouped
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, terminal
from safe_stepwise.store.files import read_lines
from safe_stepwise.store.names import AUDITED, LABELS, STEPS, Audited
from safe_stepwise.store.packaged import read_yaml
from safe_stepwise.taxonomy import CORRECT, labels

LABEL, PROPOSED_LABEL, LACKS = "label", "instead", "lacks_evidence"
RIGHT, WRONG, YES = "right", "wrong", "yes"
SOUND: Mapping[str, str] = {LABELS: "none", STEPS: CORRECT}
"""The label of a row without a fault, by audited set."""
STRATUM_FIELDS: Mapping[str, tuple[str, ...]] = {
    LABELS: ("benchmark", "noise_type"),
    STEPS: ("benchmark", "error_type", "origin"),
}
"""The fields of a row whose values are its stratum. The first is its benchmark, the second its label."""
_EXPORT_ADVICE = "export it from the page again, or mend the line"
DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class FormQuestion:
    """A question of a row's form: its key in a file, its text, and the words on the page for each possible answer."""

    name: str
    text: str
    answers: Mapping[str, str]
    for_sound_rows: bool = True
    """Whether the question also applies to rows without a fault."""


def _words(answers: Mapping[str, str | None]) -> Mapping[str, str]:
    return {answer: words or answer for answer, words in (answers or dict.fromkeys(labels())).items()}


FORM_QUESTIONS: Mapping[str, tuple[FormQuestion, ...]] = {
    audited: tuple(FormQuestion(**{**entry, "answers": _words(entry["answers"])}) for entry in entries)
    for audited, entries in read_yaml(Path(__file__).with_name("form.yaml")).items()
}


def questions_for(audited: Audited, stratum: Sequence[str]) -> tuple[FormQuestion, ...]:
    """Return the questions that apply to a row by its label, ``stratum[1]``; a sound row has no type of noise."""
    is_sound = stratum[1] == SOUND[audited]
    return tuple(q for q in FORM_QUESTIONS[audited] if q.for_sound_rows or not is_sound)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One reviewer's answers about one row ``of`` an audited set; ``answers`` lacks the questions left open."""

    of: Audited
    sample: str
    benchmark: str
    id: str
    sha256: str
    stratum: Stratum
    reviewer: str
    answers: Mapping[str, str]
    note: str = ""

    @property
    def key(self) -> Key:
        return self.benchmark, self.id

    @property
    def row(self) -> tuple[str, Stratum]:
        """The digest and stratum, which must be equal in all judgements of a row."""
        return self.sha256, self.stratum


_KEYS = [field.name for field in fields(Judgement) if field.name != "answers"]


def parse_judgement(line: str | bytes) -> Judgement:
    """Parse one line of a file; raise ``ValueError``, and nothing else, if it is not a judgement."""
    record = boundary.read(Mapping[str, object], boundary.parse_json(line), "the line")
    audited = record.get("of")
    if audited not in AUDITED:
        raise ValueError(f"of is not one of {', '.join(AUDITED)}")
    names = [question.name for question in FORM_QUESTIONS[audited]]
    if lacking := [name for name in (*_KEYS, *names) if name not in record]:
        raise ValueError(f"it has no {lacking[0]}")
    if strange := sorted(set(record) - {*_KEYS, *names}):
        raise ValueError(f"{terminal.printable(strange[0])} is no key of it")
    answers = {name: record[name] for name in names if record[name] is not None}
    judgement = boundary.read(Judgement, {**{name: record[name] for name in _KEYS}, "answers": answers}, "it")
    stratum = judgement.stratum
    if len(stratum) != len(STRATUM_FIELDS[audited]) or stratum[0] != judgement.benchmark:
        raise ValueError(f"stratum is not {', '.join(STRATUM_FIELDS[audited])}")
    if not judgement.reviewer.strip():
        raise ValueError("reviewer is empty")
    allowed = {question.name: question.answers for question in questions_for(audited, stratum)}
    for name, answer in judgement.answers.items():
        if name not in allowed:
            raise ValueError(f"{name} is not asked of this row, so it has to be null")
        if answer not in allowed[name]:
            raise ValueError(f"{name} is not one of {', '.join(allowed[name])}, or null")
    return judgement


def read(files: Iterable[Path]) -> list[Judgement]:
    """Read the judgements of files about one sample, in their order.

    Raises ``UserError`` with file and line for a line that is not a judgement, for a row that one reviewer
    judged twice, and for files of different samples; with the file for an empty or unreadable one, and
    if no file answers a question.
    """
    places: dict[tuple[str, Key], tuple[Judgement, str]] = {}
    rows: dict[Key, tuple[str, Stratum]] = {}
    first: tuple[Judgement, str] | None = None
    for place, judgement in (entry for file in files for entry in _read_lines(file)):
        row, first = terminal.printable(judgement.id), first or (judgement, place)
        if (judgement.of, judgement.sample) != (first[0].of, first[0].sample):
            raise UserError(f"{place}: judges another sample than {first[1]}; score the files of one sample at a time")
        key = judgement.reviewer, judgement.key
        if key in places:
            again = f"{terminal.printable(judgement.reviewer)!r} judged the row {row!r} before, in {places[key][1]}"
            raise UserError(f"{place}: {again}; remove one of the two")
        if rows.setdefault(judgement.key, judgement.row) != judgement.row:
            raise UserError(f"{place}: its row {row!r} has other content in an earlier line; {_EXPORT_ADVICE}")
        places[key] = judgement, place
    judgements = [judgement for judgement, _ in places.values()]
    if first and not any(judgement.answers for judgement in judgements):
        raise UserError(f"{first[1]}: no question is answered there or anywhere else; judge rows")
    return judgements


def _read_lines(file: Path) -> list[tuple[str, Judgement]]:
    lines = list(read_lines(file, parse_judgement, "judgement", _EXPORT_ADVICE))
    if not lines:
        raise UserError(f"{file}: holds no judgement; export it from the page")
    return lines


@dataclass(frozen=True, slots=True)
class Share:
    """The share of ``hits`` in ``rows``, with its 95% interval."""

    rows: int
    hits: int
    share: float
    low: float
    high: float

    @classmethod
    def from_counts(cls, rows: int, hits: int) -> "Share":
        """Compute the share of hits in 1 row or more, to four digits."""
        estimate = wilson(hits, rows)
        return cls(rows, hits, estimate.value, estimate.low, estimate.high)


Rates = Mapping[str, Mapping[str, Share]]
"""Shares by the name of a question, then by answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """The rates of the rows that share the value of one of `STRATUM_FIELDS`, in ``names``."""

    names: tuple[str, ...]
    rows: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class Pair:
    """The agreement of two reviewers (``one`` and ``other``) on the rows for which both answered a question."""

    one: str
    other: str
    question: str
    rows: int
    share: float
    kappa: float | None


@dataclass(frozen=True, slots=True)
class DoubtfulRow:
    """A row whose label a reviewer calls wrong, or on which reviewers disagree."""

    benchmark: str
    id: str
    stratum: tuple[str, ...]
    wrong: tuple[str, ...]
    """The reviewers who call the label wrong."""
    disagree: tuple[str, ...]
    """The questions on which answers differ."""
    instead: tuple[str, ...]
    """The labels that reviewers proposed."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one sample's judgements, ``of`` an audited set; the fields are keys of the file of scores."""

    of: Audited
    sample: str
    reviewers: tuple[str, ...]
    judgements: int
    rows: int
    """The number of rows whose label somebody judged."""
    rates: Rates
    false_alarms: Share | None
    """The share of wrong labels among rows labelled as faulty (noise, or an error); None without such rows."""
    missed: Share | None
    """The share of wrong labels among rows that are labelled as sound (none, or Correct): the faults missed."""
    lacks_evidence: Share | None
    """The share of rows rightly labelled noise whose passages lack evidence (SAFE v1, section 5: 77%)."""
    parts: Mapping[str, tuple[Group, ...]]
    """By name of a stratum field, the groups of rows with equal values of it."""
    agreement: tuple[Pair, ...]
    doubts: tuple[DoubtfulRow, ...]
    judged: tuple[tuple[str, str, str], ...]
    """Benchmark, id and SHA-256 of each judged row."""


def score(judgements: Sequence[Judgement]) -> Scores:
    """Compute the scores of one sample's judgements; there must be at least one judgement."""
    audited = judgements[0].of
    by_row = grouped(judgements, attrgetter("key"))
    rows = [_Row(audited, group) for _, group in sorted(by_row.items())]
    faulty = [row for row in rows if row.stratum[1] != SOUND[audited]]
    sound = [row for row in rows if row.stratum[1] == SOUND[audited]]
    noise = [row for row in faulty if row.answers.get(LABEL) == RIGHT] if audited == LABELS else []
    return Scores(
        of=audited,
        sample=judgements[0].sample,
        reviewers=tuple(sorted({judgement.reviewer for judgement in judgements if judgement.answers})),
        judgements=sum(LABEL in judgement.answers for judgement in judgements),
        rows=sum(LABEL in row.answers for row in rows),
        rates=_compute_rates(rows),
        false_alarms=_compute_share(faulty, LABEL, WRONG),
        missed=_compute_share(sound, LABEL, WRONG),
        lacks_evidence=_compute_share(noise, LACKS, YES),
        parts={name: tuple(_group_rows(rows, index)) for index, name in enumerate(STRATUM_FIELDS[audited])},
        agreement=tuple(_compare_reviewers(audited, judgements)),
        doubts=tuple(_find_doubtful_rows(by_row.values())),
        judged=tuple((*key, group[0].sha256) for key, group in sorted(by_row.items())),
    )


class _Row:
    """A row with the answer of most reviewers to each question that somebody answered."""

    def __init__(self, audited: Audited, judgements: Sequence[Judgement]) -> None:
        self.audited, self.stratum = audited, judgements[0].stratum
        self.answers: dict[str, str] = {}
        for question in FORM_QUESTIONS[audited]:
            answers = [j.answers[question.name] for j in judgements if question.name in j.answers]
            if answers and question.name != PROPOSED_LABEL:
                answer, votes = Counter(answers).most_common(1)[0]
                self.answers[question.name] = answer if 2 * votes > len(answers) else DISPUTED


def _compute_share(rows: Iterable[_Row], question: str, answer: str) -> Share | None:
    answers = [row.answers[question] for row in rows if question in row.answers]
    return Share.from_counts(len(answers), answers.count(answer)) if answers else None


def _compute_rates(rows: Sequence[_Row]) -> Rates:
    rates: dict[str, dict[str, Share]] = {}
    for question in FORM_QUESTIONS[rows[0].audited]:
        answers = [row.answers[question.name] for row in rows if question.name in row.answers]
        possible = (*question.answers, *([DISPUTED] if DISPUTED in answers else []))
        if answers:
            rates[question.name] = {name: Share.from_counts(len(answers), answers.count(name)) for name in possible}
    return rates


def _group_rows(rows: Sequence[_Row], index: int) -> Iterator[Group]:
    for name, group in sorted(grouped(rows, lambda row: row.stratum[index]).items()):
        yield Group((name,), sum(LABEL in row.answers for row in group), _compute_rates(group))


def _compare_reviewers(audited: Audited, judgements: Sequence[Judgement]) -> Iterable[Pair]:
    by_reviewer: dict[str, dict[Key, Mapping[str, str]]] = {}
    for judgement in judgements:
        by_reviewer.setdefault(judgement.reviewer, {})[judgement.key] = judgement.answers
    names = [question.name for question in FORM_QUESTIONS[audited] if question.name != PROPOSED_LABEL]
    for rater, peer in combinations(sorted(by_reviewer), 2):
        shared = [(answers, by_reviewer[peer].get(key, {})) for key, answers in by_reviewer[rater].items()]
        for name in names:
            pairs = [(a[name], b[name]) for a, b in shared if name in a and name in b]
            if pairs:
                equal, kappa = sum(a == b for a, b in pairs) / len(pairs), cohens_kappa(pairs)
                yield Pair(rater, peer, name, len(pairs), round(equal, 4), kappa and round(kappa, 4))


def _find_doubtful_rows(judgements_by_row: Iterable[Sequence[Judgement]]) -> Iterable[DoubtfulRow]:
    for judgements in sorted(judgements_by_row, key=lambda judgements: judgements[0].key):
        first = judgements[0]
        names = [question.name for question in FORM_QUESTIONS[first.of] if question.name != PROPOSED_LABEL]
        answers = {name: {j.answers[name] for j in judgements if name in j.answers} for name in names}
        wrong = tuple(j.reviewer for j in judgements if j.answers.get(LABEL) == WRONG)
        disagree = tuple(name for name in names if len(answers[name]) > 1)
        if wrong or disagree:
            proposed = {j.answers[PROPOSED_LABEL] for j in judgements if PROPOSED_LABEL in j.answers}
            notes = tuple(j.note for j in judgements if j.note)
            key = first.benchmark, first.id, first.stratum
            yield DoubtfulRow(*key, wrong, disagree, tuple(sorted(proposed)), notes)
