"""The choices of an evaluation that its systems vary."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from safe_stepwise.commands.values import Commas, Count
from safe_stepwise.methods import limits, prompt_sets, prompting, scene, verifier

PROBED_ROLES = (verifier.ROLE, scene.JUDGE)
"""Roles whose prompts may show examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An evaluation's choices, by options or a release's manifest; where one has several values, a run has each."""

    judge: str | None = None
    limit: Count | None = None
    drop_gold: bool = False
    corpus: Path | None = None
    max_steps: Annotated[Sequence[int], Commas(1)] = ()
    max_retries: Annotated[Sequence[int], Commas()] = ()
    on_exhausted: Annotated[Sequence[str], Commas(names=("accept", "drop"))] = ()
    feedback: Annotated[Sequence[str], Commas(names=limits.FEEDBACK_FORMS)] = ()
    verifier_evidence: Annotated[Sequence[str], Commas(names=prompt_sets.EVIDENCE_CHOICES)] = ()
    iterations: Annotated[Sequence[int], Commas(1)] = ()
    revisions: Annotated[Sequence[int], Commas()] = ()
    samples: Annotated[Sequence[int], Commas(1)] = ()
    sampling: Annotated[Sequence[str], Commas(names=prompting.SAMPLING)] = ()
    evidence: Sequence[bool] = ()
    tries_total: Sequence[bool] = ()
    accepted_diagnosis: Sequence[bool] = ()
    last_rejected: Sequence[bool] = ()
    answer_when_told: Sequence[bool] = ()
    judge_without_question: bool | None = None
    as_published: bool = False
