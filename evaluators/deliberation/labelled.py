"""Labelled questions to learn from: the rows of a set that ``build_paths`` made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from safe_stepwise.errors import UserError
from safe_stepwise.records import RelationPath
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.layout import dataset_folder, parquet_files
from safe_stepwise.store.names import BY_TEMPLATE, PATHS, TEST, TRAIN, paths_set
from safe_stepwise.store.parquet import read_rows

Labels = Literal["gold", "weak"]
Way = Literal["question", "template"]
CONFIGS: Mapping[Way, str] = {"question": PATHS, "template": PATHS + BY_TEMPLATE}
_COLUMNS = ("question", "template", "hops", "path", "best", "gold")


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the paths that label it, the first one first."""

    question: str
    template: str
    hops: int
    paths: tuple[RelationPath, ...]


@dataclass(frozen=True)
class PathsSet:
    """A set, split one way."""

    folder: Path
    way: Way
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    """By split."""

    @property
    def about(self) -> dict[str, Any]:
        """What it is, for the record."""
        files = parquet_files(self.folder, CONFIGS[self.way])
        return {"name": self.folder.name, "splits": self.way, "sha256": {file.name: sha256_of(file) for file in files}}

    def learnt(self, labels: Labels) -> list[Example]:
        """What its train split teaches; a question without such a label teaches nothing."""
        column = "gold" if labels == "gold" else "best"
        of: dict[str, Example] = {}
        for row in self.rows[TRAIN]:
            if row[column]:
                known = of.get(row["question"])
                found = (*(known.paths if known else ()), tuple(row["path"]))
                of[row["question"]] = Example(
                    row["question"], row["template"], row["hops"], tuple(dict.fromkeys(found))
                )
        return [*of.values()]

    def split_of(self, question: str, template: str) -> str:
        """The split that a question is in, by its words, or by its template; "" for neither."""
        key = question if self.way == "question" else template
        return self._splits.get(key, "")

    @cached_property
    def _splits(self) -> dict[str, str]:
        column = "question" if self.way == "question" else "template"
        return {row[column]: split for split, rows in self.rows.items() for row in rows}

    @cached_property
    def gold(self) -> dict[str, tuple[RelationPath, ...]]:
        """The gold paths of each template."""
        found: dict[str, dict[RelationPath, None]] = {}
        for rows in self.rows.values():
            for row in rows:
                if row["gold"]:
                    found.setdefault(row["template"], {})[tuple(row["path"])] = None
        return {template: tuple(paths) for template, paths in found.items()}


def read_set(folder: Path, benchmark: str, way: Way) -> PathsSet:
    """The set in a folder; raises ``UserError`` where there is none, or one of other rows."""
    name = paths_set(benchmark)
    found = dataset_folder(folder, name)
    if found is None or not parquet_files(found, CONFIGS[way], TRAIN):
        raise UserError(
            f"--train {folder}: no {name} in it; build it with safe-stepwise build_paths "
            f"--benchmark {benchmark} --output {folder}"
        )
    rows = {
        split: [row for file in parquet_files(found, CONFIGS[way], split) for row in read_rows(file, dict, _COLUMNS)]
        for split in (TRAIN, TEST)
    }
    return PathsSet(found, way, rows)
