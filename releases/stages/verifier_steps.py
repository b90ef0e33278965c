"""The stages that build the verifier sets of a release and its blocks, and mine hard cases for them (refinement).

A *verifier set* has labelled steps, from which a verifier learns. Each round of refinement trains a verifier, mines
the steps on which it errs, and adds them to the next round's set: SAFE v1's cycle of train, diagnose and augment
(section 3.3). The release's adapter is trained after the last round. A round's folder has its set, its adapter and
the mined rows; complete ones are not made again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from builders.benchmarks import expected_cost
from builders.steps import chunks, earlier_build, refinement, statistics
from builders.steps.build import StepsBuild, build
from builders.steps.model import INJECT, TRAJECTORY, resolve_maker
from builders.steps.refined import REFINED, STATISTICS, join_refined
from builders.steps.refinement import ANNOTATIONS, refine
from builders.verified.teachers.choice import resolve_teacher
from builders.work.publishing import SingleCard
from cards.datasets import verifier_steps as card
from releases import stage
from releases.manifest import OWN_ADAPTER, OWN_SET, REFINEMENT, Manifest, RefinementEntry, StepsEntry
from releases.stages.datasets import open_teachers, read_audits
from releases.stages.training import AdapterStage
from safe_stepwise.commands.options import copy_into
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import GENERATE, VERIFY
from safe_stepwise.open import Opener
from safe_stepwise.prompts import roles_of
from safe_stepwise.records import canonical_json, identity
from safe_stepwise.store import boundary, names, progress
from safe_stepwise.store.files import sha256_of, write_atomically
from safe_stepwise.store.parquet import labeled_files
from trainers.config import CHANGEABLE
from trainers.run import train

_LOOP = (*GENERATE, *VERIFY)
_PROMPTS = ("steps/trajectory", "steps/inject", *_LOOP)
"""The prompts of a round's requests."""
_IDENTITY, _SET, _MINED = "begun.json", "set", "mined"
"""The file with the digests of everything that rounds depend on; a round's folders with its set and its mined rows."""


@dataclass(frozen=True)
class VerifierSetStage(stage.Stage[Manifest]):
    """Builds the verifier set of the release or of a block; ``name`` is the part's name."""

    @classmethod
    def from_manifest(cls, release: stage.Release[Any]) -> "Iterator[VerifierSetStage]":
        """Yield the release's set, and that of each block that has one."""
        yield from (cls(release, name) for name in release.manifest.sets)

    @property
    def entry(self) -> StepsEntry:
        return self.release.manifest.sets[self.name]

    @property
    def needs(self) -> list[str]:
        is_mined = self.entry.refinement is not None and not self.release.options.skip_training
        return [names.DATASETS, *([REFINEMENT] if is_mined else []), *([OWN_SET] if self.entry.rows_of else [])]

    @property
    def remade_after(self) -> str:
        steps = self.release.manifest.verifier_steps
        is_mined = steps is not None and steps.refinement is not None
        return REFINEMENT if is_mined and (self.name == OWN_SET or self.entry.rows_of) else ""

    @cached_property
    def maker(self) -> chunks.Maker:
        entry, manifest = self.entry, self.release.manifest
        allowance = manifest.allowance.restrict([TRAJECTORY.role, INJECT.role])
        teacher = open_teachers(self.release, entry.teacher, allowance)
        maker = resolve_maker(
            teacher,
            manifest.seed,
            unverifiable=entry.unverifiable,
            prompts=entry.prompt_set.name,
            planners=entry.planners,
        )
        self.release.annotators.append(maker)
        return maker

    @property
    def plan(self) -> StepsBuild:
        """The plan of the set's build, without mined rows."""
        entry, release = self.entry, self.release
        home = release.output if self.name == OWN_SET else release.output / names.BLOCKS / self.name
        return copy_into(
            StepsBuild,
            entry,
            verified=release.datasets,
            output=home / names.DATASETS,
            test_share=entry.share_of_test,
            version=release.manifest.version,
            seed=release.manifest.seed,
            workers=release.options.workers,
            refined=entry.refined_from,
        )

    def build(self, plan: StepsBuild, render_card: SingleCard = card) -> statistics.Record:
        """Build a set by a plan, the stage's plan or that of a round of refinement; return its record."""
        return build(plan, self.maker, render_card, progress.note)

    def validate(self) -> None:
        key = OWN_SET if self.name == OWN_SET else f"blocks.{self.name}.{OWN_SET}"
        resolve_teacher(self.entry.teacher, option=f"{key}.teacher", lists=None)

    def check(self) -> None:
        for fault in self.missing():
            raise UserError(f"{self.release.file}: {fault}")
        self.maker.check()

    def price(self, forecast: stage.Forecast) -> Iterator[stage.CostEstimate]:
        entry = self.entry
        if entry.teacher == "annotations":
            yield stage.CostEstimate("verifier set", entry.rows)
            return
        benchmarks = sorted({build.benchmark for build in self.release.manifest.builds})
        questions = dict.fromkeys(benchmarks, (entry.questions or entry.rows) // len(benchmarks))
        questions |= {name: share.questions for name, share in (entry.per_benchmark or {}).items()}
        costs = [
            stage.price_rows(name, entry.pool or number, expected_cost(name, "verifier_steps"))
            for name, number in questions.items()
        ]
        yield stage.add_costs("verifier set", costs, entry.rows)

    def missing(self) -> list[str]:
        entry, is_own = self.entry, self.name == OWN_SET
        if not entry.refined or entry.refined_from or entry.refinement:
            return []
        place = OWN_SET if is_own else f"blocks.{self.name}.{OWN_SET}"
        mend = ", or say with refinement how to mine them" if is_own else ""
        return [f"{place}.refined: {entry.refined} rows come from no file; name it as refined_from{mend}"]

    def make(self) -> stage.StageResult:
        plan, is_own = self.plan, self.name == OWN_SET  # audits are of the release's set
        if self.entry.refinement is not None and not self.release.options.skip_training:
            plan = replace(plan, refined=self.release.output / names.REPORT / REFINEMENT / REFINED)
        if self.entry.rows_of:
            plan = replace(plan, **earlier_build.read_earlier_build(str(plan.verified)).plan_options)
        audit = read_audits(self.release.manifest).get(names.STEPS) if is_own else None
        record = self.build(plan, partial(card, audit=audit))
        key = "verifier-steps" if is_own else f"verifier-steps-{self.name}"
        return stage.StageResult(statistics.summary(plan.output, record), {key: statistics.counts(record)})


@dataclass(frozen=True)
class RefinementStage(stage.Stage[Manifest]):
    """The rounds that mine refined rows for the release's verifier set."""

    trains = True

    @classmethod
    def from_manifest(cls, release: stage.Release[Any]) -> "Iterator[RefinementStage]":
        """Yield the stage if the release's verifier set has ``refinement``."""
        steps = release.manifest.verifier_steps
        if steps is not None and steps.refinement is not None:
            yield cls(release, REFINEMENT)

    needs = (names.DATASETS,)

    @property
    def entry(self) -> RefinementEntry:
        steps = self.release.manifest.verifier_steps
        assert steps is not None
        assert steps.refinement is not None
        return steps.refinement

    @property
    def verifier_set(self) -> VerifierSetStage:
        return VerifierSetStage(self.release, OWN_SET)

    def validate(self) -> None:
        """Raise ``UserError`` for an unknown player, and for a verifier that no round trains."""
        entry, place = self.entry, f"{OWN_SET}.{REFINEMENT}"
        for role, spec in (("generator", entry.generator), ("verifier", entry.verifier)):
            stage.check_player(spec, f"{place}.{role}", (OWN_ADAPTER,))
        resolve_teacher(entry.teacher, option=f"{place}.teacher", lists=None)
        if OWN_ADAPTER not in entry.verifier and not entry.verifier.startswith(("symbolic", "mock")):
            raise UserError(
                f"{place}.verifier: {entry.verifier} is not what a round trains; write {OWN_ADAPTER} "
                f"for that, as in vllm:BASE+{OWN_ADAPTER}"
            )

    def check(self) -> None:
        self._adapter(self.release.output).check()

    def price(self, forecast: stage.Forecast) -> Iterator[stage.CostEstimate]:
        manifest, entry, steps = self.release.manifest, self.entry, self.verifier_set.entry
        builds = zip(manifest.builds, forecast.build_rows, strict=True)
        train_rows = sum(min(rows, steps.pool or rows) for build, rows in builds if build.split == names.TRAIN)
        questions = min(train_rows, entry.limit or train_rows) * entry.rounds
        (training,) = AdapterStage.of_release(self.release).price(forecast)
        yield stage.CostEstimate(
            "refinement: train", training.rows * entry.rounds, trained=training.trained * entry.rounds
        )
        loop = forecast.expectations["evaluation"]["safe"]
        yield stage.price_engine(entry.generator, "refinement: run the loop", questions, loop)
        if entry.teacher != ANNOTATIONS:
            relabel = forecast.expectations["refinement"]["relabel"]
            yield stage.price_engine(entry.teacher, "refinement: relabel", entry.rows * entry.rounds, relabel)

    def make(self) -> stage.StageResult:
        """Make the rounds; raise ``UserError`` if an earlier run began them with, for example, another manifest."""
        self._check_identity()
        steps, summaries, mined, joined = self.verifier_set, list[str](), list[Path](), None
        for number in range(1, self.entry.rounds + 1):
            folder = self._work / f"round-{number}"
            if not (folder / _SET / names.VERIFIER_STEPS / names.STEPS_RECORD).is_file():
                file = joined and joined / REFINED  # the first round has none
                composition = steps.plan.composition if file else replace(steps.plan.composition, refined=0)
                steps.build(replace(steps.plan, output=folder / _SET, composition=composition, refined=file))
            train(self._adapter(folder).recipe, resume=True, warn=progress.note)
            summary = "mined by an earlier run"
            if not (folder / _MINED / STATISTICS).is_file():
                summary = self._mine_cases(folder)
            summaries.append(f"refinement, round {number}: {summary}")
            mined.append(folder / _MINED)
            joined = folder / "joined"
            join_refined(mined, joined)
        report = self.release.output / names.REPORT / REFINEMENT
        rows = join_refined(mined, report)
        text = "\n\n".join([*summaries, f"{report}: {rows:,} refined rows"])
        return stage.StageResult(text, {REFINEMENT: {"rounds": self.entry.rounds, "rows": rows}})

    @property
    def _work(self) -> Path:
        return self.release.output / names.WORK / REFINEMENT

    def _adapter(self, folder: Path) -> AdapterStage:
        """Return the training of a round's adapter, on the round's set, without Missing Evidence, as the loop is."""
        adapter = AdapterStage.of_release(self.release)
        entry = replace(adapter.entry, change={**adapter.entry.change, "incomplete_evidence": False})
        return replace(adapter, entry=entry, home=folder, steps=folder / _SET / names.VERIFIER_STEPS)

    def _mine_cases(self, folder: Path) -> str:
        """Mine a round's hard cases from the questions that steps are made from; return the summary."""
        entry, plan, manifest = self.entry, self.verifier_set.plan, self.release.manifest
        limit = entry.limit
        if limit is None and plan.pool is not None:
            limit = plan.pool * len({build.benchmark for build in manifest.builds if build.split == names.TRAIN})
        places = (plan.verified, folder / _MINED)
        plan_refinement = refinement.Refinement(*places, entry.rows, limit, version=plan.version, seed=plan.seed)
        specs = [entry.generator, entry.verifier.replace(OWN_ADAPTER, str(folder / names.ADAPTER))]
        specs += [entry.teacher] if entry.teacher != ANNOTATIONS else []
        options = replace(self.release.options, allowance=manifest.allowance.restrict(roles_of(_LOOP)))
        with options.replies() as cache:
            clients = [options.client(engine, cache) for engine in map(Opener(options.timeout), specs)]
            mined = refine(plan_refinement, clients[0], clients[1], clients[2] if clients[2:] else None)
        return "\n\n" + refinement.summary(plan_refinement, mined)

    def _check_identity(self) -> None:
        """Write the digests of what rounds are made from; raise ``UserError`` if an earlier run wrote others."""
        file, manifest = self._work / _IDENTITY, self.release.manifest
        recipe = boundary.plain(self._adapter(self.release.output).recipe)
        files = [file for split in labeled_files(self.release.datasets / names.VERIFIED).values() for file in split]
        allowance = manifest.allowance.restrict(roles_of(_PROMPTS)).plain
        current = {
            "manifest": identity([manifest.verifier_steps, manifest.seed, manifest.version, allowance]),
            "recipe": identity({key: recipe[key] for key in recipe if key not in (*CHANGEABLE, "dataset")}),
            "set of questions": identity([sha256_of(file) for file in files]),
        }
        if not file.is_file():
            self._work.mkdir(parents=True, exist_ok=True)
            write_atomically(file, canonical_json(current).encode())
            return
        recorded = boundary.read_object(file)
        for key, digest in current.items():
            if recorded.get(key) != digest:
                raise UserError(
                    f"{self._work}: was begun with another {key}; use that one, choose another --output, "
                    "or delete that folder, and what was trained there with it"
                )
