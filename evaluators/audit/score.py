"""What judgements come to: rates with their intervals, agreement of reviewers, rows to look at.

A row counts once, however many judged it: its answer is the one that more than half of them gave,
else it is `DISPUTED`. Shares are of the rows for which the question was answered, with Wilson's 95%
interval. A sample is balanced over strata, so the share over all its rows is not the whole set's.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import attrgetter

from evaluators.audit.judgements import ASKED, INSTEAD, LABEL, LACKS, PARTS, RIGHT, SOUND, WRONG, YES, Judgement
from evaluators.audit.rows import Key
from evaluators.comparison.significance import cohens_kappa, wilson
from evaluators.outcomes import grouped
from safe_stepwise.store.names import LABELS, Audited

DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Share:
    """Those of ``rows`` (``hits``) to which something applies, as a share with its interval."""

    rows: int
    hits: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, rows: int, hits: int) -> "Share":
        """The share of 1 row or more (four digits)."""
        found = wilson(hits, rows)
        return cls(rows, hits, found.value, found.low, found.high)


Rates = Mapping[str, Mapping[str, Share]]
"""By question, then answer."""


@dataclass(frozen=True, slots=True)
class Group:
    """Rows of a part of the sample: a stratum has several names, a benchmark one."""

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
    """A row that somebody calls wrong, or on which reviewers disagree."""

    benchmark: str
    id: str
    stratum: tuple[str, ...]
    wrong: tuple[str, ...]
    """Who says that its label is wrong."""
    disagree: tuple[str, ...]
    """The questions that were answered differently."""
    instead: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """What the judgements of one sample come to; ``judged`` has the digest of each row, by key."""

    of: Audited
    sample: str
    reviewers: tuple[str, ...]
    judgements: int
    rows: int
    """Rows whose label somebody judged."""
    rates: Rates
    false_alarms: Share | None
    """Rows labelled noise, or an error, of which the label is wrong; None without such rows."""
    missed: Share | None
    """Rows labelled sound, or Correct, of which the label is wrong."""
    lacks_evidence: Share | None
    """Rows rightly labelled noise whose passages lack evidence (SAFE v1, section 5: 77%)."""
    parts: Mapping[str, tuple[Group, ...]]
    strata: tuple[Group, ...]
    agreement: tuple[Pair, ...]
    doubts: tuple[Doubt, ...]
    judged: tuple[tuple[str, str, str], ...]
    """Benchmark, id and digest of each row."""


def score(judgements: Sequence[Judgement]) -> Scores:
    """The scores of one sample's judgements, of which there is at least one."""
    of = judgements[0].of
    by_row = grouped(judgements, attrgetter("key"))
    said = {key: _Row(of, those) for key, those in sorted(by_row.items())}
    every = list(said.values())
    faulty = [row for row in every if row.stratum[1] != SOUND[of]]
    sound = [row for row in every if row.stratum[1] == SOUND[of]]
    noise = [row for row in faulty if row.answers.get(LABEL) == RIGHT] if of == LABELS else []
    return Scores(
        of=of,
        sample=judgements[0].sample,
        reviewers=tuple(sorted({one.reviewer for one in judgements if one.answers})),
        judgements=sum(LABEL in one.answers for one in judgements),
        rows=sum(LABEL in row.answers for row in every),
        rates=_rates(every),
        false_alarms=_share(faulty, LABEL, WRONG),
        missed=_share(sound, LABEL, WRONG),
        lacks_evidence=_share(noise, LACKS, YES),
        parts={name: _groups(every, [place]) for place, name in enumerate(PARTS[of])},
        strata=_groups(every, range(len(PARTS[of]))),
        agreement=tuple(_agreement(of, judgements)),
        doubts=tuple(_doubts(by_row.values())),
        judged=tuple((*key, those[0].sha256) for key, those in sorted(by_row.items())),
    )


class _Row:
    """A row with the answer to each question that was answered for it."""

    def __init__(self, of: Audited, judgements: Sequence[Judgement]) -> None:
        self.of, self.stratum = of, judgements[0].stratum
        self.answers: dict[str, str] = {}
        for asked in ASKED[of]:
            given = [j.answers[asked.name] for j in judgements if asked.name in j.answers]
            if given and asked.name != INSTEAD:
                answer, times = Counter(given).most_common(1)[0]
                self.answers[asked.name] = answer if 2 * times > len(given) else DISPUTED


def _share(rows: Iterable[_Row], question: str, answer: str) -> Share | None:
    given = [row.answers[question] for row in rows if question in row.answers]
    return Share.of(len(given), given.count(answer)) if given else None


def _rates(rows: Sequence[_Row]) -> Rates:
    rates: dict[str, dict[str, Share]] = {}
    for asked in ASKED[rows[0].of]:
        given = [row.answers[asked.name] for row in rows if asked.name in row.answers]
        named = (*asked.answers, *([DISPUTED] if DISPUTED in given else []))
        if given:
            rates[asked.name] = {name: Share.of(len(given), given.count(name)) for name in named}
    return rates


def _groups(rows: Sequence[_Row], places: Sequence[int]) -> tuple[Group, ...]:
    parts = grouped(rows, lambda row: tuple(row.stratum[place] for place in places))
    return tuple(
        Group(names, sum(LABEL in row.answers for row in part), _rates(part)) for names, part in sorted(parts.items())
    )


def _agreement(of: Audited, judgements: Sequence[Judgement]) -> Iterable[Pair]:
    by: dict[str, dict[Key, Mapping[str, str]]] = {}
    for said in judgements:
        by.setdefault(said.reviewer, {})[said.key] = said.answers
    names = [asked.name for asked in ASKED[of] if asked.name != INSTEAD]
    for one, other in combinations(sorted(by), 2):
        both = [(by[one][key], by[other][key]) for key in by[one] if key in by[other]]
        for name in names:
            pairs = [(a[name], b[name]) for a, b in both if name in a and name in b]
            if pairs:
                equal, kappa = sum(a == b for a, b in pairs) / len(pairs), cohens_kappa(pairs)
                known = None if kappa is None else round(kappa, 4)
                yield Pair(one, other, name, len(pairs), round(equal, 4), known)


def _doubts(rows: Iterable[Sequence[Judgement]]) -> Iterable[Doubt]:
    for those in sorted(rows, key=lambda those: those[0].key):
        first = those[0]
        names = [asked.name for asked in ASKED[first.of] if asked.name != INSTEAD]
        given = {name: {j.answers[name] for j in those if name in j.answers} for name in names}
        wrong = tuple(j.reviewer for j in those if j.answers.get(LABEL) == WRONG)
        disagree = tuple(name for name in names if len(given[name]) > 1)
        if wrong or disagree:
            instead = {j.answers[INSTEAD] for j in those if INSTEAD in j.answers}
            notes = tuple(j.note for j in those if j.note)
            yield Doubt(*(first.benchmark, first.id, first.stratum), *(wrong, disagree, tuple(sorted(instead)), notes))
