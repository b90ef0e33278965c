"""Figures are the same bytes, whatever style the user's matplotlib has."""

from __future__ import annotations

from typing import Any

import matplotlib
import pytest

from safe_stepwise.store.figures import png

pytestmark = pytest.mark.usefixtures("rendered")


def line(figure: Any) -> None:
    figure.add_subplot().plot([1, 3, 2])


def test_same_numbers_same_bytes() -> None:
    first = png(line, (2.0, 1.0))
    assert first.startswith(b"\x89PNG")
    with matplotlib.rc_context({"lines.linewidth": 9, "figure.facecolor": "red"}):
        assert png(line, (2.0, 1.0)) == first
    assert png(line, (3.0, 1.0)) != first
