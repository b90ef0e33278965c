"""Quotes the evidence that a step names, for verdicts that begin with their evidence (rows for training a verifier).

The evidence is found by words alone: for a citation, the sentence of the cited passages with most words of step and
diagnosis; for a derivation, the values that its steps found; for a final answer, the value of the last step. The
*claim* is the step's own value (a name or number). After a passage's sentence comes where its names and the claim
first appeared: a new subject has no support, and an old claim adds nothing.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from safe_stepwise.feedback import Evidence, diagnosis_of
from safe_stepwise.records import Feedback, Passage, Step
from safe_stepwise.steps import ANSWER_MARKER
from safe_stepwise.taxonomy import ENTRIES

NOTHING = "nothing"
"""The evidence of a step that names none, or the claim of a step without a value."""
NEW = "new"
"""The origin of a name that neither the question nor a step has."""

_PASSAGE = re.compile(r"\bPassages? (\d+)")
_STEPS = re.compile(r"\b[Ss]teps? \d+(?:(?:,| and|, and) (?:[Ss]tep )?\d+)*")
_PLACE = re.compile(rf"{_STEPS.pattern}|\bPassages? \d+")
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"\w+")
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w'’.-]*"
_DATE = rf"{_CAPITAL} \d\d?, \d{{4}}|\d\d? {_CAPITAL} \d{{4}}"
_GOES_ON = r"(?<!\w{3}\.) (?:(?:of|the|in|and|de) )?"  # not behind a full stop, but behind "Jr."
_VALUE = re.compile(rf"{_DATE}|{_CAPITAL}(?:{_GOES_ON}{_CAPITAL})*|\d[\d,.]*\d|\d")
_LINK = re.compile(r"^(?:of|the|in|and|de) ")
_OWNS = re.compile(r"['’]s$")
_OPENS = re.compile(r"(?:^|[.!?:] +)\W*$")


def with_evidence(
    feedback: Feedback, question: str, passages: Sequence[Passage], previous: Sequence[Step], step: Step
) -> Feedback:
    """Return a verdict whose diagnosis is replaced by its evidence.

    >>> page = Passage("Ors", ("Ors was born in Tesk.",))
    >>> step = Step(1, "According to Passage 1, Ors was born in Ardle.", "Attribution")
    >>> wrong = Feedback("Contradictory", "It was Tesk.", "Read it again.")
    >>> with_evidence(wrong, "Where was Ors born?", [page], [], step).diagnosis
    'Passage 1: Ors was born in Tesk. Ors: question. Tesk: new. Ardle: new. Step: Ardle. Different.'
    """
    label = ENTRIES[feedback.error_type]
    rests_on_nothing = label.comparison == "absent" and not label.gives_value
    evidence = NOTHING if rests_on_nothing else _evidence(feedback, question, passages, previous, step)
    compared = "absent" if evidence == NOTHING else label.comparison
    context = " ".join([question, *(page.text for page in passages), *(s.text for s in previous)])
    earlier_text = " ".join([question, *(s.text for s in previous)])
    claim = _claim(step, evidence, compared == "same", context, earlier_text) if label.gives_value else NOTHING
    if step.kind == "Attribution" and evidence != NOTHING:
        titles = " ".join(page.title for page in passages)
        evidence = " ".join([evidence, *_places(evidence, claim, question, previous, titles)])
    return replace(feedback, diagnosis=diagnosis_of(Evidence(evidence, claim, compared)))


def _places(quoted: str, claim: str, question: str, previous: Sequence[Step], titles: str) -> Iterator[str]:
    """Yield the origins of the names in a sentence, and of the claim."""
    sources = [("question", question), *((f"Step {n}", s.text) for n, s in enumerate(previous, 1))]
    names = [n for n in _values(quoted, titles) if n not in claim and claim not in n]
    for name in dict.fromkeys([*names, claim]):
        if name != NOTHING:
            yield f"{name}: {next((place for place, text in sources if name in text), NEW)}."


def _evidence(
    feedback: Feedback, question: str, passages: Sequence[Passage], previous: Sequence[Step], step: Step
) -> str:
    """Word the evidence of a step, each part with its place before it."""
    if step.kind == "Attribution":
        return _quotation(f"{step.text} {feedback.diagnosis}", passages, step)
    numbers = [len(previous)]
    if step.kind == "Logical":
        numbers_cited = (_NUMBER.findall(match[0]) for match in _STEPS.finditer(step.text))
        numbers = [*dict.fromkeys(int(n) for group in numbers_cited for n in group)]
    numbers_present = [n for n in numbers if 0 < n <= len(previous)]
    findings = (f"Step {n}: {_new_value(question, previous[: n - 1], previous[n - 1])}." for n in numbers_present)
    return " ".join(findings) or NOTHING


def _quotation(text: str, passages: Sequence[Passage], step: Step) -> str:
    """Quote the sentence with most values and words of a text, from the passages that the text cites."""
    mentioned = (int(n) for n in _PASSAGE.findall(text))
    cited = [n for n in dict.fromkeys(mentioned) if 0 < n <= len(passages)]
    quoted = [(n, s.strip()) for n in cited for s in passages[n - 1].sentences]
    values = [*_values(step.text, " ".join(page.text for page in passages))]
    words = _words(text)

    fits = lambda pair: (sum(value in pair[1] for value in values), len(words & _words(pair[1])))  # noqa: E731
    best = max(quoted, key=fits, default=None)
    return NOTHING if best is None else f"Passage {best[0]}: {best[1]}"


def _new_value(question: str, before: Sequence[Step], step: Step) -> str:
    """Return the value that an accepted step found: the last that was not known before it."""
    earlier_text = " ".join([question, *(earlier.text for earlier in before)])
    values = [*_values(step.text, earlier_text)]
    return ([value for value in values if value not in earlier_text] or values or [NOTHING])[-1]


def _claim(step: Step, evidence: str, agrees: bool, context: str, earlier_text: str) -> str:
    """Return a step's value: the last new one that is in its evidence or, unless ``agrees``, is not."""
    if step.kind == "Final Answer":
        return step.text.removeprefix(ANSWER_MARKER).strip()
    values = [*_values(step.text, context)]
    fitting = [value for value in values if (value in evidence) == agrees]
    new = [value for value in fitting if value not in earlier_text]
    return (new or fitting or values or [NOTHING])[-1]


def _values(text: str, context: str) -> Iterator[str]:
    """Yield a step's names and numbers, without references; a sentence's first word only if ``context`` has it so."""
    text = _PLACE.sub("", text)
    lower = frozenset(_WORD.findall(f"{text} {context}"))
    for match in _VALUE.finditer(text):
        value = _OWNS.sub("", match[0].rstrip(".,'’-"))
        first, _, remainder = value.partition(" ")
        opens = _OPENS.search(text[: match.start()])
        if opens and (first not in context or (not remainder and first.lower() in lower)):
            value = _LINK.sub("", remainder)
            value = value if value[:1].isupper() else ""
        if value and value != "I":
            yield value


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
