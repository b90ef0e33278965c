"""Rows of further sets that join those of the dataset, for an ablation (SAFE v2, Table 5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from trainers.config import Recipe
from trainers.rows import Row, Source, fingerprint, labels_of, open_rows, refuse


@dataclass(frozen=True, slots=True)
class Joined:
    """A set that joined: the ids of its rows that the filters leave, and their SHA-256."""

    source: Source
    ids: frozenset[str]
    sha256: str

    @property
    def rows(self) -> int:
        """How many joined, long ones too."""
        return len(self.ids)


def train_rows(recipe: Recipe) -> tuple[Source, list[Row], list[Joined]]:
    """The rows of ``dataset`` that a recipe trains on, followed by those of ``plus``.

    Raises ``UserError`` for what `open_rows` does, for a row that comes twice, and for rows of a
    question that ``dataset`` keeps for its test split.
    """
    source, rows = open_rows(recipe.dataset, "train", recipe.filters)
    tested = {_question(row) for row in labels_of(recipe.dataset, "test")} if recipe.plus else set()
    joined = []
    for name in recipe.plus:
        other, more = open_rows(name, "train", recipe.filters)
        asked = {row["id"]: _question(row) for row in labels_of(name, "train")}
        leaked = {str(r["id"]): "is of a test question" for r in more if asked[r["id"]] in tested}
        refuse(leaked, name, f"leave out the questions that {recipe.dataset} tests")
        ids = frozenset(str(row["id"]) for row in more)
        joined.append(Joined(other, ids, fingerprint(more)))
        rows += more
    counts = Counter(str(row["id"]) for row in rows)
    twice = {id_: f"comes {number} times" for id_, number in counts.items() if number > 1}
    refuse(twice, ", ".join((recipe.dataset, *recipe.plus)), "name each set once")
    return source, rows, joined


def _question(row: Row) -> tuple[str, str]:
    return row["benchmark"], row["question_id"]
