"""The engine of the players: its chance, which earlier results rest on, and who plays what."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Message, Request, request_key
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.methods.scene import AnswerScene, Scene
from safe_stepwise.methods.verifier import verifier_request
from safe_stepwise.metric.judge import JudgeCase, judge_request
from safe_stepwise.open import open_engine
from safe_stepwise.players import judging, prompting, steps
from safe_stepwise.players.symbolic import Rates, SymbolicEngine
from safe_stepwise.records import Feedback, Passage, Question, Step, Triple

ASKED = Question(
    "q",
    "musique",
    "train",
    "Where was the director of Dune Rain born?",
    "Oru",
    passages=(
        Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True),
        Passage("Ors Velt", ("Ors Velt was born in Oru.",), True),
    ),
    evidence=(Triple("Dune Rain", "director", "Ors Velt", 1), Triple("Ors Velt", "place of birth", "Oru", 2)),
)
STEP = Step(1, "According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution")
WRONG = Feedback("Off-topic", "It is not asked for.", "Read Passage 2.")
EXTRACT = Request((Message("user", "Read."),), role="extract")


def engine(error_rate: float = 0.5) -> SymbolicEngine:
    found = open_engine(f"symbolic:error_rate={error_rate},seed=3")
    assert isinstance(found, SymbolicEngine)
    return found


def generation() -> Request:
    rejected = [("Step 2: No. (Logical)", WRONG)]
    request = generator_request(ASKED.question, ASKED.passages, [STEP], None, rejected)
    return replace(request, scene=Scene(ASKED, previous=(STEP,), feedback=WRONG))


def judgement() -> Request:
    request = verifier_request(ASKED.question, ASKED.passages, [], STEP)
    return replace(request, scene=Scene(ASKED, step=STEP))


# As they were when a request had a field for everything that a scene holds: the chance is drawn
# from them, so that another key would make another trajectory out of the same spec. The prompts'
# words are in it: the first two changed with version 2 of loop/generate and 3 of loop/verify.
@pytest.mark.parametrize(
    ("request_", "key", "reply"),
    [
        (
            generation(),
            "3f8b9aecb15b8257dafc6baaaf75b9347d4ad37c77c176f380ffb104c6a790b5",
            "Step 2: According to Passage 2, Oru the Other was the birthplace of Ors Velt. (Attribution)",
        ),
        (
            judgement(),
            "41a0c8a12bbc399a9085b5316935b7d22fcfec585b60868678ff99283d7e7536",
            '{"error_type": "Correct", "diagnosis": "The claim is true to its source and is '
            "needed here, since “Dune Rain was directed by Ors Velt” is what Passage 1 "
            'says.", "guidance": "The next step is to find the place of birth of Ors Velt in the '
            'passages, since the answer depends on that."}',
        ),
        (
            replace(EXTRACT, scene=Scene(ASKED, 2)),
            "1e63c8852377ed07ec5de696b17954ba40b397f82908dae256b4ea8457a22ffe",
            '{"triples": [{"head": "Ors Velt", "relation": "place of birth", "tail": "Oru", "sentence": 0}]}',
        ),
    ],
)
def test_what_is_drawn_for_a_request_stays(request_: Request, key: str, reply: str) -> None:
    assert request_key(engine(), request_) == key
    assert engine().answer(request_) == Completion(reply)


def test_a_request_without_a_scene_has_the_key_that_it_always_had() -> None:
    key = "862ed2fd818ab91cf190eede56fb8832b86b56ba0576124be1e9287f23b9edfc"
    assert request_key(engine(), EXTRACT) == key


def test_a_judge_is_shown_the_whole_answer_and_those_accepted() -> None:
    long = judge_request(JudgeCase(" the Vel" + "x" * 2_000, ("Vel", "River Vel"), "Where is Oru?"))
    other = judge_request(JudgeCase(" the Vel" + "x" * 1_999 + "y", ("Vel", "River Vel"), "Where is Oru?"))
    assert long.scene == AnswerScene("the Vel" + "x" * 2_000, ("Vel", "River Vel"))
    assert long.messages == other.messages
    assert request_key(engine(), long) != request_key(engine(), other)


def test_each_role_is_played_by_one() -> None:
    """So that whoever joins them loses none."""
    players = (steps, judging, prompting)
    assert set(engine().roles) == {role for file in players for role in file.ROLES}
    assert len(engine().roles) == sum(len(file.ROLES) for file in players)


@pytest.mark.parametrize(
    ("role", "scene", "expected"),
    [
        ("sing", Scene(ASKED), "does not know the role 'sing'"),
        ("generate", None, "does not know the role 'generate'"),
        ("verify", Scene(ASKED), "has no step to judge"),
        ("judge", Scene(ASKED), "has no answer to judge"),
        ("extract", Scene(replace(ASKED, evidence=())), "no annotated triples"),
    ],
)
def test_what_cannot_be_played_is_an_error(role: str, scene: Scene | None, expected: str) -> None:
    found = engine().answer(replace(EXTRACT, role=role, scene=scene))
    assert isinstance(found, EngineError)
    assert expected in str(found)


def test_another_role_is_a_mapping_more() -> None:
    def sing(request: Request, rates: Rates, chance: object) -> str:
        return f"la {rates.error_rate}"

    singer = SymbolicEngine({**engine().roles, "sing": sing}, Rates(0.25))
    assert singer.answer(replace(EXTRACT, role="sing", scene=Scene(ASKED))) == Completion("la 0.25")


def test_a_reply_of_other_code_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    request = judgement()

    def calls(code: str) -> int:
        player = open_engine("symbolic")
        player.code = code  # type: ignore[attr-defined]
        client = Client(player, ResponseCache(tmp_path / "replies.sqlite"))
        asyncio.run(client.complete(request))
        return client.total().calls

    assert [calls(code) for code in ("one", "one", "two")] == [1, 0, 1]
    assert len(open_engine("symbolic").code) == 64  # type: ignore[attr-defined]
