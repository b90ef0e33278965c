"""How facts are asked for: every wording is a question that asks for its relation."""

from __future__ import annotations

import pytest

from safe_stepwise.checking.statements import besides, condition_on, is_noun, phrase_question
from safe_stepwise.language.relations import RELATIONS, parse_question
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Triple

WORDED = load("questions")["questions"]
PARSED = {name: entry["asked"] for name, entry in load("relations")["relations"].items() if "asked" in entry}


@pytest.mark.parametrize("relation", sorted(RELATIONS))
def test_a_relation_is_asked_for_as_benchmarks_ask(relation: str) -> None:
    question = phrase_question([Triple("Ana Vorr", relation, "Oru")])
    assert question.endswith("?")
    assert "Ana Vorr" in question
    assert "Oru" not in question
    assert relation in WORDED or is_noun(relation), "no noun: it needs a wording of its own"
    if relation in PARSED:
        found = parse_question(question)
        assert found is not None
        assert (found.subject, found.relation, found.inverse) == ("Ana Vorr", relation, False)


def test_where_the_tail_is_known_the_head_is_asked_for() -> None:
    for relation in ("names", "capital of", "shares border with", "composer"):
        question = phrase_question([Triple("Ana Vorr", relation, "Oru")], for_head=True)
        assert "Oru" in question
        assert "Ana Vorr" not in question


def test_a_hop_in_words_takes_earlier_answers() -> None:
    words = "when did … beat  …?"
    told = [Triple("Oru", words, "1901"), Triple("Marn", words, "1901")]
    assert phrase_question(told) == "When did Oru beat Marn?"


def test_names_in_braces_are_left_alone() -> None:
    assert phrase_question([Triple("{t}", "director", "Oru")]) == "Who directed {t}?"
    assert besides("Who is {known}?", ["{q}"]) == "Besides {q}, who is {known}?"


def test_what_was_found_is_put_into_a_question() -> None:
    assert condition_on("Where?", []) == "Where?"
    told = condition_on("Where is it?", [("Who?", "Oru"), ("What?", "Marn")])
    assert told.count("Oru") == told.count("Marn") == told.count("Where is it,") == 1
    assert told.endswith("?")
