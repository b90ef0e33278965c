"""Many questions at once: order, independence, how many are under way, how it ends, the sums."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import MAX_FAILURES, Client
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.loop import FINAL_ANSWER, run_question
from safe_stepwise.methods.running import LoopStatistics, rounds, run_questions, statistics
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Attempt, Feedback, Passage, Question, Step, Trajectory, Usage

GOOD = Feedback("Correct", "It is so.", "Go on.")
BAD = Feedback("Contradictory", "Passage 1 says otherwise.", "Read Passage 1 again.")
UNREAD = Feedback("Unread", "No verdict.", "In other words.")
ODD = Feedback("Malformed", "No step.", "Write a step.")


def question(number: int) -> Question:
    page = Passage(f"Town {number}", (f"Town {number} lies on the Vel.",), True)
    return Question(f"q{number}", "synthetic", "train", f"Where is {number}?", "", passages=(page,))


def by(generator: Client, verifier: Client | None = None) -> Callable[[Question], Awaitable[Trajectory]]:
    return lambda asked: run_question(asked, generator, verifier)


@dataclass
class Paced:
    """Answers each question in two steps; ``slow`` ones only when ``gate`` opens."""

    slow: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: Counter[str] = field(default_factory=Counter)
    most: int = 0
    cancelled: int = 0
    simulated = True
    name = "paced"
    identity = {"engine": "paced"}  # noqa: RUF012

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        (request,) = requests
        assert isinstance(request.scene, Scene)
        id_ = request.scene.question.id
        self.under_way[id_] += 1
        self.most = max(self.most, len(+self.under_way))
        try:
            await asyncio.sleep(0)
            if id_ in self.slow:
                await self.gate.wait()
            if id_ in self.failing:
                return [EngineError("no such luck")]
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way[id_] -= 1
        if request.role == "verify":
            return [Completion(format_feedback(GOOD), Usage(30, 20, 4))]
        if request.scene.previous:
            return [Completion(f"Step 2: ####ANSWER: {id_} (Final Answer)", Usage(20, 16, 3))]
        text = "Step 1: According to Passage 1, it lies on the Vel. (Attribution)"
        return [Completion(text, Usage(10, 0, 5))]


def test_every_question_has_its_trajectory_in_its_place() -> None:
    client = Client(Paced(), tries=1)
    heard: dict[int, Trajectory] = {}
    asked = [question(n) for n in range(20)]
    found = asyncio.run(run_questions(asked, by(client), at_once=3, on_done=lambda n, t: heard.update({n: t})))
    assert [t.answer for t in found] == [q.id for q in asked]
    assert [heard[n] for n in range(20)] == found
    assert asyncio.run(run_questions([], by(client))) == []


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_no_more_questions_than_asked_for_are_under_way(at_once: int) -> None:
    engine = Paced()
    asked = [question(n) for n in range(150)]
    asyncio.run(run_questions(asked, by(Client(engine, tries=1)), at_once=at_once))
    assert 0.9 * at_once <= engine.most <= at_once  # a few begin before the others


def test_nobody_waits_for_a_slow_question() -> None:
    """No rounds: with one question stuck in its first step, all others are answered."""

    async def run() -> list[str]:
        engine = Paced(slow=frozenset({"q0"}))
        ended: list[str] = []

        def on_done(_: int, trajectory: Trajectory) -> None:
            ended.append(trajectory.question_id)
            if len(ended) == 9:
                engine.gate.set()

        asked = [question(n) for n in range(10)]
        client = Client(engine, tries=1)
        await asyncio.wait_for(run_questions(asked, by(client, client), on_done=on_done, at_once=2), timeout=20)
        return ended

    assert asyncio.run(run())[-1] == "q0"


def test_a_question_that_fails_leaves_the_others_alone() -> None:
    engine = Paced(failing=frozenset({"q1"}))
    found = asyncio.run(run_questions([question(n) for n in range(3)], by(Client(engine))))
    assert [t.stop_reason for t in found] == ["answered", "failed", "answered"]


def test_a_run_of_which_nothing_comes_is_given_up() -> None:
    number = 3 * MAX_FAILURES
    engine = Paced(failing=frozenset(f"q{n}" for n in range(number)))
    asked = [question(n) for n in range(number)]
    with pytest.raises(UserError, match="no such luck"):
        asyncio.run(run_questions(asked, by(Client(engine, tries=1)), at_once=8))
    assert not +engine.under_way


@pytest.mark.parametrize("how", ["mistake", "cancelled"])
def test_the_end_of_one_is_the_end_of_all(how: str) -> None:
    async def run() -> None:
        engine = Paced(slow=frozenset(f"q{n}" for n in range(1, 10)))

        def on_done(_: int, __: Trajectory) -> None:
            if how == "mistake":
                raise UserError("the disk is full")
            running.cancel()

        running = asyncio.ensure_future(
            run_questions([question(n) for n in range(10)], by(Client(engine, tries=1)), on_done=on_done, at_once=5)
        )
        expected = UserError if how == "mistake" else asyncio.CancelledError
        with pytest.raises(expected):
            await asyncio.wait_for(running, timeout=20)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert all("_call" in repr(task) for task in others)  # replies still on their way
        assert engine.most == 5

    asyncio.run(run())


def step(number: int, kind: str = "Attribution") -> Step:
    return Step(number, "It is so.", kind)  # type: ignore[arg-type]


def test_the_sums_over_trajectories() -> None:
    g, v = Usage(100, 60, 10), Usage(50, 20, 5)
    asked, judged = {"generator": g}, {"generator": g, "verifier": v}
    one = Trajectory(
        "q1",
        "safe",
        (step(1), step(2)),
        (
            Attempt(1, "a", BAD, False, judged),
            Attempt(1, "b", ODD, False, asked),
            Attempt(1, "c", BAD, True, judged),  # the last try, taken as it is
            Attempt(2, "**Step 2:** d (Logical)", UNREAD, True, judged),  # a verdict that could not be read
            Attempt(3, "**Step 3:** cut off (Logical)", ODD, False, asked),  # Markdown, but no step
            Attempt(3, "f", ODD, False, asked),
            Attempt(3, "g", ODD, False, asked),
            Attempt(3, "no answer", None, False, asked, state=FINAL_ANSWER),  # the call for an answer
        ),
        "",
        "max_steps",
    )
    two = Trajectory(
        "q2", "safe", (),
        (Attempt(1, "a", GOOD, True, judged), Attempt(2, "b", None, False, asked)),
        "", "failed",
    )  # fmt: skip
    assert statistics([one, two], 2) == LoopStatistics(
        questions=2,
        calls={"generator": 10, "verifier": 4},
        calls_per_question=7.0,
        steps_per_question=1.0,
        error_types={"Contradictory": 2},
        error_positions={1: 2},
        prompt_tokens={"generator": 1000, "verifier": 200},
        cached_tokens={"generator": 600, "verifier": 80},
        computed_tokens={"generator": 400, "verifier": 120},
        completion_tokens={"generator": 100, "verifier": 20},
        malformed=4,
        salvaged=1,
        unread=1,
        unverified=1,
        exhausted=3,
        stop_reasons={"failed": 1, "max_steps": 1},
        transitions={},
    )
    tries = [[a.text for a in tries] for tries in rounds(one, 2)]
    assert tries == [["a", "b", "c"], ["**Step 2:** d (Logical)"], ["**Step 3:** cut off (Logical)", "f", "g"]]


def test_calls_are_what_the_engines_answered() -> None:
    generator, verifier = Client(Paced(), tries=1), Client(Paced(), tries=1)
    asked = [question(n) for n in range(5)]
    for judge in (None, verifier):
        found = statistics(
            roles=("generator", "verifier"), trajectories=asyncio.run(run_questions(asked, by(generator, judge)))
        )
        assert found.calls == {"generator": 10, "verifier": 10 if judge else 0}
        assert found.prompt_tokens == {"generator": 150, "verifier": 300 if judge else 0}
        assert found.calls_per_question == (4 if judge else 2)
    assert verifier.total().answered == 10
    assert statistics([]).calls_per_question == 0
