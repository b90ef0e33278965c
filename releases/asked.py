"""What evaluations will cost: how often engines are asked, by method and options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from releases.evaluations import OWN_ADAPTER, EvaluationEntry, Setting
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.limits import retries_of
from safe_stepwise.methods.options import option_values
from safe_stepwise.records import canonical_json

_SECONDS = 3600
_COUNTED = ("calls", "prompt", "computed", "reply")
One = Mapping[str, float]
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
    part: str = "datasets"
    """Of the release, to which this belongs."""

    def hours(self, speed: Speed) -> float:
        """GPU hours."""
        seconds = self.computed / speed.prompt + self.reply / speed.reply
        return (seconds + self.trained / speed.train) / _SECONDS


def evaluated(
    entries: Mapping[str, EvaluationEntry],
    samples: Sequence[int],
    adapters: Mapping[str, Sequence[str]],
    known: Mapping[str, Any],
) -> list[Cost]:
    """What the evaluations of parts take, method by method, and the judge of each.

    ``samples`` are the sizes of the evaluation samples; ``adapters`` are those that a part trains,
    each of which is evaluated; ``known`` is what a question takes. What an earlier part asks in the
    same words is asked there, and cached.
    """
    asked: dict[object, int] = {}
    costs: list[Cost] = []
    for part, entry in entries.items():
        questions = sum(min(size, entry.limit or size) for size in samples)
        methods = {name: Cost(f"evaluate {name}", 0, part=part) for name in entry.methods}
        judged = 0
        for adapter in adapters.get(part) or ("",):
            for setting in entry.settings:
                own = f"{part}/{adapter}" if adapter else OWN_ADAPTER
                key = _key(setting, own)
                owed = max(0, questions - asked.get(key, 0))
                asked[key] = max(questions, asked.get(key, 0))
                one = _question(setting, known)
                cost = asking(setting.generator, f"evaluate {setting.method}", owed, one)
                methods[setting.method] = _plus(methods[setting.method], cost)
                owed = max(0, questions - asked.get((key, entry.judge), 0))
                asked[key, entry.judge] = questions
                judged += owed
        costs += methods.values()
        if entry.judge is not None:
            costs.append(replace(asking(entry.judge, "judge", judged, known["judge"]), part=part))
    return costs


def asking(spec: str, name: str, rows: int, one: One) -> Cost:
    """What one engine is asked; nothing if no model stands behind it."""
    return Cost(name, rows) if spec.startswith(("symbolic", "mock")) else times(name, rows, one)


def times(name: str, rows: int, one: One) -> Cost:
    """``rows`` times what one row takes."""
    one = {"computed": one["prompt"], **one}
    calls, prompt, computed, reply = (round(rows * one[what]) for what in _COUNTED)
    return Cost(name, rows, calls, prompt, computed, reply)


def _plus(cost: Cost, other: Cost) -> Cost:
    sums = {what: getattr(cost, what) + getattr(other, what) for what in ("rows", *_COUNTED)}
    return replace(cost, **sums)


def _key(setting: Setting, adapter: str) -> object:
    """What a setting asks, whoever else asks it; its number of questions aside."""
    options = options_type(METHODS[setting.method])(**dict(setting.options))
    players = (setting.generator, setting.verifier or "")
    named = tuple(spec.replace(OWN_ADAPTER, adapter) for spec in players)
    how = canonical_json(option_values(options)), setting.gold, setting.examples
    return setting.method, named, *how


def _question(setting: Setting, known: Mapping[str, Any]) -> One:
    """What one question takes, by its method, its retries, its votes (which share a prompt)."""
    method = METHODS[setting.method]
    _, corpus = setting.gold
    name = "searching" if corpus and setting.verifier is not None else method.name
    one: One = known.get(name, known["other"])
    calls: Mapping[int, float] = known.get(name, {}).get("calls_by_retries", {})
    options = dict(setting.options)
    if not calls or "max_retries" not in options:
        votes = options.get("samples", 1)
        times = {what: 1 if what == "computed" else votes for what in _COUNTED}
        return {what: one[what] * times[what] for what in _COUNTED if what in one}
    share = _between(calls, retries_of(options)) / one["calls"]
    return {what: one[what] * share for what in _COUNTED if what in one}


def _between(known: Mapping[int, float], at: int) -> float:
    """A number between those known, or beyond the last two, in a straight line.

    >>> _between({0: 10, 5: 60}, 3), _between({0: 9, 3: 14, 5: 15}, 7)
    (40.0, 16.0)
    """
    steps = list(pairwise(sorted(known)))
    low, high = next((pair for pair in steps if at <= pair[1]), steps[-1])
    return known[low] + (known[high] - known[low]) * (at - low) / (high - low)
