"""The training rows of a generator, rendered from the steps of a safe-verifier-steps set.

There are two tasks, rendered by the function that builds the loop's requests to a generator. ``next`` asks for the
next step of an ideal trajectory, half of the time with the guidance on the previous step. ``rewrite`` asks to rewrite
a rejected step by its verdict. The completion of both is the step of that number in the ideal trajectory.

Source: ours (`safe-stepwise build_verifier_steps`), licence as its card says. One row::

    {"id": "5c0e...", "prompt": [{"role": "system", "content": "..."}, ...], "completion":
     [{"role": "assistant", "content": "Step 1: According to Passage 2, ... (Attribution)"}]}

Quirk: a set's passages are whole texts, so a verdict quotes a whole passage as evidence, not a sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from safe_stepwise.engines.base import conversation
from safe_stepwise.methods.generator import generator_request, prompt_digest
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.records import EVIDENCE_FIRST, Feedback, Passage, identity
from safe_stepwise.steps import StepError, parse_step, successions
from safe_stepwise.store.codec import passage_of
from safe_stepwise.taxonomy import CORRECT
from trainers.config import Filters, GeneratorFilters, GeneratorRecipe
from trainers.rows.base import BadRow, DatasetSource, Row, RowKind, kind_of
from trainers.rows.verifier import LABEL_COLUMNS, read_prompts, read_steps

_COLUMNS = (*LABEL_COLUMNS, *("question", "passages", "previous_steps", "current_step", "diagnosis", "guidance"))


@dataclass(frozen=True)
class _QuestionSteps:
    """A question over certain passages, and the ideal steps that the set has for it."""

    question: str
    passages: tuple[Passage, ...]
    next_steps: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The right step after each sequence of accepted steps."""
    feedback: dict[tuple[str, ...], Feedback] = field(default_factory=dict)
    """The verdict on the last step of each sequence of accepted steps."""


@dataclass(frozen=True)
class GeneratorRows(RowKind):
    """The generator's rows in a shuffled order, rendered by the functions that the loop calls."""

    prompt_set: PromptSet = PAPER
    rendered_by = ""

    @property
    def recorded_prompts(self) -> dict[str, str]:  # type: ignore[override]
        return {"role": "generator", **self.prompt_set.plain}

    def rows(self, dataset: str, split: str, filters: GeneratorFilters) -> tuple[DatasetSource, list[Row]]:
        source, steps = read_steps(dataset, split, Filters(), _COLUMNS)
        rows = {row["id"]: row for row, _ in self._render(steps, filters)}
        return source, sorted(rows.values(), key=lambda row: sha256(row["id"].encode()).digest())

    def questions(self, dataset: str, split: str) -> dict[str, tuple[str, str]]:
        _, steps = read_steps(dataset, split, Filters(), _COLUMNS)
        return {row["id"]: question for row, question in self._render(steps, GeneratorFilters())}

    def check(self, completion: str) -> None:
        try:
            parse_step(completion)
        except StepError as error:
            raise BadRow(f"has a completion that is no step, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return prompt_digest(self.prompt_set)

    def _render(self, steps: list[Row], filters: GeneratorFilters) -> Iterator[tuple[dict[str, Any], tuple[str, str]]]:
        """Render the rows of the tasks; yield each with its question's benchmark and id."""
        by_question, prompt_set = _group_by_question(steps, self.prompt_set), self.prompt_set
        tasks = filters.tasks or ("next", "rewrite")
        if "next" in tasks:
            for (benchmark, question_id, _), question in by_question.items():
                for previous, step in question.next_steps.items():
                    yield _render_row(question, previous, step, prompt_set), (benchmark, question_id)
        if "rewrite" in tasks:
            for row in steps:
                question, previous = by_question[_question_key(row)], tuple(row["previous_steps"])
                if row["error_type"] != CORRECT and previous in question.next_steps:
                    rejected = [(row["current_step"], _read_feedback(row, question, prompt_set))]
                    rendered = _render_row(question, previous, question.next_steps[previous], prompt_set, rejected)
                    yield rendered, (row["benchmark"], row["question_id"])


@kind_of.register
def _(recipe: GeneratorRecipe) -> RowKind:
    prompts = read_prompts(recipe.dataset)
    return GeneratorRows(PromptSet(recipe.prompts or prompts.name, recipe.verdict_order or prompts.verdict_order))


def _group_by_question(rows: list[Row], prompt_set: PromptSet) -> dict[tuple[str, str, str], _QuestionSteps]:
    """Collect the ideal steps of each question by `_question_key`, as twins have other passages."""
    by_question: dict[tuple[str, str, str], _QuestionSteps] = {}
    for row in rows:
        passages = tuple(map(passage_of, row["passages"]))
        question = by_question.setdefault(_question_key(row), _QuestionSteps(row["question"], passages))
        previous, is_right = tuple(row["previous_steps"]), row["error_type"] == CORRECT
        question.next_steps.update(successions(previous, row["current_step"] if is_right else None))
        if is_right:
            question.feedback[(*previous, row["current_step"])] = _read_feedback(row, question, prompt_set)
    return by_question


def _question_key(row: Row) -> tuple[str, str, str]:
    passages = [[passage["title"], passage["text"]] for passage in row["passages"]]
    return row["benchmark"], row["question_id"], identity(passages)


def _read_feedback(row: Row, question: _QuestionSteps, prompt_set: PromptSet) -> Feedback:
    """Return the set's verdict on a step, in the form that the prompts request."""
    verdict = Feedback(row["error_type"], row["diagnosis"], row["guidance"])
    if prompt_set.verdict_order != EVIDENCE_FIRST:
        return verdict
    previous = [parse_step(step) for step in row["previous_steps"]]
    return with_evidence(verdict, question.question, question.passages, previous, parse_step(row["current_step"]))


def _render_row(
    question: _QuestionSteps,
    previous: tuple[str, ...],
    step: str,
    prompt_set: PromptSet,
    rejected: Sequence[tuple[str, Feedback]] = (),
) -> dict[str, Any]:
    """Render a training row as the loop would send it; ``rejected`` are steps with the verdicts on them."""
    texts = [passage.text for passage in question.passages]
    id_ = identity([question.question, texts, *previous, step, *rejected])[:32]
    # Half of the rows have no guidance, as a loop without a verifier gives none.
    guidance = question.feedback.get(previous) if int(id_[0], 16) % 2 else None
    steps = [parse_step(text) for text in previous]
    request = generator_request(question.question, question.passages, steps, guidance, rejected, prompt_set=prompt_set)
    return {"id": id_, **conversation(request, step)}
