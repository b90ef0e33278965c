"""The question that is told: wrong alone, right after a step that was rejected."""

from __future__ import annotations

from evaluators.comparison.systems import System
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.records import Attempt, Feedback, Passage, Trajectory
from studies.experiment.experiment import example

PASSAGES = (Passage("Vel", ("The Vel crosses Oru.",)), Passage("Oru", ("Oru is in\x1b[31m Marn.",)))
ALONE, HELPED = ({"generator": "g"}, {"generator": "g", "verifier": "v"})
PLAIN, LEARNED = (System.make("no_verification", ALONE, {}), System.make("safe", HELPED, {}))
RIGHT = Feedback("Correct", "It is so.", "Go on.")
WRONG = Feedback("Contradictory", "Oru, not Tesk.", "Read it again.")


def asked(name: str) -> QuestionRecord:
    return QuestionRecord("synthetic", name, f"Where is {name}?", ("Marn",), PASSAGES)


def tried(number: int, text: str, said: Feedback | None) -> Attempt:
    passed = said is None or said.error_type == "Correct"
    return Attempt(number, f"Step {number}: {text}", said, passed)


def outcome(name: str, right: bool, *attempts: Attempt) -> Outcome:
    judged = attempts[0].feedback is not None
    method, players = ("safe", HELPED) if judged else ("no_verification", ALONE)
    steps = Trajectory(name, method, (), attempts, "Marn", "answered")
    return Outcome("synthetic", method, players, {}, name, float(right), 0.0, None, steps, False)


def alone(name: str, right: bool = False) -> Outcome:
    return outcome(name, right, tried(1, "####ANSWER: Tesk (Final Answer)", None))


def helped(name: str, right: bool = True, rejections: int = 1) -> Outcome:
    wrong = tried(1, "Tesk. (Attribution)", WRONG)
    last = tried(1, "####ANSWER: Marn (Final Answer)", RIGHT)
    return outcome(name, right, *[wrong] * rejections, last)


def test_it_is_the_one_with_the_fewest_tries_of_those_that_were_turned() -> None:
    outcomes = [
        *(alone("both", True), helped("both")),
        *(alone("neither"), helped("neither", False)),
        *(alone("smooth"), helped("smooth", rejections=0)),
        *(alone("long"), helped("long", rejections=3)),
        *(alone("short"), helped("short", rejections=2)),
    ]
    questions = [asked(name) for name in ("both", "neither", "smooth", "long", "short", "unasked")]
    found = example(questions, outcomes, PLAIN, LEARNED)
    assert found.splitlines()[1:5] == [
        "Passage 2 (Oru): Oru is in\\x1b[31m Marn.",
        "Question: Where is short?",
        "Right: Marn",
        "",
    ]
    assert found.count("    rejected, Contradictory: Oru, not Tesk.\n    next: Read it again.") == 2
    assert found.endswith("    verified: It is so.\n    next: Go on.")


def test_without_any_nothing_is_told() -> None:
    outcomes = [alone("both", True), helped("both")]
    assert example([asked("both")], outcomes, PLAIN, LEARNED) == ""
