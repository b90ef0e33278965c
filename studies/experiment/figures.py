"""Draw the report's figures as PNG: same numbers, same bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from safe_stepwise.store.figures import png
from studies.experiment.experiment import CHANCE, CHECKER, LEARNED, NAMES, Arm, Record

_COLORS = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#777777", "#ccbb44")
_ARM_COLORS = dict(zip((*NAMES.values(), LEARNED, CHECKER, CHANCE), _COLORS, strict=False))
"""An arm has one color in every figure."""


def arms_figure(arms: Sequence[Arm]) -> bytes:
    """Draw exact match of each arm with its interval."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for row, arm in enumerate(arms):
            em = arm.em
            error = [[100 * (em.value - em.low)], [100 * (em.high - em.value)]]
            color = _ARM_COLORS.get(arm.name, _COLORS[-1])
            axes.barh(row, 100 * em.value, xerr=error, color=color, ecolor="#333333", capsize=3)
        axes.set_yticks(range(len(arms)), [arm.label for arm in arms])
        axes.invert_yaxis()
        axes.set_xlabel("exact match, % (95% interval)")

    return png(draw, (7.0, 0.6 * len(arms) + 1.0))


def retries_figure(arms: Sequence[Arm], plain: Arm) -> bytes:
    """Draw exact match by the most retries: a line for each verifier, and one without verification."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for name in dict.fromkeys(arm.name for arm in arms):
            line = sorted((a for a in arms if a.name == name), key=lambda arm: arm.retries)
            numbers = [arm.retries for arm in line]
            color, values = _ARM_COLORS.get(name, _COLORS[-1]), [100 * a.em.value for a in line]
            axes.plot(numbers, values, "o-", label=line[0].label, color=color)
            bounds = [[100 * getattr(a.em, end) for a in line] for end in ("low", "high")]
            axes.fill_between(numbers, *bounds, color=color, alpha=0.15)
        level = 100 * plain.em.value
        axes.axhline(level, color=_ARM_COLORS[plain.name], linestyle="--", label=plain.label)
        axes.set_xticks(sorted({arm.retries for arm in arms}))
        axes.set_xlabel("most retries, N")
        axes.set_ylabel("exact match, %")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)

    return png(draw, (6.0, 3.6))


def curves_figure(trainings: Mapping[str, Record]) -> bytes:
    """Draw the loss of each training, step by step."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for index, (name, record) in enumerate(trainings.items()):
            points = record["curve"]
            steps, losses = [p["step"] for p in points], [p["loss"] for p in points]
            axes.plot(steps, losses, label=name, color=_COLORS[index % len(_COLORS)], linewidth=0.9)
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")  # no text here is read as mathematics
        axes.legend(fontsize=8)

    return png(draw, (7.0, 3.6))
