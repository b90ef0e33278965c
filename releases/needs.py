"""What each part of a release needs, and so what a run of some of them makes."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from releases.manifest import OWN_PARTS, PROBE, Manifest
from releases.refining import PART as REFINEMENT
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import GENERATOR, STEPS

SKIPPED, NOT_ASKED = "--skip-training", "--only"
"""Why a part is left out."""


def needs(manifest: Manifest) -> dict[str, set[str]]:
    """The parts that a manifest names, in the order of their making, with those each needs."""
    entry = manifest.evaluation
    found: dict[str, set[str]] = {"datasets": set(), "space": set()}
    if (steps := manifest.verifier_steps) is not None:
        found["verifier_steps"] = {"datasets"}
        if steps.refinement is not None:
            found[REFINEMENT] = {"datasets"}
            found["verifier_steps"] |= {REFINEMENT}
    if manifest.audits:
        of_steps = any(audit.of == STEPS for audit in manifest.audits)
        found["audits"] = {"datasets", *(["verifier_steps"] if of_steps else [])}
    if manifest.path_probe is not None:
        found[PROBE] = {"datasets"}
    if manifest.generator is not None:
        found[GENERATOR] = {"datasets", "verifier_steps"}
    if manifest.adapter is not None:
        found["adapter"] = {"datasets", "verifier_steps"}
    if entry is not None:
        found["evaluation"] = {
            "datasets",
            *(["adapter"] if entry.needs_adapter else []),
            *([GENERATOR] if entry.needs_generator else []),
        }
    for name, block in manifest.blocks.items():
        learnt = {"verifier_steps"} if block.needs_steps else set()
        own = {"adapter"} if block.needs_adapter else set()
        own |= {GENERATOR} if block.needs_generator else set()
        found[name] = {"datasets", *learnt, *own}
    return {name: found[name] for name in (*OWN_PARTS, *manifest.blocks) if name in found}


def left_out(manifest: Manifest, skip_training: bool = False, only: Sequence[str] = ()) -> dict[str, str]:
    """Parts that a run does not make, with the option that leaves each out.

    Without training these are adapters, and what needs one: refinement too, but not the verifier
    set, which is then made without the rows that would be found. With ``only`` it is all but those
    named, and what they need. Raises ``UserError`` for a name of no part, and for one that can't be
    made without training.
    """
    trained = {name for name, block in manifest.blocks.items() if block.adapters}
    trained |= {"adapter", GENERATOR, REFINEMENT}
    of = needs(manifest)
    if skip_training:
        of = {name: direct - {REFINEMENT} for name, direct in of.items()}
    return left_of(of, trained, manifest.path, skip_training, only)


def left_of(
    of: Mapping[str, set[str]],
    trained: Collection[str],
    path: Path,
    skip_training: bool = False,
    only: Sequence[str] = (),
) -> dict[str, str]:
    """The same of parts by name with what each needs, ``trained`` being those that train."""
    skipped: dict[str, str] = {}
    if skip_training:
        skipped = {name: SKIPPED for name in of if {name, *_all(name, of)} & {*trained}}
    if not only:
        return skipped
    wanted: set[str] = set()
    for name in only:
        wanted |= {one_of(name, of, f"{path}: {NOT_ASKED}"), *_all(name, of)}
    if untrained := sorted(set(skipped) & wanted):
        raise UserError(
            f"{NOT_ASKED} {only[0]}: takes {untrained[0]}, which {SKIPPED} leaves out; leave out "
            "one of the two options"
        )
    return {name: skipped.get(name, NOT_ASKED) for name in of if name not in wanted}


def _all(name: str, of: Mapping[str, set[str]]) -> set[str]:
    """What a part needs, and what that needs."""
    direct = of[name] & of.keys()
    return direct.union(*(_all(other, of) for other in direct))
