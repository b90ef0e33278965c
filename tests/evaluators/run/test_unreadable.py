"""A run of which nothing can be read ends, and says so; one readable reply, and it goes on."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluators.run.runner import Progress, Task, run_tasks
from safe_stepwise.engines.readability import FEW_UNREADABLE, MAX_UNREADABLE, PROBES
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import HOPELESS, malformed
from safe_stepwise.methods.running import unreadable
from safe_stepwise.records import Attempt, Feedback, Trajectory, Usage
from safe_stepwise.steps import StepError
from scripts import evaluate_stepwise
from tests.scripts.test_evaluate_stepwise import arguments, asking, by_method, own
from tests.servers.openai_server import Cut, MockServer
from tests.servers.stepper import Stepper

ALOUD = "Let me think aloud.\nStep 1 is to look."


def trajectory(number: int, read: bool, method: str = "safe") -> Trajectory:
    said = Feedback("Correct", "", "") if read else malformed(StepError("the reply does not open with 'Step K:'"), 1)
    attempt = Attempt(1, "Step 1: Oru." if read else ALOUD, said, read, {"generator": Usage()})
    return Trajectory(f"q{number}", method, (), (attempt,), "", "max_steps")


def run(path: Path, readable: set[int], questions: int) -> list[str]:
    asked: list[int] = []

    async def answer(number: int) -> Trajectory:
        asked.append(number)
        return trajectory(number, number in readable)

    async def finish(trajectories: object) -> str:
        return f"{len(asked)} asked"

    task = Task("task", lambda: range(questions), answer, finish)
    try:
        return run_tasks(range(questions), [task], [], path, 1)
    except UserError as error:
        return [f"{len(asked)} asked", str(error)]


def test_a_run_without_a_readable_reply_ends_with_the_first_one(tmp_path: Path) -> None:
    asked, message = run(tmp_path, set(), 40)
    assert asked == f"{MAX_UNREADABLE} asked"
    assert "any reply to the first 8 questions; the first reply begins 'Let me think aloud.'" in message
    assert "does not open with 'Step K:'" in message
    assert "\n" not in message
    again, message = run(tmp_path, set(), 40)  # what was kept is looked at, too
    assert (again, "nothing could be read" in message) == ("0 asked", True)


def test_a_small_run_ends_when_all_of_it_is_unreadable(tmp_path: Path) -> None:
    asked, message = run(tmp_path, set(), 3)
    assert (asked, "the first 3 questions" in message) == ("3 asked", True)


@pytest.mark.parametrize("readable", [{0}, {MAX_UNREADABLE - 1}, {0, 39}])
def test_one_readable_reply_and_it_goes_on(tmp_path: Path, readable: set[int]) -> None:
    assert run(tmp_path, readable, 40) == ["40 asked"]


def test_failures_are_no_replies() -> None:
    progress = Progress(10)
    for number in range(10):
        progress.look(Trajectory(f"q{number}", "safe", (), (), "", "failed", "HTTP 500"))
    assert not progress.readability.unread


def test_methods_that_read_json_say_in_their_readings_what_could_be_read() -> None:
    progress = Progress(40)
    attempt = Attempt(1, ALOUD, None, False, {"generator": Usage()}, read={"form": "unreadable", "why": "no object"})
    unread = Trajectory("q", "cot", (), (attempt,), "", "unreadable")
    for _ in range(MAX_UNREADABLE - 1):
        progress.look(unread)
    with pytest.raises(UserError, match="no object"):
        progress.look(unread)


# How soon a run ends, and what it says


def ended(reply: Callable[[Mapping[str, Any]], str], path: Path, *more: str, questions: int = 80) -> tuple[int, str]:
    """Calls till a run of the loop over a real server ends, and what it ends with."""
    with MockServer(reply, port=PORTS.get(path, 0)) as server:
        PORTS[path] = server.port
        options = asking(server.spec, "safe")
        try:
            evaluate_stepwise.main(arguments(own(path / "own.jsonl", questions), path / "out", *options, *more))
        except UserError as error:
            return server.calls, str(error)
    return server.calls, ""


PORTS: dict[Path, int] = {}
"""A server that is asked again has the same address, so that what was kept of it counts."""


@pytest.mark.parametrize("at_once", [1, 64])
def test_a_run_of_a_model_that_thinks_aloud_ends_after_few_calls(tmp_path: Path, at_once: int) -> None:
    aloud = "Okay, so the user asks where Oru is.\nPassage 1 ..."
    calls, message = ended(lambda _: aloud, tmp_path, f"--at-once={at_once}")
    # Of several at once, a question that ends before the last to count makes room for another.
    begun = FEW_UNREADABLE if at_once == 1 else PROBES + FEW_UNREADABLE - 1
    at_most = begun * (HOPELESS + 2)
    assert FEW_UNREADABLE * (HOPELESS + 1) <= calls <= at_most  # one question alone had 41
    assert (
        f"in any reply to the first {FEW_UNREADABLE} questions; the first reply begins 'Okay, so the user asks"
        in message
    )
    assert "it seems to think aloud" in message
    assert "--reasoning-parser" in message
    assert not (tmp_path / "out" / "results.json").exists()
    again, message = ended(lambda _: aloud, tmp_path, f"--at-once={at_once}")  # what was kept is looked at, too
    assert (again, "think aloud" in message) == (0, True)


def test_a_question_of_which_nothing_is_read_is_asked_for_its_answer_at_once(tmp_path: Path) -> None:
    stepper = Stepper()

    def reply(body: Mapping[str, Any]) -> str:
        user = body["messages"][-1]["content"]
        is_lost = "of N0?" in user and "Contestant's answer" not in user
        return "I cannot tell." if is_lost else stepper(body)

    calls, message = ended(reply, tmp_path, questions=5)
    assert not message
    lost, *others = [one.trajectory for one in by_method(tmp_path / "out")["safe"]]
    assert [len(lost.attempts), lost.stop_reason, lost.answer] == [HOPELESS + 1, "max_steps", ""]
    assert {one.stop_reason for one in others} == {"answered"}
    assert calls < 41 + 5 * 10


def test_questions_that_are_readable_late_are_all_asked(tmp_path: Path) -> None:
    """Two unreadable questions, and from then on all is well."""
    calls = 0
    stepper = Stepper(flawed=0)

    def reply(body: Mapping[str, Any]) -> str:
        nonlocal calls
        calls += "Contestant's answer" not in body["messages"][-1]["content"]
        return stepper(body) if calls > 2 * (HOPELESS + 1) else "No."

    _, message = ended(reply, tmp_path, "--at-once=1", questions=12)
    assert not message
    whole = [one.trajectory for one in by_method(tmp_path / "out")["safe"]]
    assert [t.stop_reason for t in whole] == ["max_steps"] * 2 + ["answered"] * 10
    assert [len(t.attempts) for t in whole[:2]] == [HOPELESS + 1] * 2


def test_few_questions_are_under_way_till_something_is_read(tmp_path: Path) -> None:
    under_way, most = 0, list[int]()

    async def answer(number: int) -> Trajectory:
        nonlocal under_way
        under_way += 1
        most.append(under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return trajectory(number, number > 1)

    async def finish(trajectories: object) -> int:
        return max(most)

    def widest(at_once: int) -> int:
        most.clear()
        task = Task("task", lambda: range(60), answer, finish)
        folder = tmp_path / str(at_once)
        folder.mkdir()
        return run_tasks(range(60), [task], [], folder, at_once)[0]

    assert [widest(at_once) for at_once in (1, 3, 32)] == [1, 3, 32]
    assert max(most[: PROBES + 1]) == PROBES


CAUSES = {
    "Okay, let me think. The question": "--reasoning-parser",
    "We need to find the town.": "--reasoning-parser",
    "<think>": "--reasoning-parser",
    "Hmm, Tesk?": "--reasoning-parser",
    "Thinking Process:": "--reasoning-parser",
    "<|im_start|>user": "--chat-template",
    "user\n\nWhere?": "--chat-template",
    "### Instruction:\nWhere?": "--chat-template",
    "[INST] Where?": "--chat-template",
    "": "it says nothing",
    "The answer is Oru.": "tuned for chat",
    "Oru": "--max-tokens",
}


@pytest.mark.parametrize("text", CAUSES)
def test_the_likely_cause_is_told(text: str) -> None:
    attempt = Attempt(1, text, malformed(StepError("no step"), 1), False, {"generator": Usage()})
    assert CAUSES[text] in unreadable([attempt])


def test_replies_that_are_cut_want_more_room(tmp_path: Path) -> None:
    calls, message = ended(lambda _: Cut("The towns of the Vel are many: Oru, Tesk, Ardle, "), tmp_path)
    assert "it needs more room: give it more tokens (--max-tokens ROLE=N)" in message
    assert calls <= 2 * PROBES * (HOPELESS + 2)
