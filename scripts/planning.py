"""What a release will cost: calls and tokens of each part, and GPU hours at a given speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from builders.benchmarks import BENCHMARKS
from builders.verified.collect import Build, questions
from builders.verified.estimate import estimate
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise.errors import UserError
from scripts.cli import table
from scripts.manifest import Manifest
from trainers.config import Recipe

EXPECTATIONS = Path(__file__).with_name("releases") / "expectations.yaml"
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one GPU: prompts computed, replies written, rows trained on."""

    prompt: float
    reply: float
    train: float


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a release; ``computed`` are the prompt tokens that no prefix cache holds."""

    name: str
    rows: int
    calls: int = 0
    prompt: int = 0
    computed: int = 0
    reply: int = 0
    trained: int = 0

    def hours(self, speed: Speed) -> float:
        """GPU hours."""
        seconds = self.computed / speed.prompt + self.reply / speed.reply
        return (seconds + self.trained / speed.train) / _SECONDS


def assumed_speed() -> Speed:
    """The speeds to go by if none is given; they are assumptions, and the report says so."""
    return Speed(**_expectations()["gpu"])


def foreseen(manifest: Manifest, plans: list[Build], recipe: Recipe | None) -> list[Part]:
    """What each part of a release has to expect, at most where prompts depend on replies.

    ``plans`` are its builds, in order; rows of an input that is not at hand are taken from
    ``expected_rows``. Raises ``UserError`` where neither is there.
    """
    known = _expectations()
    rows = [_rows(manifest, number, plan) for number, plan in enumerate(plans)]
    parts = [_verification(plan, number) for plan, number in zip(plans, rows, strict=True)]
    if (steps := manifest.verifier_steps) is not None:
        parts.append(_steps(manifest))
        if recipe is not None:
            learnt = round(steps.composition.rows * (1 - steps.test_share))
            learnt = min(learnt, recipe.filters.rows or learnt)
            trained = round(learnt * recipe.epochs * known["training"]["tokens_per_row"])
            parts.append(Part(f"adapter of {recipe.base_model}", learnt, trained=trained))
    validation = [n for plan, n in zip(plans, rows, strict=True) if plan.split == "validation"]
    return parts + _evaluation(manifest, validation, known["evaluation"])


def told(parts: list[Part], speed: Speed) -> str:
    """The parts as a table, with their sum."""
    header = ("part", "rows", "calls", "prompt tokens", "of them computed", "reply tokens")
    lines = [
        (
            p.name,
            p.rows,
            p.calls,
            p.prompt,
            p.computed,
            p.reply,
            p.trained,
            f"{p.hours(speed):,.1f}",
        )
        for p in parts
    ]
    sums = [sum(line[i] for line in lines) for i in range(2, 7)]  # type: ignore[misc]
    total = ("total", "", *sums, f"{sum(p.hours(speed) for p in parts):,.1f}")
    return (
        f"{table([(*header, 'trained on', 'GPU hours'), *lines, total])}\n\n"
        "Calls and tokens are upper bounds where a model verifies, expectations elsewhere; GPU "
        f"hours are those at {speed.prompt:,.0f} prompt, {speed.reply:,.0f} reply and "
        f"{speed.train:,.0f} trained tokens a second of one GPU (--gpu-prompt, --gpu-reply, "
        "--gpu-train)."
    )


def lacking(manifest: Manifest, plans: list[Build]) -> list[str]:
    """What the release can't be made without and is not here, a line each."""
    owed = [f"{plan.source} is not here" for plan in plans if not _at_hand(plan)]
    unmined = no_refined(manifest)
    return owed if unmined is None else [*owed, unmined]


def no_refined(manifest: Manifest) -> str | None:
    """What to do about refined rows that come from no file; None if there are none such."""
    steps = manifest.verifier_steps
    if steps is None or not steps.composition.refined or steps.refined_from is not None:
        return None
    return (
        f"verifier_steps.refined: {steps.composition.refined} rows come from no file; name it "
        "as refined_from, or make the release with refined: 0 first and mine them with "
        "scripts.refine_verifier_steps"
    )


def _verification(plan: Build, rows: int) -> Part:
    name, teacher = f"verify {plan.benchmark} {plan.split}", plan.teacher
    if not isinstance(teacher, LLMTeachers):
        return Part(name, rows)
    if _at_hand(plan):
        work = estimate(questions(plan), teacher).values()
        calls, prompt, reply = (
            sum(getattr(of, what) for of in work) for what in ("calls", "prompt", "completion")
        )
        return Part(name, rows, calls, prompt, prompt, reply)
    return _times(name, rows, BENCHMARKS[plan.benchmark].EXPECTED["verification"])


def _rows(manifest: Manifest, number: int, plan: Build) -> int:
    entry = manifest.builds[number]
    if _at_hand(plan):
        return sum(1 for _ in questions(plan))
    if entry.expected_rows is None:
        raise UserError(
            f"{manifest.path}: builds[{number}].input: {entry.input} is not here; bring it, or say "
            "how many rows it has with expected_rows"
        )
    return min(entry.expected_rows, entry.limit or entry.expected_rows)


def _at_hand(plan: Build) -> bool:
    return plan.benchmark == "synthetic" or Path(plan.source).exists()


def _steps(manifest: Manifest) -> Part:
    entry = manifest.verifier_steps
    assert entry is not None
    composition, benchmarks = entry.composition, sorted({b.benchmark for b in manifest.builds})
    if entry.teacher == "annotations":
        return Part("verifier set", composition.rows)
    asked = dict.fromkeys(
        benchmarks, (composition.questions or composition.rows) // len(benchmarks)
    )
    asked |= {name: number for name, (_, number) in (composition.per_benchmark or {}).items()}
    asked = {name: entry.pool or number for name, number in asked.items()}
    parts = [
        _times(name, number, BENCHMARKS[name].EXPECTED["verifier_steps"])
        for name, number in asked.items()
    ]
    sums = {f: sum(getattr(p, f) for p in parts) for f in ("calls", "prompt", "computed", "reply")}
    return Part("verifier set", composition.rows, **sums)


def _evaluation(manifest: Manifest, rows: list[int], known: Mapping[str, Any]) -> list[Part]:
    """What the loop takes; ``rows`` are those of each validation split."""
    entry = manifest.evaluation
    if entry is None:
        return []
    most = min(manifest.evaluation_size, entry.limit or manifest.evaluation_size)
    number = sum(min(of_split, most) for of_split in rows)
    parts = [
        _asked(entry.generator, f"evaluate {method}", number, known[method])
        for method in entry.methods
    ]
    if entry.judge is not None:
        parts.append(_asked(entry.judge, "judge", number * len(entry.methods), known["judge"]))
    return parts


def _asked(spec: str, name: str, rows: int, one: Mapping[str, float]) -> Part:
    """What one engine is asked; nothing if no model stands behind it."""
    return Part(name, rows) if spec.startswith(("symbolic", "mock")) else _times(name, rows, one)


def _times(name: str, rows: int, one: Mapping[str, float]) -> Part:
    """``rows`` times what one row takes."""
    one = {"computed": one["prompt"], **one}
    return Part(name, rows, **{what: round(rows * number) for what, number in one.items()})


def _expectations() -> Any:
    return yaml.safe_load(EXPECTATIONS.read_text(encoding="utf-8"))
