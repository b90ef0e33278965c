"""The Space's page in Chromium: traces of a release, whose text is data.

Where gradio is not installed (it is no part of what tests install: pip install gradio), these skip.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from releases.stages.space import copy_space, copy_traces
from safe_stepwise.store.names import REPORT
from tests.browsing import BREAKOUTS, chromium

ROOT = Path(__file__).resolve().parents[2]
NASTY = " ".join(BREAKOUTS[:5]) + " {{ 7*7 }} ${7*7}"
WAIT_MS = 60_000


@pytest.fixture(scope="module", autouse=True)
def _needs_gradio() -> None:
    pytest.importorskip("gradio", reason="pip install gradio to open the Space's page")


def attempt(text: str, label: str, *, accepted: bool) -> dict[str, Any]:
    said = {"error_type": label, "diagnosis": NASTY, "guidance": "Go on.", "query": None}
    made = {"number": 1, "text": text, "feedback": said, "accepted": accepted}
    return made | {"usage": {}, "state": "", "next_state": "", "retrieved": []}


def write_report(folder: Path) -> None:
    """What an evaluation left: a trajectory with a rejected step, and one without."""
    folder.mkdir(parents=True)
    right = attempt("Step 1: ####ANSWER: Tesk (Final Answer)", "Correct", accepted=True)
    wrong = attempt("Step 1: ####ANSWER: Ardle (Final Answer)", "Wrong Conclusion", accepted=False)
    lines = []
    for name, tries in (("q0", [right]), ("q1", [wrong, right])):
        run = {"question_id": name, "method": "safe", "attempts": tries, "answer": "Tesk"}
        steps = [{"number": 1, "text": "####ANSWER: Tesk", "kind": "Final Answer"}]
        run |= {"steps": steps, "stop_reason": "answered", "failure": ""}
        scores = {"exact_match": 1.0, "f1": 1.0, "verdict": None}
        lines.append({"benchmark": "toy", "simulated": True, "trajectory": run, **scores})
    rows = [{"benchmark": "toy", "id": f"q{n}", "question": f"{n}? {NASTY}"} for n in (0, 1)]
    for file, content in (("trajectories.jsonl", lines), ("questions.jsonl", rows)):
        folder.joinpath(file).write_text("".join(json.dumps(line) + "\n" for line in content))


@contextmanager
def served(space: Path, home: Path) -> Iterator[str]:
    """The page's address, as the Hub would run it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"GRADIO_SERVER_PORT": str(port), "HOME": str(home), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=space, env={**os.environ, **quiet}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert "Running on" in next(line for line in process.stdout if line.strip())
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def opened(browser: Any, address: str) -> Iterator[Any]:
    """The page in a browser; it asks nobody else for anything, and runs nothing that a trace holds."""
    said: list[str] = []
    page = browser.new_page(viewport={"width": 1200, "height": 1400})
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (said.append("dialog"), dialog.dismiss()))
    page.on("console", lambda one: one.type == "error" and said.append(one.text))
    page.on("request", lambda one: one.url.startswith(address) or said.append(one.url))
    page.goto(address)
    page.get_by_role("tab", name="Scores").wait_for(timeout=WAIT_MS)
    yield page
    assert page.evaluate("window.pwned") is None
    assert not said
    page.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("release")
    write_report(output / REPORT)
    copy_space(ROOT, output)
    copy_traces(output)
    return output / "space"


@pytest.fixture(scope="module")
def page(browser: Any, space: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    home = tmp_path_factory.mktemp("home")
    with served(space, home) as address, opened(browser, address) as found:
        yield found


def test_the_traces_are_those_with_a_rejected_step(page: Any) -> None:
    page.get_by_role("tab", name="Traces of the release").click()
    trace = page.locator(".tries").filter(has_text="rejected, Wrong Conclusion")
    trace.wait_for(timeout=WAIT_MS)
    assert "<img src=x onerror" in trace.inner_text()
    assert trace.locator("img, script, svg").count() == 0
