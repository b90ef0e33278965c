"""What counts as a chain, by method, and what is told of a reply that has none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evaluators.faithfulness.judged_outcomes import summarize_systems
from evaluators.faithfulness.responses import MAX_EXPLANATION_CHARS, response_of, split_sentences
from safe_stepwise.checking.faithfulness.groups import abstains
from tests.makers.chains import BESIDE, FIRST, SECOND, measure, told
from tests.makers.prompting import outcome_of, question

GOOD = "1. Dune Rain was directed by Ors Velt.\n2. Ors Velt was born in Oru.\nSo the answer is Oru."
BAD = "Low Tide was shot in Kel. Ors Velt was born in Oru."


def reply(explain: str, answer: str) -> str:
    return json.dumps({"explain": explain, "answer": answer})


def scripted(*replies: str) -> Any:
    """Who gives these replies, one a sample."""
    left = list(replies)
    return lambda request: left.pop(0)


def test_steps_are_taken_without_the_answer() -> None:
    found = response_of(told("q1", FIRST, SECOND)[0])
    assert found.kind == "chain"
    (chain,) = found.chains
    assert (chain.steps, chain.answer, chain.numbers) == ((FIRST, SECOND), "Oru", (1, 2))


def test_an_explanation_is_taken_apart() -> None:
    (chain,) = response_of(outcome_of("cot", scripted(reply(GOOD, "Oru")))).chains
    assert chain.steps == ("Dune Rain was directed by Ors Velt.", "Ors Velt was born in Oru.")


def test_a_long_explanation_is_whole() -> None:
    """What was read keeps 600 characters of a reason."""
    long = f"{'Low Tide is a film. ' * 50}Ors Velt was born in Oru."
    (chain,) = response_of(outcome_of("cot", scripted(reply(long, "Oru")))).chains
    assert chain.steps[-1] == "Ors Velt was born in Oru."
    assert len(chain.steps) == 51


def test_a_machines_finds_are_steps_as_its_verifier_sees_them() -> None:
    asked = question().question
    replies = ({"simple": True, "subquestion": ""}, {"answer": "Oru", "passage": 2, "question": asked})
    found = outcome_of("sg_fsm1", scripted(*map(json.dumps, replies)))
    (chain,) = response_of(found).chains
    assert chain.steps == (f"According to Passage 2, the answer to “{asked}” is Oru.",)
    assert chain.answer == "Oru"


def test_direct_answers_have_no_chain() -> None:
    found = outcome_of("direct", scripted(reply("It is in Passage 1 and 2.", "Oru")))
    assert response_of(found).kind == "unstructured"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("", "abstained"), ("I don't know", "abstained"), ("N/A", "abstained"), ("no", "chain"),
     ("It cannot be determined from the passages.", "abstained"), ("The Unknown", "chain")],
)  # fmt: skip
def test_who_says_nothing_abstains(answer: str, kind: str) -> None:
    assert response_of(told("q1", FIRST, answer=answer)[0]).kind == kind


def test_a_right_answer_is_no_abstention() -> None:
    asked = replace(question(), answer="Unknown")
    found = outcome_of("cot", scripted(reply(GOOD, "unknown")), asked)
    assert abstains("unknown")
    assert response_of(found).kind == "chain"


def test_a_failed_question_is_not_an_abstention() -> None:
    assert response_of(told("q1", answer="", stop="failed")[0]).kind == "failed"


def test_a_vote_is_told_as_the_majority_and_as_the_best() -> None:
    """Two of three say Oru; the first of these reasons wrongly, the second rightly."""
    replies = reply(GOOD, "Kel"), reply(BAD, "Oru"), reply(GOOD, "Oru")
    asked = question()
    found = outcome_of("cot", scripted(*replies), asked, samples=3)
    majority, best = measure([(found, asked)])
    assert [majority.selection, best.selection] == ["majority", "best_of_n"]
    for rule in ("house", "paper"):
        assert majority.verdicts[rule].path == "unfaithful"
        assert best.verdicts[rule].path == "faithful"
        assert (majority.samples[rule], best.samples[rule]) == (2, 1)
    assert not best.steps
    names = [one["name"] for one in summarize_systems([majority, best], ("house",))]
    assert [name.partition("(")[2] for name in names] == ["majority)", "best of n)"]


def test_one_sample_is_no_vote() -> None:
    asked = question()
    found = outcome_of("cot", scripted(reply(GOOD, "Oru")), asked)
    assert [line.selection for line in measure([(found, asked)])] == ["only"]


def test_a_reply_that_cannot_be_read_is_an_abstention() -> None:
    assert response_of(outcome_of("cot", scripted("Oru, I think"))).kind == "abstained"


def test_sentences_are_bounded_and_unmarked() -> None:
    text = "- **1)** Oru lies on the Vel.\n\n> Step 2: Mr. A. Vorr was born in 1901.\n* (3) Thus."
    assert [*split_sentences(text)] == ["Oru lies on the Vel.", "Mr. A. Vorr was born in 1901.", "Thus."]
    assert len([*split_sentences("A. " * MAX_EXPLANATION_CHARS)]) < MAX_EXPLANATION_CHARS
    assert [*split_sentences(BESIDE)] == [BESIDE]
