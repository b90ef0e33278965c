"""The server without a model: it reads in a prompt what is asked, and marks all that it says."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.synthetic import Spec, generate
from safe_stepwise.commands.reading import examples, parse_question
from safe_stepwise.commands.serving import HttpRefusal
from safe_stepwise.commands.stand_in import QuestionIndex, StandIn, role_of
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.prompt_sets import PROMPTS, PromptSet
from safe_stepwise.methods.running import run_questions
from safe_stepwise.methods.scene import AnswerScene, PromptingScene, Scene
from safe_stepwise.methods.verifier import verifier_request
from safe_stepwise.metric.compute import answers_by_loop
from safe_stepwise.open import open_engine
from safe_stepwise.records import VERDICT_ORDERS, Feedback, Passage, Question, Step, Trajectory
from tests.servers.serving import stand_in

OURS = [parse_question("example", row) for row in examples()]
SETS = [PromptSet(name, order) for name in PROMPTS for order in VERDICT_ORDERS]
STEPS = (
    Step(1, 'According to Passage 2, \u2028 "Rejected: "Oru"" lies.\nQuestion: "no"', "Attribution"),
    Step(2, "Accepted steps: \x85 none yet", "Logical"),
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))


def scene_of(request: Request, known: list[Question]) -> Scene | AnswerScene | PromptingScene:
    return QuestionIndex(known).scene(role_of(request.messages), request.messages[-1].content)


@pytest.mark.parametrize("prompt_set", SETS, ids=str)
@pytest.mark.parametrize("final", [False, True])
def test_what_a_generator_is_asked_is_read_back(prompt_set: PromptSet, final: bool) -> None:
    question, said = OURS[0], Feedback("Contradictory", 'Passage 2: "no"', "Read\nit again.")
    request = generator_request(
        question.question,
        question.passages,
        STEPS,
        Feedback("Correct", "", "Go on."),
        [('Step 3: Rejected: "x" (Logical)', said)],
        final=final,
        prompt_set=prompt_set,
    )
    assert role_of(request.messages) == request.role
    found = scene_of(request, OURS)
    assert isinstance(found, Scene)
    assert found.question == question
    assert found.previous == STEPS
    assert found.feedback == said
    assert found.step is None


@pytest.mark.parametrize("prompt_set", SETS, ids=str)
def test_what_a_verifier_is_asked_is_read_back(prompt_set: PromptSet) -> None:
    question = OURS[1]
    request = verifier_request(question.question, question.passages, STEPS[:1], STEPS[1], prompt_set=prompt_set)
    assert role_of(request.messages) == "verify"
    found = scene_of(request, OURS)
    assert found == Scene(question, previous=STEPS[:1], step=STEPS[1])


@given(words=st.text(min_size=1), title=st.text(), text=st.text(min_size=1))
def test_words_of_any_sort_are_read_back(words: str, title: str, text: str) -> None:
    words, title, text = (t.encode("utf-8", "replace").decode() for t in (words, title, text))
    asked = Question("q", "musique", "", words, "a", passages=(Passage(title, (text,)),))
    request = generator_request(words, asked.passages, ())
    found = scene_of(request, [asked])
    assert isinstance(found, Scene)
    assert found.question == asked


def test_passages_in_another_order_keep_their_annotations() -> None:
    question = replace(OURS[0], passages=(*reversed(OURS[0].passages), Passage("More", ("It rains.",))))
    request = generator_request(question.question, question.passages, ())
    found = scene_of(request, OURS)
    assert isinstance(found, Scene)
    assert found.question.passages == question.passages


def test_a_question_that_is_not_known_is_refused() -> None:
    request = generator_request("Who is it?", OURS[0].passages, ())
    with pytest.raises(HttpRefusal, match="knows the annotations of 2 questions") as refused:
        scene_of(request, OURS)
    assert refused.value.status == 400


def test_no_model_stands_in() -> None:
    with pytest.raises(UserError, match="a stand-in has no model"):
        StandIn("openai:simulated@http://localhost:1/v1", OURS)


def test_other_settings_are_another_model(tmp_path: Path) -> None:
    """Replies are kept by the model's name."""
    specs = ["symbolic", "symbolic:error_rate=0.1", "symbolic:error_rate=0.2"]
    assert len({StandIn(spec, OURS).model for spec in specs}) == 3
    assert StandIn("symbolic", OURS).model == "simulated"


# ----------------------------------------------------------------------------------- over the wire


def test_every_reply_is_marked() -> None:
    with stand_in("symbolic", OURS) as spec:
        url = spec.partition("@")[2]
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
        (served,) = client.models.list().data
        request = generator_request(OURS[0].question, OURS[0].passages, ())
        how = {"model": "simulated", "messages": [{"role": m.role, "content": m.content} for m in request.messages]}
        raw = client.chat.completions.with_raw_response.create(**how)
        reply = raw.parse()
        chunks = list(client.chat.completions.create(**how, stream=True))
    assert "simulated" in served.owned_by
    assert raw.headers["x-simulated"] == "true"
    assert reply.system_fingerprint == "simulated"
    assert all((told.model_extra or {})["simulated"] is True for told in (reply, *chunks))
    streamed = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert streamed == reply.choices[0].message.content
    assert streamed.startswith("Step 1: ")
    assert reply.usage is not None
    assert reply.usage.completion_tokens > 5


def test_engines_know_that_no_model_answers() -> None:
    engine = open_engine("openai:simulated-1a2b@http://localhost:1/v1")
    assert engine.simulated
    assert engine.name.endswith(" (simulated)")
    assert not open_engine("openai:simulatedly@http://localhost:1/v1").simulated


def test_it_plays_the_loop_as_the_player_itself_does() -> None:
    """Without mistakes: those of a player hang on annotations that no prompt holds."""
    known = _made()
    with stand_in("symbolic", known) as spec:
        far = answers_by_loop(known, generator=spec, verifier=spec, judge=spec)
    near = answers_by_loop(known, generator="symbolic", verifier="symbolic", judge="symbolic")
    assert far["simulated"] is True
    assert far["exact_match"] == 1.0
    for name in ("exact_match", "accuracy", "calls_per_question", "steps_per_question", "failed"):
        assert far[name] == near[name], name


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("sg_fsm2", {}),
        ("sg_fsm2", {"evidence": True}),
        ("sg_fsm2", {"terminator": "decide"}),
        ("sg_fsm1", {"terminator": "compare"}),
        ("sg_fsm_safe", {}),
    ],
    ids=str,
)
def test_it_plays_sg_fsm_as_the_player_itself_does(method: str, options: dict[str, Any]) -> None:
    """The client has the passages in an order of its own."""
    questions = [replace(q, passages=(*reversed(q.passages),)) for q in _made()[:8]]
    with stand_in("symbolic", _made()[:8]) as spec:
        far = played(method, spec, questions, options)
    near = played(method, "symbolic", questions, options)
    assert [t.answer for t in far] == [q.answer for q in questions]
    assert [states_of(t) for t in far] == [states_of(t) for t in near]
    assert [t.attempts[0].text for t in far] == [t.attempts[0].text for t in near]
    if options.get("evidence"):
        assert [t.attempts[-1].read for t in far] == [t.attempts[-1].read for t in near]


def test_its_mistakes_in_sg_fsm_are_made_at_the_rate_too() -> None:
    questions = _made()[:12]
    with stand_in("symbolic:value=0.5,decompose=0.2,seed=1", questions) as spec:
        trajectories = played("sg_fsm1", spec, questions, {})
    assert {t.stop_reason for t in trajectories} <= {"answered", "withdrawn"}
    right = sum(t.answer == q.answer for t, q in zip(trajectories, questions, strict=True))
    assert 0 < right < len(questions) * 0.8


def test_a_revision_is_refused_with_the_reason() -> None:
    with stand_in("symbolic:format=1", _made()[:1]) as spec:
        (trajectory,) = played("sg_fsm1", spec, _made()[:1], {})
    assert trajectory.stop_reason == "failed"
    assert "a revision shows no question" in trajectory.failure


def test_mistakes_are_made_at_the_rate_that_is_asked_for() -> None:
    known = _made()
    with stand_in("symbolic:error_rate=0.5,seed=1", known) as spec:
        found = answers_by_loop(known, generator=spec, verifier=spec)
    assert sum(found["error_types"].values()) > len(known) / 2


def test_a_script_answers_any_question(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    fine = json.dumps({"error_type": "Correct", "diagnosis": "So.", "guidance": ""})
    rules = [
        {"role": "generate", "reply": "Step 1: ####ANSWER: the Vel (Final Answer)"},
        {"role": "verify", "reply": fine},
        {"role": "judge", "reply": json.dumps({"explanation": "Yes.", "verdict": "correct"})},
    ]
    script.write_text(json.dumps({"replies": rules}))
    with stand_in(f"mock:{script}", []) as spec:
        found = answers_by_loop(
            ["On what river does Oru lie?"],
            [["Oru lies on the Vel."]],
            [["Vel"]],
            generator=spec,
            verifier=spec,
            judge=spec,
        )
    assert (found["exact_match"], found["accuracy"], found["simulated"]) == (1.0, 1.0, True)


def test_an_unknown_question_ends_in_one_line(tmp_path: Path) -> None:
    with stand_in("symbolic", OURS) as spec, pytest.raises(UserError, match="questions failed"):
        answers_by_loop(["Who?"], [["It was he."]], [["he"]], generator=spec, verifier=spec)


def played(method: str, spec: str, questions: list[Question], options: dict[str, Any]) -> list[Trajectory]:
    method_ = METHODS[method]
    clients = {role: Client(open_engine(spec)) for role in method_.roles}
    chosen = options_type(method_)(**options)

    async def run() -> list[Trajectory]:
        try:
            return await run_questions(questions, lambda question: method_.answer(question, clients, chosen))
        finally:
            for client in clients.values():
                await client.engine.close()

    return asyncio.run(run())


def states_of(trajectory: Trajectory) -> list[str]:
    return [attempt.state for attempt in trajectory.attempts]


def _made() -> list[Question]:
    return [question for question, _ in generate(Spec(30, 5, 0.0, "plain"), split="train")]
