"""How well the paper's rule tells true from false, by its threshold."""

from collections.abc import Sequence
from typing import Any

from safe_stepwise.checking.faithfulness.paper import SIGMA
from safe_stepwise.store.figures import svg
from studies.calibration.tables import SIGMAS, Measured

_COLORS = ("#4477aa", "#ee7733", "#228833", "#aa3377")


def curve_figure(measured: Sequence[Measured]) -> bytes:
    """Balanced accuracy by σ as SVG, a panel a benchmark that has curves; same numbers, same bytes.

    The dashed line is the paper's σ, the point on each curve the chosen one; the house rule, which
    has no threshold, is the dotted level.
    """
    shown = [one for one in measured if one.thresholds]

    def draw(figure: Any) -> None:
        for at, one in enumerate(shown, 1):
            axes = figure.add_subplot(len(shown), 1, at)
            axes.spines[["top", "right"]].set_visible(False)
            _panel(axes, one)

    return svg(draw, (9.0, 3.0 * max(1, len(shown))))


def _panel(axes: Any, one: Measured) -> None:
    for color, threshold in zip(_COLORS, one.thresholds, strict=False):
        curve = [100 * value for value in threshold.curve]
        label = f"{threshold.judge}: {threshold.chosen:.2f} chosen"
        axes.plot(SIGMAS, curve, color=color, label=label, linewidth=1.2)
        best = 100 * threshold.curve[SIGMAS.index(threshold.chosen)]
        axes.plot([threshold.chosen], [best], marker="o", color=color)
    house = next((t.balanced for t in one.tables if t.judge == "house"), None)
    if house is not None:
        axes.axhline(100 * house, color="#777777", linestyle=":", linewidth=1, label="house")
    axes.axvline(SIGMA, color="#777777", linestyle="--", linewidth=1, label=f"the paper's {SIGMA}")
    axes.set_xlim(0, 1)
    axes.set_ylim(45, 101)
    axes.set_xlabel("threshold σ")
    axes.set_ylabel("balanced accuracy, %")
    axes.set_title(f"{one.benchmark}: true and false statements told apart", fontsize=9)
    # Beside the curves, of which it would else cover some.
    axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
