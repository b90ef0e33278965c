"""The probe's rows of one question: its valid path, and each corruption that can be made of it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from builders.paths.asked import Asked, Path
from builders.paths.corruptions import Drawn, corrupted
from builders.paths.drafts import DRAFTS, Scope
from builders.paths.world import World
from safe_stepwise.records import identity
from safe_stepwise.store.names import Corruption


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One path of a question. ``position``: where it is wrong, from 1; None where it is valid.

    ``pair_id`` is the id of the question's valid path, its own if it is that.
    """

    asked: Asked
    path: Path
    corruption: Corruption
    position: int | None
    pair_id: str

    @property
    def id(self) -> str:
        """A hash of what it says."""
        return row_id(self.asked, self.path, self.corruption)


def row_id(asked: Asked, path: Path, corruption: Corruption) -> str:
    """SHA-256 of what a row says."""
    told = [(triple.head, triple.relation, triple.tail) for triple in path]
    return identity([asked.benchmark, asked.id, asked.question, asked.answer, corruption, told])


@dataclass(frozen=True, slots=True)
class Refused:
    """A corruption that a question has none of, and why."""

    corruption: Corruption
    reason: str


def rows_of(
    asked: Asked, world: World, donors: Sequence[Asked], seed: int, drawn: Drawn
) -> Iterator[ProbeRow | Refused]:
    """The rows of a question, the valid one first, or why a kind is not among them.

    Each depends on the seed, the question and the kind alone, given world and donors.
    """
    pair = row_id(asked, asked.path, "valid")
    seen = {asked.path}
    yield ProbeRow(asked, asked.path, "valid", None, pair)
    for kind in DRAFTS:
        chance = Random(f"{seed} {asked.benchmark} {asked.id} {kind}")
        made = corrupted(kind, Scope(asked, world, donors, chance), drawn)
        if isinstance(made, str):
            yield Refused(kind, made)
        elif made.path in seen:
            yield Refused(kind, "another kind made the same path")
        else:
            seen.add(made.path)
            yield ProbeRow(asked, made.path, kind, made.position, pair)
