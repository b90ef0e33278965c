"""Decides whether a passage states a relation, by cues, mentions and subjects, without a model.

Two names near each other prove nothing. A triple counts as stated if a sentence has its tail governed by a cue of the
relation, and the sentence's passage is about the head, or the sentence names the head.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Literal, get_args

from safe_stepwise.language.cues import ROLES, TURNED, governing_cues, roles_of
from safe_stepwise.language.mentions import is_about, mentioned_within, mentions, mentions_subject, word_spans
from safe_stepwise.language.reading import Span, Text, clean, read
from safe_stepwise.language.relations import RELATIONS, Relation, cues_between, is_country, is_nation, nation_pattern
from safe_stepwise.language.text import CAPITAL, MONTHS, Date, as_date, dates_in, fold, normal_name
from safe_stepwise.language.vocabulary import word_list, wording
from safe_stepwise.records import Passage

Status = Literal["stated", "other", "together", "mentioned", "absent"]
_ORDER: tuple[Status, ...] = get_args(Status)


@dataclass(frozen=True, slots=True)
class Finding:
    """The passages' statement about one triple.

    ``status`` is one of: ``stated``, a sentence states it; ``other``, a sentence gives another ``value`` for a
    single-valued relation; ``together``, a sentence has head and tail, but not the relation; ``mentioned``, the tail
    is somewhere; ``absent``, it is not. ``loose``: the support is weak.
    ``says_otherwise``: the sentence with both ends states another relation ("moved to", "co-starred with").
    """

    status: Status
    passage: int | None = None
    sentence: int | None = None
    value: str = ""
    loose: bool = False
    says_otherwise: bool = False

    def located(self, passage: int | None, sentence: int | None) -> "Finding":
        """Copy the finding with a passage and sentence (five times as fast as dataclasses.replace)."""
        return Finding(self.status, passage, sentence, self.value, self.loose, self.says_otherwise)

    @property
    def rank(self) -> float:
        """The rank of the finding; the lowest is the strongest. A firm ``other`` beats a loose ``stated``."""
        return _ORDER.index(self.status) + (1.5 if self.loose else 0)


_ABSENT = Finding("absent")


def ground(head: str, relation: str, tail: str, passages: Sequence[tuple[int, Passage]]) -> Finding:
    """Return the strongest finding of numbered passages about a triple.

    >>> page = Passage("Ana Vorr", ("Ana Vorr (1901 – 1970) was a poet.", "She was born in Oru."))
    >>> ground("Ana Vorr", "place of birth", "Oru", [(1, page)]).status
    'stated'
    >>> ground("Ana Vorr", "place of death", "Oru", [(1, page)]).status
    'together'
    """
    definition = RELATIONS.get(relation, Relation(relation, "name"))
    best = _ABSENT
    for number, passage in passages:
        for finding in _findings(head, definition, tail, passage):
            if finding.rank < best.rank:
                best = finding.located(number, finding.sentence)
            if best.rank == 0:
                return best
    return best


def stated_dates(passage: Passage, relation: str) -> tuple[tuple[int, str], ...]:
    """Return the dates that a passage gives for a relation of its subject, as (sentence from 0, cleaned text).

    >>> page = Passage("Ana Vorr", ("Ana Vorr (1901 – 1970) was a poet.",))
    >>> stated_dates(page, "date of death")
    ((0, '1970'),)
    """
    text = read(passage)
    return tuple(
        (text.sentence_at(date.start), text.clean[date.start : date.end])
        for date in dates_in(text.clean)
        if date.year and _says_date(RELATIONS[relation], text, date)[0]
    )


# Bounded: otherwise a name could extend from each capital to the end of the text.
_WORD = rf"{CAPITAL}[\w'’.-]{{0,40}}+"
_NAMED = rf"{_WORD}(?>(?: (?:(?:of|the|de|van|von|for) ){{0,4}}+{_WORD}){{1,12}})"
# The known value is put before the sentence, so that one pattern serves for all values.
_BESIDE = re.compile(rf"([^\0]*)\0(?s:.*?)(?:\1 and ({_NAMED})|({_NAMED}) and \1)")


def find_further_values(sentence: str, relation: str, tail: str) -> tuple[str, ...]:
    """Return further values that a sentence joins by "and" to the known value of a relation.

    >>> find_further_values("It was directed by Ana Vorr and Ors Velt.", "director", "Ors Velt")
    ('Ana Vorr',)
    >>> find_further_values("It was directed by Ana Vorr and scored by Ors Velt.", "director", "Ana Vorr")
    ()
    """
    if relation not in RELATIONS or not RELATIONS[relation].allows_several:
        return ()
    if f"{tail} and " not in sentence and f" and {tail}" not in sentence:
        return ()
    match = _BESIDE.match(f"{tail}\0{sentence}")
    return tuple(group.rstrip(".") for group in match.groups()[1:] if group) if match else ()


def _findings(head: str, relation: Relation, tail: str, passage: Passage) -> Iterable[Finding]:
    if not passage.sentences:
        return
    text = read(passage)
    about = is_about(text, head)
    date = as_date(tail) if relation.kind == "date" else None
    if date:
        yield from _find_dated(head, relation, date, text, about)
    elif relation.kind == "nation":
        yield from _find_nation(head, relation, tail, text, about)
        if about:
            yield from _other_nation(relation, passage)
    else:
        yield from _find_named(head, relation, tail, text, about)
        about_tail = not about and is_about(text, tail)
        if about_tail or (not about and relation.group in ("kin", "credit", "place", "")):
            turned = _find_named(tail, relation, head, text, about_tail, turned=True)
            # A lone head does not show where the tail is mentioned.
            yield from (finding for finding in turned if finding.status != "mentioned")
        if about and relation.functional and relation.kind == "place":
            yield from _other_places(relation, tail, passage, text)


def _find_named(
    head: str, relation: Relation, tail: str, text: Text, about: bool, *, turned: bool = False
) -> Iterator[Finding]:
    if not (spans := mentions(text, tail)):
        return
    relatives = bool(set(normal_name(head).split()) & set(normal_name(tail).split()))
    heads = sorted(mentions(text, head)) if relation.name in _REGIONS or not about else []
    for start, end in spans:
        sentence = text.sentence_at(start)
        low, high = text.sentence_span(start)
        if about or mentioned_within(text, head, low, high, in_full=relatives):
            near = heads[bisect_left(heads, (start - _NEAR,)) : bisect_left(heads, (start,))]
            owners = () if about else near
            finding = _judge_span(relation, text, (start, end, low, high), owners, turned=turned)
            is_life = relation.group == "life" and not about and not turned
            if finding.status == "stated":
                if is_life and _is_of_another(relation, text, start, end, low, heads):
                    finding = _OTHERWISE
            elif relation.cues & _MAKERS and _is_work_of(relation, text, (start, end, low, high), head, turned=turned):
                finding = _LOOSELY_STATED
            # "Oru , Vel Province": a region after a place that lies in it.
            between_places = (_BETWEEN_PLACES.fullmatch(text.clean, past, start) for _, past in near)
            if relation.name in _REGIONS and any(between_places):
                finding = _STATED
            yield finding.located(None, sentence)
        else:
            yield Finding("mentioned", None, sentence)


_NEAR = 200  # characters before a name in which its head is looked for
_REGIONS = ("located in the administrative territorial entity", "country")
_BETWEEN_PLACES = re.compile(r"(?: :(?: [\w'-]+){1,3})?(?: ,(?: [\w'-]+){1,4})? , ")


_MAKERS = frozenset(("director", "writer", "composer", "performer", "creator"))
_KNOWN_FOR = re.compile(
    r"\b(?:(?:known|remembered|noted|famous) for|(?:films|movies|works|credits|songs|books|novels|albums|plays)"
    r"(?: \w+){0,3}? (?:includ(?:e|ed|ing)|are|were))\b"
)
_POSSESSED = re.compile(r" 's (?:[\w'-]+ ){0,3}?")
_PARTICIPLE = re.compile(r"(?:born|raised|educated|a native)\b")


def _is_work_of(relation: Relation, text: Text, span: tuple[int, int, int, int], name: str, *, turned: bool) -> bool:
    """Whether a sentence calls a work somebody's own ("Vorr's Dune Rain"), or a maker's page is known for it.

    ``span`` holds the maker and ``name`` the work; the other way round if ``turned``.
    """
    start, end, low, _ = span
    if not turned:
        owned = _POSSESSED.match(text.clean, end)
        return owned is not None and any(
            _POSSESSED.fullmatch(text.clean, end, work) for work, _ in mentions(text, name)
        )
    makers = mentions(text, name)
    if any(_POSSESSED.fullmatch(text.clean, maker, start) for _, maker in makers):
        return True
    opening = cues_between(text.clean, "credit", 0, _LEAD_OF_PAGE)
    is_maker = is_about(text, name) and any(cue.label in relation.cues for cue in opening)
    return is_maker and _KNOWN_FOR.search(text.clean, low, start) is not None


_LEAD_OF_PAGE = 200


def _is_of_another(relation: Relation, text: Text, start: int, end: int, low: int, heads: Sequence[Span]) -> bool:
    """Whether a place or date belongs to the sentence's subject, and the person asked for comes only after it."""
    if (
        not text.clean[low:start].strip(" .")
        or any(low <= head < start for head, _ in heads)
        or _PARTICIPLE.match(text.clean, low)
    ):
        return False
    following = heads[bisect_left(heads, (end,)) :][:1]
    between = cues_between(text.clean, "life", end, following[0][0]) if following else ()
    return bool(following) and not any(cue.label in relation.cues for cue in between)


_STATED = Finding("stated")
_LOOSELY_STATED = Finding("stated", loose=True)
_TOGETHER = Finding("together")
_OTHERWISE = Finding("together", says_otherwise=True)


def _judge_span(
    relation: Relation, text: Text, span: tuple[int, int, int, int], owners: Sequence[Span], *, turned: bool
) -> Finding:
    """Judge whether a sentence states a name's relation; ``span``: start and end of the name, then the sentence."""
    start, end, low, high = span
    if not relation.group:
        return _STATED
    if relation.group == "kin":
        roles = roles_of(text.clean, *span, owners)
        if roles:
            relation_roles = (TURNED if turned else ROLES)[relation.name]
            return _STATED if relation_roles & roles else _OTHERWISE
        near = cues_between(text.clean, "kin", low, high)
        spoken = any(cue.label in relation.cues and not cue.denied for cue in near)
        return _LOOSELY_STATED if spoken else _TOGETHER
    if relation.group in ("life", "award") and _is_of_a_relative(text.clean, low, start):
        return _OTHERWISE
    if relation.group == "life" and relation.kind == "place" and _SCHOOL.match(text.clean, end):
        return _OTHERWISE
    if relation.group == "award":
        if _NOMINATION.match(text.clean, end):
            return _OTHERWISE
        if _WINNING.match(text.clean, end):
            return _STATED
    if relation.name == "place of birth" and _is_origin(text.clean, start, end):
        return _LOOSELY_STATED
    if relation.bracketed and start < _OPENING and text.clean.endswith(" ( ", 0, start):
        return _LOOSELY_STATED
    labels = governing_cues(text.clean, *span, relation.group)
    if relation.cues & labels:
        return _STATED
    if relation.loose_cues & labels:
        return _LOOSELY_STATED
    return _OTHERWISE if labels else _TOGETHER


_SCHOOL = re.compile(
    r" (?:(?!(?:and|or|in|at|to|but|from|where|with)\b)[\w'-]+ ){0,2}(?:school|university|college|academy)\b"
)
_NOMINATION = re.compile(r"(?: awards?| prizes?)?(?: \w+)? nomin")
_WINNING = re.compile(r"(?: awards?| prizes?)? (?:winning|winner|laureate|recipient)\b")
_RELATIVE = wording("grounding", "relative")
_SOMEBODY_ELSE = re.compile(r"\bs?he\b|,")
_IS_A = re.compile(r"\b(?:is|was) an? (?:\w+ ){0,3}$")
_IS_FROM = re.compile(r"\b(?:is|was) an? (?:[a-z]+ (?:, |and )?){1,6}from $")
_DESCENT = re.compile(r"(?: \w+){0,1} (?:descent|origin|heritage|ancestry)\b")
_OPENING = 400


def _is_of_a_relative(text: str, low: int, start: int) -> bool:
    """Whether a span belongs to a relative ("her father died in Oru"), with no other person in between."""
    relatives, breaks = _people(text)
    last = bisect_right(relatives, start, key=itemgetter(1)) - 1
    if last < 0 or relatives[last][0] < low:
        return False
    last_break = bisect_left(breaks, start) - 1
    return last_break < 0 or breaks[last_break] < relatives[last][1]


@lru_cache(maxsize=4096)
def _people(text: str) -> tuple[tuple[Span, ...], tuple[int, ...]]:
    """Return the spans of relatives in a text, and the offsets where another person or clause begins."""
    relatives = tuple(match.span() for match in _RELATIVE.finditer(text))
    return relatives, tuple(match.start() for match in _SOMEBODY_ELSE.finditer(text))


def _is_adjective(text: str, start: int, end: int) -> bool:
    """Whether the span describes the subject, as in "is a 1954 Kelvian film"."""
    leads = _IS_A.search(text[max(0, start - 60) : start])
    return bool(leads) and text[end : end + 2].strip().isalpha()


def _is_origin(text: str, start: int, end: int) -> bool:
    """Whether a span tells somebody's origin ("was a Kelvian poet", "of Kelvian descent")."""
    if _IS_FROM.search(text[max(0, start - 60) : start]) or _DESCENT.match(text, end):
        return True
    return start < _OPENING and _is_adjective(text, start, end)


def _find_dated(head: str, relation: Relation, tail_date: Date, text: Text, about: bool) -> Iterator[Finding]:
    for date in dates_in(text.clean):
        low, high = text.sentence_span(date.start)
        sentence = text.sentence_at(date.start)
        if not date.year:
            continue
        if not about and not mentioned_within(text, head, low, high):
            if date.agrees(tail_date):
                yield Finding("mentioned", None, sentence)
            continue
        cues = _cues_of(relation, text, date)
        says_date, surely = _says_date(relation, text, date, cues)
        if date.agrees(tail_date):
            says_otherwise = not says_date and bool(cues)
            status: Status = "stated" if says_date else "together"
            yield Finding(status, None, sentence, loose=says_date and not surely, says_otherwise=says_otherwise)
        elif about and surely:
            yield Finding("other", None, sentence, text.clean[date.start : date.end])


def _cues_of(relation: Relation, text: Text, date: Date) -> frozenset[str]:
    low, high = text.sentence_span(date.start)
    return governing_cues(text.clean, date.start, date.end, low, high, relation.group)


_BOUND = re.compile(r"\b(?:before|after) $")  # "before 1492" is not 1492
_ALONE = re.compile(r"\( \d{4} \)")  # in an article's first sentence, a year in brackets is its subject's


def _says_date(relation: Relation, text: Text, date: Date, cues: frozenset[str] | None = None) -> tuple[bool, bool]:
    """Return whether a date belongs to a relation, and whether that is sure; works and foundings need no cue.

    ``cues``: the labels that govern the date; None: they are looked up.
    """
    low, _ = text.sentence_span(date.start)
    if relation.group == "life" and (
        _is_of_a_relative(text.clean, low, date.start)
        or _BOUND.search(text.clean, max(low, date.start - 10), date.start)
    ):
        return False, False
    if cues is None:
        cues = _cues_of(relation, text, date)
    if relation.cues & cues:
        return True, True
    if relation.group != "time" or cues:
        return False, False
    alone = low == 0 and _ALONE.search(text.clean[max(0, date.start - 3) : date.end + 2])
    return True, bool(alone) or _is_adjective(text.clean, date.start, date.end)


_LEAD = 80  # characters before a span in which words that introduce it are looked for
_LED = re.compile(r"\b(?:in|from|of|to|with)(?: the)? $")
_COUNTRY = re.compile(rf"(?>(?s:.)*?\b(?:is|was) (?:an?|one|located)\b).*(?: in| of|,)(?: the)? ({CAPITAL}\w+)[.,]")
_NATIONALITY = wording("grounding", "nationality", capital=CAPITAL)
# "Kelvian folk singer Ana Vorr": the words between a nation and the name that it qualifies.
_OF_THE_NAME = re.compile(r"(?: (?!(?:and|or|by|with|from|of|in)\b)[a-z]+| and(?= [a-z]+ )){0,6} $")
_THERE = wording("grounding", "there")
_BORN_OR_CITIZEN = wording("grounding", "born_or_citizen")


# "Kelvia, of which she was a citizen", "in Kelvia, where it lies", "in Kelvia that it was made".
_OF_WHICH = wording("grounding", "of_which")


def _find_nation(head: str, relation: Relation, tail: str, text: Text, about: bool) -> Iterator[Finding]:
    """Yield findings where a passage gives its subject's nation, or that of a person named in "Kelvian poet Ana Vorr".

    A noun, or an adjective that qualifies something else, states it loosely. A nation that is only visited, bordered
    or part of a name does not state it.
    """
    heads = [] if about else sorted(mentions(text, head))
    for match in nation_pattern(clean(tail)).finditer(text.clean):
        start, end = match.span()
        low, high = text.sentence_span(start)
        sentence = text.sentence_at(start)
        if not about:
            if not mentioned_within(text, head, low, high):
                yield Finding("mentioned", None, sentence)
            else:
                cues = cues_between(text.clean, relation.group, low, start)
                says_nation = (
                    (is_country(match[0]) and relation.name == "country")
                    or (cues and cues[-1].label == "origin")
                    or any(
                        end <= first and _OF_THE_NAME.fullmatch(text.clean, end, first)
                        for first, _ in heads[bisect_left(heads, (end,)) :][:2]
                    )
                )
                yield Finding("stated" if says_nation else "together", None, sentence)
            continue
        if (
            _is_adjective(text.clean, start, end)
            or _BORN_OR_CITIZEN.search(text.clean, max(low, start - _LEAD), start)
            or _OF_WHICH.match(text.clean, end)
        ):
            yield Finding("stated", None, sentence)
        elif sentence == 0 and relation.name == "country" and is_country(match[0]):
            yield Finding("stated", None, sentence, loose=True)
        elif _is_contact(relation, text.clean, start, end, low):
            yield Finding("together", None, sentence, says_otherwise=True)
        elif not is_country(match[0]):
            yield Finding("stated", None, sentence, loose=True)
        else:
            lead = _THERE.search(text.clean, max(low, start - _LEAD), start)
            cues = cues_between(text.clean, relation.group, low, start)
            is_home = sentence == 0 or any(cue.label == "origin" for cue in cues)
            says_nation = lead is not None and (is_home or lead[0].startswith("of"))
            loose = relation.name != "country"
            yield Finding("stated" if says_nation else "together", None, sentence, loose=loose)


def _is_contact(relation: Relation, text: str, start: int, end: int, low: int) -> bool:
    """Whether a sentence's subject only had contact with a nation."""
    cues = cues_between(text, relation.group, low, start)
    nearest = cues[-1] if cues and cues[-1].label == "contact" else None
    led = _LED.search(text, max(0, start - _LEAD), start) or (nearest is not None and nearest.end + 1 == start)
    if led or is_country(text[start:end]):
        return any(cue.label == "contact" for cue in cues)
    return False


def _other_nation(relation: Relation, passage: Passage) -> Iterator[Finding]:
    for number, sentence in enumerate(map(fold, passage.sentences)):
        match = _NATIONALITY.search(sentence)
        if number == 0 and relation.name == "country":
            match = _COUNTRY.match(sentence) or match
        if match:
            value = next(group for group in match.groups() if group)
            # A person may have two nations; a work has the one that its first words give.
            sole = relation.name == "country of origin" and is_nation(clean(value))
            yield Finding("other", None, number, value, loose=not sole)


_RUN = re.compile(rf"{CAPITAL}[\w'’-]+(?: (?:{CAPITAL}[\w'’-]+|of|the|de|am|upon)(?= |,|\.|;|\)|$))*")
_DIVISIONS = word_list("divisions")
_NO_PLACE = word_list("openers") | {word for month in MONTHS for word in (month, month[:3])}
_PLACED = wording("grounding", "placed")
_ITS_CAPITAL = re.compile(r" is (?:its|the) capital\b")


def _other_places(relation: Relation, tail: str, passage: Passage, text: Text) -> Iterator[Finding]:
    """Yield other places than the tail that a passage gives for its subject's single-valued relation."""
    words = clean(tail).split()
    first, is_division = words[:1], bool(_DIVISIONS.intersection(words[-1:]))
    for number, sentence in enumerate(passage.sentences):
        for run in dict.fromkeys(_RUN.findall(sentence)):
            place = clean(run)
            opens = place.split()[:1]
            if opens == first or opens[0] in _NO_PLACE or mentions_subject(text, run):
                continue
            # A country does not contradict a province.
            same_sort = is_division == bool(_DIVISIONS.intersection(place.split()[-1:]))
            if same_sort and _is_place_of(relation, place, number, text):
                yield Finding("other", None, number, run, loose=relation.group != "life")


def _is_place_of(relation: Relation, place: str, number: int, text: Text) -> bool:
    low, high = (*text.starts, len(text.clean))[number : number + 2]
    for start, end in word_spans(text.clean, place, max(0, low - 1), high + 1):
        placed = _PLACED.search(text.clean, max(0, start - _LEAD), start)
        if placed or _ITS_CAPITAL.match(text.clean, end):
            span = (start, end, *text.sentence_span(start))
            if relation.cues & governing_cues(text.clean, *span, relation.group):
                return True
    return False
