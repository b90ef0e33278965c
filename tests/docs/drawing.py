"""Plain SVG that fits a phone in whatever font: few letters a line, room for wide ones."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from html import escape

WIDTH = 420
"""Of every picture, in pixels: what a phone shows of a page is hardly narrower."""
SIZE = 14
LINE = 20
WIDEST = 0.62
"""Width of a mean letter in a wide font, as a share of its height (monospaced: 0.6)."""
FONT = "Verdana, DejaVu Sans, Arial, sans-serif"
STYLE = f"""\
<style>
    text {{ font: {SIZE}px {FONT}; fill: #1f2328; }}
    .name {{ font-weight: bold; }}
    .said {{ fill: #424a53; }}
    .bad {{ fill: #ffebe9; stroke: #cf222e; }}
    .good {{ fill: #dafbe1; stroke: #1a7f37; }}
    .plain {{ fill: #f6f8fa; stroke: #8c959f; }}
    .made {{ fill: #ddf4ff; stroke: #0969da; }}
  </style>"""


def lines_of(text: str, width: float) -> list[str]:
    """A text in lines that are no wider than ``width`` pixels in a wide font."""
    return textwrap.wrap(text, int(width / (SIZE * WIDEST)))


def box(
    x: float, y: float, width: float, kind: str, texts: Iterable[tuple[str, str]], least: float = 0
) -> tuple[list[str], float]:
    """A box of texts with their classes, each wrapped to it, and its height, ``least`` at least."""
    inner: list[str] = []
    below = y + 4
    for shown, text in texts:
        size = width - 20 if shown != "name" else (width - 20) * 0.85
        for line in lines_of(text, size):
            below += LINE
            inner.append(f'<text class="{shown}" x="{x + 10:g}" y="{below - 4:g}">{escape(line)}</text>')
    height = max(below - y + 8, least)
    frame = f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'
    return [frame, *inner], height


def picture(title: str, description: str, height: float, parts: Iterable[str]) -> str:
    """A whole SVG; title and description are for those who don't see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'width="{WIDTH}" role="img" aria-labelledby="title desc">',
            f'  <title id="title">{escape(title)}</title>',
            f'  <desc id="desc">{escape(description)}</desc>',
            f"  {STYLE}",
            f'  <rect width="{WIDTH}" height="{height:g}" rx="8" fill="#ffffff"/>',
            *(f"  {part}" for part in parts),
            "</svg>\n",
        ]
    )
