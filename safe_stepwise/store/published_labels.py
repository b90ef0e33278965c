"""Reads labels of questions that others have published."""

from pathlib import Path

from safe_stepwise.records import NO_NOISE, NOISE_TYPES
from safe_stepwise.store import boundary, files

PUBLISHED = "published"
"""The name of the teacher that reads published lists of labels; its spec is ``published:FILE[,FILE]``."""


def read_published(path: Path) -> dict[str, bool]:
    """Read published labels (JSONL): whether each question is unverifiable, by id; raises ``UserError``."""
    mend = 'each is a JSON object with "id" and "unverifiable" (true or false), or "truth" (a noise type)'
    return dict(label for _, label in files.read_lines(path, _parse_label, "label", mend))


def _parse_label(line: bytes) -> tuple[str, bool]:
    row = boundary.parse_json(line)
    if isinstance(row.get("unverifiable"), bool):
        return str(row["id"]), row["unverifiable"]
    if row["truth"] not in NOISE_TYPES:
        raise ValueError(f"truth {row['truth']!r}")
    return str(row["id"]), row["truth"] not in NO_NOISE
