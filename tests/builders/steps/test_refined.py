"""Lines of refined rows give the rows back, and a damaged one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.steps.refined import line_of, read_refined
from builders.steps.rows import StepRow
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Hop, Passage, Question, Step, SupportingFact, Triple
from safe_stepwise.taxonomy import labels

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
WORD = st.text('abc é\u2028"\\', min_size=1, max_size=8).map(lambda text: f"x{text}x")
QUESTIONS = st.builds(
    Question,
    id=TEXT,
    benchmark=st.sampled_from(["musique", "hotpotqa"]),
    split=st.just("train"),
    question=TEXT,
    answer=TEXT,
    aliases=st.lists(TEXT, max_size=2).map(tuple),
    kind=TEXT,
    hops=st.integers(0, 4),
    passages=st.lists(st.builds(Passage, TEXT, st.lists(TEXT, max_size=2).map(tuple), st.booleans()), max_size=2).map(
        tuple
    ),
    supporting_facts=st.lists(st.builds(SupportingFact, TEXT, st.integers(0, 9)), max_size=2).map(tuple),
    evidence=st.lists(st.builds(Triple, TEXT, TEXT, TEXT), max_size=2).map(tuple),
    decomposition=st.lists(st.builds(Hop, TEXT, TEXT, st.none() | st.integers(1, 9)), max_size=2).map(tuple),
)


@st.composite
def refined_rows(draw: st.DrawFn) -> StepRow:
    number = draw(st.integers(1, 3))
    kinds = st.sampled_from(["Attribution", "Logical"])
    steps = [Step(n, draw(WORD), draw(kinds)) for n in range(1, number + 1)]
    label = draw(st.sampled_from(labels()))
    said = Feedback(label, draw(TEXT), draw(WORD))
    return StepRow(draw(QUESTIONS), tuple(steps[:-1]), steps[-1], said, "refined", draw(TEXT))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(refined_rows(), max_size=3))
def test_lines_give_the_rows_back(tmp_path: Path, made: list[StepRow]) -> None:
    file = tmp_path / "refined.jsonl"
    file.write_bytes("".join(map(line_of, made)).encode())
    assert read_refined(file) == made


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: line.replace('"refined"', '"ideal"'),
        lambda line: line.replace('"Correct"', '"Fine"'),
        lambda line: line.replace('"step"', '"steps"'),
        lambda line: line.replace('"number":1', '"number":4'),
        lambda line: "",
        lambda line: "[]",
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
    question = Question("q", "musique", "train", "Where?", "Oru")
    step = Step(1, "Oru lies on the Vel.", "Logical")
    line = line_of(StepRow(question, (), step, Feedback("Correct", "", ""), "refined", "t"))
    file = tmp_path / "refined.jsonl"
    file.write_text(f"{line}{damage(line.strip())}\n{line}")
    with pytest.raises(UserError, match=r"refined.jsonl, line 2: is no refined row"):
        read_refined(file)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_refined(tmp_path / "none.jsonl")
