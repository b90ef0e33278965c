"""What a run trains on, of whatever kind its rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from safe_stepwise.errors import UserError
from trainers.config import Filters, VerifierRecipe
from trainers.data import read_train_rows
from trainers.rows.base import DatasetSource, Row, RowKind, fingerprint

SETS = {"songs": range(4), "more": range(4, 6), "leaked": range(3, 5)}
"""Invented sets of rows, each row of a question of its own."""


class Songs(RowKind):
    def rows(self, dataset: str, split: str, filters: Filters) -> tuple[DatasetSource, list[Row]]:
        return DatasetSource(dataset, None, {}), [
            {"id": f"{dataset}/{n}", "prompt": [], "completion": []} for n in SETS[dataset]
        ]

    def questions(self, dataset: str, split: str) -> Mapping[str, int]:
        if split == "test":
            return {f"{dataset}/test": 3}
        return {f"{dataset}/{n}": n for n in SETS[dataset]}

    def check(self, completion: str) -> None:
        pass

    def prompt_digest(self) -> str:
        return "f" * 64


SONGS = Songs()
RECIPE = VerifierRecipe("none", "songs", Path("none"))


def test_a_kind_is_one_object() -> None:
    source, rows, (joined,) = read_train_rows(replace(RECIPE, plus=("more",)), SONGS)
    assert source.name == "songs"
    assert [row["id"] for row in rows] == [*(f"songs/{n}" for n in range(4)), "more/4", "more/5"]
    assert (joined.source.name, len(joined.ids), joined.sha256) == ("more", 2, fingerprint(rows[4:]))
    assert len(read_train_rows(replace(RECIPE, filters=Filters(rows=3)), SONGS)[1]) == 3


def test_what_is_tested_may_not_join() -> None:
    with pytest.raises(UserError, match=r"leaked: 1 rows .*leaked/3: is of a test question"):
        read_train_rows(replace(RECIPE, plus=("leaked",)), SONGS)
    with pytest.raises(UserError, match="more/4: comes 2 times"):
        read_train_rows(replace(RECIPE, plus=("more", "more")), SONGS)
