"""The report's figures as PNG: same numbers, same bytes."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from evaluators.experiment.arms import Arm
from evaluators.experiment.experiment import Experiment
from safe_stepwise.store.figures import png

_COLORS = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#777777", "#ccbb44")


def arms_figure(arms: Sequence[Arm]) -> bytes:
    """Exact match of each arm with its interval."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for at, arm in enumerate(arms):
            em = arm.em
            error = [[100 * (em.value - em.low)], [100 * (em.high - em.value)]]
            color = _COLORS[at % len(_COLORS)]
            axes.barh(at, 100 * em.value, xerr=error, color=color, ecolor="#333333", capsize=3)
        axes.set_yticks(range(len(arms)), [arm.name for arm in arms])
        axes.invert_yaxis()
        axes.set_xlabel("exact match, % (95% interval)")

    return png(draw, (7.0, 0.6 * len(arms) + 1.0))


def retries_figure(arms: Sequence[Arm]) -> bytes:
    """Exact match by the most retries, a line a verifier."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        named = sorted(arms, key=lambda arm: arm.name)
        for at, (name, of) in enumerate(groupby(named, key=lambda arm: arm.name)):
            line = sorted(of, key=lambda arm: arm.retries)
            numbers = [arm.retries for arm in line]
            color = _COLORS[at % len(_COLORS)]
            axes.plot(numbers, [100 * a.em.value for a in line], "o-", label=name, color=color)
            bounds = [[100 * getattr(a.em, end) for a in line] for end in ("low", "high")]
            axes.fill_between(numbers, *bounds, color=color, alpha=0.15)
        axes.set_xticks(sorted({arm.retries for arm in arms}))
        axes.set_xlabel("most retries, N")
        axes.set_ylabel("exact match, %")
        axes.legend(fontsize=8)

    return png(draw, (6.0, 3.6))


def curves_figure(curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """The loss of each training, step by step."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for at, (name, points) in enumerate(curves.items()):
            steps, losses = [p["step"] for p in points], [p["loss"] for p in points]
            axes.plot(steps, losses, label=name, color=_COLORS[at % len(_COLORS)], linewidth=0.9)
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.legend(fontsize=8)

    return png(draw, (7.0, 3.6))


def curves(experiment: Experiment) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The curves of everything that was trained, by what it is."""
    named = {"generator": experiment.generator, "verifier": experiment.own.training}
    for homes in experiment.blocks.values():
        named |= {home.place.partition("/")[2]: home.training for home in homes}
    return {name: record["curve"] for name, record in named.items() if record is not None}
