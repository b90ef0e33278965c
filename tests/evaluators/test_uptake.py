"""What becomes of rejected steps: by definition on made attempts, and at the rates that players are given."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from builders.synthetic import generate, parse_spec
from evaluators.run.evaluation import measure_mended
from evaluators.uptake import MENDED, Retry, count_uptake, describe_retries, list_retries
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import FINAL_ANSWER
from safe_stepwise.methods.running import make_answerer, run_questions
from safe_stepwise.methods.sg_fsm_safe import GuardOptions
from safe_stepwise.methods.verified import step_of
from safe_stepwise.open import open_engine
from safe_stepwise.players.steps import WORDINGS, ideal
from safe_stepwise.players.symbolic import DEAF
from safe_stepwise.records import Attempt, Feedback, Question, Trajectory
from safe_stepwise.steps import format_step
from safe_stepwise.taxonomy import CORRECT, check_order
from tests import sizes
from tests.makers.outcomes import outcome

A, B, C = ("Step 1: Passage 1 says that Oru is a town. (Attribution)", "Step 1: Oru is a town. (Attribution)", "Well.")


def made(*attempts: tuple[int, str, str, bool]) -> Trajectory:
    """A trajectory of attempts: number of the step, text, label, accepted."""
    tries = [Attempt(n, text, Feedback(label, "d", "g"), accepted) for n, text, label, accepted in attempts]
    return Trajectory("q", "safe", (), (*tries, Attempt(9, "x", None, True, state=FINAL_ANSWER)), "x", "answered")


@pytest.mark.parametrize(
    ("retry", "uptake"),
    [
        ((1, B, CORRECT, True), "mended"),
        ((1, A, CORRECT, True), "mended"),  # the same words may be right once passages were searched
        ((1, B, "Contradictory", False), "repeated"),
        ((1, B, "Contradictory", True), "repeated"),  # accepted as the retries are used up
        ((1, A, "Contradictory", False), "verbatim"),
        ((1, f"**{A}**", "Contradictory", False), "verbatim"),  # Markdown is no other word
        ((1, A, "Unsupported", False), "verbatim"),
        ((1, B, "Unsupported", False), "another_fault"),
        ((1, C, "Malformed", False), "malformed"),
        ((1, B, "Unread", False), "undecided"),
        ((1, B, "Unsure", False), "undecided"),
    ],
)
def test_the_next_verdict_and_text_say_what_became_of_a_rejection(
    retry: tuple[int, str, str, bool], uptake: str
) -> None:
    (told,) = list_retries(made((1, A, "Contradictory", False), retry))
    assert (told.error_type, told.place, told.uptake) == ("Contradictory", 1, uptake)


def test_a_fault_returns_word_for_word_within_its_round_alone() -> None:
    again = made((1, A, "Unsupported", False), (1, B, "Contradictory", False), (1, A, "Unsupported", True))
    assert [retry.uptake for retry in list_retries(again)] == ["another_fault", "verbatim"]
    # Another step, a rejection that the verifier did not make, and a round that drops its step.
    later = made((1, A, "Unsupported", True), (2, A, "Unsupported", False), (3, A, "Unsupported", False))
    assert list_retries(later) == []
    assert list_retries(made((1, C, "Malformed", False), (1, A, "Unread", False), (1, A, CORRECT, True))) == []


def test_counts_are_by_the_type_of_the_rejection() -> None:
    tries = made(
        (1, A, "Unsupported", False), (1, B, CORRECT, True), (2, A, "Redundancy", False), (2, B, CORRECT, True)
    )
    measures = {MENDED: ["", "Off-topic"]}
    counts = count_uptake([outcome("q", trajectory=tries, measures=measures)] * 2)
    assert [*counts] == ["Redundancy", "Unsupported"]  # as the taxonomy has them
    assert [counts["Redundancy"][key] for key in ("retries", "mended", "earned", "waved_through")] == [2, 2, 0, 2]
    assert [counts["Unsupported"][key] for key in ("retries", "mended", "earned", "waved_through")] == [2, 2, 0, 0]
    assert describe_retries(tries, measures) == {1: "mended", 3: "waved through: Off-topic"}
    assert count_uptake([outcome("q")]) == {}


QUESTIONS = [q for q, _ in generate(parse_spec(f"rows={sizes.size(60, 20)},seed=3,noise=0,passages=5"), split="train")]
Played = list[tuple[Question, Trajectory]]


def play(generator: str, verifier: str, method: str = "safe", **options: Any) -> Played:
    players = {"generator": Client(open_engine(generator)), "verifier": Client(open_engine(verifier))}
    limits = (Limits if method == "safe" else GuardOptions)(**options)
    answer = make_answerer(METHODS[method], players, limits)
    return list(zip(QUESTIONS, asyncio.run(run_questions(QUESTIONS, answer)), strict=True))


def retries_in(played: Played) -> list[tuple[Question, Trajectory, Retry]]:
    return [(q, trajectory, retry) for q, trajectory in played for retry in list_retries(trajectory)]


def is_within(count: int, chances: Iterable[float]) -> bool:
    """Whether so many of independent events happened as their chances make likely (3.3 deviations: one in 1,000)."""
    probabilities = list(chances)
    spread = math.sqrt(sum(p * (1 - p) for p in probabilities))
    return len(probabilities) >= 20 and abs(count - sum(probabilities)) <= 3.3 * spread


def test_verdicts_by_chance_mend_and_repeat_at_their_rates() -> None:
    """A writer without errors draws one of four wordings; the verifier rejects new ones by chance, old ones again."""
    played = retries_in(play("symbolic", "chance:reject=0.5"))
    verbatim = [retry.uptake == "verbatim" for *_, retry in played]
    assert is_within(sum(verbatim), (_share_of_rejected(*place) for place in played))
    fresh = [retry for *_, retry in played if retry.uptake != "verbatim"]
    assert is_within(sum(retry.uptake == "mended" for retry in fresh), [0.5] * len(fresh))
    rejected = [retry for retry in fresh if retry.uptake != "mended"]
    chances = [1 / len(check_order(ideal(q, 0)[retry.attempt.number - 1].kind)) for q, _, retry in played]
    assert is_within(
        sum(retry.uptake == "repeated" for retry in rejected),
        [p for p, (*_, retry) in zip(chances, played, strict=True) if retry in rejected],
    )
    assert {label for q, t in {(q.id): (q, t) for q, t, _ in played}.values() for label in _labels(q, t)} == {CORRECT}


def _labels(question: Question, trajectory: Trajectory) -> Sequence[str]:
    return measure_mended(question, trajectory).get(MENDED, [])


def _share_of_rejected(question: Question, trajectory: Trajectory, retry: Retry) -> float:
    """The share of the wordings of a step that the verifier has rejected before the retry."""
    number = retry.attempt.number
    rejected = {step_of(a) for a in trajectory.attempts[: retry.place] if a.number == number and not a.accepted}
    return sum(format_step(ideal(question, n)[number - 1]) in rejected for n in range(WORDINGS)) / WORDINGS


def test_a_writer_that_hears_feedback_mends_at_its_rate() -> None:
    """After feedback it errs at `DEAF`; a verifier without errors lets nothing through that the checker would not."""
    played = play("symbolic:error_rate=0.5,seed=2", "symbolic", on_exhausted="drop")
    uptakes = [retry.uptake for *_, retry in retries_in(played)]
    assert is_within(uptakes.count("mended"), [1 - DEAF] * len(uptakes))
    assert {label for q, trajectory in played for label in _labels(q, trajectory)} <= {CORRECT, ""}


def test_a_verifier_by_chance_waves_wrong_retries_through() -> None:
    """Its verdicts say nothing: of the first steps that it accepts after a rejection, the share `DEAF` is wrong."""
    by_seed = [play("symbolic:error_rate=0.5,seed=4", f"chance:reject=0.6,seed={n}", max_steps=1) for n in range(3)]
    played = [pair for pairs in by_seed for pair in pairs]
    labels = [label for q, trajectory in played for label in _labels(q, trajectory)]
    assert "" not in labels
    assert is_within(sum(label != CORRECT for label in labels), [DEAF] * len(labels))


def test_a_guarded_machine_retries_its_findings() -> None:
    played = play("symbolic:value=0.6,seed=1", "symbolic", "sg_fsm_safe")
    uptakes = Counter(retry.uptake for *_, retry in retries_in(played))
    assert uptakes["mended"] > uptakes["repeated"] + uptakes["verbatim"] > 0
    for q, trajectory, retry in retries_in(played):
        assert trajectory.attempts[retry.place].state == "g2"
        assert _labels(q, trajectory).count(CORRECT) == len(_labels(q, trajectory))
