"""No hack of the checker's reward pays, and honest variations of ideal trajectories do."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from builders.synthetic import generate, parse_spec
from builders.verified.lookup import verified_rows
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from examples.grpo import trajectories
from safe_stepwise.checking.rewards import judge_trajectory
from tests.safe_stepwise.checking.reward_hacks import Example, numbered

MOST_PAID = 0.25
LEAST_PAID = 0.9
"""Mean reward of a kind of honest variation: those with an unread step are paid less than in full."""
BENCHMARKS = {"2wikimultihopqa": 6, "musique": 4, "hotpotqa": 4}


def real_examples(folder: Path) -> list[Example]:
    """Return examples of the benchmarks' questions."""
    examples: list[Example] = []
    for benchmark, number in BENCHMARKS.items():
        rows = verified_rows(benchmark, folder / f"{benchmark}_dev.jsonl", "validation")
        sound = trajectories(pair for pair in rows if pair[1].noise_type == "none")
        examples += [Example(each) for each, _ in zip(sound, range(number), strict=False)]
    return examples


def synthetic_examples(number: int) -> list[Example]:
    """Return examples of questions about the synthetic world."""
    made = generate(parse_spec(f"rows={number},seed=77,noise=0.0,writer=plain"), 0, number, "train")
    pairs = ((question, asyncio.run(verify(question, AnnotationsTeacher()))) for question, _ in made)
    return [Example(each) for each in trajectories(pairs)]


def check_hacks(examples: Sequence[Example], most: float) -> None:
    """Check that at most a share of all hacks pays, and that every kind has been tried."""
    paid: dict[str, list[bool]] = defaultdict(list)
    for example in examples:
        for hack in example.hacks():
            judged = judge_trajectory(example.checker, numbered(hack.steps))
            step_pays = hack.place is not None and judged.labels[hack.place : hack.place + 1] == ("Correct",)
            paid[hack.kind].append(judged.reward > MOST_PAID or step_pays)
    shares = {kind: fmean(pays) for kind, pays in paid.items()}
    assert len(shares) > 40
    assert fmean(pays for kind in paid.values() for pays in kind) <= most, shares
    assert max(shares.values()) <= 0.2, shares


@pytest.mark.parametrize("number", [12])
def test_hacks_of_synthetic_questions_do_not_pay(number: int) -> None:
    check_hacks(synthetic_examples(number), 0.02)


def test_hacks_of_real_questions_do_not_pay(real_data: Path) -> None:
    check_hacks(real_examples(real_data), 0.02)


def test_honest_variations_pay(real_data: Path) -> None:
    rewards: dict[str, list[float]] = defaultdict(list)
    for example in [*real_examples(real_data), *synthetic_examples(12)]:
        for kind, text, checked in example.variations():
            rewards[kind].append(judge_trajectory(checked.checker, text).reward)
    means = {kind: fmean(values) for kind, values in rewards.items()}
    assert len(means) >= 9
    assert min(means.values()) >= LEAST_PAID, means
    assert fmean(value for values in rewards.values() for value in values) >= 0.95
