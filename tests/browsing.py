"""A browser for pages that need nothing else: it tells on whatever they fetch, say or run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path(os.environ.get("SAFE_STEPWISE_CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
BREAKOUTS = (
    "</script><script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">',
    "<!--<script>",
    "javascript:window.pwned=1",
    "\"'><svg onload=window.pwned=1>",
    "a\u2028b\u2029c\u202ed\0e",
    "{{ 7*7 }} ${7*7} &lt;b&gt;",
    "__proto__",
    "\ud800 half a pair",
)
"""Texts that a careless page would run, lose or let out of their place."""


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Chromium; skips the test, saying so, where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright ([dev])")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM} (set SAFE_STEPWISE_CHROMIUM)")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield launched
        launched.close()


@contextmanager
def visits(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages; at the end nothing was fetched, said to the console or shown as a dialog."""
    complaints: list[str] = []
    pages = []

    def opened(file: Path, fragment: str = "", **options: Any) -> Any:
        page = browser.new_page(**{"viewport": {"width": 1400, "height": 900}, **options})
        address = file.as_uri()
        page.on("console", lambda message: complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append("dialog"), dialog.dismiss()))
        page.on("request", lambda asked: asked.url.partition("#")[0] != address and complaints.append(asked.url))
        page.goto(address + fragment)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        assert page.evaluate("window.pwned") is None
        page.close()
    assert not complaints


def worst_contrast(page: Any) -> list[Any]:
    """The least contrast of a text to what is behind it (WCAG 2.2, 1.4.3), and where."""
    found: list[Any] = page.evaluate(_CONTRAST)
    return found


_CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const part = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("body *:not(script)")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.checkVisibility()) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < worst[0]) worst = [contrast, e.outerHTML.slice(0, 80)];
  }
  return worst;
}"""
