"""The scores of judgements: rates with their intervals, agreement of reviewers, rows to look at.

A row counts once, however many reviewers judged it: its answer is the one that more than half of them gave,
else `DISPUTED`. Shares are of the rows for which somebody answered the question, with Wilson's 95%
interval. A sample is balanced over strata, so the share over all its rows is not the whole set's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter

from evaluators.audit.judgements import (
    FORM,
    INSTEAD,
    LABEL,
    LACKS,
    RIGHT,
    SOUND,
    STRATUM_FIELDS,
    WRONG,
    YES,
    Judgement,
)
from evaluators.audit.rows import Key
from evaluators.comparison.significance import cohens_kappa, wilson
from evaluators.outcomes import grouped
from safe_stepwise.store.names import LABELS, Audited

DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Share:
    """The share of ``hits`` in ``rows``, with its interval."""

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
"""By question, then answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """The rates of some of the sample's rows: a stratum has several names, a benchmark one."""

    names: tuple[str, ...]
    rows: int
    rates: Rates


@dataclass(frozen=True, slots=True)
class Pair:
    """How far two reviewers agree on a question, over the rows for which both answered it."""

    one: str
    other: str
    question: str
    rows: int
    share: float
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row whose label a reviewer calls wrong, or on which reviewers disagree."""

    benchmark: str
    id: str
    stratum: tuple[str, ...]
    wrong: tuple[str, ...]
    """The reviewers who call its label wrong."""
    disagree: tuple[str, ...]
    """The questions on which answers differ."""
    instead: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one sample's judgements; ``judged`` has the digest of each row, by key."""

    of: Audited
    sample: str
    reviewers: tuple[str, ...]
    judgements: int
    rows: int
    """The number of rows whose label somebody judged."""
    rates: Rates
    false_alarms: Share | None
    """The share of wrong labels among rows labelled noise, or an error; None without such rows."""
    missed: Share | None
    """The share of wrong labels among rows labelled sound, or Correct."""
    lacks_evidence: Share | None
    """The share of rows rightly labelled noise whose passages lack evidence (SAFE v1, section 5: 77%)."""
    parts: Mapping[str, tuple[Group, ...]]
    strata: tuple[Group, ...]
    agreement: tuple[Pair, ...]
    doubts: tuple[Doubt, ...]
    judged: tuple[tuple[str, str, str], ...]
    """Benchmark, id and digest of each row."""


def score(judgements: Sequence[Judgement]) -> Scores:
    """Compute the scores of one sample's judgements, of which there must be at least one."""
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
        rates=_rates(rows),
        false_alarms=_share(faulty, LABEL, WRONG),
        missed=_share(sound, LABEL, WRONG),
        lacks_evidence=_share(noise, LACKS, YES),
        parts={name: _groups(rows, [place]) for place, name in enumerate(STRATUM_FIELDS[audited])},
        strata=_groups(rows, range(len(STRATUM_FIELDS[audited]))),
        agreement=tuple(_agreement(audited, judgements)),
        doubts=tuple(_doubts(by_row.values())),
        judged=tuple((*key, group[0].sha256) for key, group in sorted(by_row.items())),
    )


class _Row:
    """A row with the majority's answer to each question that somebody answered."""

    def __init__(self, audited: Audited, judgements: Sequence[Judgement]) -> None:
        self.audited, self.stratum = audited, judgements[0].stratum
        self.answers: dict[str, str] = {}
        for question in FORM[audited]:
            replies = [j.answers[question.name] for j in judgements if question.name in j.answers]
            if replies and question.name != INSTEAD:
                answer, times = Counter(replies).most_common(1)[0]
                self.answers[question.name] = answer if 2 * times > len(replies) else DISPUTED


def _share(rows: Iterable[_Row], question: str, answer: str) -> Share | None:
    replies = [row.answers[question] for row in rows if question in row.answers]
    return Share.from_counts(len(replies), replies.count(answer)) if replies else None


def _rates(rows: Sequence[_Row]) -> Rates:
    rates: dict[str, dict[str, Share]] = {}
    for question in FORM[rows[0].audited]:
        replies = [row.answers[question.name] for row in rows if question.name in row.answers]
        possible = (*question.answers, *([DISPUTED] if DISPUTED in replies else []))
        if replies:
            rates[question.name] = {name: Share.from_counts(len(replies), replies.count(name)) for name in possible}
    return rates


def _groups(rows: Sequence[_Row], places: Sequence[int]) -> tuple[Group, ...]:
    groups = sorted(grouped(rows, lambda row: tuple(row.stratum[place] for place in places)).items())
    return tuple(Group(names, sum(LABEL in row.answers for row in group), _rates(group)) for names, group in groups)


def _agreement(audited: Audited, judgements: Sequence[Judgement]) -> Iterable[Pair]:
    by_reviewer: dict[str, dict[Key, Mapping[str, str]]] = {}
    for judgement in judgements:
        by_reviewer.setdefault(judgement.reviewer, {})[judgement.key] = judgement.answers
    names = [question.name for question in FORM[audited] if question.name != INSTEAD]
    for rater, peer in combinations(sorted(by_reviewer), 2):
        shared = [(answers, by_reviewer[peer].get(key, {})) for key, answers in by_reviewer[rater].items()]
        for name in names:
            pairs = [(a[name], b[name]) for a, b in shared if name in a and name in b]
            if pairs:
                equal, kappa = sum(a == b for a, b in pairs) / len(pairs), cohens_kappa(pairs)
                kappa = None if kappa is None else round(kappa, 4)
                yield Pair(rater, peer, name, len(pairs), round(equal, 4), kappa)


def _doubts(rows: Iterable[Sequence[Judgement]]) -> Iterable[Doubt]:
    for judgements in sorted(rows, key=lambda judgements: judgements[0].key):
        example = judgements[0]
        names = [question.name for question in FORM[example.of] if question.name != INSTEAD]
        replies = {name: {j.answers[name] for j in judgements if name in j.answers} for name in names}
        wrong = tuple(j.reviewer for j in judgements if j.answers.get(LABEL) == WRONG)
        disagree = tuple(name for name in names if len(replies[name]) > 1)
        if wrong or disagree:
            instead = {j.answers[INSTEAD] for j in judgements if INSTEAD in j.answers}
            notes = tuple(j.note for j in judgements if j.note)
            key = example.benchmark, example.id, example.stratum
            yield Doubt(*key, wrong, disagree, tuple(sorted(instead)), notes)
