"""The tables of methods by benchmark: scores, what they cost, form, facts, kinds of failure.

Tokens are computed (of the prompt, what no prefix cache held) and written (the completion). A rate
is right answers per 1,000 tokens: by the judge where there is one, else by exact match.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.comparison.scores import Comparison
from evaluators.comparison.systems import System
from evaluators.outcomes import Outcome, statistics_of
from evaluators.prompting.summary import FORMS, PARTS, REASONS, summary
from safe_stepwise.methods.running import LoopStatistics
from safe_stepwise.store.tables import NOTHING, Table, percent

ALL = "all"
"""All questions of all benchmarks alike."""
METHODS_TEXT = (
    "Percentages. Computed are the prompt tokens that no prefix cache held, written those of the "
    "completions; right answers are the judge's where there is one, else exact matches. What it "
    "left unscored is no right answer where tokens are counted."
)
FORM_TEXT = (
    "A reply and its revisions count once. EM and F1 are strict: what could not be read is wrong; "
    "salvaged, they count what can be read without guessing (prose around an object, a missing "
    "reason, a last line that names the answer). Machines go by strict replies alone."
)
SUPPORT_TEXT = (
    "By the benchmarks' official definitions: joint is the product of the parts' precisions and "
    "recalls (answer and facts; of 2Wiki also triples). HotpotQA has no gold triples; of MuSiQue "
    "passages are scored. Sub-answers are MuSiQue's decomposition and the ends of 2Wiki's triples, "
    "R4C's the passages and triples that finds speak of. Sub-answers and passages read are pooled "
    "over the hops of all questions; all else is a mean over the questions that have it, R4C's "
    "over those with a derivation, whose number stands beside."
)
FAILURE_TEXT = (
    "SG-FSM's four kinds (section 2), one a question at most: a find on the way was wrong, and so "
    "is the answer, or there is none; all that was found is right, yet the answer is wrong; only "
    "the form was wrong, or nothing could be read; the answer is right though a gold passage was "
    "never cited. Unanswered: without an answer (withdrawn, or out of turns), though no find was "
    "wrong. Untold: wrong, and nothing was found or cited. Failed: requests were given up. All but "
    "hallucinations add up to what EM counts as wrong. Finds are held against gold sub-answers; "
    "HotpotQA has none, so that there a find, or a citation, is wrong only if it stands in no gold "
    "passage: a wrong reading of the right one counts as lost in the middle."
)
EQUAL_COST_TEXT = (
    "A method that asks step by step beside a vote over samples (self-consistency) of the same "
    "model that was shown and asked for the same (evidence too), in tokens computed and written, "
    "over the questions that each answered. Samples at equal cost: what to give --samples, by what "
    "further samples cost in this run; where but one was drawn, by what is written in it. "
    "Δ EM in percentage points over the vote, on the questions of both; p is of this pair alone "
    "(Holm's, over all pairs, stands in comparison.md)."
)
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
    groups: dict[System, dict[str, list[Outcome]]] = {system: {} for system in order}
    for o in outcomes:
        system = System.of(o.method, o.players, o.options, o.conditions)
        groups[system].setdefault(o.benchmark, []).append(o)
    found = []
    for system, by_benchmark in groups.items():
        parts = dict(sorted(by_benchmark.items()))
        if len(parts) > 1:
            parts[ALL] = [o for own in parts.values() for o in own]
        found += [_measured(system, name, own) for name, own in parts.items()]
    return found


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


def method_table(comparison: Comparison, found: Sequence[Measured]) -> Table:
    """Method × benchmark: scores, calls, tokens, and right answers per 1,000 tokens."""
    header = (comparison.answering, "method", "benchmark", "questions", "EM", "F1", "Acc",
              "calls / question", "computed / question", "written / question",
              "right per 1,000 computed", "right per 1,000 computed and written")  # fmt: skip
    table: Table = [header]
    for one in found:
        accuracy = NOTHING if one.accuracy is None else percent(one.accuracy)
        rates = [one.per_thousand(one.computed), one.per_thousand(one.computed + one.written)]
        table.append(
            [one.system.answering, comparison.names[one.system], one.benchmark, one.questions,
             percent(one.exact_match), percent(one.f1), accuracy,
             f"{one.loop.calls_per_question:.2f}", f"{one.computed:.1f}", f"{one.written:.1f}",
             *(NOTHING if rate is None else f"{rate:.3f}" for rate in rates)]
        )  # fmt: skip
    return table


def method_csv(comparison: Comparison, found: Sequence[Measured]) -> Table:
    """`method_table` and all measures for machines; shares in percent."""
    rows = {row.system: row for row in comparison.rows}
    names = [name for name, _ in _cells(None)]
    header = (*comparison.columns, "benchmark", "questions", "exact_match", "f1", "accuracy",
              "calls_per_question", "computed_per_question", "written_per_question",
              "right_per_1000_computed", "right_per_1000_computed_and_written", *names)  # fmt: skip
    table: Table = [header]
    for one in found:
        rates = [one.per_thousand(one.computed), one.per_thousand(one.computed + one.written)]
        table.append(
            [*comparison.described(rows[one.system]), one.benchmark, one.questions,
             percent(one.exact_match), percent(one.f1), _percent(one.accuracy, ""),
             f"{one.loop.calls_per_question:.2f}", f"{one.computed:.1f}", f"{one.written:.1f}",
             *("" if rate is None else f"{rate:.4f}" for rate in rates),
             *(_percent(value, "") for _, value in _cells(one.prompting))]
        )  # fmt: skip
    return table


def _cells(found: Mapping[str, Any] | None) -> list[tuple[str, float | None]]:
    """Names and values of all measures of prompting methods."""
    known = found or {}
    cells = [(f"salvaged_{m}", _at(known, "salvaged", m)) for m in ("exact_match", "f1")]
    cells += [(f"format_{form}", _at(known, "format", "shares", form)) for form in FORMS]
    cells += [(f"{p}_{m}", _at(known, p, m)) for p in PARTS for m in ("exact_match", "f1")]
    wanted = ("recall", "precision", "passage_recall")
    cells += [(f"sub_answer_{name}", _at(known, "sub_answers", name)) for name in wanted]
    cells += [(f"derivation_{n}", _at(known, "derivations", n)) for n in ("passages", "triples")]
    cells += [(f"failure_{name}", _at(known, "failures", name, "rate")) for name in REASONS]
    return cells


def form_table(comparison: Comparison, found: Sequence[Measured]) -> Table:
    """How replies could be read, and what answers are worth strictly and salvaged."""
    header = (comparison.answering, "method", "benchmark", "replies", "at first try, %",
              "after revision, %", "salvaged alone, %", "never, %", "EM", "EM salvaged",
              "F1", "F1 salvaged")  # fmt: skip
    table: Table = [header]
    for one in _prompting(found):
        known = one.prompting or {}
        ways = [(way, m) for m in ("exact_match", "f1") for way in ("strict", "salvaged")]
        scores = [_at(known, way, metric) for way, metric in ways]
        shares = [_at(known, "format", "shares", form) for form in FORMS]
        replies = known["format"]["replies"]
        table.append([*_named(comparison, one), replies, *map(_percent, [*shares, *scores])])
    return table


def support_table(comparison: Comparison, found: Sequence[Measured]) -> Table:
    """Facts, passages, triples, joint, sub-answers, derivations; no row where nothing has any."""
    header = [comparison.answering, "method", "benchmark"]
    header += [f"{_PART_NAMES[part]} {m}" for part in PARTS for m in ("EM", "F1")]
    header += ["sub-answers found, %", "finds that are gold, %", "gold passages read, %",
               "R4C passages, %", "R4C triples, %", "R4C questions"]  # fmt: skip
    table: Table = [header]
    for one in _prompting(found):
        cells = [v for n, v in _cells(one.prompting) if n.startswith((*PARTS, "sub_", "deriv"))]
        if any(cell is not None for cell in cells):
            derived = (one.prompting or {}).get("derivations") or {}
            people = derived.get("questions", NOTHING)
            table.append([*_named(comparison, one), *map(_percent, cells), people])
    return table


def failure_table(comparison: Comparison, found: Sequence[Measured]) -> Table:
    """SG-FSM's kinds of failure and ours: questions, and in brackets their share."""
    header = (comparison.answering, "method", "benchmark", "questions", "error propagation",
              "lost in the middle", "format mismatch", "hallucination", "unanswered", "untold",
              "failed")  # fmt: skip
    table: Table = [header]
    for one in _prompting(found):
        known = (one.prompting or {})["failures"]
        cells = [f"{known[n]['questions']} ({percent(known[n]['rate'])}%)" for n in REASONS]
        table.append([*_named(comparison, one), one.questions, *cells])
    return table


def _prompting(found: Iterable[Measured]) -> list[Measured]:
    return [one for one in found if one.prompting]


def _named(comparison: Comparison, one: Measured) -> list[object]:
    return [one.system.answering, comparison.names[one.system], one.benchmark]


def _at(found: Any, *path: str) -> float | None:
    """A number within, None where a part of the way there is missing."""
    for name in path:
        found = (found or {}).get(name)
    return None if found is None else float(found)


def _percent(value: float | None, nothing: str = NOTHING) -> str:
    return nothing if value is None else percent(value)
