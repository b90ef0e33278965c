"""docs/house.svg: the rooms of the house as their imports have them, a floor a row.

Rooms, floors and columns are those of tests/test_house.py; what a room is for is the first line of
its docstring.
"""

from __future__ import annotations

import ast
from pathlib import Path

from tests.docs.drawing import WIDTH, box, picture
from tests.test_house import ADDRESSES, MIDDLE, MODELS, NOUNS, TEXT, floors, rooms

ROOT = Path(__file__).parents[2]
GROUND = "safe_stepwise"
EDGE, GAP = 14, 8
HALF = (WIDTH - 4 * EDGE - GAP) / 2


def said_of(path: Path) -> str:
    """The first line of a module's or package's docstring, without marks of code."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    told = (ast.get_docstring(ast.parse(file.read_text("utf-8"))) or "").partition("\n")[0]
    return told.replace("``", "").rstrip(".,")


def rows() -> list[list[str]]:
    """The rooms of the ground floor from the top: one across, or one in each column."""
    heights = floors(rooms(GROUND))
    across = sorted(set(heights) - NOUNS - {*ADDRESSES, *TEXT, *MODELS[:3]}, key=lambda r: (-heights[r], r))
    columns = [[left, right] for left, right in zip(reversed(TEXT), MODELS[2::-1], strict=True)]
    above = [[room] for room in across if heights[room] > max(heights[TEXT[-1]], heights["methods"])]
    below = [[room] for room in across if [room] not in above]
    return [*above, *columns, *below]


def svg() -> str:
    """The picture."""
    parts: list[str] = []
    below = float(EDGE)
    for package in ("scripts", *MIDDLE):
        kind = "plain" if package == "scripts" else "made"
        texts = [("name", f"{package}/"), ("said", said_of(ROOT / package))]
        drawn, height = box(EDGE, below, WIDTH - 2 * EDGE, kind, texts)
        parts += drawn
        below += height + GAP
    inner, height = _ground(below)
    frame = f'<rect class="good" x="{EDGE}" y="{below:g}" width="{WIDTH - 2 * EDGE}" '
    parts += [f'{frame}height="{height:g}" rx="6"/>', *inner]
    return picture(
        "The subpackages of safe-stepwise, floor by floor",
        "Each imports only what stands below it in its column, and the nouns; the folders of the "
        "middle floor never import each other; only players join the two columns.",
        below + height + EDGE,
        parts,
    )


def _ground(top: float) -> tuple[list[str], float]:
    """The rooms of the runtime within their frame, and its height."""
    parts = [f'<text class="name" x="{2 * EDGE}" y="{top + 24:g}">{GROUND}/</text>']
    below = top + 36
    for row in rows():
        wide = WIDTH - 4 * EDGE if len(row) == 1 else HALF
        texts = [[("name", room), ("said", said_of(ROOT / GROUND / room))] for room in row]
        height = max(box(0, 0, wide, "", text)[1] for text in texts)
        for place, text in enumerate(texts):
            parts += box(2 * EDGE + place * (wide + GAP), below, wide, "plain", text, height)[0]
        below += height + GAP
    nouns = [("name", "the nouns"), ("said", ", ".join(sorted(NOUNS)))]
    drawn, height = box(2 * EDGE, below, WIDTH - 4 * EDGE, "plain", nouns)
    return [*parts, *drawn], below + height + EDGE - top
