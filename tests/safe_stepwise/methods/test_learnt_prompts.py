"""A prompt without one category: what it says, which adapters ask for it, and who is refused."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.synthetic import Spec, generate
from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback, parse_feedback
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import resolve_options
from safe_stepwise.methods.learnt_prompts import dropped_category
from safe_stepwise.methods.loop import DEFAULT, UNREAD, Limits
from safe_stepwise.methods.running import make_answerer, run_questions
from safe_stepwise.methods.sg_fsm_safe import GuardOptions
from safe_stepwise.methods.verifier import instructions, prompt_digest, verifier_request
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Passage, Step, Trajectory
from safe_stepwise.taxonomy import CATEGORIES, DROPPABLE, TAXONOMY, Category, category, labels
from tests.safe_stepwise.methods.machines import ASKED as MACHINE_ASKED
from tests.safe_stepwise.methods.machines import Script, verdict
from tests.safe_stepwise.methods.test_loop import ASKED, FOUR, IDEAL

STEP = Step(1, "According to Passage 1, Oru lies on the Vel.", "Attribution")
PAGES = [Passage("Oru", ("Oru lies on the Vel.",))]


@pytest.mark.parametrize("dropped", DROPPABLE)
@pytest.mark.parametrize("incomplete", [False, True])
def test_nothing_in_the_request_tells_of_the_category(dropped: Category, incomplete: bool) -> None:
    request = verifier_request("Q?", PAGES, [], STEP, incomplete, dropped)
    assert request.schema is not None
    enum = json.loads(request.schema.text)["properties"]["error_type"]["enum"]
    whole = verifier_request("Q?", PAGES, [], STEP, incomplete)
    assert request.messages[1] == whole.messages[1]
    said = request.messages[0].content
    for entry in TAXONOMY:
        gone = entry.category == dropped
        assert (entry.name in enum) == (entry.name in labels(incomplete) and not gone)
        assert not gone or (entry.name not in said and entry.definition not in said)
    lines = set(whole.messages[0].content.splitlines())
    assert len([line for line in said.splitlines() if line not in lines]) <= 3  # orders of checks
    assert ("Missing Evidence" in said) == incomplete


def test_the_digest_is_of_the_prompt_that_is_sent() -> None:
    every = list(product((False, True), (None, *DROPPABLE)))
    assert len({prompt_digest(*one) for one in every}) == len(every) == 10
    assert len({instructions(*one) for one in every}) == 10
    assert set(CATEGORIES) - set(DROPPABLE) == {"Correct", "Missing Evidence"}


def test_a_label_that_was_not_told_of_is_no_verdict() -> None:
    for entry in TAXONOMY:
        query = "q" if entry.name == "Missing Evidence" else None
        said = format_feedback(Feedback(entry.name, "d", "g", query))
        for dropped in DROPPABLE:
            if category(entry.name) == dropped:
                with pytest.raises(FeedbackError, match="was not to choose from"):
                    parse_feedback(said, True, dropped=dropped)
            else:
                assert parse_feedback(said, True, dropped=dropped).error_type == entry.name


# ---------------------------------------------------------------------------------------- adapters


def trained(folder: Path, drop_category: str | None, drop_from_prompt: bool) -> Path:
    folder.mkdir(exist_ok=True)
    filters = {"drop_category": drop_category, "drop_from_prompt": drop_from_prompt}
    (folder / "training.json").write_text(json.dumps({"recipe": {"filters": filters}}))
    return folder


def engine(folder: Path | None, reply: Any = None) -> Any:
    made: Any = MockEngine(reply or (lambda request: "x"))
    made.adapter = folder and SimpleNamespace(folder=folder)
    made.name = folder.name if folder else "served"
    return made


def test_an_adapter_says_what_it_learnt(tmp_path: Path) -> None:
    short = engine(trained(tmp_path / "short", "Procedural", True))
    whole = engine(trained(tmp_path / "whole", "Procedural", False))
    (tmp_path / "strange").mkdir()
    unknown, served = engine(tmp_path / "strange"), engine(None)
    assert dropped_category([short]) == dropped_category([served, short, unknown]) == "Procedural"
    assert dropped_category([short], "Procedural") == "Procedural"
    assert dropped_category([whole]) is dropped_category([served]) is None
    assert dropped_category([served, unknown], "Logical") == "Logical"
    with pytest.raises(UserError, match=r"^short: was .* drop_category Procedural, .* asked for \(Logical\)"):
        dropped_category([short], "Logical")
    with pytest.raises(UserError, match=r"^whole: was .* drop_category None, .* asked for \(Logical\)"):
        dropped_category([whole], "Logical")
    with pytest.raises(UserError, match=r"^whole: was .* drop_category None, .* of short \(Procedural\)"):
        dropped_category([short, whole])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"recipe": {"filters": {"drop_from_prompt": true}}}', "drop_category 'None' is not kno"),
        ('{"recipe": {"filters": {"drop_from_prompt": true, "drop_category": "Correct"}}}', "choose from Procedural"),
    ],
)
def test_a_record_that_is_none_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "training.json").write_text(content)
    with pytest.raises(UserError, match=told):
        dropped_category([engine(tmp_path)])


@pytest.mark.parametrize("content", ["{}", '{"recipe": []}', '{"recipe": {"filters": {}}}'])
def test_an_adapter_of_before_learnt_the_whole_prompt(tmp_path: Path, content: str) -> None:
    (tmp_path / "training.json").write_text(content)
    assert dropped_category([engine(tmp_path)]) is None
    with pytest.raises(UserError, match="drop_category None"):
        dropped_category([engine(tmp_path)], "Logical")


# ---------------------------------------------------------------------------------------- the loop


def answered(
    folder: Path | None, verdicts: list[Feedback], limits: Limits = DEFAULT
) -> tuple[Trajectory, list[Request]]:
    asked: list[Request] = []

    def judge(request: Request) -> str:
        asked.append(request)
        return format_feedback(verdicts[min(len(asked), len(verdicts)) - 1])

    steps = iter([*IDEAL, *[FOUR] * 9])
    players = {
        "generator": Client(MockEngine(lambda _: next(steps, FOUR)), tries=1),
        "verifier": Client(engine(folder, judge), tries=1),
    }
    answer = make_answerer(METHODS["safe"], players, limits)
    return asyncio.run(answer(ASKED)), asked  # type: ignore[arg-type]


def test_the_loop_asks_as_the_adapter_learnt(tmp_path: Path) -> None:
    good = Feedback("Correct", "It is so.", "Go on.")
    folder = trained(tmp_path / "a", "Procedural", True)
    found, asked = answered(folder, [good])
    assert found.answer == "Oru"
    assert {r.messages[0].content for r in asked} == {instructions(dropped="Procedural")}
    served, sent = answered(None, [good], replace(DEFAULT, drop_category="Procedural"))
    assert [r.messages for r in sent] == [r.messages for r in asked]
    assert served.attempts == found.attempts
    _, before = answered(None, [good])
    assert {r.messages[0].content for r in before} == {instructions()}
    with pytest.raises(UserError, match=r"drop_category Procedural, .* asked for \(L"):
        answered(folder, [good], replace(DEFAULT, drop_category="Logical"))


def test_a_verdict_of_the_category_is_unread(tmp_path: Path) -> None:
    off = Feedback("Off-topic", "It is off.", "Come back.")
    found, _ = answered(trained(tmp_path / "a", "Procedural", True), [off])
    said = [a.feedback.error_type for a in found.attempts if a.feedback]
    assert set(said) == {UNREAD}
    usual, _ = answered(None, [off])
    assert {a.feedback.error_type for a in usual.attempts if a.feedback} == {"Off-topic"}


def test_a_machines_guard_asks_as_the_adapter_learnt(tmp_path: Path) -> None:
    off = Script(verify=[verdict("Off-topic"), verdict("Correct")])
    players = {
        "generator": Client(MockEngine(off), tries=1),
        "verifier": Client(engine(trained(tmp_path / "a", "Procedural", True), off), tries=1),
    }
    method = METHODS["sg_fsm_safe"]
    answer = make_answerer(method, players, GuardOptions())
    found = asyncio.run(answer(MACHINE_ASKED))  # type: ignore[arg-type]
    asked = {request.messages[0].content for request in off.asked["verify"]}
    assert asked == {instructions(dropped="Procedural")}
    judged = [a for a in found.attempts if a.state == "g2"]
    assert [a.next_state for a in judged[:2]] == ["q2", "q4"], "a label it never learnt is unread"
    with pytest.raises(UserError, match=r"drop_category Procedural, .* asked for \(L"):
        make_answerer(method, players, GuardOptions(drop_category="Logical"))
    with pytest.raises(ValueError, match="drop_category is one of Procedural, Attribution"):
        GuardOptions(drop_category="Correct")  # type: ignore[arg-type]


def test_only_the_one_who_judges_is_asked_what_it_learnt(tmp_path: Path) -> None:
    short = Client(engine(trained(tmp_path / "a", "Logical", True)))
    plain = Client(engine(None))
    safe, alone = METHODS["safe"], METHODS["self_verification"]
    none = METHODS["no_verification"]
    options = {
        "safe": safe.resolve_options(DEFAULT, {"generator": short, "verifier": plain}),  # type: ignore[attr-defined]
        "self": alone.resolve_options(DEFAULT, {"generator": short}),  # type: ignore[attr-defined]
        "none": none.resolve_options(DEFAULT, {"generator": short}),  # type: ignore[attr-defined]
    }
    assert {who: one.drop_category for who, one in options.items()} == {
        "safe": None, "self": "Logical", "none": None
    }  # fmt: skip
    with pytest.raises(ValueError, match="drop_category is one of Procedural, Attribution"):
        Limits(drop_category="Correct")


def test_players_pass_what_they_are_not_told_of() -> None:
    """A symbolic verifier without Attribution says no label of it, and catches less."""

    def play(verifier: str, dropped: Category | None) -> Counter[str]:
        clients = {
            "generator": Client(open_engine("symbolic:error_rate=0.4,seed=1")),
            "verifier": Client(open_engine(verifier)),
        }
        answer = make_answerer(METHODS["safe"], clients, replace(DEFAULT, drop_category=dropped))
        asked = [question for question, _ in generate(Spec(30, 1, 0.0, "plain"), split="train")]
        found = asyncio.run(run_questions(asked, answer))
        return Counter(a.feedback.error_type for t in found for a in t.attempts if a.feedback)

    whole, short = play("symbolic", None), play("symbolic", "Attribution")
    assert whole["Contradictory"] > 5
    assert not {category(label) for label in short} & {"Attribution"}
    noisy = play("symbolic:error_rate=0.5,seed=1", "Attribution")
    assert UNREAD not in short | noisy
    assert "Attribution" not in {category(label) for label in noisy}
    assert {"Redundancy", "Logical Fallacy"} & set(noisy)


def test_examples_that_say_more_than_the_prompt_are_refused() -> None:
    shown = Client(MockEngine([]), allowance=Allowance.by_role(examples=prompts.examples(["verify"])))
    for method, roles in (("safe", ("generator", "verifier")), ("self_verification", ("generator",))):
        players = dict.fromkeys(roles, shown)
        resolve_options(METHODS[method], DEFAULT, players)
        with pytest.raises(UserError, match=r"--examples verify: they show Logical errors"):
            resolve_options(METHODS[method], replace(DEFAULT, drop_category="Logical"), players)
