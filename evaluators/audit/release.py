"""What a release does with scores: it reads them, and refuses those of other rows than its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluators.audit.asked import ASKED
from evaluators.audit.rows import rows
from evaluators.audit.score import Scores
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.terminal import printable

_MAKE = "write it with safe-stepwise audit_labels score ... --output FILE"


def read_scores(file: Path, of: str) -> dict[str, Any]:
    """What `report.write_scores` wrote, as JSON has it; raises ``UserError`` for another file."""
    scores: dict[str, Any] = plain(read_file(Scores, file, "the record", _MAKE))
    asked = {one.name for questions in ASKED.values() for one in questions}
    pairs = scores["agreement"]
    strange = {pair["question"] for pair in pairs} | set(scores["rates"])
    names = {pair[who] for pair in pairs for who in ("one", "other")}
    if not strange <= asked or not names <= set(scores["reviewers"]):
        raise UserError(f"{file}: speaks of questions or reviewers that it does not name; {_MAKE}")
    if scores["of"] != of:
        raise UserError(f"{file}: has scores of {scores['of']}, not of {of}; name it as such")
    return scores


def check_rows(scores: Mapping[str, Any], file: Path, folder: Path) -> None:
    """Raise ``UserError`` unless the folder holds every row of the scores as it was judged."""
    judged = {(benchmark, id_): sha256 for benchmark, id_, sha256 in scores["judged"]}
    found = rows(folder, scores["of"], judged)
    other = [k for k, digest in judged.items() if k not in found or found[k].sha256 != digest]
    if other:
        named = printable(" ".join(other[0]))
        raise UserError(
            f"{file}: {len(other):,} of the {len(judged):,} rows that were judged are not, or not "
            f"like that, in {folder} (the first: {named}); have a sample of these rows judged, or "
            "take the file out of the manifest"
        )
