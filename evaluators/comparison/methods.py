"""Render the tables of methods by benchmark: scores, cost, form of replies, supporting facts, reasons of failure.

*Computed* tokens are those of the prompt that no prefix cache held; *written* tokens are those of the completion. A
rate is the number of right answers per 1,000 tokens: right by the judge if there is one, else by exact match.

A state machine sends many requests, so it must beat plain prompting at the same token cost: the fair baseline is a
vote over so many CoT replies (*samples*) that it costs as much. The cost of a sample is measured. The first one
computes the prompt; further ones cost mainly their completion, as the prefix cache holds the prompt. Costs are means
over the questions that a system answered: a failed question stopped midway and would make a method look cheaper.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, methodcaller
from typing import Any

from evaluators.comparison.scores import CSV_ONLY, Comparison, Difference
from evaluators.comparison.systems import System, system_of
from evaluators.outcomes import Outcome, asking_conditions, grouped
from evaluators.prompting.measures import DOCUMENTS, FORMS, MARKS, OVERLAPS, REASONS, score_outcomes
from safe_stepwise.methods.prompting import ANSWERING
from safe_stepwise.records import FAILED, Attempt, all_attempts
from safe_stepwise.store.tables import Column, Sheet, as_is, count, decimal, p_value, percent, signed

ALL = "all"
"""The name of the row over all benchmarks."""
_TITLES = {"supporting_facts": "facts", "supporting_passages": "passages", "evidence": "triples", "joint": "joint"}
_SCORES = (("EM", "exact_match"), ("F1", "f1"))
_FORM_TITLES = ("at first try, %", "after revision, %", "salvaged alone, %", "never, %")
_FAILURE_TITLES = ("error propagation", "lost in the middle", "format mismatch", "hallucination", "unanswered",
                   "untold", "failed")  # fmt: skip
"""The titles of `REASONS`; an untold failure is a wrong answer that cites nothing, so its reason is unknown."""
_MOVES = [f"{before}_to_{after}" for before in MARKS.values() for after in MARKS.values()]


@dataclass(frozen=True, slots=True)
class MethodRow:
    """The measures of a system on one benchmark, or on `ALL`."""

    system: System
    benchmark: str
    scores: Mapping[str, Any]
    """The scores and statistics of `score_outcomes`."""
    right: float
    """The share of all questions answered correctly: by the judge if there is one, else by exact match."""

    def per_question(self, tokens: str) -> float:
        """Return the number of tokens per question: ``computed_tokens`` or ``completion_tokens``."""
        return float(sum(self.scores[tokens].values()) / self.scores["questions"])

    def per_thousand(self, *counts: Callable[["MethodRow"], float]) -> float | None:
        """Return right answers per 1,000 of the tokens that ``counts`` count per question; None if there are none."""
        tokens = sum(count(self) for count in counts)
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


def _measured(title: str, key: str, *path: str, form: Any = percent) -> Column[MethodRow]:
    """Return the column of a measure of prompting, by its path in the scores."""

    def value(row: MethodRow) -> Any:
        measures: Any = row.scores.get("prompting")
        for name in path:
            measures = (measures or {}).get(name)
        return measures

    return Column(title, value, form, key)


def _summaries(*path: str) -> Column[MethodRow]:
    title = ": ".join(path).replace("_to_", " → ").replace("_", " ")
    return _measured(title, "_".join(path), "summary", *path, form=count)


_STRICT = [_measured(title, "", "strict", m) for title, m in _SCORES]
_SALVAGED = [_measured(f"{title} salvaged", f"salvaged_{m}", "salvaged", m) for title, m in _SCORES]
_FORMS = [_measured(t, f"format_{f}", "format", "shares", f) for f, t in zip(FORMS, _FORM_TITLES, strict=True)]
_SUPPORT = [
    *(_measured(f"{_TITLES[name]} {title}", f"{name}_{m}", name, m) for name in OVERLAPS for title, m in _SCORES),
    _measured("sub-answers found, %", "sub_answer_recall", "sub_answers", "recall"),
    _measured("finds that are gold, %", "sub_answer_precision", "sub_answers", "precision"),
    _measured("gold passages read, %", "sub_answer_passage_recall", "sub_answers", "passage_recall"),
    _measured("R4C passages, %", "derivation_passages", "derivations", "passages"),
    _measured("R4C triples, %", "derivation_triples", "derivations", "triples"),
]
_FAILURES = [
    _measured(f"{title}, %", f"failure_{name}", "failures", name, "rate")
    for name, title in zip(REASONS, _FAILURE_TITLES, strict=True)
]
_SUMMARIES = [_summaries(documents, move) for documents in DOCUMENTS for move in _MOVES]
_BENCHMARK: Column[MethodRow] = Column("benchmark", lambda row: row.benchmark, key="benchmark")
_QUESTIONS: Column[MethodRow] = Column("questions", lambda row: row.scores["questions"], key="questions")


def method_sheet(comparison: Comparison, rows: Sequence[MethodRow]) -> Sheet[MethodRow]:
    """Return a row of scores, calls, tokens and rates for each method and benchmark; CSV has all measures."""
    computed, written = (methodcaller("per_question", kind) for kind in ("computed_tokens", "completion_tokens"))
    of_computed, of_both = methodcaller("per_thousand", computed), methodcaller("per_thousand", computed, written)
    columns: list[Column[MethodRow]] = [
        *comparison.subject,
        _BENCHMARK,
        _QUESTIONS,
        Column("EM", lambda row: row.scores["exact_match"], percent, "exact_match"),
        Column("F1", lambda row: row.scores["f1"], percent, "f1"),
        Column("Acc", lambda row: row.scores["accuracy"], percent, "accuracy"),
        Column("calls / question", lambda row: row.scores["calls_per_question"], decimal(2), "calls_per_question"),
        Column("computed / question", computed, decimal(1), "computed_per_question"),
        Column("written / question", written, decimal(1), "written_per_question"),
        Column("right per 1,000 computed", of_computed, decimal(4), "right_per_1000_computed"),
        Column("right per 1,000 computed and written", of_both, decimal(4), "right_per_1000_computed_and_written"),
        *(replace(column, title=CSV_ONLY) for column in (*_SALVAGED, *_FORMS, *_SUPPORT, *_SUMMARIES, *_FAILURES)),
    ]
    return Sheet(columns, rows)


_DETAILS = {
    "form": [_measured("replies", "", "format", "replies", form=as_is), *_FORMS, *_STRICT, *_SALVAGED],
    "support": [*_SUPPORT, _measured("R4C questions", "", "derivations", "questions", form=as_is)],
    "summaries": _SUMMARIES,
    "failures": [_QUESTIONS, *_FAILURES],
}


def detail_sheets(comparison: Comparison, rows: Sequence[MethodRow]) -> dict[str, Sheet[MethodRow]]:
    """Return further tables, each with the rows that have any of its measures: how replies could be read, what
    supports answers, what summaries did, why answers failed (SG-FSM's four reasons and three more)."""

    def sheet(columns: Sequence[Column[MethodRow]]) -> Sheet[MethodRow]:
        measures = [column for column in columns if column is not _QUESTIONS]
        measured = [row for row in rows if any(column.value(row) is not None for column in measures)]
        return Sheet([*comparison.subject, _BENCHMARK, *columns], measured)

    return {name: sheet(columns) for name, columns in _DETAILS.items()}


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
        return int(dict(self.system.options).get("samples", 0))

    def samples_within(self, tokens: float) -> int:
        """Return how many samples cost at most ``tokens``; 0 if a single one costs more."""
        if tokens < self.first:
            return 0
        return 1 + int((tokens - self.first) / self.further) if self.further else 1


def measure_costs(outcomes: Iterable[Outcome]) -> list[Cost]:
    """Compute each system's cost, in the order of the outcomes; leave out systems that answered nothing."""
    plain = (outcome for outcome in outcomes if not outcome.trajectory.sampled)  # those may hold votes of samples
    answered = (outcome for outcome in plain if outcome.trajectory.stop_reason != FAILED)
    groups = grouped(answered, system_of)
    return [_cost(system, [all_attempts(o.trajectory) for o in group]) for system, group in groups.items()]


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

    def setting(system: System) -> tuple[object, ...]:
        return system.answering, asking_conditions(dict(system.conditions)), bool(dict(system.options).get("evidence"))

    voting = attrgetter("system.method", "system.players", "system.conditions")
    candidates = [vote for vote in systems if vote.samples and setting(vote.system) == setting(cost.system)]
    voted = {voting(vote) for vote in candidates if vote.samples > 1}
    votes = [vote for vote in candidates if vote.samples > 1 or voting(vote) not in voted]
    return sorted(votes, key=attrgetter("system.method", "samples"))
