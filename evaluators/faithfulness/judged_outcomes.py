"""Summarize judged outcomes: the answer of one system to one question, with the verdicts on its chain of steps.

A chain is *faithful* if the evidence supports each of its steps. A right answer by an unfaithful chain is *spurious*.
Two rules judge chains: ours (``house``) and that of arXiv 2402.11199 (``paper``). This module renders the rows of
``faithfulness.jsonl``, lists the unfaithful steps that a verifier accepted, and computes the numbers of
``faithfulness.json`` for each system and for pairs of systems; README.md defines them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

from evaluators.comparison import significance, systems
from evaluators.faithfulness.responses import Selection
from evaluators.outcomes import Outcome, grouped, numbered
from safe_stepwise.checking.faithfulness.grounds import ChainVerdict, Rule, Verdict, verdict_row
from safe_stepwise.checking.faithfulness.groups import ResponseKind, score_reasoning
from safe_stepwise.methods.loop import read_reply, tries_at_steps
from safe_stepwise.records import Question, Step, Trajectory, as_object
from safe_stepwise.steps import StepError
from safe_stepwise.store import codec, names
from safe_stepwise.taxonomy import CORRECT

RULES: tuple[Rule, ...] = ("house", "paper")
Verdicts = Mapping[Rule, ChainVerdict]
Pair = tuple[Outcome, Question]
"""An outcome with its question, annotations included."""
AnswerBy = Literal["exact_match", "judge", "rule"]
ANSWERS: tuple[AnswerBy, ...] = get_args(AnswerBy)
COLUMNS = (*get_args(Verdict), *(kind for kind in get_args(ResponseKind) if kind != "chain"))
"""The results of a question under a rule: the verdict on its chain, or the reason why it has no chain."""
SELECTION_TITLES = {"only": "", "majority": " (majority)", "best_of_n": " (best of n)"}
_DIGITS = 6
QuestionKey = tuple[tuple[str, str], int]
"""Benchmark and id of a question, and its number among those that share them, from 0."""


@dataclass(frozen=True, slots=True)
class JudgedOutcome:
    """One outcome, with one `Selection` of its chains and each rule's verdict on its chain."""

    outcome: Outcome
    question: Question
    system: systems.System
    selection: Selection
    response: ResponseKind
    steps: tuple[tuple[int, str], ...] = ()
    """Number and text of each step of the chain; empty for the best of n, whose chain may differ by rule."""
    verdicts: Verdicts = field(default_factory=dict)
    """By rule; empty if there is no chain, or no evidence to judge it by."""
    samples: Mapping[Rule, int] = field(default_factory=dict)
    """The number of the attempt that each verdict judges, from 1; empty without a vote."""

    @property
    def benchmark(self) -> str:
        return self.outcome.benchmark

    @property
    def is_exact(self) -> bool:
        return self.outcome.exact_match == 1


def column_of(judged: JudgedOutcome, rule: Rule) -> str:
    """Return the result of a question, one of `COLUMNS`; a chain without evidence is unjudgeable."""
    if judged.response != "chain":
        return judged.response
    verdict = judged.verdicts.get(rule)
    return verdict.path if verdict else "unjudgeable"


def is_right(judged: JudgedOutcome, rule: Rule, measure: AnswerBy) -> bool | None:
    """Return whether an answer is right by a measure; None if the judge gave no verdict."""
    if measure == "exact_match":
        return judged.is_exact
    if measure == "judge":
        return {"correct": True, "incorrect": False}.get(judged.outcome.verdict or "")
    verdict = judged.verdicts.get(rule)
    # A rule needs a chain to compare an answer; without one, exact match decides.
    return verdict.is_right if verdict else judged.is_exact


def is_grounded(question: Question) -> bool:
    """Return whether a question has evidence to judge chains by."""
    return bool(question.evidence or question.decomposition)


def index_systems(outcomes: Sequence[JudgedOutcome]) -> dict[tuple[systems.System, Selection], int]:
    """Return the index of each system and selection in the list of `summarize_systems`, from 0."""
    keys = dict.fromkeys((judged.system, judged.selection) for judged in outcomes)
    return {key: index for index, key in enumerate(keys)}


def row_of(judged: JudgedOutcome, system_index: int) -> dict[str, Any]:
    """Return a row of ``faithfulness.jsonl``; `index_systems` returns the system's index."""
    return {
        "system": system_index,
        "benchmark": judged.benchmark,
        "question_id": judged.outcome.question_id,
        "answer": judged.outcome.trajectory.answer,
        "exact_match": judged.is_exact,
        "judge": judged.outcome.verdict,
        "response": judged.response,
        "steps": [{"number": number, "text": text} for number, text in judged.steps],
        "rules": {
            rule: verdict_row(verdict) | ({"sample": judged.samples[rule]} if rule in judged.samples else {})
            for rule, verdict in judged.verdicts.items()
        },
    }


def list_accepted_unfaithful(outcomes: Sequence[JudgedOutcome]) -> Iterator[dict[str, Any]]:
    """Yield a row (README.md) for each unfaithful step that a verifier accepted, in the order of the outcomes.

    Faults follow our own rule if it was applied, otherwise the paper's. Only SAFE's loop gives each step a verdict of
    its own, so only its steps are listed.
    """
    for judged in outcomes:
        rule = next((rule for rule in RULES if rule in judged.verdicts), None)
        if rule is None or judged.response != "chain":
            continue
        accepted_by_number = {step.number: step for step in accepted_steps(judged.outcome.trajectory)}
        for (number, _), verdict in zip(judged.steps, judged.verdicts[rule].steps, strict=False):
            if verdict.fault and verdict.fault != "unread" and number in accepted_by_number:
                yield _accepted_row(judged, accepted_by_number[number], rule, verdict.fault)


def accepted_steps(trajectory: Trajectory) -> Iterator[Step]:
    """Yield the steps that a verifier called Correct."""
    steps = {step.number: step for step in trajectory.steps}
    for attempt in tries_at_steps(trajectory):
        feedback = attempt.feedback
        if not attempt.accepted or feedback is None or feedback.error_type != CORRECT:
            continue
        try:
            step = read_reply(attempt.text, attempt.number)
        except StepError:
            continue
        if steps.get(step.number) == step:
            yield step


def _accepted_row(judged: JudgedOutcome, step: Step, rule: str, fault: str) -> dict[str, Any]:
    previous = [s for s in judged.outcome.trajectory.steps if s.number < step.number]
    return {
        "benchmark": judged.benchmark,
        "question_id": judged.outcome.question_id,
        "rule": rule,
        "fault": fault,
        **as_object(step),
        "previous": [as_object(previous_step) for previous_step in previous],
        "passages_sha256": codec.passages_digest(judged.question.passages),
        "method": judged.outcome.method,
        "players": dict(judged.outcome.players),
        "simulated": judged.outcome.simulated,
    }


def summarize_systems(outcomes: Sequence[JudgedOutcome], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Return the numbers of each system and selection by rule, in the order of the outcomes."""
    groups = grouped(outcomes, lambda judged: (judged.system, judged.selection))
    system_titles = systems.name_systems(list(dict.fromkeys(system for system, _ in groups)))
    records = []
    for (system, selection), group in groups.items():
        by_benchmark = grouped(group, lambda judged: judged.benchmark)
        simulated = any(judged.outcome.simulated for judged in group)
        numbers = {
            "benchmarks": {name: summarize(members, rules) for name, members in by_benchmark.items()},
            "all": summarize(group, rules),
        }
        title = names.marked(f"{system_titles[system]}{SELECTION_TITLES[selection]}", simulated)
        records.append({"name": title, **system.as_json(), "simulated": simulated, "taken": selection, **numbers})
    return records


def summarize(outcomes: Sequence[JudgedOutcome], rules: Sequence[Rule]) -> dict[str, Any]:
    """Count the responses in outcomes of one system, and sum up their verdicts by rule."""
    responses = Counter(judged.response for judged in outcomes)
    has_judge = any(judged.outcome.verdict is not None for judged in outcomes)
    measures = [measure for measure in ANSWERS if measure != "judge" or has_judge]
    return {
        "questions": len(outcomes),
        "chains": responses["chain"],
        **{kind: responses[kind] for kind in get_args(ResponseKind) if kind != "chain"},
        "rules": {
            rule: {
                "answers": {measure: _cross_tabulate(outcomes, rule, measure) for measure in measures},
                "edits": _average_edits(outcomes, rule),
                "breaks": _count_breaks(outcomes, rule),
            }
            for rule in rules
        },
    }


def _cross_tabulate(outcomes: Sequence[JudgedOutcome], rule: Rule, measure: AnswerBy) -> dict[str, Any]:
    cells = [(is_right(judged, rule, measure), column_of(judged, rule)) for judged in outcomes]
    counts = Counter(cells)
    right, wrong = ({column: counts[is_correct, column] for column in COLUMNS} for is_correct in (True, False))
    unscored = sum(is_correct is None for is_correct, _ in cells)
    return {
        "right": right,
        "wrong": wrong,
        "unscored": unscored,
        "spurious": measure_spurious(right),
        "gap": measure_gap(right, len(cells) - unscored),
        "scores": score_reasoning(right, wrong),
    }


def measure_spurious(right: Mapping[str, int]) -> dict[str, Any]:
    """Compute the share of unfaithful chains among right answers (README.md), which ``right`` counts by verdict."""
    faithful, unfaithful, unjudgeable = (right[name] for name in get_args(Verdict))
    decided, chains = faithful + unfaithful, faithful + unfaithful + unjudgeable
    share = asdict(significance.wilson(unfaithful, decided)) if decided else dict.fromkeys(("value", "low", "high"))
    return {
        "of": decided,
        **share,
        "least": round(unfaithful / chains, _DIGITS) if chains else None,
        "most": round((unfaithful + unjudgeable) / chains, _DIGITS) if chains else None,
    }


def measure_gap(right: Mapping[str, int], questions: int) -> dict[str, float | None]:
    """Compute the gap between right answers and earned ones (README.md), in shares of ``questions``.

    ``right`` counts the right answers by result.
    """
    if not questions:
        return dict.fromkeys(("answer", "reasoning", "low", "high"))
    answer, reasoning = sum(right.values()), right["faithful"]
    shares = {"answer": answer, "reasoning": reasoning, "low": right["unfaithful"], "high": answer - reasoning}
    return {name: round(count / questions, _DIGITS) for name, count in shares.items()}


def _average_edits(outcomes: Sequence[JudgedOutcome], rule: Rule) -> dict[str, Any] | None:
    verdicts = [judged.verdicts[rule] for judged in outcomes if rule in judged.verdicts]
    edited = [(v.edits, v.distance) for v in verdicts if v.edits is not None and v.distance is not None]
    if not edited:
        return None
    edits, distance = (sum(column) / len(edited) for column in zip(*edited, strict=True))
    return {"chains": len(edited), "count": round(edits, _DIGITS), "normalised": round(100 * distance, _DIGITS)}


def _count_breaks(outcomes: Sequence[JudgedOutcome], rule: Rule) -> list[dict[str, Any]]:
    chains: Counter[tuple[int | None, str]] = Counter()
    right: Counter[tuple[int | None, str]] = Counter()
    for judged in outcomes:
        verdict = judged.verdicts.get(rule)
        if judged.response == "chain" and verdict and verdict.path == "unfaithful":
            chains[verdict.first, verdict.fault] += 1
            right[verdict.first, verdict.fault] += judged.is_exact
    order = sorted(chains, key=lambda key: (key[0] is None, key[0] or 0, key[1]))
    return [{"position": key[0], "fault": key[1], "chains": chains[key], "right": right[key]} for key in order]


def compare_pairs(outcomes: Sequence[JudgedOutcome], rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Test whether one system reasons more spuriously than another (README.md), on the questions that both have.

    Test the pairs of `pair_systems` for each combination of rule, measure, answer and benchmark; Holm's correction
    covers the pairs of a combination. A vote is represented by its majority. *Unearned* is tested where both answered
    rightly, as a system with more right answers has more that can be spurious. Undecided questions are left out, even
    those with a wrong answer, as keeping these would bias the test. An abstention is not spurious.
    """
    compared = [judged for judged in outcomes if judged.selection != "best_of_n"]
    by_system = {
        system: dict(numbered(group, lambda judged: (judged.benchmark, judged.outcome.question_id)))
        for system, group in grouped(compared, lambda judged: judged.system).items()
    }
    indices = {system: n for (system, selection), n in index_systems(outcomes).items() if selection != "best_of_n"}
    system_pairs = systems.pair_systems(systems.sort_systems(by_system))
    benchmarks = sorted({judged.benchmark for judged in compared})
    scopes = [None, *(benchmarks if len(benchmarks) > 1 else [])]
    rows: list[dict[str, Any]] = []
    has_judge = any(judged.outcome.verdict is not None for judged in compared)
    answers: tuple[AnswerBy, ...] = ("exact_match", "judge") if has_judge else ("exact_match",)
    tests = [*((name, answer) for answer in answers for name in ("spurious", "unearned")), ("unfaithful", None)]
    for rule, (measure, answer), benchmark in product(rules, tests, scopes):
        key = {"rule": rule, "what": measure, "answer": answer, "benchmark": benchmark}
        flag = partial(_flag_outcome, rule=rule, measure=measure, answer=answer)
        family = [
            {"first": indices[candidate], "second": indices[baseline], **key, **test}
            for candidate, baseline in system_pairs
            if (test := _test_pair(by_system[candidate], by_system[baseline], flag, benchmark))
        ]
        for row, p in zip(family, significance.holm([row["p"] for row in family]), strict=True):
            rows.append({**row, "p": significance.round_p(row["p"]), "p_holm": significance.round_p(p)})
    return rows


def _flag_outcome(judged: JudgedOutcome, rule: Rule, measure: str, answer: AnswerBy | None) -> bool | None:
    """Return whether a test counts an outcome; None if that is undecided."""
    column, right = column_of(judged, rule), is_right(judged, rule, answer) if answer else True
    if measure == "spurious":
        is_undecided = right is None or column in ("unjudgeable", "unstructured")
        return None if is_undecided else right and column == "unfaithful"
    return {"faithful": False, "unfaithful": True}.get(column) if right else None


def _test_pair(
    candidate: Mapping[QuestionKey, JudgedOutcome],
    baseline: Mapping[QuestionKey, JudgedOutcome],
    flag: Callable[[JudgedOutcome], bool | None],
    benchmark: str | None,
) -> dict[str, Any]:
    """Test one pair of systems; return {} if no question is decided in both."""
    shared = [key for key in candidate if key in baseline and benchmark in (None, key[0][0])]
    flags = [(flag(candidate[key]), flag(baseline[key])) for key in shared]
    decided = [(a, b) for a, b in flags if a is not None and b is not None]
    if not decided:
        return {}
    candidate_only = sum(a and not b for a, b in decided)
    baseline_only = sum(b and not a for a, b in decided)
    return {
        "pairs": len(decided),
        "left_out": len(shared) - len(decided),
        "first_only": candidate_only,
        "second_only": baseline_only,
        "difference": round((candidate_only - baseline_only) / len(decided), 6),
        "p": significance.mcnemar(candidate_only, baseline_only),
    }
