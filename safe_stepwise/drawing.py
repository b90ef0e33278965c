"""Figures as PNG: same numbers, same bytes."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any


def png(draw: Callable[[Any], None], size: tuple[float, float]) -> bytes:
    """What ``draw`` puts on the axes it is given, as a PNG of ``size`` (inches at 120 dpi)."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # The defaults, whatever style the user's own matplotlibrc asks for.
    with matplotlib.rc_context(matplotlib.rcParamsDefault):
        figure = Figure(figsize=size, dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure.add_subplot())
        stream = io.BytesIO()
        figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
