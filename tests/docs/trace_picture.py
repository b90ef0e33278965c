"""docs/trace.svg: a step that was rejected, why, and the step written anew, of a real trajectory.

The trajectory is that of the README's last snippet; its players are simulated, and it says so.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from safe_stepwise.commands.main import group
from tests.docs.drawing import WIDTH, box, picture

ROOT = Path(__file__).parents[2]
EDGE, GAP = 14, 12


def command() -> list[str]:
    """The README's command that answers a question, word by word."""
    text = (ROOT / "README.md").read_text("utf-8").replace("\\\n", " ")
    (line,) = (line for line in text.splitlines() if line.startswith("safe-stepwise answer"))
    return shlex.split(line)[1:]


def trajectory() -> dict[str, Any]:
    """What `safe-stepwise answer --json` prints for it."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SAFE_STEPWISE_CACHE", f"{folder}/replies.sqlite")
        examples = CliRunner().invoke(group, ["stand-in", "--examples"], catch_exceptions=False)
        Path("examples.jsonl").write_text(examples.stdout, "utf-8")
        told = CliRunner().invoke(group, [*command(), "--json"], catch_exceptions=False)
    found: dict[str, Any] = json.loads(told.stdout)
    return found


def svg() -> str:
    """The picture: the question, the first rejected step and what became of it, the answer."""
    found = trajectory()
    tries = found["trajectory"]["attempts"]
    first = next(place for place, tried in enumerate(tries) if not tried["accepted"])
    rejected, rewritten = tries[first : first + 2]
    assert rewritten["accepted"]
    cards = [
        ("plain", [("name", "Question"), ("", found["question"])]),
        (
            "bad",
            [
                ("name", f"Rejected: {rejected['feedback']['error_type']}"),
                ("", rejected["text"]),
                ("said", f"Diagnosis: {rejected['feedback']['diagnosis']}"),
                ("said", f"Guidance: {rejected['feedback']['guidance']}"),
            ],
        ),
        (
            "good",
            [
                ("name", "Written anew: verified"),
                ("", rewritten["text"]),
                ("said", rewritten["feedback"]["diagnosis"]),
            ],
        ),
        ("plain", [("name", f"Answer: {found['answer']}"), ("said", "(players are simulated)")]),
    ]
    below, parts = float(EDGE), []
    for kind, texts in cards:
        drawn, height = box(EDGE, below, WIDTH - 2 * EDGE, kind, texts)
        parts += drawn
        below += height + GAP
    described = f"{rejected['text']} Rejected. {rewritten['text']} Verified."
    return picture("A step is rejected and written anew", described, below - GAP + EDGE, parts)
