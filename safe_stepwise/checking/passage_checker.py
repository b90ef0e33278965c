"""Judges steps by the passages alone, for questions without annotations.

Each claim of a step is stated by a passage that the step cites or by an accepted step, said otherwise there, found
nowhere, or not read (`support.weigh`). Whether a step is needed can't be told: only annotations give the plan.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from safe_stepwise.checking import inference
from safe_stepwise.checking.inference import Measure, comparatives_in, conclusion_of, holds
from safe_stepwise.checking.step_reading import Reading, read_step
from safe_stepwise.checking.support import Finding, Support, is_asserted, weigh
from safe_stepwise.errors import UserError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import as_date, as_number, has_words, words_of
from safe_stepwise.language.tracing import TracedText
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Step
from safe_stepwise.steps import EMPHASIS, StepError, final_answer, format_step
from safe_stepwise.steps import read_step as read_reply
from safe_stepwise.store.thoughts import split_thought

SOUND, UNDECIDED, NO_STEP, SEARCH = "sound", "undecided", "no step", "search"
_LIST_MARKS = re.compile(r"\A\s*+(?:\(?\d{1,3}[.)]|\[\d{1,3}\])\s+(?=\S)|\s*+\[\d{1,3}\]\W*\Z")
_FINAL_ANSWER = re.compile(
    r"(?:step \d{1,3} ?: ?)?[*_]*(?:final )?answer ?[*_]*:(?!.*\(final answer\)$)", re.IGNORECASE
)
_STOP_WORDS = word_list("stop_words")
_NUMBER = re.compile(r"\d[\d,.]*(?: (?:thousand|million|billion))?")


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A judgement of one step.

    ``label``: `SOUND`, an error type, `UNDECIDED`, `SEARCH` for a text that only searches, and not again, or `NO_STEP`
    for a text that is no single step; ``reason``: a clause, "" for a sound step; ``claims``: what the passages say of
    its parts. Of a claim, passage 0 are the steps before, and its sentence is the place of one (from 0).
    """

    label: str
    reason: str = ""
    claims: tuple[Finding, ...] = ()


def judge_steps(
    question: str,
    passages: Sequence[Passage | str],
    texts: Sequence[str],
    known_passages: Sequence[int | None] = (),
    searches: Collection[int] = (),
) -> list[PassageVerdict]:
    """Judge the steps of a chain by the passages alone, each after those before it that are no errors.

    A step may be written by the grammar ("Step 1: ... (Attribution)") or freely; one without a kind counts as an
    attribution. The claims' offsets are those of the given strings: ``span`` in the step, ``place`` in the passage
    (`text_of`), which is split into sentences here if it has only one. ``known_passages`` is the number of the first
    passages that the model had been shown, by step (None: all), ``searches`` the indices of texts that only search.
    Raises ``UserError`` for other arguments.

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
    pages = [split_page(page) for page in originals]
    starts = [[*_starts(text_of(page), split)] for page, split in zip(originals, pages, strict=True)]
    verdicts, accepted = list[PassageVerdict](), list[Step]()
    sought, places = list[Step](), list[int]()
    for number, text in enumerate(texts):
        if number in searches:
            search = Step(number + 1, text, "Attribution")
            verdicts.append(judge_search(sought, search))
            sought.append(search)
            continue
        try:
            step = read_free_step(text, number + 1)
        except StepError as error:
            verdicts.append(PassageVerdict(NO_STEP, str(error)))
            continue
        verdict = judge_by_passages(
            question, pages[: known_passages[number] if known_passages else None], accepted, step
        )
        claims = (_placed(claim, starts, places) for claim in _claims_in(text, step.text, verdict.claims))
        verdicts.append(replace(verdict, claims=tuple(sorted(dict.fromkeys(claims), key=lambda claim: claim.span))))
        if verdict.label in (SOUND, UNDECIDED):
            accepted.append(step)
            places.append(number)
    return verdicts


def split_page(page: Passage) -> Passage:
    """Split a passage of one text into sentences; one without a title is taken to be about the name that opens it."""
    lines = page.text.splitlines() if len(page.sentences) == 1 else []
    sentences = tuple(sentence for line in lines for sentence in split_sentences(line)) or page.sentences
    names = names_in_text(page.text) if not page.title else ()
    title = names[0] if names and page.text.startswith(names[0]) else page.title
    return replace(page, title=title, sentences=sentences)


def text_of(page: Passage) -> str:
    """Return the text in which the claims' offsets are: a passage's only sentence as it is, or all of them joined."""
    return page.sentences[0] if len(page.sentences) == 1 else page.text


def _starts(text: str, page: Passage) -> Iterator[int]:
    end = 0
    for sentence in map(str.strip, page.sentences):
        yield (start := text.index(sentence, end))
        end = start + len(sentence)


def read_free_step(text: str, number: int) -> Step:
    """Read a step; one without number or kind gets them. Raises `StepError` for what is no single step.

    A list's mark before it and a note's number after it ("2) Oru is old [1].") are no words of the step.
    """
    reply = _LIST_MARKS.sub("", split_thought(text).text).strip()
    if _FINAL_ANSWER.match(reply):
        reply += " (Final Answer)"
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
    measures = [measure for accepted in previous if (measure := _measure_of(accepted))]
    if step.kind == "Final Answer":
        return _judge_answer(question, measures, previous, words_of(final_answer(step)))
    if not any(page.text.strip() for page in passages):
        return PassageVerdict(UNDECIDED, "no passage was known when it was written")
    reading = read_step(step.text)
    earlier = Passage("", tuple(accepted.text for accepted in previous))
    cited = reading.pages_in(passages)
    pages = cited or list(enumerate(passages, 1))
    absent = [number for number in reading.cited if not 0 < number <= len(passages)]
    if absent and step.kind == "Attribution":
        return PassageVerdict("Unsupported", f"there is no Passage {absent[0]}")
    is_logical = step.kind == "Logical"
    if is_logical:
        pages = [*([(0, earlier)] if previous else []), *cited]
    if is_logical and holds(reading.claim) is False:
        return PassageVerdict("Logical Fallacy", "it compares two values wrongly")
    context = [question, *earlier.sentences]
    support = weigh(step.text, pages, context, concludes=is_logical)
    words = set(words_of(step.text).split())
    sources = [page for _, page in pages]
    if not (cited or is_logical):
        sources = [page for page in sources if words & set(words_of(page.title).split()) - _STOP_WORDS] or sources
    verdict = _verdict(step, support, [earlier, *sources])
    if verdict.label not in (SOUND, UNDECIDED):
        return verdict
    is_right = holds(reading.claim, measures)
    if is_logical and verdict.label == UNDECIDED and inference.says_the_answer(reading):
        answer = words_of(inference.conclusion_of(reading.claim)).strip(" .")
        if (concluded := _judge_answer(question, measures, previous, answer)).label == SOUND:
            return replace(concluded, claims=verdict.claims)
    if is_right and is_asserted(step.text, pages, context):
        return replace(verdict, label=SOUND, reason="")
    if verdict.label == UNDECIDED or is_right:
        return verdict
    if is_right is False or _compares(question, measures, [earlier, *sources], reading):
        return replace(verdict, label=UNDECIDED, reason="no values of the steps before bear out what it compares")
    return verdict


def judge_search(earlier: Sequence[Step], step: Step) -> PassageVerdict:
    """Judge a step that only searches, after ``earlier`` ones that do: it may have been searched for before.

    >>> judge_search([Step(1, "Search: where is Oru", "Attribution")], Step(2, "Search: Oru", "Attribution")).label
    'Redundancy'
    """
    words, *known_words = (set(words_of(search.text).split()) - _STOP_WORDS for search in (step, *earlier))
    if any(words <= before for before in known_words):
        return PassageVerdict("Redundancy", "an earlier step has searched for it")
    return PassageVerdict(SEARCH)


def _measure_of(step: Step) -> Measure | None:
    """Return the only date or number of a read fact that opens with a name; None if it tells no known event."""
    reading = read_step(step.text)
    values = [value for value in reading.values if value[:1].isdigit() or as_date(value)]
    names = [value for value in reading.values if value not in values]
    openings = [
        name for name in names if re.match(rf"(?:the )?{re.escape(name)}(?!['’\w])", reading.claim, re.IGNORECASE)
    ]
    if step.kind != "Attribution" or len(values) != 1 or not openings:
        return None
    measure = inference.measure_of(openings[0], values[0], reading.claim)
    return measure if measure and measure.event else None


def _compares(question: str, measures: Sequence[Measure], sources: Sequence[Passage], reading: Reading) -> bool:
    """Whether a step compares in words that sources lack, or answers a comparison that no accepted values decide."""
    cues = comparatives_in(reading.claim)
    words = words_of(" ".join(source.text for source in sources)) if cues else ""
    if not all(has_words(words, words_of(cue)) for cue in cues):
        return True
    is_answer = inference.says_the_answer(reading) and bool(comparatives_in(question))
    return is_answer and not _answers(question, measures, conclusion_of(reading.claim))


def _answers(question: str, measures: Sequence[Measure], answer: str) -> bool | None:
    """Whether a name in a text is the one that a question which compares asks for ("Who is older, Ana or Edo?")."""
    names = [measure.name for measure in measures if has_words(words_of(answer), words_of(measure.name))]
    return holds(f"{names[0]} : {question.partition(',')[0]}", measures) if len({*names}) == 1 else None


def _verdict(step: Step, support: Support, sources: Sequence[Passage]) -> PassageVerdict:
    """Label a step by the findings; ``sources`` are the accepted steps and the passages that it is about."""
    # `weigh` knew the steps before as passage 0.
    findings, proved = (
        tuple(claim._replace(reason=claim.reason.replace("Passage 0 ", "an earlier step ")) for claim in claims)
        for claims in (support.findings, support.stated)
    )
    support, claims = Support(findings, proved), (*proved, *findings)
    if finding := support.contradiction:
        return PassageVerdict("Logical Fallacy" if step.kind == "Logical" else "Contradictory", finding.reason, claims)
    absent = [f for f in support.findings if f.status == "not found" and not _may_be_meant(f.part, sources)]
    if absent and step.kind == "Attribution":
        return PassageVerdict("Unsupported", absent[0].reason, claims)
    if unproved := absent or support.findings:
        return PassageVerdict(UNDECIDED, unproved[0].reason, claims)
    return PassageVerdict(SOUND, "", claims)


def _may_be_meant(part: str, sources: Sequence[Passage]) -> bool:
    """Whether sources have a name without its title or initials, or numbers whose difference or sum a number is."""
    text = " ".join(source.text for source in sources)
    number = as_number(part)
    if number is None:
        words, known_words = words_of(part).split(), set(words_of(text).split())
        full = [word for word in words if len(word) > 1 and word not in word_list("honorifics")]
        return len(full) < len(words) and known_words.issuperset(full)
    numbers = {n for match in _NUMBER.finditer(text) if (n := as_number(match[0])) is not None}
    is_year = part.isdecimal() and len(part) > 3
    return number in numbers or (
        not is_year and any(not numbers.isdisjoint((number - n, number + n)) for n in numbers)
    )


def _judge_answer(question: str, measures: Sequence[Measure], previous: Sequence[Step], answer: str) -> PassageVerdict:
    """Judge an answer in words: values of accepted steps decide it, or the last step or conclusion alone names it."""
    if not answer or not previous:
        return PassageVerdict(UNDECIDED, "no accepted step comes before the answer")
    is_right = _answers(question, measures, answer) if comparatives_in(question) else None
    concluding = [s for s in previous if s.kind == "Logical" or inference.concludes(read_step(s.text))][-1:]
    if not comparatives_in(question):  # else a fact that was read may be of either side
        concluding.append(previous[-1])
    if is_right is None:
        is_right = any(_concludes(question, accepted, answer) for accepted in concluding)
    if is_right:
        return PassageVerdict(SOUND)
    return PassageVerdict(UNDECIDED, "no accepted step concludes the answer")


def _concludes(question: str, accepted: Step, answer: str) -> bool:
    """Whether a step concludes an answer; of the names of a question, only one that it lets choose from is one."""
    reading, asked = read_step(accepted.text), words_of(question)
    clause = words_of(conclusion_of(reading.claim) or reading.claim)
    if not has_words(asked, answer):
        return has_words(clause, answer)
    names = {name for name in map(words_of, reading.values) if has_words(asked, name) and has_words(clause, name)}
    return has_words(asked, "or") and names == {answer}
