"""What a reasoning step says: which passages it cites, which facts it states, what it denies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from safe_stepwise.grounding import ground
from safe_stepwise.mentions import mentions, names_in
from safe_stepwise.plans import DESCRIBED, Item
from safe_stepwise.reading import Text, clean, read
from safe_stepwise.records import Passage, Triple
from safe_stepwise.relations import RELATIONS
from safe_stepwise.statements import asked_of, is_free
from safe_stepwise.text import as_date, as_number, dates_in, normal_name
from safe_stepwise.vocabulary import word_list

_CITED = re.compile(r"\bpassages? (\d+)", re.IGNORECASE)
_REFERS = re.compile(r"\bsteps? (\d+)", re.IGNORECASE)
_SOURCE = re.compile(
    r"^(?:(?:according to|based on|from|in|per|as (?:stated|seen|given|noted) in) passage \d+"
    r"(?: \([^)]*\))?\s*[,:]?\s*"
    r"|as passage \d+ \w+\s*,\s*"
    r"|(?:about [^,]{1,80}, )?passage \d+(?: \([^)]*\))? "
    r"(?!does|do|did|is|has|gives?|lacks?|never|fails?|cannot|can|contains?)"
    r"(?:once more |again |also )?"
    r"\w+(?: of [^:“]{1,80})?(?: that|:)?\s+)",
    re.IGNORECASE,
)
_STEP_MARK = re.compile(r"\s*\((?:from |see |found in )?steps? [\d, and]+\)", re.IGNORECASE)
_STEP_LIST = re.compile(r"\bsteps? \d+(?:(?:, | and |, and )(?:step )?\d+)*", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:do(?:es)? not|did not|don't|doesn't|fails? to|never) (?:\w+ )?(?:state|mention|say|give"
    r"|provide|contain|specify|reveal|identify|name|tell|include|list|indicate|record)\w*\b"
    r"|\bno (?:information|mention|passage|indication|record|details?|evidence|statement|answer)\b"
    r"|\bnone of the passages\b|\bnowhere\b"
    r"|\bnot (?:mentioned|stated|given|specified|provided|found|available|named|recorded|included"
    r"|listed|revealed|identified|indicated)\b"
    r"|\b(?:is|are|remains?) (?:missing|absent|unknown|unclear|unspecified|unstated)\b"
    r"|\bcannot be (?:found|determined|known|established)\b"
    r"|\blacks? (?:any )?(?:information|details)\b"
    r"|\bsilent (?:on|about)\b",
    re.IGNORECASE,
)
_INTENTION = re.compile(
    r"\b(?:i|we) (?:will|shall|need|should|must|can|could|have to|want|ought|now|are going|am going"
    r"|may)\b"
    r"|\blet(?:'s|’s| us| me)\b|\bnext\b|\bthe plan\b|\bplan to\b"
    r"|\bto answer (?:the|this)\b|\bin order to\b"
    r"|\bit (?:is|will be|would be) (?:necessary|important|useful|helpful|worth|time)\b"
    r"|\bneeds? to be\b|\bshould be (?:found|looked|checked|examined)\b"
    r"|\bso far\b|\bin summary\b|\bto summari[sz]e\b|\bto recap\b"
    r"|\bremains to be\b|\bbefore going on\b"
    r"|\bthinking about\b|\bconsider(?:ing)?\b|\bhelps? (?:us )?(?:to )?(?:answer|solve)\b"
    r"|\bprogress\b|\bwe (?:have|know)\b|\bquestion (?:is|asks|has|calls)\b",
    re.IGNORECASE,
)
_STOP_WORDS = word_list("stop_words")
_TOKENS_OF_A_QUOTE = 0.6
"""Share of a sentence's words that a step has to hold to be taken as quoting it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A step's text taken apart; ``claim`` is what is left without citations and references."""

    claim: str
    cited: tuple[int, ...]
    refers: tuple[int, ...]
    page: Passage
    text: Text
    denies: bool
    announces: bool

    @property
    def words(self) -> frozenset[str]:
        """The claim's content words, cleaned."""
        return content_words(self.claim)


@lru_cache(maxsize=16384)
def read_step(text: str) -> Reading:
    """A step's text (without number and kind) taken apart.

    >>> found = read_step("According to Passage 3, Ana Vorr (from Step 1) was born in Oru.")
    >>> found.cited, found.refers, found.claim
    ((3,), (1,), 'Ana Vorr was born in Oru.')
    """
    cited = tuple(dict.fromkeys(int(n) for n in _CITED.findall(text)))
    refers = tuple(dict.fromkeys(int(n) for n in re.findall(r"\d+", " ".join(_step_lists(text)))))
    claim = _CITED.sub("the text", _STEP_MARK.sub("", _SOURCE.sub("", text)))
    claim = _STEP_LIST.sub("the steps", claim).strip()
    page = Passage("", (claim,))
    return Reading(
        claim,
        cited,
        refers,
        page,
        read(page),
        bool(_DENIAL.search(claim)),
        bool(_INTENTION.search(claim)),
    )


def _step_lists(text: str) -> list[str]:
    return [match[0] for match in _STEP_LIST.finditer(text)]


@lru_cache(maxsize=32768)
def content_words(text: str) -> frozenset[str]:
    """Cleaned words that carry meaning, cut to a stem of six letters.

    >>> sorted(content_words("The poets of Oru"))
    ['oru', 'poets']
    """
    words = (word.strip(".,;:()'") for word in clean(text).split())
    return frozenset(w[:6] for w in words if w.isalnum() and w not in _STOP_WORDS)


def coverage(words: frozenset[str], text: str) -> float:
    """Share of some content words that a text holds, from 0 to 1."""
    return len(words & content_words(text)) / len(words) if words else 0.0


def names(reading: Reading, name: str) -> bool:
    """Whether a step mentions a name, date or number."""
    date = as_date(name)
    if date:
        return any(found.year and found.agrees(date) for found in dates_in(reading.text.clean))
    if mentions(reading.text, name):
        return True
    words = clean(name)
    return f" {words} " in f" {reading.text.clean.replace(' . ', ' ')} "


def states(reading: Reading, item: Item, passages: Sequence[Passage]) -> bool:
    """Whether a step states the fact of a plan's item, in whatever words."""
    if reading.denies:
        return False
    if item.sentence is not None:
        return _quotes(reading, item, passages)
    first = item.triples[0]
    if is_free(first):
        return names(reading, first.tail) and answers_question(reading, item)
    return any(says(reading, triple) for triple in item.triples)


def says(reading: Reading, triple: Triple) -> bool:
    """Whether a step states a triple whose relation has a wording of its own."""
    if triple.relation in RELATIONS:
        found = ground(triple.head, triple.relation, triple.tail, [(1, reading.page)])
        return found.status == "stated"
    return names(reading, triple.head) and names(reading, triple.tail)


def answers_question(reading: Reading, item: Item) -> bool:
    """Whether a step speaks of the question that a free hop asks."""
    question = content_words(asked_of(item.triples))
    if names(reading, item.triples[0].head) and item.triples[0].head != item.triples[0].tail:
        return True
    return len(question & reading.words) >= max(1, len(question) / 2)


def _quotes(reading: Reading, item: Item, passages: Sequence[Passage]) -> bool:
    assert item.sentence is not None
    triple = item.triples[0]
    assert triple.passage is not None
    passage = passages[triple.passage - 1]
    if triple.relation == DESCRIBED or not names_key(passage, item):
        return quoted_share(reading, item, passages) >= _TOKENS_OF_A_QUOTE
    about = item.passage in reading.cited if reading.cited else names(reading, passage.title)
    return about and any(names(reading, key) for key in names_key(passage, item))


def names_key(passage: Passage, item: Item) -> tuple[str, ...]:
    """The names that make a quoted sentence the link it is: ends of its triple that it gives."""
    assert item.sentence is not None
    sentence = read(Passage("", (passage.sentences[item.sentence],)))
    ends = [name for t in item.triples for name in (t.tail, t.head)]
    others = [name for name in ends if normal_name(name) != normal_name(passage.title)]
    return tuple(dict.fromkeys(n for n in others if mentions(sentence, n)))


def quoted_share(reading: Reading, item: Item, passages: Sequence[Passage]) -> float:
    """Share of the words of an item's sentence that a step holds, from 0 to 1."""
    assert item.sentence is not None
    assert item.passage is not None
    sentence = passages[item.passage - 1].sentences[item.sentence]
    return coverage(content_words(sentence), reading.claim)


def values(reading: Reading) -> tuple[str, ...]:
    """Names, dates and numbers that a step gives, as it writes them."""
    found = [written for written, _ in names_in(reading.page).values()]
    dates = dates_in(reading.claim)
    found += [reading.claim[d.start : d.end] for d in dates if d.year]
    spans = [(d.start, d.end) for d in dates]
    for match in re.finditer(r"\b\d[\d,.]*\b", reading.claim):
        if not any(a <= match.start() < b for a, b in spans) and as_number(match[0]) is not None:
            found.append(match[0])
    return tuple(dict.fromkeys(found))
