"""What cards say of noise: its ratio beside the papers', labels by published lists."""

from __future__ import annotations

from typing import Any

import pytest

from cards import datasets
from cards.datasets import FULL_SPLITS, noise_ratios
from cards.pages import WORDS
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.published_tables import published
from tests.cards.test_cards import AGREEMENT, INFO, MAKERS, statistics

LISTED = {
    "lists": [
        {"name": "a|b_wrong.txt", "digest": "ef" * 32, "matched": 13, "unmatched": 1_186},
    ],
    "rows": 15,
}  # fmt: skip


def test_every_noise_type_has_a_meaning() -> None:
    assert list(WORDS["noise_types"]) == list(NOISE_TYPES)


# Ratios


@pytest.mark.parametrize("make", MAKERS)
def test_the_ratio_stands_beside_the_printed_one(make: Any) -> None:
    """Of 100 rows 94 were judged, 13 of them noise; what could not be read or judged is no row."""
    text = make([statistics()], INFO)
    printed = "19,902 | 2,149 | 10.80% | SAFE v1, Table 2 and SAFE v2, Table 1 |"
    assert f"| musique | train | 94 | 13 | 13.83% | {printed}" in text
    assert "*published* columns repeat what the SAFE papers print" in text
    other = "19,902 of the 19,938 questions of musique train. The papers do not say which"
    assert f"The published counts are not those of the full splits: {other}" in text


def test_counts_that_are_those_of_the_split_need_no_word() -> None:
    text = datasets.verified_multihop([statistics("hotpotqa")], INFO)
    assert "| 90,447 | 2,376 | 2.63% |" in text
    assert "full splits" not in text
    made = [statistics("hotpotqa", "validation"), statistics("2wikimultihopqa", "validation"),
            statistics(split="validation")]  # fmt: skip
    text = datasets.verified_multihop(made, INFO)
    told = "7,345 of the 7,405 questions of hotpotqa validation; 2,412 of the 2,417 questions of"
    assert f"full splits: {told} musique validation. The" in text


def test_full_splits_are_those_that_the_papers_fall_short_of() -> None:
    printed = {(n["benchmark"], n["split"]): n["questions"] for n in published().noise_ratios}
    assert all(printed[place] < full for place, full in FULL_SPLITS.items())
    assert {n["paper"] for n in published().noise_ratios} == {"v1", "v2"}


def test_made_up_questions_have_no_printed_ratio() -> None:
    text = datasets.verified_multihop([statistics("synthetic")], INFO)
    assert "| synthetic | train | 94 | 13 | 13.83% | - | - | - | - |" in text
    assert "Published" not in text
    (nothing,) = noise_ratios([statistics(rejected=97, rows=100, verified=0, unverifiable={})])
    assert nothing["percent"] is None
    empty = statistics("synthetic", rows=6, rejected=3, unparsed=3, verified=0, unverifiable={})
    assert "| synthetic | train | 0 | 0 | - | - |" in datasets.verified_multihop([empty], INFO)


# Labels by published lists


@pytest.mark.parametrize("make", MAKERS)
def test_labels_by_lists_are_told(make: Any) -> None:
    by_list = statistics(teacher="published:a|b_wrong.txt", listed=LISTED, unverifiable={"unspecified": 13})
    text = make([by_list, statistics("hotpotqa")], INFO)
    section = text.split("## Labels by published lists")[1].split("\n## ")[0]
    assert "published lists of questions decide which rows of musique train are noise" in section
    digest = "ef" * 32
    assert f"| musique | train | a\\|b_wrong.txt | `{digest}` | 13 | 1,186 |" in section
    assert "| musique | train | 15 | 13 |" in section
    assert "No published labels were given for hotpotqa train:" in text
    assert "`unspecified` | a published list calls the row noise without a type" in text
    limits = text.split("## Limitations")[1]
    assert "Labels by published lists come from the SAFE authors' pipeline" in limits
    assert "Labels by published lists stay as they are." in text
    alone = make([by_list], INFO)
    assert "Agreement with known labels" not in alone
    assert "`annotations` uses no model" not in alone
    assert "published lists" not in make([statistics()], INFO)


def test_scored_by_the_same_hands_and_said() -> None:
    known = {"by": "theirs.jsonl", "digest": "ef" * 32, "agreement": AGREEMENT}
    text = datasets.verified_multihop([statistics(listed=LISTED, known=known)], INFO)
    assert "Labels of musique train come from published lists, so their agreement" in text
    plain = datasets.verified_multihop([statistics(known=known)], INFO)
    assert "come from published lists" not in plain
