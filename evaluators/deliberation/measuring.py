"""What a run is worth: scores by every rule and by hop, its proposals, calls and tokens.

All shares are 0 to 1, over all questions: one that failed, or has no answer, counts as wrong.
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
from evaluators.deliberation import FIRST_PATH, FOLLOW, PROPOSE
from evaluators.deliberation.proposing import LOST, NOWHERE, PROPOSER, UNREADABLE
from evaluators.deliberation.questions import Case
from evaluators.deliberation.scorers import METRICS, OURS, SCORERS, Score
from evaluators.outcomes import grouped
from safe_stepwise.methods import deliberation
from safe_stepwise.methods.deliberation import INSTANTIATE
from safe_stepwise.records import FAILED, Attempt, Trajectory, Usage

RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with what came of it; ``scores`` by rule."""

    case: Case
    trajectory: Trajectory
    answers: tuple[str, ...]
    scores: Mapping[str, Score]

    @property
    def proposals(self) -> list[Attempt]:
        """The attempts that propose."""
        return [a for a in self.trajectory.attempts if a.state == PROPOSE]

    @property
    def is_cut(self) -> bool:
        """Whether a path that was followed led to more entities than the model was shown."""
        followed = (a for a in self.trajectory.attempts if a.state == INSTANTIATE)
        return any(attempt.read.get("cut") for attempt in followed)


def scored(case: Case, trajectory: Trajectory) -> Answered:
    """A question's answers, scored by every rule; a failed one gets 0, whatever the rule."""
    answers, gold = answers_of(trajectory), case.question.answers
    scores = {name: rule(answers, gold) for name, rule in SCORERS.items()}
    if trajectory.stop_reason == FAILED:
        nothing = {n: Score(0.0, 0.0, None if s.f1 is None else 0.0) for n, s in scores.items()}
        return Answered(case, trajectory, (), nothing)
    return Answered(case, trajectory, answers, scores)


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """The answers, the best first; none of a question that failed."""
    if trajectory.method != FIRST_PATH:
        return deliberation.answers_of(trajectory)
    followed = (a.read["answers"] for a in trajectory.attempts if a.state == FOLLOW and a.accepted)
    return tuple(next(followed, ()))


def measured(found: Sequence[Answered], seed: int) -> dict[str, Any]:
    """All measures of a run, the same of each number of hops under ``by_hop``."""
    by_hops = sorted(grouped(found, lambda answer: answer.case.question.hops).items())
    return {**_measures(found, seed), "by_hop": {str(hops): _measures(part, seed) for hops, part in by_hops if hops}}


def _measures(found: Sequence[Answered], seed: int) -> dict[str, Any]:
    ours = _matrix(found)
    resampled = significance.bootstrap_means(ours, np.random.default_rng(seed), RESAMPLES)
    means = dict(zip(METRICS, map(float, significance.column_means(ours)), strict=True))
    spans = zip(METRICS, means.values(), resampled.T, strict=True)
    stops = Counter(one.trajectory.stop_reason for one in found)
    return {
        "questions": len(found),
        **means,
        "intervals": {name: list(interval(mean, drawn)) for name, mean, drawn in spans},
        "scorers": {name: _means([one.scores[name] for one in found]) for name in SCORERS},
        "failed": stops[FAILED],
        "unanswered": sum(not one.answers for one in found),
        "cut": sum(one.is_cut for one in found),
        "without_gold": sum(not one.case.question.answers for one in found),
        "stop_reasons": dict(sorted(stops.items())),
        "paths": _proposals(found),
        "cost": _cost(found),
    }


def _matrix(found: Sequence[Answered]) -> Matrix:
    scores = [asdict(one.scores[OURS]) for one in found]
    return np.array([[score[name] for name in METRICS] for score in scores], dtype=np.float64)


def _means(scores: Sequence[Score]) -> dict[str, float | None]:
    values = {name: [getattr(score, name) for score in scores] for name in METRICS}
    return {name: None if None in column else float(np.mean(column)) for name, column in values.items()}


def _proposals(found: Sequence[Answered]) -> dict[str, Any]:
    """Of all proposals, and of each topic's first: what can be executed, what is gold.

    Unreadable and failed replies, and topics that no path leads from, are in every denominator.
    ``gold`` is of topics whose gold paths are known alone.
    """
    every = [(one, a) for one in found for a in one.proposals]
    # Of each topic the first: what is kept last in a dict that is filled from behind.
    first = [(one, a) for one in found for a in {a.read["topic"]: a for a in reversed(one.proposals)}.values()]
    topics = sum(len(one.case.question.topics) for one in found)
    said = [a.read["said"] for _, a in every]
    distinct = {(id(one), a.read["topic"], *a.read["path"]) for one, a in every if a.accepted}
    return {
        "proposals": len(every),
        "topics": topics,
        "executable": _share([a.accepted for _, a in every]),
        "gold": _share([g for one, a in every if (g := _is_gold(one, a)) is not None]),
        "first_executable": _share([a.accepted for _, a in first]),
        "first_gold": _share([g for one, a in first if (g := _is_gold(one, a)) is not None]),
        "unreadable": said.count(UNREADABLE),
        "nowhere": said.count(NOWHERE),
        "failed": said.count(LOST),
        "candidates_per_topic": len(distinct) / topics if topics else 0.0,
    }


def _is_gold(one: Answered, proposal: Attempt) -> bool | None:
    gold = one.case.gold.get(proposal.read["topic"])
    return None if gold is None else tuple(proposal.read["path"]) in gold


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _cost(found: Sequence[Answered]) -> dict[str, Any]:
    """Calls and tokens a question by role; ``without_proposer`` is what the paper's Table 5 has."""
    calls: dict[str, list[Usage]] = {}
    for one in found:
        for attempt in one.trajectory.attempts:
            for role, usage in attempt.usage.items():
                calls.setdefault(role, []).append(usage)
    thinking = [usage for role, used in calls.items() if role != PROPOSER for usage in used]
    return {
        "by_role": {role: _per_question(used, len(found)) for role, used in sorted(calls.items())},
        "without_proposer": _per_question(thinking, len(found)),
    }


def _per_question(used: Sequence[Usage], questions: int) -> dict[str, float]:
    prompt, said = sum(u.prompt for u in used), sum(u.completion for u in used)
    sums = {
        "calls": len(used),
        "prompt_tokens": prompt,
        "cached_tokens": sum(u.cached for u in used),
        "completion_tokens": said,
        "tokens": prompt + said,
        **({"thought_tokens": thought} if (thought := sum(u.thought for u in used)) else {}),
    }
    return {name: value / questions for name, value in sums.items()}


def differences(runs: Mapping[str, Sequence[Answered]], seed: int, resamples: int = RESAMPLES) -> list[dict[str, Any]]:
    """The first run against each other one: differences of means, other less first."""
    (first, ours), *others = runs.items()
    told: list[dict[str, Any]] = []
    p_values: list[float] = []
    for name, theirs in others:
        apart = _matrix(theirs) - _matrix(ours)
        rng = np.random.default_rng(seed)
        drawn = significance.bootstrap_means(apart, rng, resamples)
        flipped = significance.flipped_means(apart, rng, resamples)
        values = map(float, significance.column_means(apart))
        top = apart[:, METRICS.index("hits_at_1")]
        for metric, value, means, flips in zip(METRICS, values, drawn.T, flipped.T, strict=True):
            p_values.append(significance.flip_test(value, flips))
            row = {"first": first, "second": name, "metric": metric, "difference": value}
            told.append({**row, "interval": list(interval(value, means)), "p": p_values[-1]})
            if metric == "hits_at_1":
                told[-1]["mcnemar_p"] = significance.mcnemar(int((top > 0).sum()), int((top < 0).sum()))
    return [{**row, "p_holm": p} for row, p in zip(told, holm(p_values), strict=True)]
