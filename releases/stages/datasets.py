"""The stages that build the verified benchmarks with their noise labels, and check people's audits of rows.

A *build* verifies one split of a benchmark. An *audit* has the scores of people's judgements of labels or steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from builders.benchmarks import BENCHMARKS, expected_cost
from builders.benchmarks.custom import describe
from builders.steps.refined import read_refined
from builders.verified.build import build, counts, overview
from builders.verified.collect import Build, count, questions, spec_of
from builders.verified.estimate import estimate, is_local
from builders.verified.questions import PASSAGES
from builders.verified.teachers import Teachers
from builders.verified.teachers.adjudicating import ADJUDICATE
from builders.verified.teachers.choice import resolve_teacher
from builders.verified.teachers.llm import PROMPTS, LLMTeachers
from builders.work.publishing import read_statistics
from cards.datasets import CARDS, AuditScores
from evaluators.audit.report import check_rows, read_scores
from releases.manifest import OWN_SET, REFINEMENT, BuildEntry, Manifest
from releases.stage import CostEstimate, Forecast, Release, Stage, StageResult, price_rows
from safe_stepwise.commands.options import copy_into
from safe_stepwise.engines.base import Allowance
from safe_stepwise.errors import at_place, check_choice
from safe_stepwise.store import files, published_labels
from safe_stepwise.store.names import BLOCKS, DATASETS, LABELS, PATH_PROBE, STEPS, VERIFIED, VERIFIER_STEPS


def open_teachers(release: Release[Any], spec: str, allowance: Allowance, **options: Any) -> Teachers:
    """Resolve a spec as `resolve_teacher` does, to teachers that the release closes."""
    teachers = resolve_teacher(spec, **release.options.model_options, allowance=allowance, **options)
    release.annotators.append(teachers)
    return teachers


@dataclass(frozen=True)
class DatasetsStage(Stage[Manifest]):
    """The builds of verified questions that a manifest names."""

    default_name = DATASETS

    @cached_property
    def builds(self) -> list[Build]:
        """The plan of each build, with its teachers."""
        return [self._build(entry) for entry in self.release.manifest.builds]

    def _build(self, entry: BuildEntry) -> Build:
        release, manifest = self.release, self.release.manifest
        folder = release.file.parent
        own = entry.own and describe(str(folder / entry.input), entry.split, replace(entry.own, name=entry.benchmark))
        allowance = manifest.allowance.restrict([prompt.role for prompt in (*PROMPTS, ADJUDICATE)])
        return copy_into(
            Build,
            entry,
            source=str(folder / entry.input) if (folder / entry.input).exists() else entry.input,
            output=release.datasets,
            teacher=open_teachers(release, entry.teacher, allowance, lists=folder, adjudicator=entry.adjudicate),
            version=manifest.version,
            seed=manifest.seed,
            keep_rejects=entry.on_error == "keep",
            evaluation_size=manifest.evaluation_size,
            evaluation_passages=manifest.evaluation_passages or PASSAGES,
            own_benchmark=own,
            keep_work=True,
            **release.options.engine_options,
        )

    def validate(self) -> None:
        folder = self.release.file.parent
        for number, entry in enumerate(self.release.manifest.builds):
            prefix = f"builds[{number}]."
            if entry.own is None:
                check_choice(entry.benchmark, BENCHMARKS, f"{prefix}benchmark")
            if not (folder / entry.input).exists():
                with at_place(f"{prefix}input"):
                    spec_of(entry.benchmark, entry.input)
            resolve_teacher(entry.teacher, option=f"{prefix}teacher", lists=folder, adjudicator=entry.adjudicate)

    def check_inputs(self) -> None:
        """Raise ``UserError`` for the folder of another release, and for a bad file that the manifest names."""
        self._refuse_unnamed()
        manifest = self.release.manifest
        read_audits(manifest)
        for entry in manifest.builds:
            if entry.published is not None:
                published_labels.read_published(entry.published)
        for steps in manifest.sets.values():
            if steps.refined_from is not None:
                read_refined(steps.refined_from)

    def check(self) -> None:
        self.check_inputs()
        for plan in self.builds:
            plan.teacher.check()

    def price(self, forecast: Forecast) -> Iterator[CostEstimate]:
        """Estimate what verifying costs; read available sources to their ends, so that bad rows are found."""
        for number, (entry, plan) in enumerate(zip(self.release.manifest.builds, self.builds, strict=True)):
            is_available = is_local(plan)
            expected = 0 if is_available else self.release.require_expected_rows(f"builds[{number}].input", entry)
            rows = count(plan) if is_available else min(expected, entry.limit or expected)
            forecast.build_rows.append(rows)
            name = f"verify {entry.benchmark} {entry.split}"
            if not isinstance(plan.teacher, LLMTeachers):
                yield CostEstimate(name, rows)
            elif is_available:
                roles = estimate(questions(plan), plan.teacher).values()
                prompt = sum(role.prompt for role in roles)
                calls, reply = sum(role.calls for role in roles), sum(role.completion for role in roles)
                yield CostEstimate(name, rows, calls, prompt, prompt, reply)
            else:
                yield price_rows(name, rows, expected_cost(entry.benchmark, "verification"))

    def missing(self) -> list[str]:
        return [f"{plan.source} is not here" for plan in self.builds if not is_local(plan)]

    def make(self) -> StageResult:
        audit = read_audits(self.release.manifest).get(LABELS)
        cards = {name: partial(card, audit=audit) for name, card in CARDS.items()}
        statistics = [build(plan, cards) for plan in self.builds]
        return StageResult(overview(statistics), counts(statistics))

    def _refuse_unnamed(self) -> None:
        """Raise ``UserError`` for a dataset or block in the folder that the manifest does not name."""
        manifest, datasets = self.release.manifest, self.release.datasets
        build_names = {f"{entry.benchmark} {entry.split}" for entry in manifest.builds}
        present = [f"{record['benchmark']} {record['split']}" for record in read_statistics(datasets / VERIFIED)]
        for entry, name in ((manifest.verifier_steps, VERIFIER_STEPS), (manifest.path_probe, PATH_PROBE)):
            if entry is None and (datasets / name).exists():
                present.append(name)
        blocks = (self.release.output / BLOCKS).glob("*")
        present += [f"{BLOCKS}/{block.name}" for block in blocks if block.name not in manifest.blocks]
        self.release.refuse_unnamed([name for name in present if name not in build_names])


@dataclass(frozen=True)
class AuditsStage(Stage[Manifest]):
    """A check that the audits of a manifest judge rows of this release; the cards of the rows have the scores."""

    default_name = key = "audits"

    @property
    def needs(self) -> list[str]:
        return [DATASETS, *([OWN_SET] if any(audit.of == STEPS for audit in self.release.manifest.audits) else [])]

    remade_after = REFINEMENT

    def make(self) -> StageResult:
        manifest = self.release.manifest
        audits = read_audits(manifest)
        for entry in manifest.audits:
            check_rows(audits[entry.of].scores, entry.file, self.release.datasets)
        lines = [f"audit of {kind}: {a.scores['rows']:,} rows, all of this release" for kind, a in audits.items()]
        return StageResult("\n".join(lines), {f"audit-{kind}": {"sha256": a.sha256} for kind, a in audits.items()})


def read_audits(manifest: Manifest) -> dict[str, AuditScores]:
    """Read the scores of audits, by ``labels`` or ``steps``; raise ``UserError`` for a file of something else."""
    audits: dict[str, AuditScores] = {}
    for entry in manifest.audits:
        scores = read_scores(entry.file, entry.of)  # before the digest, as it raises a clear error for a missing file
        audits[entry.of] = AuditScores(entry.file.name, files.sha256_of(entry.file), scores)
    return audits
