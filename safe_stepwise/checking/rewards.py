"""Rewards reinforcement learning by the checker: for one step, or for a whole trajectory.

The functions have the signature of TRL's ``reward_funcs``: lists of prompts and completions, and of each column's
values by its name; they return a number from 0 to 1 for each completion. The columns are those of a verified row with
its label (config ``B_labeled`` of the labels), or of an *own row*, a user's: question, answer and passages, with or
without annotations, in any form that `store.rows` reads. `step_reward` also needs ``previous_steps``, the accepted
steps in the form of `steps`.

Only proved steps pay. The first step that is proved wrong, or breaks the grammar, ends a trajectory. A step on which
the checker abstains pays nothing and ends nothing, so that unreadable text earns no more than an honest mistake. If a
trajectory ends in the right answer after proved steps that read all needed facts, half of its reward is for that, and
half is the share of proved steps. Any other trajectory gets a quarter of that share: avoiding the facts never pays
more. A row whose label gives no plan has the reward None, which TRL leaves out.

An own row whose annotations give no plan is judged only by its passages. The facts that it needs are unknown, so a
right answer is earned only if every step is proved, says something new, and shares a name with the question or an
earlier step. Even so, a true sentence that names the answer may be about something that the question does not ask.
"""

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
from safe_stepwise.language.text import as_date, has_words, normal_words
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
_LABEL_COLUMNS = frozenset(("reasoning_path", "knowledge_graph"))
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("id", "kind"), ""),
    **dict.fromkeys(("aliases", "supporting_facts", "evidence", "decomposition"), ()),
    "hops": 0,
}
"""The columns that an own row may lack."""
MALFORMED, AFTER_THE_ANSWER = "malformed", "after the answer"
"""Labels of faults that are outside the taxonomy."""
_CACHED_CHECKERS = 256  # so that only the first completion of a group waits for its checker
_STEP = re.compile(r"^(?=[ \t#>*_-]*+step[ \t]*\d+[*_]*+[ \t]*:)", re.IGNORECASE | re.MULTILINE)

_MAX_UNPROVED_PER_PROVED = 0.5
"""Number of unproved steps per proved step above which a trajectory earns no answer."""

Completion = str | Sequence[Mapping[str, Any]]
"""A text, or the turns of a conversation."""
Rewards = list[float | None]
Labeller = Callable[[Sequence[Step], Step], str | None]
"""Labels a step that follows accepted steps; None if nothing is proved."""


@dataclass(frozen=True, slots=True)
class JudgedTrajectory:
    """The checker's judgement of one trajectory.

    ``labels`` has a label for each step up to the first fault, None if the checker abstained; ``steps`` is the number
    of its steps, ``needed`` the number of steps in its plan, less the facts that it read in one step with another.
    """

    labels: tuple[str | None, ...]
    steps: int
    needed: int
    earned: bool
    """Whether it ends in the right answer after proved steps that read all facts, without a fault or padding."""

    @property
    def fault(self) -> str:
        """The label of the faulty step that ended the trajectory; "" if there is none."""
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
    """The functions that label a step of one row and judge a whole trajectory."""

    label_step: Labeller
    judge_trajectory: Callable[[str], JudgedTrajectory]


def judge_trajectory(checker: Checker, text: str) -> JudgedTrajectory:
    """Judge a trajectory, in which each step begins a line; text before the first step is skipped.

    >>> from safe_stepwise.records import Passage, Question
    >>> page = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True)
    >>> hop = Triple("Dune Rain", "director", "Ors Velt", 1)
    >>> question = Question("q", "b", "train", "Who directed Dune Rain?", "Ors Velt", passages=(page,))
    >>> checker = Checker(question, [hop], [hop])
    >>> judge_trajectory(checker, "Step 1: ####ANSWER: Ors Velt (Final Answer)").fault
    'Wrong Conclusion'
    """
    texts = split_steps(text)
    labels, accepted = _label_all(partial(_label_by_plan, checker), texts)
    established = checker.established(accepted)
    read_together = len(established) - len(set(established.values()))
    conclusions = {step.number for step in accepted if step.kind == "Logical"}
    relied_on = {*established.values(), *(() if len(checker.plan.items) - 1 in established else conclusions)}
    is_proved = all(labels[number - 1] == CORRECT for number in relied_on)
    is_ended = bool(accepted) and accepted[-1].kind == "Final Answer" and len(accepted) == len(texts)
    has_little_padding = labels.count(None) <= _MAX_UNPROVED_PER_PROVED * labels.count(CORRECT)
    earned = is_ended and labels[-1] == CORRECT and is_proved and has_little_padding
    return JudgedTrajectory(tuple(labels), len(texts), len(checker.plan.items) + 1 - read_together, earned)


def judge_by_passages_alone(question: Question, text: str) -> JudgedTrajectory:
    """Judge a trajectory of a question without a plan; ``needed`` is then the number of its steps."""
    texts = split_steps(text)
    labels, accepted = _label_all(partial(_label_by_passages, question), texts)
    is_ended = set(labels) == {CORRECT} and accepted[-1].kind == "Final Answer"
    distinct = {" ".join(normal_words(step.text).split()) for step in accepted}
    earned = is_ended and len(distinct) == len(accepted) and _are_linked(question, accepted[:-1])
    return JudgedTrajectory(tuple(labels), len(texts), max(len(texts), question.hops + 1), earned)


def _are_linked(question: Question, steps: Sequence[Step]) -> bool:
    """Whether each step shares a name with the question or an earlier step; they name all that is compared."""
    reached = _find_names(question.question)
    compared = {*reached} if comparatives_in(question.question) else set()
    for step in steps if reached else ():
        names = _find_names(step.text)
        if names and not any(has_words(name, other) or has_words(other, name) for name in names for other in reached):
            return False
        reached |= names
    texts = normal_words(" ".join(step.text for step in steps))
    return bool(steps) and all(has_words(texts, name) for name in compared)


def _find_names(text: str) -> set[str]:
    """Return the normalised names of a text, without dates."""
    return {normal_words(name) for name in names_in_text(text) if not as_date(name)} - {""}


def split_steps(text: str) -> list[str]:
    """Return the texts of the steps in a trajectory, in which each step begins a line."""
    return [step for step in _STEP.split(text)[1:] if step.strip()]


def _label_by_plan(checker: Checker, previous: Sequence[Step], step: Step) -> str | None:
    verdict = checker.check(previous, step)
    return verdict.error_type if verdict else None


def _label_by_passages(question: Question, previous: Sequence[Step], step: Step) -> str | None:
    if step.kind == "Final Answer" and not exact_match(final_answer(step), question.accepted):
        return "Wrong Conclusion"
    if normal_words(step.text) in {normal_words(earlier.text) for earlier in previous}:
        return "Redundancy"
    label = judge_by_passages(question.question, question.passages, previous, step).label
    return {SOUND: CORRECT, UNDECIDED: None}.get(label, label)


def _label_all(label: Labeller, texts: Sequence[str]) -> tuple[list[str | None], list[Step]]:
    """Label steps up to the first fault; return the labels, and the steps before the fault."""
    labels: list[str | None] = []
    accepted: list[Step] = []
    for text in texts:
        labels.append(label_step(label, accepted, text))
        if labels[-1] not in (None, CORRECT):
            break
        accepted.append(read_step(text))
    return labels, accepted


def label_step(label: Labeller, accepted: Sequence[Step], text: str) -> str | None:
    """Label the text of a step that follows accepted steps; None if nothing is proved."""
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
    pairs = zip(_judge_rows(_split_columns(columns, len(completions))), completions, strict=True)
    judged = [judge and judge.judge_trajectory(_read_completion(text)) for judge, text in pairs]
    _log_abstained(columns, [label for verdict in judged if verdict for label in verdict.labels])
    return [verdict.reward if verdict else None for verdict in judged]


def step_reward(
    prompts: Sequence[Any],
    completions: Sequence[Completion],
    *,
    previous_steps: Sequence[Sequence[str]],
    **columns: Any,
) -> Rewards:
    """Return 1 for each completion that is a proved step, else 0; None for a labelled row without a plan.

    Raises ``UserError`` with all columns that are missing, or for previous steps that break the grammar.
    """
    judges = _judge_rows(_split_columns(columns, len(completions)))
    labels = {
        number: label_step(judge.label_step, _parse_steps(previous), _read_completion(completion))
        for number, (judge, completion, previous) in enumerate(zip(judges, completions, previous_steps, strict=True))
        if judge
    }
    _log_abstained(columns, [*labels.values()])
    return [float(labels[n] == CORRECT) if n in labels else None for n in range(len(completions))]


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Mapping[str, Any] | None = None, **_: Any
) -> dict[str, Any]:
    """Return verl's score of one completion (``custom_reward_function``): `trajectory_reward`, and one per step.

    ``extra_info`` holds the row's columns; ``ground_truth`` is the answer unless they have one. ``score`` is 0 for a
    labelled row without a plan; ``step_scores`` has 1 for each proved step and 0 for any other, in order.

    >>> row = {"question": "Where was Ors Velt born?", "passages": ["Ors Velt was born in Oru."]}
    >>> solution = "Step 1: Ors Velt was born in Oru. (Attribution)\\nStep 2: ####ANSWER: Oru (Final Answer)"
    >>> compute_score("own", solution, "Oru", row)
    {'score': 1.0, 'step_scores': [1, 1]}
    """
    judge = judge_for_row({"answer": ground_truth, **(extra_info or {})})
    if judge is None:
        return {"score": 0.0, "step_scores": []}
    judged = judge.judge_trajectory(_read_completion(solution_str))
    return {"score": judged.reward, "step_scores": [int(label == CORRECT) for label in judged.labels]}


def checker_of(row: Mapping[str, Any]) -> Checker | None:
    """Return the checker (cached) of a row with these `COLUMNS`; None if the row gives no plan."""
    return _make_checker(canonical_json({name: row[name] for name in COLUMNS}))


@lru_cache(maxsize=_CACHED_CHECKERS)
def _make_checker(row: str) -> Checker | None:
    content = parse_json(row)
    path, graph = ([Triple(**triple) for triple in content[name]] for name in ("reasoning_path", "knowledge_graph"))
    try:
        return Checker(question_of(content, benchmark="", split=""), path, graph)
    except PlanError:
        return None


def judge_for_row(row: Mapping[str, Any]) -> Judge | None:
    """Return the judge of a row; None for a labelled row without a plan. Raises as `trajectory_reward` does."""
    return _judge_rows([row])[0]


def _split_columns(columns: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    """Split columns into rows; other values are left out. Raises ``UserError`` for own columns of another length."""
    lists = {name: values for name, values in columns.items() if isinstance(values, list | tuple)}
    if not _LABEL_COLUMNS.isdisjoint(columns):
        lists = {name: columns[name] for name in COLUMNS if name in columns}
    elif short := [name for name, values in lists.items() if len(values) != number]:
        raise UserError(f"{short[0]} has {len(lists[short[0]])} values for {number} completions: give one of each")
    return [{name: values[n] for name, values in lists.items()} for n in range(number)]


def _judge_rows(table: Sequence[Mapping[str, Any]]) -> list[Judge | None]:
    """Return the judge of each row: by its label, or without labels, by its annotations or passages."""
    names = dict.fromkeys(name for row in table for name in row)
    if _LABEL_COLUMNS.isdisjoint(names):
        guessed_columns = rows.guess_columns(table)
        rows.check_columns(guessed_columns, table, "the rows", "rename the columns that hold them")
        judges: list[Judge | None] = []
        for number, row in enumerate(table, 1):
            with at_place(f"row {number}", (ValueError, TypeError)):
                own_row = rows.with_answer(rows.own_columns(row, guessed_columns))
                judges.append(_make_own_judge(canonical_json(own_row)))
        return judges
    if lacking := [name for name in COLUMNS if name not in names]:
        raise UserError(
            f"the rows have no column {', '.join(lacking)}: train on rows of a config that ends in _labeled "
            "(musique_labeled), and keep all of their columns"
        )
    return [_make_plan_judge(checker) if checker else None for checker in map(checker_of, table)]


def _make_plan_judge(checker: Checker) -> Judge:
    return Judge(partial(_label_by_plan, checker), partial(judge_trajectory, checker))


@lru_cache(maxsize=_CACHED_CHECKERS)
def _make_own_judge(own_row: str) -> Judge:
    """Return the judge (cached) of a row in our columns; raises ``ValueError`` for a row that can't be used."""
    content = _DEFAULTS | parse_json(own_row)
    pages = content.get("passages")
    if not isinstance(pages, list) or not pages or not all(map(_is_passage, pages)):
        raise RowError("passages must be a list of texts, or of objects with a text or sentences")
    content["passages"] = [{"title": "", "is_gold": False, **page} for page in pages]
    question = question_of(content, benchmark="", split="")
    sizes.check_size(question)
    question = replace(question, passages=tuple(map(split_page, question.passages)))
    try:
        path = _annotated_path(question)
        checker = Checker(question, path, path)
    except PlanError:
        return Judge(partial(_label_by_passages, question), partial(judge_by_passages_alone, question))
    return _make_plan_judge(checker)


def _is_passage(page: Any) -> bool:
    return isinstance(page, dict) and (isinstance(page.get("text"), str) or isinstance(page.get("sentences"), list))


def _annotated_path(question: Question) -> tuple[Triple, ...]:
    """Return the path that a question's annotations give; each triple has the passage and sentence that state it.

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


def _parse_steps(previous: Sequence[str]) -> list[Step]:
    try:
        return [parse_step(step) for step in previous]
    except (StepError, TypeError, AttributeError) as error:
        raise UserError(f"previous_steps must be lists of well-formed steps: {error}") from None


def _read_completion(completion: Completion) -> str:
    """Return a completion's text without its thought; content may be a text or a list of parts.

    Raises ``UserError`` for a completion with a different form.
    """
    if isinstance(completion, str):
        return split_thought(completion).text
    try:
        contents = [turn.get("content") or "" for turn in completion]
        texts = [content if isinstance(content, str) else "".join(map(_read_part, content)) for content in contents]
    except (TypeError, AttributeError):
        kind = type(completion).__name__
        raise UserError(f"a completion ({kind}) is neither a text nor turns with a content: give either") from None
    return "\n".join(split_thought(text).text for text in texts)


def _read_part(item: Any) -> str:
    """Return the text of a part of a turn's content; "" for a thought or an image."""
    if isinstance(item, str):
        return item
    return str(item.get("text") or "") if str(item.get("type", "text")).endswith("text") else ""


def _log_abstained(columns: Mapping[str, Any], labels: Sequence[str | None]) -> None:
    """Log to TRL the share of steps on which the checker abstained."""
    log_metric = columns.get("log_metric")
    if log_metric is not None and labels:
        log_metric("checker_abstained", labels.count(None) / len(labels))
