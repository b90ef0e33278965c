"""Confirms labels by a second witness: one simple rule for each error type, none of which uses the checker.

The checker reads claims by `checking.step_reading` and `checking.claims`. If it misreads a step of a generator,
its label is wrong, and nothing in the checker would show it. So these rules look at words, names and numbers alone
(`values`), and share only the plan's facts with the checker. They are strict: a label that no rule confirms is not
used, which costs one row.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from builders.steps.values import PATTERNS, occurs_in, occurs_in_any, values_in, words
from safe_stepwise.checking.plans import DESCRIBED, NAMES, Plan
from safe_stepwise.language.text import as_date, dates_in, has_words, normal_name, normal_words
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Question, Step, Triple
from safe_stepwise.scoring import normalize_answer
from safe_stepwise.steps import final_answer
from safe_stepwise.taxonomy import CORRECT, check_order

MUCH_ALIKE = 0.6
"""Share of a step's words that a text has to contain to count as its source."""
SAME_QUOTE = 0.7
"""Likeness (`difflib`, by words) of a quotation and the sentence in which it changes a value."""
MAX_STEP_CHARS = 2000
"""The most characters of a step; the patterns below are not made for longer ones."""

_QUOTED = re.compile(r"“([^”]*)”|\"([^\"]*)\"")
_CITED = re.compile(r"\bpassages? (\d{1,9})", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:; |, but )(?=[^“”]*(?:“[^”]*”[^“”]*)*$)")
"""Separates two clauses, except inside a quotation."""
_CITATION = re.compile(r"\b(?:passage|step)s? \d+", re.IGNORECASE)
_DENIES = re.compile(PATTERNS["denial"], re.IGNORECASE)
_OF_THE_TEXT = re.compile(PATTERNS["text_words"], re.IGNORECASE)
_CONCLUDES = re.compile(PATTERNS["conclusion"], re.IGNORECASE)
_GIVES_ANSWER = re.compile(PATTERNS["answering"], re.IGNORECASE)
_FRAME = words("frame") | word_list("stop_words")


def bears_out(label: str, plan: Plan, question: Question, previous: Sequence[Step], step: Step) -> bool:
    """Whether the rule of a label (one of eleven) confirms it for a step after the accepted ones.

    ``Correct`` has a rule too: every name and number of the step is where the step says, and no rule of an error
    fires.
    """
    if any(len(candidate.text) > MAX_STEP_CHARS for candidate in (*previous, step)):
        return False
    view = _StepView(question, plan, tuple(previous), step)
    if label != CORRECT:
        return label in check_order(step.kind) and label in _RULES and _RULES[label](view)
    return _correct(view) and not any(rule(view) for name in check_order(step.kind) if (rule := _RULES.get(name)))


@dataclass(frozen=True, slots=True)
class _StepView:
    """A step with its question, its plan and the steps before it."""

    question: Question
    plan: Plan
    previous: tuple[Step, ...]
    step: Step

    @property
    def facts(self) -> list[Triple]:
        return [triple for item in self.plan.items for triple in item.triples]

    @property
    def unread(self) -> list[Triple]:
        """The facts that no earlier step gives."""
        return [t for t in self.facts if not any(_gives(step.text, t) for step in self.previous)]

    @property
    def claim(self) -> str:
        """The text of the step without clauses that say that another passage is silent."""
        clauses = _CLAUSE.split(self.step.text)
        affirming = [clause for clause in clauses if not _denies(clause)]
        read = {number for clause in affirming for number in _CITED.findall(clause)}
        silent = {n for clause in clauses if clause not in affirming for n in _CITED.findall(clause)}
        return "; ".join(affirming) if read and not read & silent else self.step.text

    @property
    def text(self) -> Passage:
        return Passage("", (_CITATION.sub("it", self.claim),))

    @property
    def unquoted(self) -> str:
        """The claim with each quotation replaced by X."""
        return _QUOTED.sub(" X ", self.claim)

    @property
    def quotations(self) -> list[str]:
        return [curly or straight for curly, straight in _QUOTED.findall(self.claim)]

    @property
    def numbers(self) -> set[int]:
        """Numbers of the passages that the step cites and that exist."""
        return {n for n in map(int, _CITED.findall(self.unquoted)) if 0 < n <= len(self.question.passages)}

    @property
    def cited(self) -> list[Passage]:
        return [self.question.passages[n - 1] for n in sorted(self.numbers)]

    @property
    def context(self) -> Passage:
        return Passage("", (self.question.question, *(_CITATION.sub("it", step.text) for step in self.previous)))

    @property
    def denies(self) -> bool:
        """Whether the step says, outside of quotations, that the text lacks something."""
        return _denies(self.claim)

    @property
    def answers(self) -> bool:
        """Whether the step has the answer, or a rival answer of a comparison."""
        rivals = () if self.plan.kind == "sequential" else (t.head for t in self.facts)
        question = normal_words(self.question.question)
        named_rivals = [r for r in rivals if has_words(question, normal_name(r))]
        return any(_has(self.step.text, name) for name in (*self.question.accepted, *named_rivals))

    @property
    def is_accepted(self) -> bool:
        """Whether the step's final answer counts as right."""
        return normalize_answer(final_answer(self.step)) in map(normalize_answer, self.question.accepted)

    def has_answer(self, texts: Iterable[str]) -> bool:
        return any(_has(text, answer) for text in texts for answer in self.question.accepted)


def _overthinking(view: _StepView) -> bool:
    """Whether an earlier step concludes the answer."""
    return view.has_answer(end for step in view.previous for end in _conclusions(step.text))


def _off_topic(view: _StepView) -> bool:
    """Whether most of the step's words are in a sentence of a cited passage that has no value of the plan."""
    if view.denies or not view.cited or _strange(view, [*view.cited, view.context]):
        return False
    if any(_gives(view.step.text, triple) for triple in view.facts):
        return False
    words = _words(view.text.text)
    return any(
        _share(words, f"{page.title} {sentence}") >= MUCH_ALIKE
        and not any(_stated_in(sentence, page, t.tail) for t in view.facts)
        for page in view.cited
        for sentence in page.sentences
    )


def _redundancy(view: _StepView) -> bool:
    """Whether an earlier step has most of the step's words, and all of its names and numbers."""
    if view.denies:
        return False
    words, values = _words(view.text.text), values_in(view.text.text)
    return any(
        _share(words, step.text) >= MUCH_ALIKE
        and any(occurs_in(v, Passage("", (step.text,))) for v in values)
        and not _strange(view, [Passage("", (step.text, view.question.question))])
        for step in view.previous
        if step.kind == view.step.kind  # to conclude from a fact is not to repeat it
    )


def _inefficiency(view: _StepView) -> bool:
    """Whether the step has no fact, no possible answer, and no new name or number."""
    if view.denies or view.answers or _GIVES_ANSWER.search(view.claim):
        return False
    if any(_gives(view.step.text, t) or _holds(view.text, t.tail) for t in view.unread):
        return False
    return not any(_gives(view.step.text, triple) for triple in view.facts) and not _strange(view, [view.context])


def _contradictory(view: _StepView) -> bool:
    """Whether the step has a fact's subject, and another value of the same sort instead of the fact's."""
    if view.denies:
        return False
    return _misquotes(view) or any(_alters(view, triple) for triple in view.facts)


def _alters(view: _StepView, triple: Triple) -> bool:
    number = triple.passage
    if number is None or not 0 < number <= len(view.question.passages):
        return False
    page = view.question.passages[number - 1]
    if (view.numbers and number not in view.numbers) or not _holds(page, triple.tail):
        return False
    if not _holds(view.text, triple.head) or _holds(view.text, triple.tail):
        return False
    altered_values = [
        value
        for value in values_in(view.text.text)
        if _is_number(value) == _is_number(triple.tail) and not occurs_in(value, page) and not _has(triple.head, value)
    ]
    return bool(altered_values) and _same_words(view, triple, page)


def _same_words(view: _StepView, triple: Triple, page: Passage) -> bool:
    """Whether the step names the relation, or has a word of a sentence that gives the value."""
    claim_words = _words(view.text.text) - _words(f"{triple.head} {triple.tail} {page.title}")
    sentences = [sentence for sentence in page.sentences if _stated_in(sentence, page, triple.tail)]
    return any(claim_words & _words(words) for words in (*sentences, triple.relation))


def _misquotes(view: _StepView) -> bool:
    """Whether a quotation equals a sentence of a cited passage except for a name or number."""
    pages = view.cited or view.question.passages
    return any(
        any(not occurs_in_any(v, pages) for v in values_in(f": {quotation}"))
        and any(_alike(quotation, sentence) >= SAME_QUOTE for page in pages for sentence in page.sentences)
        for quotation in view.quotations
    )


def _unsupported(view: _StepView) -> bool:
    """Whether a name or number of the step, outside of quotations, is in no cited passage."""
    if view.denies or not view.cited or _contradictory(view):
        return False
    if any(_quoted_from_elsewhere(view, quotation) for quotation in view.quotations):
        return True
    values = values_in(_CITATION.sub("it", view.unquoted))
    return any(value != "X" and not occurs_in_any(value, [*view.cited, view.context]) for value in values)


def _quoted_from_elsewhere(view: _StepView, quotation: str) -> bool:
    """Whether the quotation is from a passage that is not cited."""
    other_pages = [p for n, p in enumerate(view.question.passages, 1) if n not in view.numbers]
    likeness = max((_alike(quotation, sentence) for page in view.cited for sentence in page.sentences), default=0.0)
    return likeness < MUCH_ALIKE and any(_has(page.text, quotation) for page in other_pages)


def _information_miss(view: _StepView) -> bool:
    """Whether the step denies a fact while a cited or gold passage has a value that is still to be read."""
    pages = [*view.cited, *(page for _, page in view.question.gold)]
    return view.denies and any(_holds(page, t.tail) for t in view.unread for page in pages)


def _premature(view: _StepView) -> bool:
    """Whether the step gives the value of a fact whose subject neither question nor earlier steps name."""
    for triple in view.facts:
        if _holds(view.context, triple.head) or not _holds(view.text, triple.tail):
            continue
        links = [t for t in view.facts if normal_name(t.tail) == normal_name(triple.head)]
        if any(_holds(view.text, name) for t in links for name in (triple.head, t.head)):
            return True
    return False


def _fallacy(view: _StepView) -> bool:
    """Whether the step concludes another answer."""
    ends = list(_conclusions(view.step.text))[-1:]
    if view.has_answer(ends):
        return False
    return any(values_in(f": {end}") or _has(end, "yes") or _has(end, "no") for end in ends)


def _correct(view: _StepView) -> bool:
    """Whether everything in the step is in its sources, and the step does what the plan requires."""
    if view.step.kind == "Final Answer":
        return view.is_accepted and not view.unread
    if view.step.kind == "Logical":
        return view.has_answer(_conclusions(view.step.text)) and not view.unread and not _strange(view, [view.context])
    read = [t for t in view.unread if t.passage in view.numbers and _gives(view.step.text, t)]
    if not read or view.denies or _strange(view, [*view.cited, view.context]):
        return False
    if not all(_word_for_word(view, quotation) for quotation in view.quotations):
        return False
    # What joins the names has to be the passage's word, too: who edited a film did not direct it.
    texts = [f"{page.title} {page.text}" for page in (*view.cited, view.context)]
    return _words(view.text.text) <= _words(" ".join([*texts, *(t.relation for t in read)]))


def _word_for_word(view: _StepView, quotation: str) -> bool:
    """Whether a cited passage has the quotation, also with its subject for a pronoun, or the question has it."""
    if any(_has(page.text, quotation) for page in (_question_words(view), *view.cited)):
        return True
    without_subject = [normal_words(quotation).removeprefix(normal_words(page.title)) for page in view.cited]
    return any(_has(page.text, text) for page, text in zip(view.cited, without_subject, strict=True))


_RULES: Mapping[str, Callable[[_StepView], bool]] = {
    "Overthinking": _overthinking,
    "Off-topic": _off_topic,
    "Redundancy": _redundancy,
    "Inefficiency": _inefficiency,
    "Contradictory": _contradictory,
    "Unsupported": _unsupported,
    "Information Miss": _information_miss,
    "Premature Attribution": _premature,
    "Logical Fallacy": _fallacy,
    "Wrong Conclusion": lambda view: not view.is_accepted or bool(view.unread),
}


def _strange(view: _StepView, pages: Sequence[Passage]) -> bool:
    """Whether no text has some name, number or date of the step; quoted values have to be in a cited passage."""
    if any(not occurs_in_any(value, pages) for value in values_in(view.text.text)):
        return True
    quoted = (value for quotation in view.quotations for value in values_in(f": {quotation}"))
    if view.cited and any(not occurs_in_any(v, [*view.cited, _question_words(view)]) for v in quoted):
        return True
    dates = [date for date in dates_in(view.text.text) if date.year]
    text_dates = [date for page in pages for date in dates_in(f"{page.title} {page.text}")]
    return any(not any(date.agrees(text_date) for text_date in text_dates) for date in dates)


def _question_words(view: _StepView) -> Passage:
    """Return the question and the words of its hops, as a step may quote either."""
    hop_words = [triple.relation for triple in view.facts] + [triple.head for triple in view.facts]
    return Passage("", (view.question.question, *hop_words))


def _holds(page: Passage, value: str) -> bool:
    """Whether a text has a value; a date may have another form."""
    if date := as_date(value):
        return any(text_date.year and text_date.agrees(date) for text_date in dates_in(f"{page.title} {page.text}"))
    return occurs_in(value, page) or _has(page.text, value)


def _gives(text: str, triple: Triple) -> bool:
    """Whether a step gives a fact: its value, with its subject or from its passage."""
    stripped = Passage("", (_CITATION.sub("it", text),))
    if not _holds(stripped, triple.tail):
        return False
    if triple.relation in (NAMES, DESCRIBED):
        return str(triple.passage) in _CITED.findall(text)
    return _holds(stripped, triple.head)


def _denies(text: str) -> bool:
    unquoted = _QUOTED.sub(" X ", text)
    return bool(_DENIES.search(unquoted) and _OF_THE_TEXT.search(unquoted))


def _stated_in(sentence: str, page: Passage, value: str) -> bool:
    """Whether a sentence gives a value, its passage's own subject aside."""
    return normal_name(value) != normal_name(page.title) and _holds(Passage("", (sentence,)), value)


def _has(text: str, words: str) -> bool:
    return bool(normal_words(words)) and has_words(normal_words(text), normal_words(words))


def _is_number(value: str) -> bool:
    return bool(as_date(value)) or value[:1].isdigit()


def _conclusions(text: str) -> Iterator[str]:
    """Yield the text after each word that introduces a conclusion."""
    return (text[match.end() :] for match in _CONCLUDES.finditer(text))


def _words(text: str) -> frozenset[str]:
    """Return the content words of a text, cut to stems of six letters."""
    return frozenset(word[:6] for word in normal_words(text).split() if word not in _FRAME)


def _share(words: frozenset[str], text: str) -> float:
    return len(words & _words(text)) / len(words) if words else 0.0


def _alike(text: str, reference: str) -> float:
    if max(len(text), len(reference)) > MAX_STEP_CHARS:
        return 0.0
    return difflib.SequenceMatcher(None, normal_words(text).split(), normal_words(reference).split()).ratio()
