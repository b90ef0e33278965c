"""Reword rows made from annotations, with a model, and accept a rewording only if its meaning is the same.

One request has a row's step, diagnosis and guidance. The rewording is accepted if it names the same passages, steps,
numbers and names, if the checker finds the same label in it after the same steps and beside the same passages, and if
no remark gives more away. Else the row stays unchanged, and the reason is counted. Replies are in the response cache,
so a run that was killed repeats no request and ends in the same bytes.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from builders.steps import replies
from builders.steps.contexts import StepSource
from builders.steps.remarks import REVEALS, check_verdict, names_answer
from builders.steps.rows import ReplyStep, StepRefused, StepRow, check_row, question_key
from builders.steps.values import numbers_in, occurs_in_any, values_in
from builders.verified.questions import VerifiedQuestion
from builders.verified.teachers.llm import LLMTeachers
from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods.scene import Scene
from safe_stepwise.records import Feedback, Passage
from safe_stepwise.steps import format_step
from safe_stepwise.store import event_loop, progress
from safe_stepwise.store.names import REFINED, REQUEST_FAILED
from safe_stepwise.taxonomy import ENTRIES

REWRITE = prompts.load("steps/rewrite")

CONTEXT_CHANGED = "surroundings were changed"
GENERATED_STEP = "a step that a generator took"
UNCHANGED = "nothing was reworded"

_CITATION = re.compile(r"\b(passage|step)s? (\d{1,9}(?:(?:,| and|, and) \d{1,9})*)", re.IGNORECASE)
_MAX_GROWTH_FACTOR, _EXTRA_CHARS = 2, 120
"""A rewording may have this multiple of the original's characters, plus this number of characters."""


class Rewriter(replies.ModelAsker):
    """Rewords rows with a model."""

    @property
    def name(self) -> str:
        """The value of the ``teacher`` column of reworded rows: the model and the prompt."""
        return f"annotations, reworded by {self.teachers.engine.name} prompts {REWRITE.digest[:12]}"

    def reword(
        self, chosen: Sequence[StepRow], checkers: Mapping[str, Checker]
    ) -> tuple[list[StepRow], dict[str, Any]]:
        """Reword the chosen rows if possible; return all, and counts; raise ``UserError`` if every request failed."""
        results = event_loop.wait_for(self._reword_all(chosen, checkers))
        ids = {row.id for row in chosen}
        rows, unchanged = [], Counter[str]()
        for row, result in zip(chosen, results, strict=True):
            if isinstance(result, StepRow) and result.id != row.id and result.id in ids:
                result = "another row says the same"
            if isinstance(result, StepRow):
                ids.add(result.id)
                rows.append(result)
            else:
                unchanged[result.partition(":")[0]] += 1
                rows.append(row)
        requested = [result for result in results if result not in (GENERATED_STEP, CONTEXT_CHANGED)]
        failures = [reason for reason in requested if isinstance(reason, str) and reason.startswith(REQUEST_FAILED)]
        if failures and len(failures) == len(requested):
            raise UserError(
                f"{self.teachers.engine.name}: no row could be reworded, and nothing was published; "
                f"the last: {failures[-1].rstrip('.')}; mend that and run the same command again"
            )
        numbers = {
            "rows": len(rows),
            "reworded": len(rows) - unchanged.total(),
            "kept": dict(sorted(unchanged.items())),
        }
        return rows, {"teacher": self.name, "simulated": self.simulated, **numbers}

    async def _reword_all(self, chosen: Sequence[StepRow], checkers: Mapping[str, Checker]) -> list[StepRow | str]:
        results: dict[int, StepRow | str] = {}
        with progress.bar(total=len(chosen), unit="row", desc="rewording", delay=1) as bar:

            async def reword_row(number: int) -> None:
                row = chosen[number]
                results[number] = await self._reword_row(row, checkers.get(row.question.id))
                bar.update()
                bar.set_postfix_str(render_requests(self.client.accounts.values()), refresh=False)

            await event_loop.for_each(range(len(chosen)), reword_row, self.client.in_flight)
        return [results[number] for number in range(len(chosen))]

    async def _reword_row(self, row: StepRow, checker: Checker | None) -> StepRow | str:
        """Reword a row; return the reason instead if it has to stay unchanged."""
        if row.origin == REFINED:
            return GENERATED_STEP
        if checker is None or row.question != checker.question or row.feedback.query is not None:
            return CONTEXT_CHANGED
        try:
            # The reply may repeat the texts to reword, so only the question counts as quoted.
            wording = await self.ask_model(rewriting_request(row), replies.read_step_reply, row.question.question)
            return check_rewording(row, checker, wording, self.name)
        except StepRefused as error:
            return str(error)


def resolve_rewriter(teachers: object, spec: str) -> Rewriter:
    """Return the rewriter of the teachers; raise ``UserError`` if ``spec``, their spec, names no model."""
    if not isinstance(teachers, LLMTeachers) or spec.partition(":")[0] == "symbolic":
        raise UserError(f"--rewrite {spec}: rewords nothing; name a model, as openai:MODEL@http://HOST:8000/v1")
    return Rewriter(teachers)


def checkers_of(verified: Iterable[VerifiedQuestion], seed: int, chosen: Sequence[StepRow]) -> dict[str, Checker]:
    """Make the checkers of the rows' questions, by question id; if benchmarks share an id, the last one wins."""
    keys = {row.question_key for row in chosen}
    checkers: dict[str, Checker] = {}
    for row in verified:
        key = question_key(row.question.benchmark, row.question.id)
        if key in keys:
            keys.remove(key)  # a later split that repeats it made no rows
            with suppress(PlanError, ValueError):
                checkers[row.question.id] = StepSource.build(*row.sample(seed)).checker
    return checkers


def rewriting_request(row: StepRow) -> Request:
    """Return the request to reword a row: the texts to reword, the question and the verdict."""
    feedback = row.feedback
    messages = REWRITE.messages(
        question=row.question.question,
        label=feedback.error_type,
        definition=ENTRIES[feedback.error_type].definition,
        step=format_step(row.step),
        diagnosis=feedback.diagnosis,
        guidance=feedback.guidance,
    )
    return REWRITE.request(messages, Scene(row.question, previous=row.previous, step=row.step))


def check_rewording(row: StepRow, checker: Checker, wording: ReplyStep, teacher: str) -> StepRow:
    """Return the reworded row; raise `StepRefused` if its meaning differs, or nothing is reworded."""
    old, label, question = row.feedback, row.feedback.error_type, row.question
    step = replies.as_step(wording.step, row.step.number)
    if step.kind != row.step.kind:
        raise StepRefused(f"the step is of another kind: {step.kind}")
    if (step.text, wording.diagnosis, wording.guidance) == (row.step.text, old.diagnosis, old.guidance):
        raise StepRefused(UNCHANGED)
    _check_same("step", row.step.text, step.text)
    for source, target in ((row.step.text, step.text), (step.text, row.step.text)):
        for value in values_in(source):
            if not occurs_in_any(value, [Passage("", (target,))]):
                raise StepRefused(f"the step has other names: {value[:80]}")
    _check_remark("diagnosis", old.diagnosis, wording.diagnosis, row)
    _check_remark("guidance", old.guidance, wording.guidance, row)
    check_verdict(checker, row.previous, step, label, wording, len(question.passages))
    if names_answer(question, (*row.previous, step), wording.guidance):
        raise StepRefused(REVEALS)
    new_row = replace(row, step=step, feedback=Feedback(label, wording.diagnosis, wording.guidance), teacher=teacher)
    try:
        check_row(new_row)
    except ValueError as error:
        raise StepRefused(f"not a valid row: {replies.safe_line(str(error))}") from None
    return new_row


def _check_remark(label: str, old: str, new: str, row: StepRow) -> None:
    _check_same(label, old, new)
    context = Passage("", (old, row.step.text, row.question.question))
    for value in values_in(new):
        if not occurs_in_any(value, [context]):
            raise StepRefused(f"the {label} names what it did not: {value[:80]}")


def _check_same(label: str, old: str, new: str) -> None:
    """Raise `StepRefused` unless both name the same passages, steps and numbers."""
    if citations_in(old) != citations_in(new):
        raise StepRefused(f"the {label} names other passages or steps")
    if numbers_in(old) != numbers_in(new):
        raise StepRefused(f"the {label} has other numbers")
    if len(new) > _MAX_GROWTH_FACTOR * len(old) + _EXTRA_CHARS:
        raise StepRefused(f"the {label} is much longer")


def citations_in(text: str) -> frozenset[tuple[str, int]]:
    """Return the passages and steps that a text cites, as (noun, number)."""
    matches = _CITATION.findall(text)
    return frozenset((noun.lower(), int(n)) for noun, numbers in matches for n in re.findall(r"\d+", numbers))
