"""Make the step-level verifier set from verified questions."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.steps import earlier_build, rewriting
from builders.steps.build import TEST_SHARE, StepsBuild, build
from builders.steps.composition import Composition
from builders.steps.model import INJECT, TRAJECTORY, resolve_maker
from builders.steps.statistics import summary
from builders.verified.teachers.choice import ANNOTATIONS, client_of, resolve_teacher, spending
from cards.datasets import verifier_steps as card
from safe_stepwise.commands.options import check_exclusive, copy_into, is_set
from safe_stepwise.commands.values import Count, Share, Version
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PAPER, EvidenceChoice, PromptSet, PromptsName
from safe_stepwise.records import PlannerChoice, VerdictOrder
from scripts.cli import ModelOptions, command, cores, note, run

COMPOSED = "questions rows_per_question ideal test_share test_split benchmarks pool unverifiable seed".split()
"""The options that compose a set, and so don't go with ``--rows-of``."""


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    verified: Path
    teacher: str
    output: Path
    seed: int | None = None
    version: Version = "v0.1.0"
    workers: Count = field(default_factory=cores)
    rows: Count | None = None
    rows_of: str | None = None
    questions: Count | None = None
    rows_per_question: Count | None = None
    ideal: Share | None = None
    test_share: Share | None = None
    test_split: str | None = None
    benchmarks: tuple[str, ...] = ()
    refined: Path | None = None
    unverifiable: bool = False
    pool: Count | None = None
    prompts: PromptsName = PAPER.name
    verdict_order: VerdictOrder = PAPER.verdict_order
    verifier_evidence: EvidenceChoice = PAPER.verifier_evidence
    planners: PlannerChoice = "structure"
    rewrite: str | None = None

    def __post_init__(self) -> None:
        check_exclusive(self, "rows", "rows_of", required=True)
        check_exclusive(self, "test_share", "test_split")
        if self.unverifiable and self.refined:
            raise UserError("--refined rows are of verified questions; leave it out, or --unverifiable")
        if self.rewrite is not None and self.teacher != ANNOTATIONS:
            raise UserError(
                f"--rewrite rewords what the annotations say, not a model; leave it out, or --teacher {ANNOTATIONS}"
            )

    @property
    def plan(self) -> StepsBuild:
        """The plan of the build: rows of a composition, or the rows of an earlier build."""
        terms = self._compose_terms() if self.rows_of is None else self._copy_terms(self.rows_of)
        prompt_set = PromptSet(self.prompts, self.verdict_order, self.verifier_evidence)
        return copy_into(StepsBuild, self, prompt_set=prompt_set, **terms)

    def _compose_terms(self) -> dict[str, Any]:
        limits = {name: value for name in ("ideal", "rows_per_question") if (value := getattr(self, name)) is not None}
        refined = None if self.refined else 0
        return {
            "composition": Composition(self.rows or 0, self.questions, refined=refined, **limits),
            "seed": self.seed or 0,
            "test_share": TEST_SHARE if self.test_share is None else self.test_share,
            "exact": False,
        }

    def _copy_terms(self, steps: str) -> dict[str, Any]:
        for name in COMPOSED:
            if is_set(getattr(self, name)):
                option = name.removesuffix("s") if name == "benchmarks" else name
                raise UserError(
                    f"--rows-of takes all but the teacher from the first build; leave out --{option.replace('_', '-')}"
                )
        return {"test_split": None, "pool": None, **earlier_build.read_earlier_build(steps).plan_options}

    def teachers(self, spec: str, **options: Any) -> Any:
        """Return the teachers of a spec; raise ``UserError`` for a bad spec."""
        return resolve_teacher(spec, self.cache, self.in_flight, self.timeout, allowance=self.allowance, **options)


def build_verifier_steps(options: Options) -> None:
    """Build the set and print a summary; raise ``UserError`` for a mistake of the user."""
    plan, teachers = options.plan, options.teachers(options.teacher)
    maker = resolve_maker(
        teachers, plan.seed, unverifiable=plan.unverifiable, prompts=options.prompts, planners=options.planners
    )
    rewriter = None
    if options.rewrite is not None:
        rewriter = rewriting.resolve_rewriter(options.teachers(options.rewrite, option="--rewrite"), options.rewrite)
    client = client_of(rewriter or maker)
    try:
        print(summary(plan.output, build(plan, maker, card, note, rewriter)))
    finally:
        # The account outlives the client; the user gets it even if the build fails.
        if spent := spending(client):
            print(spent)


main = command(
    build_verifier_steps,
    roles=[p.role for p in (TRAJECTORY, INJECT, rewriting.REWRITE)],
    example_roles=[INJECT.role],
    workers=cores(),
)

if __name__ == "__main__":
    run(main)
