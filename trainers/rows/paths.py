"""The training rows of a proposer of relation paths, from a dp-BENCHMARK-paths set.

SFT learns ``prompt_completion``, weakly labelled paths; KTO learns ``kto``, right and wrong ones (Deliberation on
Priors, section 3.1). ``splits`` chooses whether train and test may not share a question, or not even a question's
template (the configs ``..._by_template``). The latter is the fair test for questions made from templates.

Source: ours (`safe-stepwise build_paths`), licence as its card says. One row of ``kto``::

    {"id": "9d1c...", "question_id": "3hop-train-5", "hops": 3, "label": false, "kind": "flipped",
     "prompt": [{"role": "system", "content": "Name the relations ..."}, ...],
     "completion": [{"role": "assistant", "content": "{\"path\": [\"~directed_by\"]}"}]}

and of ``prompt_completion``, where ``rank`` 0 is a question's first path of several::

    {"id": "5c0e...", "question_id": "3hop-train-5", "hops": 3, "rank": 0, "prompt": ..., ...}
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import prompt_digest, read_path
from safe_stepwise.store.names import BY_TEMPLATE, PATHS_RECORD, PATHS_SETS, PROMPT_COMPLETION
from safe_stepwise.store.names import KTO as KTO_ROWS
from trainers.config import PathFilters, PathRecipe
from trainers.rows.base import ANEW, BadRow, DatasetSource, Row, RowKind, find, kind_of, load


@dataclass(frozen=True)
class PathRows(RowKind):
    """The rows of a method (``sft`` or ``kto``), split by ``question`` or ``template``, in the order of id hashes."""

    method: str
    splits: str

    @property
    def labelled(self) -> bool:  # type: ignore[override]
        return self.method == "kto"

    @property
    def config(self) -> str:
        config = KTO_ROWS if self.labelled else PROMPT_COMPLETION
        return config + (BY_TEMPLATE if self.splits == "template" else "")

    def rows(self, dataset: str, split: str, filters: PathFilters) -> tuple[DatasetSource, list[Row]]:
        source, loaded = self._load(dataset, split)
        to_name = getattr(loaded.features.get("kind"), "int2str", None)  # other features hold text
        rows: list[Row] = [{**row, "kind": to_name(row["kind"])} if to_name else row for row in loaded]
        needed = {"id", "question_id", "prompt", "completion"} | ({"label", "kind"} if self.labelled else {"rank"})
        for row in rows[:1]:
            if missing := sorted(needed - set(row)):
                raise UserError(f"{dataset}: its {self.config} lacks {', '.join(missing)}; {ANEW}")
        kinds = {row["kind"] for row in rows if not row.get("label", True)}
        if unknown := sorted(set(filters.negatives) - kinds):
            available = ", ".join(sorted(kinds))
            raise UserError(f"{dataset}: filters.negatives: no {unknown[0]} in it, only {available}")
        shuffled = sorted(rows, key=lambda row: sha256(row["id"].encode()).digest())
        return source, [row for row in shuffled if _is_selected(row, filters)]

    def questions(self, dataset: str, split: str) -> dict[str, str]:
        rows = self._load(dataset, split)[1].select_columns(["id", "question_id"])
        return {row["id"]: row["question_id"] for row in rows}

    def check(self, completion: str) -> None:
        try:
            read_path(completion)
        except ValueError as error:
            raise BadRow(f"has a completion that is no path, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return prompt_digest()

    def _load(self, dataset: str, split: str) -> tuple[DatasetSource, Any]:
        """Load the rows of a split; the folder may hold the set of any benchmark."""
        folder = Path(dataset).expanduser()
        inner = sorted(folder.glob(f"{PATHS_SETS}/data")) if not (folder / "data").is_dir() else []
        if len(inner) > 1:
            names = ", ".join(path.parent.name for path in inner)
            raise UserError(f"{dataset}: holds several sets ({names}); name one of them")
        source, place = find(dataset, inner[0].parent.name if inner else PATHS_SETS, PATHS_RECORD)
        return source, load(dataset, place, source.revision, self.config, split)


@kind_of.register
def _(recipe: PathRecipe) -> RowKind:
    return PathRows(recipe.method, recipe.splits)


def _is_selected(row: Row, filters: PathFilters) -> bool:
    if "label" in row:
        return bool(row["label"]) or not filters.negatives or row["kind"] in filters.negatives
    return filters.paths is None or row["rank"] < filters.paths
