"""Render matplotlib figures as PNG or SVG, in the taxonomy's colours; a figure has the same bytes on any machine."""

import io
from collections.abc import Callable, Sequence
from typing import Any

COLORS = {
    "Procedural": "#4477aa",
    "Attribution": "#ee7733",
    "Logical": "#aa3377",
    "Final Answer": "#228833",
    "Correct": "#bbbbbb",
    "Missing Evidence": "#66ccee",
}


def text_on(color: str) -> str:
    """Choose black or white, whichever is easier to read on a colour (WCAG 2.2's relative luminance).

    >>> text_on("#4477aa"), text_on("#ee7733")
    ('white', 'black')
    """
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (((channel + 0.055) / 1.055) ** 2.4 for channel in channels)
    # At 0.179 the contrast to both is the same: (1.05 / (l + .05)) = ((l + .05) / .05).
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"


def png(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """Render a matplotlib ``Figure`` of ``size`` (inches), which ``draw`` draws on, as PNG.

    Texts appear literally: a dollar sign in a model's name opens no formula.
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
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The defaults, whatever style the user's own matplotlibrc sets.
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
    """Lay a figure out and draw it, which takes matplotlib most of a second; returns the file's bytes."""
    stream = io.BytesIO()
    figure.savefig(stream, format=form, metadata=metadata)
    return stream.getvalue()
