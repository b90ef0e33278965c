"""The metric's two functions: input that is refused, scores, what the loop took, where they run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from safe_stepwise import prompts
from safe_stepwise.errors import UserError
from safe_stepwise.metric.compute import answers_by_loop, answers_given, checked_options
from safe_stepwise.records import Passage, Question
from tests.servers.openai_server import MockServer

QUESTIONS = ["On what river does Oru lie?", "On what river does Marn lie?"]
PASSAGES = [["Oru lies on the Vel."], [{"title": "Marn", "text": "Marn lies by the sea."}]]
REFERENCES = [["Vel"], ["none", "no river"]]
STEP = "Step 1: ####ANSWER: the Vel (Final Answer)"
FINE = json.dumps({"error_type": "Correct", "diagnosis": "So it is.", "guidance": ""})
BAD = json.dumps({"error_type": "Wrong Conclusion", "diagnosis": "No.", "guidance": "Read on."})


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., str]:
    def write(*rules: dict[str, Any], **others: Any) -> str:
        file = tmp_path / f"script{len(list(tmp_path.iterdir()))}.json"
        file.write_text(json.dumps({"replies": rules, **others}))
        return f"mock:{file}"

    return write


def says(verdict: str) -> str:
    return json.dumps({"explanation": "It is so.", "verdict": verdict})


# ------------------------------------------------------------------------------------ answers given


def test_every_official_case(real_data: Path) -> None:
    lines = (real_data / "official_scorer_cases.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    wrong = []
    for number, case in enumerate(cases, 1):
        found = answers_given([case["prediction"]], [case["references"]], benchmark=case["dataset"])
        scores = (found["exact_match"], found["f1"])
        if scores != pytest.approx((case["exact_match"], case["f1"]), abs=1e-9):
            wrong.append(number)
    assert len(cases) >= 2_000
    assert wrong == []


def test_without_a_judge_nobody_is_asked() -> None:
    found = answers_given(["the Vel", None], REFERENCES, benchmark="musique")
    assert found == {"exact_match": 0.5, "f1": 0.5, "accuracy": None, "unscored": 0}


def test_the_judge_counts_among_answers_with_a_verdict(script: Callable[..., str]) -> None:
    judge = script(
        {"role": "judge", "contains": '"Vel stream"', "reply": says("correct")},
        {"role": "judge", "contains": '"Oru"', "reply": says("incorrect")},
        {"role": "judge", "contains": '"Marn"', "reply": "correct, I would say"},
    )
    found = answers_given(
        ["Vel stream", "Oru", "Marn", "Isk", ""],
        [["Vel"]] * 5,
        benchmark="hotpotqa",
        judge=judge,
        questions=["Which river?"] * 5,
    )
    assert found["accuracy"] == pytest.approx(1 / 3)  # the empty answer is wrong
    assert (found["unscored"], found["judge_failed"]) == (2, 1)
    assert found["simulated"] is True
    assert "judge_agreement" not in found


def test_repeats_tell_the_agreement_of_the_judge(script: Callable[..., str]) -> None:
    judge = script({"role": "judge", "reply": [says("correct"), says("incorrect")]})
    found = answers_given(
        ["Vel", "the stream"], [["Vel"]] * 2, benchmark="hotpotqa", judge=judge, judge_repeats=3, skip_exact=True
    )
    agreement = found["judge_agreement"]
    assert agreement["questions"] == 1
    assert agreement["unanimous"] == 0.0
    assert agreement["pairwise"] == pytest.approx(1 / 3)
    assert (found["accuracy"], found["unscored"]) == (0.5, 0)


def test_a_judge_over_http_is_asked_once_for_all_times() -> None:
    def reply(body: Any) -> str:
        return says("correct" if '"Vel stream"' in body["messages"][-1]["content"] else "incorrect")

    with MockServer(reply, fault_rate=0.2, seed=3, faults=("429", "500")) as server:
        answers, references = ["Vel stream", "Oru"], [["Vel"]] * 2
        for _ in range(2):
            found = answers_given(answers, references, benchmark="musique", judge=server.spec, questions=QUESTIONS)
            assert found["accuracy"] == 0.5
            assert "simulated" not in found
        assert server.answered.total() == 2


def test_a_judge_that_never_replies_is_an_error(script: Callable[..., str]) -> None:
    with pytest.raises(UserError, match=r"judge: mock:.* no rule of the script fits"):
        answers_given(["Oru"], [["Vel"]], benchmark="musique", judge=script())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"predictions": "Oru"}, "predictions is not a list"),
        ({"predictions": []}, "there are no predictions"),
        ({"predictions": ["Oru", "a\ud800b"]}, r"predictions\[1\] holds half of a surrogate pair: 'a\\ud800b'; mend"),
        ({"references": [["Vel"], ["Oru", "\udfff"]]}, r"references\[1\]\[1\] holds half of a surrogate pair"),
        ({"predictions": ["Oru", 3]}, r"predictions\[1\] is not a text"),
        ({"predictions": ["Oru"]}, "1 predictions but 2 references"),
        ({"references": "Oru"}, "references is not a list"),
        ({"references": ["Vel", "Oru"]}, r"references\[0\] is not a list; references\[1\] is not"),
        ({"references": [["Vel"], []]}, r"there are no references\[1\]"),
        ({"references": [["Vel"], [None]]}, r"references\[1\]\[0\] is not a text"),
        ({"questions": ["Where?"]}, "2 predictions but 1 questions"),
        ({"benchmark": None}, "name the benchmark"),
        ({"benchmark": "squad"}, "unknown benchmark 'squad': give one of"),
        ({"judge": "symbolc"}, "judge: 'symbolc' names no engine; did you mean symbolic"),
        ({"judge": "mock:nowhere.json"}, "judge: mock:nowhere.json: cannot be read"),
        ({"judge": "symbolic", "judge_repeats": 0}, "give 1 or more"),
    ],
)
def test_input_that_is_refused(change: dict[str, Any], reason: str) -> None:
    given: dict[str, Any] = {"predictions": ["Oru", "Vel"], "references": REFERENCES, "benchmark": "musique"}
    with pytest.raises(UserError, match=reason) as refused:
        answers_given(**{**given, **change})
    assert len(str(refused.value).splitlines()) == 1


# ---------------------------------------------------------------------------------------- the loop


def by_loop(**change: Any) -> dict[str, Any]:
    given = {"questions": QUESTIONS, "passages": PASSAGES, "references": REFERENCES}
    return answers_by_loop(**{**given, **change})


def test_the_loop_answers_and_tells_what_it_took(script: Callable[..., str]) -> None:
    marn = "Marn lies by the sea"
    engine = script(
        {"role": "generate", "contains": marn, "reply": STEP},
        {"role": "generate", "reply": STEP},
        {"role": "verify", "contains": marn, "reply": BAD},
        {"role": "verify", "reply": FINE},
        {"role": "judge", "contains": "Oru", "reply": says("correct")},
        {"role": "judge", "reply": "?"},
    )
    found = by_loop(generator=engine, verifier=engine, judge=engine, max_retries=1, max_steps=2)
    assert set(found) == {
        *("exact_match", "f1", "accuracy", "unscored", "calls_per_question", "steps_per_question"),
        *("error_types", "error_positions", "prompt_tokens", "cached_tokens"),
        *("failed", "judge_failed", "simulated"),
    }
    assert (found["exact_match"], found["f1"], found["failed"]) == (0.5, 0.5, 0)
    assert (found["accuracy"], found["unscored"]) == (1.0, 1)
    # A final answer and its verdict; the other one twice, accepted when the retries are used up.
    assert (found["calls_per_question"], found["steps_per_question"]) == (3.0, 1.0)
    assert found["error_types"] == {"Wrong Conclusion": 2}
    assert found["error_positions"] == {1: 2}
    for role in ("generator", "verifier", "judge"):
        assert found["prompt_tokens"][role] > found["cached_tokens"][role] > 0
    again = by_loop(generator=engine, verifier=engine, judge=engine, max_retries=1, max_steps=2)
    assert again == found


def test_methods_ask_whom_they_should(script: Callable[..., str]) -> None:
    generator = script({"role": "generate", "reply": STEP}, {"role": "verify", "reply": BAD})
    verifier = script({"role": "verify", "reply": FINE})

    def calls(method: str) -> float:
        found = by_loop(generator=generator, verifier=verifier, method=method, max_retries=2)
        assert found["accuracy"] is None
        assert "judge" not in found["prompt_tokens"]
        return float(found["calls_per_question"])

    assert calls("no_verification") == 1
    assert calls("safe") == 2
    assert calls("self_verification") == 6


def test_annotated_questions_run_without_a_model() -> None:
    rows = [question for question, _ in generate(Spec(30, 5, 0.0, "plain"), split="train")]
    sound = answers_by_loop(rows, generator="symbolic", verifier="symbolic", judge="symbolic")
    assert sound["exact_match"] == sound["accuracy"] == 1.0
    assert sound["error_types"] == {}
    sloppy = "symbolic:error_rate=0.4,seed=2"
    alone = answers_by_loop(rows, generator=sloppy, method="no_verification")
    verified = answers_by_loop(rows, generator=sloppy, verifier="symbolic")
    assert alone["exact_match"] < verified["exact_match"]
    assert sum(verified["error_types"].values()) == sum(verified["error_positions"].values()) > 0


def test_the_papers_may_be_followed_in_the_loop_and_by_the_judge() -> None:
    generate, verify = (prompts.load(f"loop/{name}").system for name in ("generate", "verify"))
    sent: list[tuple[str, str]] = []

    def reply(body: Any) -> str:
        system, user = (message["content"] for message in body["messages"])
        sent.append((system, user))
        if "contestant" in system:
            return says("correct")
        if system.startswith(verify):
            fault = {"error_type": "Redundancy", "diagnosis": "Again.", "guidance": "Another."}
            return json.dumps(fault)
        return "Step 1: ####ANSWER: the Vel (Final Answer)"

    asked = {"judge_without_question": True, "examples": True}
    options = {"tries_total": True, "last_rejected": True}
    with MockServer(reply) as server:
        players = dict.fromkeys(("generator", "verifier", "judge"), server.spec)
        found = by_loop(**players, **asked, options=options, max_retries=3, max_steps=1)
    assert (found["calls_per_question"], found["error_types"]) == (6, {"Redundancy": 6})
    written, judged = [user for system, user in sent if system == generate], sent[-1]
    # Of the third tries nothing is new, so that none of them is sent.
    assert sorted(user.count("\nRejected: ") for user in written) == [0, 0, 1, 1]
    assert "Question: " not in judged[1]
    assert judged[0].endswith(prompts.examples(["judge"])["judge"])
    shown = prompts.examples(["verify"])["verify"]
    verdicts = [system for system, _ in sent if system.startswith(verify)]
    assert verdicts
    assert all(system.endswith(shown) for system in verdicts)


def test_a_failed_question_is_counted_and_all_of_them_are_an_error(script: Callable[..., str]) -> None:
    half = script({"role": "generate", "contains": "Oru lies", "reply": STEP})
    found = by_loop(generator=half, method="no_verification")
    assert (found["failed"], found["exact_match"]) == (1, 0.5)
    with pytest.raises(UserError, match=r"all 2 questions failed: mock:"):
        by_loop(generator=script(), method="no_verification")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"generator": None}, "the method safe needs a generator: name its engine"),
        ({"generator": "vlm:x"}, "generator: 'vlm:x' names no engine; did you mean vllm:x"),
        ({"verifier": None}, "the method safe needs a verifier"),
        ({"verifier": "nobody"}, "verifier: 'nobody' names no engine"),
        ({"method": "Safe"}, "unknown method 'Safe': give one of direct, cot"),
        ({"max_steps": 0}, "max_steps has to be 1 or more"),
        ({"max_steps": "ten"}, "max_steps is not a whole number"),
        ({"on_exhausted": "stop"}, "on_exhausted is not one of accept, drop"),
        ({"feedback": "none"}, "feedback is not one of full"),
        ({"benchmark": "squad"}, "unknown benchmark 'squad'"),
        ({"questions": QUESTIONS[:1]}, "1 questions but 2 passages"),
        ({"questions": QUESTIONS[0]}, "questions is not a list"),
        ({"questions": []}, "there are no questions"),
        ({"references": REFERENCES[:1]}, "2 questions but 1 references"),
        ({"references": None}, "needs passages and references"),
        ({"passages": "Oru"}, "passages is not a list"),
        ({"passages": ["Oru", "Marn"]}, r"passages\[0\] is not a list"),
        ({"passages": [["Oru"], []]}, r"there are no passages\[1\]"),
        ({"passages": [["Oru"], [{"title": "Marn"}]]}, r"passages\[1\]\[0\] is \{'title'"),
        ({"passages": [["Oru"], [{"text": 3}]]}, r"passages\[1\]\[0\] sentences is not a list"),
        ({"passages": [["Oru"], [{"title": "\ud800", "text": "x"}]]}, r"passages\[1\]\[0\] title holds half"),
        ({"passages": [["Oru"], [{"sentences": ["x", 3]}]]}, r"sentences\[1\] is not a text"),
        ({"generator": "symbolic"}, "generator: symbolic goes by annotations"),
        ({"questions": [Question("1", "musique", "", "?", "a")]}, "leave those out"),
    ],
)
def test_a_loop_that_is_refused(change: dict[str, Any], reason: str, script: Callable[..., str]) -> None:
    engine = script({"reply": STEP})
    with pytest.raises(UserError, match=reason) as refused:
        by_loop(**{"generator": engine, "verifier": engine, **change})
    assert len(str(refused.value).splitlines()) == 1


def test_passages_of_any_form_reach_the_engine_alike() -> None:
    asked: list[str] = []

    def reply(body: Any) -> str:
        asked.append(body["messages"][-1]["content"])
        return STEP

    told = ["It is a town.", " It lies on the Vel."]
    forms = [
        {"title": "Oru", "sentences": told, "is_gold": True},
        {"title": "Oru", "text": "It is a town. It lies on the Vel."},
        Passage("Oru", tuple(told)),
    ]
    with MockServer(reply) as server:
        for number, form in enumerate(forms):
            found = by_loop(
                questions=[f"Where {number}?"],
                passages=[[form]],
                references=[["Vel"]],
                generator=server.spec,
                method="no_verification",
            )
            assert found["exact_match"] == 1.0
    assert len(asked) == 3
    shown = {text.partition("Question:")[0] for text in asked}
    assert shown == {'Passages:\nPassage 1 ("Oru"): "It is a town. It lies on the Vel."\n\n'}


# ------------------------------------------------------------------------------------ where it runs


def test_it_runs_inside_an_event_loop() -> None:
    async def notebook() -> dict[str, Any]:
        return answers_given(["Vel"], [["Vel"]], benchmark="musique", judge="symbolic")

    assert asyncio.run(notebook())["accuracy"] == 1.0
    assert answers_given(["Vel"], [["Vel"]], benchmark="musique", judge="symbolic")["accuracy"] == 1


def test_options_are_checked_by_name() -> None:
    checked_options("loop", ["generator", "judge", "questions"])
    for config, names, reason in [
        ("safe", [], "no config 'safe'"),
        ("default", ["genrator"], "default has no option genrator; "),
        ("loop", ["max_step"], "did you mean max_steps"),
    ]:
        with pytest.raises(UserError, match=reason):
            checked_options(config, names)
