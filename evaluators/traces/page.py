"""What an evaluation's loop did, question by question, as one HTML page that needs nothing else.

Everything a run wrote down is data to the page: it is carried as JSON that cannot end its element,
shown as text alone, and a content security policy lets nothing run but the page's own script and
nothing be fetched at all.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evaluators.traces.data import traces
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES

PAGE = "traces.html"
_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("elements", "filters", "questions", "totals", "details", "page")
# All of these are mere spelling in JSON; raw, the first three can end or change a script element.
_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def write(folder: Path, output: Path) -> int:
    """Write the page on an evaluation's folder to ``output``; returns the trajectories in it.

    Same folder, same bytes. Raises ``UserError`` for a folder without an evaluation, for a line
    that can't be read, and for a file that can't be written or holds the evaluation itself.
    """
    if output.resolve() in {(folder / f).resolve() for f in (TRAJECTORIES, QUESTIONS, RESULTS)}:
        raise UserError(f"{output}: is a file of the evaluation itself; choose another --output")
    found = traces(folder)
    # What a model said may hold half of a surrogate pair, for which this writes JSON's own escape.
    page = html(found).encode("utf-8", "backslashreplace")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, page)
    except OSError as error:
        raise UserError(
            f"{output}: cannot be written ({error.strerror}); choose another --output"
        ) from None
    return len(found["runs"])


def html(found: Mapping[str, Any]) -> str:
    """The page on what `traces` found."""
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = "\n".join((_TEMPLATES / f"{n}.js").read_text(encoding="utf-8") for n in _SCRIPTS)
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, autoescape=True
    )
    return environment.get_template("page.html.jinja").render(
        name=found["name"],
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        data=Markup(embedded(found)),
    )


def embedded(data: object) -> str:
    r"""JSON that can stand in an HTML script element, whatever it holds.

    >>> print(embedded(["</script><!--"]))
    ["\u003c/script\u003e\u003c!--"]
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_ESCAPES)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
