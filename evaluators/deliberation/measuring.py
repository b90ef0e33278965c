"""The measures of a run: scores by every rule and by hop, its proposals, calls and tokens.

All shares are 0 to 1, over all questions: a failed or unanswered question counts as wrong.
The 95% intervals are percentiles of a bootstrap over questions; contenders are compared question by
question, by a test of sign flips, the p-values adjusted for their number (Holm).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evaluators.comparison import significance
from evaluators.comparison.significance import Matrix, holm, interval
from evaluators.deliberation import FIRST_PATH, FOLLOW, PROPOSE, proposing
from evaluators.deliberation.questions import GraphQuestion
from evaluators.deliberation.scorers import HEADLINE, METRICS, SCORERS, AnswerScore
from evaluators.outcomes import grouped
from safe_stepwise.methods import deliberation
from safe_stepwise.records import FAILED, Attempt, Trajectory, Usage

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class ScoredCase:
    """A question with its trajectory, its answers, and their scores by rule."""

    case: GraphQuestion
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


Answered = Sequence[ScoredCase]


def score_case(case: GraphQuestion, trajectory: Trajectory) -> ScoredCase:
    """Score a question's answers by every rule; a failed question gets 0."""
    answers, gold = answers_of(trajectory), case.question.answers
    scores = {name: rule(answers, gold) for name, rule in SCORERS.items()}
    if trajectory.stop_reason == FAILED:
        nothing = {n: AnswerScore(0.0, 0.0, None if s.f1 is None else 0.0) for n, s in scores.items()}
        return ScoredCase(case, trajectory, (), nothing)
    return ScoredCase(case, trajectory, answers, scores)


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Return the answers, the best first; none for a failed question."""
    if trajectory.method != FIRST_PATH:
        return deliberation.answers_of(trajectory)
    followed = (a.read["answers"] for a in trajectory.attempts if a.state == FOLLOW and a.accepted)
    return tuple(next(followed, ()))


def measure(answered: Answered, seed: int) -> dict[str, Any]:
    """Compute all measures of a run, and under ``by_hop`` those of each number of hops."""
    by_hops = sorted(grouped(answered, lambda answer: answer.case.question.hops).items())
    by_hop = {str(hops): _measures(group, seed) for hops, group in by_hops if hops}
    return {**_measures(answered, seed), "by_hop": by_hop}


def _measures(answered: Answered, seed: int) -> dict[str, Any]:
    matrix = _matrix(answered)
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
        "paths": _proposals(answered),
        "cost": _cost(answered),
    }


def _matrix(answered: Answered) -> Matrix:
    scores = [asdict(case.scores[HEADLINE]) for case in answered]
    return np.array([[score[name] for name in METRICS] for score in scores], dtype=np.float64)


def _proposals(answered: Answered) -> dict[str, Any]:
    """Compute the shares of executable and of gold paths, among all proposals and each topic's first.

    Unreadable and failed replies, and topics that no path leads from, are in every denominator.
    ``gold`` counts only topics with known gold paths.
    """
    proposals = [(case, a) for case in answered for a in case.proposals]
    # Each topic's first proposal: a dict filled from behind keeps it.
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
        "unreadable": outcomes.count(proposing.UNREADABLE),
        "nowhere": outcomes.count(proposing.NOWHERE),
        "failed": outcomes.count(proposing.FAILED_CALL),
        "candidates_per_topic": len(distinct) / topics if topics else 0.0,
    }


def _is_gold(answered: ScoredCase, proposal: Attempt) -> bool | None:
    gold = answered.case.gold.get(proposal.read["topic"])
    return None if gold is None else tuple(proposal.read["path"]) in gold


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _cost(answered: Answered) -> dict[str, Any]:
    """Compute calls and tokens per question by role; ``without_proposer`` is the paper's Table 5."""
    calls: dict[str, list[Usage]] = {}
    for case in answered:
        for attempt in case.trajectory.attempts:
            for role, usage in attempt.usage.items():
                calls.setdefault(role, []).append(usage)
    thinking = [usage for role, usages in calls.items() if role != proposing.PROPOSER for usage in usages]
    return {
        "by_role": {role: _per_question(usages, len(answered)) for role, usages in sorted(calls.items())},
        "without_proposer": _per_question(thinking, len(answered)),
    }


def _per_question(usages: Sequence[Usage], questions: int) -> dict[str, float]:
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


def compare_runs(runs: Mapping[str, Answered], seed: int, resamples: int = RESAMPLES) -> list[dict[str, Any]]:
    """Compare the first run with each other one: differences of means, the other minus the first."""
    (first_name, baseline), *rivals = runs.items()
    rows: list[dict[str, Any]] = []
    p_values: list[float] = []
    for name, rival in rivals:
        gains = _matrix(rival) - _matrix(baseline)
        rng = np.random.default_rng(seed)
        resampled = significance.bootstrap_means(gains, rng, resamples)
        flipped = significance.flipped_means(gains, rng, resamples)
        values = map(float, significance.column_means(gains))
        top_gains = gains[:, METRICS.index("hits_at_1")]
        for metric, value, means, flips in zip(METRICS, values, resampled.T, flipped.T, strict=True):
            p_values.append(significance.flip_test(value, flips))
            row = {"first": first_name, "second": name, "metric": metric, "difference": value}
            rows.append({**row, "interval": list(interval(value, means)), "p": p_values[-1]})
            if metric == "hits_at_1":
                rows[-1]["mcnemar_p"] = significance.mcnemar(int((top_gains > 0).sum()), int((top_gains < 0).sum()))
    return [{**row, "p_holm": p} for row, p in zip(rows, holm(p_values), strict=True)]
