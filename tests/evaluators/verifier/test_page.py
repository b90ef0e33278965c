"""The page and the confusion matrix: what stands on them, and that names can't break them."""

from __future__ import annotations

import pytest

from evaluators.run.runner import VerdictReply, Verdicts
from evaluators.verifier.command import confusion_png, make_constant, render_files, render_results
from evaluators.verifier.quality import UNPARSED
from safe_stepwise.records import Usage
from safe_stepwise.store.agreement import title_of
from tests.evaluators.verifier.test_runs import cases_of

STEPS = {
    "name": "ns/steps",
    "revision": None,
    "version": "v1",
    "simulated": False,
    "sha256": {},
    "split": "test",
    "limit": None,
    "max_tokens": 739,
    "prompt_sha256": "0" * 64,
}


def page_of(name: str, simulated: bool = False, reply: VerdictReply | None = None) -> str:
    cases, asked = cases_of()
    said = reply or VerdictReply("Correct", "{}", usage=Usage(1000, 250, 10))
    run = Verdicts(name, "verifier", simulated, dict.fromkeys(asked, said))
    runs = [run, make_constant("Correct", "no error ever", asked)]
    return render_files(render_results(STEPS, cases, runs, 0), cases, runs)["verifier_quality.md"].decode()


def test_it_says_how_long_a_reply_could_be() -> None:
    assert "could have 739 tokens" in page_of("m")


def test_it_says_what_was_measured() -> None:
    page = page_of("openai:m")
    assert "2 rows of 1 questions: split `test` of `ns/steps`. The rows form 1 trajectories with an error" in page
    assert "| verifier | openai:m | 0.500 [" in page
    assert "| no error ever | always Correct | 0.500 [" in page
    assert "| verifier | 2 | 2,000 | 25.0% | 20 |" in page
    assert "imulated" not in page
    assert "## Agreement" not in page  # nobody else was asked
    assert "| Redundancy | Procedural | 1 | 0 | – | 0.000 | 0.000 |" in page
    assert "| verifier | seen | 2 | 0.500 |" in page
    assert "| verifier | unseen |" not in page


def test_what_is_missing_is_said() -> None:
    assert "- verifier: 2 rows unparsed." in page_of("m", reply=VerdictReply(UNPARSED, "Well."))
    assert "- verifier: 2 rows failed." in page_of("m", reply=VerdictReply("failed"))


def test_simulated_runs_say_so() -> None:
    page = page_of("mine", simulated=True)
    assert "> **Simulated**" in page
    assert "| verifier | mine (simulated) |" in page
    assert title_of({"name": "mock:1 (simulated)", "simulated": True}) == "mock:1 (simulated)"


def test_a_name_cannot_break_a_table() -> None:
    lines = page_of("a|b\n<script>$x$").splitlines()
    assert "<script>" not in "".join(lines)
    assert any(line.startswith("| verifier | a\\|b &lt;script>$x$ |") for line in lines)


@pytest.mark.usefixtures("rendered")
def test_the_matrix_as_a_picture() -> None:
    counts = {"Correct": {"Off-topic": 3, "Correct": 2}}
    first = confusion_png(counts, "m")
    assert first.startswith(b"\x89PNG")
    assert confusion_png(counts, "m") == first
    assert confusion_png({"Correct": {"Correct": 5}}, "m") != first
    confusion_png(counts, "a $broken_{formula \\x")
