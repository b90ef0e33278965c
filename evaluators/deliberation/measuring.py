"""Measure a run: scores by every rule and by number of hops, its proposals, calls and tokens.

All shares are 0 to 1, over all questions: a failed or unanswered question counts as wrong.
The 95% intervals are percentiles of a bootstrap over questions. Runs are compared question by question, by a test of
sign flips; their p-values are adjusted for the number of comparisons (Holm).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluators.comparison import significance
from evaluators.comparison.significance import Matrix, holm, interval
from evaluators.deliberation import FOLLOW, NO_REPLY, NOWHERE, PROPOSE, PROPOSER, UNREADABLE
from evaluators.deliberation.questions import Case
from evaluators.deliberation.scorers import HEADLINE, METRICS, SCORERS, AnswerScore
from evaluators.outcomes import grouped
from safe_stepwise.methods import deliberation
from safe_stepwise.methods.path_recall import RECALL
from safe_stepwise.records import FAILED, Attempt, Trajectory, Usage

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A question with its trajectory, its answers, and their scores by rule."""

    case: Case
    trajectory: Trajectory
    answers: tuple[str, ...]
    scores: Mapping[str, AnswerScore]

    @property
    def proposals(self) -> list[Attempt]:
        return [a for a in self.trajectory.attempts if a.state == PROPOSE]

    @property
    def is_cut(self) -> bool:
        """Whether a followed path led to more entities than the model saw."""
        followed = (a for a in self.trajectory.attempts if a.state == deliberation.INSTANTIATE)
        return any(attempt.read.get("cut") for attempt in followed)


Run = Sequence[ScoredCase]


def score_case(case: Case, trajectory: Trajectory) -> ScoredCase:
    """Score a question's answers by every rule; a failed question gets 0."""
    answers, gold_answers = answers_of(trajectory), case.question.answers
    scores = {name: rule(answers, gold_answers) for name, rule in SCORERS.items()}
    if trajectory.stop_reason == FAILED:
        zeros = {n: AnswerScore(0.0, 0.0, None if s.f1 is None else 0.0) for n, s in scores.items()}
        return ScoredCase(case, trajectory, (), zeros)
    return ScoredCase(case, trajectory, answers, scores)


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the answers, the best first; none for a failed question."""
    if trajectory.method == deliberation.NAME:
        return deliberation.answers_of(trajectory)
    return tuple(next((a.read["answers"] for a in trajectory.attempts if a.state in (FOLLOW, RECALL)), ()))


def measure(run: Run, seed: int) -> dict[str, Any]:
    """Compute all measures of a run, and under ``by_hop`` those of each number of hops."""
    groups = sorted(grouped(run, lambda scored: scored.case.question.hops).items())
    by_hop = {str(hops): _measure_cases(group, seed) for hops, group in groups if hops}
    return {**_measure_cases(run, seed), "by_hop": by_hop}


def _measure_cases(answered: Run, seed: int) -> dict[str, Any]:
    matrix = _score_matrix(answered)
    resampled = significance.bootstrap_means(matrix, np.random.default_rng(seed), RESAMPLES)
    means = dict(zip(METRICS, map(float, significance.column_means(matrix)), strict=True))
    spans = zip(METRICS, means.values(), resampled.T, strict=True)
    stops = Counter(case.trajectory.stop_reason for case in answered)

    def mean(rule: str, metric: str) -> float | None:
        column = [getattr(case.scores[rule], metric) for case in answered]
        return None if None in column else float(np.mean(column))

    return {
        "questions": len(answered),
        **means,
        "intervals": {name: list(interval(mean, resampled_means)) for name, mean, resampled_means in spans},
        "scorers": {name: {metric: mean(name, metric) for metric in METRICS} for name in SCORERS},
        "failed": stops[FAILED],
        "unanswered": sum(not case.answers for case in answered),
        "cut": sum(case.is_cut for case in answered),
        "without_gold": sum(not case.case.question.answers for case in answered),
        "stop_reasons": dict(sorted(stops.items())),
        "paths": _measure_proposals(answered),
        "cost": _measure_cost(answered),
    }


def _score_matrix(answered: Run) -> Matrix:
    scores = [asdict(case.scores[HEADLINE]) for case in answered]
    return np.array([[score[name] for name in METRICS] for score in scores], dtype=np.float64)


def _measure_proposals(answered: Run) -> dict[str, Any]:
    """Compute the shares of executable and of gold paths, among all proposals and each topic's first.

    Unreadable and failed replies, and topics that no path leads from, are in every denominator.
    ``gold`` counts only topics with known gold paths.
    """
    proposals = [(case, a) for case in answered for a in case.proposals]
    # Each topic's first proposal: a dict that is filled from the last one keeps it.
    firsts = [(case, {a.read["topic"]: a for a in reversed(case.proposals)}) for case in answered]
    first_proposals = [(case, a) for case, by_topic in firsts for a in by_topic.values()]
    topics = sum(len(case.case.question.topics) for case in answered)
    outcomes = [a.read["said"] for _, a in proposals]
    distinct = {(id(case), a.read["topic"], *a.read["path"]) for case, a in proposals if a.accepted}
    return {
        "proposals": len(proposals),
        "topics": topics,
        "executable": _share([a.accepted for _, a in proposals]),
        "gold": _share([g for case, a in proposals if (g := _is_gold(case, a)) is not None]),
        "first_executable": _share([a.accepted for _, a in first_proposals]),
        "first_gold": _share([g for case, a in first_proposals if (g := _is_gold(case, a)) is not None]),
        "unreadable": outcomes.count(UNREADABLE),
        "nowhere": outcomes.count(NOWHERE),
        "failed": outcomes.count(NO_REPLY),
        "candidates_per_topic": len(distinct) / topics if topics else 0.0,
    }


def _is_gold(scored: ScoredCase, proposal: Attempt) -> bool | None:
    gold_paths = scored.case.gold_paths.get(proposal.read["topic"])
    return None if gold_paths is None else tuple(proposal.read["path"]) in gold_paths


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _measure_cost(answered: Run) -> dict[str, Any]:
    """Compute calls and tokens per question by role; ``without_proposer`` is the paper's Table 5."""
    calls: dict[str, list[Usage]] = {}
    for case in answered:
        for attempt in case.trajectory.attempts:
            for role, usage in attempt.usage.items():
                calls.setdefault(role, []).append(usage)
    loop_calls = [usage for role, usages in calls.items() if role != PROPOSER for usage in usages]
    return {
        "by_role": {role: _average_usage(usages, len(answered)) for role, usages in sorted(calls.items())},
        "without_proposer": _average_usage(loop_calls, len(answered)),
    }


def _average_usage(usages: Sequence[Usage], questions: int) -> dict[str, float]:
    prompt, completion = sum(u.prompt for u in usages), sum(u.completion for u in usages)
    sums = {
        "calls": len(usages),
        "prompt_tokens": prompt,
        "cached_tokens": sum(u.cached for u in usages),
        "completion_tokens": completion,
        "tokens": prompt + completion,
        **({"thought_tokens": thought} if (thought := sum(u.thought for u in usages)) else {}),
    }
    return {name: value / questions for name, value in sums.items()}


def compare_runs(runs: Mapping[str, Run], seed: int, resamples: int = RESAMPLES) -> list[dict[str, Any]]:
    """Compare each further run with the first: differences of means, further run minus first."""
    (first_name, baseline), *rivals = runs.items()
    rows: list[dict[str, Any]] = []
    p_values: list[float] = []
    for name, rival in rivals:
        gains = _score_matrix(rival) - _score_matrix(baseline)
        rng = np.random.default_rng(seed)
        resampled = significance.bootstrap_means(gains, rng, resamples)
        flipped = significance.flipped_means(gains, rng, resamples)
        values = map(float, significance.column_means(gains))
        for metric, value, means, flips in zip(METRICS, values, resampled.T, flipped.T, strict=True):
            p_values.append(significance.flip_test(value, flips))
            row = {"first": first_name, "second": name, "metric": metric, "difference": value}
            rows.append({**row, "interval": list(interval(value, means)), "p": p_values[-1]})
    return [{**row, "p_holm": p} for row, p in zip(rows, holm(p_values), strict=True)]
