"""What `evaluate_verifier` is asked for, checked as far as nothing need be answered."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.verifier.step_set import Setting
from safe_stepwise.commands.values import Count, Seconds
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Engine
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompt_sets import PromptSet, PromptsName
from safe_stepwise.methods.taught import as_learnt, check_examples, dropped_category
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.records import VerdictOrder
from safe_stepwise.store.names import TEST
from safe_stepwise.taxonomy import Category

IN_FLIGHT = 64


@dataclass(frozen=True, slots=True)
class Options:
    """The command's options; ``steps`` is a folder or a Hub dataset at a revision."""

    steps: str
    verifier: str
    output: Path
    baseline: Sequence[str] = ()
    verified: Path | None = None
    split: str = TEST
    incomplete_evidence: bool = False
    drop_category: Category | None = None
    prompts: PromptsName | None = None
    verdict_order: VerdictOrder | None = None
    limit: Count | None = None
    allowance: Allowance = AS_PROMPTED
    cache: Path | None = None
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    seed: int = 0

    @property
    def specs(self) -> tuple[str, ...]:
        """Of all engines, the verifier first."""
        return (self.verifier, *self.baseline)

    def setting(self, opener: Callable[[str], Engine]) -> Setting:
        """How all are asked.

        Raises ``UserError`` for a spec that can't be read or lacks the annotations that it needs,
        for adapters that learnt other prompts, and for examples that say more than the prompt.
        """
        engines = [self._opened(spec, opener) for spec in self.specs]
        dropped = dropped_category(engines, self.drop_category)
        check_examples(dropped, self.allowance, ROLE)
        learnt = as_learnt(self, engines)
        return Setting(self.incomplete_evidence, dropped, PromptSet.of(learnt.prompts, learnt.verdict_order))

    def _opened(self, spec: str, opener: Callable[[str], Engine]) -> Engine:
        engine = opener(spec)
        if spec.partition(":")[0] == "symbolic" and self.verified is None:
            raise UserError(
                f"{spec} reasons over annotations, which the steps do not hold: add --verified "
                "with the folder that they were made of"
            )
        return engine
