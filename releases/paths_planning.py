"""What a release of relation paths will take: its sources, and what is searched, learnt, asked."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from releases.asked import Cost, One, Speed, asking
from releases.paths_manifest import EVALUATION, DeliberationEntry, PathsManifest, named
from releases.planning import expectations, told
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import PATHS
from safe_stepwise.store.tables import table

_AT_MOST = (
    "Answers are priced at most: a path proposed for each candidate, and with a generator 1 + "
    "2(k + 1) calls a question of k + 1 candidates; none is cached, and no reply is asked for anew."
)


@dataclass(frozen=True, slots=True)
class Learning:
    """What the recipe of a part says."""

    part: str
    method: str
    base_model: str
    rows: int | None
    epochs: float


@dataclass(frozen=True, slots=True)
class Found:
    """A source as it is here: its digest and rows (None of a graph), or nothing of it.

    Of questions that are put also how many there are of each number of hops, and the most topic
    entities of one.
    """

    sha256: str | None = None
    rows: int | None = None
    by_hops: Mapping[int, int] | None = None
    topics: int = 1


@dataclass(frozen=True, slots=True)
class Deliberation:
    """What is known of the evaluation's commands where a manifest says nothing."""

    baselines: Collection[str]
    """Who proposes paths and asks nobody."""
    candidates: int
    """Paths of a topic entity with a generator; without one the first counts."""
    hops: int


def report(
    manifest: PathsManifest,
    found: Mapping[str, Found],
    learning: Collection[Learning],
    known: Deliberation,
    skip: Collection[str],
    speed: Speed,
) -> str:
    """What there is to say beforehand; ``found`` are the sources by their keys in the manifest.

    Raises ``UserError`` where the questions of a source are not known.
    """
    asked = {key: one for key, one in found.items() if key.startswith("paths.questions")}
    rows = sum(_questions(manifest, key, one) for key, one in asked.items())
    per_row = expectations()["paths"]["tokens_per_row"]
    costs = [Cost(f"search {manifest.paths.benchmark} {manifest.paths.split}", rows, part=PATHS)]
    for one in learning:
        learnt = one.rows or rows
        trained = round(learnt * one.epochs * per_row)
        name = f"{one.method} of {one.base_model}"
        costs.append(Cost(name, learnt, trained=trained, part=one.part))
    costs += _answered(manifest, found, known)
    kept = [cost for cost in costs if cost.part not in skip]
    note = [_AT_MOST] if any(cost.part == EVALUATION for cost in kept) else []
    return "\n\n".join([_sources(manifest, found), told(kept, speed), *note])


def _answered(manifest: PathsManifest, found: Mapping[str, Found], known: Deliberation) -> Iterator[Cost]:
    """What a contender takes each way, at most."""
    if (entry := manifest.deliberation) is None:
        return
    put = "deliberation.questions" if entry.questions else "paths.questions"
    asked = {key: one for key, one in found.items() if key.startswith(put)}
    rows = _put(manifest, entry, asked, known)
    pool = _candidates(entry, known) * max(one.topics for one in asked.values())
    one: Mapping[str, One] = expectations()["deliberation"]
    for way in entry.ways:
        for said in entry.paths:
            name, spec = named(said)
            title = f"answer by {name or spec}, {way}"
            proposed = 0 if spec in known.baselines else pool
            parts = [asking(spec, title, rows, _times(one["propose"], proposed))]
            if entry.generator is not None:
                looped = _times(one["loop"], 1 + 2 * pool)
                parts.append(asking(entry.generator, title, rows, looped))
            yield _sum(title, rows, parts)


def _candidates(entry: DeliberationEntry, known: Deliberation) -> int:
    return entry.candidates or (known.candidates if entry.generator else 1)


def _put(manifest: PathsManifest, entry: DeliberationEntry, asked: Mapping[str, Found], known: Deliberation) -> int:
    """Questions that are put, at most: held out or not they may be."""
    rows = sum(_rows(manifest, key, one) for key, one in asked.items())
    if entry.per_hop is None:
        return rows
    most = min(rows, entry.per_hop * (manifest.paths.max_hops or known.hops))
    by_hops = Counter[int]()
    for one in asked.values():
        if one.by_hops is None:
            return most
        by_hops.update(one.by_hops)
    return sum(min(number, entry.per_hop) for number in by_hops.values())


def _times(one: One, number: int) -> One:
    return {what: number * value for what, value in one.items()}


def _sum(title: str, rows: int, costs: Sequence[Cost]) -> Cost:
    sums: dict[str, Any] = {
        what: sum(getattr(cost, what) for cost in costs) for what in ("calls", "prompt", "computed", "reply")
    }
    return Cost(title, rows, **sums, part=EVALUATION)


def _questions(manifest: PathsManifest, key: str, found: Found) -> int:
    limit, rows = manifest.paths.limit, _rows(manifest, key, found)
    return min(rows, limit or rows)


def _rows(manifest: PathsManifest, key: str, found: Found) -> int:
    entry = manifest.sources[key]
    rows = entry.expected_rows if found.rows is None else found.rows
    if rows is None:
        raise UserError(
            f"{manifest.path}: {key}: {entry.input} is not here; bring it, or say how many "
            "rows it has with expected_rows"
        )
    return rows


def _sources(manifest: PathsManifest, found: Mapping[str, Found]) -> str:
    """A line a source, with the digest to write into the manifest where that has none."""
    rows: list[tuple[object, ...]] = [("source", "file", "rows", "SHA-256")]
    for key, one in found.items():
        entry = manifest.sources[key]
        said = "as the manifest says" if entry.sha256 else f"{one.sha256}, not in the manifest yet"
        digest = "not here" if one.sha256 is None else said
        rows.append((key, entry.input, "" if one.rows is None else one.rows, digest))
    return table(rows)
