"""The stages of a release, loaded by their names, as they import much."""

import hashlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from releases.manifest import read_manifest
from releases.paths_manifest import read_paths
from releases.stage import Options, Release, Stage
from safe_stepwise.errors import UserError, at_place, one_of
from safe_stepwise.store.boundary import parse_yaml, read_content
from safe_stepwise.store.names import PATHS

STAGES = (
    *("datasets.Datasets", "verifier_steps.Refinement", "verifier_steps.VerifierSet", "datasets.Audits"),
    *("paths.PathProbe", "space.Space", "training.Generator", "training.Adapter"),
    *("evaluation.Evaluation", "space.Traces"),
    *("paths.PathsSet", "training.Proposer", "deliberation.Deliberation"),
)
"""The stages in the order of their making; those of blocks come last."""
SKIPPED, NOT_ASKED = "--skip-training", "--only"
"""The options that leave out a part."""


def modules() -> list[str]:
    """List the modules of all stages, each once."""
    return list(dict.fromkeys(f"{__name__}.{stage.partition('.')[0]}" for stage in STAGES))


def open_release(options: Options) -> Release[Any]:
    """Open the release of a manifest; raise ``UserError`` with its file and the key that is wrong."""
    content = read_content(options.manifest)
    with at_place(f"{options.manifest}", (UserError, ValueError)):
        values = parse_yaml(content)
        read: Any = read_paths if isinstance(values, dict) and PATHS in values else read_manifest
        manifest = read(values, options.manifest.parent)
        release = Release[Any](options, manifest, hashlib.sha256(content).hexdigest())
        for stage in stages_of(release):
            stage.validate()
    return release


def stages_of(release: Release[Any]) -> Sequence[Stage[Any]]:
    """List the stages that a release's manifest names, in the order of their making."""
    blocks = [*getattr(release.manifest, "blocks", ())]
    stages: list[Stage[Any]] = []
    for stage in STAGES:
        module, _, name = stage.partition(".")
        kind: type[Stage[Any]] = getattr(import_module(f"{__name__}.{module}"), name)
        if isinstance(release.manifest, kind.kind):
            stages += kind.from_manifest(release)
    return sorted(stages, key=lambda stage: blocks.index(stage.name) + 1 if stage.name in blocks else 0)


def needs_by_part(stages: Sequence[Stage[Any]]) -> dict[str, set[str]]:
    """Map each part, in the order of their making, to the other parts that it needs."""
    parts: dict[str, set[str]] = {}
    for stage in stages:
        parts[stage.name] = parts.get(stage.name, set()) | {need for need in stage.needs if need != stage.name}
    return parts


def left_out(release: Release[Any], stages: Sequence[Stage[Any]]) -> dict[str, str]:
    """Map each part that a run does not make to the option that leaves it out.

    Without training these are the parts that train, and those that need one. With ``only`` they are all but the
    named parts and their needs. Raises ``UserError`` for an unknown part, and for one that needs training.
    """
    parts, only, requested = needs_by_part(stages), release.options.only, set[str]()
    skipped: dict[str, str] = {}
    if release.options.skip_training:
        trained = {stage.name for stage in stages if stage.trains}
        skipped = {name: SKIPPED for name in parts if {name, *_transitive_needs(name, parts)} & trained}
    if not only:
        return skipped
    for name in only:
        requested |= {one_of(name, parts, f"{release.file}: {NOT_ASKED}"), *_transitive_needs(name, parts)}
    if untrained := sorted(set(skipped) & requested):
        raise UserError(
            f"{NOT_ASKED} {only[0]}: takes {untrained[0]}, which {SKIPPED} leaves out; leave out "
            "one of the two options"
        )
    return {name: skipped.get(name, NOT_ASKED) for name in parts if name not in requested}


def _transitive_needs(name: str, parts: dict[str, set[str]]) -> set[str]:
    """Collect the parts that a part needs, directly or through others."""
    direct = parts[name] & parts.keys()
    return direct.union(*(_transitive_needs(needed, parts) for needed in direct))
