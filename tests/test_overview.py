"""The drawing of the whole: every text has room, whatever the font, and is legible on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

FILE = Path(__file__).resolve().parents[1] / "docs" / "overview.svg"
SVG = "{http://www.w3.org/2000/svg}"
PHONE = 390
"""Pixels."""


def test_every_text_fits_its_box_in_the_widest_of_the_usual_fonts() -> None:
    root = ElementTree.parse(FILE).getroot()
    boxes = [
        [float(rect.get(name, 0)) for name in ("x", "y", "width", "height")]
        for rect in root.iter(f"{SVG}rect")
        if rect.get("class")
    ]
    seen = 0
    for text in root.iter(f"{SVG}text"):
        if text.get("class") == "part":
            continue
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        size = 14 if text.get("class") == "small" else 16
        width = TextPath((0, 0), text.text or "", size, prop=FontProperties(family="DejaVu Sans"))
        ((left, top, wide, high),) = [b for b in boxes if b[0] < x < b[0] + b[2] and b[1] < y < b[1] + b[3]]
        assert 1.1 * width.get_extents().width < wide, text.text
        assert abs(x - (left + wide / 2)) <= 1, text.text
        assert top + 0.9 * size < y < top + high - 0.25 * size, text.text
        seen += 1
    assert seen > 20


def test_its_letters_are_large_enough_on_a_phone() -> None:
    svg = FILE.read_text(encoding="utf-8")
    width = float(re.findall(r'viewBox="0 0 (\d+)', svg)[0])
    sizes = [float(size) for size in re.findall(r"font-size: (\d+)px", svg)]
    assert min(sizes) * PHONE / width >= 11
