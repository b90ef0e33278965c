"""What a release of relation paths would take, told before it is made; no command itself."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from builders.benchmarks import sources
from builders.paths.relation_readers import questions
from evaluators.deliberation.options import BASELINES, CANDIDATES
from releases.asked import Speed
from releases.needs import left_of
from releases.paths_manifest import PathsManifest, read_paths
from releases.paths_planning import Deliberation, Found, Learning, report
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS
from scripts.release_sources import KNOWN, differing, is_here
from scripts.release_stages import stages_of

DELIBERATION = Deliberation(BASELINES, CANDIDATES, HOPS)


def dry_run(manifest_file: Path, output: Path, speed: Speed, **which: Any) -> str:
    """What a release would take; ``which`` are the options of `left_of`.

    Questions that are at hand are read to the end, so a bad row shows here (unless such rows are
    kept apart). Raises ``UserError`` for that, and for a manifest that can't be read.
    """
    manifest = read_paths(manifest_file, KNOWN)
    skip = left_of(manifest.needs, manifest.trained, manifest.path, **which)
    found = {key: _found(manifest, key) for key in manifest.sources}
    learning = list(_learning(manifest, output))
    said = report(manifest, found, learning, DELIBERATION, skip, speed)
    return "\n".join([said, *(f"still owed: {one}" for one in differing(manifest))])


def refuse_owed(manifest_file: Path) -> None:
    """Raise ``UserError`` if a dry run had to say that files are missing, or are others."""
    manifest = read_paths(manifest_file, KNOWN)
    if owed := list(differing(manifest)):
        raise UserError(
            f"{manifest.path}: {len(owed)} of {len(manifest.sources)} files that it is made from "
            "are still owed (the lines above say how to get each); bring them and run this again"
        )


def _found(manifest: PathsManifest, key: str) -> Found:
    paths = manifest.paths
    entry = manifest.sources[key]
    if entry.is_hub or not is_here(entry):
        return Found()
    digest = sources.digest(entry.input)
    if key == "paths.kb" or paths.on_error == "keep":
        return Found(digest, None if key == "paths.kb" else entry.expected_rows)
    if manifest.deliberation is not None and not key.startswith("paths."):
        rows = questions(paths.benchmark, entry.input, manifest.deliberation.split)
    else:
        limit = None if manifest.deliberation is not None else paths.limit
        rows = questions(paths.benchmark, entry.input, paths.split, limit)
    by_hops, topics = Counter[int](), 1
    for row in rows:
        by_hops[row.hops] += 1
        topics = max(topics, len(row.topics))
    return Found(digest, by_hops.total(), by_hops, topics)


def _learning(manifest: PathsManifest, output: Path) -> Iterator[Learning]:
    for part, stage in stages_of(manifest, output).items():
        recipe = stage.recipe
        rows, epochs = recipe.filters.rows, recipe.epochs
        yield Learning(part, recipe.method, recipe.base_model, rows, epochs)
