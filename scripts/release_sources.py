"""What a manifest of relation paths may name, and whether its files are those; no command."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builders.benchmarks import sources
from builders.paths.relation_readers import READERS
from evaluators.deliberation.options import BASELINES
from releases.paths_manifest import KnownPaths, Method, PathsManifest, SourceEntry
from safe_stepwise.errors import UserError
from safe_stepwise.open import check_spec
from trainers.config import PathRecipe, read_recipe

_PLACES = dict.fromkeys(("dataset", "output", "start"), "of the release")
"""What a recipe is told where it is trained."""


def check_recipe(file: Path, change: Mapping[str, Any], method: Method) -> None:
    """Raise ``UserError`` for a recipe that can't be read, or that is not of this method."""
    recipe = read_recipe(file, {**change, **_PLACES}, PathRecipe)
    if recipe.method != method:
        raise UserError(f"recipe: {file} is of {recipe.method}; name one of {method}")


KNOWN = KnownPaths(
    benchmarks=READERS,
    graphs=[name for name, reader in READERS.items() if reader.NEEDS_GRAPH],
    baselines=BASELINES,
    check_engine=check_spec,
    recipes=Path(__file__).parents[1] / "trainers" / "recipes",
    check_recipe=check_recipe,
)


def differing(manifest: PathsManifest) -> Iterator[str]:
    """What is wrong with the sources, a line each."""
    reader = READERS[manifest.paths.benchmark]
    for key, entry in manifest.sources.items():
        where = f"{key}: {entry.input}"
        if not is_here(entry):
            yield (f"{where} is not here; get it from {reader.HOMEPAGE} and put it there")
        elif entry.sha256 is not None and (found := sources.digest(entry.input)) != entry.sha256:
            yield (
                f"{where} has the SHA-256 {found}, not {entry.sha256}; get the file that was "
                "meant, or correct the digest"
            )


def is_here(entry: SourceEntry) -> bool:
    """Whether a source can be read: what the Hub has is taken to be there."""
    return entry.is_hub or Path(entry.input).is_file()
