"""What makes the refinement of a release: train, diagnose, augment; no command itself."""

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from builders.steps.collect import StepsBuild
from builders.steps.mining import Refinement
from builders.steps.refined import REFINED, STATISTICS, join_refined
from builders.steps.refinement import ANNOTATIONS, refine
from builders.steps.summary import mining
from releases.manifest import OWN_ADAPTER, Manifest
from releases.parts import Made, Part
from releases.refining import PART, RefinementEntry, Round, Stage, refined_folder, run
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import Client
from safe_stepwise.open import Opener
from safe_stepwise.records import identity
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.layout import labeled_files
from safe_stepwise.store.names import TRAIN, VERIFIED
from scripts.cli import warn
from trainers.base_model import find_base
from trainers.config import FREE, Recipe, read_recipe
from trainers.machine import need_libraries
from trainers.run import train


@dataclass(frozen=True, slots=True)
class Asking:
    """How models are asked: the file of replies, how many requests wait, seconds for a call."""

    cache: Path | None
    in_flight: int
    timeout: float | None


def refinement(
    manifest: Manifest,
    plan: StepsBuild,
    build: Callable[[StepsBuild], object],
    output: Path,
    asking: Asking,
    skip: Collection[str],
) -> tuple[list[Part], StepsBuild]:
    """What comes before the verifier set of a plan, and the plan with the rows that it finds.

    That is a part if the manifest has one; to ``skip`` it, the plan stays as it is. ``build``
    builds a set.
    """
    entry = manifest.verifier_steps.refinement if manifest.verifier_steps else None
    if entry is None:
        return [], plan
    found = None if PART in skip else refined_folder(output) / REFINED
    return [_part(manifest, entry, plan, build, output, asking)], replace(plan, refined=found)


def _part(
    manifest: Manifest,
    entry: RefinementEntry,
    plan: StepsBuild,
    build: Callable[[StepsBuild], object],
    output: Path,
    asking: Asking,
) -> Part:
    recipe = partial(_recipe, manifest)
    stage = Stage(
        build=lambda this, refined: build(_plan(plan, this, refined)),
        train=lambda this: train(recipe(this), resume=True, warn=warn),
        mine=partial(_mine, entry, _mined_with(manifest, entry, plan), asking),
        join=join_refined,
        mined_of=STATISTICS,
    )

    def make() -> Made:
        files = [f for of in labeled_files(plan.verified / VERIFIED).values() for f in of]
        learnt = recipe(Round(output)).plain()
        made_of = {
            "manifest": identity([manifest.verifier_steps, manifest.seed, manifest.version]),
            "recipe": identity({k: learnt[k] for k in learnt if k not in (*FREE, "dataset")}),
            "set of questions": identity([sha256_of(file) for file in files]),
        }
        rows, said = run(stage, entry.rounds, output, made_of)
        return Made(said, {PART: {"rounds": entry.rounds, "rows": rows}})

    return Part(PART, make, lambda: _check(recipe(Round(output))))


def _plan(plan: StepsBuild, this: Round, refined: Path | None) -> StepsBuild:
    """The verifier set of a round: in the first one without refined rows."""
    file = None if refined is None else refined / REFINED
    wanted = plan.composition if file else replace(plan.composition, refined=0)
    return replace(plan, output=this.built, composition=wanted, refined=file)


def _mine(entry: RefinementEntry, wanted: Refinement, asking: Asking, this: Round) -> str:
    wanted = replace(wanted, output=this.mined)
    specs = [entry.generator, entry.verifier.replace(OWN_ADAPTER, str(this.adapter))]
    specs += [entry.teacher] if entry.teacher != ANNOTATIONS else []
    with closing(ResponseCache(asking.cache or default_cache())) as cache:
        opened = map(Opener(asking.timeout), specs)
        clients = [Client(engine, cache, asking.in_flight) for engine in opened]
        found = refine(wanted, clients[0], clients[1], clients[2] if clients[2:] else None)
    return "\n\n" + mining(wanted, found)


def _mined_with(manifest: Manifest, entry: RefinementEntry, plan: StepsBuild) -> Refinement:
    """What to mine: no question that steps are not made of, as its rows could not join."""
    limit = entry.limit
    if limit is None and plan.pool is not None:
        limit = plan.pool * len({b.benchmark for b in manifest.builds if b.split == TRAIN})
    places, rows = (plan.verified, plan.output), entry.rows
    return Refinement(*places, rows, limit, version=plan.version, seed=plan.seed)


def _recipe(manifest: Manifest, this: Round) -> Recipe:
    """The recipe of the release's adapter, on the verifier set of a round."""
    assert manifest.adapter is not None  # the manifest was read
    places = {"dataset": str(this.steps), "output": str(this.adapter)}
    return read_recipe(manifest.adapter.recipe, places)


def _check(recipe: Recipe) -> None:
    """Raise ``UserError`` if the libraries or the base model are missing, before hours of work."""
    need_libraries(recipe)
    find_base(recipe.base_model)
