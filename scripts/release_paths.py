"""What makes a release of relation paths: their set, the adapter that learns it; no command."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from builders.benchmarks import sources
from builders.paths.kg_build import build
from builders.paths.kg_collect import PathsBuild
from builders.paths.relation_readers import READERS
from builders.paths.relation_statistics import PathStatistics
from builders.paths.relation_summary import summary
from cards import paths as card
from cards.paths_release import read_release
from evaluators.deliberation.proposing import BASELINES
from releases import parts
from releases.evaluations import OWN_ADAPTER
from releases.needs import left_of
from releases.parts import Made, Part
from releases.paths_manifest import (
    EVALUATION,
    KnownPaths,
    Method,
    PathsManifest,
    SourceEntry,
    read_paths,
)
from safe_stepwise.errors import UserError
from safe_stepwise.open import check_spec
from safe_stepwise.store.names import DATASETS, PATHS, REJECTS, paths_set
from scripts.release_datasets import made_by
from scripts.release_deliberation import deliberation_parts
from scripts.release_proposer import carded, proposer_parts
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


def released(
    manifest_file: Path,
    output: Path,
    *,
    skip_training: bool = False,
    only: Sequence[str] = (),
    cache: Path | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    **engine: Any,
) -> str:
    """Make a release of relation paths or check a complete one; returns what there is to say.

    The options are those of `release_datasets.released`. Raises ``UserError`` as `parts.make` does.
    """
    manifest = read_paths(manifest_file, KNOWN)
    skip = left_of(manifest.needs, manifest.trained, manifest.path, skip_training, only)
    plan = paths_plan(manifest, output, **engine)
    made = Part(PATHS, partial(_build, plan), partial(check_plan, manifest, plan))
    asking = {"cache": cache, "in_flight": in_flight, "timeout": timeout}
    measured = deliberation_parts(manifest, output, **asking)
    every = [made, *proposer_parts(manifest, output), *measured]
    if manifest.deliberation is not None and OWN_ADAPTER in manifest.deliberation.specs:
        every.append(Part(EVALUATION, partial(carded, manifest, output)))
    return parts.make(manifest, output, every, skip, made_by(), read_release)


def paths_plan(manifest: PathsManifest, output: Path, **engine: Any) -> PathsBuild:
    """The build of a manifest; ``engine`` are the fields that say where it runs."""
    entry = manifest.paths
    return PathsBuild(
        benchmark=entry.benchmark,
        sources=tuple(one.input for one in entry.questions),
        split=entry.split,
        output=output / DATASETS,
        kb=None if entry.kb is None else Path(entry.kb.input),
        version=manifest.version,
        seed=manifest.seed,
        keep_rejects=entry.on_error == "keep",
        keep_work=True,
        **entry.options,
        **engine,
    )


def check_plan(manifest: PathsManifest, plan: PathsBuild) -> None:
    """Raise ``UserError`` for a source that is not here or is another, and for other sets."""
    for problem in differing(manifest):
        raise UserError(f"{manifest.path}: {problem}")
    strangers = {path.name for path in plan.output.glob("[!.]*")} - {REJECTS}
    for name in sorted(strangers - {paths_set(plan.benchmark)}):
        raise UserError(
            f"{plan.output}: holds {name}, which {manifest.path} does not name; choose another "
            "--output"
        )


def differing(manifest: PathsManifest) -> Iterator[str]:
    """What is wrong with the sources, a line each."""
    for key, entry in manifest.sources.items():
        where = f"{key}: {entry.input}"
        if not is_here(entry):
            yield f"{where} is not here; the manifest's own lines say where to get it"
        elif entry.sha256 is not None and (found := sources.digest(entry.input)) != entry.sha256:
            yield (
                f"{where} has the SHA-256 {found}, not {entry.sha256}; get the file that was "
                "meant, or correct the digest"
            )


def is_here(entry: SourceEntry) -> bool:
    """Whether a source can be read: what the Hub has is taken to be there."""
    return entry.is_hub or Path(entry.input).is_file()


def _build(plan: PathsBuild) -> Made:
    made = build(plan, card.files)
    return Made(summary(plan, made), {paths_set(plan.benchmark): counts(made)})


def counts(made: PathStatistics) -> dict[str, Any]:
    """What the lock says of a set."""
    files = {
        config: {name: one.rows for name, one in of.items()} for config, of in made.files.items()
    }
    return {"questions": made.rows, "rejected": made.rejected, "rows": files}
