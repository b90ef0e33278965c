"""The verifier that draws: how often it rejects, that it repeats itself, in whose form."""

from __future__ import annotations

from dataclasses import replace

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import evidence_in, parse_feedback
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import verifier_request
from safe_stepwise.open import open_engine
from safe_stepwise.players.symbolic import ChanceEngine
from safe_stepwise.records import Feedback, Passage, Question, Step
from safe_stepwise.taxonomy import check_order

PAGE = Passage("Ors Velt", ("Ors Velt was born in Oru.",))


def judgement(number: int, prompt_set: PromptSet = PAPER, kind: str = "Attribution") -> Request:
    question = Question(f"q{number}", "musique", "test", f"Where is {number}?", "Oru", (), "", None)
    question = replace(question, passages=(PAGE,))
    text = {"Final Answer": "####ANSWER: Oru"}.get(kind, "According to Passage 1, it is Oru.")
    step = Step(1, text, kind)  # type: ignore[arg-type]
    request = verifier_request(question.question, question.passages, [], step, prompt_set=prompt_set)
    return replace(request, scene=Scene(question, step=step))


def verdict(engine: ChanceEngine, request: Request) -> Feedback:
    said = engine.answer(request)
    assert isinstance(said, Completion)
    return parse_feedback(said.text)


def test_it_rejects_the_share_that_it_is_told_and_repeats_itself() -> None:
    asked = [judgement(n) for n in range(2000)]
    first, again = ([verdict(ChanceEngine(0.3, 1), request).error_type for request in asked] for _ in range(2))
    assert first == again
    rejected = [label for label in first if label != "Correct"]
    assert 0.27 < len(rejected) / len(asked) < 0.33  # of a fixed seed: nothing is left to luck
    assert {*rejected} == {*check_order("Attribution")}
    other = [verdict(ChanceEngine(0.3, 2), request).error_type for request in asked]
    assert other != first


@pytest.mark.parametrize(("reject", "labels"), [(0.0, {"Correct"}), (1.0, {"Wrong Conclusion"})])
def test_it_names_what_the_step_could_have(reject: float, labels: set[str]) -> None:
    said = {verdict(ChanceEngine(reject), judgement(n, kind="Final Answer")).error_type for n in range(20)}
    assert said == labels


@pytest.mark.parametrize("spec", ["chance:reject=1.0", "chance:reject=0,seed=4"])
def test_it_speaks_in_the_form_that_is_asked_for(spec: str) -> None:
    engine = open_engine(spec)
    assert isinstance(engine, ChanceEngine)
    plain = verdict(engine, judgement(1))
    assert evidence_in(plain.diagnosis) is None
    compact = PromptSet("compact", "evidence_first")
    first = [verdict(engine, judgement(n, compact)) for n in range(20)]
    for one in first:
        found = evidence_in(one.diagnosis)
        assert found is not None
        empty = one.error_type == "Inefficiency"
        quoted = "Passage 1: Ors Velt was born in Oru. Ors Velt: new. Oru: new."
        assert found.evidence == ("nothing" if empty else quoted)
    assert (plain.guidance != "") == (spec == "chance:reject=1.0")


def test_it_says_simulated_and_judges_alone() -> None:
    engine = ChanceEngine(0.2)
    assert engine.simulated
    assert engine.name.endswith("(simulated)")
    assert isinstance(engine.answer(Request((Message("user", "Write."),), role="generate")), EngineError)


@pytest.mark.parametrize("settings", ["", "reject=2", "reject=x", "seed=1", "reject=.2,other=1"])
def test_another_spec_is_refused(settings: str) -> None:
    with pytest.raises(UserError, match="chance"):
        open_engine(f"chance:{settings}")
