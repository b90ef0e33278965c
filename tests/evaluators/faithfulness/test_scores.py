"""Precision, recall and F1 of reasoning (arXiv 2402.11199, Equations 3 and 4), by hand and by a script of its own."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.faithfulness.judged_outcomes import RULES, summarize_systems
from safe_stepwise.checking.faithfulness.groups import abstains, kind_of, score_reasoning
from safe_stepwise.checking.faithfulness.judging import judge_columns
from safe_stepwise.store.published_tables import published
from scripts import build_verified, evaluate_stepwise
from tests.makers.chains import BESIDE, FIRST, SECOND, measure, six, told
from tests.sizes import size

PATH = [("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")]
ASKED = "Where was the director of Dune Rain born?"


@pytest.mark.parametrize("rule", RULES)
def test_six_responses_are_scored_as_by_hand(rule: str) -> None:
    """Faithful and right; unfaithful and right; unfaithful and wrong; unstructured; abstained; failed."""
    (system,) = summarize_systems(measure(six()), RULES)
    scores = system["all"]["rules"][rule]["answers"]["exact_match"]["scores"]
    assert (scores["of"], scores["left_out"]) == (5, 1)
    assert scores["reasoning"] == {"precision": 0.333333, "recall": 0.2, "f1": 0.25}
    assert scores["answer"] == {"precision": 0.666667, "recall": 0.4, "f1": 0.5}
    assert scores["gap"] == 0.25


def test_a_faithful_chain_with_a_wrong_answer_is_unfaithful_reasoning() -> None:
    asked = [told("q1", FIRST, SECOND, answer="Kel"), told("q2", FIRST, SECOND)]
    (system,) = summarize_systems(measure(asked), RULES)
    assert system["all"]["rules"]["house"]["answers"]["exact_match"]["wrong"]["faithful"] == 1
    scores = system["all"]["rules"]["house"]["answers"]["exact_match"]["scores"]
    assert scores["reasoning"]["precision"] == scores["answer"]["precision"] == 0.5


def test_without_chains_there_is_no_precision() -> None:
    scores = score_reasoning({"unstructured": 2}, {"abstained": 1})
    assert scores["reasoning"] == {"precision": None, "recall": 0, "f1": None}
    assert (scores["gap"], score_reasoning({}, {})["answer"]["recall"]) == (None, None)


@pytest.mark.parametrize("rule", RULES)
def test_columns_sort_responses_as_an_evaluation_does(rule: str) -> None:
    plan = "First, I need to find the director of Dune Rain."
    chains = [[plan, FIRST, SECOND], ["I cannot find it."], ["It is in Passage 7 and 9."], [BESIDE, SECOND], []]
    answers = ["Oru", "unknown", "Oru", "Kel", ""]
    number = len(chains)
    asked = ["Where was the director of Dune Rain born?"] * number
    shares = judge_columns(asked, chains, answers, [PATH] * number, [["Oru"]] * number)[rule]
    paths = [verdict and verdict["path"] for verdict in shares["verdicts"]]
    assert paths == ["faithful", None, None, "unfaithful", None]
    assert (shares["abstained"], shares["unstructured"]) == (0.4, 0.2)
    assert shares["scores"]["reasoning"] == {"precision": 0.5, "recall": 0.2, "f1": 0.285714}


@pytest.mark.parametrize(
    "step",
    ["I need to find the director of Dune Rain.", "Who directed Dune Rain?", "So the answer is Oru.",
     "The passages do not say who directed Dune Rain.", "See Passages 3-5.", "Passage no. 7 says so.",
     "Passage #4 shows this.", "In [3], he says so.", "Source: 1"],
)  # fmt: skip
def test_what_claims_nothing_is_no_chain(step: str) -> None:
    assert kind_of([step], "Oru", True) == "unstructured"
    assert kind_of([step, FIRST], "Oru", True) == "chain"


@pytest.mark.parametrize(
    "answer",
    ["I'm not sure", "Cannot determine", "unable to determine", "Not mentioned", "not stated.",
     "The answer is unknown", "The passages do not say.", "I cannot answer",
     "It is not possible to determine", "undetermined", "N/A"],
)  # fmt: skip
def test_who_says_that_nothing_is_known_abstains(answer: str) -> None:
    assert abstains(answer)


def test_a_step_that_only_concludes_is_not_held_against_a_chain() -> None:
    shares = judge_columns([ASKED], [[FIRST, SECOND, "So the answer is: Oru."]], ["Oru"], [PATH], [["Oru"]])
    assert [shares[rule]["faithful"] for rule in RULES] == [1.0, 1.0]


@given(st.text(max_size=60), st.text(max_size=20), st.booleans())
def test_every_response_is_of_one_kind(step: str, answer: str, is_right: bool) -> None:
    kind = kind_of([step], answer, is_right)
    assert kind in ("chain", "abstained", "unstructured")
    assert not (kind == "abstained" and is_right)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scores")
    questions = size(180, 40)
    build_verified.main(
        ["--benchmark", "synthetic", "--input", f"rows={2 * questions},seed=5", "--split", "validation",
         "--teacher", "annotations", "--output", str(folder / "verified")]
    )  # fmt: skip
    evaluate_stepwise.main(
        ["--questions", str(folder / "verified"), "--limit", str(questions), "--output", str(folder / "results"),
         "--cache", str(folder / "cache.sqlite"), "--verifier", "symbolic", "--method", "no_verification",
         "--method", "safe", "--method", "direct", "--method", "cot", "--method", "sg_fsm1", "--method", "react",
         "--generator", "symbolic:error_rate=0.3,spurious=0.5,format=0.1,seed=1"]
    )  # fmt: skip
    return folder / "results"


def test_the_scores_are_those_of_an_independent_script(evaluated: Path) -> None:
    rows = [json.loads(line) for line in (evaluated / "faithfulness.jsonl").read_text().splitlines()]
    assert sum(row["response"] == "chain" for row in rows) >= size(500, 100)
    systems = json.loads((evaluated / "faithfulness.json").read_text())["systems"]
    for number, system in enumerate(systems):
        for rule in RULES:
            expected = recount([row for row in rows if row["system"] == number], rule)
            scores = system["all"]["rules"][rule]["answers"]["exact_match"]["scores"]
            for scored in ("reasoning", "answer"):
                assert scores[scored] == pytest.approx(expected[scored], abs=1e-6)


def recount(rows: list[dict[str, Any]], rule: str) -> dict[str, dict[str, float | None]]:
    """Count the four groups from the rows of ``faithfulness.jsonl``, and apply the two equations."""
    groups: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["response"] != "chain":
            groups[row["response"]] += 1
        elif row["rules"][rule]["path"] != "unjudgeable":
            groups["chain"] += 1
            groups["answer"] += row["exact_match"]
            groups["reasoning"] += row["exact_match"] and row["rules"][rule]["path"] == "faithful"
    everything = groups["chain"] + groups["abstained"] + groups["unstructured"]
    scores: dict[str, dict[str, float | None]] = {}
    for scored in ("reasoning", "answer"):
        precision = groups[scored] / groups["chain"] if groups["chain"] else None
        recall = groups[scored] / everything
        total = (precision or 0) + recall
        f1 = None if precision is None else 2 * precision * recall / total if total else 0.0
        scores[scored] = {"precision": precision, "recall": recall, "f1": f1}
    return scores


def test_printed_scores_tally_where_no_misprint_is_named() -> None:
    rows = published().reasoning_scores
    assert len(rows) == 36
    for row in rows:
        gap_is_off = abs(row["answer"] - row["reasoning"] - row["gap"]) > 0.011
        recall_is_off = row["answer_recall"] > row["answer"] or row["reasoning_recall"] > row["reasoning"]
        assert (gap_is_off or recall_is_off) == ("misprint" in row), row
