"""What makes the refinement of a release: train, diagnose, augment; no command itself."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from builders.steps.collect import StepsBuild
from builders.steps.mining import Refinement
from builders.steps.refined import REFINED, STATISTICS, join_refined
from builders.steps.refinement import ANNOTATIONS, refine, summary
from releases.evaluations import OWN_ADAPTER, RefinementEntry
from releases.manifest import Manifest
from releases.parts import Made, Part
from releases.refining import PART, Round, Stage, refined_folder, run
from safe_stepwise.methods.loop import GENERATE, VERIFY
from safe_stepwise.records import identity
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import TRAIN, VERIFIED
from safe_stepwise.store.parquet import labeled_files
from scripts.asking import Asking
from scripts.cli import roles_of, warn
from scripts.release_adapters import Training, own_training
from trainers.config import FREE
from trainers.run import train

LOOP = roles_of(GENERATE + VERIFY)
ROLES = (*roles_of(("steps/trajectory", "steps/inject")), *LOOP)
"""Of all requests that rounds are made with."""


def found_in(output: Path) -> Path:
    """The rows that all rounds of a release found."""
    return refined_folder(output) / REFINED


def refinement(
    manifest: Manifest,
    entry: RefinementEntry,
    plan: StepsBuild,
    build: Callable[[StepsBuild], object],
    output: Path,
    asking: Asking,
) -> Part:
    """What finds the refined rows of a manifest's verifier set, for all of which ``plan`` stands.

    ``entry`` says how, ``build`` builds the set of a plan.
    """
    assert manifest.adapter is not None  # as the manifest was read
    learning = partial(_learning, own_training(manifest, manifest.adapter, output))
    stage = Stage(
        build=lambda this, refined: build(_plan(plan, this, refined)),
        train=lambda this: train(learning(this).recipe, resume=True, warn=warn),
        mine=partial(_mine, entry, _mined_with(manifest, entry, plan), asking),
        join=join_refined,
        mined_of=STATISTICS,
    )

    def make() -> Made:
        files = [f for of in labeled_files(plan.verified / VERIFIED).values() for f in of]
        learnt = learning(Round(output)).recipe.plain()
        asked = manifest.allowance.only(ROLES).plain
        made_of = {
            "manifest": identity([manifest.verifier_steps, manifest.seed, manifest.version, asked]),
            "recipe": identity({k: learnt[k] for k in learnt if k not in (*FREE, "dataset")}),
            "set of questions": identity([sha256_of(file) for file in files]),
        }
        rows, said = run(stage, entry.rounds, output, made_of)
        return Made(said, {PART: {"rounds": entry.rounds, "rows": rows}})

    return Part(PART, make, learning(Round(output)).check)


def _learning(own: Training, this: Round) -> Training:
    """How the adapter of a round is trained: as the release's own, on the set of the round.

    Of eleven labels, whatever the release's own learns: the loop in which it is diagnosed has all
    evidence.
    """
    entry = replace(own.entry, incomplete_evidence=False)
    return replace(own, entry=entry, home=this.folder, steps=this.steps)


def _plan(plan: StepsBuild, this: Round, refined: Path | None) -> StepsBuild:
    """The verifier set of a round: in the first one without refined rows."""
    file = None if refined is None else refined / REFINED
    wanted = plan.composition if file else replace(plan.composition, refined=0)
    return replace(plan, output=this.built, composition=wanted, refined=file)


def _mine(entry: RefinementEntry, wanted: Refinement, asking: Asking, this: Round) -> str:
    wanted = replace(wanted, output=this.mined)
    specs = [entry.generator, entry.verifier.replace(OWN_ADAPTER, str(this.adapter))]
    specs += [entry.teacher] if entry.teacher != ANNOTATIONS else []
    with asking.clients(specs, LOOP) as clients:
        found = refine(wanted, clients[0], clients[1], clients[2] if clients[2:] else None)
    return "\n\n" + summary(wanted, found)


def _mined_with(manifest: Manifest, entry: RefinementEntry, plan: StepsBuild) -> Refinement:
    """What to mine: no question that steps are not made of, as its rows could not join."""
    limit = entry.limit
    if limit is None and plan.pool is not None:
        limit = plan.pool * len({b.benchmark for b in manifest.builds if b.split == TRAIN})
    places, rows = (plan.verified, plan.output), entry.rows
    return Refinement(*places, rows, limit, version=plan.version, seed=plan.seed)
