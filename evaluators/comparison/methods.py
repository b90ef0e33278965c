"""Render the tables of methods by benchmark: scores, cost, form of replies, supporting facts, reasons of failure.

*Computed* tokens are those of the prompt that no prefix cache held; *written* tokens are those of the completion. A
rate is the number of right answers per 1,000 tokens: right by the judge if there is one, else by exact match.

A state machine sends many requests, so it must beat plain prompting at the same token cost: the fair baseline is a
vote over so many CoT replies (*samples*) that it costs as much. The cost of a sample is measured. The first one
computes the prompt; further ones cost mainly their completion, as the prefix cache holds the prompt. Costs are means
over the questions that a system answered: a failed question stopped midway and would make a method look cheaper.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from evaluators.comparison.scores import CSV_ONLY, Comparison, Difference
from evaluators.comparison.systems import System, system_of
from evaluators.outcomes import Outcome, asking_conditions, grouped
from evaluators.prompting.measures import FORMS, OVERLAPS, REASONS, score_outcomes
from safe_stepwise.methods.prompting import ANSWERING
from safe_stepwise.records import FAILED, Attempt
from safe_stepwise.store.tables import Column, Sheet, decimal, p_value, percent, signed

ALL = "all"
"""The name of the row over all benchmarks."""
_TITLES = {"supporting_facts": "facts", "supporting_passages": "passages", "evidence": "triples", "joint": "joint"}


@dataclass(frozen=True, slots=True)
class MethodRow:
    """The measures of a system on one benchmark, or on `ALL`."""

    system: System
    benchmark: str
    scores: Mapping[str, Any]
    """The scores and statistics of `score_outcomes`."""
    right: float
    """The share of all questions answered correctly: by the judge if there is one, else by exact match."""

    @property
    def prompts(self) -> bool:
        """Whether the system's method prompts, and so has further measures."""
        return "prompting" in self.scores

    @property
    def computed_tokens(self) -> float:
        """Prompt tokens per question that no prefix cache held."""
        return self._per_question("computed_tokens")

    @property
    def completion_tokens(self) -> float:
        return self._per_question("completion_tokens")

    def _per_question(self, tokens: str) -> float:
        return float(sum(self.scores[tokens].values()) / self.scores["questions"])

    def per_thousand(self, tokens: float) -> float | None:
        """Return right answers per 1,000 tokens, for ``tokens`` per question; None if ``tokens`` is 0."""
        return 1000 * self.right / tokens if tokens else None


def measure_methods(outcomes: Iterable[Outcome], order: Sequence[System]) -> list[MethodRow]:
    """Measure each system of ``order`` on each benchmark, in alphabetical order, and on all if there are several."""
    groups, rows = grouped(outcomes, system_of), []
    for system in order:
        by_benchmark = dict(sorted(grouped(groups[system], attrgetter("benchmark")).items()))
        if len(by_benchmark) > 1:
            by_benchmark[ALL] = [outcome for group in by_benchmark.values() for outcome in group]
        rows += [_measure(system, name, group) for name, group in by_benchmark.items()]
    return rows


def _measure(system: System, benchmark: str, outcomes: Sequence[Outcome]) -> MethodRow:
    is_judged = any(o.verdict is not None for o in outcomes)
    right = sum(o.verdict == "correct" if is_judged else o.exact_match for o in outcomes)
    return MethodRow(system, benchmark, score_outcomes(outcomes), right / len(outcomes))


def _share(title: str, key: str, *path: str) -> Column[MethodRow]:
    return Column(title, lambda row: _number(row.scores, "prompting", *path), percent, key)


def _number(measures: Any, *path: str) -> float | None:
    for name in path:
        measures = (measures or {}).get(name)
    return measures  # type: ignore[no-any-return]


_SCORES = (("EM", "exact_match"), ("F1", "f1"))
_SALVAGED = [_share(f"{title} salvaged", f"salvaged_{m}", "salvaged", m) for title, m in _SCORES]
_FORM_TITLES = ("at first try, %", "after revision, %", "salvaged alone, %", "never, %")
_FORMS = [_share(t, f"format_{form}", "format", "shares", form) for form, t in zip(FORMS, _FORM_TITLES, strict=True)]
_SUPPORT = [
    *(_share(f"{_TITLES[name]} {title}", f"{name}_{m}", name, m) for name in OVERLAPS for title, m in _SCORES),
    _share("sub-answers found, %", "sub_answer_recall", "sub_answers", "recall"),
    _share("finds that are gold, %", "sub_answer_precision", "sub_answers", "precision"),
    _share("gold passages read, %", "sub_answer_passage_recall", "sub_answers", "passage_recall"),
    _share("R4C passages, %", "derivation_passages", "derivations", "passages"),
    _share("R4C triples, %", "derivation_triples", "derivations", "triples"),
]
_FAILURE_TITLES = ("error propagation", "lost in the middle", "format mismatch", "hallucination", "unanswered",
                   "untold", "failed")  # fmt: skip
"""The titles of `REASONS`; an untold failure is a wrong answer that cites nothing, so its reason is unknown."""
_FAILURES = [
    _share(title, f"failure_{name}", "failures", name, "rate")
    for name, title in zip(REASONS, _FAILURE_TITLES, strict=True)
]
_BENCHMARK: Column[MethodRow] = Column("benchmark", lambda row: row.benchmark, key="benchmark")
_QUESTIONS: Column[MethodRow] = Column("questions", lambda row: row.scores["questions"], key="questions")


def method_sheet(comparison: Comparison, rows: Sequence[MethodRow]) -> Sheet[MethodRow]:
    """Return a row of scores, calls, tokens and rates for each method and benchmark; CSV has all measures."""
    computed = lambda row: row.per_thousand(row.computed_tokens)  # noqa: E731
    total = lambda row: row.per_thousand(row.computed_tokens + row.completion_tokens)  # noqa: E731
    columns: list[Column[MethodRow]] = [
        *comparison.subject,
        _BENCHMARK,
        _QUESTIONS,
        Column("EM", lambda row: row.scores["exact_match"], percent, "exact_match"),
        Column("F1", lambda row: row.scores["f1"], percent, "f1"),
        Column("Acc", lambda row: row.scores["accuracy"], percent, "accuracy"),
        Column("calls / question", lambda row: row.scores["calls_per_question"], decimal(2), "calls_per_question"),
        Column("computed / question", lambda row: row.computed_tokens, decimal(1), "computed_per_question"),
        Column("written / question", lambda row: row.completion_tokens, decimal(1), "written_per_question"),
        Column("right per 1,000 computed", computed, decimal(3)),
        Column("right per 1,000 computed and written", total, decimal(3)),
        Column(CSV_ONLY, computed, decimal(4), "right_per_1000_computed"),
        Column(CSV_ONLY, total, decimal(4), "right_per_1000_computed_and_written"),
        *(replace(column, title=CSV_ONLY) for column in (*_SALVAGED, *_FORMS, *_SUPPORT, *_FAILURES)),
    ]
    return Sheet(columns, rows)


def form_sheet(comparison: Comparison, rows: Sequence[MethodRow]) -> Sheet[MethodRow]:
    """Return the shares of replies by how they could be read, and the scores of strict and salvaged answers."""
    replies: Column[MethodRow] = Column("replies", lambda row: _number(row.scores, "prompting", "format", "replies"))
    strict = [_share(title, "", "strict", m) for title, m in _SCORES]
    scores = [column for pair in zip(strict, _SALVAGED, strict=True) for column in pair]
    return Sheet(
        [*comparison.subject, _BENCHMARK, replies, *_FORMS, *scores],
        [row for row in rows if "prompting" in row.scores],
    )


def support_sheet(comparison: Comparison, rows: Sequence[MethodRow]) -> Sheet[MethodRow]:
    """Return scores of facts, passages, triples, sub-answers and derivations, for methods that have any."""
    annotated: Column[MethodRow] = Column(
        "R4C questions", lambda row: _number(row.scores, "prompting", "derivations", "questions")
    )
    columns = [*comparison.subject, _BENCHMARK, *_SUPPORT, annotated]
    return Sheet(columns, [row for row in rows if any(column.value(row) is not None for column in _SUPPORT)])


def failure_sheet(comparison: Comparison, rows: Sequence[MethodRow]) -> Sheet[MethodRow]:
    """Return the number and share of questions by reason of failure, SG-FSM's four and our further ones."""
    counts = lambda failure: f"{failure['questions']} ({percent(failure['rate'])}%)"  # noqa: E731

    def reason(title: str, name: str) -> Column[MethodRow]:
        return Column(title, lambda row: row.scores["prompting"]["failures"][name], counts)

    reasons = map(reason, _FAILURE_TITLES, REASONS)
    return Sheet(
        [*comparison.subject, _BENCHMARK, _QUESTIONS, *reasons], [row for row in rows if "prompting" in row.scores]
    )


VOTING = "samples"
"""The option that sets how many replies vote."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens per answered question, computed and written."""

    system: System
    total: float
    first: float
    """Tokens of the first reply that answers; 0 for a system without such a reply."""
    further: float
    """Tokens of each further sample; estimated from the completion tokens if there was only one sample."""

    @property
    def samples(self) -> int:
        """The number of replies that vote; 0 for a method without this option."""
        return int(dict(self.system.options).get(VOTING, 0))

    def samples_within(self, tokens: float) -> int:
        """Return how many samples cost at most ``tokens``; 0 if a single one costs more.

        >>> Cost(System("cot", (), ()), 900.0, 500.0, 100.0).samples_within(1230)
        8
        """
        if tokens < self.first:
            return 0
        return 1 + int((tokens - self.first) / self.further) if self.further else 1


def measure_costs(outcomes: Iterable[Outcome]) -> list[Cost]:
    """Compute each system's cost, in the order of the outcomes; leave out systems that answered nothing."""
    answered = (outcome for outcome in outcomes if outcome.trajectory.stop_reason != FAILED)
    groups = grouped(answered, system_of)
    return [_cost(system, [o.trajectory.attempts for o in group]) for system, group in groups.items()]


def _cost(system: System, attempts_by_question: Sequence[Sequence[Attempt]]) -> Cost:
    size = len(attempts_by_question)
    total = sum(map(_tokens, (attempt for attempts in attempts_by_question for attempt in attempts))) / size
    answers = [[a for a in attempts if a.state == ANSWERING] for attempts in attempts_by_question]
    first = sum(_tokens(replies[0]) for replies in answers if replies) / size
    further = [_tokens(attempt) for replies in answers for attempt in replies[1:]]
    sizes = further or [sum(u.completion for u in replies[0].usage.values()) for replies in answers if replies]
    return Cost(system, total, first, sum(sizes) / len(sizes) if sizes else 0.0)


def _tokens(attempt: Attempt) -> int:
    return sum(usage.prompt - usage.cached + usage.completion for usage in attempt.usage.values())


def equal_cost_sheet(comparison: Comparison, systems: Sequence[Cost]) -> Sheet[tuple[Cost, Cost]]:
    """Compare the cost of each system without a vote with each vote's; Δ is in points, p-values are not adjusted."""
    names = comparison.names

    def gain(pair: tuple[Cost, Cost]) -> Difference | None:
        return comparison.gain(pair[0].system, pair[1].system, None, "exact_match")

    columns: list[Column[tuple[Cost, Cost]]] = [
        Column(comparison.answering, lambda pair: pair[0].system.answering),
        Column("method", lambda pair: names[pair[0].system]),
        Column("tokens / answered question", lambda pair: pair[0].total, decimal(1)),
        Column("vote, or one reply", lambda pair: names[pair[1].system]),
        Column("its tokens / answered question", lambda pair: pair[1].total, decimal(1)),
        Column("its cost in % of the method's", lambda p: p[1].total / p[0].total if p[0].total else None, percent),
        Column("samples at equal cost", lambda pair: pair[1].samples_within(pair[0].total) or "< 1"),
        Column("Δ EM", gain, lambda difference: signed(difference.estimate.value)),
        Column("p, unadjusted", gain, lambda difference: p_value(difference.p)),
    ]
    stepwise = [cost for cost in systems if not (cost.samples or cost.first)]
    return Sheet(columns, [(cost, vote) for cost in stepwise for vote in _votes_beside(cost, systems)])


def _votes_beside(cost: Cost, systems: Iterable[Cost]) -> list[Cost]:
    """Return the votes with the setting of ``cost``'s system, and single replies of methods without a vote."""
    candidates = [vote for vote in systems if vote.samples and _setting_key(vote.system) == _setting_key(cost.system)]
    voted = {_voting_key(vote) for vote in candidates if vote.samples > 1}
    votes = [vote for vote in candidates if vote.samples > 1 or _voting_key(vote) not in voted]
    return sorted(votes, key=lambda vote: (vote.system.method, vote.samples))


def _voting_key(vote: Cost) -> tuple[object, ...]:
    return vote.system.method, vote.system.players, vote.system.conditions


def _setting_key(system: System) -> tuple[object, ...]:
    return system.answering, asking_conditions(dict(system.conditions)), bool(dict(system.options).get("evidence"))
