"""What a reasoning step says: which passages it cites, which facts it states, what it denies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from safe_stepwise.checking.plans import DESCRIBED, Item
from safe_stepwise.checking.statements import asked_of, is_free
from safe_stepwise.language.grounding import ground
from safe_stepwise.language.mentions import first_mention, mentions, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.relations import RELATIONS, cue_pattern
from safe_stepwise.language.text import as_date, as_number, dates_in, normal_name
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage, Triple

_CITED = re.compile(r"\bpassages? (\d+)", re.IGNORECASE)
_REFERS = re.compile(r"\bsteps? (\d+)", re.IGNORECASE)
_FRAME = re.compile(
    r"^[^“]{0,80}?\bpassages? \d+\b(?: \([^)]*\))?[^,:.“]{0,60}?"
    r"(?:[,:\])]|\.(?=\s)|\bthat\b|(?=“))\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^[^“]{0,80}?\b[Pp]assages? \d+(?:[a-z'’,;!\s]|\bI\b|\bSteps? \d+)*:\s+")
_SUFFIX = re.compile(
    r"\s*[,;(\[–—]\s*[^,;:(\[“”]{0,50}\bpassages? \d+\b[^,;“”]{0,30}$", re.IGNORECASE
)
_SHORTEST_CLAIM = 3
"""Words that have to be left for what stands around a citation to be taken off."""
_STEP_MARK = re.compile(r"\s*\((?:from |see |found in )?steps? [\d, and]+\)", re.IGNORECASE)
_STEP_LIST = re.compile(r"\bsteps? \d+(?:(?:, | and |, and )(?:step )?\d+)*", re.IGNORECASE)
_NOT = re.compile(
    r"\b(?:not|no|none|never|nothing|nowhere|neither|nor|cannot|impossible|unable|without)\b|n['’]t\b"
    r"|\b(?:silent|missing|absent|omits?|lacks?|fails?)\b",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:states?|stated|mention\w*|says?|said|gives?|given|provide\w*|contain\w*|specif\w*|reveal\w*"
    r"|identif\w*|names?|named|tells?|told|includ\w*|indicat\w*|record\w*|answer\w*|find|found|cover\w*"
    r"|determin\w*|resolv\w*|addressed|unaddressed|information|details?|data|evidence|idea|light|use"
    r"|silent|unspecified|unknown|unstated|unclear|there|here|out|clear|known|learn\w*|about|on)\b",
    re.IGNORECASE,
)
_OF_THE_TEXT = re.compile(r"\b(?:passages?|text|context|excerpts?|documents?)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"\b(?:is|are|remains?|left|leaves?)\b[^.]{0,60}?"
    r"\b(?:missing|absent|unknown|unclear|unspecified|unstated|unaddressed|unanswered|open|out)\b"
    r"|\b(?:do|does|did) not (?:mention|state|say|specify)\b",
    re.IGNORECASE,
)
_NOT_ASSERTED = re.compile(
    r"\b(?:will|shall|must|should|would|could|may|might|let(?:'s|’s)?|ought)\b"
    r"|\b(?:have|has|need|needs|want|wants|going|is|are|remains?|next|important|necessary|time"
    r"|helpful|useful) to\b|\bin order to\b|\bto answer\b|\bso far\b|\bprogress\b"
    r"|\b(?:the|this) question\b|\bin summary\b|\bto (?:summari[sz]e|recap)\b|\?\W*$",
    re.IGNORECASE,
)
_NOT_OURS = re.compile(r"“[^”]*”|(?<=[\w,;:] )[A-Z]\w*")
"""Quoted words and capitalised ones within a sentence, as of titles ("I Cannot Say Farewell")."""
_STOP_WORDS = word_list("stop_words")
_OPENER = re.compile(
    rf"^(?:(?:{'|'.join(sorted(_STOP_WORDS | word_list('step_openers')))})\b\s*)+", re.IGNORECASE
)
_OF_A_NATION = re.compile(r"\b(?:countr|nation|citizen|origin)")
_LEADS_ON = re.compile(r"(?: (?:of|the|de))+$")
_QUESTION = re.compile(r"“([^”]+\?)”")
_SAME_QUESTION = 0.8
"""Share of a hop's content words that a quoted question must have to be that hop's."""
_OF_THE_SENTENCE = 0.7
"""Share of a claim's content words that have to be the sentence's, if it is to state that one."""
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
    """Whether it speaks of what could or should be done, not of what is."""

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
    claim = _CITED.sub("the text", _STEP_MARK.sub("", _unframed(text)))
    claim = _STEP_LIST.sub("the steps", claim).strip()
    page = Passage("", (claim,))
    own = _NOT_OURS.sub("X", claim)
    return Reading(
        claim,
        cited,
        refers,
        page,
        read(page),
        _denies(text),
        bool(_NOT_ASSERTED.search(own)),
    )


def _denies(text: str) -> bool:
    """Whether a step says that the passages lack something.

    >>> _denies("The passages do not say where she lived."), _denies("She did not live in Oru.")
    (True, False)
    """
    own = _NOT_OURS.sub("X", text)
    if _UNKNOWN.search(own):
        return True
    return bool(_NOT.search(own) and _TOLD.search(own) and _OF_THE_TEXT.search(text))


def _unframed(text: str) -> str:
    """A step without the words that say where something was read, before or behind what was.

    >>> _unframed("In Passage 3 one reads that Oru is a town."), _unframed("Oru is old (Passage 1)")
    ('Oru is a town.', 'Oru is old')
    """
    for pattern in (_LEAD, _FRAME, _SUFFIX):
        bare = pattern.sub("", text, count=1)
        if bare != text and len(bare.split()) >= _SHORTEST_CLAIM:
            return bare
    return text


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
    if item.sentence is not None:
        return _quotes(reading, item, passages)
    if reading.denies or (reading.announces and not reading.cited and not reading.refers):
        return False
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


def has_cue(reading: Reading, relation: str) -> bool:
    """Whether a step has wording of a known relation, be it of this fact or another."""
    known = RELATIONS[relation]
    if known.kind == "nation":
        return bool(_OF_A_NATION.search(reading.text.clean))
    if not known.group:
        return True
    found = cue_pattern(known.group).finditer(reading.text.clean)
    return any(cue.lastgroup in known.cues for cue in found)


def holds(page: Passage, value: str) -> bool:
    """Whether a passage has a name, date or number somewhere, be it within a word ("1940s").

    >>> holds(Passage("Oru", ("It grew in the 1940s.",)), "1940")
    True
    """
    if first_mention(read(page), value) is not None:
        return True
    return _squeezed(value) in _squeezed(f"{page.title} {page.text}")


@lru_cache(maxsize=4096)
def _squeezed(text: str) -> str:
    """Letters and digits alone, so that no punctuation or spacing tells two writings apart."""
    return "".join(char for char in clean(text) if char.isalnum())


def answers_question(reading: Reading, item: Item) -> bool:
    """Whether a step speaks of a free hop: of its head, or of what it asks."""
    head = item.triples[0].head
    if not _QUESTION.search(reading.claim) and names(reading, head):
        return head != item.triples[0].tail or repeats_question(reading, item)
    return repeats_question(reading, item)


def repeats_question(reading: Reading, item: Item) -> bool:
    """Whether a step speaks in the words of the question that a free hop asks."""
    question = content_words(asked_of(item.triples))
    quoted = _QUESTION.search(reading.claim)
    if quoted:
        return len(question & content_words(quoted[1])) >= _SAME_QUESTION * len(question)
    return len(question & reading.words) >= max(1, len(question) / 2)


def _quotes(reading: Reading, item: Item, passages: Sequence[Passage]) -> bool:
    """Whether a step tells what a sentence tells: its words, and the names that make it a link."""
    assert item.sentence is not None
    assert item.passage is not None
    passage = passages[item.passage - 1]
    if reading.cited and item.passage not in reading.cited:
        return False
    told = f"{passage.title} {passage.sentences[item.sentence]}"
    if coverage(reading.words, told) < _OF_THE_SENTENCE:
        return False
    if not all(holds(passage, value) for value in values(reading)):
        return False
    keys = names_key(passage, item)
    if item.triples[0].relation == DESCRIBED or not keys:
        return quoted_share(reading, item, passages) >= _TOKENS_OF_A_QUOTE
    return all(names(reading, key) for key in keys)


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
    page = passages[item.passage - 1]
    keys = [content_words(key) for key in names_key(page, item)]
    others = content_words(page.sentences[item.sentence]).difference(*keys)
    return coverage(others, reading.claim)


def opens(reading: Reading, value: str) -> bool:
    """Whether a value is but the word that opens a sentence, and its capital says nothing."""
    if " " in value or any(char.isdigit() for char in value):
        return False
    return bool(re.search(rf"(?:^|[.!?:;]\W+){re.escape(value)}\b", reading.claim))


def values(reading: Reading) -> tuple[str, ...]:
    """Names, dates and numbers that a step gives, as it writes them."""
    runs = [_OPENER.sub("", written) for written, _ in names_in(reading.page).values()]
    runs = [_LEADS_ON.sub("", run) for run in runs]
    found = [re.sub(r"['’]s?$", "", run) for run in runs if run]
    dates = dates_in(reading.claim)
    found += [reading.claim[d.start : d.end] for d in dates if d.year]
    spans = [(d.start, d.end) for d in dates]
    for match in re.finditer(r"\b\d[\d,.]*\b", reading.claim):
        if not any(a <= match.start() < b for a, b in spans) and as_number(match[0]) is not None:
            found.append(match[0])
    return tuple(dict.fromkeys(found))
