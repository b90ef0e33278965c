"""Written chains with the labels of two readers: files, agreement, and what the rules make of them.

A chain is a line of JSON: ``id``, ``benchmark``, ``question_id``, ``steps`` and ``answer``; a label
is one too: ``id``, ``label`` ((un)faithful) and, if a step is bad, ``first_bad`` (from 1).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from safe_stepwise.checking.faithfulness.chains import Chain
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary
from safe_stepwise.store.parsing import parse_json

Label = Literal["faithful", "unfaithful"]
LABELS: tuple[Label, Label] = ("faithful", "unfaithful")
_NUMBERED = re.compile(r"^\s*(?:step\s+)?\d+\s*[.):]\s*", re.IGNORECASE)
_ANSWERS = re.compile(
    r"(?:so|thus|hence|therefore|finally)?[,\s]*(?:the|my)? ?(?:final )?answer\b.{0,40}?"
    r"(?:\bis\b|\bmust be\b|:)[^.;]*\.?",
    re.IGNORECASE,
)
"""A step that gives the answer and states nothing else."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """A chain that somebody wrote."""

    id: str
    benchmark: str
    question_id: str
    steps: Sequence[str]
    answer: str


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader says of a chain; ``first_bad`` is None where no step is."""

    id: str
    label: Label
    first_bad: int | None = None


def read_chains(file: Path) -> list[Written]:
    """The chains of a file; ``UserError`` with file and line for what is none."""
    rows = _rows(file, Written, "a chain has id, benchmark, question_id, steps (texts) and answer")
    return list(_once(rows, file))


def read_labels(file: Path, chains: Iterable[Written]) -> dict[str, Reading]:
    """A reader's labels by the id of their chain.

    Raises ``UserError`` for a line that is none, and unless every chain has one and none else.
    """
    mend = "a label has id, label (faithful or unfaithful) and perhaps first_bad (from 1)"
    found = {row.id: row for row in _once(_rows(file, Reading, mend), file)}
    ids = {chain.id for chain in chains}
    if lacking := sorted(ids - found.keys()):
        raise UserError(f"{file}: no label for chain {lacking[0]!r} ({len(lacking)} lack one)")
    if strange := sorted(found.keys() - ids):
        raise UserError(f"{file}: {strange[0]!r} is no chain's id; give the labels of these chains")
    return found


def told(chain: Written) -> Chain:
    """A written chain as one to judge: its steps without numbers, and without the answer's step.

    ``numbers`` are those of the steps as they were written.

    >>> one = Written("c", "b", "q", ["1. Ana wed Ors.", "So the answer is Ors."], "Ors")
    >>> told(one).steps, told(one).numbers
    (('Ana wed Ors.',), (1,))
    """
    bare = [_NUMBERED.sub("", step).strip() for step in chain.steps]
    kept = [(n, step) for n, step in enumerate(bare, 1) if step and not _ANSWERS.fullmatch(step)]
    return Chain(tuple(step for _, step in kept), chain.answer, tuple(n for n, _ in kept))


def _rows(file: Path, kind: type[T], mend: str) -> Iterator[tuple[int, T]]:
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, boundary.read(kind, parse_json(line))
            except ValueError as error:
                raise UserError(f"{file}:{number}: {error}; {mend}") from None


def _once(rows: Iterable[tuple[int, T]], file: Path) -> Iterator[T]:
    seen: set[str] = set()
    for number, row in rows:
        id_ = row.id  # type: ignore[attr-defined]
        if id_ in seen:
            raise UserError(f"{file}:{number}: id {id_!r} came before; give each chain one id")
        seen.add(id_)
        yield row
    if not seen:
        raise UserError(f"{file}: is empty")
