"""What a release of relation paths will take: its sources, questions to search, rows to learn."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from releases.asked import Cost, Speed
from releases.paths_manifest import PathsManifest
from releases.planning import expectations, told
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import PATHS
from safe_stepwise.store.tables import table


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
    """A source as it is here: its digest and rows (None of a graph), or nothing of it."""

    sha256: str | None = None
    rows: int | None = None


def report(
    manifest: PathsManifest,
    found: Mapping[str, Found],
    learning: Collection[Learning],
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
    kept = [cost for cost in costs if cost.part not in skip]
    return "\n\n".join([_sources(manifest, found), told(kept, speed)])


def _questions(manifest: PathsManifest, key: str, found: Found) -> int:
    entry, limit = manifest.sources[key], manifest.paths.limit
    rows = entry.expected_rows if found.rows is None else found.rows
    if rows is None:
        raise UserError(
            f"{manifest.path}: {key}: {entry.input} is not here; bring it, or say how many "
            "rows it has with expected_rows"
        )
    return min(rows, limit or rows)


def _sources(manifest: PathsManifest, found: Mapping[str, Found]) -> str:
    """A line a source, with the digest to write into the manifest where that has none."""
    rows: list[tuple[object, ...]] = [("source", "file", "rows", "SHA-256")]
    for key, one in found.items():
        entry = manifest.sources[key]
        said = "as the manifest says" if entry.sha256 else f"{one.sha256}, not in the manifest yet"
        digest = "not here" if one.sha256 is None else said
        rows.append((key, entry.input, "" if one.rows is None else one.rows, digest))
    return table(rows)
