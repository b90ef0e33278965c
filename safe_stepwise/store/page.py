"""A page in one file, opened from disk: data as JSON, its own script, and nothing else.

Whatever the data hold (passages, what models said) is carried as JSON that cannot end its element
and shown as text alone (``dom.js``), and a content security policy lets nothing run but the page's
own script and nothing be fetched at all.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from safe_stepwise.errors import UserError
from safe_stepwise.store.files import report_unwritable, write_atomically
from safe_stepwise.store.tables import environment

_SHARED = Path(__file__).parent / "templates"
# JSON may escape all of these; raw, the first three can end or change a script element.
_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def render_page(
    templates: Path,
    name: str,
    scripts: Sequence[str],
    data: object,
    styles: Sequence[str] = ("style",),
    layout: str = "page",
    **values: object,
) -> str:
    """Render the page whose ``LAYOUT.html.jinja``, ``styles`` (NAME.css) and ``scripts`` (NAME.js) lie in a folder.

    Files that the folder lacks are those that pages share: ``list`` is a list with filters beside the details.
    ``name`` is the page's subject; the scripts get ``data`` as ``dom.js`` parsed it. Without scripts the page runs
    none. ``values`` are for the layout.
    """

    def join(files: Sequence[str]) -> str:
        paths = (next(path for f in (templates, _SHARED) if (path := f / file).exists()) for file in files)
        return "\n".join(path.read_text(encoding="utf-8") for path in paths)

    style = "\n".join([(_SHARED / "style.css").read_text(encoding="utf-8"), join([f"{n}.css" for n in styles])])
    script = join(["dom.js", *(f"{n}.js" for n in scripts)]) if scripts else ""
    return (
        environment((templates, _SHARED), is_html=True)
        .get_template(f"{layout}.html.jinja")
        .render(
            name=name,
            style=Markup(style),
            style_hash=_hash(style),
            script=Markup(script),
            script_hash=_hash(script),
            data=Markup(embedded(data)),
            **values,
        )
    )


def check_output(output: Path, *inputs: Path) -> None:
    """Raise ``UserError`` for an output that is a folder, or one of the files that a command reads and would lose."""
    if output.is_dir():
        raise UserError(f"{output}: cannot be written (it is a folder); give the name of a file in it")
    if any(output.resolve() == f.resolve() or (f.exists() and output.exists() and output.samefile(f)) for f in inputs):
        raise UserError(f"{output}: is what the command reads, which would be lost; choose another name")


def write_page(output: Path, html: str) -> None:
    """Write a page; raises ``UserError`` for a file that can't be written."""
    # A model's text may hold half of a surrogate pair, for which this writes JSON's escape.
    write_file(output, html.encode("utf-8", "backslashreplace"))


def write_file(output: Path, content: bytes) -> None:
    """Write a file that an option names; raises ``UserError`` for a file that can't be written."""
    with report_unwritable(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(output, content)


def embedded(data: object) -> str:
    r"""Return data as JSON that is safe in an HTML script element, whatever it holds.

    >>> print(embedded(["</script><!--"]))
    ["\u003c/script\u003e\u003c!--"]
    """
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
