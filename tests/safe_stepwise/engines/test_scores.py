"""A verdict's score: the probability of Correct from the tokens' log-probabilities, and what goes by it."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines.base import Message, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.openai import OpenAIEngine, read_completion
from safe_stepwise.engines.probability import label_probability
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import UNSURE, run_question
from safe_stepwise.methods.verified import fate_of
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Passage, Question, Trajectory, canonical_json
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.taxonomy import labels
from tests.servers.openai_server import MockServer

LABELS = ("Correct", "Contradictory", "Redundancy", "Off-topic")
OPENING, CLOSING = '{"error_type": "', '", "diagnosis": "So."}'


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)


# ------------------------------------------------------------------------------------ the arithmetic


@given(st.integers(0, 10**9))
def test_the_probability_is_that_of_the_path_to_the_label(seed: int) -> None:
    """Labels are cut at the same places, so that a token begins several labels, or one; the reply says Correct."""
    chance = Random(seed)
    ends = sorted({0, *chance.sample(range(1, 8), 3), 99})
    paths = {label: [f'{label}"'[start:end] for start, end in pairwise(ends)] for label in LABELS}
    right, told, alive = 1.0, [], [*LABELS]
    for place, token in enumerate(paths["Correct"]):
        weights = {paths[label][place]: chance.random() + 0.01 for label in alive}
        told.append([(piece, math.log(weight / sum(weights.values()))) for piece, weight in weights.items()])
        right *= weights[token] / sum(weights.values())
        alive = [label for label in alive if paths[label][place] == token]
    tokens = [OPENING, *paths["Correct"], CLOSING[1:]]
    assert label_probability(tokens, lambda n: told[n - 1], LABELS) == pytest.approx(right, abs=1e-9)


def test_a_token_that_begins_two_labels_is_followed_or_shared() -> None:
    first = [("Co", math.log(0.6)), ("Red", math.log(0.4))]
    followed = [OPENING, "Co", "rrect", CLOSING]
    told = [first, [("rrect", math.log(0.75)), ("ntra", math.log(0.25))]]
    assert label_probability(followed, lambda n: told[n - 1], LABELS) == pytest.approx(0.45)
    other = [OPENING, "Red", "undancy", CLOSING]
    assert label_probability(other, lambda n: [first, [("undancy", 0.0)]][n - 1], LABELS) == pytest.approx(0.3)


def test_a_token_may_hold_the_quote_before_the_label() -> None:
    reply = ['{"error_type":', ' "Correct', '", "diagnosis": "So."}']
    told = [(' "Correct', math.log(0.5)), (' "Red', math.log(0.3)), (" null", math.log(0.2))]
    assert label_probability(reply, lambda _: told, LABELS) == pytest.approx(0.5 / 0.8)


def test_only_the_verdicts_own_label_counts() -> None:
    reply = [OPENING, "Redundancy", '", "diagnosis": "', "Correct", '"}']
    told = {1: [("Redundancy", math.log(0.9)), ("Correct", math.log(0.1))], 3: [("Correct", 0.0)]}
    assert label_probability(reply, told.__getitem__, LABELS) == pytest.approx(0.1)
    assert label_probability(['The label "', "Correct", '" fits.'], lambda _: [("Correct", 0.0)], LABELS) is None


def test_without_a_label_there_is_no_probability() -> None:
    assert label_probability(["No", " verdict"], lambda _: [("No", 0.0)], LABELS) is None
    assert label_probability([], lambda _: [], LABELS) is None


# ---------------------------------------------------------------------------------------- servers


def verdict(label: str) -> str:
    return json.dumps({"error_type": label, "diagnosis": "So.", "guidance": "" if label == "Correct" else "Again."})


def logprobs(correct: float) -> Any:
    """A server's tokens of a verdict, whose label is Correct with this probability."""

    def tell(text: str) -> dict[str, Any]:
        label = json.loads(text)["error_type"]
        opening, closing = text.split(label)
        other = "Redundancy" if label == "Correct" else label
        likely = [("Correct", correct), (other, 1 - correct)]
        tops = [{"token": token, "logprob": math.log(max(p, 1e-9)), "bytes": None} for token, p in likely]
        plain = [
            {"token": t, "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": -0.1}]} for t in (opening, closing)
        ]
        middle = {"token": label, "logprob": math.log(dict(likely)[label]), "top_logprobs": tops}
        return {"content": [plain[0], middle, plain[1]]}

    return tell


def asked(number: int = 1) -> Request:
    return Request((Message("user", f"Step {number}"),), labels=LABELS)


def complete(server: MockServer, cache: ResponseCache | None, *requests: Request) -> list[Any]:
    async def run() -> list[Any]:
        engine = OpenAIEngine(server.model, server.url)
        client = Client(engine, cache, tries=1)
        replies = [await client.complete(request) for request in requests]
        await engine.close()
        return replies

    return asyncio.run(run())


def test_a_server_that_tells_log_probabilities_scores_verdicts(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "replies.sqlite")
    with MockServer(lambda _: verdict("Correct"), logprobs=logprobs(0.8), keep_bodies=True) as server:
        (reply,) = complete(server, cache, asked())
        (again,) = complete(server, cache, asked())
        (unscored,) = complete(server, cache, Request(asked().messages))
        assert (reply.score, again.score, unscored.score) == (pytest.approx(0.8), reply.score, None)
        assert (server.calls, server.bodies[0]["top_logprobs"]) == (2, 20)
        assert "logprobs" not in server.bodies[1]


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'logprobs' is not supported with this model.",
        "top_logprobs must be at most 5",
        "This model does not support logprobs.",
    ],
)
def test_a_server_that_refuses_them_is_asked_without(message: str, capsys: pytest.CaptureFixture[str]) -> None:
    def refuses(body: Mapping[str, Any]) -> tuple[int, Any] | None:
        return (400, {"error": {"message": message}}) if "logprobs" in body else None

    with MockServer(lambda _: verdict("Correct"), refuses=refuses) as server:
        first, second = complete(server, None, asked(1), asked(2))
        assert (first.score, second.score) == (None, None)
        assert first.text == verdict("Correct")
        assert server.refusals == 1, "it is asked once"
    assert "asked without logprobs (verdicts have no score) from now on" in capsys.readouterr().err


KEYS = st.sampled_from(["content", "token", "logprob", "top_logprobs"])
SCALARS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)


@given(st.recursive(SCALARS, lambda t: st.lists(t, max_size=3) | st.dictionaries(KEYS, t, max_size=4)))
def test_no_form_of_log_probabilities_breaks_a_reply(told: Any) -> None:
    choice = {"message": {"content": verdict("Correct")}, "finish_reason": "stop", "logprobs": told}
    reply = read_completion(json.dumps({"choices": [choice]}).encode(), LABELS)
    assert reply.text == verdict("Correct")
    assert reply.score is None or 0 <= reply.score <= 1


# ------------------------------------------------------------------------------------ in the loop

PAGES = (Passage("Oru", ("Oru lies on the Vel.",)),)
ASKED = Question("q", "synthetic", "test", "On what does Oru lie?", "the Vel", passages=PAGES)
STEP = "Step 1: According to Passage 1, Oru lies on the Vel. (Attribution)"
ANSWER = "Step 2: ####ANSWER: the Vel (Final Answer)"


def run(score: float, **limits: Any) -> tuple[Trajectory, MockServer]:
    def write(request: Request) -> str:
        return ANSWER if "Oru lies on the Vel. (" in request.messages[-1].content else STEP

    async def answer(server: MockServer) -> Trajectory:
        engine = OpenAIEngine(server.model, server.url)
        generator = Client(
            MockEngine(lambda request: ANSWER if "Oru lies on the Vel. (" in request.messages[-1].content else STEP)
        )
        trajectory = await run_question(ASKED, generator, Client(engine, tries=1), Limits(**limits))
        await engine.close()
        return trajectory

    with MockServer(lambda _: verdict("Correct"), logprobs=logprobs(score), keep_bodies=True) as server:
        return asyncio.run(answer(server)), server


def test_a_trajectory_keeps_the_scores() -> None:
    trajectory, _ = run(0.75, scores=True)
    verdicts = [attempt.feedback for attempt in trajectory.attempts]
    assert [v and round(v.score or 0, 6) for v in verdicts] == [0.75, 0.75]
    assert fate_of(trajectory.attempts[0]) == "verified (score 0.75): So."
    stored = canonical_json(trajectory)
    assert '"score":0.75' in stored
    assert read(Trajectory, parse_json(stored), "it") == trajectory
    unasked, server = run(0.75)
    assert "score" not in canonical_json(unasked)
    assert all("logprobs" not in body for body in server.bodies)


def test_a_step_is_accepted_from_the_threshold_on() -> None:
    accepted, _ = run(0.75, accept_above=0.75)
    assert [a.accepted for a in accepted.attempts] == [True, True]
    doubted, _ = run(0.74, accept_above=0.75, max_retries=1, max_steps=1, on_exhausted="drop")
    labels_ = [attempt.feedback.error_type for attempt in doubted.attempts if attempt.feedback]
    assert set(labels_) == {UNSURE}
    assert not any(attempt.accepted for attempt in doubted.attempts if attempt.feedback)
    assert "0.74, and 0.75 is needed" in (doubted.attempts[0].feedback or Feedback("", "", "")).diagnosis


def test_a_threshold_needs_scores() -> None:
    verifier = Client(MockEngine(lambda _: verdict("Correct")))
    generator = Client(MockEngine(lambda _: STEP))
    with pytest.raises(UserError, match="tells no probability of Correct, which accept_above needs"):
        asyncio.run(run_question(ASKED, generator, verifier, Limits(accept_above=0.5)))


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_threshold_is_a_probability(share: float) -> None:
    with pytest.raises(ValueError, match="probability from 0 to 1"):
        Limits(accept_above=share)


def test_a_simulated_verifier_knows_its_error_rate() -> None:
    engine = open_engine("symbolic:error_rate=0.2")
    assert engine.score(format_feedback(Feedback("Correct", "So.", ""))) == 0.8  # type: ignore[attr-defined]
    assert engine.score(format_feedback(Feedback(labels()[0], "No.", "Again."))) == 0.2  # type: ignore[attr-defined]
