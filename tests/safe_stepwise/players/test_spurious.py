"""Players whose answers come out right by chains that are wrong, and what is told of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.synthetic import generate, parse_spec
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.running import make_answerer, run_questions
from safe_stepwise.open import open_engine
from safe_stepwise.players.facts import flaw_of
from safe_stepwise.players.steps import WORDINGS, checker_of, facts_of, ideal
from safe_stepwise.records import Question, Step, Trajectory
from safe_stepwise.scoring import exact_match
from tests.makers.truth import Truth, truth_of

QUESTIONS = [q for q, _ in generate(parse_spec("rows=40,seed=8,noise=0"), split="validation")]


def answered(
    method: str, spec: str, questions: Sequence[Question] = QUESTIONS, verifier: str = "symbolic"
) -> list[tuple[Question, Trajectory]]:
    """What a method makes of the questions that have a plan."""
    chosen, engines = METHODS[method], {"generator": spec, "verifier": verifier}
    players = {role: Client(open_engine(engines[role])) for role in chosen.roles}
    ends = asyncio.run(run_questions(questions, make_answerer(chosen, players, chosen.options())))
    return [(q, end) for q, end in zip(questions, ends, strict=True) if end.stop_reason != "failed"]


def is_right(question: Question, trajectory: Trajectory) -> bool:
    return exact_match(trajectory.answer, question.accepted) == 1


def told(question: Question, trajectory: Trajectory) -> Truth:
    truth = truth_of(question, trajectory)
    assert truth is not None
    return truth


def test_each_answer_is_right_and_each_chain_wrong_where_that_is_asked_for() -> None:
    found = answered("no_verification", "symbolic:spurious=1,seed=3")
    assert len(found) > 0.9 * len(QUESTIONS)
    assert all(is_right(*one) for one in found)
    truths = [told(*one) for one in found]
    assert not any(truth.is_faithful for truth in truths)
    ways = Counter(made for truth in truths for made in truth.mistakes)
    assert ways["value"] > 0
    assert ways["relation"] > 0
    assert any(truth.missing and not {"value", "relation"} & {*truth.mistakes} for truth in truths)


def test_it_is_decided_once_a_question_at_the_rate() -> None:
    found = answered("no_verification", "symbolic:spurious=0.5,seed=3")
    wrong = [q.id for q, end in found if not told(q, end).is_faithful]
    assert all(is_right(*one) for one in found)
    assert abs(len(wrong) - len(found) / 2) <= 3 * (len(found) / 4) ** 0.5
    again = answered("no_verification", "symbolic:spurious=0.5,seed=3", QUESTIONS[::-1])
    assert wrong == [q.id for q, end in reversed(again) if not told(q, end).is_faithful]
    other = answered("no_verification", "symbolic:spurious=0.5,seed=4")
    assert wrong != [q.id for q, end in other if not told(q, end).is_faithful]


def test_without_it_and_without_errors_every_chain_is_faithful() -> None:
    for method in ("no_verification", "self_verification", "safe"):
        found = answered(method, "symbolic")
        assert all(is_right(*one) and told(*one).is_faithful for one in found)
        assert {made for one in found for made in told(*one).mistakes} == {""}


def test_errors_of_its_own_make_no_right_answer_that_lacks_a_fact() -> None:
    found = answered("no_verification", "symbolic:error_rate=0.4,seed=2")
    assert any(told(*one).missing for one in found)
    assert not any(told(*one).missing for one in found if is_right(*one))


@pytest.mark.parametrize("method", ["self_verification", "safe"])
def test_a_verifier_has_most_chains_mended(method: str) -> None:
    alone, verified = (
        sum(not told(*one).is_faithful for one in answered(name, "symbolic:spurious=1,seed=3"))
        for name in ("no_verification", method)
    )
    assert 4 * verified < alone


def test_what_is_wrong_is_told_by_the_question_alone() -> None:
    for question in QUESTIONS[:20]:
        checker = checker_of(question)
        flaw = flaw_of(facts_of(question), ideal(question, 0))
        assert flaw == flaw_of(facts_of(replace(question)), ideal(question, 0))
        assert flaw is not None
        assert checker.plan.items[flaw.place].triples
        right = {ideal(question, seed)[flaw.place].text for seed in range(WORDINGS)}
        assert flaw.text not in right


# ------------------------------------------------------------------------------------------- truth


def chain_of(question: Question, texts: Sequence[str]) -> Trajectory:
    kinds = [step.kind for step in ideal(question, 0)]
    steps = [Step(n, text, kinds[0]) for n, text in enumerate(texts, 1)]
    return Trajectory(question.id, "no_verification", tuple(steps), (), "", "answered", "")


def two_hops() -> Question:
    """A chain of two facts."""
    return next(
        q for q in QUESTIONS
        if checker_of(q).plan.kind == "sequential" and checker_of(q).plan.items[1].uses == (0,)
        and len(checker_of(q).plan.fact_places) == 2
    )  # fmt: skip


def test_truth_tells_each_mistake_by_its_name() -> None:
    question = two_hops()
    first, second, *_ = (step.text for step in ideal(question, 1))
    cases = {
        (first, second): (("", ""), (), True),
        (first, first, second): (("", "repeated", ""), (), True),
        (second, first): (("early", ""), (), False),
        (second,): (("early",), (1,), False),
        (first,): (("",), (2,), False),
        (first, second + " And more."): (("", "value"), (2,), False),
        (first, second + " And more.", second): (("", "value", ""), (), False),
    }
    for texts, (mistakes, missing, is_faithful) in cases.items():
        truth = truth_of(question, chain_of(question, texts))
        assert truth == Truth(mistakes, missing)
        assert truth.is_faithful == is_faithful


def test_truth_knows_a_fact_in_each_of_its_wordings() -> None:
    question = two_hops()
    for seed in range(WORDINGS):
        texts = [step.text for step in ideal(question, seed)][:2]
        assert told(question, chain_of(question, texts)) == Truth(("", ""), ())


def test_a_row_without_a_plan_has_no_truth() -> None:
    bare = replace(QUESTIONS[0], evidence=(), decomposition=(), supporting_facts=(), passages=())
    assert truth_of(bare, chain_of(QUESTIONS[0], ["Oru lies on the Vel."])) is None
