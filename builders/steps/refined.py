"""``refined.jsonl``: the rows of refinement, written by one command and read by another."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builders.steps.features import check_row
from builders.steps.rows import StepRow, row_of
from builders.steps.weaknesses import FAMILIES
from safe_stepwise.errors import UserError
from safe_stepwise.records import canonical_json
from safe_stepwise.store import boundary
from safe_stepwise.store.boundary import read_object
from safe_stepwise.store.codec import question_of, question_row
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.parsing import parse_json, read_json

REFINED, STATISTICS = "refined.jsonl", "refinement.json"


def line_of(row: StepRow) -> str:
    """A row as a line of ``refined.jsonl``: one JSON object, its keys as in `read_refined`."""
    content = {
        "benchmark": row.question.benchmark,
        "split": row.question.split,
        "question": question_row(row.question),
        **row.content,
    }
    return canonical_json(content) + "\n"


def read_refined(path: Path) -> list[StepRow]:
    """The rows of a ``refined.jsonl``, one JSON object a line, without blank lines::

        {"benchmark": "musique", "split": "train", "question": {the columns of config musique},
         "previous": [{"number": 1, "text": "According to ...", "kind": "Attribution"}],
         "step": {"number": 2, "text": "...", "kind": "Attribution"},
         "feedback": {"error_type": "Correct", "diagnosis": "...", "guidance": "...",
                      "query": null},
         "origin": "refined", "teacher": "annotations", "family": "false facts passed"}

    Raises ``UserError`` for a file that can't be read, with the number of the line.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    found = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        try:
            row = boundary.read(StepRow, _row_of(parse_json(line)), "the row")
            check_row(row)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise UserError(
                f"{path}, line {number}: is no refined row ({reason}); make the file anew with "
                "safe-stepwise refine_verifier_steps"
            ) from None
        found.append(row)
    return found


def join_refined(mined: Sequence[Path], folder: Path) -> int:
    """Write as one what several runs found, each row once; returns how many rows that are.

    ``refinement.json`` of the ``folder`` has the records of all, and what they tell together.
    """
    rows: dict[str, StepRow] = {}
    for place in mined:
        for row in read_refined(place / REFINED):
            rows.setdefault(row.id, row)
    records = [read_object(place / STATISTICS) for place in mined]
    differ: Counter[str] = Counter()
    for record in records:
        differ.update({one["name"]: one["disagreements"] for one in record["families"]})
    shown = Counter(row.family for row in rows.values())
    record = {
        "rounds": records,
        "rows": len(rows),
        "simulated": any(record["simulated"] for record in records),
        "families": [{**asdict(f), "disagreements": differ[f.name], "rows": shown[f.name]} for f in FAMILIES],
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / REFINED, "".join(map(line_of, rows.values())).encode())
    content = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
    write_atomically(folder / STATISTICS, f"{content}\n".encode())
    return len(rows)


def origin_of(file: Path | None, given: Counter[str], chosen: Mapping[str, int]) -> dict[str, Any] | None:
    """Name, digest and rows of a file from refinement, and whether engines only played models.

    ``given`` and ``chosen`` are its rows, and those that are in a set, by weakness: its
    ``families`` tell both, and on how many steps the verifier showed it. That, and what played, is
    known from the record beside the file; None if there is none.
    """
    if file is None:
        return None
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    try:
        record = read_json(file.parent / STATISTICS)
        simulated = bool(record["simulated"])
        differ = {one["name"]: int(one["disagreements"]) for one in record.get("families", ())}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        simulated, differ = None, {}
    families = [
        {
            **asdict(family),
            "disagreements": differ.get(family.name),
            "given": given[family.name],
            "rows": chosen.get(family.name, 0),
        }
        for family in FAMILIES
    ]
    made = {"file": file.name, "sha256": digest, "rows": given.total(), "simulated": simulated}
    return {**made, "families": families}


def _row_of(content: Mapping[str, Any]) -> StepRow:
    if content["origin"] != "refined":
        raise ValueError(f"origin {content['origin']!r}")
    where = {"benchmark": content["benchmark"], "split": content["split"]}
    return row_of(question_of(content["question"], **where), content)
