"""A second witness of labels: one simple rule an error type, none of which asks the checker.

The checker reads claims by `checking.step_reading` and `checking.claims`; where it misreads a step that a generator
wrote, its label is wrong and nothing of its own would show it. So these rules look at words, names and numbers alone
(`values`), with the plan's facts as the only thing in common. They are meant to miss: a label that no rule bears out
is left out, which costs a row and no more.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from builders.steps.values import stands, stands_in, values_in, words
from safe_stepwise.checking.plans import DESCRIBED, NAMES, Plan
from safe_stepwise.language.text import as_date, dates_in, has_words, normal_name, words_of
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Question, Step, Triple
from safe_stepwise.scoring import normalize_answer
from safe_stepwise.steps import final_answer
from safe_stepwise.taxonomy import CORRECT, check_order

MUCH_ALIKE = 0.6
"""Share of a step's words that an earlier step or a sentence has to hold, to be what it says."""
SAME_QUOTE = 0.7
"""Likeness (`difflib`, by words) of a quotation and the sentence that it changes a value of."""
LONGEST_STEP = 2000
"""Characters of a step that is read at all; the patterns below are made for no more."""

_QUOTED = re.compile(r"“([^”]*)”|\"([^\"]*)\"")
_CITED = re.compile(r"\bpassages? (\d{1,9})", re.IGNORECASE)
_CLAUSE = re.compile(r"(?:; |, but )(?=[^“”]*(?:“[^”]*”[^“”]*)*$)")
"""What parts two clauses, unless a quotation is open."""
_PLACE = re.compile(r"\b(?:passage|step)s? \d+", re.IGNORECASE)
_DENIES = re.compile(
    r"\b(?:no|not|none|nothing|nowhere|neither|nor|never|cannot|silent|missing|absent|unknown"
    r"|unclear|unstated|unspecified|lacks?|omits?|fails?)\b|n['’]t\b",
    re.IGNORECASE,
)
_OF_THE_TEXT = re.compile(
    r"\b(?:passages?|texts?|documents?|context|information|evidence|mention\w*|stat(?:e|es|ed)|says?"
    r"|said|giv(?:e|es|en)|found|find|specif\w+|provid\w+)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:answer(?: to the question)? (?:is|was|must be|has to be)|answer:|(?:asks|asked) for is"
    r"|so(?! far\b| good\b)|therefore|thus|hence|follows that|conclu\w+ that|means that|shows that"
    r"|which makes)\b",
    re.IGNORECASE,
)
_GIVES_ANSWER = re.compile(
    r"\banswer\b[^.:]{0,200}?(?: is | was | must be |: )|\b(?:asks|asked) for is\b", re.IGNORECASE
)
_FRAME = words("frame") | word_list("stop_words")


def bears_out(label: str, plan: Plan, question: Question, previous: Sequence[Step], step: Step) -> bool:
    """Whether the rule of a label (of the eleven) fires on a step after those accepted before it.

    ``Correct`` has to be shown too: every name and number of the step stands where it says, and no
    rule of an error fires.
    """
    if any(len(one.text) > LONGEST_STEP for one in (*previous, step)):
        return False
    seen = _Seen(question, plan, tuple(previous), step)
    if label != CORRECT:
        return label in check_order(step.kind) and label in _RULES and _RULES[label](seen)
    return _correct(seen) and not any(rule(seen) for name in check_order(step.kind) if (rule := _RULES.get(name)))


@dataclass(frozen=True, slots=True)
class _Seen:
    """A step among what it may rest on."""

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
    def said(self) -> str:
        """The step without its remarks that some other passage is silent."""
        clauses = _CLAUSE.split(self.step.text)
        rest = [clause for clause in clauses if not _denies(clause)]
        read = {number for clause in rest for number in _CITED.findall(clause)}
        silent = {n for clause in clauses if clause not in rest for n in _CITED.findall(clause)}
        return "; ".join(rest) if read and not read & silent else self.step.text

    @property
    def text(self) -> Passage:
        return Passage("", (_PLACE.sub("it", self.said),))

    @property
    def own(self) -> str:
        """The step without what it quotes."""
        return _QUOTED.sub(" X ", self.said)

    @property
    def quotations(self) -> list[str]:
        return [first or second for first, second in _QUOTED.findall(self.said)]

    @property
    def numbers(self) -> set[int]:
        """The passages that the step cites, as far as they are there."""
        cited = map(int, _CITED.findall(self.own))
        return {n for n in cited if 0 < n <= len(self.question.passages)}

    @property
    def cited(self) -> list[Passage]:
        return [self.question.passages[n - 1] for n in sorted(self.numbers)]

    @property
    def known(self) -> Passage:
        """The question and the earlier steps."""
        return Passage("", (self.question.question, *(_PLACE.sub("it", step.text) for step in self.previous)))

    @property
    def denies(self) -> bool:
        """Whether it says, outside of quotations, that the text lacks something."""
        return _denies(self.said)

    @property
    def answers(self) -> bool:
        """Whether it holds the answer, or what a comparison could have for one."""
        rivals = () if self.plan.kind == "sequential" else (t.head for t in self.facts)
        asked = words_of(self.question.question)
        there = [r for r in rivals if has_words(asked, normal_name(r))]
        return any(_has(self.step.text, name) for name in (*self.question.accepted, *there))

    @property
    def is_accepted(self) -> bool:
        """Whether its final answer is one that counts as right."""
        return normalize_answer(final_answer(self.step)) in map(normalize_answer, self.question.accepted)

    def has_answer(self, texts: Iterable[str]) -> bool:
        """Whether one of some texts has the answer."""
        return any(_has(text, answer) for text in texts for answer in self.question.accepted)


# ------------------------------------------------------------------------------ what is procedural


def _overthinking(seen: _Seen) -> bool:
    """An earlier step gives the answer as what follows."""
    return seen.has_answer(end for step in seen.previous for end in _conclusions(step.text))


def _off_topic(seen: _Seen) -> bool:
    """Most of it stands in a sentence of a cited passage that holds no value of the plan."""
    if seen.denies or not seen.cited or _strange(seen, [*seen.cited, seen.known]):
        return False
    if any(_gives(seen.step.text, triple) for triple in seen.facts):
        return False
    words = _words(seen.text.text)
    return any(
        _share(words, f"{page.title} {sentence}") >= MUCH_ALIKE
        and not any(_told_in(sentence, page, t.tail) for t in seen.facts)
        for page in seen.cited
        for sentence in page.sentences
    )


def _redundancy(seen: _Seen) -> bool:
    """An earlier step has most of its words, and all of its names and numbers."""
    if seen.denies:
        return False
    words, values = _words(seen.text.text), values_in(seen.text.text)
    return any(
        _share(words, step.text) >= MUCH_ALIKE
        and any(stands_in(v, Passage("", (step.text,))) for v in values)
        and not _strange(seen, [Passage("", (step.text, seen.question.question))])
        for step in seen.previous
        if step.kind == seen.step.kind  # to conclude from a fact is not to repeat it
    )


def _inefficiency(seen: _Seen) -> bool:
    """Neither a fact, nor an answer or what could be one, nor any name or number that is new."""
    if seen.denies or seen.answers or _GIVES_ANSWER.search(seen.said):
        return False
    if any(_gives(seen.step.text, t) or _holds(seen.text, t.tail) for t in seen.unread):
        return False
    repeats = any(_gives(seen.step.text, triple) for triple in seen.facts)
    return not repeats and not _strange(seen, [seen.known])


# ----------------------------------------------------------------------------- what passages decide


def _contradictory(seen: _Seen) -> bool:
    """It has a fact's subject, and in the place of its value another of that sort."""
    if seen.denies:
        return False
    return _misquotes(seen) or any(_alters(seen, triple) for triple in seen.facts)


def _alters(seen: _Seen, triple: Triple) -> bool:
    number = triple.passage
    if number is None or not 0 < number <= len(seen.question.passages):
        return False
    page = seen.question.passages[number - 1]
    if (seen.numbers and number not in seen.numbers) or not _holds(page, triple.tail):
        return False
    if not _holds(seen.text, triple.head) or _holds(seen.text, triple.tail):
        return False
    others = [
        value
        for value in values_in(seen.text.text)
        if _is_number(value) == _is_number(triple.tail) and not stands_in(value, page) and not _has(triple.head, value)
    ]
    return bool(others) and _same_words(seen, triple, page)


def _same_words(seen: _Seen, triple: Triple, page: Passage) -> bool:
    """Whether the step names the relation, or has a word of a sentence that gives the value."""
    named = _words(f"{triple.head} {triple.tail} {page.title}")
    said = _words(seen.text.text) - named
    telling = [one for one in page.sentences if _told_in(one, page, triple.tail)]
    return any(said & _words(words) for words in (*telling, triple.relation))


def _misquotes(seen: _Seen) -> bool:
    """Whether a quotation is a sentence of a cited passage but for a name or number in it."""
    pages = seen.cited or seen.question.passages
    return any(
        any(not stands(v, pages) for v in values_in(f": {said}"))
        and any(_alike(said, one) >= SAME_QUOTE for page in pages for one in page.sentences)
        for said in seen.quotations
    )


def _unsupported(seen: _Seen) -> bool:
    """A name or number that it does not quote stands in no passage that it cites."""
    if seen.denies or not seen.cited or _contradictory(seen):
        return False
    if any(_quoted_from_elsewhere(seen, said) for said in seen.quotations):
        return True
    own = values_in(_PLACE.sub("it", seen.own))
    return any(value != "X" and not stands(value, [*seen.cited, seen.known]) for value in own)


def _quoted_from_elsewhere(seen: _Seen, said: str) -> bool:
    """Whether another passage than those cited has a sentence that is quoted word for word."""
    others = [p for n, p in enumerate(seen.question.passages, 1) if n not in seen.numbers]
    near = max((_alike(said, one) for page in seen.cited for one in page.sentences), default=0.0)
    return near < MUCH_ALIKE and any(_has(page.text, said) for page in others)


def _information_miss(seen: _Seen) -> bool:
    """It denies, and a value that is still to be read stands in a passage cited, or a gold one."""
    pages = [*seen.cited, *(page for _, page in seen.question.gold)]
    return seen.denies and any(_holds(page, t.tail) for t in seen.unread for page in pages)


def _premature(seen: _Seen) -> bool:
    """It gives the value of a fact whose subject neither the question nor an earlier step names."""
    for triple in seen.facts:
        if _holds(seen.known, triple.head) or not _holds(seen.text, triple.tail):
            continue
        links = [t for t in seen.facts if normal_name(t.tail) == normal_name(triple.head)]
        if any(_holds(seen.text, one) for t in links for one in (triple.head, t.head)):
            return True
    return False


# -------------------------------------------------------------------------------- what is concluded


def _fallacy(seen: _Seen) -> bool:
    """What it concludes is another answer."""
    ends = list(_conclusions(seen.step.text))[-1:]
    if seen.has_answer(ends):
        return False
    return any(values_in(f": {end}") or _has(end, "yes") or _has(end, "no") for end in ends)


def _wrong_conclusion(seen: _Seen) -> bool:
    """Another answer, or one for which a fact is still to be read."""
    return not seen.is_accepted or bool(seen.unread)


def _correct(seen: _Seen) -> bool:
    """All that it says stands where it is to stand, and it does what a plan has it do."""
    if seen.step.kind == "Final Answer":
        return seen.is_accepted and not seen.unread
    if seen.step.kind == "Logical":
        return seen.has_answer(_conclusions(seen.step.text)) and not seen.unread and not _strange(seen, [seen.known])
    read = [t for t in seen.unread if t.passage in seen.numbers and _gives(seen.step.text, t)]
    if not read or seen.denies or _strange(seen, [*seen.cited, seen.known]):
        return False
    if not all(_word_for_word(seen, said) for said in seen.quotations):
        return False
    # What joins the names has to be the passage's word, too: who edited a film did not direct it.
    there = [f"{page.title} {page.text}" for page in (*seen.cited, seen.known)]
    return _words(seen.text.text) <= _words(" ".join([*there, *(t.relation for t in read)]))


def _word_for_word(seen: _Seen, said: str) -> bool:
    """Whether a cited passage has a quotation, its subject for a pronoun, or a hop asks it."""
    if any(_has(text, said) for text in (_asked(seen).text, *(page.text for page in seen.cited))):
        return True
    rest = [words_of(said).removeprefix(words_of(page.title)) for page in seen.cited]
    return any(_has(page.text, one) for page, one in zip(seen.cited, rest, strict=True))


_RULES: Mapping[str, Callable[[_Seen], bool]] = {
    "Overthinking": _overthinking,
    "Off-topic": _off_topic,
    "Redundancy": _redundancy,
    "Inefficiency": _inefficiency,
    "Contradictory": _contradictory,
    "Unsupported": _unsupported,
    "Information Miss": _information_miss,
    "Premature Attribution": _premature,
    "Logical Fallacy": _fallacy,
    "Wrong Conclusion": _wrong_conclusion,
}


# ------------------------------------------------------------------------------------------- words


def _strange(seen: _Seen, pages: Sequence[Passage]) -> bool:
    """Whether a name, number or date of the step stands in none of some texts.

    What is quoted has to stand in a passage that is cited, whatever else is known.
    """
    if any(not stands(value, pages) for value in values_in(seen.text.text)):
        return True
    quoted = (value for said in seen.quotations for value in values_in(f": {said}"))
    if seen.cited and any(not stands(v, [*seen.cited, _asked(seen)]) for v in quoted):
        return True
    dates = [date for date in dates_in(seen.text.text) if date.year]
    there = [date for page in pages for date in dates_in(f"{page.title} {page.text}")]
    return any(not any(date.agrees(other) for other in there) for date in dates)


def _asked(seen: _Seen) -> Passage:
    """The question, and what its hops ask: a step may quote either."""
    asked = [triple.relation for triple in seen.facts] + [triple.head for triple in seen.facts]
    return Passage("", (seen.question.question, *asked))


def _holds(page: Passage, value: str) -> bool:
    """Whether a text gives a value; of a date, in whatever form."""
    if date := as_date(value):
        return any(one.year and one.agrees(date) for one in dates_in(f"{page.title} {page.text}"))
    return stands_in(value, page) or _has(page.text, value)


def _gives(text: str, triple: Triple) -> bool:
    """Whether a step gives a fact: its value, with its subject or from its passage."""
    said = Passage("", (_PLACE.sub("it", text),))
    if not _holds(said, triple.tail):
        return False
    if triple.relation in (NAMES, DESCRIBED):
        return str(triple.passage) in _CITED.findall(text)
    return _holds(said, triple.head)


def _denies(text: str) -> bool:
    own = _QUOTED.sub(" X ", text)
    return bool(_DENIES.search(own) and _OF_THE_TEXT.search(own))


def _told_in(sentence: str, page: Passage, value: str) -> bool:
    """Whether a sentence gives a value, its passage's own subject aside."""
    return normal_name(value) != normal_name(page.title) and _holds(Passage("", (sentence,)), value)


def _has(text: str, words: str) -> bool:
    return bool(words_of(words)) and has_words(words_of(text), words_of(words))


def _is_number(value: str) -> bool:
    return bool(as_date(value)) or value[:1].isdigit()


def _conclusions(text: str) -> Iterator[str]:
    """What stands behind each word that concludes, to the end of the text."""
    return (text[found.end() :] for found in _CONCLUDES.finditer(text))


def _words(text: str) -> frozenset[str]:
    """Words that carry meaning, cut to a stem of six letters."""
    return frozenset(word[:6] for word in words_of(text).split() if word not in _FRAME)


def _share(words: frozenset[str], text: str) -> float:
    return len(words & _words(text)) / len(words) if words else 0.0


def _alike(one: str, other: str) -> float:
    if max(len(one), len(other)) > LONGEST_STEP:
        return 0.0
    return difflib.SequenceMatcher(None, words_of(one).split(), words_of(other).split()).ratio()
