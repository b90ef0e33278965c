"""What a release will cost: calls and tokens of each part, and GPU hours at a given speed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from safe_stepwise.store.tables import table

_SECONDS = 3600
COUNTED = ("calls", "prompt", "computed", "reply")
Take = Mapping[str, float]
"""What one row or question takes: ``calls, prompt, reply``, and ``computed`` if that is less."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one GPU: prompts computed, replies written, rows trained on."""

    prompt: float
    reply: float
    train: float


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


@dataclass
class Forecast:
    """What stages tell each other while a release is priced."""

    build_rows: list[int] = field(default_factory=list)
    """Of each build of the manifest."""
    sources: dict[str, Any] = field(default_factory=dict)
    """Those of relation paths by their keys, as they are here."""
    questions_asked: dict[object, int] = field(default_factory=dict)
    """By what is asked: what an earlier part asks in the same words is asked there, and cached."""

    @cached_property
    def expected(self) -> Any:
        """What one row or question of each part takes."""
        return expectations()

    def ask_anew(self, key: object, questions: int) -> int:
        """How many of some questions no part before has asked."""
        before = self.questions_asked.get(key, 0)
        self.questions_asked[key] = max(before, questions)
        return max(0, questions - before)


def expectations() -> Any:
    """What one row or question of each part takes, and the speeds to go by if none is given.

    Speeds are assumptions, and the report says so.
    """
    return yaml.safe_load(Path(__file__).with_name("expectations.yaml").read_text(encoding="utf-8"))


def price_engine(spec: str, name: str, rows: int, take: Take) -> Cost:
    """What one engine is asked; nothing if no model stands behind it."""
    return Cost(name, rows) if spec.startswith(("symbolic", "mock")) else price_rows(name, rows, take)


def price_rows(name: str, rows: int, take: Take) -> Cost:
    """``rows`` times what one row takes."""
    take = {"computed": take["prompt"], **take}
    return Cost(name, rows, *(round(rows * take[what]) for what in COUNTED))


def add_costs(name: str, costs: Iterable[Cost], rows: int | None = None) -> Cost:
    """The sum of costs; ``rows`` in the place of theirs, where all are of the same rows."""
    costs = list(costs)
    total = sum(cost.rows for cost in costs) if rows is None else rows
    return Cost(name, total, *(sum(getattr(cost, what) for cost in costs) for what in (*COUNTED, "trained")))


def render_costs(parts: Sequence[tuple[str, Cost]], speed: Speed, blocks: Collection[str] = ()) -> str:
    """Costs by part as a table, with their sum, and below it what each of ``blocks`` takes."""
    header = ("prompt tokens", "of them computed", "reply tokens", "trained on", "GPU hours")
    costs = [cost for _, cost in parts]
    rows = [
        (f"{part}: {cost.name}" if part in blocks else cost.name, cost.rows, *_sums([cost], speed))
        for part, cost in parts
    ]
    tables = [table([("part", "rows", "calls", *header), *rows, ("total", "", *_sums(costs, speed))])]
    if priced := [name for name in blocks if any(part == name for part, _ in parts)]:
        by_block = {"(no block)": [cost for part, cost in parts if part not in blocks]}
        by_block |= {name: [cost for part, cost in parts if part == name] for name in priced}
        sums = [(name, *_sums(block, speed)) for name, block in by_block.items()]
        tables.append(table([("block", "calls", *header), *sums]))
        tables.append("What an earlier part asks in the same words is counted there.")
    return "\n\n".join(
        [
            *tables,
            "Calls and tokens are upper bounds where a model labels a benchmark, elsewhere what "
            "the papers' models and prompts take (small ones differ several times); GPU hours "
            f"are those at {speed.prompt:,.0f} prompt, {speed.reply:,.0f} reply and "
            f"{speed.train:,.0f} trained tokens a second of one GPU (--gpu-prompt, --gpu-reply, "
            "--gpu-train).",
        ]
    )


def _sums(costs: Sequence[Cost], speed: Speed) -> tuple[object, ...]:
    """Calls, tokens and GPU hours of parts together."""
    hours = sum(cost.hours(speed) for cost in costs)
    return (*(sum(getattr(cost, what) for cost in costs) for what in (*COUNTED, "trained")), f"{hours:,.1f}")
