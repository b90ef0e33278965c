"""The rows that a proposer of relation paths is trained on: of a dp-BENCHMARK-paths set.

SFT learns ``prompt_completion``, weakly labelled paths; KTO learns ``kto``, right and wrong ones (Deliberation on
Priors, section 3.1). ``splits`` chooses what train and test never share: a question, or the template of one (the
configs ``..._by_template``), which is the honest one where questions are made by template.

Source: ours (`safe-stepwise build_paths`), licence as its card says. One row of ``kto``::

    {"id": "9d1c...", "question_id": "3hop-train-5", "hops": 3, "label": false, "kind": "flipped",
     "prompt": [{"role": "system", "content": "Name the relations ..."}, ...],
     "completion": [{"role": "assistant", "content": "{\"path\": [\"~directed_by\"]}"}]}

and of ``prompt_completion``, where ``rank`` 0 is a question's first path of several::

    {"id": "5c0e...", "question_id": "3hop-train-5", "hops": 3, "rank": 0, "prompt": ..., ...}
"""

from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import prompt_digest, read_path
from safe_stepwise.store.names import PATHS_SETS, PROMPT_COMPLETION
from trainers.config import PathFilters
from trainers.rows.base import ANEW, BadRow, Kind, Row, Source, find, load

KTO_ROWS = "kto"
BY_TEMPLATE = "_by_template"
RECORD = "statistics/paths.json"


def open_rows(dataset: str, split: str, filters: PathFilters, config: str) -> tuple[Source, list[Row]]:
    """The rows ``{id, prompt, completion}`` of a split that the filters leave.

    Those of KTO have a ``label``, too. They come in the order of their ids' hashes, so that the first N are a draw, of
    as many questions as can be: a set is in the order of its source, which may have a file a number of hops.

    Raises ``UserError`` for a dataset that is not there, not pinned or of another kind, and for
    filters that leave nothing.
    """
    source, place = _found(dataset)
    rows = _rows(load(dataset, place, source.revision, config, split))
    wanted = {"id", "question_id", "prompt", "completion"}
    wanted |= {"label", "kind"} if config.startswith(KTO_ROWS) else {"rank"}
    for row in rows[:1]:
        if lacking := sorted(wanted - set(row)):
            raise UserError(f"{dataset}: its {config} lacks {', '.join(lacking)}; {ANEW}")
    kinds = {row["kind"] for row in rows if not row.get("label", True)}
    if unknown := sorted(set(filters.negatives) - kinds):
        known = ", ".join(sorted(kinds))
        raise UserError(f"{dataset}: filters.negatives: no {unknown[0]} in it, only {known}")
    drawn = sorted(rows, key=lambda row: sha256(row["id"].encode()).digest())
    kept = [row for row in drawn if _stays(row, filters)][: filters.rows]
    if not kept:
        raise UserError(f"{dataset}: no row of {split} is left by the filters; loosen them")
    return source, kept


def _rows(found: Any) -> list[Row]:
    """With kinds in words."""
    kind = found.features.get("kind")
    named = getattr(kind, "int2str", None)  # as text they are words already
    return [{**row, "kind": named(row["kind"])} if named else row for row in found]


def _stays(row: Row, filters: PathFilters) -> bool:
    if "label" in row:
        return bool(row["label"]) or not filters.negatives or row["kind"] in filters.negatives
    return filters.paths is None or row["rank"] < filters.paths


def _found(dataset: str) -> tuple[Source, str]:
    """As `find`, for whatever benchmark the set is of."""
    folder = Path(dataset).expanduser()
    inner = sorted(folder.glob(f"{PATHS_SETS}/data")) if not (folder / "data").is_dir() else []
    if len(inner) > 1:
        names = ", ".join(path.parent.name for path in inner)
        raise UserError(f"{dataset}: holds several sets ({names}); name one of them")
    return find(dataset, inner[0].parent.name if inner else PATHS_SETS, RECORD)


def _check(completion: str) -> None:
    try:
        read_path(completion)
    except ValueError as error:
        raise BadRow(f"has a completion that is no path, or is cut short ({error})") from None


def _questions(dataset: str, split: str, config: str) -> dict[str, str]:
    source, place = _found(dataset)
    rows = load(dataset, place, source.revision, config, split)
    return {row["id"]: row["question_id"] for row in rows.select_columns(["id", "question_id"])}


def paths(method: str, splits: str) -> Kind:
    """The kind of row that a method learns: ``sft`` or ``kto``, by ``question`` or ``template``."""
    config = KTO_ROWS if method == "kto" else PROMPT_COMPLETION
    config += BY_TEMPLATE if splits == "template" else ""
    return Kind(
        partial(open_rows, config=config),
        partial(_questions, config=config),
        _check,
        prompt_digest,
        labelled=method == "kto",
    )
