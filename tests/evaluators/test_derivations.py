from __future__ import annotations

from evaluators.derivations import Coverage, measure_coverage

ONE = [("Oru", 0, ("Oru", "lies on", "the river Vel")), ("Vel", 0, ("Vel", "flows through", "Kelvia"))]


def test_the_nearest_annotator_counts() -> None:
    other = [("Elsewhere", 0, ("Elsewhere", "is", "a town"))]
    told = {"Oru": "Oru lies on the river Vel.", "Vel": "The Vel flows through Kelvia."}
    assert measure_coverage(told.items(), [other, ONE]) == Coverage(1.0, 1.0)
    assert measure_coverage(told.items(), [ONE]).is_complete


def test_the_right_words_in_the_wrong_passage_do_not_count() -> None:
    told = {"Vel": "Oru lies on the river Vel."}
    assert measure_coverage(told.items(), [ONE]) == Coverage(passages=0.5, triples=0.0)


def test_nothing_to_compare() -> None:
    assert measure_coverage([], []) == Coverage(0.0, 0.0)
