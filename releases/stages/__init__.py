"""The stages of a release, imported when one is opened, as their imports take long."""

import hashlib
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from releases.manifest import read_manifest
from releases.paths_manifest import read_paths
from releases.stage import Options, Release, Stage
from safe_stepwise.errors import UserError, at_place, check_choice
from safe_stepwise.store import boundary, names

STAGES = (
    *("datasets.DatasetsStage", "verifier_steps.RefinementStage", "verifier_steps.VerifierSetStage"),
    *("datasets.AuditsStage", "paths.PathProbeStage", "space.SpaceStage", "training.GeneratorStage"),
    *("training.AdapterStage", "evaluation.EvaluationStage", "space.TracesStage"),
    *("paths.PathsSetStage", "training.ProposerStage", "deliberation.DeliberationStage"),
)
"""The stages in the order of their making; those of blocks come last."""
SKIP_TRAINING, ONLY = "--skip-training", "--only"


def modules() -> list[str]:
    """List the modules of all stages, without repetition."""
    return list(dict.fromkeys(f"{__name__}.{stage.partition('.')[0]}" for stage in STAGES))


def open_release(options: Options) -> Release[Any]:
    """Read a release's manifest and validate its stages; raise ``UserError`` with the file and the wrong key."""
    content = boundary.read_content(options.manifest)
    with at_place(f"{options.manifest}", (UserError, ValueError)):
        values = boundary.parse_yaml(content)
        read: Any = read_paths if isinstance(values, dict) and names.PATHS in values else read_manifest
        release = Release[Any](options, read(values, options.manifest.parent), hashlib.sha256(content).hexdigest())
        for stage in stages_of(release):
            stage.validate()
    return release


def stages_of(release: Release[Any]) -> Sequence[Stage[Any]]:
    """List the stages that a release's manifest names, in the order of their making."""
    blocks = [*getattr(release.manifest, "blocks", ())]
    stages: list[Stage[Any]] = []
    for stage in STAGES:
        module, _, name = stage.partition(".")
        stage_type: type[Stage[Any]] = getattr(import_module(f"{__name__}.{module}"), name)
        if isinstance(release.manifest, stage_type.manifest_type):
            stages += stage_type.from_manifest(release)
    return sorted(stages, key=lambda stage: blocks.index(stage.name) + 1 if stage.name in blocks else 0)


def needs_by_part(stages: Sequence[Stage[Any]]) -> dict[str, set[str]]:
    """Map each part to the other parts that it needs; the parts are in the order of their making."""
    needs_by_name: dict[str, set[str]] = {}
    for stage in stages:
        needs_by_name.setdefault(stage.name, set()).update({*stage.needs} - {stage.name})
    return needs_by_name


def left_out(release: Release[Any], stages: Sequence[Stage[Any]]) -> dict[str, str]:
    """Map each part that a run does not make to the option that leaves it out.

    ``--skip-training`` leaves out the parts that train or need one that does, ``--only`` all that it does not name or
    need. Raises ``UserError`` for an unknown part, and for a part of ``--only`` that ``--skip-training`` leaves out.
    """
    direct_needs, only, requested = needs_by_part(stages), release.options.only, set[str]()
    skipped: dict[str, str] = {}
    if release.options.skip_training:
        trained = {stage.name for stage in stages if stage.trains}
        skipped = {n: SKIP_TRAINING for n in direct_needs if {n, *_transitive_needs(n, direct_needs)} & trained}
    if not only:
        return skipped
    for name in only:
        check_choice(name, direct_needs, f"{release.file}: {ONLY}")
        requested |= {name, *_transitive_needs(name, direct_needs)}
    if untrained := sorted(set(skipped) & requested):
        raise UserError(
            f"{ONLY} {only[0]}: takes {untrained[0]}, which {SKIP_TRAINING} leaves out; leave out "
            "one of the two options"
        )
    return {name: skipped.get(name, ONLY) for name in direct_needs if name not in requested}


def _transitive_needs(name: str, direct_needs: dict[str, set[str]]) -> set[str]:
    """Collect the parts that a part needs, directly or through other parts."""
    direct = direct_needs[name] & direct_needs.keys()
    return direct.union(*(_transitive_needs(needed, direct_needs) for needed in direct))
