"""Renders matplotlib figures as PNG or SVG, in the taxonomy's colours, with the same bytes on any machine."""

import io
from collections.abc import Callable, Sequence
from typing import Any

from safe_stepwise.errors import require_modules

COLORS = {
    "Procedural": "#4477aa",
    "Attribution": "#ee7733",
    "Logical": "#aa3377",
    "Final Answer": "#228833",
    "Correct": "#bbbbbb",
    "Missing Evidence": "#66ccee",
}


def png(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """Render a matplotlib ``Figure`` of ``size`` (inches), which ``draw`` draws on, as PNG.

    Texts appear literally: a dollar sign in a model's name does not open a formula.
    """
    return _save(draw, size, "png", {"Software": None})


def svg(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """Render a figure as `png` does, but as SVG, with texts as outlines."""
    return _save(draw, size, "svg", {"Date": None, "Creator": None})


def panels(
    panel: Callable[[Any, Any], None],
    rows: Sequence[Sequence[Any]],
    size: tuple[float, float],
    save: Callable[[Callable[[Any], None], tuple[float, float]], bytes] = png,
    **shared: Any,
) -> bytes:
    """Render a grid of panels, each of ``size`` (inches): ``panel`` draws an item of ``rows`` on its axes.

    ``save`` is `png` or `svg`; ``shared`` are the options of matplotlib's ``subplots`` for shared axes.
    """
    columns = max(map(len, rows))

    def draw(figure: Any) -> None:
        grid = figure.subplots(len(rows), columns, squeeze=False, **shared)
        for row_axes, items in zip(grid, rows, strict=True):
            for axes in row_axes[len(items) :]:
                axes.remove()
            for axes, item in zip(row_axes, items, strict=False):
                axes.spines[["top", "right"]].set_visible(False)
                panel(axes, item)

    return save(draw, (size[0] * columns, size[1] * len(rows)))


def _save(draw: Callable[[Any], None], size: tuple[float, float], form: str, metadata: dict[str, None]) -> bytes:
    """Draw a figure with matplotlib's default style and return the file's bytes."""
    require_modules("a figure", "matplotlib", "report", "matplotlib")
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The defaults replace any style of the user's matplotlibrc.
    with matplotlib.rc_context(
        {
            **matplotlib.rcParamsDefault,
            "text.parse_math": False,
            "svg.fonttype": "path",
            "svg.hashsalt": "safe-stepwise",  # without it the names inside the file are random
        }
    ):
        figure = Figure(figsize=size, dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        return _render(figure, form, metadata)


def _render(figure: Any, form: str, metadata: dict[str, None]) -> bytes:
    """Lay out and draw a figure, which takes matplotlib most of a second; return the file's bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format=form, metadata=metadata)
    return stream.getvalue()
