"""Chains given as text: what the metric's config ``faithfulness`` computes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from safe_stepwise.checking.faithfulness.judging import OUTCOMES, chain_of, judge_columns
from safe_stepwise.errors import UserError
from safe_stepwise.metric.compute import OPTIONS, checked_options
from safe_stepwise.metric.input import checked_columns
from safe_stepwise.records import Passage
from safe_stepwise.steps import format_step, parse_step

PATH = [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]]
FIRST, SECOND = "Dune Rain was directed by Ors Velt.", "Ors Velt was born in Oru."
WRONG = "Low Tide was shot in Kel."
FOUR: list[tuple[list[str], str, list[list[str]]]] = [
    ([FIRST, SECOND], "Oru", PATH),
    ([WRONG, SECOND], "Oru", PATH),
    ([], "Oru", PATH),
    ([FIRST, SECOND], "Kel", []),
]
COLUMNS = ("questions", "steps", "answers", "evidence", "references")


def given(**changes: Any) -> dict[str, Any]:
    size = len(FOUR)
    columns: dict[str, Any] = {
        "questions": ["Where was the director of Dune Rain born?"] * size,
        "steps": [steps for steps, _, _ in FOUR],
        "answers": [answer for _, answer, _ in FOUR],
        "evidence": [evidence for _, _, evidence in FOUR],
        "references": [["Oru", "Oru town"]] * size,
    }
    return {**columns, **changes}


@pytest.mark.parametrize("rule", ["house", "paper"])
def test_shares_are_as_counted_by_hand(rule: str) -> None:
    found = judge_columns(**given())
    assert found["exact_match"] == 0.75
    one = found[rule]
    assert {name: one[name] for name in OUTCOMES} == {**dict.fromkeys(OUTCOMES, 0.25), "abstained": 0}
    assert (one["spurious_share"], one["spurious_bounds"]) == (0.5, [0.5, 0.5])
    assert (one["reasoning"], one["gap"]) == (0.25, 0.5)
    verdicts = one["verdicts"]
    assert [v and v["path"] for v in verdicts] == ["faithful", "unfaithful", None, "unjudgeable"]
    assert verdicts[0]["edits"] == 0
    assert [step["triples"] for step in verdicts[0]["steps"]] == [[PATH[0]], [PATH[1]]]


def test_one_rule_alone() -> None:
    assert judge_columns(**given(rule="paper")).keys() == {"exact_match", "paper"}


def test_bounds_hold_what_is_unjudgeable() -> None:
    found = judge_columns(**given(answers=["Oru"] * 4, rule="paper"))["paper"]
    assert (found["spurious_share"], found["spurious_bounds"]) == (0.5, [1 / 3, 2 / 3])
    nothing = judge_columns(**given(answers=["Kel"] * 4, rule="paper"))["paper"]
    assert (nothing["spurious_share"], nothing["spurious_bounds"]) == (None, [None, None])


def test_steps_may_be_written_by_the_grammar() -> None:
    texts = [
        f"Step 1: {FIRST} (Attribution)",
        f"Step 2: {SECOND} (Attribution)",
        "Step 3: So the answer is Oru. (Logical)",
        "Step 4: ####ANSWER: Oru (Final Answer)",
    ]
    assert [format_step(parse_step(text)) for text in texts] == texts
    chain = chain_of(texts, "Oru")
    assert (len(chain.steps), chain.steps[0], chain.concluding) == (3, FIRST, (3,))
    found = judge_columns(["Where?"], [texts], ["Oru"], [PATH], [["Oru"]])
    assert found["paper"]["faithful"] == 1.0


def test_passages_count_for_the_house() -> None:
    """What neither path nor passages state is not taken for true."""
    stated = Passage("Low Tide", ("Low Tide was shot in Kel.",))
    silent = Passage("Low Tide", ("Low Tide is a film.",))
    paths = []
    for page in (stated, silent):
        found = judge_columns(**given(passages=[[page]] * 4, steps=[[FIRST, WRONG, SECOND]] * 4))
        paths.append(found["house"]["verdicts"][0]["path"])
    assert paths[0] == "faithful" != paths[1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"rule": "ours"}, "rule"),
        ({"retrieval": "bm25"}, "retrieval"),
        ({"sigma": 1.5}, "sigma is 1.5"),
        ({"answers": ["Oru"]}, "several lengths"),
        ({"passages": []}, "several lengths"),
    ],
)
def test_mistakes_are_one_line(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as raised:
        judge_columns(**given(**changes))
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"steps": "Oru"}, "steps is not a list"),
        ({"steps": [[FIRST], "x", [], []]}, r"steps\[1\]"),
        ({"steps": [[7], [], [], []]}, r"steps\[0\]\[0\] is not a text"),
        ({"evidence": [[["a", "b"]], [], [], []]}, r"evidence\[0\]\[0\]"),
        ({"evidence": [[["a", "b", 3]], [], [], []]}, r"evidence\[0\]\[0\]\[2\] is not a text"),
        ({"evidence": "a|b|c"}, "evidence is not a list"),
        ({"answers": ["Oru"]}, "1 answers"),
        ({"answers": [1, 2, 3, 4]}, "answers"),
        ({"references": [[], ["a"], ["a"], ["a"]]}, "there are no references"),
    ],
)
def test_columns_of_another_form_are_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told) as raised:
        checked_columns(given(**changes), COLUMNS)
    assert len(str(raised.value).splitlines()) == 1


def test_columns_are_made_plain() -> None:
    mapped = [[dict(zip(("head", "relation", "tail"), t, strict=True)) for t in PATH]] * 4
    found = checked_columns(given(evidence=mapped, answers=[None, "a", "b", "c"]), COLUMNS)
    assert found["evidence"] == [PATH] * 4
    assert found["answers"][0] == ""


def test_the_metrics_room_knows_the_options_without_knowing_the_checker() -> None:
    parameters = inspect.signature(judge_columns).parameters.values()
    own = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    assert OPTIONS["faithfulness"] == own | {"questions"}
    with pytest.raises(UserError, match="default has no option sigma"):
        checked_options("default", ["sigma"])
    with pytest.raises(UserError, match="load default, loop or faithfulness"):
        checked_options("faith", [])
