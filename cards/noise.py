"""How much of a split is noise, what the papers print of it, and rows of noise to look at."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.published_tables import PAPERS, PublishedNoise, noise_ratios

SHOWN = 3
"""Examples of a card."""
FULL = {("hotpotqa", "validation"): 7_405, ("musique", "train"): 19_938, ("musique", "validation"): 2_417}
"""Questions of a split, by its benchmark, where the papers' tables have fewer."""

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Noise among the judged rows of a build, beside what the papers print of its split."""

    benchmark: str
    split: str
    judged: int
    noise: int
    published: PublishedNoise | None
    tables: str
    """Where that is printed."""
    full: int | None
    """Questions of the split, if the tables have fewer."""

    @property
    def percent(self) -> float | None:
        """The ratio (0-100); None where nothing was judged."""
        return 100 * self.noise / self.judged if self.judged else None


def ratios(builds: Sequence[Record]) -> list[Ratio]:
    """The ratio of each build, in order."""
    return [_ratio(build) for build in builds]


def _ratio(build: Record) -> Ratio:
    place = build["benchmark"], build["split"]
    printed = [one for one in noise_ratios() if (one.benchmark, one.split) == place]
    return Ratio(
        *place,
        judged=build["rows"] - build["rejected"] - build["unparsed"],
        noise=sum(build["unverifiable"].values()),
        published=printed[0] if printed else None,
        tables=" and ".join(f"{PAPERS[one.paper]}, Table {one.table}" for one in printed),
        full=FULL.get(place) if printed else None,
    )


def examples(builds: Sequence[Record], number: int = SHOWN) -> list[Record]:
    """Rows of noise that the builds kept to show, each with its benchmark and split.

    One of each type first, in the order of the types, and from one build after another.
    """
    of_type: dict[str, list[Record]] = {type_: [] for type_ in NOISE_TYPES}
    for build in builds:
        for row in build.get("examples") or ():
            told = {"benchmark": build["benchmark"], "split": build["split"], **row}
            of_type[row["noise_type"]].append(told)
    return list(_in_turns([rows for rows in of_type.values() if rows]))[:number]


def _in_turns(groups: Sequence[list[Record]]) -> Iterator[Record]:
    """A row of each group, then another of each; each group begins one place further on."""
    turned = [rows[n % len(rows) :] + rows[: n % len(rows)] for n, rows in enumerate(groups)]
    for of_each in zip_longest(*turned):
        yield from filter(None, of_each)
