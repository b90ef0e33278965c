"""What a reasoning step says: which passages it cites, which facts it states, what it denies."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from safe_stepwise.language.mentions import first_mention, mentions, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.text import as_date, as_number, dates_in, has_words
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

_CITED = re.compile(r"\bpassages? (\d{1,9})(?!\d)", re.IGNORECASE)
_FRAME = re.compile(
    r"^[^“]{0,80}?\bpassages? \d+\b(?: \([^)]*\))?[^,:.“]{0,60}?"
    r"(?:[,:\])]|\.(?=\s)|\bthat\b|(?=“))\s*",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^[^“]{0,80}?\b[Pp]assages? \d+(?:[a-z'’,;!\s]|\bI\b|\bSteps? \d+)*:\s+")
_SUFFIX = re.compile(
    r"(?<!\s)\s*+[,;(\[–—]\s*+[^,;:(\[“”]{0,50}\bpassages? \d+\b[^,;“”]{0,30}$", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"(; |(?<=[a-z0-9”])\. (?=[A-Z])|, but |(?<=\bthis), (?=[a-zP]))(?=[^“”]*(?:“[^”]*”[^“”]*)*$)"
)
"""What parts two clauses, unless a quotation is open."""
_THOUGH = re.compile(
    r"^(?:while|although|though|whereas) ([^“”:;,]{0,60}\bpassage \d+\b[^“”:;,]{0,40}), ", re.IGNORECASE
)
_LONGEST_REMARK = 14
"""Words of a remark that a passage is silent; a longer one says more than that."""
_SHORTEST_CLAIM = 3
"""Words that have to be left for what stands around a citation to be taken off."""
_STEP_MARK = re.compile(r"(?<!\s)\s*+\((?:from |see |found in )?steps? [\d, and]+\)", re.IGNORECASE)
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
    r"|silent|unspecified|unknown|unstated|unclear|there|here|out|clear|known|learn\w*|about|on"
    r"|brings?|touch\w*|helps?|bears?|word|kind|discloses?|shows?|speaks?)\b",
    re.IGNORECASE,
)
_OF_THE_TEXT = re.compile(r"\b(?:passages?|text|context|excerpts?|documents?)\b", re.IGNORECASE)
_UNKNOWN = re.compile(
    r"\b(?:is|are|remains?|left|leaves?)\b[^.]{0,60}?"
    r"\b(?:missing|absent|unknown|unclear|unspecified|unstated|unaddressed|unanswered)\b"
    r"|\b(?:is|are|remains?|left|leaves?)\b[^.]{0,60}?(?<!find )(?<!work )(?<!figure )\bout\b"
    r"|\b(?:do|does|did) not (?:mention|state|say|specify)\b|\b(?:(?:[Pp]assage|X) \d+|text|it) (?:also )?"
    r"(?:lacks?|omits?|leaves (?:out|open))\b|\bin vain\b|\bleft open by\b",
    re.IGNORECASE,
)
_NOT_ASSERTED = re.compile(
    r"\b(?:will|shall|must|should|would|could|may|might|let(?:'s|’s)?|ought)\b"
    r"|\b(?:have|has|need|needs|want|wants|going|is|are|remains?|next|important|necessary|time"
    r"|helpful|useful) to\b|\bin order to\b|\bto answer\b|\bso far\b|\bprogress\b"
    r"|\b(?:the|this) question\b|\bin summary\b|\bto (?:summari[sz]e|recap)\b|\?\W*$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"“([^”]*+)(?:”|$)")
"""Quoted words; with a mark that nothing closes, all that is left, so that it is looked at once."""
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-Z]\w*")
_STOP_WORDS = word_list("stop_words")
_OPENER = re.compile(
    rf"^(?:(?:{'|'.join(sorted(_STOP_WORDS | word_list('step_openers')))})\b\s*)+", re.IGNORECASE
)
_LEADS_ON = re.compile(r"(?<! of)(?<! the)(?<! de)(?: (?:of|the|de))+$")


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

    @property
    def values(self) -> tuple[str, ...]:
        """Names, dates and numbers that the step gives, as it writes them."""
        runs = [_OPENER.sub("", written) for written, _ in names_in(self.page).values()]
        runs = [_LEADS_ON.sub("", run) for run in runs]
        found = [re.sub(r"['’]s?$", "", run) for run in runs if run]
        dates = dates_in(self.claim)
        dated = {place for d in dates for place in range(d.start, d.end)}
        found += [self.claim[d.start : d.end] for d in dates if d.year]
        for match in re.finditer(r"\b\d[\d,.]*\b", self.claim):
            if match.start() not in dated and as_number(match[0]) is not None:
                found.append(match[0])
        return tuple(dict.fromkeys(found))

    def mentions(self, name: str) -> bool:
        """Whether the step gives a name, date or number."""
        if date := as_date(name):
            return any(found.year and found.agrees(date) for found in dates_in(self.text.clean))
        if mentions(self.text, name):
            return True
        return has_words(self.text.clean.replace(" . ", " "), clean(name))

    def opens_with(self, value: str) -> bool:
        """Whether a value is but the word that opens a sentence, so that its capital says nothing.

        >>> read_step("Rivers flow past Oru.").opens_with("Rivers")
        True
        """
        if " " in value or any(char.isdigit() for char in value):
            return False
        return bool(re.search(rf"(?:^|[.!?:;]\W{{1,20}}){re.escape(value)}\b", self.claim))


@lru_cache(maxsize=16384)
def read_step(text: str) -> Reading:
    """A step's text (without number and kind) taken apart.

    >>> found = read_step("According to Passage 3, Ana Vorr (from Step 1) was born in Oru.")
    >>> found.cited, found.refers, found.claim
    ((3,), (1,), 'Ana Vorr was born in Oru.')
    """
    text = _without_silences(text)
    cited = tuple(dict.fromkeys(map(int, _CITED.findall(text))))
    steps = " ".join(_STEP_LIST.findall(text))
    refers = tuple(dict.fromkeys(map(int, re.findall(r"\d{1,9}", steps))))
    claim = _CITED.sub("the text", _STEP_MARK.sub("", _unframed(text)))
    claim = _STEP_LIST.sub("the steps", claim).strip()
    page = Passage("", (claim,))
    announces = bool(_NOT_ASSERTED.search(_own_words(claim)))
    return Reading(claim, cited, refers, page, read(page), _denies(text), announces)


def _denies(text: str) -> bool:
    """Whether a step says that the passages lack something.

    >>> _denies("The passages do not say where she lived."), _denies("She did not live in Oru.")
    (True, False)
    """
    own = _own_words(text)
    lacks = _NOT.search(own) and _TOLD.search(own) and _OF_THE_TEXT.search(text)
    return bool(_UNKNOWN.search(own) or lacks)


def _without_silences(text: str) -> str:
    """A step without its remarks that some passage is silent, where it reads a fact in another.

    >>> _without_silences("Passage 5 does not mention it, but Passage 3 says that Oru is a town.")
    'Passage 3 says that Oru is a town.'
    >>> _without_silences("Passage 5 does not mention it, and Passage 3 is silent as well.")
    'Passage 5 does not mention it, and Passage 3 is silent as well.'
    """
    parts = _CLAUSE.split(_THOUGH.sub(r"\1; ", text))  # clauses, and between them what parts them
    clauses = parts[::2]
    silent = [bool(_CITED.search(c)) and _denies(c) and len(c.split()) <= _LONGEST_REMARK
              for c in clauses]  # fmt: skip
    rest = [clause for clause, remark in zip(clauses, silent, strict=True) if not remark]
    elsewhere = {n for clause in rest for n in _CITED.findall(clause)}
    if all(silent) or not any(silent) or not elsewhere or any(map(_denies, rest)):
        return text
    kept = ""
    for number, (clause, remark) in enumerate(zip(clauses, silent, strict=True)):
        if not remark or elsewhere & set(_CITED.findall(clause)):
            kept += (parts[2 * number - 1] if kept and number else "") + clause
    return kept if kept.endswith((".", "”", "?", "!")) else f"{kept}."


def _own_words(text: str) -> str:
    """A text without what it quotes and without names within a sentence, titles in quotes or not.

    >>> _own_words("They sang “I Must Go” in Oru, Kelvia; nobody “came.")
    'They sang X in X, X; nobody “came.'
    """
    plain = _CAPITALISED.sub("X", text)
    return _QUOTED.sub(lambda quoted: "X" if quoted[0].endswith("”") else quoted[0], plain)


def quotations(text: str) -> Iterator[str]:
    """What a text quotes, without the marks.

    >>> list(quotations("“Who led Oru?” is answered by “Vel”, “not"))
    ['Who led Oru?', 'Vel']
    """
    return (found[1] for found in _QUOTED.finditer(text) if found[0].endswith("”"))


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


def has_value(page: Passage, value: str) -> bool:
    """Whether a passage has a name, date or number somewhere, be it within a word ("1940s").

    >>> has_value(Passage("Oru", ("It grew in the 1940s.",)), "1940")
    True
    """
    whole = first_mention(read(page), value) is not None
    return whole or _squeezed(value) in _squeezed(f"{page.title} {page.text}")


@lru_cache(maxsize=4096)
def _squeezed(text: str) -> str:
    """Letters and digits alone, so that no punctuation or spacing tells two writings apart."""
    return "".join(char for char in clean(text) if char.isalnum())
