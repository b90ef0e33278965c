"""What makes the verifier sets of a release: its own, those of its blocks; no command itself."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from builders.steps.build import build
from builders.steps.chunks import Maker
from builders.steps.collect import StepsBuild
from builders.steps.first import read_first
from builders.steps.model import INJECT, TRAJECTORY, known_maker
from builders.steps.statistics import counts, summary
from builders.verified.teachers import Teachers
from cards.datasets import verifier_steps as card
from releases.manifest import OWN_SET, Manifest
from releases.parts import Made, Part
from releases.planning import no_refined
from releases.refining import PART as REFINEMENT
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import STEPS
from scripts.asking import Asking
from scripts.cli import warn
from scripts.release_plans import read_audits, steps_plan
from scripts.release_refinement import found_in, refinement


@dataclass(frozen=True, slots=True)
class VerifierSet:
    """A verifier set of a manifest, by the name of the part that makes it."""

    manifest: Manifest
    name: str
    plan: StepsBuild
    maker: Maker

    @property
    def follows(self) -> str:
        """A part without which it would be another: what finds the refined rows of the own set."""
        own, entry = self.manifest.verifier_steps, self.manifest.sets[self.name]
        mined = own is not None and own.refinement is not None
        return REFINEMENT if mined and (self.name == OWN_SET or entry.rows_of) else ""

    @property
    def part(self) -> Part:
        """What makes it."""
        return Part(self.name, self._make, self._check, self.follows)

    def _check(self) -> None:
        if unmined := no_refined(self.manifest, self.name):
            raise UserError(f"{self.manifest.path}: {unmined}")
        self.maker.check()

    def _make(self) -> Made:
        plan, own = self.plan, self.name == OWN_SET  # which the audits are of
        if self.manifest.sets[self.name].rows_of:
            plan = replace(plan, **read_first(str(plan.verified)).terms)
        audit = read_audits(self.manifest).get(STEPS) if own else None
        made = build(plan, self.maker, partial(card, audit=audit), warn)
        counted = "verifier-steps" if own else f"verifier-steps-{self.name}"
        return Made(summary(plan.output, made), {counted: counts(made)})


def sets(
    manifest: Manifest,
    output: Path,
    teachers: Callable[..., Teachers],
    asking: Asking,
    skip: Collection[str],
    workers: int,
) -> Iterator[tuple[Part, Maker]]:
    """The parts of every verifier set, with who makes its steps; refinement before its own.

    ``teachers`` makes those of a spec, ``skip`` are parts that are not made.
    """
    allowance = manifest.allowance.only([TRAJECTORY.role, INJECT.role])
    for name, entry in manifest.sets.items():
        teacher = teachers(entry.teacher, allowance=allowance)
        plan = steps_plan(manifest, name, output, workers)
        prompts, unverifiable = plan.prompt_set.name, entry.unverifiable
        maker = known_maker(teacher, manifest.seed, unverifiable=unverifiable, prompts=prompts)
        if entry.refinement is not None:
            build_set = partial(build, maker=maker, card=card, warn=warn)
            mining = refinement(manifest, entry.refinement, plan, build_set, output, asking)
            yield mining, maker
            if mining.name not in skip:
                plan = replace(plan, refined=found_in(output))
        yield VerifierSet(manifest, name, plan, maker).part, maker
