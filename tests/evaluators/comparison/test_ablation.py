"""Variants set against a reference: which, by how much, and in what form."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from evaluators.comparison.ablation import FILES, average_table, compare_with, title_of, write
from evaluators.comparison.score_tables import choose_tables
from evaluators.comparison.scores import Comparison
from evaluators.outcomes import Outcome
from evaluators.run.evaluation import summarize_system
from safe_stepwise.errors import UserError
from tests.makers.outcomes import outcomes

NO, SAFE = "no_verification", "safe"


def variant(name: str, scores: list[float], method: str = SAFE, **changes: Any) -> list[Outcome]:
    return outcomes(scores, method, conditions={"variant": name}, **changes)


def runs(generator: str = "g") -> list[Outcome]:
    """A baseline and three variants, the last worse than the first."""
    return [
        *outcomes([0, 0, 0, 1], NO, generator=generator),
        *variant("verified", [1, 1, 1, 0], generator=generator),
        *variant("+ noise", [1, 0, 1, 0], generator=generator, verifier="noisy"),
        *variant("diagnosis", [0, 0, 1, 0], generator=generator),
    ]


def against(one: Comparison) -> dict[str, str]:
    """Each system by name with what it is set against."""
    names, references = one.names, one.references
    assert references is not None
    return {names[system]: names[other] for system, other in references.items()}


def test_without_a_name_the_first_of_each_method_is_the_reference() -> None:
    found = compare_with(runs())
    assert against(found) == {"SAFE, + noise": "SAFE, verified", "SAFE, diagnosis": "SAFE, verified"}
    # The first of the runs, not of the alphabet; and tables keep that order.
    names = [found.names[row.system] for row in found.rows]
    assert names == ["No verification", "SAFE, verified", "SAFE, + noise", "SAFE, diagnosis"]
    assert average_table(found) == [
        ("method", "g"),
        ["No verification", "25.0"],
        ["SAFE, verified", "75.0"],
        ["SAFE, + noise", "50.0 (-25.0)"],
        ["SAFE, diagnosis", "25.0 (-50.0)"],
    ]


def test_a_reference_is_a_variant_or_a_method() -> None:
    by_name, by_method = (compare_with(runs(), name) for name in ("diagnosis", NO))
    assert against(by_name) == dict.fromkeys(["No verification", "SAFE, verified", "SAFE, + noise"], "SAFE, diagnosis")
    assert against(by_method) == dict.fromkeys(
        ["SAFE, verified", "SAFE, + noise", "SAFE, diagnosis"], "No verification"
    )
    whole = compare_with(runs(), "SAFE, + noise")
    assert set(against(whole).values()) == {"SAFE, + noise"}
    assert [title_of(name) for name in (NO, "")] == [f"Against {NO}", "Against the first of each method"]


def test_of_several_baselines_a_variant_meets_the_one_it_ran_beside() -> None:
    found = [
        *variant("a", [0, 0], NO), *variant("a", [1, 0]),
        *variant("b", [0, 1], NO), *variant("b", [1, 1]),
    ]  # fmt: skip
    one = compare_with(found, NO)
    assert against(one) == {
        "SAFE, a": "No verification, a",
        "SAFE, b": "No verification, b",
        "No verification, b": "No verification, a",
    }


def test_a_name_that_nothing_has_is_refused() -> None:
    with pytest.raises(UserError, match=r"--reference 'verifed' .* did you mean verified\?"):
        compare_with(runs(), "verifed")


def test_holm_counts_the_tests_against_the_reference_alone() -> None:
    found = compare_with(runs(), "verified")
    tested = [d for d in found.differences if d.benchmark and d.metric == "accuracy"]
    assert len(tested) == 3
    assert all(d.second.variant == "verified" for d in tested)
    assert {d.test for d in tested} == {"mcnemar"}
    assert max(d.p_holm / d.p for d in tested) <= 3


def test_generators_are_columns_of_averages_with_their_total() -> None:
    found = compare_with([*runs("a"), *runs("b")])
    table = average_table(found)
    assert table[0] == ("method", "a", "b", "Total average")
    assert table[3] == ["SAFE, + noise", *["50.0 (-25.0)"] * 3]
    total = found.totals[2].system
    assert found.reference_of(total) == found.totals[1].system


def test_the_files_say_the_same(tmp_path: Path) -> None:
    found = compare_with(runs(), "verified")
    (tmp_path / "mine.txt").write_text("kept")
    write(found, "verified", tmp_path, choose_tables(["v2:5"]))
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "mine.txt"}
    text = (tmp_path / "ablation.md").read_text(encoding="utf-8")
    assert "## Against verified" in text
    assert "| g | Δ SAFE, + noise over SAFE, verified | -25.0 ±" in text
    assert "### Acc by generator" in text
    assert "### Paired tests" in text
    assert "| Gemma 3 12B | SAFE, with noise (published: SAFE v2, Table 5) | – | – | 74.9 |" in text
    with (tmp_path / "ablation.csv").open(encoding="utf-8") as file:
        deltas = [row for row in csv.DictReader(file) if row["row"] == "delta over SAFE, verified"]
    assert [(d["verifier"], d["variant"], d["musique_accuracy"]) for d in deltas] == [
        ("", "", "-50.0"), ("noisy", "+ noise", "-25.0"), ("checker", "diagnosis", "-50.0"),
    ]  # fmt: skip
    with (tmp_path / "ablation_tests.csv").open(encoding="utf-8") as file:
        tests = list(csv.DictReader(file))
    assert {t["than_variant"] for t in tests} == {"verified"}
    assert len(tests) == len([d for d in found.differences if d.benchmark])  # one benchmark has no average


def test_a_record_has_the_conditions() -> None:
    made = summarize_system(variant("a", [1, 0]), ["generator"])
    assert made["conditions"] == {"variant": "a"}
    assert made["average"]["exact_match"] == 0.5
