"""The rows a generator is trained on: made of the steps of a safe-verifier-steps set.

Two tasks, each rendered by the function that the loop asks a generator by: the ``next`` step of an ideal trajectory,
half of the time with the guidance on the step before; and the ``rewrite`` of a rejected step by what was said of it.
Both have the right step as completion: what the set's ideal trajectories say at that place.

Source: ours (`safe-stepwise build_verifier_steps`), licence as its card says. One row::

    {"id": "5c0e...", "prompt": [{"role": "system", "content": "..."}, ...], "completion":
     [{"role": "assistant", "content": "Step 1: According to Passage 2, ... (Attribution)"}]}

Quirk: a set's passages are whole texts, so that evidence in a remark is a passage, not a sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from safe_stepwise.methods.generator import generator_request, prompt_digest
from safe_stepwise.methods.prompt_sets import PAPER, PromptSet
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.records import EVIDENCE_FIRST, Feedback, Passage, Step, identity
from safe_stepwise.steps import StepError, parse_step, successions
from safe_stepwise.store.names import STEPS, STEPS_RECORD, VERIFIER_STEPS
from safe_stepwise.taxonomy import CORRECT
from trainers.config import GeneratorFilters, GeneratorRecipe
from trainers.rows.base import BadRow, Kind, Row, Source, find, kind_of, load
from trainers.rows.verifier import prompts_of


@dataclass(frozen=True)
class _Asked:
    """A question with its passages, and all that the set knows of its ideal steps."""

    question: str
    passages: tuple[Passage, ...]
    right: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The step that comes after some accepted ones."""
    advice: dict[tuple[str, ...], Feedback] = field(default_factory=dict)
    """The verdict on the last of some accepted steps."""


@dataclass(frozen=True)
class GeneratorRows(Kind):
    """The rows of a set of prompts, as a draw; they are rendered now, by what the loop sends."""

    prompt_set: PromptSet = PAPER
    rendered_by = ""

    @property
    def recorded_prompts(self) -> dict[str, str]:  # type: ignore[override]
        return {"role": "generator", **self.prompt_set.plain}

    def rows(self, dataset: str, split: str, filters: GeneratorFilters) -> tuple[Source, list[Row]]:
        source, found = _steps(dataset, split)
        rows = {row["id"]: row for row, _ in self._made(found, filters)}
        return source, sorted(rows.values(), key=lambda row: sha256(row["id"].encode()).digest())

    def questions(self, dataset: str, split: str) -> dict[str, tuple[str, str]]:
        _, found = _steps(dataset, split)
        return {row["id"]: question for row, question in self._made(found, GeneratorFilters())}

    def check(self, completion: str) -> None:
        try:
            parse_step(completion)
        except StepError as error:
            raise BadRow(f"has a completion that is no step, or is cut short ({error})") from None

    def prompt_digest(self) -> str:
        return prompt_digest(self.prompt_set)

    def _made(self, found: list[Row], filters: GeneratorFilters) -> Iterator[tuple[dict[str, Any], tuple[str, str]]]:
        """Rows, each with its question's benchmark and id."""
        asked, prompt_set = _by_question(found, self.prompt_set), self.prompt_set
        wanted = filters.tasks or ("next", "rewrite")
        if "next" in wanted:
            for (*key, _), one in asked.items():
                for previous, right in one.right.items():
                    yield _row(one, previous, right, prompt_set), (str(key[0]), str(key[1]))
        if "rewrite" in wanted:
            for row in found:
                one, previous = asked[_key(row)], tuple(row["previous_steps"])
                if row["error_type"] != CORRECT and previous in one.right:
                    said = _feedback(row, one, prompt_set)
                    made = _row(one, previous, one.right[previous], prompt_set, row, said)
                    yield made, (row["benchmark"], row["question_id"])


@kind_of.register
def _(recipe: GeneratorRecipe) -> Kind:
    own = prompts_of(recipe.dataset)
    return GeneratorRows(PromptSet(recipe.prompts or own.name, recipe.verdict_order or own.verdict_order))


def _steps(dataset: str, split: str) -> tuple[Source, list[Row]]:
    """The rows of the set's steps, labels in words."""
    source, place = find(dataset, VERIFIER_STEPS, STEPS_RECORD)
    found = load(dataset, place, source.revision, STEPS, split)
    label = found.features["error_type"]
    return source, [{**row, "error_type": label.int2str(row["error_type"])} for row in found]


def _by_question(found: list[Row], prompt_set: PromptSet) -> dict[tuple[str, ...], _Asked]:
    """What the set knows of each question's ideal steps; twins have passages of their own."""
    asked: dict[tuple[str, ...], _Asked] = {}
    for row in found:
        pages = tuple(Passage(page["title"], (page["text"],)) for page in row["passages"])
        one = asked.setdefault(_key(row), _Asked(row["question"], pages))
        previous, is_right = tuple(row["previous_steps"]), row["error_type"] == CORRECT
        one.right.update(successions(previous, row["current_step"] if is_right else None))
        if is_right:
            said = _feedback(row, one, prompt_set)
            one.advice[(*previous, row["current_step"])] = said
    return asked


def _key(row: Row) -> tuple[str, ...]:
    texts = [[page["title"], page["text"]] for page in row["passages"]]
    return (row["benchmark"], row["question_id"], identity(texts))


def _feedback(row: Row, one: _Asked, prompt_set: PromptSet) -> Feedback:
    """What the set says of a step, as a verifier by these prompts would."""
    said = Feedback(row["error_type"], row["diagnosis"], row["guidance"])
    if prompt_set.verdict_order != EVIDENCE_FIRST:
        return said
    previous = [parse_step(step) for step in row["previous_steps"]]
    return with_evidence(said, one.question, one.passages, previous, parse_step(row["current_step"]))


def _row(
    one: _Asked,
    previous: tuple[str, ...],
    right: str,
    prompt_set: PromptSet,
    row: Row | None = None,
    said: Feedback | None = None,
) -> dict[str, Any]:
    """A row as the loop would ask it; ``row`` is the rejected step, ``said`` what was said."""
    rejected = [(row["current_step"], said)] if row is not None and said is not None else []
    steps: list[Step] = [parse_step(step) for step in previous]
    id_ = identity([one.question, [page.text for page in one.passages], *previous, right, *rejected])[:32]
    # Without a verifier nobody gives guidance: both ways have to be known.
    advice = one.advice.get(previous) if int(id_[0], 16) % 2 else None
    request = generator_request(one.question, one.passages, steps, advice, rejected, prompt_set=prompt_set)
    return {
        "id": id_,
        "prompt": [{"role": turn.role, "content": turn.content} for turn in request.messages],
        "completion": [{"role": "assistant", "content": right}],
    }
