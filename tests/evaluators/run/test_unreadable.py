"""A run of which nothing can be read ends, and says so; one readable reply, and it goes on."""

from pathlib import Path

import pytest

from evaluators.run.runner import FIRST, Progress, Task, Work, run_tasks
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import malformed
from safe_stepwise.records import Attempt, Feedback, Trajectory, Usage
from safe_stepwise.steps import StepError

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
    work = Work("evaluation", "trajectory", "trajectories", range(questions), [task], [], path, 1)
    try:
        return run_tasks(work)
    except UserError as error:
        return [f"{len(asked)} asked", str(error)]


def test_a_run_without_a_readable_reply_ends_with_the_first_one(tmp_path: Path) -> None:
    asked, message = run(tmp_path, set(), 40)
    assert asked == f"{FIRST} asked"
    assert "any reply to the first 8 questions; the first reply begins 'Let me think aloud.'" in message
    assert "does not open with 'Step K:'" in message
    assert "\n" not in message
    again, message = run(tmp_path, set(), 40)  # what was kept is looked at, too
    assert (again, "nothing could be read" in message) == ("0 asked", True)


def test_a_small_run_ends_when_all_of_it_is_unreadable(tmp_path: Path) -> None:
    asked, message = run(tmp_path, set(), 3)
    assert (asked, "the first 3 questions" in message) == ("3 asked", True)


@pytest.mark.parametrize("readable", [{0}, {FIRST - 1}, {0, 39}])
def test_one_readable_reply_and_it_goes_on(tmp_path: Path, readable: set[int]) -> None:
    assert run(tmp_path, readable, 40) == ["40 asked"]


def test_failures_are_no_replies() -> None:
    progress = Progress(10)
    for number in range(10):
        progress.look(Trajectory(f"q{number}", "safe", (), (), "", "failed", "HTTP 500"))
    assert not progress.unread


def test_methods_that_read_json_say_in_their_readings_what_could_be_read() -> None:
    progress = Progress(40)
    attempt = Attempt(1, ALOUD, None, False, {"generator": Usage()}, read={"form": "unreadable", "why": "no object"})
    unread = Trajectory("q", "cot", (), (attempt,), "", "unreadable")
    for _ in range(FIRST - 1):
        progress.look(unread)
    with pytest.raises(UserError, match="no object"):
        progress.look(unread)
