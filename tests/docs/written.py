"""What of docs/ a program writes: `python -m tests.docs.written`, which `make docs` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs import commands_page, house_picture, trace_picture

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page.page,
    "house.svg": house_picture.svg,
    "trace.svg": trace_picture.svg,
}

if __name__ == "__main__":
    for name, written in WRITTEN.items():
        (DOCS / name).write_text(written(), encoding="utf-8")
