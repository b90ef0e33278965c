"""The passage checker as a verifier: it judges steps by what the passages state, without a model or annotations.

``checker`` calls a step `Correct` if nothing is against it: what it can't decide passes. ``checker:strict`` lets pass
only what it has found stated, and calls the rest `Unsupported`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from safe_stepwise.checking.passage_checker import (
    SEARCH,
    SOUND,
    UNDECIDED,
    PassageVerdict,
    judge_by_passages,
    judge_search,
    split_page,
)
from safe_stepwise.engines.base import Completion, Engine, EngineError, Request
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import format_feedback
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import GUIDANCE, ROLE
from safe_stepwise.players.symbolic import is_listed
from safe_stepwise.records import Feedback, Passage, Step
from safe_stepwise.store.code import code_digest
from safe_stepwise.taxonomy import CORRECT

STRICT = "strict"


class CheckerEngine(Engine):
    """The engine of the passage checker; of a request it opens the question, the passages and the steps."""

    simulated = False

    def __init__(self, setting: str = "") -> None:
        if setting not in ("", STRICT):
            raise UserError(f"checker:{setting}: write checker or checker:{STRICT}")
        self.is_strict = setting == STRICT
        self.name = "checker:strict" if self.is_strict else "checker"
        code = code_digest(judge_by_passages.__module__)
        self.identity: Mapping[str, Any] = {"engine": "checker", "strict": self.is_strict, "code": code}

    async def check(self) -> None:
        """Need nothing."""

    async def close(self) -> None:
        """Free nothing."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            return EngineError(f"checker judges steps alone: it has no role {request.role!r}")
        verdict = _judge(scene.question.question, scene.question.passages, scene.previous, scene.step, scene.searches)
        passing = (SOUND, SEARCH, *([] if self.is_strict else [UNDECIDED]))
        label = CORRECT if verdict.label in passing else verdict.label
        label = "Unsupported" if label == UNDECIDED else label
        reason = f"Not decided: {verdict.reason}." if verdict.label == UNDECIDED else f"{verdict.reason}."
        # It is sure of errors that it proves. What it finds stated may still be redundant, or lead nowhere.
        score = 0.0 if request.labels and verdict.label not in (SOUND, SEARCH, UNDECIDED) else None
        if label == CORRECT or not is_listed(request, label):
            feedback = Feedback(CORRECT, reason if verdict.reason else "All is stated.", "")
        else:
            feedback = Feedback(label, reason, GUIDANCE)
        return Completion(format_feedback(feedback), score=score)


@lru_cache(maxsize=4096)
def _judge(
    question: str, passages: tuple[Passage, ...], previous: tuple[Step, ...], step: Step, searches: frozenset[int]
) -> PassageVerdict:
    """Judge a step after those before it that are no errors (cached); an answer, after those alone that are proved."""
    if step.number in searches:
        return judge_search([earlier for earlier in previous if earlier.number in searches], step)
    labels = [_judge(question, passages, previous[:n], earlier, searches).label for n, earlier in enumerate(previous)]
    allowed = (SOUND,) if step.kind == "Final Answer" else (SOUND, UNDECIDED)
    claims = ((label, s) for label, s in zip(labels, previous, strict=True) if s.number not in searches)
    return judge_by_passages(question, _split_pages(passages), [s for label, s in claims if label in allowed], step)


@lru_cache(maxsize=512)
def _split_pages(passages: tuple[Passage, ...]) -> list[Passage]:
    return [split_page(page) for page in passages]
