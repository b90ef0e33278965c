"""What a manifest may name, and the builds and recipes that it comes to; no command itself."""

from collections.abc import Callable, Iterator
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.steps.collect import MAX_LENGTH, StepsBuild
from builders.steps.composition import Composition
from builders.steps.refined import read_refined
from builders.verified.collect import EVALUATION_SIZE, Build, spec_of
from builders.verified.questions import PASSAGES
from builders.verified.teachers import Teachers
from builders.verified.teachers.choice import known_teacher
from builders.verified.teachers.llm import PROMPTS
from builders.work.publishing import read_statistics
from cards.datasets import Audit
from evaluators.audit.release import read_scores
from releases.keys import Known
from releases.manifest import OWN_SET, Manifest
from releases.parts import refuse_strangers
from releases.planning import Training as Foreseen
from safe_stepwise.open import check_spec
from safe_stepwise.store.agreement import read_published
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import BLOCKS, DATASETS, GENERATOR, VERIFIED
from trainers.config import GeneratorRecipe, VerifierRecipe, read_recipe

_PLACES = {"dataset": "of the release", "output": "of the release"}
"""What a recipe is told where it is trained."""
KNOWN = Known(
    benchmarks=BENCHMARKS,
    recipes=Path(__file__).parents[1] / "trainers" / "recipes",
    evaluation_size=EVALUATION_SIZE,
    max_length=MAX_LENGTH,
    check_teacher=lambda spec, where, lists: known_teacher(spec, where=where, lists=lists),
    check_source=spec_of,
    check_engine=check_spec,
    check_composition=Composition,
    check_recipe=lambda file, change: read_recipe(file, {**change, **_PLACES}, VerifierRecipe),
    check_generator=lambda file, change: read_recipe(file, {**change, **_PLACES}, GeneratorRecipe),
)


def build_plans(manifest: Manifest, datasets: Path, teachers: Callable[..., Teachers] = known_teacher) -> list[Build]:
    """The builds of a manifest; ``teachers`` makes those of their specs, as `known_teacher`."""
    beside = manifest.path.parent
    allowance = manifest.allowance.only([prompt.role for prompt in PROMPTS])
    return [
        Build(
            benchmark=entry.benchmark,
            source=str(beside / entry.input) if (beside / entry.input).exists() else entry.input,
            split=entry.split,
            output=datasets,
            teacher=teachers(entry.teacher, allowance=allowance, lists=beside),
            version=manifest.version,
            seed=manifest.seed,
            limit=entry.limit,
            keep_rejects=entry.on_error == "keep",
            evaluation_size=manifest.evaluation_size,
            evaluation_passages=manifest.evaluation_passages or PASSAGES,
            sha256=entry.sha256,
            keep_work=True,
            min_confidence=entry.min_confidence,
            published=entry.published,
        )
        for entry in manifest.builds
    ]


def foreseen_trainings(manifest: Manifest) -> Iterator[Foreseen]:
    """What the recipes of all adapters say, before any is trained."""
    if (own := manifest.generator) is not None:
        change = {**own.change, "dataset": "-", "output": "-"}
        of = read_recipe(own.recipe, change, GeneratorRecipe)
        yield Foreseen(GENERATOR, "", of.base_model, of.filters.rows, of.epochs)
    named = [("adapter", "", manifest.adapter)] if manifest.adapter is not None else []
    blocks = manifest.blocks.items()
    named += [(part, name, one) for part, b in blocks for name, one in b.adapters.items()]
    for part, name, entry in named:
        recipe = read_recipe(entry.recipe, {**entry.change, "dataset": "-", "output": "-"}, VerifierRecipe)
        yield Foreseen(part, name, recipe.base_model, recipe.filters.rows, recipe.epochs)


def check_plans(manifest: Manifest, output: Path) -> None:
    """Raise ``UserError`` for a folder of another release, and for a bad file that is named."""
    datasets = output / DATASETS
    refuse_strangers(manifest, datasets, read_statistics(datasets / VERIFIED))
    read_audits(manifest)  # a mistake shows before hours of work
    for build in manifest.builds:
        if build.published is not None:
            read_published(build.published)  # likewise
    for entry in manifest.sets.values():
        if entry.refined_from is not None:
            read_refined(entry.refined_from)  # likewise


def read_audits(manifest: Manifest) -> dict[str, Audit]:
    """The scores that a manifest names, by what was judged.

    Raises ``UserError`` for a file that can't be read or holds something else.
    """
    audits = {}
    for entry in manifest.audits:
        scores = read_scores(entry.file, entry.of)
        audits[entry.of] = Audit(entry.file.name, sha256_of(entry.file), scores)
    return audits


def steps_plan(manifest: Manifest, name: str, output: Path, workers: int) -> StepsBuild:
    """A verifier set of a manifest: its own, or that of a block, by the part that makes it."""
    entry = manifest.sets[name]
    home = output if name == OWN_SET else output / BLOCKS / name
    return StepsBuild(
        verified=output / DATASETS,
        output=home / DATASETS,
        composition=Composition(**entry.composition),
        test_share=entry.test_share,
        test_split=entry.test_split,
        prompt_set=entry.prompt_set,
        version=manifest.version,
        seed=manifest.seed,
        workers=workers,
        max_length=entry.max_length,
        pool=entry.pool,
        refined=entry.refined_from,
        unverifiable=entry.unverifiable,
    )
