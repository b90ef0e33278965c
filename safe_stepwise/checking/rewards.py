"""Rewards reinforcement learning by the checker: for one step, or for a whole trajectory.

The functions have the signature of TRL's ``reward_funcs``: prompts, completions and the rows' columns by name, a list
each; they return a number from 0 to 1 for each completion. The columns are those of a verified row with its label
(config ``B_labeled`` of the labels), or of anyone's own row: question, answer and passages, with or without
annotations, in any form that `store.rows` reads. `step_reward` also needs ``previous_steps``, the accepted steps in
the form of `steps`.

Only proved steps pay. The first step that is proved wrong, or breaks the grammar, ends a trajectory. A step on which
the checker abstains pays nothing and ends nothing, so that unreadable text earns no more than an honest mistake. A
trajectory that ends in the right answer, after proved steps that read all needed facts, is worth a half, and the share
of proved steps is the other half. Any other is worth a quarter of that share: no way round the facts pays more. A row
whose label gives no plan has the reward None, which TRL leaves out.

An own row whose annotations give no plan is judged by its passages alone. Which facts it needs is not known, so a
right answer is earned only if every step is proved, says something new, and shares a name with the question or a step
before. Even so, a true sentence that names the answer may be about something else than the question asks.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.inference import comparatives_in
from safe_stepwise.checking.passage_checker import SOUND, UNDECIDED, judge_by_passages, split_page
from safe_stepwise.checking.plans import PlanError, described_subjects
from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.graphs.hop_lookup import locate
from safe_stepwise.graphs.hops import annotated_hops
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import as_date, has_words, words_of
from safe_stepwise.records import Question, Step, Triple, canonical_json
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, final_answer, parse_step, read_step
from safe_stepwise.store import rows, sizes
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.codec import question_of
from safe_stepwise.store.thoughts import split_thought
from safe_stepwise.taxonomy import CORRECT

COLUMNS = (
    *("id", "question", "answer", "aliases", "kind", "hops", "passages", "supporting_facts"),
    *("evidence", "decomposition", "reasoning_path", "knowledge_graph"),
)
"""The columns of a labelled row that the checker needs."""
_LABEL_COLUMNS = ("reasoning_path", "knowledge_graph")
_EMPTY: dict[str, Any] = {
    **dict.fromkeys(("id", "kind"), ""),
    **dict.fromkeys(("aliases", "supporting_facts", "evidence", "decomposition"), ()),
    "hops": 0,
}
"""The columns that an own row may lack."""
MALFORMED, AFTER_THE_ANSWER = "malformed", "after the answer"
"""Labels of faults that are outside the taxonomy."""
_CACHED_CHECKERS = 256  # so that only the first completion of a group waits for its checker
_STEP = re.compile(r"^(?=[ \t#>*_-]*+step[ \t]*\d+[*_]*+[ \t]*:)", re.IGNORECASE | re.MULTILINE)

_PADDING = 0.5
"""Unread steps for each proved one from which on a trajectory earns no answer."""

Completion = str | Sequence[Mapping[str, Any]]
"""A text, or the turns of a conversation."""
Rewards = list[float | None]
Labeller = Callable[[Sequence[Step], Step], str | None]
"""Labels a step after accepted ones; None if nothing is proved."""


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
        share = self.sound / max(self.steps, self.needed, 1)
        return (1 + share) / 2 if self.earned else share / 4


@dataclass(frozen=True, slots=True)
class Judge:
    """How the steps of one row are labelled, and how a whole trajectory is judged."""

    label: Labeller
    judge: Callable[[str], JudgedTrajectory]


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
    texts = _split_steps(text)
    labels, accepted = _label_all(_by_plan(checker), texts)
    established = checker.established(accepted)
    together = len(established) - len(set(established.values()))
    conclusions = {step.number for step in accepted if step.kind == "Logical"}
    relied = {*established.values(), *(() if len(checker.plan.items) - 1 in established else conclusions)}
    is_proved = all(labels[number - 1] == CORRECT for number in relied)
    ended = bool(accepted) and accepted[-1].kind == "Final Answer" and len(accepted) == len(texts)
    is_brief = labels.count(None) <= _PADDING * labels.count(CORRECT)
    earned = ended and labels[-1] == CORRECT and is_proved and is_brief
    return JudgedTrajectory(tuple(labels), len(texts), len(checker.plan.items) + 1 - together, earned)


def judge_by_passages_alone(question: Question, text: str) -> JudgedTrajectory:
    """Judge a trajectory of a question without a plan; ``needed`` is then the number of its steps.

    >>> from safe_stepwise.records import Passage
    >>> page = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",))
    >>> asked = Question("q", "", "", "Who directed Dune Rain?", "Ors Velt", passages=(page,))
    >>> told = '''Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)
    ... Step 2: ####ANSWER: Ors Velt (Final Answer)'''
    >>> judge_by_passages_alone(asked, told).reward
    1.0
    """
    texts = _split_steps(text)
    labels, accepted = _label_all(_by_passages(question), texts)
    ended = set(labels) == {CORRECT} and accepted[-1].kind == "Final Answer"
    distinct = {" ".join(words_of(step.text).split()) for step in accepted}
    earned = ended and len(distinct) == len(accepted) and _are_linked(question, accepted[:-1])
    return JudgedTrajectory(tuple(labels), len(texts), max(len(texts), question.hops + 1), earned)


def _are_linked(question: Question, steps: Sequence[Step]) -> bool:
    """Whether each step shares a name with the question or an earlier step, and they name what a comparison names."""
    reached = _names(question.question)
    compared = {*reached} if comparatives_in(question.question) else set()
    for step in steps if reached else ():
        names = _names(step.text)
        if names and not any(has_words(name, other) or has_words(other, name) for name in names for other in reached):
            return False
        reached |= names
    texts = words_of(" ".join(step.text for step in steps))
    return bool(steps) and all(has_words(texts, name) for name in compared)


def _names(text: str) -> set[str]:
    return {words_of(name) for name in names_in_text(text) if not as_date(name)} - {""}


def _split_steps(text: str) -> list[str]:
    return [step for step in _STEP.split(text)[1:] if step.strip()]


def _by_plan(checker: Checker) -> Labeller:
    def label(previous: Sequence[Step], step: Step) -> str | None:
        verdict = checker.check(previous, step)
        return verdict.error_type if verdict else None

    return label


def _by_passages(question: Question) -> Labeller:
    labels = {SOUND: CORRECT, UNDECIDED: None}

    def label(previous: Sequence[Step], step: Step) -> str | None:
        if step.kind == "Final Answer" and not exact_match(final_answer(step), question.accepted):
            return "Wrong Conclusion"
        verdict = judge_by_passages(question.question, question.passages, previous, step)
        return labels.get(verdict.label, verdict.label)

    return label


def _label_all(label: Labeller, texts: Sequence[str]) -> tuple[list[str | None], list[Step]]:
    """Label steps up to the first fault; return the labels, and the steps before the fault."""
    labels: list[str | None] = []
    accepted: list[Step] = []
    for text in texts:
        labels.append(_label(label, accepted, text))
        if labels[-1] not in (None, CORRECT):
            break
        accepted.append(read_step(text))
    return labels, accepted


def _label(label: Labeller, accepted: Sequence[Step], text: str) -> str | None:
    """Label the text of a step after the accepted ones; None if nothing is proved."""
    if accepted and accepted[-1].kind == "Final Answer":
        return AFTER_THE_ANSWER
    try:
        step = read_step(text)
    except StepError:
        return MALFORMED
    if step.number != len(accepted) + 1:
        return MALFORMED
    return label(accepted, step)


def trajectory_reward(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> Rewards:
    """Return `JudgedTrajectory.reward` for each completion; None for a labelled row without a plan.

    Raises ``UserError`` with all columns that are missing, and for a completion that has no text.
    """
    judges, log = _judges(columns, len(completions)), columns.get("log_metric")
    judged = [judge and judge.judge(_text(text)) for judge, text in zip(judges, completions, strict=True)]
    _log(log, [label for verdict in judged if verdict for label in verdict.labels])
    return [verdict.reward if verdict else None for verdict in judged]


def step_reward(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    previous_steps: Sequence[Sequence[str]],
    **columns: Any,
) -> Rewards:
    """Return 1 for each completion that is a step proved right, else 0; None for a labelled row without a plan.

    Raises ``UserError`` with all columns that are missing, or for previous steps that break the grammar.
    """
    judges, log = _judges(columns, len(completions)), columns.get("log_metric")
    labels = [
        judge and (_label(judge.label, _steps(previous), _text(completion)),)
        for judge, completion, previous in zip(judges, completions, previous_steps, strict=True)
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


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **_: Any
) -> dict[str, Any]:
    """Return verl's score of one completion (``custom_reward_function``): `trajectory_reward`, and each step's share.

    ``extra_info`` holds the row's columns, of which ``ground_truth`` may be the answer. ``score`` is 0 for a labelled
    row without a plan; ``step_scores`` are 1 for each proved step and 0 for any other, in order.

    >>> row = {"question": "Where was Ors Velt born?", "passages": ["Ors Velt was born in Oru."]}
    >>> solution = "Step 1: Ors Velt was born in Oru. (Attribution)\\nStep 2: ####ANSWER: Oru (Final Answer)"
    >>> compute_score("own", solution, "Oru", row)
    {'score': 1.0, 'step_scores': [1, 1]}
    """
    row = {"answer": ground_truth, **(extra_info or {})}
    (judge,) = _judges({name: [value] for name, value in row.items()}, 1)
    if judge is None:
        return {"score": 0.0, "step_scores": []}
    judged = judge.judge(_text(solution_str))
    return {"score": judged.reward, "step_scores": [int(label == CORRECT) for label in judged.labels]}


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


def _judges(columns: Mapping[str, Any], number: int) -> list[Judge | None]:
    """Return the judge of each row: by its label, or if it has none by its annotations or passages."""
    if not any(name in columns for name in _LABEL_COLUMNS):
        lists = {name: values for name, values in columns.items() if isinstance(values, list | tuple)}
        if short := [name for name, values in lists.items() if len(values) != number]:
            raise UserError(f"{short[0]} has {len(lists[short[0]])} values for {number} completions: give one of each")
        own_rows = [{name: values[n] for name, values in lists.items()} for n in range(number)]
        columns_ = rows.guess_columns(own_rows)
        rows.check_columns(columns_, own_rows, "the rows", "rename the columns that hold them")
        return [_own_judge_of(row, columns_, f"row {n}") for n, row in enumerate(own_rows, 1)]
    if lacking := [name for name in COLUMNS if name not in columns]:
        raise UserError(
            f"the rows have no column {', '.join(lacking)}: train on rows of a config that ends in _labeled "
            "(musique_labeled), and keep all of their columns"
        )
    checkers = [checker_of({name: columns[name][n] for name in COLUMNS}) for n in range(number)]
    return [_planned(checker) if checker else None for checker in checkers]


def _planned(checker: Checker) -> Judge:
    return Judge(_by_plan(checker), partial(judge_trajectory, checker))


def _own_judge_of(row: Mapping[str, Any], columns: rows.Columns, place: str) -> Judge:
    """Return the judge of an own row; raises ``UserError`` with ``place`` for a row of no use."""
    with at_place(place, (ValueError, TypeError)):
        return _own_judge(canonical_json(rows.with_answer(rows.own_columns(row, columns))))


@lru_cache(maxsize=_CACHED_CHECKERS)
def _own_judge(own_row: str) -> Judge:
    """Return the judge (cached) of a row in our columns; raises ``ValueError`` for a row of no use."""
    content = _EMPTY | parse_json(own_row)
    pages = content.get("passages")
    is_list = isinstance(pages, list) and all(isinstance(page, dict) and _has_text(page) for page in pages)
    if not is_list or not pages:
        raise RowError("passages is no list of texts, or of objects with title and text or sentences")
    content["passages"] = [{"title": "", "is_gold": False, **page} for page in pages]
    question = question_of(content, benchmark="", split="")
    sizes.check_size(question)
    question = replace(question, passages=tuple(map(split_page, question.passages)))
    try:
        path = _annotated_path(question)
        checker = Checker(question, path, path)
    except PlanError:
        return Judge(_by_passages(question), partial(judge_by_passages_alone, question))
    return _planned(checker)


def _has_text(page: Mapping[str, Any]) -> bool:
    return isinstance(page.get("text"), str) or isinstance(page.get("sentences"), list)


def _annotated_path(question: Question) -> tuple[Triple, ...]:
    """Return the path that a question's annotations give, each triple with the passage and sentence that state it.

    Raises ``PlanError`` for a question without annotations, and for a hop that no passage states.
    """
    pages = question.gold or tuple(enumerate(question.passages, 1))
    path: list[Triple] = []
    for hop in annotated_hops(question):
        place = locate(hop, pages)
        if place is None:
            raise PlanError(f"no passage states “{hop.triple.head} – {hop.triple.relation}”")
        path += [replace(triple, passage=place[0], sentence=place[1]) for triple in hop.triples]
    if not (path or question.supporting_facts):
        raise PlanError("no annotations")
    return tuple(path) or tuple(described_subjects(question))


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
