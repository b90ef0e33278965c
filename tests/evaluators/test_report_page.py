"""The page of a report: what is in it, what a browser makes of it, and that no text leaves its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluators.report_page import write
from safe_stepwise.store.names import REPORT_PAGE
from safe_stepwise.store.tables import escaped, markdown
from tests.browsing import BREAKOUTS, chromium, worst_contrast

HOSTILE = " ".join(text for text in BREAKOUTS if "half a pair" not in text)
BANNER = "> **Simulated.** A script stood in.\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="2000" height="9"><script>window.pwned=1</script></svg>'
TABLE = [("generator", "method", *(f"score {n}" for n in range(9))), *((HOSTILE, "SAFE (simulated)", *range(9)),) * 30]


def report(folder: Path) -> Path:
    pages = {
        "cost.md": f"# Cost (simulated)\n\n{BANNER}\n![A figure](figure.svg) ![Away](https://x.org/a.png)\n",
        "comparison.md": f"# Comparison (simulated)\n\n{BANNER}\n{escaped(HOSTILE)}\n\n## All\n\n{markdown(TABLE)}\n",
    }
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "figure.svg").write_text(SVG)
    write(folder)
    return folder / REPORT_PAGE


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


def test_it_holds_every_page_and_figure_and_says_simulated_once_at_its_top(tmp_path: Path) -> None:
    text = report(tmp_path).read_text("utf-8")
    assert re.findall(r'<a href="#(\w+)">([^<]+)</a>', text) == [("comparison", "Comparison"), ("cost", "Cost")]
    assert text.count("<strong>Simulated.</strong>") == 1
    assert "A script stood in." not in text
    assert text.count("<h1>") == 1
    assert "<h2>Cost (simulated)</h2>" in text
    assert text.count("data:image/svg+xml;base64,") == 1
    assert "x.org" not in text
    assert text == report(tmp_path).read_text("utf-8")


def test_a_report_of_models_is_not_called_simulated(tmp_path: Path) -> None:
    (tmp_path / "comparison.md").write_text("# Comparison\n\nScores.\n")
    write(tmp_path)
    assert "imulated" not in (tmp_path / REPORT_PAGE).read_text("utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_on_a_phone_and_no_text_becomes_markup(
    visit: Callable[..., Any], tmp_path: Path, scheme: str
) -> None:
    page = visit(report(tmp_path), viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.locator("script, iframe, svg, main a, main img[onerror]").count() == 0
    for part in BREAKOUTS[:4]:
        assert part in page.locator("main").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("td").last.bounding_box()["x"] > 390
    page.locator(".scroll").evaluate("e => { e.scrollLeft = e.scrollWidth; }")
    assert page.locator("td").last.bounding_box()["x"] < 390
    page.get_by_role("link", name="Cost").click()
    assert page.locator("h1").bounding_box()["y"] >= 0  # the heading stays
    assert page.locator("#cost img").evaluate("e => e.naturalWidth") == 2000
    assert page.locator("#cost img").bounding_box()["width"] <= 390
    worst = worst_contrast(page)
    assert worst[0] >= 4.5, worst
