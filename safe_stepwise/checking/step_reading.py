"""Parses a reasoning step: the passages it cites, its claim, and whether it denies something or only announces."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, islice

from safe_stepwise.language.mentions import first_mention, mentions, names_in
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.text import MONTHS, TracedText, as_date, as_number, dates_in, fold, has_words
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Passage

_CITED = re.compile(r"\bpassages? (\d{1,9})(?!\d)", re.IGNORECASE)
_FRAME = wording("step_reading", "frame", re.IGNORECASE)
_LEAD = re.compile(r"^[^“]{0,80}?\b[Pp]assages? \d+(?:[a-z'’,;!\s]|\bI\b|\bSteps? \d+)*:\s+")
_SUFFIX = re.compile(r"(?<!\s)\s*+[,;(\[–—]\s*+[^,;:(\[“”]{0,50}\bpassages? \d+\b[^,;“”]{0,30}$", re.IGNORECASE)
_CLAUSE = re.compile(r"; |(?<=[a-z0-9”])\. (?=[A-Z])|, but |(?<=\bthis), (?=[a-zP])")
"""The boundary between two clauses, outside quotations."""
_THOUGH = wording("step_reading", "though", re.IGNORECASE)
_IDIOM_WITH_NO = re.compile(r"\bno (?:doubt|question about|more than|less|other)\b", re.IGNORECASE)
_QUOTING = wording("step_reading", "quoting", re.IGNORECASE)
"""The start of a passage's own words after a colon: a denial in them is not the step's."""
_GOAL = wording("step_reading", "goal", re.IGNORECASE)
_GOAL_ENDS = re.compile("[:;.] |, and ")
_MAX_GOAL_ENDS = 3  # clause ends that are tried as the end of a goal
_MAX_POINTER_CHARS = 120  # of a sentence that only points to a passage
_POINTER = re.compile(r"[^“”.:]{8,140}[.:] (?=[^a-z ])")
_MAX_REMARK_WORDS = 14  # of a remark that a passage is silent; a longer one says more
_MIN_CLAIM_WORDS = 3  # that must remain when the words around a citation are removed
_STEP_MARK = re.compile(r"(?<!\s)\s*+\((?:from |see |found in )?steps? [\d, and]+\)", re.IGNORECASE)
_STEP_LIST = wording("step_reading", "step_list", re.IGNORECASE)
"""A list of steps; a date or a year after it does not belong to it."""
_NOT = wording("step_reading", "not", re.IGNORECASE)
_REPORTED = wording("step_reading", "told", re.IGNORECASE)
_OF_THE_TEXT = re.compile(r"\b(?:passages?|text|context|excerpts?|documents?)\b", re.IGNORECASE)
_UNKNOWN = wording("step_reading", "unknown", re.IGNORECASE)
_NOT_ASSERTED = wording("step_reading", "not_asserted", re.IGNORECASE)
_QUOTATION = re.compile(r"“([^”]*+)(?:”|$)")
"""Quoted words; an unclosed quotation extends to the end, so that the pattern takes linear time."""
_TITLE = re.compile(r"\"[^\"]{1,80}\"")
_CAPITALISED = re.compile(r"(?<=[\w,;:] )[A-Z]\w*")
_STOP_WORDS = word_list("stop_words")
_OPENER = re.compile(rf"^(?:(?:{'|'.join(sorted(_STOP_WORDS | word_list('step_openers')))})\b\s*)+", re.IGNORECASE)
_END = re.compile(r"\Z")
_OPEN_END = re.compile(r"(?<! of)(?<! the)(?<! de)(?: (?:of|the|de))+$")


@dataclass(frozen=True)
class Reading:
    """A parsed step; ``claim`` is its text without citations, which ``page`` and ``text`` also have, for search.

    ``cited`` are the numbers of passages, ``refers`` those of steps (from 1). ``denies``: whether it says that
    the passages lack something.
    """

    claim: str
    cited: tuple[int, ...]
    refers: tuple[int, ...]
    page: Passage
    text: Text
    denies: bool
    announces: bool
    """Whether the step says what could or should be done, instead of a fact."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The claim's content words, cleaned."""
        return content_words(self.claim)

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names, dates and numbers of the step, in its spelling.

        >>> read_step("About Oru, Passage 4 states: “It lies 45 miles from Marn.”").values
        ('Oru', 'Marn', '45')
        """
        runs = [_OPENER.sub("", spelling) for spelling, _ in names_in(self.page).values()]
        runs = [_OPEN_END.sub("", run) for run in runs if run.lower() not in MONTHS]
        names = [re.sub(r"['’]s?$", "", run) for run in runs if run]
        dates = dates_in(self.claim)
        date_offsets = {offset for d in dates for offset in range(d.start, d.end)}
        names += [self.claim[d.start : d.end] for d in dates if d.year]
        for match in re.finditer(r"\b\d[\d,.]*\b", self.claim):
            if match.start() not in date_offsets and as_number(match[0]) is not None:
                names.append(match[0])
        return tuple(dict.fromkeys(names))

    def cited_passages(self, passages: Sequence[Passage]) -> list[tuple[int, Passage]]:
        """Return the cited passages with their numbers; numbers without a passage are skipped."""
        return [(number, passages[number - 1]) for number in self.cited if 0 < number <= len(passages)]

    def mentions(self, name: str) -> bool:
        """Whether the step has a name, date or number."""
        if date := as_date(name):
            return any(day.year and day.agrees(date) for day in dates_in(self.text.clean))
        if mentions(self.text, name):
            return True
        return has_words(self.text.clean.replace(" . ", " "), clean(name))


@lru_cache(maxsize=16384)
def read_step(text: str) -> Reading:
    """Parse a step's text (without number and kind).

    >>> reading = read_step("According to Passage 3, Ana Vorr (from Step 1) was born in Oru.")
    >>> reading.cited, reading.refers, reading.claim
    ((3,), (1,), 'Ana Vorr was born in Oru.')
    """
    text = _remove_goal(remove_silences(TracedText.from_source(fold(text))).text)
    denies = _denies_content(text)
    text, pointers = _remove_pointers(text)
    cited = tuple(dict.fromkeys(map(int, _CITED.findall(pointers + text))))
    steps = " ".join(_STEP_LIST.findall(pointers + text))
    refers = tuple(dict.fromkeys(map(int, re.findall(r"\d{1,9}", steps))))
    claim = _CITED.sub("the text", _STEP_MARK.sub("", text if denies else _remove_frame(text)))
    claim = _STEP_LIST.sub("the steps", claim).strip()
    page = Passage("", (claim,))
    announces = bool(_NOT_ASSERTED.search(_mask_quotations(claim)))
    return Reading(claim, cited, refers, page, read(page), denies, announces)


def _denies_content(text: str) -> bool:
    """Whether a step says that the passages lack something.

    >>> _denies_content("The passages do not say where she lived."), _denies_content("She did not live in Oru.")
    (True, False)
    """
    text = _IDIOM_WITH_NO.sub("", text)
    quoting = _QUOTING.search(text)
    own_words = _mask_quotations(text[: quoting.end(1)] if quoting else text)
    lacks = _NOT.search(own_words) and _REPORTED.search(own_words) and _OF_THE_TEXT.search(text)
    return bool(_UNKNOWN.search(own_words) or lacks)


def remove_silences(text: TracedText) -> TracedText:
    """Remove a step's remarks that a passage is silent, if it reads a fact in another passage.

    >>> step = "Passage 5 does not mention it, but Passage 3 says that Oru is a town."
    >>> remove_silences(TracedText.from_source(step)).text
    'Passage 3 says that Oru is a town.'
    >>> step = "Passage 5 does not mention it, and Passage 3 is silent as well."
    >>> remove_silences(TracedText.from_source(step)).text == step
    True
    """
    marked = text.sub(_THOUGH, r"\1; ")
    pieces = _split_clauses(marked.text)  # clauses alternate with boundaries
    edges = [0, *accumulate(map(len, pieces))]
    clauses = pieces[::2]
    remarks = [bool(_CITED.search(c)) and _denies_content(c) and len(c.split()) <= _MAX_REMARK_WORDS for c in clauses]
    reading_clauses = [clause for clause, remark in zip(clauses, remarks, strict=True) if not remark]
    read_passages = {n for clause in reading_clauses for n in _CITED.findall(clause)}
    if all(remarks) or not any(remarks) or not read_passages or any(map(_denies_content, reading_clauses)):
        return text
    spans: list[tuple[int, int]] = []
    for number, (clause, remark) in enumerate(zip(clauses, remarks, strict=True)):
        if not remark or read_passages & set(_CITED.findall(clause)):
            spans.append((edges[2 * number - bool(spans)], edges[2 * number + 1]))
    result = marked.join(spans)
    return result if result.text.endswith((".", "”", "?", "!")) else result.sub(_END, ".")


def _outside_quotes(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield a pattern's matches outside “…”."""
    quoted = [match.span() for match in _QUOTATION.finditer(text) if match[0].endswith("”")]
    starts = [start for start, _ in quoted]
    for match in pattern.finditer(text):
        before = bisect_right(starts, match.start()) - 1
        if before < 0 or match.start() >= quoted[before][1]:
            yield match


def _split_clauses(text: str) -> list[str]:
    """Split a text into clauses and the boundaries between them."""
    pieces, end = [], 0
    for cut in _outside_quotes(_CLAUSE, text):
        pieces += [text[end : cut.start()], cut[0]]
        end = cut.end()
    return [*pieces, text[end:]]


def _remove_goal(text: str) -> str:
    """Remove a step's goal ("To find …:") or its words about the question, if a citation follows.

    >>> _remove_goal("To find who led Oru, I turn to Passage 2: Passage 2 says that Vel did.")
    'Passage 2 says that Vel did.'
    >>> _remove_goal("The question is about Oru. Passage 2 says that Vel led it.")
    'Passage 2 says that Vel led it.'
    """
    if not _GOAL.match(text):
        return text
    for cut in islice(_outside_quotes(_GOAL_ENDS, text), _MAX_GOAL_ENDS):
        remaining = text[cut.end() :]
        if _CITED.search(remaining) and not _NOT_ASSERTED.search(_mask_quotations(remaining)):
            return remaining
    return text


def _remove_pointers(text: str) -> tuple[str, str]:
    """Remove a first and last sentence that only point to a passage; return the other text and these sentences.

    >>> _remove_pointers("Passage 9 is clear on this point. Ana Vorr was born in Oru.")
    ('Ana Vorr was born in Oru.', 'Passage 9 is clear on this point. ')
    >>> _remove_pointers("Ana Vorr was born in Oru. I have this from Passage 9.")
    ('Ana Vorr was born in Oru.', 'I have this from Passage 9.')
    """
    removed = ""
    opening = _POINTER.match(text)
    if opening and _only_points(opening[0]) and len(text[opening.end() :].split()) >= _MIN_CLAIM_WORDS:
        removed, text = opening[0], text[opening.end() :]
    tail = max(text.rfind(". ", 0, -1), text.rfind(".” ", 0, -1) + 1, text.rfind(".) ", 0, -1))
    closing = text[tail + 2 :]
    if tail > 0 and len(closing) <= _MAX_POINTER_CHARS and _CITED.search(closing) and _only_points(closing):
        removed, text = removed + closing, text[: tail + 1]
    return text, removed


def _only_points(sentence: str) -> bool:
    """Whether a sentence names only passages and steps, and denies nothing."""
    remaining = _STEP_LIST.sub("", _CITED.sub("", sentence)).strip(" .:()")
    if remaining == sentence.strip(" .:()") and len(remaining.split()) < _MIN_CLAIM_WORDS:
        return False
    return not re.search(r"[A-Z\d“]", re.sub(r"\bI\b|^\w", "", remaining)) and not _denies_content(sentence)


def _mask_quotations(text: str) -> str:
    """Replace a text's closed quotations and titles, and its capitalised words inside a sentence, by X.

    >>> _mask_quotations("They sang “I Must Go” and “Ain't It So” in Oru, Kelvia; nobody “came.")
    'They sang X and X in X, X; nobody “came.'
    """
    plain = _CAPITALISED.sub("X", _TITLE.sub("X", text))
    return _QUOTATION.sub(lambda quoted: "X" if quoted[0].endswith("”") else quoted[0], plain)


def quotations(text: str) -> Iterator[str]:
    """Yield the texts between quotation marks, without the marks.

    >>> list(quotations("“Who led Oru?” is answered by “Vel”, “not"))
    ['Who led Oru?', 'Vel']
    """
    return (match[1] for match in _QUOTATION.finditer(text) if match[0].endswith("”"))


def _remove_frame(text: str) -> str:
    """Remove the words around a claim that only say in which passage it was read.

    >>> _remove_frame("In Passage 3 one reads that Oru is a town."), _remove_frame("Oru is old (Passage 1)")
    ('Oru is a town.', 'Oru is old')
    """
    for pattern in (_LEAD, _FRAME, _SUFFIX):
        match = pattern.search(text)
        bare = text[: match.start()] + text[match.end() :] if match else text
        if match is None or len(bare.split()) < _MIN_CLAIM_WORDS:
            continue
        if pattern is _SUFFIX:
            names_nothing = not re.search(r"[A-Z\d]", _CITED.split(match[0])[-1])
        else:
            names_nothing = not _names_something(match[0])
        if names_nothing:
            return bare
    return text


def _names_something(frame: str) -> bool:
    """Whether a name or number comes before the passage that a frame cites ("Ana is 40, and it is Passage 1 that")."""
    before = _STEP_LIST.sub("", frame[: _CITED.search(frame).start()])  # type: ignore[union-attr]
    return bool(re.search(r"[A-Z\d]", re.sub(r"\bI\b|^\W*\w", "", before)))


@lru_cache(maxsize=32768)
def content_words(text: str) -> frozenset[str]:
    """Return the first six letters of each cleaned word of a text, without stop words.

    >>> sorted(content_words("The poets of Oru"))
    ['oru', 'poets']
    """
    words = (word.strip(".,;:()'") for word in clean(text).split())
    return frozenset(w[:6] for w in words if w.isalnum() and w not in _STOP_WORDS)


def coverage(words: frozenset[str], text: str) -> float:
    """Return the share (0-1) of content words that a text has; 0 if there are none."""
    return len(words & content_words(text)) / len(words) if words else 0.0


@lru_cache(maxsize=65536)
def has_value(page: Passage, value: str) -> bool:
    """Whether a passage has a name, date or number anywhere, even within a word ("1940s"; cached).

    >>> has_value(Passage("Oru", ("It grew in the 1940s.",)), "1940")
    True
    """
    date = as_date(value)
    if date and date.month:
        return any(day.year and day.agrees(date) for day in dates_in(read(page).clean))
    return first_mention(read(page), value) is not None or _letters_and_digits(value) in _letters_of(page)


@lru_cache(maxsize=4096)
def _letters_of(page: Passage) -> str:
    return _letters_and_digits(f"{page.title} {page.text}")


@lru_cache(maxsize=4096)
def _letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, so that punctuation and spaces don't count."""
    return "".join(filter(str.isalnum, clean(text)))
