"""What all figures share: the taxonomy's colours, and image bytes that hang on nothing else."""

import io
from collections.abc import Callable, Mapping
from typing import Any

COLORS = {
    "Procedural": "#4477aa",
    "Attribution": "#ee7733",
    "Logical": "#aa3377",
    "Final Answer": "#228833",
    "Correct": "#bbbbbb",
    "Missing Evidence": "#66ccee",
}


def png(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """The PNG of a matplotlib ``Figure`` of ``size`` (inches) that ``draw`` draws on.

    Texts are shown as they are: a dollar sign in a model's name opens no formula.
    """
    return _drawn(draw, size, "png", {"Software": None})


def svg(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """The SVG of a figure, as `png`; its texts are drawn, so that no font is needed to see it."""
    return _drawn(draw, size, "svg", {"Date": None, "Creator": None})


def _drawn(
    draw: Callable[[Any], None],
    size: tuple[float, float],
    form: str,
    metadata: Mapping[str, str | None],
) -> bytes:
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The defaults, whatever style the user's own matplotlibrc asks for.
    salt = "safe-stepwise"  # of the names within an SVG, which would else be drawn anew
    with matplotlib.rc_context(
        {**matplotlib.rcParamsDefault, "text.parse_math": False, "svg.hashsalt": salt}
    ):
        figure = Figure(figsize=size, dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format=form, metadata=dict(metadata))
    return stream.getvalue()
