"""The nouns: frozen, hashable, with one identity each."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.records import (
    NOISE_TYPES,
    Feedback,
    Hop,
    Label,
    NoiseType,
    Passage,
    Question,
    Step,
    SupportingFact,
    Triple,
    canonical_json,
    identity,
)

PASSAGES = (
    Passage("Vel", ("The Vel is a river.",)),
    Passage("Oru", (" Oru is a town. ", " It lies on the Vel."), is_gold=True),
    Passage("Tamm", ("Tamm is a hill.",)),
    Passage("Isk", ("Isk was mayor of Oru.",), is_gold=True),
)
QUESTION = Question(
    id="q1",
    benchmark="synthetic",
    split="train",
    question="Which river runs through the town whose mayor was Isk?",
    answer="Vel",
    aliases=("River Vel",),
    passages=PASSAGES,
    supporting_facts=(SupportingFact("Oru", 1),),
    evidence=(Triple("Isk", "mayor of", "Oru", 4, 0),),
    decomposition=(Hop("Isk >> mayor of", "Oru", 4),),
)


def test_passage_text_joins_stripped_sentences() -> None:
    assert PASSAGES[1].text == "Oru is a town. It lies on the Vel."


def test_gold_passages_keep_their_one_based_numbers() -> None:
    assert QUESTION.gold == ((2, PASSAGES[1]), (4, PASSAGES[3]))


def test_records_are_hashable_and_frozen() -> None:
    assert len({QUESTION, QUESTION, PASSAGES[0], Step(1, "a", "Logical")}) == 3
    with pytest.raises(FrozenInstanceError):
        QUESTION.answer = "Oru"  # type: ignore[misc]


def test_noise_types_are_those_of_the_type() -> None:
    assert get_args(NoiseType) == NOISE_TYPES


@pytest.mark.parametrize("noise_type", NOISE_TYPES)
def test_only_found_noise_is_unverifiable(noise_type: NoiseType) -> None:
    label = Label(noise_type, "because", (), (), "annotations")
    assert label.unverifiable is (noise_type not in ("none", "unparsed", "undecided"))


def test_label_refuses_a_noise_type_that_it_does_not_know() -> None:
    with pytest.raises(ValueError, match="unknown noise type 'noisy'"):
        Label("noisy", "because", (), (), "annotations")  # type: ignore[arg-type]


@pytest.mark.parametrize("confidence", [-0.1, 1.01, float("nan")])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Label("none", "because", (), (), "annotations", confidence)


def test_canonical_json_ignores_the_order_of_keys_only() -> None:
    assert canonical_json({"b": [2, 1], "a": None}) == '{"a":null,"b":[2,1]}'
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})
    assert identity([1, 2]) != identity([2, 1])


def test_canonical_json_of_a_record_is_its_fields() -> None:
    loaded = json.loads(canonical_json(QUESTION))
    assert loaded["passages"][1]["is_gold"] is True
    assert loaded["evidence"] == [{"head": "Isk", "relation": "mayor of", "tail": "Oru", "passage": 4, "sentence": 0}]


def test_identity_is_the_sha256_of_utf8() -> None:
    # By `printf '"é"' | sha256sum`.
    assert identity("é") == "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086"


@settings(deadline=None)
@given(st.text(), st.text(), st.text())
def test_identity_tells_different_feedback_apart(label: str, why: str, what: str) -> None:
    feedback = Feedback(label, why, what)
    assert identity(feedback) == identity(Feedback(label, why, what))
    assert identity(feedback) != identity(Feedback(label, why, what, query=""))
    assert identity(feedback) != identity(Feedback(label, why + "x", what))
