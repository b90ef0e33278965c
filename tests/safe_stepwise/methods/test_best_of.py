"""Best of N: what is chosen among sampled trajectories, what it costs, and what a failure does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from builders.synthetic import generate, parse_spec
from safe_stepwise.engines.base import EngineError, Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.best_of import BestOf, ChainScore, chain_of, judge_chain, score_of
from safe_stepwise.methods.limits import DEFAULT
from safe_stepwise.methods.loop import SCORED
from safe_stepwise.methods.one_shot import COT
from safe_stepwise.methods.prompting import vote
from safe_stepwise.methods.running import LoopStatistics, make_answerer, run_questions, statistics
from safe_stepwise.methods.scene import Scene
from safe_stepwise.open import open_engine
from safe_stepwise.records import Attempt, Feedback, Passage, Question, Step, Trajectory, all_attempts, canonical_json
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import final_answer
from safe_stepwise.store import boundary
from tests import sizes

RIGHT = 0.4
"""The share of sampled chains that are right."""
WRONG_VERDICTS = 0.2
QUESTIONS = sizes.size(1500, 300)


def question(number: int, sentences: int = 2) -> Question:
    page = Passage("Oru", tuple(f"Sentence {n} of page {number}." for n in range(sentences)), True)
    return Question(f"q{number}", "synthetic", "test", f"Where is {number}?", "Oru", passages=(page,))


def drawn_chain(request: Request) -> str:
    """A chain whose answer is right at the rate `RIGHT`, drawn anew for each seed."""
    chance = Random(request_key(GENERATOR, request))
    answer = "Oru" if chance.random() < RIGHT else f"Marn {chance.randrange(10**6)}"
    return json.dumps({"explain": f"Passage 1 says that it is {answer}.", "answer": answer})


GENERATOR = MockEngine(drawn_chain)
Verdict = Callable[[Request], str]


def verdict_wrong_at(rate: float) -> Verdict:
    """A verifier who passes every step but answers, and who is wrong of these at a rate, by question and chain."""

    def judge(request: Request) -> str:
        scene = request.scene
        assert isinstance(scene, Scene)
        assert scene.step is not None
        answer = final_answer(scene.step) if scene.step.kind == "Final Answer" else "Oru"
        is_wrong = Random(f"{scene.question.id} {answer}").random() < rate
        passes = scene.step.kind != "Final Answer" or (answer == "Oru") != is_wrong
        label = "Correct" if passes else "Wrong Conclusion"
        return json.dumps({"error_type": label, "diagnosis": "So.", "guidance": "" if passes else "Again."})

    return judge


def run(best_of: BestOf, verdict: Verdict | None = None, questions: int = QUESTIONS) -> list[Trajectory]:
    clients = {
        "generator": Client(GENERATOR),
        "verifier": Client(MockEngine(verdict or verdict_wrong_at(0.0)), tries=1),
    }
    players = {role: clients[role] for role in dict.fromkeys(("generator", *best_of.roles))}
    answer = make_answerer(best_of.applied_to(COT), players, COT.options())
    return asyncio.run(run_questions([question(n) for n in range(questions)], answer))


def accuracy(trajectories: list[Trajectory]) -> float:
    return sum(exact_match(t.answer, ["Oru"]) for t in trajectories) / len(trajectories)


def is_near(share: float, expected: float) -> bool:
    """Whether a share is within four standard errors."""
    return abs(share - expected) < 4 * (expected * (1 - expected) / QUESTIONS) ** 0.5


@pytest.mark.parametrize("samples", [1, 2, 4, 8])
def test_a_perfect_verifier_is_right_where_any_sample_is(samples: int) -> None:
    trajectories = run(BestOf(samples))
    assert is_near(accuracy(trajectories), 1 - (1 - RIGHT) ** samples)
    for trajectory in trajectories:
        assert len(trajectory.sampled) == samples
        assert (trajectory.answer == "Oru") == any(sample.answer == "Oru" for sample in trajectory.sampled)


@pytest.mark.parametrize("samples", [2, 8])
def test_a_verifier_that_errs_is_as_right_as_the_closed_form_says(samples: int) -> None:
    """Every right chain has the same answer and so the same verdict; each wrong one has its own."""
    trajectories = run(BestOf(samples), verdict_wrong_at(WRONG_VERDICTS))
    expected = 0.0
    for right_passes, share in ((True, 1 - WRONG_VERDICTS), (False, WRONG_VERDICTS)):
        passing = RIGHT * right_passes + (1 - RIGHT) * WRONG_VERDICTS
        first_passing_is_right = RIGHT * right_passes / passing
        none_passes = (1 - passing) ** samples
        first_failing_is_right = RIGHT * (not right_passes) / (1 - passing)
        expected += share * ((1 - none_passes) * first_passing_is_right + none_passes * first_failing_is_right)
    assert is_near(accuracy(trajectories), expected)


def test_majority_and_first_ask_no_verifier() -> None:
    for trajectory in run(BestOf(5, "majority"), questions=50):
        assert trajectory.answer == vote(sample.answer for sample in trajectory.sampled)
        assert {role for attempt in all_attempts(trajectory) for role in attempt.usage} == {"generator"}
    for trajectory in run(BestOf(3, "first"), questions=20):
        assert trajectory.answer == trajectory.sampled[0].answer


def test_weights_sum_the_scores_of_an_answer() -> None:
    """The wrong answers all differ; a verifier who passes all makes the vote of the right one count."""
    for trajectory in run(BestOf(6, "weighted"), verdict_wrong_at(1.0), questions=50):
        wrong = [sample for sample in trajectory.sampled if sample.answer != "Oru"]
        assert trajectory.answer == (wrong[0].answer if wrong else "Oru")


@pytest.mark.parametrize(("chain_score", "expected"), [("least", 0.5), ("product", 0.25)])
def test_the_score_of_a_chain_comes_from_those_of_its_steps(chain_score: ChainScore, expected: float) -> None:
    class Scoring(MockEngine):
        async def generate(self, requests):  # type: ignore[no-untyped-def]
            return [replace(reply, score=0.5) for reply in await super().generate(requests)]

    verifier = Scoring(verdict_wrong_at(0.0))
    players = {"generator": Client(GENERATOR), "verifier": Client(verifier)}
    best_of = BestOf(2, chain_score=chain_score)
    answer = make_answerer(best_of.applied_to(COT), players, COT.options())
    trajectory = asyncio.run(answer(question(1)))
    assert [sample.score for sample in trajectory.sampled] == [expected, expected]
    verdicts = [attempt for attempt in trajectory.sampled[0].attempts if attempt.state == SCORED]
    assert len(verdicts) == len(chain_of(trajectory)) == 2


def test_nothing_vouches_for_a_step_whose_verdict_is_unreadable() -> None:
    trajectories = run(BestOf(2), lambda request: "no verdict", questions=5)
    assert all(sample.score == 0 for trajectory in trajectories for sample in trajectory.sampled)
    verdicts = [a for a in trajectories[0].sampled[0].attempts if a.state == SCORED]
    assert {verdict.verdict for verdict in verdicts} == {"no verdict"}


def test_further_samples_repeat_no_prefill() -> None:
    """Eight samples compute the passages once for each role; all tokens are counted."""

    def run_fresh(samples: int) -> LoopStatistics:
        players = {"generator": Client(MockEngine(drawn_chain)), "verifier": Client(MockEngine(verdict_wrong_at(0.0)))}
        answer = make_answerer(BestOf(samples).applied_to(COT), players, COT.options())
        return statistics([asyncio.run(answer(question(1, sentences=100)))])

    one, eight = run_fresh(1), run_fresh(8)
    assert eight.calls == {"generator": 8, "verifier": 16}
    for role in ("generator", "verifier"):
        assert eight.computed_tokens[role] < 1.6 * one.computed_tokens[role]
        assert eight.prompt_tokens[role] > 7.5 * one.prompt_tokens[role]


@pytest.mark.parametrize("failing", ["generator", "verifier"])
def test_a_failed_request_fails_the_question_and_keeps_what_was_done(failing: str) -> None:
    def fail_third(reply: Verdict) -> Verdict:
        calls = [0]

        def failing_reply(request: Request) -> str:
            calls[0] += 1
            if calls[0] == 3:
                raise EngineError("HTTP 400")
            return reply(request)

        return failing_reply

    generate, judge = drawn_chain, verdict_wrong_at(0.0)
    generate, judge = (fail_third(generate), judge) if failing == "generator" else (generate, fail_third(judge))
    players = {"generator": Client(MockEngine(generate), tries=1), "verifier": Client(MockEngine(judge), tries=1)}
    answer = make_answerer(BestOf(4).applied_to(COT), players, COT.options())
    trajectory = asyncio.run(answer(question(1)))
    assert (trajectory.stop_reason, trajectory.answer) == ("failed", "")
    assert "HTTP 400" in trajectory.failure
    assert statistics([trajectory]).calls["generator"] == (2 if failing == "generator" else 4)


def test_a_trajectory_with_samples_is_read_as_it_was_written() -> None:
    (trajectory,) = run(BestOf(3), questions=1)
    assert boundary.read(Trajectory, json.loads(canonical_json(trajectory)), "it") == trajectory
    plain = run(BestOf(1, "first"), questions=1)[0]
    assert "sampled" in json.loads(canonical_json(plain))


@pytest.mark.parametrize(
    ("explain", "answer"),
    [
        ("Step 1: Passage 1 says Oru. (Logical) **Step 2:** So it is Oru.", "Oru"),
        ("####ANSWER: Oru", "#### ANSWER: Oru"),
        ("It is Oru (Logical)", "Oru (Final Answer)"),
        ("", "Oru\nMarn"),
    ],
)
def test_chains_in_the_grammar_of_steps_are_judged(explain: str, answer: str) -> None:
    read = {"form": "strict", "value": {"explain": explain, "answer": answer}}
    trajectory = Trajectory("q", "cot", (), (Attempt(1, "", None, True, read=read),), answer, "answered")
    steps = chain_of(trajectory)
    assert final_answer(steps[-1]).startswith("Oru")
    verifier = Client(MockEngine(lambda _: format_feedback(Feedback("Correct", "So.", ""))))
    verdicts = asyncio.run(judge_chain(question(1), steps, verifier, DEFAULT))
    assert {score_of(verdict) for verdict in verdicts} == {1.0}


def test_nothing_vouches_for_what_is_no_step_and_for_chains_without_end() -> None:
    verifier = Client(MockEngine(lambda _: format_feedback(Feedback("Correct", "So.", ""))))
    broken = (Step(1, "Oru.\nStep 2: Marn.", "Logical"), Step(2, "####ANSWER: Oru", "Final Answer"))
    scores = [score_of(v) for v in asyncio.run(judge_chain(question(1), broken, verifier, DEFAULT))]
    assert scores == [0.0, 1.0]
    endless = tuple(Step(n, "It goes on.", "Logical") for n in range(1, 60))
    assert [score_of(v) for v in asyncio.run(judge_chain(question(1), endless, verifier, DEFAULT))] == [0.0]


@pytest.mark.parametrize("name", ["ircot", "trace", "sg_fsm1", "sg_fsm2", "react", "cot", "safe", "no_verification"])
def test_the_answer_is_judged_whatever_the_method(name: str) -> None:
    """A verifier without mistakes passes right answers and no wrong ones, of any method."""
    rows = [q for q, _ in generate(parse_spec("rows=8,seed=2,noise=0.0,writer=plain"), 0, 8, "train")]
    generator = (
        "symbolic:error_rate=0.3,seed=1" if name in ("safe", "no_verification") else "symbolic:value=0.4,seed=3"
    )
    best_of = BestOf(4)
    method = best_of.applied_to(METHODS[name])
    players = {role: Client(open_engine(generator if role == "generator" else "symbolic")) for role in method.roles}
    answer = make_answerer(method, players, options_type(METHODS[name])())
    for row, trajectory in zip(rows, asyncio.run(run_questions(rows, answer)), strict=True):
        for sample in trajectory.sampled:
            if sample.answer and not exact_match(sample.answer, row.accepted):
                assert sample.score == 0.0
        if any(sample.score == 1.0 for sample in trajectory.sampled):
            assert exact_match(trajectory.answer, row.accepted)
