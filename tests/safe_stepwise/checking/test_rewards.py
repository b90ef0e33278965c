"""The checker as a reward: what is proved pays, and nothing else does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.synthetic import generate, parse_spec
from builders.verified.lookup import verified_rows
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from examples.grpo import Trajectories, trajectories
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.rewards import AFTER_THE_ANSWER, COLUMNS, MALFORMED, checker_of, judge_trajectory
from safe_stepwise.commands.reading import examples, parse_question
from safe_stepwise.errors import UserError
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.rewards import compute_score, step_reward, trajectory_reward

ROOT = Path(__file__).parents[3]
UNREAD = "Step 1: No passage mentions Zorp. (Attribution)"
"""Of which the checker proves nothing."""


@cache
def told() -> tuple[Trajectories, ...]:
    made = generate(parse_spec("rows=60,seed=77,noise=0.0,writer=plain"), 0, 60, "train")
    pairs = ((q, asyncio.run(verify(q, AnnotationsTeacher()))) for q, _ in made)
    return tuple(trajectories(pairs))


def first() -> tuple[dict[str, list[Any]], Checker, str]:
    """The columns of one row, its checker, its ideal trajectory."""
    one = told()[0]
    checker = checker_of(one.row)
    assert checker is not None
    return {name: [one.row[name]] for name in COLUMNS}, checker, one.ideal[0]


def test_ideal_trajectories_are_worth_all_and_injected_ones_little() -> None:
    assert len(told()) > 50
    assert {reward for one in told() for reward in one.rewards(one.ideal)} == {1.0}
    injected = [reward for one in told() for reward in one.rewards(one.injected)]
    assert len(injected) > 300
    assert max(injected) < 0.5  # whatever is wrong, the answer is not earned


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "musique", "hotpotqa"])
def test_so_they_are_on_real_rows(benchmark: str, real_data: Path) -> None:
    rows = verified_rows(benchmark, real_data / f"{benchmark}_dev.jsonl", "validation")
    sound = (pair for pair in rows if pair[1].noise_type == "none")
    some = [*trajectories(pair for pair, _ in zip(sound, range(25), strict=False))]
    assert len(some) > 15
    assert fmean(r for one in some for r in one.rewards(one.ideal)) >= 0.95
    assert fmean(r for one in some for r in one.rewards(one.injected)) <= 0.6


def test_what_precedes_the_first_step_is_skipped_and_a_conversation_is_read() -> None:
    columns, _, ideal = first()
    said = f"<think>Step by step.</think>\n{ideal}\n"
    assert trajectory_reward(["?"], [said], **columns) == [1.0]
    assert trajectory_reward(["?"], [[{"role": "assistant", "content": ideal}]], **columns) == [1.0]
    assert trajectory_reward(["?"], [[{"role": "assistant", "content": None}]], **columns) == [0.0]


def test_neither_padding_nor_stopping_early_nor_what_cannot_be_read_pays() -> None:
    _, checker, ideal = first()
    steps = ideal.splitlines()
    short = judge_trajectory(checker, steps[0])
    assert (short.labels, short.earned) == (("Correct",), False)
    assert 0 < short.reward < 0.25  # of all that its plan takes, not of what it says
    unread = judge_trajectory(checker, UNREAD)
    assert (unread.labels, unread.fault, unread.reward) == ((None,), "", 0)
    again = [*steps[:1], steps[0].replace("Step 1", "Step 2", 1)]
    assert judge_trajectory(checker, "\n".join(again)).fault == "Redundancy"
    late = f"{ideal}\nStep {len(steps) + 1}: It is so. (Logical)"
    assert judge_trajectory(checker, late).fault == AFTER_THE_ANSWER
    assert judge_trajectory(checker, late).reward < 0.5


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("was born in Tesk", "was born in Tesk, or in Oru, Paris, Rome or London"),
        ("was directed by Maro Quill", "was directed by Maro Quill or Ilse Bram"),
        ("the answer is Tesk", "the answer is not Tesk"),
        ("the answer is Tesk", "the answer is Tesk or Paris"),
        ("the answer is Tesk", "the answer isn't Tesk"),
    ],
)
def test_what_is_left_open_or_denied_is_not_proved(said: str, instead: str) -> None:
    row = examples()[0]
    question = parse_question("example", row)
    checker = strict_checker_of(question)
    told = (
        "Step 1: According to Passage 2, The Salt Clock was directed by Maro Quill. (Attribution)\n"
        "Step 2: According to Passage 4, Maro Quill was born in Tesk. (Attribution)\n"
        "Step 3: From Step 1 and Step 2, the answer is Tesk. (Logical)\n"
        "Step 4: ####ANSWER: Tesk (Final Answer)"
    )
    assert judge_trajectory(checker, told).reward == 1
    assert said in told
    hedged = judge_trajectory(checker, told.replace(said, instead))
    assert (hedged.earned, None in hedged.labels or bool(hedged.fault)) == (False, True)
    assert hedged.reward < 0.5


def test_an_answer_that_is_not_earned_is_not_paid() -> None:
    _, checker, ideal = first()
    answer = ideal.splitlines()[-1].partition(": ")[2]
    guessed = judge_trajectory(checker, f"Step 1: {answer}")
    assert (guessed.fault, guessed.reward) == ("Wrong Conclusion", 0)


@pytest.mark.parametrize(
    "text", ["Step 1: no kind", "Step 2: It is so. (Logical)", "Step 1: a (Logical) b\nStep 2: c (Logical)"]
)
def test_what_breaks_the_grammar_ends_a_trajectory(text: str) -> None:
    _, checker, _ = first()
    judged = judge_trajectory(checker, text)
    assert (judged.fault, judged.labels, judged.reward) == (MALFORMED, (MALFORMED,), 0)


@given(st.text(alphabet=st.sampled_from("Step 123:()#ANWR.\n LogicalFinal"), max_size=200))
def test_any_text_has_a_reward(text: str) -> None:
    _, checker, ideal = first()
    for said in (text, f"{ideal}\n{text}"):
        judged = judge_trajectory(checker, said)
        assert 0 <= judged.reward <= 1
        assert len(judged.labels) <= max(judged.steps, 0)


def test_a_step_is_judged_after_those_before_it() -> None:
    columns, _, ideal = first()
    steps = ideal.splitlines()
    many = {name: values * 3 for name, values in columns.items()}
    previous = [steps[:1], [], steps[:1]]
    given_ = step_reward(["?"] * 3, [steps[1], steps[1], "?"], previous_steps=previous, **many)
    assert given_ == [1.0, 0.0, 0.0]  # the next step; out of place; no step
    with pytest.raises(UserError, match="previous_steps must be lists of well-formed steps"):
        step_reward(["?"], ["?"], previous_steps=[["?"]], **columns)


def test_a_row_without_a_plan_is_not_scored_and_a_missing_column_is_told() -> None:
    columns, _, ideal = first()
    none = {**columns, "reasoning_path": [[]]}
    assert trajectory_reward(["?"], [ideal], **none) == [None]
    assert step_reward(["?"], ["?"], previous_steps=[[]], **none) == [None]
    del none["knowledge_graph"], none["evidence"]
    with pytest.raises(UserError, match="no column evidence, knowledge_graph: train on rows of a config that ends in"):
        trajectory_reward(["?"], [ideal], **none)


@pytest.mark.parametrize("value", [None, 5, b"x", ["x"], [None], [{"content": 5}], [{"content": [None]}]])
def test_what_is_no_completion_or_step_is_told(value: Any) -> None:
    columns, _, _ = first()
    with pytest.raises(UserError, match=r"a completion \(\w+\) is neither a text nor turns"):
        trajectory_reward(["?"], [value], **columns)
    with pytest.raises(UserError, match="a completion"):
        step_reward(["?"], [value], previous_steps=[[]], **columns)
    with pytest.raises(UserError, match="previous_steps must be lists of well-formed steps"):
        step_reward(["?"], ["?"], previous_steps=[value], **columns)


def test_the_share_that_nothing_is_proved_of_is_logged() -> None:
    columns, _, ideal = first()
    logged: dict[str, float] = {}
    said = f"{UNREAD}\nStep 2: no kind"
    log = {"log_metric": logged.__setitem__, "trainer_state": None}
    trajectory_reward(["?"], [said], **columns, **log)
    assert logged == {"checker_abstained": 0.5}
    trajectory_reward(["?"], [ideal], **columns, **log)
    assert logged == {"checker_abstained": 0.0}


def test_it_needs_no_torch() -> None:
    code = (
        "import sys; import safe_stepwise.rewards; "
        "print({'torch', 'trl', 'transformers', 'datasets'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout.strip() == "set()", ran.stderr


OWN_STEPS = (
    "Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)\n"
    "Step 2: According to Passage 2, Ors Velt was born in Oru. (Attribution)\n"
    "Step 3: From Step 1 and Step 2, the director of Dune Rain was born in Oru. (Logical)\n"
    "Step 4: ####ANSWER: Oru (Final Answer)"
)
OWN_TEXTS = ["Dune Rain is a 1954 film. It was directed by Ors Velt.", "Ors Velt was born in Oru. He moved to Tesk."]
OWN_SHAPES: dict[str, dict[str, Any]] = {
    "texts": {"passages": OWN_TEXTS},
    "objects": {"contexts": [{"title": t[:9], "text": t} for t in OWN_TEXTS], "answers": ["Oru", "Oru town"]},
    "hotpotqa": {
        "context": [["Dune Rain", OWN_TEXTS[0].split(". ")], ["Ors Velt", OWN_TEXTS[1].split(". ")]],
        "supporting_facts": [["Dune Rain", 1], ["Ors Velt", 0]],
    },
    "columns": {"context_1": OWN_TEXTS[0], "context_2": OWN_TEXTS[1]},
    "triples": {
        "passages": [{"title": t[:9].strip(), "text": t} for t in OWN_TEXTS],
        "evidence": [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]],
    },
}


@pytest.mark.parametrize("shape", OWN_SHAPES)
def test_rows_of_ones_own_are_rewarded_in_any_form(shape: str) -> None:
    row = {"question": "Where was the director of Dune Rain born?", "answer": "Oru", **OWN_SHAPES[shape]}
    if "answers" in row:
        del row["answer"]
    columns = {name: [value, value] for name, value in row.items()}
    wrong = OWN_STEPS.replace("Ors Velt was born in Oru", "Ors Velt was born in Tesk")
    right, false = trajectory_reward(["?"] * 2, [OWN_STEPS, wrong], **columns)
    assert right == 1
    assert false is not None
    assert false < 0.25
    steps = OWN_STEPS.splitlines()
    given_ = step_reward(["?"] * 2, [steps[1], wrong.splitlines()[1]], previous_steps=[steps[:1]] * 2, **columns)
    assert given_ == [1, 0]


@pytest.mark.parametrize(
    "steps",
    [
        "Step 1: ####ANSWER: Oru (Final Answer)",
        # true, but about nothing that the question or an earlier step names
        "Step 1: According to Passage 2, Ors Velt was born in Oru. (Attribution)\n"
        "Step 2: ####ANSWER: Oru (Final Answer)",
        # another answer, soundly read
        OWN_STEPS.replace("born in Oru", "moved to Tesk").replace("Oru", "Tesk"),
        OWN_STEPS.replace("was directed by", "was not directed by"),
        OWN_STEPS.replace("Step 4", "Step 4: By the way, it is a masterpiece. (Attribution)\nStep 5"),
    ],
)
def test_no_way_round_the_passages_pays(steps: str) -> None:
    columns = {"question": ["Where was the director of Dune Rain born?"], "answer": ["Oru"], "passages": [OWN_TEXTS]}
    (reward,) = trajectory_reward(["?"], [steps], **columns)
    assert reward is not None
    assert reward <= 0.25


def test_all_columns_that_an_own_row_lacks_are_told_at_once() -> None:
    with pytest.raises(UserError, match=r"no column is known to hold answer and passages\. It has question, text"):
        trajectory_reward(["?"], ["?"], question=["Where?"], text=["?"])
    with pytest.raises(UserError, match="row 1: supporting fact 1 names 'Vel'"):
        trajectory_reward(["?"], ["?"], question=["?"], answer=["?"], passages=[["a"]], supporting_facts=[[["Vel"]]])


@pytest.mark.parametrize("passages", [None, 5, [], [5], [["a", 5]], [{"title": "a"}], {"text": 5}, [None]])
@pytest.mark.parametrize("answer", ["Oru", 5, None, ["Oru", 5], {"text": []}])
def test_any_own_row_is_judged_or_refused_in_one_line(passages: Any, answer: Any) -> None:
    columns = {"question": ["Where?", "Who?"], "answer": [answer, "Ana"], "passages": [passages, ["Ana left Oru."]]}
    message = "row 1: "
    try:
        trajectory_reward(["?"] * 2, [OWN_STEPS] * 2, **columns)
    except UserError as error:
        message = str(error)
    assert message.startswith("row 1: ")
    assert "\n" not in message


def test_verls_score_is_the_trajectorys_reward() -> None:
    row = {"question": "Where was Ors Velt born?", "passages": ["Ors Velt was born in Oru."]}
    texts = [
        f"Step 1: Ors Velt was born in {place}. (Attribution)\nStep 2: ####ANSWER: {place} (Final Answer)"
        for place in ("Oru", "Vel")
    ]
    for truth in ("Oru", {"target": ["Oru", "Oru town"]}):
        scores = [compute_score("own", text, truth, row) for text in texts]
        columns = {name: [value] * len(texts) for name, value in {**row, "answer": truth}.items()}
        assert [score["score"] for score in scores] == trajectory_reward([], texts, **columns) == [1.0, 0.0]
        assert [score["step_scores"] for score in scores] == [[1, 1], [0]]
    with pytest.raises(UserError, match="no column is known to hold question and passages"):
        compute_score("own", texts[0], "Oru")
