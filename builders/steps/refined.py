"""Read and write ``refined.jsonl``, the rows of refinement, and the record beside it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.steps.rows import StepRow, check_row
from builders.steps.weaknesses import by_family
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store import boundary, codec, files
from safe_stepwise.store.names import REFINED as ORIGIN

REFINED, STATISTICS = "refined.jsonl", "refinement.json"


def line_of(row: StepRow) -> str:
    """Return a row as a line of ``refined.jsonl``: one JSON object, its keys as in `read_refined`."""
    origin = {"benchmark": row.question.benchmark, "split": row.question.split}
    return canonical_json({**origin, "question": codec.question_row(row.question), **row.content}) + "\n"


def read_refined(path: Path) -> list[StepRow]:
    """Read the rows of a ``refined.jsonl``, which has one JSON object on each line, and no blank lines::

        {"benchmark": "musique", "split": "train", "question": {the columns of config musique},
         "previous": [{"number": 1, "text": "According to ...", "kind": "Attribution"}],
         "step": {"number": 2, "text": "...", "kind": "Attribution"},
         "feedback": {"error_type": "Correct", "diagnosis": "...", "guidance": "...",
                      "query": null},
         "origin": "refined", "teacher": "annotations", "family": "false facts passed"}

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    advice = "make the file anew with safe-stepwise refine_verifier_steps"
    return [row for _, row in files.read_lines(path, _row_of, "refined row", advice)]


def _row_of(line: bytes) -> StepRow:
    content = boundary.parse_json(line)
    origin = {"benchmark": content["benchmark"], "split": content["split"]}
    row = boundary.read(StepRow, {**content, "question": {**content["question"], **origin}}, "the row")
    if row.origin != ORIGIN:
        raise ValueError(f"origin {row.origin!r}")
    check_row(row)
    return row


def write_refined(folder: Path, rows: Sequence[StepRow], record: Mapping[str, Any]) -> None:
    """Write rows and the record of their origin, each atomically."""
    files.write_atomically(folder / REFINED, "".join(map(line_of, rows)).encode())
    files.write_atomically(folder / STATISTICS, files.json_bytes(boundary.plain(record)))


def join_refined(mined: Sequence[Path], folder: Path) -> int:
    """Join the rows of several runs and their records in a folder, each row once; return the number of rows."""
    rows: dict[str, StepRow] = {}
    for run in mined:
        for row in read_refined(run / REFINED):
            rows.setdefault(row.id, row)
    records = [boundary.read_object(run / STATISTICS) for run in mined]
    families = by_family({"rows": Counter(row.family for row in rows.values())})
    folder.mkdir(parents=True, exist_ok=True)
    simulated = any(record["simulated"] for record in records)
    together = {"rounds": records, "rows": len(rows), "simulated": simulated, "families": families}
    write_refined(folder, list(rows.values()), together)
    return len(rows)


def origin_of(file: Path | None, read_counts: Counter[str], chosen: Mapping[str, int]) -> dict[str, Any] | None:
    """Describe a file of refinement: its digest, and all its rows (``read_counts``) and the ``chosen`` ones."""
    if file is None:
        return None
    try:
        simulated = bool(boundary.read_object(file.parent / STATISTICS)["simulated"])
    except (UserError, KeyError):
        simulated = None
    return {
        "file": file.name,
        "sha256": files.sha256_of(file),
        "rows": read_counts.total(),
        "simulated": simulated,
        "families": by_family({"given": read_counts, "rows": chosen}),
    }
