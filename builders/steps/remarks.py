"""What a model says of steps, held against what it was shown; no plan is needed for it.

So the same checks guard steps of verified questions, which the plan checks besides, steps of those
that could not be verified (`model`), and what is reworded (`rewriting`).
"""

import re
from collections.abc import Sequence

from builders.steps.replies import KEYS, StepRefused, Written, check_remarks
from builders.steps.values import stands, values_in
from safe_stepwise.language.text import has_words, words_of
from safe_stepwise.records import Passage, Question, Step
from safe_stepwise.store.replies import is_planted
from safe_stepwise.taxonomy import CORRECT

GIVES_AWAY = "the guidance gives away a later result"

_PASSAGE = re.compile(r"\bpassages? (\d{1,9})", re.IGNORECASE)
_STEP = re.compile(r"\bsteps? \d", re.IGNORECASE)
_STEPS = re.compile(r"\bsteps?\b|\bpassage \d", re.IGNORECASE)
_MARK = re.compile(r"####ANSWER:(?: <answer>)?")
_ANSWERED = re.compile(r"\banswer(?: is| must be| has to be| will be)?\W{1,4}", re.IGNORECASE)


def check_sound(question: Question, steps: Sequence[Step], position: int, said: Written, data: str = "") -> None:
    """Raise `StepRefused` for remarks that no verifier should learn to make of a sound step.

    ``steps`` is the whole trajectory, ``position`` (from 1) that of the step; ``data`` is what the
    request quoted: remarks that stand in it are none.
    """
    check_remarks(said, CORRECT, len(question.passages), position)
    if data and is_planted(said.content, KEYS, data):
        raise StepRefused("the remarks are some that the data brought along, quoted")
    step, taken = steps[position - 1], steps[:position]
    check_evidence(step, said.diagnosis)
    check_grounded(question, taken, said)
    if foretells(question, taken, steps[position:], said.guidance):
        raise StepRefused(GIVES_AWAY)


def check_evidence(step: Step, diagnosis: str) -> None:
    """Raise `StepRefused` for a diagnosis of a sound step that does not say what carries it."""
    cited = set(_PASSAGE.findall(step.text))
    if step.kind == "Attribution":
        if cited and cited.isdisjoint(_PASSAGE.findall(diagnosis)):
            raise StepRefused("the diagnosis does not name the passage that the step reads")
    elif step.number > 1 and not (_STEP if step.kind == "Logical" else _STEPS).search(diagnosis):
        raise StepRefused("the diagnosis names no step that this one rests on")


def check_grounded(question: Question, taken: Sequence[Step], said: Written) -> None:
    """Raise `StepRefused` for a remark with a name or number that stands nowhere.

    It may stand in a passage, the question or the steps, of which the last is the one in question.
    """
    pages = (*question.passages, _known(question, taken))
    for what in ("diagnosis", "guidance"):
        for value in values_in(_MARK.sub("", getattr(said, what))):
            if not stands(value, pages) and not _akin(value, pages):
                raise StepRefused(f"the {what} names what stands nowhere: {value[:80]}")


def foretells(question: Question, taken: Sequence[Step], coming: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names what only a coming step finds: the answer, or a value read there.

    The subject of the passage that the very next step cites may be named: it is what to read about.
    """
    known = _known(question, taken)
    if names_answer(question, taken, guidance):
        return True
    told = [value for value in values_in(_MARK.sub("", guidance)) if not stands(value, [known])]
    asked = _subjects(question, coming[:1])
    later = [Passage("", (step.text,)) for step in coming]
    return any(stands(value, later) and not stands(value, asked) for value in told)


def names_answer(question: Question, taken: Sequence[Step], guidance: str) -> bool:
    """Whether a guidance names the answer where no step has come to it yet.

    ``taken`` are the steps so far, the one in question included.
    """
    said, asked = words_of(guidance), words_of(question.question)
    before = words_of(_known(question, taken).text)
    for answer in map(words_of, question.accepted):
        # "Yes" and "no" are words like others, and a question may name the things to choose from:
        # there it counts whether the guidance calls one of them the answer.
        if answer in ("yes", "no") or has_words(asked, answer):
            if _calls_answer(guidance, answer) and not _concluded(taken, answer):
                return True
        elif has_words(said, answer) and not has_words(before, answer):
            return True
    return False


def _calls_answer(guidance: str, answer: str) -> bool:
    rest = (words_of(guidance[found.end() :]) for found in _ANSWERED.finditer(guidance))
    return any(f"{part} ".startswith(f"{answer} ") for part in rest)


def _concluded(taken: Sequence[Step], answer: str) -> bool:
    return any(s.kind != "Attribution" and has_words(words_of(s.text), answer) for s in taken)


def _akin(value: str, pages: Sequence[Passage]) -> bool:
    """Whether each word of a name is one that some text has with another ending, as of a nation."""
    told = set(words_of(" ".join(f"{page.title} {page.text}" for page in pages)).split())
    stems = [word[: max(4, len(word) - 3)] for word in words_of(value).split()]
    return not value[:1].isdigit() and all(any(word.startswith(stem) for word in told) for stem in stems)


def _subjects(question: Question, steps: Sequence[Step]) -> list[Passage]:
    """The titles of the passages that some steps cite, as texts to search."""
    numbers = [int(number) for step in steps for number in _PASSAGE.findall(step.text)]
    pages = [question.passages[n - 1] for n in numbers if 0 < n <= len(question.passages)]
    return [Passage("", (page.title,)) for page in pages]


def _known(question: Question, taken: Sequence[Step]) -> Passage:
    """The question and the steps so far, as a text to search."""
    return Passage("", (question.question, *(step.text for step in taken)))
