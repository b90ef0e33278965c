"""What a release will cost: calls and tokens of each part, and GPU hours at a given speed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from releases.manifest import BuildEntry, Manifest, StepsEntry
from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import table

_SECONDS = 3600
One = Mapping[str, float]
"""What one row or question takes: ``calls, prompt, reply``, and ``computed`` if that is less."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one GPU: prompts computed, replies written, rows trained on."""

    prompt: float
    reply: float
    train: float


@dataclass(frozen=True, slots=True)
class Source:
    """What there is to know of a build beforehand.

    ``rows`` is None of a source that is not here. ``asks`` is whether a model verifies, ``work``
    what that takes at most (``calls, prompt, reply``), told from the rows. ``expected`` is what its
    benchmark says of one row's ``verification`` and one question's ``verifier_steps``.
    """

    name: str
    rows: int | None
    asks: bool
    expected: Mapping[str, One]
    work: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """What the recipe says: rows at most, and how often each is trained on."""

    base_model: str
    rows: int | None
    epochs: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a part of a release takes; ``computed`` are the prompt tokens that no cache holds."""

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


def expectations() -> Any:
    """What one row or question of each part takes, and the speeds to go by if none is given.

    Speeds are assumptions, and the report says so.
    """
    return yaml.safe_load(Path(__file__).with_name("expectations.yaml").read_text(encoding="utf-8"))


def foreseen(
    manifest: Manifest, sources: Sequence[Source], training: Training | None
) -> list[Cost]:
    """What each part of a release has to expect, at most where prompts depend on replies.

    ``sources`` are those of its builds, in order; rows of one that is not here are taken from
    ``expected_rows``. Raises ``UserError`` where neither is there.
    """
    known = expectations()
    rows = [_rows(manifest, number, source) for number, source in enumerate(sources)]
    costs = [_verification(*one) for one in zip(manifest.builds, sources, rows, strict=True)]
    if (steps := manifest.verifier_steps) is not None:
        of = {b.benchmark: s.expected for b, s in zip(manifest.builds, sources, strict=True)}
        costs.append(_steps(steps, {name: of[name]["verifier_steps"] for name in sorted(of)}))
        if training is not None:
            learnt = round(steps.rows * (1 - steps.test_share))
            learnt = min(learnt, training.rows or learnt)
            trained = round(learnt * training.epochs * known["training"]["tokens_per_row"])
            costs += _refinement(manifest, rows, Cost("", learnt, trained=trained), known)
            costs.append(Cost(f"adapter of {training.base_model}", learnt, trained=trained))
    builds = zip(manifest.builds, rows, strict=True)
    validation = [number for build, number in builds if build.split == "validation"]
    return costs + _evaluation(manifest, validation, known["evaluation"])


def told(costs: Sequence[Cost], speed: Speed) -> str:
    """The costs as a table, with their sum."""
    header = ("part", "rows", "calls", "prompt tokens", "of them computed", "reply tokens")
    lines = [(c.name, c.rows, c.calls, c.prompt, c.computed, c.reply, c.trained) for c in costs]
    hours = [c.hours(speed) for c in costs]
    rows = [(*line, f"{taken:,.1f}") for line, taken in zip(lines, hours, strict=True)]
    sums = [sum(line[i] for line in lines) for i in range(2, 7)]  # type: ignore[misc]
    total = ("total", "", *sums, f"{sum(hours):,.1f}")
    return (
        f"{table([(*header, 'trained on', 'GPU hours'), *rows, total])}\n\n"
        "Calls and tokens are upper bounds where a model verifies, expectations elsewhere; GPU "
        f"hours are those at {speed.prompt:,.0f} prompt, {speed.reply:,.0f} reply and "
        f"{speed.train:,.0f} trained tokens a second of one GPU (--gpu-prompt, --gpu-reply, "
        "--gpu-train)."
    )


def lacking(manifest: Manifest, sources: Sequence[Source]) -> list[str]:
    """What the release can't be made without and is not here, a line each."""
    owed = [f"{source.name} is not here" for source in sources if source.rows is None]
    unmined = no_refined(manifest)
    return owed if unmined is None else [*owed, unmined]


def no_refined(manifest: Manifest) -> str | None:
    """What to do about refined rows that come from no file; None if there are none such."""
    steps = manifest.verifier_steps
    if steps is None or not steps.refined or steps.refined_from or steps.refinement:
        return None
    return (
        f"verifier_steps.refined: {steps.refined} rows come from no file; name it "
        "as refined_from, or say with refinement how to mine them"
    )


def _rows(manifest: Manifest, number: int, source: Source) -> int:
    if source.rows is not None:
        return source.rows
    entry = manifest.builds[number]
    if entry.expected_rows is None:
        raise UserError(
            f"{manifest.path}: builds[{number}].input: {entry.input} is not here; bring it, or say "
            "how many rows it has with expected_rows"
        )
    return min(entry.expected_rows, entry.limit or entry.expected_rows)


def _verification(entry: BuildEntry, source: Source, rows: int) -> Cost:
    name = f"verify {entry.benchmark} {entry.split}"
    if not source.asks:
        return Cost(name, rows)
    if source.work is not None:
        return Cost(name, rows, computed=source.work["prompt"], **source.work)
    return _times(name, rows, source.expected["verification"])


def _steps(entry: StepsEntry, known: Mapping[str, One]) -> Cost:
    if entry.teacher == "annotations":
        return Cost("verifier set", entry.rows)
    asked = dict.fromkeys(known, (entry.questions or entry.rows) // len(known))
    asked |= {name: number for name, (_, number) in (entry.per_benchmark or {}).items()}
    costs = [_times(name, entry.pool or number, known[name]) for name, number in asked.items()]
    sums = {f: sum(getattr(c, f) for c in costs) for f in ("calls", "prompt", "computed", "reply")}
    return Cost("verifier set", entry.rows, **sums)


def _refinement(
    manifest: Manifest, rows: Sequence[int], training: Cost, known: Mapping[str, Any]
) -> list[Cost]:
    """What rounds of refinement take, at most; ``training`` is what one training takes."""
    steps = manifest.verifier_steps
    if steps is None or (entry := steps.refinement) is None:
        return []
    pools = [n for b, n in zip(manifest.builds, rows, strict=True) if b.split == "train"]
    there = sum(min(number, steps.pool or number) for number in pools)
    questions = min(there, entry.limit or there) * entry.rounds
    name, mined = "refinement: ", entry.rows * entry.rounds
    learnt = training.rows * entry.rounds
    costs = [Cost(f"{name}train", learnt, trained=training.trained * entry.rounds)]
    one = known["evaluation"]["safe"]
    costs.append(_asked(entry.generator, f"{name}run the loop", questions, one))
    if entry.teacher != "annotations":
        costs.append(_asked(entry.teacher, f"{name}relabel", mined, known["refinement"]["relabel"]))
    return costs


def _evaluation(manifest: Manifest, rows: list[int], known: Mapping[str, One]) -> list[Cost]:
    """What the loop takes; ``rows`` are those of each validation split."""
    entry = manifest.evaluation
    if entry is None:
        return []
    most = min(manifest.evaluation_size, entry.limit or manifest.evaluation_size)
    number = sum(min(of_split, most) for of_split in rows)
    costs = [
        _asked(entry.generator, f"evaluate {method}", number, known.get(method, known["other"]))
        for method in entry.methods
    ]
    if entry.judge is not None:
        costs.append(_asked(entry.judge, "judge", number * len(entry.methods), known["judge"]))
    return costs


def _asked(spec: str, name: str, rows: int, one: One) -> Cost:
    """What one engine is asked; nothing if no model stands behind it."""
    return Cost(name, rows) if spec.startswith(("symbolic", "mock")) else _times(name, rows, one)


def _times(name: str, rows: int, one: One) -> Cost:
    """``rows`` times what one row takes."""
    one = {"computed": one["prompt"], **one}
    return Cost(name, rows, **{what: round(rows * number) for what, number in one.items()})
