"""Write an evaluation's report as one page of HTML beside its Markdown, with scrolling tables and all figures.

The Markdown pages are the only source. What they escape is shown as text; HTML and links in them are text, too.
"""

import base64
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markupsafe import Markup

from safe_stepwise.errors import require_modules
from safe_stepwise.store import page
from safe_stepwise.store.names import COMPARISON, METHODS_PAGE, REPORT_PAGE, SIMULATED

_SECTIONS = (COMPARISON, "ablation.md", METHODS_PAGE, "failures.md", "cost.md", "faithfulness.md")
_TEMPLATES = Path(__file__).parent / "templates"
_BANNER = re.compile(r"^> \*\*Simulated\.\*\*.*\n", re.MULTILINE)
"""What each Markdown page says of simulated players; the page of all says it once, at its top."""
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}


def write(report: Path) -> None:
    """Write `REPORT_PAGE` into a report's folder, from the Markdown pages in it; equal pages give equal bytes."""
    files = [report / name for name in _SECTIONS if (report / name).is_file()]
    texts = {file.stem: file.read_text("utf-8") for file in files}
    values = {"simulated": any(SIMULATED in text for text in texts.values()), "sections": [*_sections(report, texts)]}
    page.write_page(
        report / REPORT_PAGE, page.render_page(_TEMPLATES, "Report", (), None, ("report",), "report", **values)
    )


def _sections(folder: Path, texts: dict[str, str]) -> Iterator[tuple[str, str, Markup]]:
    """Yield each section's id, title and HTML, with headings one level lower than in Markdown."""
    require_modules("a report", "markdown-it-py", "report", "markdown_it")
    from markdown_it import MarkdownIt

    parser: Any = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "autolink"])
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    for name, text in texts.items():
        tokens, title, heading = parser.parse(_BANNER.sub("", text)), "", ""
        for token, content in zip(tokens, [*tokens[1:], None], strict=True):
            if token.type.startswith("heading"):
                token.tag = f"h{int(token.tag[1:]) + 1}"
            if token.type == "heading_open" and content:
                title = title or content.content.removesuffix(SIMULATED)
                heading = content.content
            if token.type == "table_open":
                token.meta["label"] = heading
            if token.attrs.pop("style", ""):  # the page's policy allows no styles but its own
                token.attrSet("class", "number")
        yield name, title, Markup(parser.renderer.render(tokens, parser.options, {"folder": folder}))


def _open_table(_: Any, tokens: Any, place: int, *__: Any) -> str:
    label = html.escape(tokens[place].meta["label"])
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Table: {label}"><table>\n'


def _render_image(_: Any, tokens: Any, place: int, __: Any, env: Any) -> str:
    """Render a figure of the report's folder as part of the page; anything else as its words."""
    source, words = tokens[place].attrs["src"], html.escape(tokens[place].content)
    file = env["folder"] / Path(source).name
    if not file.is_file() or file.suffix not in _TYPES:
        return words
    content = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{words}" src="data:{_TYPES[file.suffix]};base64,{content}">'
