"""What a program writes of docs/ is up to date, and pictures can be read on a phone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from safe_stepwise.commands.main import PACKAGE_COMMANDS
from tests.docs.commands_page import of_scripts
from tests.docs.drawing import SIZE, WIDEST, WIDTH, lines_of
from tests.docs.house_picture import rows
from tests.docs.written import DOCS, WRITTEN
from tests.test_house import ADDRESSES, NOUNS, rooms

ROOT = DOCS.parent
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_up_to_date(name: str) -> None:
    now = WRITTEN[name]()
    assert (DOCS / name).read_text("utf-8") == now, "run: python -m tests.docs.written"


def test_every_room_is_drawn_once() -> None:
    drawn = [room for row in rows() for room in row]
    assert sorted(drawn) == sorted(rooms("safe_stepwise").keys() - NOUNS - {*ADDRESSES})


@pytest.mark.parametrize("name", [name for name in WRITTEN if name.endswith(".svg")])
def test_a_picture_holds_its_words_in_any_font(name: str) -> None:
    tree = ElementTree.parse(DOCS / name).getroot()
    boxes = [{k: float(b.get(k, 0)) for k in ("x", "y", "width", "height")} for b in tree.iter(f"{SVG}rect")]
    texts = list(tree.iter(f"{SVG}text"))
    assert len(texts) > 10
    for text in texts:
        left, below = float(text.get("x", 0)), float(text.get("y", 0))
        right = left + len(text.text or "") * SIZE * WIDEST
        around = [
            b
            for b in boxes
            if b["x"] < left < b["x"] + b["width"] and b["y"] < below - SIZE and below + 4 < b["y"] + b["height"]
        ]
        assert min(b["x"] + b["width"] for b in around) >= right, text.text
    assert float(tree.get("width", 0)) == WIDTH <= 420


def test_lines_are_cut_to_the_width() -> None:
    assert all(len(line) * SIZE * WIDEST <= 200 for line in lines_of("word " * 50, 200))


def test_the_trace_shows_a_rejected_step_and_what_became_of_it() -> None:
    drawn = (DOCS / "trace.svg").read_text("utf-8")
    assert re.search(r"Rejected: Contradictory.*Diagnosis.*Guidance.*Written anew.*simulated", drawn, re.DOTALL)


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    for module in ("mkdocs", "mkdocstrings", "material"):
        pytest.importorskip(module, reason=f"needs {module}: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # of the theme, about its successor
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=quiet)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    assert "../notes/" not in (tmp_path / "verify.html").read_text("utf-8")
    commands = (tmp_path / "commands.html").read_text("utf-8")
    assert all(f'id="{name}"' in commands for name in of_scripts())
    assert all(f'id="safe-stepwise-{name}"' in commands for name in PACKAGE_COMMANDS)
    assert 'id="traces"' in (tmp_path / "gallery.html").read_text("utf-8")
    package = (tmp_path / "api.html").read_text("utf-8")
    assert 'id="safe_stepwise.records.Question"' in package
    assert "<blockquote>" not in package  # what a doctest is without a fence
    for page in tmp_path.glob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?([^\" >]+)", page.read_text("utf-8"))
        assert [source for source in loaded if re.match("(https?:)?//", source)] == [], page.name
