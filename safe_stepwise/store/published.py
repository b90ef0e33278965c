"""Labels that others published, by id: looked up to score with, never to label.

Their lists of bare questions are a teacher's (`builders.verified.teachers.published`).
"""

from collections.abc import Mapping
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.agreement import SOUND
from safe_stepwise.store.parsing import parse_json

PUBLISHED = "published"
"""The kind of teacher whose spec names lists of questions, ``published:FILE[,FILE]``."""


def read_published(path: Path) -> dict[str, bool]:
    """Whether each id is unverifiable, from JSONL; raises ``UserError`` with file and line."""
    labels: dict[str, bool] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
            labels[str(row["id"])] = _is_noise(row)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f'{path}:{number}: not a JSON object with "id" and "unverifiable" (true or false),'
                ' or "truth" (a noise type)'
            ) from None
    return labels


def _is_noise(row: Mapping[str, object]) -> bool:
    if isinstance(row.get("unverifiable"), bool):
        return bool(row["unverifiable"])
    if row["truth"] not in NOISE_TYPES:
        raise ValueError(row["truth"])
    return row["truth"] not in SOUND
