"""Decides whether a passage states a relation, by cues, mentions and subjects, without a model.

Two names near each other prove nothing. A triple counts as stated if, in a sentence, a cue of the relation governs its
tail, and either the passage is about the head or the sentence names the head.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple, get_args

from safe_stepwise.language.cues import ROLES, TURNED, governing_cues, roles_of
from safe_stepwise.language.mentions import is_about, mentioned_within, mentions, mentions_subject, word_spans
from safe_stepwise.language.reading import Text, clean, read
from safe_stepwise.language.relations import RELATIONS, Relation, cues_between, is_country, is_nation, nation_pattern
from safe_stepwise.language.senses import sense_cues
from safe_stepwise.language.text import CAPITAL, MONTHS, Date, Span, as_date, dates_in, fold, normal_name
from safe_stepwise.language.vocabulary import load, word_list, wording
from safe_stepwise.records import Passage

Status = Literal["stated", "other", "together", "mentioned", "absent"]
_STATUSES: tuple[Status, ...] = get_args(Status)


class Finding(NamedTuple):
    """What passages state about one triple, and where (``passage`` from 1, ``sentence`` from 0).

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

    @property
    def rank(self) -> float:
        """The rank of the finding; the lowest is the strongest. A firm ``other`` beats a loose ``stated``."""
        return _STATUSES.index(self.status) + (1.5 if self.loose else 0)


_ABSENT = Finding("absent")
_SYMMETRIC = ("spouse", "sibling")
_UNSURE = frozenset(load("predicates")["unsure"].split())
"""Words of what is not, is not yet or may not be so."""


def ground(head: str, relation: str, tail: str, passages: Sequence[tuple[int, Passage]]) -> Finding:
    """Return the strongest finding about a triple in numbered passages.

    >>> page = Passage("Ana Vorr", ("Ana Vorr (1901 – 1970) was a poet.", "She was born in Oru."))
    >>> ground("Ana Vorr", "place of birth", "Oru", [(1, page)]).status
    'stated'
    """
    definition = RELATIONS.get(relation, Relation(relation, "name"))
    best = _ABSENT
    for number, passage in passages:
        for finding in _find_in_passage(head, definition, tail, passage):
            if finding.rank < best.rank:
                best = finding._replace(passage=number)
            if best.rank == 0:
                return best
    return best


def ground_values(
    head: str, relation: str, values: Sequence[str], passages: Sequence[tuple[int, Passage]]
) -> Finding | None:
    """Return a firm ``stated`` finding if passages state all values, or else a firm ``other`` one, or None.

    It is also None where `ground` may take too much for a statement: if a sentence tells of a rumour or an engagement,
    or if a passage has several dates that could be meant. A relation between names must not be stated in reverse.

    >>> page = Passage("Ana Vorr", ("Ana Vorr (1901 – 1970) was a Danish poet.", "She was engaged to Edo Lind."))
    >>> ground_values("Ana Vorr", "date of birth", ["1901"], [(1, page)]).status
    'stated'
    >>> ground_values("Ana Vorr", "spouse", ["Edo Lind"], [(1, page)])
    """
    if relation == "population":
        return _find_population(head, values[0], passages)
    kind = RELATIONS[relation].kind
    if kind == "name" and relation not in _SYMMETRIC:
        passages = [page for page in passages if is_about(read(page[1]), head)]
        if any(ground(value, relation, head, passages).status == "stated" for value in values):
            return None
    findings = [ground(head, relation, value, passages) for value in values]
    pages = dict(passages)
    for finding in findings:
        if finding.passage is None or finding.sentence is None or finding.loose:
            return None
        page = pages[finding.passage]
        if not _UNSURE.isdisjoint(clean(page.sentences[finding.sentence]).split()):
            return None
        if kind == "date" and len({text for _, text in stated_dates(page, relation)}) > 1:
            return None
    if all(finding.status == "stated" for finding in findings):
        return findings[0]
    return next((finding for finding in findings if finding.status == "other"), None)


def _find_population(place: str, number: str, passages: Sequence[tuple[int, Passage]]) -> Finding | None:
    """Return a ``stated`` finding if a sentence about a place has a number, as a whole, and a word for inhabitants.

    >>> page = Passage("Oru", ("Oru has a population of 12,400.",))
    >>> [_find_population("Oru", number, [(1, page)]) is not None for number in ("12,400", "2,400")]
    [True, False]
    """
    whole = re.compile(rf"(?<![\d.,]){re.escape(number)}(?![.,]?\d)")
    for passage_number, passage in passages:
        for sentence, text in enumerate(passage.sentences if is_about(read(passage), place) else ()):
            if whole.search(text) and any(cue.sense == "population" for cue in sense_cues(clean(text))):
                return Finding("stated", passage_number, sentence)
    return None


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


def stated_nations(passage: Passage) -> tuple[str, ...]:
    """Return the nations that a passage's first sentence names, or else the place that it puts its subject in.

    >>> stated_nations(Passage("Ana Vorr", ("Ana Vorr was a Danish poet, born in Norway.",)))
    ('Danish', 'Norway')
    >>> stated_nations(Passage("Oru", ("Oru lies in western Kelvia, on the Vel.",)))
    ('Kelvia',)
    """
    opening = fold(passage.sentences[0]).replace(passage.title, "") if passage.sentences else ""
    words = re.findall(rf"(?=\b({CAPITAL}[\w'-]*(?: {CAPITAL}\w*)?)\b)", opening)
    candidates = dict.fromkeys(word for name in words for word in (name, *re.split("[ -]", name)))
    nations = tuple(word for word in candidates if is_nation(clean(word)))
    return nations or tuple(_LIES_IN.findall(opening)[-1:])


_LIES_IN = wording("grounding", "lies_in", capital=CAPITAL)


# Bounded: otherwise a name could extend from each capital to the end of the text.
_WORD = rf"{CAPITAL}[\w'’.-]{{0,40}}+"
_NAME = rf"{_WORD}(?>(?: (?:(?:of|the|de|van|von|for) ){{0,4}}+{_WORD}){{1,12}})"
# The known value is put before the sentence, so that one pattern can search for all values.
_JOINED_VALUE = re.compile(rf"([^\0]*)\0(?s:.*?)(?:\1 and ({_NAME})|({_NAME}) and \1)")


def find_further_values(sentence: str, relation: str, tail: str) -> tuple[str, ...]:
    """Return further values that a sentence joins by "and" to the known value of a relation.

    >>> find_further_values("It was directed by Ana Vorr and Ors Velt.", "director", "Ors Velt")
    ('Ana Vorr',)
    """
    if relation not in RELATIONS or not RELATIONS[relation].allows_several:
        return ()
    if f"{tail} and " not in sentence and f" and {tail}" not in sentence:
        return ()
    match = _JOINED_VALUE.match(f"{tail}\0{sentence}")
    return tuple(group.rstrip(".") for group in match.groups()[1:] if group) if match else ()


def _find_in_passage(head: str, relation: Relation, tail: str, passage: Passage) -> Iterable[Finding]:
    if not passage.sentences:
        return
    text = read(passage)
    is_about_head = is_about(text, head)
    date = as_date(tail) if relation.kind == "date" else None
    if date:
        yield from _find_dated(head, relation, date, text, is_about_head)
    elif relation.kind == "nation":
        yield from _find_nation(head, relation, tail, text, is_about_head)
        if is_about_head:
            yield from _find_other_nation(relation, passage)
    else:
        yield from _find_named(head, relation, tail, text, is_about_head)
        is_about_tail = not is_about_head and is_about(text, tail)
        if is_about_tail or (not is_about_head and relation.group in ("kin", "credit", "place", "")):
            turned = _find_named(tail, relation, head, text, is_about_tail, turned=True)
            # The head by itself does not show where the tail is mentioned.
            yield from (finding for finding in turned if finding.status != "mentioned")
        if is_about_head and relation.functional and relation.kind == "place":
            yield from _find_other_places(relation, tail, passage, text)


def _find_named(
    head: str, relation: Relation, tail: str, text: Text, is_about_head: bool, *, turned: bool = False
) -> Iterator[Finding]:
    if not (spans := mentions(text, tail)):
        return
    share_word = bool(set(normal_name(head).split()) & set(normal_name(tail).split()))  # perhaps a surname
    heads = sorted(mentions(text, head)) if relation.name in _REGIONS or not is_about_head else []
    for start, end in spans:
        sentence = text.sentence_at(start)
        low, high = text.sentence_span(start)
        if is_about_head or mentioned_within(text, head, low, high, in_full=share_word):
            near = heads[bisect_left(heads, (start - _MAX_HEAD_CHARS,)) : bisect_left(heads, (start,))]
            owners = () if is_about_head else near
            finding = _judge_span(relation, text, (start, end, low, high), owners, turned=turned)
            is_life = relation.group == "life" and not is_about_head and not turned
            if finding.status == "stated":
                if is_life and _belongs_to_subject(relation, text, start, end, low, heads):
                    finding = _OTHERWISE
            elif relation.cues & _MAKERS and _is_work_of(relation, text, (start, end, low, high), head, turned=turned):
                finding = _LOOSELY_STATED
            # "Oru , Vel Province": a region after a place that lies in it.
            between_places = (_BETWEEN_PLACES.fullmatch(text.clean, past, start) for _, past in near)
            if relation.name in _REGIONS and any(between_places):
                finding = _STATED
            yield finding._replace(sentence=sentence)
        else:
            yield Finding("mentioned", None, sentence)


_MAX_HEAD_CHARS = 200  # characters before a name in which its head is looked for
_REGIONS = ("located in the administrative territorial entity", "country")
_BETWEEN_PLACES = re.compile(r"(?: :(?: [\w'-]+){1,3})?(?: ,(?: [\w'-]+){1,4})? , ")


_MAX_PROFESSION_OFFSET = 200  # characters of a passage in which it names its subject's profession
_MAKERS = frozenset(("director", "writer", "composer", "performer", "creator"))
_KNOWN_FOR = wording("grounding", "known_for")
_POSSESSED = re.compile(r" 's (?:[\w'-]+ ){0,3}?")
_PARTICIPLE = re.compile(r"(?:born|raised|educated|a native)\b")


def _is_work_of(relation: Relation, text: Text, span: tuple[int, int, int, int], name: str, *, turned: bool) -> bool:
    """Whether a sentence calls a work somebody's ("Vorr's Dune Rain"), or says that a page's subject is known for it.

    ``span`` holds the maker and ``name`` the work; the other way round if ``turned``.
    """
    start, end, low, _ = span
    if not turned:
        works = mentions(text, name) if _POSSESSED.match(text.clean, end) else ()
        return any(_POSSESSED.fullmatch(text.clean, end, work) for work, _ in works)
    if any(_POSSESSED.fullmatch(text.clean, maker, start) for _, maker in mentions(text, name)):
        return True
    opening = cues_between(text.clean, "credit", 0, _MAX_PROFESSION_OFFSET)
    is_maker = is_about(text, name) and any(cue.label in relation.cues for cue in opening)
    return is_maker and _KNOWN_FOR.search(text.clean, low, start) is not None


def _belongs_to_subject(relation: Relation, text: Text, start: int, end: int, low: int, heads: Sequence[Span]) -> bool:
    """Whether a place or date belongs to the sentence's subject, as the head is named only after it."""
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
    """Judge whether a sentence states the relation of a name; ``span`` has the name's offsets, then the sentence's."""
    start, end, low, high = span
    if not relation.group:
        return _STATED
    if relation.group == "kin":
        roles = roles_of(text.clean, *span, owners)
        if roles:
            relation_roles = (TURNED if turned else ROLES)[relation.name]
            return _STATED if relation_roles & roles else _OTHERWISE
        near = cues_between(text.clean, "kin", low, high)
        is_mentioned = any(cue.label in relation.cues and not cue.denied for cue in near)
        return _LOOSELY_STATED if is_mentioned else _TOGETHER
    is_place_of_life = relation.group == "life" and relation.kind == "place"
    if (
        (relation.group in ("life", "award") and _is_of_a_relative(text.clean, low, start))
        or (is_place_of_life and _SCHOOL.match(text.clean, end))
        or (relation.group == "award" and _NOMINATION.match(text.clean, end))
    ):
        return _OTHERWISE
    if relation.group == "award" and _WINNING.match(text.clean, end):
        return _STATED
    opens_brackets = start < _MAX_OPENING_OFFSET and text.clean.endswith(" ( ", 0, start)
    is_birthplace = relation.name == "place of birth" and _is_origin(text.clean, start, end)
    if is_birthplace or (relation.bracketed and opens_brackets):
        return _LOOSELY_STATED
    labels = governing_cues(text.clean, *span, relation.group)
    if relation.cues & labels:
        return _STATED
    if relation.loose_cues & labels:
        return _LOOSELY_STATED
    return _OTHERWISE if labels else _TOGETHER


_SCHOOL = wording("grounding", "school")
_NOMINATION = re.compile(r"(?: awards?| prizes?)?(?: \w+)? nomin")
_WINNING = re.compile(r"(?: awards?| prizes?)? (?:winning|winner|laureate|recipient)\b")
_RELATIVE = wording("grounding", "relative")
_SOMEBODY_ELSE = re.compile(r"\bs?he\b|,")
_IS_A = re.compile(r"\b(?:is|was) an? (?:\w+ ){0,3}$")
_IS_FROM = re.compile(r"\b(?:is|was) an? (?:[a-z]+ (?:, |and )?){1,6}from $")
_DESCENT = re.compile(r"(?: \w+){0,1} (?:descent|origin|heritage|ancestry)\b")
_MAX_OPENING_OFFSET = 400  # characters of a passage that describe its subject


def _is_of_a_relative(text: str, low: int, start: int) -> bool:
    """Whether a span belongs to a relative ("her father died in Oru"), with no other person in between."""
    relatives, breaks = _find_relatives(text)
    last = bisect_right(relatives, start, key=itemgetter(1)) - 1
    if last < 0 or relatives[last][0] < low:
        return False
    last_break = bisect_left(breaks, start) - 1
    return last_break < 0 or breaks[last_break] < relatives[last][1]


@lru_cache(maxsize=4096)
def _find_relatives(text: str) -> tuple[tuple[Span, ...], tuple[int, ...]]:
    """Return the spans of relatives in a text, and the offsets where another person or clause begins."""
    relatives = tuple(match.span() for match in _RELATIVE.finditer(text))
    return relatives, tuple(match.start() for match in _SOMEBODY_ELSE.finditer(text))


def _is_adjective(text: str, start: int, end: int) -> bool:
    """Whether the span describes the subject, as in "is a 1954 Kelvian film"."""
    return bool(_IS_A.search(text[max(0, start - 60) : start])) and text[end : end + 2].strip().isalpha()


def _is_origin(text: str, start: int, end: int) -> bool:
    """Whether a span tells somebody's origin ("was a Kelvian poet", "of Kelvian descent")."""
    if _IS_FROM.search(text[max(0, start - 60) : start]) or _DESCENT.match(text, end):
        return True
    return start < _MAX_OPENING_OFFSET and _is_adjective(text, start, end)


def _find_dated(head: str, relation: Relation, tail_date: Date, text: Text, is_about_head: bool) -> Iterator[Finding]:
    for date in dates_in(text.clean):
        low, high = text.sentence_span(date.start)
        sentence = text.sentence_at(date.start)
        if not date.year:
            continue
        if not is_about_head and not mentioned_within(text, head, low, high):
            if date.agrees(tail_date):
                yield Finding("mentioned", None, sentence)
            continue
        cues = _cues_governing_date(relation, text, date)
        says_date, is_sure = _says_date(relation, text, date, cues)
        if date.agrees(tail_date) and says_date:
            yield Finding("stated", None, sentence, loose=not is_sure)
        elif date.agrees(tail_date):
            yield Finding("together", None, sentence, says_otherwise=bool(cues))
        elif is_about_head and is_sure:
            yield Finding("other", None, sentence, text.clean[date.start : date.end])


def _cues_governing_date(relation: Relation, text: Text, date: Date) -> frozenset[str]:
    low, high = text.sentence_span(date.start)
    return governing_cues(text.clean, date.start, date.end, low, high, relation.group)


_BEFORE_OR_AFTER = re.compile(r"\b(?:before|after) $")  # "before 1492" is not 1492
_YEAR_IN_BRACKETS = re.compile(r"\( \d{4} \)")  # in an article's first sentence, a year in brackets is its subject's


def _says_date(relation: Relation, text: Text, date: Date, cues: frozenset[str] | None = None) -> tuple[bool, bool]:
    """Return whether a date belongs to a relation, and whether that is sure; dates of works and foundings need no cue.

    ``cues`` are the labels that govern the date, if they are already known.
    """
    low, _ = text.sentence_span(date.start)
    if relation.group == "life" and (
        _is_of_a_relative(text.clean, low, date.start)
        or _BEFORE_OR_AFTER.search(text.clean, max(low, date.start - 10), date.start)
    ):
        return False, False
    if cues is None:
        cues = _cues_governing_date(relation, text, date)
    if relation.cues & cues:
        return True, True
    if relation.group != "time" or cues:
        return False, False
    is_subjects = low == 0 and _YEAR_IN_BRACKETS.search(text.clean[max(0, date.start - 3) : date.end + 2])
    return True, bool(is_subjects) or _is_adjective(text.clean, date.start, date.end)


_MAX_INTRODUCTION_CHARS = 80  # characters before a span in which words that introduce it are looked for
_LEADING_PREPOSITION = re.compile(r"\b(?:in|from|of|to|with)(?: the)? $")
_COUNTRY = re.compile(rf"(?>(?s:.)*?\b(?:is|was) (?:an?|one|located)\b).*(?: in| of|,)(?: the)? ({CAPITAL}\w+)[.,]")
_NATIONALITY = wording("grounding", "nationality", capital=CAPITAL)
# "Kelvian folk singer Ana Vorr": the words between a nation and the name that it qualifies.
_OF_THE_NAME = re.compile(r"(?: (?!(?:and|or|by|with|from|of|in)\b)[a-z]+| and(?= [a-z]+ )){0,6} $")
_THERE = wording("grounding", "there")
_BORN_OR_CITIZEN = wording("grounding", "born_or_citizen")
# "Kelvia, of which she was a citizen", "in Kelvia, where it lies", "in Kelvia that it was made".
_OF_WHICH = wording("grounding", "of_which")


def _find_nation(head: str, relation: Relation, tail: str, text: Text, is_about_head: bool) -> Iterator[Finding]:
    """Yield findings where a passage gives its subject's nation, or that of a person named in "Kelvian poet Ana Vorr".

    A noun, or an adjective that qualifies something else, states it loosely. A nation that the subject only visits or
    borders on, or that is part of a name, does not state it.
    """
    heads = [] if is_about_head else sorted(mentions(text, head))
    for match in nation_pattern(clean(tail)).finditer(text.clean):
        start, end = match.span()
        low, high = text.sentence_span(start)
        sentence = text.sentence_at(start)
        if not is_about_head:
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
            or _BORN_OR_CITIZEN.search(text.clean, max(low, start - _MAX_INTRODUCTION_CHARS), start)
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
            lead = _THERE.search(text.clean, max(low, start - _MAX_INTRODUCTION_CHARS), start)
            cues = cues_between(text.clean, relation.group, low, start)
            is_home = sentence == 0 or any(cue.label == "origin" for cue in cues)
            says_nation = lead is not None and (is_home or lead[0].startswith("of"))
            loose = relation.name != "country"
            yield Finding("stated" if says_nation else "together", None, sentence, loose=loose)


def _is_contact(relation: Relation, text: str, start: int, end: int, low: int) -> bool:
    """Whether a sentence's subject only had contact with a nation."""
    cues = cues_between(text, relation.group, low, start)
    nearest = cues[-1] if cues and cues[-1].label == "contact" else None
    has_preposition = _LEADING_PREPOSITION.search(text, max(0, start - _MAX_INTRODUCTION_CHARS), start)
    if has_preposition or (nearest and nearest.end + 1 == start) or is_country(text[start:end]):
        return any(cue.label == "contact" for cue in cues)
    return False


def _find_other_nation(relation: Relation, passage: Passage) -> Iterator[Finding]:
    for number, sentence in enumerate(map(fold, passage.sentences)):
        match = _NATIONALITY.search(sentence)
        if number == 0 and relation.name == "country":
            match = _COUNTRY.match(sentence) or match
        if match:
            value = next(group for group in match.groups() if group)
            # A person may have two nations; a work has only the one that its first words give.
            is_single = relation.name == "country of origin" and is_nation(clean(value))
            yield Finding("other", None, number, value, loose=not is_single)


_NAME_RUN = re.compile(rf"{CAPITAL}[\w'’-]+(?: (?:{CAPITAL}[\w'’-]+|of|the|de|am|upon)(?= |,|\.|;|\)|$))*")
_DIVISIONS = word_list("divisions")
_NOT_A_PLACE = word_list("openers") | {word for month in MONTHS for word in (month, month[:3])}
_PLACED = wording("grounding", "placed")
_ITS_CAPITAL = re.compile(r" is (?:its|the) capital\b")


def _find_other_places(relation: Relation, tail: str, passage: Passage, text: Text) -> Iterator[Finding]:
    """Yield other places than the tail that a passage gives for its subject's single-valued relation."""
    words = clean(tail).split()
    first, is_division = words[:1], bool(_DIVISIONS.intersection(words[-1:]))
    for number, sentence in enumerate(passage.sentences):
        for run in dict.fromkeys(_NAME_RUN.findall(sentence)):
            place = clean(run)
            opens = place.split()[:1]
            if opens == first or opens[0] in _NOT_A_PLACE or mentions_subject(text, run):
                continue
            # A country does not contradict a province.
            is_same_sort = is_division == bool(_DIVISIONS.intersection(place.split()[-1:]))
            if is_same_sort and _is_place_of(relation, place, number, text):
                yield Finding("other", None, number, run, loose=relation.group != "life")


def _is_place_of(relation: Relation, place: str, number: int, text: Text) -> bool:
    low, high = (*text.starts, len(text.clean))[number : number + 2]
    for start, end in word_spans(text.clean, place, max(0, low - 1), high + 1):
        is_placed = _PLACED.search(text.clean, max(0, start - _MAX_INTRODUCTION_CHARS), start)
        if is_placed or _ITS_CAPITAL.match(text.clean, end):
            span = (start, end, *text.sentence_span(start))
            if relation.cues & governing_cues(text.clean, *span, relation.group):
                return True
    return False
