"""What makes the set of a release of relation paths, and the release; no command itself."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from builders.paths.kg_build import build
from builders.paths.kg_collect import PathsBuild
from builders.paths.relation_statistics import PathStatistics, summary
from cards.datasets import paths as card
from cards.releases import read_paths_release
from releases import parts
from releases.needs import left_of
from releases.parts import Made, Part
from releases.paths_manifest import PathsManifest
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, PATHS, REJECTS, paths_set
from scripts.release_sources import differing


def released(
    manifest: PathsManifest,
    output: Path,
    others: Sequence[Part],
    made_by: Mapping[str, Any],
    *,
    skip_training: bool = False,
    only: Sequence[str] = (),
    **engine: Any,
) -> str:
    """Make a release of relation paths or check a complete one; returns what there is to say.

    ``others`` are the parts beside the set, ``made_by`` is what the lock says of what made them;
    the options are those of `release_datasets.released`. Raises ``UserError`` as `parts.make` does.
    """
    skip = left_of(manifest.needs, manifest.trained, manifest.path, skip_training, only)
    plan = paths_plan(manifest, output, **engine)
    made = Part(PATHS, partial(_build, plan), partial(check_plan, manifest, plan))
    return parts.make(manifest, output, [made, *others], skip, made_by, read_paths_release)


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
        raise UserError(f"{plan.output}: holds {name}, which {manifest.path} does not name; choose another --output")


def _build(plan: PathsBuild) -> Made:
    made = build(plan, card)
    return Made(summary(plan, made), {paths_set(plan.benchmark): counts(made)})


def counts(made: PathStatistics) -> dict[str, Any]:
    """What the lock says of a set."""
    files = {config: {name: one.rows for name, one in of.items()} for config, of in made.files.items()}
    return {"questions": made.rows, "rejected": made.rejected, "rows": files}
