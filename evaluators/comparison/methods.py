"""The tables of methods by benchmark: scores, what they cost, form, facts, kinds of failure.

Tokens are computed (of the prompt, what no prefix cache held) and written (the completion). A rate
is right answers per 1,000 tokens: by the judge where there is one, else by exact match.

A machine asks many times, so that it has to beat as many tokens of plain prompting: the fair baseline is a vote over
CoT replies that costs as much. What a sample costs is measured: the first one computes the prompt, the further ones
are mostly written, as the prefix cache holds what they have in common. All are means over the questions that a system
answered: one that failed broke off amid its requests, and would make a method look cheaper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any

from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System, system_of
from evaluators.outcomes import Outcome, asking_conditions, grouped, statistics_of
from evaluators.prompting.measures import FORMS, OVERLAPS, REASONS, summary
from safe_stepwise.methods.asking import ANSWERING
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.records import FAILED, Attempt
from safe_stepwise.store.tables import Column, Sheet, decimal, p_value, percent, signed

ALL = "all"
"""All questions of all benchmarks alike."""
_PART_NAMES = {"supporting_facts": "facts", "supporting_passages": "passages", "evidence": "triples", "joint": "joint"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A system on one benchmark, or on `ALL`."""

    system: System
    benchmark: str
    questions: int
    exact_match: float
    f1: float
    accuracy: float | None
    right: float
    """The share of all questions, as tokens are of all: right by the judge, else exact matches."""
    loop: LoopStatistics
    prompting: Mapping[str, Any] | None
    """`summary`; None of a method that does not prompt."""

    @property
    def computed(self) -> float:
        """Prompt tokens that no prefix cache held, a question."""
        return sum(self.loop.computed_tokens.values()) / self.questions

    @property
    def written(self) -> float:
        """Completion tokens, a question."""
        return sum(self.loop.completion_tokens.values()) / self.questions

    def per_thousand(self, tokens: float) -> float | None:
        """Right answers per 1,000 tokens, ``tokens`` being what a question takes."""
        return 1000 * self.right / tokens if tokens else None


def measured(outcomes: Iterable[Outcome], order: Sequence[System]) -> list[Measured]:
    """Each system of ``order`` on each benchmark by the alphabet, and on all if there are more."""
    groups, rows = grouped(outcomes, system_of), []
    for system in order:
        parts = dict(sorted(grouped(groups[system], attrgetter("benchmark")).items()))
        if len(parts) > 1:
            parts[ALL] = [outcome for part in parts.values() for outcome in part]
        rows += [_measured(system, name, part) for name, part in parts.items()]
    return rows


def _measured(system: System, benchmark: str, outcomes: Sequence[Outcome]) -> Measured:
    size = len(outcomes)
    verdicts = [o.verdict for o in outcomes if o.verdict in ("correct", "incorrect")]
    matched = sum(o.exact_match for o in outcomes)
    is_judged = any(o.verdict is not None for o in outcomes)
    return Measured(
        system,
        benchmark,
        size,
        matched / size,
        sum(o.f1 for o in outcomes) / size,
        verdicts.count("correct") / len(verdicts) if verdicts else None,
        (verdicts.count("correct") if is_judged else matched) / size,
        statistics_of(outcomes),
        summary(outcomes),
    )


def _share(title: str, key: str, *path: str) -> Column[Measured]:
    """A column of one of the shares in ``prompting``."""
    return Column(title, lambda row: _number(row.prompting, *path), percent, key)


def _number(measures: Any, *path: str) -> float | None:
    """A number within, None where a part of the way there is missing."""
    for name in path:
        measures = (measures or {}).get(name)
    return measures  # type: ignore[no-any-return]


_SCORES = (("EM", "exact_match"), ("F1", "f1"))
_SALVAGED = [_share(f"{title} salvaged", f"salvaged_{m}", "salvaged", m) for title, m in _SCORES]
_FORMS = [
    _share(title, f"format_{form}", "format", "shares", form)
    for form, title in zip(
        FORMS, ("at first try, %", "after revision, %", "salvaged alone, %", "never, %"), strict=True
    )
]
_SUPPORT = [
    *(_share(f"{_PART_NAMES[part]} {title}", f"{part}_{m}", part, m) for part in OVERLAPS for title, m in _SCORES),
    _share("sub-answers found, %", "sub_answer_recall", "sub_answers", "recall"),
    _share("finds that are gold, %", "sub_answer_precision", "sub_answers", "precision"),
    _share("gold passages read, %", "sub_answer_passage_recall", "sub_answers", "passage_recall"),
    _share("R4C passages, %", "derivation_passages", "derivations", "passages"),
    _share("R4C triples, %", "derivation_triples", "derivations", "triples"),
]
_FAILURES = [_share("", f"failure_{name}", "failures", name, "rate") for name in REASONS]
_FAILURE_TITLES = ("error propagation", "lost in the middle", "format mismatch", "hallucination", "unanswered",
                   "untold", "failed")  # fmt: skip
_BENCHMARK: Column[Measured] = Column("benchmark", lambda row: row.benchmark, key="benchmark")
_QUESTIONS: Column[Measured] = Column("questions", lambda row: row.questions, key="questions")


def method_sheet(comparison: Comparison, rows: Sequence[Measured]) -> Sheet[Measured]:
    """Method × benchmark: scores, calls, tokens, right answers per 1,000 tokens; in CSV all measures."""
    computed = lambda row: row.per_thousand(row.computed)  # noqa: E731
    both = lambda row: row.per_thousand(row.computed + row.written)  # noqa: E731
    columns: list[Column[Measured]] = [
        *comparison.subject,
        _BENCHMARK,
        _QUESTIONS,
        Column("EM", lambda row: row.exact_match, percent, "exact_match"),
        Column("F1", lambda row: row.f1, percent, "f1"),
        Column("Acc", lambda row: row.accuracy, percent, "accuracy"),
        Column("calls / question", lambda row: row.loop.calls_per_question, decimal(2), "calls_per_question"),
        Column("computed / question", lambda row: row.computed, decimal(1), "computed_per_question"),
        Column("written / question", lambda row: row.written, decimal(1), "written_per_question"),
        Column("right per 1,000 computed", computed, decimal(3)),
        Column("right per 1,000 computed and written", both, decimal(3)),
        Column("", computed, decimal(4), "right_per_1000_computed"),
        Column("", both, decimal(4), "right_per_1000_computed_and_written"),
        *(replace(column, title="") for column in (*_SALVAGED, *_FORMS, *_SUPPORT, *_FAILURES)),
    ]
    return Sheet(columns, rows)


def form_sheet(comparison: Comparison, rows: Sequence[Measured]) -> Sheet[Measured]:
    """How replies could be read, and what answers are worth strictly and salvaged."""
    replies: Column[Measured] = Column("replies", lambda row: _number(row.prompting, "format", "replies"))
    strict = [_share(title, "", "strict", m) for title, m in _SCORES]
    scores = [column for both in zip(strict, _SALVAGED, strict=True) for column in both]
    columns = [*comparison.subject, _BENCHMARK, replies, *_FORMS, *scores]
    return Sheet(columns, [row for row in rows if row.prompting])


def support_sheet(comparison: Comparison, rows: Sequence[Measured]) -> Sheet[Measured]:
    """Facts, passages, triples, joint, sub-answers, derivations; no row where nothing has any."""
    people: Column[Measured] = Column("R4C questions", lambda row: _number(row.prompting, "derivations", "questions"))
    columns = [*comparison.subject, _BENCHMARK, *_SUPPORT, people]
    return Sheet(columns, [row for row in rows if any(column.value(row) is not None for column in _SUPPORT)])


def failure_sheet(comparison: Comparison, rows: Sequence[Measured]) -> Sheet[Measured]:
    """SG-FSM's kinds of failure and ours: questions, and in brackets their share."""
    counted = lambda failure: f"{failure['questions']} ({percent(failure['rate'])}%)"  # noqa: E731

    def kind(title: str, name: str) -> Column[Measured]:
        return Column(title, lambda row: (row.prompting or {})["failures"][name], counted)

    kinds = map(kind, _FAILURE_TITLES, REASONS)
    columns = [*comparison.subject, _BENCHMARK, _QUESTIONS, *kinds]
    return Sheet(columns, [row for row in rows if row.prompting])


VOTING = "samples"
"""The option of methods that vote."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens an answered question, computed and written: all, the first reply's, each further's."""

    system: System
    whole: float
    first: float
    further: float
    """Where but one was drawn: what is written in it, as a cache would hold the prompt."""

    @property
    def samples(self) -> int:
        """How many replies are put to the vote; 0 of a method that has no such option."""
        return int(dict(self.system.options).get(VOTING, 0))

    def as_many_as(self, tokens: float) -> int:
        """How many samples cost at most that; 0 where one costs more.

        >>> Cost(System("cot", (), ()), 900.0, 500.0, 100.0).as_many_as(1230)
        8
        """
        if tokens < self.first:
            return 0
        return 1 + int((tokens - self.first) / self.further) if self.further else 1


def costs(outcomes: Iterable[Outcome]) -> list[Cost]:
    """What each system costs, in the order in which they come; one that answered nothing, none."""
    answered = (outcome for outcome in outcomes if outcome.trajectory.stop_reason != FAILED)
    groups = grouped(answered, system_of)
    return [_cost(system, [o.trajectory.attempts for o in own]) for system, own in groups.items()]


def _cost(system: System, found: Sequence[Sequence[Attempt]]) -> Cost:
    size = len(found)
    whole = sum(map(_tokens, (attempt for attempts in found for attempt in attempts))) / size
    answers = [[a for a in attempts if a.state == ANSWERING] for attempts in found]
    first = sum(_tokens(own[0]) for own in answers if own) / size
    behind = [_tokens(attempt) for own in answers for attempt in own[1:]]
    written = [sum(u.completion for u in own[0].usage.values()) for own in answers if own]
    each = behind or written
    return Cost(system, whole, first, sum(each) / len(each) if each else 0.0)


def _tokens(attempt: Attempt) -> int:
    used = attempt.usage.values()
    return sum(one.prompt - one.cached + one.completion for one in used)


def equal_cost_sheet(comparison: Comparison, systems: Sequence[Cost]) -> Sheet[tuple[Cost, Cost]]:
    """Each system that asks step by step beside the votes of the same who answers; no row without.

    Δ is over the vote, in percentage points of exact match; its p is of this pair alone.
    """
    names = comparison.names
    gain = partial(_gain, comparison)
    columns: list[Column[tuple[Cost, Cost]]] = [
        Column(comparison.answering, lambda pair: pair[0].system.answering),
        Column("method", lambda pair: names[pair[0].system]),
        Column("tokens / answered question", lambda pair: pair[0].whole, decimal(1)),
        Column("vote, or one reply", lambda pair: names[pair[1].system]),
        Column("its tokens / answered question", lambda pair: pair[1].whole, decimal(1)),
        Column("its cost in % of the method's", lambda p: p[1].whole / p[0].whole if p[0].whole else None, percent),
        Column("samples at equal cost", lambda pair: pair[1].as_many_as(pair[0].whole) or "< 1"),
        Column("Δ EM", lambda pair: gain(*pair)[0], signed),
        Column("p, unadjusted", lambda pair: gain(*pair)[1], p_value),
    ]
    stepwise = [cost for cost in systems if not (cost.samples or cost.first)]
    return Sheet(columns, [(cost, vote) for cost in stepwise for vote in _votes_beside(cost, systems)])


def _votes_beside(cost: Cost, systems: Iterable[Cost]) -> list[Cost]:
    """The votes asked as the system of ``cost`` was; a single reply, which is no vote, where there is no other.

    Of a vote it is measured what further samples cost, so that the single reply has nothing to add.
    """
    alike = [vote for vote in systems if vote.samples and _asked(vote.system) == _asked(cost.system)]
    several = {_kind(vote) for vote in alike if vote.samples > 1}
    shown = [vote for vote in alike if vote.samples > 1 or _kind(vote) not in several]
    return sorted(shown, key=lambda vote: (vote.system.method, vote.samples))


def _kind(vote: Cost) -> tuple[object, ...]:
    return vote.system.method, vote.system.players, vote.system.conditions


def _asked(system: System) -> tuple[object, ...]:
    """Who answers, what it was shown, and whether it was to name facts and triples, too."""
    shown = asking_conditions(dict(system.conditions))
    return system.answering, shown, bool(dict(system.options).get("evidence"))


def _gain(comparison: Comparison, cost: Cost, vote: Cost) -> tuple[float | None, float | None]:
    """By how much a system is better than a vote, and the p of that, where the two were paired."""
    for first, second, sign in ((cost.system, vote.system, 1), (vote.system, cost.system, -1)):
        if difference := comparison.difference(first, second, None, "exact_match"):
            return sign * difference.estimate.value, difference.p
    return None, None
