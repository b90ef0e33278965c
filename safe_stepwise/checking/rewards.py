"""Rewards reinforcement learning by the checker: for one step, or for a whole trajectory.

The functions have the signature of TRL's ``reward_funcs``: prompts, completions and the rows' columns by name, a list
each; they return a number from 0 to 1 for each completion. The columns are those of a verified row with its label
(config ``B_labeled`` of the labels). `step_reward` also needs ``previous_steps``, the accepted steps in
the form of `steps`.

Only proved steps pay. The first step that is proved wrong, or breaks the grammar, ends a trajectory. A step on which
the checker abstains pays nothing and ends nothing, so that unreadable text earns no more than an honest mistake. A
trajectory that ends in the right answer, after proved steps that read all needed facts, is worth a half, and the share
of proved steps is the other half. Any other is worth a quarter of that share: no way round the facts pays more. A row
whose label gives no plan has the reward None, which TRL leaves out.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.errors import UserError
from safe_stepwise.records import Step, Triple, canonical_json
from safe_stepwise.steps import StepError, parse_step, read_step
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.thoughts import split_thought
from safe_stepwise.taxonomy import CORRECT

COLUMNS = (
    *("id", "question", "answer", "aliases", "kind", "hops", "passages", "supporting_facts"),
    *("evidence", "decomposition", "reasoning_path", "knowledge_graph"),
)
"""The columns of a row that the checker needs."""
MALFORMED, AFTER_THE_ANSWER = "malformed", "after the answer"
"""Labels of faults that are outside the taxonomy."""
_CACHED_CHECKERS = 256  # so that only the first completion of a group waits for its checker
_STEP = re.compile(r"^(?=[ \t#>*_-]*+step[ \t]*\d+[*_]*+[ \t]*:)", re.IGNORECASE | re.MULTILINE)

_PADDING = 0.5
"""Unread steps for each proved one from which on a trajectory earns no answer."""

Completion = str | Sequence[Mapping[str, Any]]
"""A text, or the turns of a conversation."""
Rewards = list[float | None]


@dataclass(frozen=True, slots=True)
class JudgedTrajectory:
    """The checker's judgement of one trajectory.

    ``labels`` are those of its steps up to the first fault, None if the checker abstained; ``steps`` is the number of
    its steps, ``needed`` the number that its plan takes, less what it read together with another fact.
    """

    labels: tuple[str | None, ...]
    steps: int
    needed: int
    earned: bool
    """Whether it ends in the right answer, with proved steps that read all facts before, no fault and no padding."""

    @property
    def fault(self) -> str:
        """The label of the faulty step that ended it, "" if there is none."""
        last = self.labels[-1] if self.labels else None
        return last if last not in (None, CORRECT) else ""

    @property
    def sound(self) -> int:
        """The number of steps that are proved right."""
        return self.labels.count(CORRECT)

    @property
    def reward(self) -> float:
        """The reward, from 0 to 1; neither padding nor stopping early increases it."""
        share = self.sound / max(self.steps, self.needed)
        return (1 + share) / 2 if self.earned else share / 4


def judge_trajectory(checker: Checker, text: str) -> JudgedTrajectory:
    """Judge a trajectory of steps that each begin a line; text before the first step is skipped.

    >>> from safe_stepwise.records import Passage, Question
    >>> page = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True)
    >>> hop = Triple("Dune Rain", "director", "Ors Velt", 1)
    >>> asked = Question("q", "b", "train", "Who directed Dune Rain?", "Ors Velt", passages=(page,))
    >>> checker = Checker(asked, [hop], [hop])
    >>> judge_trajectory(checker, "Step 1: ####ANSWER: Ors Velt (Final Answer)").fault
    'Wrong Conclusion'
    >>> told = '''Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)
    ... Step 2: From Step 1 it follows that the answer is Ors Velt. (Logical)
    ... Step 3: ####ANSWER: Ors Velt (Final Answer)'''
    >>> judge_trajectory(checker, told).reward
    1.0
    """
    texts = [text_ for text_ in _STEP.split(text)[1:] if text_.strip()]
    labels: list[str | None] = []
    accepted: list[Step] = []
    for text_ in texts:
        label = _label(checker, accepted, text_)
        labels.append(label)
        if label not in (None, CORRECT):
            break
        accepted.append(read_step(text_))
    established = checker.established(accepted)
    together = len(established) - len(set(established.values()))
    conclusions = {step.number for step in accepted if step.kind == "Logical"}
    relied = {*established.values(), *(() if len(checker.plan.items) - 1 in established else conclusions)}
    is_proved = all(labels[number - 1] == CORRECT for number in relied)
    ended = bool(accepted) and accepted[-1].kind == "Final Answer" and len(accepted) == len(texts)
    is_brief = labels.count(None) <= _PADDING * labels.count(CORRECT)
    earned = ended and labels[-1] == CORRECT and is_proved and is_brief
    return JudgedTrajectory(tuple(labels), len(texts), len(checker.plan.items) + 1 - together, earned)


def _label(checker: Checker, accepted: Sequence[Step], text: str) -> str | None:
    """Label a step after the accepted ones; None if nothing is proved."""
    if accepted and accepted[-1].kind == "Final Answer":
        return AFTER_THE_ANSWER
    try:
        step = read_step(text)
    except StepError:
        return MALFORMED
    if step.number != len(accepted) + 1:
        return MALFORMED
    verdict = checker.check(accepted, step)
    return verdict.error_type if verdict else None


def trajectory_reward(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> Rewards:
    """Return `JudgedTrajectory.reward` for each completion; None for a row without a plan.

    Raises ``UserError`` if a column of `COLUMNS` is missing, and for a completion that has no text.
    """
    checkers, log = _checkers(columns, len(completions)), columns.get("log_metric")
    judged = [
        checker and judge_trajectory(checker, _text(completion))
        for checker, completion in zip(checkers, completions, strict=True)
    ]
    _log(log, [label for verdict in judged if verdict for label in verdict.labels])
    return [verdict.reward if verdict else None for verdict in judged]


def step_reward(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    previous_steps: Sequence[Sequence[str]],
    **columns: Any,
) -> Rewards:
    """Return 1 for each completion that is a step proved right, else 0; None for a row without a plan.

    Raises ``UserError`` if a column of `COLUMNS` is missing, or for previous steps that break the grammar.
    """
    checkers, log = _checkers(columns, len(completions)), columns.get("log_metric")
    labels = [
        checker and (_label(checker, _steps(previous), _text(completion)),)
        for checker, completion, previous in zip(checkers, completions, previous_steps, strict=True)
    ]
    _log(log, [labels_[0] for labels_ in labels if labels_])
    return [float(labels_[0] == CORRECT) if labels_ else None for labels_ in labels]


async def async_trajectory_reward(
    prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any
) -> Rewards:
    """Compute `trajectory_reward` in a thread, so that other rewards need not wait."""
    return await asyncio.to_thread(trajectory_reward, prompts, completions, **columns)


async def async_step_reward(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> Rewards:
    """Compute `step_reward` in a thread, so that other rewards need not wait."""
    return await asyncio.to_thread(step_reward, prompts, completions, **columns)


def checker_of(row: Mapping[str, Any]) -> Checker | None:
    """Return the checker (cached) of a row with these `COLUMNS`; None if the row gives no plan."""
    return _checker(canonical_json({name: row[name] for name in COLUMNS}))


@lru_cache(maxsize=_CACHED_CHECKERS)
def _checker(row: str) -> Checker | None:
    content = parse_json(row)
    path, graph = ([Triple(**triple) for triple in content[name]] for name in ("reasoning_path", "knowledge_graph"))
    try:
        return Checker(question_of(content, benchmark="", split=""), path, graph)
    except PlanError:
        return None


def _checkers(columns: Mapping[str, Any], number: int) -> list[Checker | None]:
    if lacking := [name for name in COLUMNS if name not in columns]:
        raise UserError(
            f"the rows have no column {', '.join(lacking)}: train on rows of a config that ends in _labeled "
            "(musique_labeled), and keep all of their columns"
        )
    return [checker_of({name: columns[name][n] for name in COLUMNS}) for n in range(number)]


def _steps(previous: Sequence[str]) -> list[Step]:
    try:
        return [parse_step(step) for step in previous]
    except (StepError, TypeError, AttributeError) as error:
        raise UserError(f"previous_steps holds what is no step, or no list of texts: {error}") from None


def _text(completion: Completion) -> str:
    """Return a completion's text without its thought; content may be a text or a list of parts.

    Raises ``UserError`` for a completion of another form.
    """
    if isinstance(completion, str):
        return split_thought(completion).text
    try:
        contents = [turn.get("content") or "" for turn in completion]
        texts = [content if isinstance(content, str) else "".join(map(_text_of, content)) for content in contents]
    except (TypeError, AttributeError):
        kind = type(completion).__name__
        raise UserError(f"a completion ({kind}) is neither a text nor turns with a content: give either") from None
    return "\n".join(split_thought(text).text for text in texts)


def _text_of(item: Any) -> str:
    """Return the text of a part of a turn's content; "" for a thought or an image."""
    if isinstance(item, str):
        return item
    return str(item.get("text") or "") if str(item.get("type", "text")).endswith("text") else ""


def _log(log_metric: Any, labels: Sequence[str | None]) -> None:
    """Log to TRL the share of steps on which the checker abstained."""
    if log_metric is not None and labels:
        log_metric("checker_abstained", labels.count(None) / len(labels))
