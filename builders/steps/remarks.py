"""Refuses a model's remarks on a step, its diagnosis and guidance, that no verifier should learn.

A guidance must not reveal what a later step finds. There are two ways to tell: by the trajectory, whose later steps
have the value (`reveals_later_value`), and by the checker's plan (`reveals_later_result`).
"""

import re
from collections.abc import Sequence
from dataclasses import asdict

from builders.steps.rows import KEYS, ReplyStep, StepRefused
from builders.steps.values import is_english, occurs_in_any, values_in
from safe_stepwise.checking.checker import Checker
from safe_stepwise.language.mentions import first_mention
from safe_stepwise.language.reading import read
from safe_stepwise.language.text import has_words, normal_words
from safe_stepwise.records import Passage, Question, Step
from safe_stepwise.store.replies import is_planted
from safe_stepwise.taxonomy import CORRECT, ERROR_TYPES

MAX_REMARK_CHARS = 600
"""Characters of a diagnosis or guidance; what is longer is an essay, not a verdict."""
REVEALS = "the guidance gives away a later result"
_PASSAGE_NUMBER = re.compile(r"\bpassages? (\d{1,9})", re.IGNORECASE)
_STEP_REFERENCE = re.compile(r"\bsteps? \d", re.IGNORECASE)
_STEP_OR_PASSAGE = re.compile(r"\bsteps?\b|\bpassage \d", re.IGNORECASE)
_ANSWER_MARK = re.compile(r"####ANSWER:(?: <answer>)?")
_ANSWERED = re.compile(r"\banswer(?: is| must be| has to be| will be)?\W{1,4}", re.IGNORECASE)
_CITED = re.compile(r"\b(passage|step)s? (\d+)", re.IGNORECASE)


def check_verdict(
    checker: Checker, previous: Sequence[Step], step: Step, label: str, remarks: ReplyStep, passages: int
) -> None:
    """Raise `StepRefused` unless the checker finds the label in the step, and for remarks that give a result away."""
    verdict = checker.check(previous, step)
    if verdict is None or verdict.error_type != label:
        raise StepRefused(f"the checker {'abstains' if verdict is None else f'finds {verdict.error_type}'}")
    check_remarks(remarks, label, passages, step.number)
    if reveals_later_result(checker, (*previous, step), remarks.guidance, is_sound=label == CORRECT):
        raise StepRefused(REVEALS)


def check_remarks(remarks: ReplyStep, error_type: str, passages: int, position: int) -> None:
    """Raise `StepRefused` for remarks, on the step at ``position``, that no verifier should learn."""
    for label, text in (("diagnosis", remarks.diagnosis), ("guidance", remarks.guidance)):
        if not any(map(str.isalnum, text)):
            raise StepRefused(f"the {label} is empty")
        if len(text) > MAX_REMARK_CHARS:
            raise StepRefused(f"the {label} is too long: {len(text)} characters")
        if not is_english(text):
            raise StepRefused(f"the {label} is not in English")
        for error_type_ in ERROR_TYPES:
            if error_type_.name != error_type and error_type_.name in text:
                raise StepRefused(f"two errors at once: the {label} names {error_type_.name}")
        for noun, number in _CITED.findall(text):
            limit = passages if noun.lower() == "passage" else position + (label == "guidance")
            if not 1 <= int(number[:9]) <= limit:
                raise StepRefused(f"the {label} cites a missing passage or step: {noun} {number[:9]}")


def check_remarks_on_sound_step(
    question: Question, steps: Sequence[Step], position: int, remarks: ReplyStep, data: str = ""
) -> None:
    """Raise `StepRefused` for remarks on a sound step that no verifier should learn, or that occur in ``data``."""
    check_remarks(remarks, CORRECT, len(question.passages), position)
    if data and is_planted(asdict(remarks), KEYS, data):
        raise StepRefused("the remarks are copied from the texts that the prompt quotes")
    step, accepted = steps[position - 1], steps[:position]
    cited = set(_PASSAGE_NUMBER.findall(step.text))
    if step.kind == "Attribution":
        if cited and cited.isdisjoint(_PASSAGE_NUMBER.findall(remarks.diagnosis)):
            raise StepRefused("the diagnosis does not name the passage that the step reads")
    elif step.number > 1 and not (_STEP_REFERENCE if step.kind == "Logical" else _STEP_OR_PASSAGE).search(
        remarks.diagnosis
    ):
        raise StepRefused("the diagnosis names no step that this one rests on")
    check_grounded(question, accepted, remarks)
    if reveals_later_value(question, accepted, steps[position:], remarks.guidance):
        raise StepRefused(REVEALS)


def check_grounded(question: Question, accepted: Sequence[Step], remarks: ReplyStep) -> None:
    """Raise `StepRefused` for a remark with a name or number that no passage, question or step so far has."""
    pages = (*question.passages, _context(question, accepted))
    for label in ("diagnosis", "guidance"):
        for value in values_in(_ANSWER_MARK.sub("", getattr(remarks, label))):
            if not occurs_in_any(value, pages) and not _has_other_ending(value, pages):
                raise StepRefused(f"the {label} names what no passage, question or step has: {value[:80]}")


def reveals_later_value(question: Question, accepted: Sequence[Step], coming: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names the answer or a later value, but for the subject of the passage to be cited next."""
    context = _context(question, accepted)
    if names_answer(question, accepted, guidance):
        return True
    named_values = [
        value for value in values_in(_ANSWER_MARK.sub("", guidance)) if not occurs_in_any(value, [context])
    ]
    numbers = [int(number) for step in coming[:1] for number in _PASSAGE_NUMBER.findall(step.text)]
    next_titles = [Passage("", (question.passages[n - 1].title,)) for n in numbers if 0 < n <= len(question.passages)]
    later = [Passage("", (step.text,)) for step in coming]
    return any(occurs_in_any(value, later) and not occurs_in_any(value, next_titles) for value in named_values)


def names_answer(question: Question, accepted: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names the answer before any ``accepted`` step, the present one included, has reached it."""
    guidance_words, question_words = normal_words(guidance), normal_words(question.question)
    before = normal_words(_context(question, accepted).text)
    for answer in map(normal_words, question.accepted):
        # "Yes" and "no" are words like others, and a question may name the things to choose from:
        # there it counts whether the guidance calls one of them the answer.
        if answer in ("yes", "no") or has_words(question_words, answer):
            concluded = any(s.kind != "Attribution" and has_words(normal_words(s.text), answer) for s in accepted)
            ends = (normal_words(guidance[match.end() :]) for match in _ANSWERED.finditer(guidance))
            if any(f"{end} ".startswith(f"{answer} ") for end in ends) and not concluded:
                return True
        elif has_words(guidance_words, answer) and not has_words(before, answer):
            return True
    return False


def _has_other_ending(value: str, pages: Sequence[Passage]) -> bool:
    """Whether the texts have each word of a name with another ending, as demonyms do."""
    text_words = set(normal_words(" ".join(f"{page.title} {page.text}" for page in pages)).split())
    stems = [word[: max(4, len(word) - 3)] for word in normal_words(value).split()]
    return not value[:1].isdigit() and all(any(word.startswith(stem) for word in text_words) for stem in stems)


def _context(question: Question, accepted: Sequence[Step]) -> Passage:
    return Passage("", (question.question, *(step.text for step in accepted)))


def reveals_later_result(checker: Checker, accepted: Sequence[Step], guidance: str, *, is_sound: bool) -> bool:
    """Whether a guidance names a value that only a later step finds.

    After an unsound step, it may name the value that the next step should find.
    """
    established = checker.established(accepted if is_sound else accepted[:-1])
    allowed: set[int | None] = {*established} if is_sound else {*established, checker.next_item(established)}
    context, guide = read(_context(checker.question, accepted)), read(Passage("", (guidance,)))
    for index in checker.plan.fact_places:
        item = checker.plan.items[index]
        # A fact in a passage's own words is requested by the title of that passage.
        if index in allowed or item.sentence is not None:
            continue
        value = checker.claims.value_of(item)
        if first_mention(guide, value) is not None and first_mention(context, value) is None:
            return True
    return False
