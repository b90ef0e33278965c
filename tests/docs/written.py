"""Pages and pictures of docs/ that a program writes.

`python -m tests.docs.written` draws the pictures anew; `make docs` runs it. The page of commands and the gallery are
not kept in git: mkdocs, where this module is a hook, gets them from here while it builds the site.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
if str(DOCS.parent) not in sys.path:  # mkdocs loads a hook by its path alone
    sys.path.insert(0, str(DOCS.parent))

from tests.docs import commands_page, gallery, house_picture, trace_picture  # noqa: E402

COMMANDS, GALLERY = "commands.md", "gallery.md"
WRITTEN: Mapping[str, Callable[[], str]] = {"house.svg": house_picture.svg, "trace.svg": trace_picture.svg}


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Mkdocs calls this with the files of the site, to which it adds the page of commands and the gallery."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, COMMANDS, content=commands_page.page()))
    files.append(File.generated(config, GALLERY, content=gallery.markdown()))
    for address, file in gallery.files():
        files.append(File.generated(config, address, content=file.read_bytes()))
    return files


if __name__ == "__main__":
    for name, draw in WRITTEN.items():
        (DOCS / name).write_text(draw(), encoding="utf-8")
