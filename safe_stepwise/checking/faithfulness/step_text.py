"""Analyses a step's text: its words, the names in it, and the names that its pronouns may stand for.

A *span* is the start and end of words in the cleaned text. A step's *focus* are the names mentioned last, for which a
pronoun may stand; *familiar* names were in earlier steps, so that their last word by itself may stand for them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import nsmallest
from typing import Literal

from safe_stepwise.checking.step_reading import Reading, read_step
from safe_stepwise.language.mentions import mentions, word_spans
from safe_stepwise.language.reading import clean
from safe_stepwise.language.relations import is_nation, nation_pattern
from safe_stepwise.language.senses import Meaning, SenseCue, sense_cues
from safe_stepwise.language.syntax import Syntax, parse
from safe_stepwise.language.text import Span, as_date, dates_in, normal_name, overlaps
from safe_stepwise.language.vocabulary import word_list, wording

Stance = Literal["states", "reversed", "relation", "near", "no"]
"""How a step relates to a triple: it states it, exchanges its ends, joins them by another relation (``relation``) or
by no known one (``near``), or does neither (``no``: it does not name both ends, or says that a fact is missing)."""

_MAX_PRONOUN_CHARS = 5  # a longer match is a noun ("the film")
STOP_WORDS = word_list("stop_words")
PERSONS = "|".join(sorted(word_list("sort_person")))
SORT_WORDS = "|".join(word for name in ("sort_work", "sort_place", "sort_group") for word in sorted(word_list(name)))
SORTS = f"{PERSONS}|{SORT_WORDS}"
_PRONOUN = wording("step_text", "pronoun", sorts=SORTS)
_CLEFT = re.compile(r"^(?:it|that|this) (?:was|is) ")
_OPENING_PHRASES = re.compile(r"(?<!\w)(?:to (?:begin|start) with|the steps)(?!\w)")
"""Phrases whose words look like those of a relation ("start", "step"), but are not."""
_EXPLETIVE = wording("step_text", "expletive")
_COMMON_NOUNS = word_list("common_nouns")
_OPENERS = word_list("openers") | word_list("step_openers") | word_list("function_words") | {"among"}
_MAX_READ_CHARS = 4000  # of a step or question; steps written by people have under 500
_MAX_PAIRS = 64
_TAILS_PER_SIDE = 8  # mentions of a tail before and after a head's that are paired with it
_MAX_EXPLETIVE_CHARS = 40  # of a phrase such as "it is stated in the text that"


@dataclass(frozen=True, eq=False)
class StepText:
    """An analysed step: its words, and the names that its pronouns and short names may stand for.

    Steps are compared by identity, so that spans in them can be cached.
    """

    reading: Reading
    focus: tuple[str, ...] = ()
    familiar: tuple[str, ...] = ()
    """Names in earlier steps; their last word by itself may stand for them."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Maps a name in the facts to another name of the same entity."""
    entities: tuple[str, ...] = ()
    """Names in the question's facts and passages, so that a step's names are recognised in full."""

    @cached_property
    def clean(self) -> str:
        """The step in cleaned text."""
        return self.reading.text.clean.replace("_", " ")

    @cached_property
    def syntax(self) -> Syntax:
        """The parsed step; nations and numbers are left to the parser, which tells adjectives from countries."""
        names = (name for _, name in self.values if not (as_date(name) or name.isdigit() or is_nation(clean(name))))
        return parse(self.reading.claim, frozenset(names))

    @cached_property
    def capitals(self) -> frozenset[str]:
        """Capitalised words of the step, cleaned."""
        capitalised = (token for token in self.reading.claim.split() if token[:1].isupper() or token[1:2].isupper())
        return frozenset(word for token in capitalised for word in clean(token).split())

    @cached_property
    def pronouns(self) -> tuple[Span, ...]:
        """Spans of pronouns and of nouns that stand for a name, outside titles and not beside a name."""
        spans = []
        for match in _PRONOUN.finditer(self.clean):
            span = (match.start() + match[0].startswith(" "), match.end())
            next_start = span[1] + len(" the") * self.clean.startswith(" the ", span[1])
            is_beside_name = self.clean[next_start:].partition(" ")[2].partition(" ")[0] in self.capitals
            is_beside_name = is_beside_name or any(a - 1 <= next_start < b for (a, b), _ in self.values)
            if is_beside_name and span[1] - span[0] > _MAX_PRONOUN_CHARS:
                continue  # "the film Dune Rain"
            if _CLEFT.match(self.clean[span[0] :]) and " who " in self.clean[span[1] :]:
                continue  # "It was Ana who …"
            if _EXPLETIVE.match(self.clean[span[0] : span[0] + _MAX_EXPLETIVE_CHARS]):
                continue  # "it says that …"
            if not any(overlaps(span, value) for value, _ in self.values):
                spans.append(span)
        return tuple(spans)

    @cached_property
    def cues(self) -> tuple[SenseCue, ...]:
        """The words that express a relation; words inside names do not count."""
        names = (span for span, _ in self._entity_spans)
        openings = (match.span() for match in _OPENING_PHRASES.finditer(self.clean))
        return sense_cues(self.clean, (*names, *openings))

    @cached_property
    def _entity_spans(self) -> list[tuple[Span, str]]:
        spans = [(span, name) for name in self.entities if not as_date(name) for span in find_name(self, name)]
        return [(span, name) for span, name in spans if not any(contains(longer, span) for longer, _ in spans)]

    @cached_property
    def values(self) -> tuple[tuple[Span, str], ...]:
        """Names, dates and numbers with their spans; a part of one of ``entities`` counts as that entity."""
        entities, size = self._entity_spans, len(self.clean)
        pairs = ((s, value) for value in self.reading.values for s in word_spans(self.clean, clean(value), 0, size))
        values = (pair for pair in pairs if not any(overlaps(pair[0], entity) for entity, _ in entities))
        return tuple(sorted([*entities, *values]))

    def spans_of(self, name: str) -> tuple[Span, ...]:
        """Return the spans of a name, date, nation or number; pronouns are left out."""
        if name not in self._span_cache:
            spans = {*find_name(self, name), *(find_name(self, self.aliases[name]) if name in self.aliases else ())}
            self._span_cache[name] = tuple(sorted(span for span in spans if not self._is_other_name(span, name)))
        return self._span_cache[name]

    @cached_property
    def _span_cache(self) -> dict[str, tuple[Span, ...]]:
        return {}

    def _is_other_name(self, span: Span, name: str) -> bool:
        """Whether a span is all or a part of another name."""
        if not name[:1].isupper():
            return False
        words, name_words = normal_name(self.clean[slice(*span)]), normal_name(name)
        return any(
            (contains(entity_span, span) and entity[:1].isupper() and not _differs_in_place(entity, name))
            or (
                words != name_words
                and words == normal_name(entity)
                and entity_span == span
                and entity not in (name, self.aliases.get(name))
            )
            for entity_span, entity in self._entity_spans
        )


def parse_text(
    text: str,
    focus: Sequence[str] = (),
    familiar: Sequence[str] = (),
    entities: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
) -> StepText:
    """Analyse a step's text (without number and kind); only its first 4,000 characters count.

    >>> parse_text("Dune Rain was directed by Ana Vorr.").spans_of("Ana Vorr")
    ((27, 35),)
    """
    return StepText(read_step(as_read(text)), tuple(focus), tuple(familiar), aliases or {}, tuple(entities))


def as_read(text: str) -> str:
    """Return the first 4,000 characters of a text, with spaces for underscores."""
    return text[:_MAX_READ_CHARS].replace("_", " ")


def _differs_in_place(longer: str, name: str) -> bool:
    """Whether two names differ only in that one has a place or sort after it ("Oru, Kelvia", "Oru (town)")."""
    bare, _, place = longer.partition(",")
    name_base, _, name_place = name.partition(",")
    return normal_name(bare) == normal_name(name_base) and not (place and name_place and place != name_place)


def find_name(step: StepText, name: str) -> tuple[Span, ...]:
    """Return the spans of a name in a step, even within longer names; aliases and pronouns are left out."""
    text = step.clean
    if date := as_date(name):
        return tuple((match.start, match.end) for match in dates_in(text) if match.year and match.agrees(date))
    spans = mentions(step.reading.text, name)
    bare = clean(name)
    if not spans:
        spans = list(word_spans(text, bare, 0, len(text)))
    if not spans and is_nation(bare):
        spans = [match.span() for match in nation_pattern(bare).finditer(text)]
    if not spans and name in step.familiar:
        spans = list(_short_form_spans(step, name))
    return tuple(sorted(set(spans)))


def _short_form_spans(step: StepText, name: str) -> Iterator[Span]:
    """Yield the spans of a familiar name's last or first word, unless it belongs to another name."""
    words = normal_name(name).split()
    short_forms = {words[-1], words[0]} if len(words) > 1 else set()
    for short_form in short_forms:
        if len(short_form) < 4 or short_form in STOP_WORDS or short_form in _COMMON_NOUNS:
            continue
        for start, end in word_spans(step.clean, short_form, 0, len(step.clean)):
            before = [w for w in step.clean[:start].split()[-1:] if w not in _OPENERS]
            after = step.clean[end:].split()[:1]
            is_beside_name = [w for w in (*before, *after) if w in step.capitals and w not in ("'s", *words)]
            if not any(len(w) > 1 and not sense_cues(w) for w in is_beside_name):
                yield start, end


_OF_A_PERSON = wording("step_text", "of_a_person", persons=PERSONS)
_OF_A_THING = re.compile(rf"(?:it|its)$|.* (?:{SORT_WORDS}|work|place|birthplace)$")


def pronouns_for(step: StepText, meaning: Meaning | None) -> tuple[Span, ...]:
    """Return the pronouns that may stand for the head of a relation, by whether its meaning needs a person."""
    if meaning is None:
        return step.pronouns
    excluded = _OF_A_THING if meaning.of_person else _OF_A_PERSON
    return tuple(span for span in step.pronouns if not excluded.match(step.clean[slice(*span)]))


def nearest_pairs(heads: Iterable[Span], tails: Iterable[Span]) -> list[tuple[Span, Span]]:
    """Pair the mentions of a head with those of a tail; return the 64 nearest pairs.

    >>> nearest_pairs([(1, 4)], [(9, 12), (5, 8)])
    [((1, 4), (5, 8)), ((1, 4), (9, 12))]
    """
    ends = sorted(tails)
    near = []
    for head in heads:
        place = bisect_left(ends, head)
        near += [(head, tail) for tail in ends[max(0, place - _TAILS_PER_SIDE) :][: 2 * _TAILS_PER_SIDE]]
    return nsmallest(_MAX_PAIRS, near, key=lambda p: (abs(p[0][0] - p[1][0]), p))


def contains(longer: Span, span: Span) -> bool:
    return longer != span and longer[0] <= span[0] and span[1] <= longer[1]
