"""What an evaluation's loop did, question by question, as one HTML page that needs nothing else.

Everything a run wrote down is data to the page (`pages.offline`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.pages.offline import page, write_page
from evaluators.traces.data import traces
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

PAGE = "traces.html"
MOST = 25_000_000
"""Bytes of lines that go on a page of a release; of more `view_traces` makes one, if wanted."""
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("elements", "paths", "filters", "questions", "totals", "details", "page")


def write(folder: Path, output: Path) -> int:
    """Write the page on an evaluation's folder to ``output``; returns the trajectories in it.

    Same folder, same bytes. Raises ``UserError`` for a folder without an evaluation, for a line
    that can't be read, and for a file that can't be written or holds the evaluation itself.
    """
    if output.resolve() in {(folder / f).resolve() for f in (TRAJECTORIES, QUESTIONS, RESULTS)}:
        raise UserError(f"{output}: is a file of the evaluation itself; choose another --output")
    found = traces(folder)
    write_page(output, html(found))
    return len(found["runs"])


def show(folder: Path) -> None:
    """Put the page of an evaluation beside its traces, unless they are too many for one."""
    size = sum((folder / name).stat().st_size for name in (TRAJECTORIES, QUESTIONS))
    if size <= MOST:
        write(folder, folder / PAGE)
    else:
        (folder / PAGE).unlink(missing_ok=True)


def html(found: Mapping[str, Any]) -> str:
    """The page on what `traces` found."""
    return page(_TEMPLATES, found["name"], _SCRIPTS, found)
