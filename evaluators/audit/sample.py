"""A sample of rows to judge, balanced over strata, in an order in which one may stop early."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path

from evaluators.audit.rows import Key, Row, Stratum, rows, strata
from safe_stepwise.errors import UserError
from safe_stepwise.records import identity
from safe_stepwise.store.names import Audited


@dataclass(frozen=True, slots=True)
class Sample:
    """The rows drawn, in the order in which they are shown; ``sizes`` are rows of each stratum
    in the whole set."""

    of: Audited
    rows: tuple[Row, ...]
    sizes: Mapping[Stratum, int]

    @property
    def sha256(self) -> str:
        """Which rows these are, and what is shown of them."""
        return identity([self.of, [row.sha256 for row in self.rows]])


def draw(folder: Path, of: Audited, wanted: int, seed: int) -> Sample:
    """A sample of ``wanted`` rows of a published set, or of all there are.

    Every choice is made by a hash of seed and id, so the order of the files changes nothing.
    Raises ``UserError`` for a folder that holds no such set, or one without rows.
    """
    known = strata(folder, of)
    if not known:
        raise UserError(f"{folder}: holds no row to judge; build with more rows")
    groups: dict[Stratum, list[Key]] = {}
    for key, stratum in known.items():
        groups.setdefault(stratum, []).append(key)
    chosen = balanced(groups, wanted, seed)
    found = rows(folder, of, chosen)
    sizes = {stratum: len(group) for stratum, group in sorted(groups.items())}
    return Sample(of, tuple(found[key] for key in chosen), sizes)


def balanced(groups: Mapping[Stratum, list[Key]], wanted: int, seed: int) -> list[Key]:
    """Keys in rounds, one of each group that still has any: whoever stops early has all kinds.

    >>> groups = {("b", "rare"): [("b", "1")], ("b", "often"): [("b", "2"), ("b", "3")]}
    >>> ("b", "1") in balanced(groups, 2, seed=0), len(balanced(groups, 9, seed=0))
    (True, 3)
    """
    order = sorted(groups, key=lambda stratum: _rank(seed, stratum))
    ranked = (sorted(groups[stratum], key=lambda key: _rank(seed, key)) for stratum in order)
    rounds = chain.from_iterable(zip_longest(*ranked))
    return list(islice((key for key in rounds if key is not None), wanted))


def _rank(seed: int, name: tuple[str, ...]) -> str:
    return identity([seed, *name])
