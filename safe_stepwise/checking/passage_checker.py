"""Judges steps by the passages alone, for questions without annotations.

Each claim of a step is stated by a passage that the step cites or by an accepted step, contradicted there, found
nowhere, or not read (`support.weigh`). Whether a step is needed stays unknown, as only annotations give a plan.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from safe_stepwise.checking import inference
from safe_stepwise.checking.inference import Measure, comparatives_in, comparisons_hold, conclusion_of
from safe_stepwise.checking.step_reading import Reading, read_step
from safe_stepwise.checking.support import Finding, Support, is_asserted, weigh
from safe_stepwise.errors import UserError
from safe_stepwise.language.grounding import stated_dates
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.language.syntax import names_in_text
from safe_stepwise.language.text import TracedText, as_date, as_number, has_words, normal_words
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Passage, Step
from safe_stepwise.steps import ANSWER_MARKER, EMPHASIS, StepError, final_answer, format_step
from safe_stepwise.steps import read_step as read_reply
from safe_stepwise.store.thoughts import split_thought

SOUND, UNDECIDED, NO_STEP, SEARCH = "sound", "undecided", "no step", "search"
_LIST_MARKS = re.compile(r"\A\s*+(?:\(?\d{1,3}[.)]|\[\d{1,3}\])\s+(?=\S)|\s*+\[\d{1,3}\]\W*\Z")
_FINAL_ANSWER = wording("passage_checker", "final_answer", re.IGNORECASE)
_NAME = r"(?:the )?[A-Z\d][\w'’-]{0,60}(?: (?:(?:of|the|and|de|von) ){0,2}[A-Z\d][\w'’-]{0,60}){0,8}"
_CALLED_ANSWER = wording("passage_checker", "called_answer", answer=_NAME)
"""Only an answer: a name or number, or yes or no."""
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_OTHER_CITATION = re.compile(
    rf"\bthe ({'|'.join(_ORDINALS)}) passage\b(?! of\b)|\bpassage (?:#|no\. ?|number )(\d{{1,9}})\b", re.IGNORECASE
)
"""A citation in other words than "Passage 2"."""
_STOP_WORDS = word_list("stop_words")
_FULL_YEAR = re.compile(r"\b\d{4}\b")
_NUMBER = re.compile(r"\d[\d,.]*(?: (?:thousand|million|billion))?")


@dataclass(frozen=True, slots=True)
class PassageVerdict:
    """A judgement of one step.

    ``label``: `SOUND`, an error type, `UNDECIDED`, `SEARCH` for the first search of its kind, or `NO_STEP` for a text
    that is not a single step; ``reason``: a clause, "" for a sound step; ``claims``: what the passages say about its
    parts. In a claim, passage 0 means the earlier steps, of which ``sentence`` is one's index (from 0).
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
    """Judge the steps of a chain only by the passages, each after the earlier steps that are not errors.

    A step may follow the grammar ("Step 1: ... (Attribution)") or be free text; without a kind it counts as an
    attribution. The claims' offsets refer to the given strings: ``span`` to the step, ``place`` to the passage
    (`text_of`). ``known_passages`` has, for each step, how many of the passages the model had been shown before it
    (None: all); ``searches`` has the indices of texts that only search.
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
            raise UserError(f"judge_steps: {name} must be a list of texts")
    if not isinstance(question, str):
        raise UserError("judge_steps: the question must be a text")
    originals = [Passage("", (page,)) if isinstance(page, str) else page for page in passages]
    pages = [split_page(page) for page in originals]
    starts = [[*_find_starts(text_of(page), split)] for page, split in zip(originals, pages, strict=True)]
    verdicts, accepted = list[PassageVerdict](), list[Step]()
    earlier_searches, places = list[Step](), list[int]()
    for number, text in enumerate(texts):
        if number in searches:
            search = Step(number + 1, text, "Attribution")
            verdicts.append(judge_search(earlier_searches, search))
            earlier_searches.append(search)
            continue
        try:
            step = read_written_step(text, number + 1)
        except StepError as error:
            verdicts.append(PassageVerdict(NO_STEP, str(error)))
            continue
        known_pages = pages[: known_passages[number] if known_passages else None]
        verdict = judge_by_passages(question, known_pages, accepted, step)
        if verdict.label == UNDECIDED and step.kind == "Final Answer" and _CALLED_ANSWER.match(text.strip()):
            step = read_free_step(text, number + 1)  # a passage may state it as a claim
            verdict = judge_by_passages(question, known_pages, accepted, step)
        claims = (_locate_in_original(claim, starts, places) for claim in _claims_in(text, step.text, verdict.claims))
        verdicts.append(replace(verdict, claims=tuple(sorted(dict.fromkeys(claims), key=lambda claim: claim.span))))
        if verdict.label in (SOUND, UNDECIDED):
            accepted.append(step)
            places.append(number)
    return verdicts


@lru_cache(maxsize=4096)
def judge_last(
    question: str, passages: tuple[Passage, ...], previous: tuple[Step, ...], step: Step, searches: frozenset[int]
) -> PassageVerdict:
    """Judge a step after those before it that are no errors, or an answer after those that are proved (cached)."""
    if step.number in searches:
        return judge_search([earlier for earlier in previous if earlier.number in searches], step)
    labels = [
        judge_last(question, passages, previous[:n], earlier, searches).label for n, earlier in enumerate(previous)
    ]
    allowed = (SOUND,) if step.kind == "Final Answer" else (SOUND, UNDECIDED)
    claims = ((label, s) for label, s in zip(labels, previous, strict=True) if s.number not in searches)
    accepted = [s for label, s in claims if label in allowed]
    return judge_by_passages(question, [*map(split_page, passages)], accepted, step)


@lru_cache(maxsize=4096)
def split_page(page: Passage) -> Passage:
    """Split a passage of one text into sentences; without a title, it gets the name that opens it as its title."""
    lines = page.text.splitlines() if len(page.sentences) == 1 else []
    sentences = tuple(sentence for line in lines for sentence in split_sentences(line)) or page.sentences
    names = names_in_text(page.text) if not page.title else ()
    title = names[0] if names and page.text.startswith(names[0]) else page.title
    return replace(page, title=title, sentences=sentences)


def text_of(page: Passage) -> str:
    """Return the text that claims' offsets refer to: a passage's only sentence, or all its sentences joined."""
    return page.sentences[0] if len(page.sentences) == 1 else page.text


def _find_starts(text: str, page: Passage) -> Iterator[int]:
    """Yield the offset of each sentence of a passage in its text."""
    end = 0
    for sentence in map(str.strip, page.sentences):
        yield (start := text.index(sentence, end))
        end = start + len(sentence)


def read_written_step(text: str, number: int) -> Step:
    """Read a step of a chain as a model may write it, and put its answer and citations into the form of the grammar.

    Raises `StepError` for a text that is not a single step.
    """
    return read_free_step(_in_grammar(text), number)


def read_free_step(text: str, number: int) -> Step:
    """Read a step, and add its number or kind if it has none. Raises `StepError` for a text that is not a single step.

    A list mark before it and a note's number after it ("2) Oru is old [1].") are removed.
    """
    reply = _LIST_MARKS.sub("", split_thought(text).text).strip()
    if _FINAL_ANSWER.match(reply):
        reply += " (Final Answer)"
    *forms, full_form = ("{}", "{} (Attribution)", "Step {n}: {}", "Step {n}: {} (Attribution)")
    for form in forms:
        with suppress(StepError):
            return _read_form(form.format(reply, n=number), number)
    return _read_form(full_form.format(reply, n=number), number)


def _read_form(reply: str, number: int) -> Step:
    step = read_reply(reply, number)
    format_step(step)  # raises for a text that the grammar can't write
    return step


def _in_grammar(text: str) -> str:
    """Return a text with its answer and citations in the form of the grammar.

    >>> _in_grammar("So the answer is Oru."), _in_grammar("The second passage says that Oru is old.")
    ('####ANSWER: Oru (Final Answer)', 'Passage 2 says that Oru is old.')
    """
    if answer := _CALLED_ANSWER.match(_LIST_MARKS.sub("", text).strip()):
        return f"{ANSWER_MARKER} {answer[1]} (Final Answer)"
    return _OTHER_CITATION.sub(_cite, text)


def _cite(citation: re.Match[str]) -> str:
    return f"Passage {citation[2] or _ORDINALS.index(citation[1].lower()) + 1}"


def _claims_in(text: str, step_text: str, claims: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a step's claims with their spans in the text that the step was read from."""
    traced = TracedText.from_source(text)
    if step_text not in text:
        traced = traced.sub(EMPHASIS, "").sub(_OTHER_CITATION, _cite)
    offset = traced.text.rfind(step_text)
    for claim in claims if offset >= 0 else ():
        yield claim._replace(span=traced.source_span(*(offset + edge for edge in claim.span)))


def _locate_in_original(claim: Finding, starts: Sequence[Sequence[int]], places: Sequence[int]) -> Finding:
    """Return a claim with its sentence's offsets in the given passage, or with the index of an earlier step."""
    if claim.sentence is None:
        return claim
    if not claim.passage:
        return claim._replace(sentence=places[claim.sentence], place=None)
    start = starts[claim.passage - 1][claim.sentence]
    return claim._replace(place=(start, start + len(claim.quote)))


def judge_by_passages(
    question: str, passages: Sequence[Passage], previous: Sequence[Step], step: Step
) -> PassageVerdict:
    """Judge a step that follows accepted steps by the passages that it cites, or by all if it cites none.

    >>> page = Passage("Dune Rain", ("Dune Rain is a 1954 film directed by Ors Velt.",))
    >>> step = Step(1, "Passage 1 says that Ors Velt was directed by Dune Rain.", "Attribution")
    >>> judge_by_passages("Who directed Dune Rain?", [page], [], step).label
    'Contradictory'
    """
    measures = [measure for accepted in previous if (measure := _find_measure(accepted))]
    if step.kind == "Final Answer":
        return _judge_answer(question, measures, previous, normal_words(final_answer(step)))
    if not any(page.text.strip() for page in passages):
        return PassageVerdict(UNDECIDED, "no passage was known when it was written")
    reading = read_step(step.text)
    earlier = Passage("", tuple(accepted.text for accepted in previous))
    cited = reading.cited_passages(passages)
    pages = cited or list(enumerate(passages, 1))
    absent = [number for number in reading.cited if not 0 < number <= len(passages)]
    if absent and step.kind == "Attribution":
        return PassageVerdict("Unsupported", f"there is no Passage {absent[0]}")
    is_logical = step.kind == "Logical"
    if is_logical:
        pages = [*([(0, earlier)] if previous else []), *cited]
    if is_logical and comparisons_hold(reading.claim) is False:
        return PassageVerdict("Logical Fallacy", "it compares two values wrongly")
    context = [question, *earlier.sentences]
    support = weigh(step.text, pages, context, accepted=earlier.sentences, concludes=is_logical)
    words = set(normal_words(step.text).split())
    sources = [page for _, page in pages]
    if not (cited or is_logical):
        sources = [page for page in sources if words & set(normal_words(page.title).split()) - _STOP_WORDS] or sources
    verdict = _label_by_support(step, support, [earlier, *sources])
    if verdict.label not in (SOUND, UNDECIDED):
        return verdict
    if comparatives_in(reading.claim) and inference.tells_event(reading.claim):
        dated = [*_find_measures(sources)]
        names = {measure.name for measure in measures}
        measures += [measure for measure in dated if measure.name not in names]
        context += [measure.name for measure in dated]
    is_right = comparisons_hold(reading.claim, measures)
    if is_right is False and is_asserted(step.text, pages, context):
        label = "Logical Fallacy" if is_logical else "Contradictory"
        return replace(verdict, label=label, reason="the dates that it compares say otherwise")
    if is_logical and verdict.label == UNDECIDED and inference.says_the_answer(reading):
        answer = normal_words(conclusion_of(reading.claim)).strip(" .")
        if (concluded := _judge_answer(question, measures, previous, answer)).label == SOUND:
            return replace(concluded, claims=verdict.claims)
    if is_right and is_asserted(step.text, pages, context):
        return replace(verdict, label=SOUND, reason="")
    if verdict.label == UNDECIDED or is_right:
        return verdict
    if is_right is False or _lacks_values(question, measures, [earlier, *sources], reading):
        return replace(verdict, label=UNDECIDED, reason="no values of the steps before bear out what it compares")
    return verdict


def judge_search(earlier: Sequence[Step], step: Step) -> PassageVerdict:
    """Judge a step that only searches: it is redundant if an ``earlier`` search has all its words.

    >>> judge_search([Step(1, "Search: where is Oru", "Attribution")], Step(2, "Search: Oru", "Attribution")).label
    'Redundancy'
    """
    words, *known_words = (set(normal_words(search.text).split()) - _STOP_WORDS for search in (step, *earlier))
    if any(words <= before for before in known_words):
        return PassageVerdict("Redundancy", "an earlier step has searched for it")
    return PassageVerdict(SEARCH)


def _find_measures(passages: Sequence[Passage]) -> Iterator[Measure]:
    """Yield the birth and death, or else the release, that each passage dates for its subject, if it has one date."""
    for page in passages:
        if not page.title:
            continue
        measures: list[Measure] = []
        for relation in ("date of birth", "date of death", "publication date"):
            dates = {text for _, text in stated_dates(page, relation) if _FULL_YEAR.search(text)}
            measure = inference.measure_of(page.title, dates.pop(), relation) if len(dates) == 1 else None
            if measure and not (relation == "publication date" and measures):
                measures.append(measure)
        yield from measures


def _find_measure(step: Step) -> Measure | None:
    """Return the only date or number that a step reads for the name it opens with; None for other steps."""
    reading = read_step(step.text)
    values = [value for value in reading.values if value[:1].isdigit() or as_date(value)]
    names = (value for value in reading.values if value not in values)
    patterns = ((name, rf"(?:the )?{re.escape(name)}(?!['’\w])") for name in names)
    openings = [name for name, pattern in patterns if re.match(pattern, reading.claim, re.IGNORECASE)]
    if step.kind != "Attribution" or len(values) != 1 or not openings:
        return None
    measure = inference.measure_of(openings[0], values[0], reading.claim)
    return measure if measure and measure.event else None


def _lacks_values(question: str, measures: Sequence[Measure], sources: Sequence[Passage], reading: Reading) -> bool:
    """Whether a step compares in words that sources lack, or answers a comparison without deciding values."""
    cues = comparatives_in(reading.claim)
    words = normal_words(" ".join(source.text for source in sources)) if cues else ""
    if not all(has_words(words, normal_words(cue)) for cue in cues):
        return True
    is_answer = inference.says_the_answer(reading) and bool(comparatives_in(question))
    return is_answer and not _decides_for(question, measures, conclusion_of(reading.claim))


def _decides_for(question: str, measures: Sequence[Measure], answer: str) -> bool | None:
    """Whether measures decide a question ("Who is older, Ana or Edo?") for the name in an answer; None if open."""
    names = [measure.name for measure in measures if has_words(normal_words(answer), normal_words(measure.name))]
    return comparisons_hold(f"{names[0]} : {question.partition(',')[0]}", measures) if len({*names}) == 1 else None


def _label_by_support(step: Step, support: Support, sources: Sequence[Passage]) -> PassageVerdict:
    """Label a step by the findings; ``sources`` are the accepted steps and the passages that it is about."""
    # Passage 0 stands for the earlier steps.
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
    """Whether sources have a name without its title or initials, or a number as a sum, difference or age."""
    text = " ".join(source.text for source in sources)
    number = as_number(part)
    if number is None:
        words, known_words = normal_words(part).split(), set(normal_words(text).split())
        full_words = [word for word in words if len(word) > 1 and word not in word_list("honorifics")]
        return len(full_words) < len(words) and known_words.issuperset(full_words)
    numbers = {n for match in _NUMBER.finditer(text) if (n := as_number(match[0])) is not None}
    is_year = part.isdecimal() and len(part) > 3
    is_result = any(not numbers.isdisjoint((number - n, number + n, number + n + 1)) for n in numbers)
    return number in numbers or (is_result and not is_year)


def _judge_answer(question: str, measures: Sequence[Measure], previous: Sequence[Step], answer: str) -> PassageVerdict:
    """Judge an answer: the values of accepted steps decide it, or the last step or conclusion names it."""
    if not answer or not previous:
        return PassageVerdict(UNDECIDED, "no accepted step comes before the answer")
    is_right = _decides_for(question, measures, answer) if comparatives_in(question) else None
    concluding = [s for s in previous if s.kind == "Logical" or conclusion_of(read_step(s.text).claim)][-1:]
    if not comparatives_in(question):  # else a fact that was read may be of either side
        concluding.append(previous[-1])
    if is_right is None:
        is_right = any(_concludes_answer(question, accepted, answer) for accepted in concluding)
    if is_right:
        return PassageVerdict(SOUND)
    return PassageVerdict(UNDECIDED, "no accepted step concludes the answer")


def _concludes_answer(question: str, accepted: Step, answer: str) -> bool:
    """Whether a step concludes an answer; a name in the question counts only if the question offers it as a choice."""
    reading, question_words = read_step(accepted.text), normal_words(question)
    clause = normal_words(conclusion_of(reading.claim) or reading.claim)
    if not has_words(question_words, answer):
        return has_words(clause, answer)
    names = {
        name
        for name in map(normal_words, reading.values)
        if has_words(question_words, name) and has_words(clause, name)
    }
    return has_words(question_words, "or") and names == {answer}
