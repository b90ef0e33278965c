"""Facts, evidence and joint scores: cases counted by hand, and gold rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import parse_row
from safe_stepwise.metric.evidence import (
    Overlap,
    answer_overlap,
    evidence_overlap,
    facts_overlap,
    joint,
    passages_overlap,
)
from safe_stepwise.scoring import f1, precision_recall
from safe_stepwise.store.boundary import parse_json

A, B, C = ("Oru", 0), ("Vel", 1), ("Vel", 2)
FACTS = [
    # predicted, gold, exact match, precision, recall
    ([A, B], [B, A], 1, 1, 1),
    ([A, A], [A], 1, 1, 1),
    ([A], [A, B], 0, 1, 1 / 2),
    ([A, B, C], [A], 0, 1 / 3, 1),
    ([C], [A, B], 0, 0, 0),
    ([], [A], 0, 0, 0),
    ([("oru", 0)], [A], 0, 0, 0),
]


@pytest.mark.parametrize(("predicted", "gold", "match", "precision", "recall"), FACTS)
def test_facts_are_sets_of_title_and_sentence(
    predicted: list[tuple[str, int]], gold: list[tuple[str, int]], match: float, precision: float, recall: float
) -> None:
    assert facts_overlap(predicted, gold, "hotpotqa") == Overlap(match, precision, recall)


def test_2wiki_compares_titles_in_lower_case() -> None:
    assert facts_overlap([("oru", 0)], [A], "2wikimultihopqa") == Overlap(1, 1, 1)
    # Two that differ in case alone are two that were predicted.
    twice = facts_overlap([("oru", 0), A], [A, B], "2wikimultihopqa")
    assert (twice.precision, twice.recall) == (1, 2 / 3)


def test_musique_scores_passages_and_takes_none_of_none_for_right() -> None:
    assert passages_overlap([1, 2, 3], [2, 3]).f1 == pytest.approx(2 * (2 / 3) / (2 / 3 + 1))
    assert passages_overlap([], [2]) == Overlap(0, 0, 0)
    assert passages_overlap([], []) == Overlap(1, 1, 1)


def test_evidence_forgives_case_and_punctuation_alone() -> None:
    gold = [("Low Tide", "director", "Ana Brell"), ("Ana Brell", "place of birth", "Oru")]
    said = [("low tide!", "Director", "ana  brell"), ("Ana Brell", "born in", "Oru")]
    assert evidence_overlap(said, gold) == Overlap(0, 1 / 2, 1 / 2)
    assert evidence_overlap(said[:1], gold) == Overlap(0, 1, 1 / 2)
    assert evidence_overlap([], gold) == Overlap(0, 0, 0)
    assert evidence_overlap([*gold, *gold], gold) == Overlap(1, 1, 1)
    # Unlike answers, they keep their articles.
    assert evidence_overlap([("the Low Tide", *gold[0][1:])], gold).precision == 0


def test_joint_is_the_product_of_precisions_and_recalls() -> None:
    answer = answer_overlap("Oru town", ["Oru"], "2wikimultihopqa")
    assert answer == Overlap(0, 1 / 2, 1)
    facts, triples = Overlap(0, 1, 1 / 2), Overlap(1, 1, 1)
    together = joint(answer, facts, triples)
    assert together == Overlap(0, 1 / 2, 1 / 2)
    assert together.f1 == 1 / 2
    assert joint(answer, Overlap(0, 0, 0)).f1 == 0
    assert joint(Overlap(1, 1, 1), Overlap(0, 1, 1)).exact_match == 0


def test_yes_and_no_join_nothing_but_themselves() -> None:
    assert precision_recall("yes it is", ["yes"], "hotpotqa") == (0, 0)
    assert precision_recall("", [""], "musique") == (1, 1)
    assert precision_recall("Oru town", ["Oru", "Oru town by the sea"], "2wikimultihopqa") == (1, 1)


@given(st.text(max_size=12), st.text(max_size=12), st.sampled_from(["hotpotqa", "musique"]))
def test_the_parts_of_one_reference_make_its_f1(said: str, gold: str, benchmark: str) -> None:
    assert answer_overlap(said, [gold], benchmark).f1 == pytest.approx(f1(said, [gold], benchmark))


@pytest.mark.parametrize("benchmark", ["hotpotqa", "2wikimultihopqa", "musique"])
def test_gold_scores_one_on_real_rows(benchmark: str, real_data: Path) -> None:
    lines = (real_data / f"{benchmark}_dev.jsonl").read_bytes().splitlines()
    rows = [parse_json(line) for line in lines]
    seen = 0
    for row in rows:
        try:
            q = parse_row(row, benchmark, "validation")
        except ValueError:
            continue
        seen += 1
        parts = [answer_overlap(q.answer, q.accepted, benchmark)]
        if benchmark == "musique":
            numbers = [number for number, _ in q.gold]
            parts.append(passages_overlap(numbers, numbers))
        else:
            facts = [(fact.title, fact.sentence) for fact in q.supporting_facts]
            parts.append(facts_overlap(facts, facts, benchmark))
        if q.evidence:
            triples = [(t.head, t.relation, t.tail) for t in q.evidence]
            parts.append(evidence_overlap(triples, triples))
        assert all(part.exact_match == 1 for part in parts)
        assert joint(*parts).f1 == 1 or not q.answer.strip()
    assert seen > 0.95 * len(rows) > 100
