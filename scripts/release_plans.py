"""What a manifest may name, and the builds that it comes to; no command itself."""

from collections.abc import Callable
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.steps.collect import MAX_LENGTH, StepsBuild
from builders.steps.composition import Composition
from builders.steps.refined import read_refined
from builders.verified.collect import EVALUATION_SIZE, Build
from builders.verified.teachers import Teachers
from builders.verified.teachers.choice import known_teacher
from builders.work.publishing import read_statistics
from cards.audit import Audit
from evaluators.audit.release import read_scores
from releases.manifest import Known, Manifest, StepsEntry
from releases.parts import refuse_strangers
from safe_stepwise.open import check_spec
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import DATASETS, VERIFIED
from safe_stepwise.store.published import read_published

KNOWN = Known(
    benchmarks=BENCHMARKS,
    recipes=Path(__file__).parents[1] / "trainers" / "recipes",
    evaluation_size=EVALUATION_SIZE,
    max_length=MAX_LENGTH,
    check_teacher=lambda spec, where, lists: known_teacher(spec, where=where, lists=lists),
    check_engine=check_spec,
    check_composition=Composition,
)


def build_plans(
    manifest: Manifest, datasets: Path, teachers: Callable[..., Teachers] = known_teacher
) -> list[Build]:
    """The builds of a manifest; ``teachers`` makes those of a spec, with lists in a folder."""
    beside = manifest.path.parent
    return [
        Build(
            benchmark=entry.benchmark,
            source=str(beside / entry.input) if (beside / entry.input).exists() else entry.input,
            split=entry.split,
            output=datasets,
            teacher=teachers(entry.teacher, lists=beside),
            version=manifest.version,
            seed=manifest.seed,
            limit=entry.limit,
            keep_rejects=entry.on_error == "keep",
            evaluation_size=manifest.evaluation_size,
            sha256=entry.sha256,
            keep_work=True,
            min_confidence=entry.min_confidence,
            published=entry.published,
        )
        for entry in manifest.builds
    ]


def check_plans(manifest: Manifest, output: Path) -> None:
    """Raise ``UserError`` for a folder of another release, and for a bad file that is named."""
    datasets = output / DATASETS
    refuse_strangers(manifest, datasets, read_statistics(datasets / VERIFIED))
    read_audits(manifest)  # a mistake shows before hours of work
    for build in manifest.builds:
        if build.published is not None:
            read_published(build.published)  # likewise
    entry = manifest.verifier_steps
    if entry is not None and entry.refined_from is not None:
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


def steps_plan(manifest: Manifest, entry: StepsEntry, datasets: Path, workers: int) -> StepsBuild:
    """The verifier set of a manifest."""
    return StepsBuild(
        verified=datasets,
        output=datasets,
        composition=Composition(**entry.composition),
        test_share=entry.test_share,
        version=manifest.version,
        seed=manifest.seed,
        workers=workers,
        max_length=entry.max_length,
        pool=entry.pool,
        refined=entry.refined_from,
    )
