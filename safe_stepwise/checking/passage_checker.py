"""Judges steps by the passages alone, for questions without annotations.

Each claim of a step is stated by a passage that the step cites or by an accepted step, said otherwise there, found
nowhere, or not read (`support.weigh`). Whether a step is needed can't be told: only annotations give the plan.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from safe_stepwise.checking.inference import holds
from safe_stepwise.checking.step_reading import read_step
from safe_stepwise.checking.support import Finding, Support, weigh
from safe_stepwise.errors import UserError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import as_number, has_words, words_of
from safe_stepwise.language.tracing import TracedText
from safe_stepwise.records import Passage, Step
from safe_stepwise.steps import EMPHASIS, StepError, final_answer, format_step
from safe_stepwise.steps import read_step as read_reply
from safe_stepwise.store.thoughts import split_thought

SOUND, UNDECIDED, NO_STEP = "sound", "undecided", "no step"


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A judgement of one step.

    ``label``: `SOUND`, an error type, `UNDECIDED`, or `NO_STEP` for a text that is no single step; ``reason``: a
    clause, "" for a sound step; ``claims``: what the passages say of its parts. Of a claim, passage 0 are the steps
    before, and its sentence is the place of one (from 0).
    """

    label: str
    reason: str = ""
    claims: tuple[Finding, ...] = ()


def judge_steps(question: str, passages: Sequence[Passage | str], texts: Sequence[str]) -> list[PassageVerdict]:
    """Judge the steps of a chain by the passages alone, each after those before it that are no errors.

    A step may be written by the grammar ("Step 1: ... (Attribution)") or freely; one without a kind counts as an
    attribution. The claims' offsets are those of the given strings: ``span`` in the step, ``place`` in the passage
    (`text_of`), which is split into sentences here if it has only one. Raises ``UserError`` for other arguments.

    >>> page = "Dune Rain is a 1954 film. It was directed by Ors Velt."
    >>> verdicts = judge_steps("Who made it?", [page], ["Ors Velt directed Dune Rain.", "Dune Rain is a 1960 film."])
    >>> [(verdict.label, verdict.reason) for verdict in verdicts]
    [('sound', ''), ('Unsupported', "no passage has '1960'")]
    >>> [claim] = verdicts[0].claims
    >>> claim.status, claim.passage, claim.sentence, page[slice(*claim.place)]
    ('stated', 1, 1, 'It was directed by Ors Velt.')
    """
    for name, values, kind in (("passages", passages, Passage | str), ("texts", texts, str)):
        if isinstance(values, str) or not isinstance(values, Sequence) or not all(isinstance(v, kind) for v in values):
            raise UserError(f"judge_steps: {name} is no list of texts")
    if not isinstance(question, str):
        raise UserError("judge_steps: the question is no text")
    originals = [Passage("", (page,)) if isinstance(page, str) else page for page in passages]
    pages = [_split_page(page) for page in originals]
    starts = [[*_starts(text_of(page), split)] for page, split in zip(originals, pages, strict=True)]
    verdicts, accepted = list[PassageVerdict](), list[Step]()
    places: list[int] = []
    for number, text in enumerate(texts):
        try:
            step = _read_text(text, number + 1)
        except StepError as error:
            verdicts.append(PassageVerdict(NO_STEP, str(error)))
            continue
        verdict = judge_by_passages(question, pages, accepted, step)
        claims = (_placed(claim, starts, places) for claim in _claims_in(text, step.text, verdict.claims))
        verdicts.append(replace(verdict, claims=tuple(sorted(dict.fromkeys(claims), key=lambda claim: claim.span))))
        if verdict.label in (SOUND, UNDECIDED):
            accepted.append(step)
            places.append(number)
    return verdicts


def _split_page(page: Passage) -> Passage:
    """Split a passage of one text into sentences; one without a title is taken to be about the name that opens it."""
    lines = page.text.splitlines() if len(page.sentences) == 1 else []
    sentences = tuple(sentence for line in lines for sentence in split_sentences(line)) or page.sentences
    names = names_in_text(page.text) if not page.title else []
    title = names[0] if names and page.text.startswith(names[0]) else page.title
    return replace(page, title=title, sentences=sentences)


def text_of(page: Passage) -> str:
    """Return the text in which the claims' offsets are: a passage's only sentence as it is, or all of them joined."""
    return page.sentences[0] if len(page.sentences) == 1 else page.text


def _starts(text: str, page: Passage) -> Iterator[int]:
    """Yield the offset of each sentence of a passage in its text."""
    end = 0
    for sentence in map(str.strip, page.sentences):
        yield (start := text.index(sentence, end))
        end = start + len(sentence)


def _read_text(text: str, number: int) -> Step:
    """Read a step; one without number or kind gets them. Raises `StepError` for what is no single step."""
    reply = split_thought(text).text.strip()
    for form in ("{}", "{} (Attribution)", "Step {n}: {}"):
        with suppress(StepError):
            step = read_reply(form.format(reply, n=number), number)
            format_step(step)
            return step
    step = read_reply(f"Step {number}: {reply} (Attribution)", number)
    format_step(step)
    return step


def _claims_in(text: str, step_text: str, claims: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a step's claims with their spans in the text that the step was read from."""
    traced = TracedText.from_source(text)
    if step_text not in text:
        traced = traced.sub(EMPHASIS, "")
    offset = traced.text.rfind(step_text)
    for claim in claims if offset >= 0 else ():
        yield claim._replace(span=traced.source_span(*(offset + edge for edge in claim.span)))


def _placed(claim: Finding, starts: Sequence[Sequence[int]], places: Sequence[int]) -> Finding:
    """Return a claim with its sentence's offsets in the passage as it was given, or the place of an earlier step."""
    if claim.sentence is None:
        return claim
    if not claim.passage:
        return claim._replace(sentence=places[claim.sentence], place=None)
    start = starts[claim.passage - 1][claim.sentence]
    return claim._replace(place=(start, start + len(claim.quote)))


def judge_by_passages(
    question: str, passages: Sequence[Passage], previous: Sequence[Step], step: Step
) -> PassageVerdict:
    """Judge a step that follows accepted ones by the passages that it cites, or by all if it cites none.

    >>> page = Passage("Dune Rain", ("Dune Rain is a 1954 film directed by Ors Velt.",))
    >>> step = Step(1, "Passage 1 says that Ors Velt was directed by Dune Rain.", "Attribution")
    >>> judge_by_passages("Who directed Dune Rain?", [page], [], step).label
    'Contradictory'
    """
    if step.kind == "Final Answer":
        return _judge_answer(previous, step)
    reading = read_step(step.text)
    earlier = Passage("", tuple(accepted.text for accepted in previous))
    cited = [n for n in reading.cited if 0 < n <= len(passages)]
    pages = [(n, passages[n - 1]) for n in cited or range(1, len(passages) + 1)]
    if reading.cited and not cited and step.kind == "Attribution":
        return PassageVerdict("Unsupported", f"there is no Passage {reading.cited[0]}")
    if step.kind == "Logical":
        pages = [*([(0, earlier)] if previous else []), *((n, passages[n - 1]) for n in cited)]
        if holds(reading.claim) is False:
            return PassageVerdict("Logical Fallacy", "it compares two values wrongly")
    support = weigh(step.text, pages, [question, *earlier.sentences], concludes=step.kind == "Logical")
    return _verdict(step, support, previous)


def _verdict(step: Step, support: Support, previous: Sequence[Step]) -> PassageVerdict:
    support = Support(*(tuple(map(_attributed, findings)) for findings in (support.findings, support.stated)))
    claims = (*support.stated, *support.findings)
    wrong, unsupported = ("Contradictory", "Unsupported")
    if step.kind == "Logical":
        wrong = unsupported = "Logical Fallacy"
    if finding := support.contradiction:
        return PassageVerdict(wrong, finding.reason, claims)
    absent = [f for f in support.findings if f.status == "not found" and not _is_derived(f.part, previous)]
    if absent and step.kind == "Attribution":
        return PassageVerdict(unsupported, absent[0].reason, claims)
    if unproved := absent or [f for f in support.findings if f.status != "not found"]:
        return PassageVerdict(UNDECIDED, unproved[0].reason, claims)
    return PassageVerdict(SOUND, "", claims)


def _attributed(claim: Finding) -> Finding:
    """Return a claim whose reason names the steps before, which `weigh` knew as passage 0."""
    return claim._replace(reason=claim.reason.replace("Passage 0 ", "an earlier step "))


def _is_derived(value: str, previous: Sequence[Step]) -> bool:
    """Whether a number is the difference or the sum of two numbers of accepted steps."""
    number = as_number(value)
    if number is None:
        return False
    numbers = {n for step in previous for v in read_step(step.text).values if (n := as_number(v)) is not None}
    years = {float(v[-4:]) for step in previous for v in read_step(step.text).values if v[-4:].isdecimal()}
    operands = numbers | years
    return any(number in (abs(a - b), a + b) for a in operands for b in operands)


def _judge_answer(previous: Sequence[Step], step: Step) -> PassageVerdict:
    answer = words_of(final_answer(step))
    if not answer or not previous:
        return PassageVerdict(UNDECIDED, "no accepted step comes before the answer")
    if any(has_words(words_of(accepted.text), answer) for accepted in previous):
        return PassageVerdict(SOUND)
    return PassageVerdict(UNDECIDED, "no accepted step has the answer")
