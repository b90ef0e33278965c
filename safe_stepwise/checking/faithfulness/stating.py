"""What one step says of one triple: states it, turns it round, joins its ends otherwise, or nothing.

A step is read as a text of its own. Names count only whole or by a short form that an earlier
mention allows; a pronoun stands for what was spoken of last (``Said.focus``).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from safe_stepwise.checking.statements import is_free
from safe_stepwise.checking.step_reading import Reading, content_words, coverage, read_step
from safe_stepwise.language.mentions import mentions, word_spans
from safe_stepwise.language.reading import Span, clean
from safe_stepwise.language.relations import is_nation, nation_pattern
from safe_stepwise.language.senses import Form, Meaning, SenseCue, meaning_of, sense_cues
from safe_stepwise.language.text import as_date, dates_in, normal_name
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Triple

Stand = Literal["states", "reversed", "relation", "near", "no"]
"""What a step does with a triple: states it; exchanges its ends; joins them by another relation
(``relation``) or by none that is known (``near``); does not speak of both."""
_BEST: tuple[Stand, ...] = ("states", "reversed", "relation", "near", "no")

_EPITHETS = frozenset("ii iii iv v vi vii viii ix x elder younger".split())
_LONGEST_PRONOUN = 5
_STOP_WORDS = word_list("stop_words")
_PERSONS = "|".join(sorted(word_list("sort_person")))
_THINGS = "|".join(
    word for name in ("sort_work", "sort_place", "sort_group") for word in sorted(word_list(name))
)
_SORTS = f"{_PERSONS}|{_THINGS}"
_PRONOUN = re.compile(
    r"(?<!\w)(?:(?<=[a-z] )there|he|she|it|they|him|his|her|hers|its|their|them|both|the (?:latter|former)"
    rf"|(?:the|this|that|said|same) (?:\w+ )?(?:{_SORTS}|man|woman|person|work|place|father|mother"
    r"|husband|wife|spouse|birthplace))(?!\w)(?! of\b)"
)
_CLEFT = re.compile(r"^(?:it|that|this) (?:was|is) ")
_COORDINATED = re.compile(r"^[\s,]*(?:and|also|then|co|or|&|as well as|[\s,])*[\s,]*$")
_LISTED = re.compile(
    r"^(?:[\s,;]|\b(?:and|as well as|with|the|both|respectively|to|until|till|[a-z]|i{1,3}v?|queen"
    r"|king|emperor|empress|prince|princess|sir|lady)\b|&|--)*$"
)
_OPENERS = word_list("openers") | word_list("step_openers")
_STOP = " . "
_LONG = 5
_STEM = 5
_MOST = 0.7
"""Share of a long tail's content words that a step has to have."""
_HALF = 0.5
"""Share of a free relation's content words that say it."""
_NEAR = 25
"""Characters between a wording and a name beside it, where no name stands between them."""


@dataclass(frozen=True)
class Said:
    """A step as it is read: its words, and whom its pronouns and short names may mean."""

    reading: Reading
    focus: tuple[str, ...] = ()
    familiar: tuple[str, ...] = ()
    """Names told before, whose last word alone may stand for them."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Names of the facts that mean what another name there means."""
    known: tuple[str, ...] = ()
    """Names that the question's facts and passages have, so that a step's values are whole."""

    @cached_property
    def clean(self) -> str:
        """The step in cleaned text."""
        return self.reading.text.clean.replace("_", " ")

    @cached_property
    def capitals(self) -> frozenset[str]:
        """Its capitalised words, cleaned."""
        return frozenset(
            word for part in self.reading.claim.split() if part[:1].isupper() or part[1:2].isupper()
            for word in clean(part).split()
        )  # fmt: skip

    @cached_property
    def pronouns(self) -> tuple[Span, ...]:
        """Where it speaks of something without its name: in no title, and beside no name."""
        found = []
        for match in _PRONOUN.finditer(self.clean):
            span = (match.start() + match[0].startswith(" "), match.end())
            rest = span[1] + len(" the") * self.clean.startswith(" the ", span[1])
            beside = any(a - 1 <= rest < b for (a, b), _ in self.values)
            if beside and span[1] - span[0] > _LONGEST_PRONOUN:
                continue  # "the film Dune Rain"
            if _CLEFT.match(self.clean[span[0] :]) and " who " in self.clean[span[1] :]:
                continue  # "It was Ana who …"
            if not any(_overlaps(span, value) for value, _ in self.values):
                found.append(span)
        return tuple(found)

    @cached_property
    def cues(self) -> tuple[SenseCue, ...]:
        """Its wordings of a sense, those of names left out."""
        return sense_cues(self.clean, tuple(span for span, _ in self._known_names))

    @cached_property
    def _known_names(self) -> list[tuple[Span, str]]:
        whole = [
            (span, name) for name in self.known if not as_date(name)
            for span in _named(self, name)
        ]  # fmt: skip
        return [
            (span, name) for span, name in whole
            if not any(_holds(other, span) for other, _ in whole)
        ]  # fmt: skip

    @cached_property
    def values(self) -> tuple[tuple[Span, str], ...]:
        """Names, dates and numbers with their spans; a part of a known name is that name."""
        whole = self._known_names
        parts = [
            (span, value) for value in self.reading.values
            for span in word_spans(self.clean, clean(value), 0, len(self.clean))
        ]  # fmt: skip
        parts = [
            (span, value) for span, value in parts
            if not any(_overlaps(span, other) for other, _ in whole)
            and not (sense_cues(clean(value)) and self.reading.opens_with(value))
        ]  # fmt: skip
        return tuple(sorted([*whole, *parts]))

    def named(self, name: str) -> tuple[Span, ...]:
        """Where a name, date, nation or number stands; pronouns left out."""
        spans = set(_named(self, name))
        if name in self.aliases:
            spans |= set(_named(self, self.aliases[name]))
        return tuple(sorted(span for span in spans if not self._is_anothers(span, name)))

    def _is_anothers(self, span: Span, name: str) -> bool:
        """Whether a span is a part of another known name, or all of it and a part of this one."""
        if not name[:1].isupper():
            return False
        words, own = normal_name(self.clean[slice(*span)]), normal_name(name)
        return any(
            (_holds(other, span) and known[:1].isupper() and not _goes_on(known, name))
            or (words != own and words == normal_name(known) and other == span
                and known not in (name, self.aliases.get(name)))
            for other, known in self._known_names
        )  # fmt: skip


# "Ana Vorr (3 May 1901 – 4 March 1970)"
_LIFE = re.compile(
    r"\((?!born|b\.)([^()–—-]{0,40}\d{3,4})\s*[–—-]\s*([^()–—-]{0,40}\d{3,4})\)"
)


def said_by(
    text: str,
    focus: Sequence[str] = (),
    familiar: Sequence[str] = (),
    known: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
) -> Said:
    """A step's text (without number and kind), taken apart.

    >>> said_by("Dune Rain was directed by Ana Vorr.").named("Ana Vorr")
    ((27, 35),)
    """
    plain = _LIFE.sub(r"(born \1, died \2)", text.replace("_", " "))
    return Said(read_step(plain), tuple(focus), tuple(familiar), aliases or {}, tuple(known))


def _goes_on(longer: str, name: str) -> bool:
    """Whether a longer name is a name with where or what it is: "Oru, Kelvia", "Oru (town)"."""
    bare, _, rest = longer.partition(",")
    own, _, ours = name.partition(",")
    return normal_name(bare) == normal_name(own) and not (rest and ours and rest != ours)


def _named(said: Said, name: str) -> tuple[Span, ...]:
    text = said.clean
    if date := as_date(name):
        return tuple(
            (found.start, found.end) for found in dates_in(text)
            if found.year and found.agrees(date)
        )  # fmt: skip
    spans = [span for span in mentions(said.reading.text, name) if _is_whole(said, name, *span)]
    bare = clean(name)
    if not spans:
        spans = list(word_spans(text, bare, 0, len(text)))
    if not spans and is_nation(bare):
        spans = [found.span() for found in nation_pattern(bare).finditer(text)]
    if not spans and name.islower() and " " not in name and len(name) > _STEM:
        stem = re.compile(rf"(?<!\w){re.escape(bare[:_STEM])}\w*")
        spans = [found.span() for found in stem.finditer(text)]
    if not spans and name in said.familiar:
        spans = list(_by_a_part(said, name))
    return tuple(sorted(set(spans)))


def _is_whole(said: Said, name: str, start: int, end: int) -> bool:
    """Whether a span is the name with no more than middle names: no words of other names."""
    own = set(clean(name).split()) | set(normal_name(name).split())
    words = said.clean[start:end].split()
    others = [word for word in words if word not in own and word not in "(),"]
    if _EPITHETS & {*others, *(own - {*words} if len(words) > 1 else ())}:
        return False  # "Ors II Velt" is not Ors III
    return len(others) <= 2 and all(word in said.capitals for word in others)  # noqa: PLR2004


def _by_a_part(said: Said, name: str) -> Iterator[Span]:
    """Spans of a familiar name's last or first word, where no other name goes on from it."""
    words = normal_name(name).split()
    parts = {words[-1], words[0]} if len(words) > 1 else set()
    for part in parts:
        if len(part) < 4 or part in _STOP_WORDS:  # noqa: PLR2004
            continue
        for start, end in word_spans(said.clean, part, 0, len(said.clean)):
            before = said.clean[:start].split()[-1:]
            after = said.clean[end:].split()[:1]
            beside = [w for w in (*before, *after) if w in said.capitals and w not in words]
            if not any(len(w) > 1 and not sense_cues(w) for w in beside):
                yield start, end


# ------------------------------------------------------------------------------------- what is said


def stand(said: Said, triple: Triple) -> Stand:
    """What a step does with a triple.

    >>> fact = Triple("Dune Rain", "director", "Ana Vorr")
    >>> [stand(said_by(text), fact) for text in (
    ...     "Ana Vorr directed Dune Rain.", "Ana Vorr was directed by Dune Rain.",
    ...     "Ana Vorr produced Dune Rain.", "Dune Rain is a film.")]
    ['states', 'reversed', 'relation', 'no']
    """
    if said.reading.denies:
        return "no"
    if clean(f"{triple.head} {triple.relation} {triple.tail}".replace("_", " ")) in said.clean:
        return "states"  # by its very words
    tails = said.named(triple.tail)
    heads = said.named(triple.head)
    meaning = meaning_of(triple.relation)
    if meaning is None:
        return _free(said, triple, heads, tails)
    if heads:
        heads += tuple(span for span in _pronouns(said, meaning) if span[0] > heads[0][1])
    elif triple.head in said.focus:
        heads = _stand_ins(said, tails, meaning)
    if not tails and triple.tail in said.focus and heads:
        tails = said.pronouns
    if not heads or not tails:
        return "no"
    if verbatim := _verbatim(said, triple.relation, heads, tails):
        return verbatim
    found = {_joined(said, meaning, head, tail) for head in heads for tail in tails}
    return next(each for each in _BEST if each in found)


def _verbatim(
    said: Said, relation: str, heads: Sequence[Span], tails: Sequence[Span]
) -> Stand | None:
    """Whether a step gives a relation by its very name: "the … of Oru is Vel", "Oru's … is Vel"."""
    name, text = clean(relation.replace("_", " ")), said.clean

    def is_said(ones: Sequence[Span], others: Sequence[Span]) -> bool:
        return any(
            (re.fullmatch(r" (?:is|was|are|were) ", text[a[1] : b[0]])
             and text[: a[0]].endswith(f"{name} of "))
            or re.fullmatch(rf" 's {re.escape(name)} (?:is|was|are|were) ", text[a[1] : b[0]])
            for a in ones for b in others
        )  # fmt: skip

    if is_said(heads, tails):
        return "states"
    return "reversed" if is_said(tails, heads) else None


_OF_A_PERSON = re.compile(
    rf"(?:he|she|him|his|her|hers)$|.* (?:{_PERSONS}|man|woman|person|father|mother|husband|wife|spouse)$"
)
_OF_A_THING = re.compile(rf"(?:it|its)$|.* (?:{_THINGS}|work|place|birthplace)$")


def _pronouns(said: Said, meaning: Meaning | None) -> tuple[Span, ...]:
    """Pronouns that may stand for the head of a relation, a person or none."""
    if meaning is None:
        return said.pronouns
    barred = _OF_A_THING if meaning.of_person else _OF_A_PERSON
    return tuple(span for span in said.pronouns if not barred.match(said.clean[slice(*span)]))


def _stand_ins(
    said: Said, tails: Sequence[Span], meaning: Meaning | None = None
) -> tuple[Span, ...]:
    """Pronouns; where a step has none and names nothing else, the place before all it says."""
    if said.pronouns:
        return _pronouns(said, meaning)
    others = [span for span, _ in said.values if not any(_overlaps(span, t) for t in tails)]
    opens = said.clean.split()[:1]
    plain = bool(opens) and (opens[0] in _OPENERS or bool(sense_cues(said.clean[:30])[:1]))
    starts = any(a <= 1 for a, _ in tails)
    others = [s for s in others if not dates_in(said.clean[s[0] : s[1]])]
    return ((0, 0),) if not others and (plain or starts) else ()


def _joined(said: Said, meaning: Meaning, head: Span, tail: Span) -> Stand:
    """What the wording between and around two spans makes of them."""
    first, second = sorted((head, tail))
    if first[1] > second[0]:
        return "no"
    if _STOP in said.clean[first[1] : second[0]]:
        return "no"
    joint = (first[0], _past_list(said, first, second))
    cues = _governing(said, joint, second)
    if between := [cue for cue in cues if joint[1] <= cue.start < second[0]]:
        if _has_own_subject(said, joint[1], between[0].start):
            return "near"
    if meaning.kind == "nation" and _is_adjective(
        said, joint if head == first else head, joint if tail == first else tail, cues
    ):
        return "states"
    if meaning.kind == "date":
        cues = [
            cue for cue in cues
            if cue.sense in _OF_DATES or said.clean[cue.end : head[0]] in _LED
            or (cue.end + 1 == tail[0] and said.clean[: cue.end].endswith(" by"))
        ]  # fmt: skip
        if not cues and _dates_work(said, meaning, head, tail):
            return "states"
    own = [cue for cue in cues if cue.sense in meaning.says | meaning.turned]
    if own:
        by_words = meaning.kind == "text"  # a cause or genre is nothing that has a head of its own
        turns = {
            _direction(said, cue, head, tail, text_is_said=by_words) * _sign(cue, meaning)
            for cue in own
        }
        return "reversed" if turns == {-1} else "states"
    if all(cue.sense in _TELLS_NOTHING for cue in cues):
        return "near" if not cues else "no"
    return "relation"


_TELLS_NOTHING = frozenset(("other_kin",))
_OF_DATES = frozenset(
    "birth birth_date death death_date lived burial release inception spouse award".split()
)
_IN_A_YEAR = re.compile(
    r" [(,] (?:an? )?$|(?: [),])? (?:is|was|,) (?:an?|the) (?:[a-z-]+ )*$"
    r"|.*(?:film|movie|song|album|single|book|novel|comedy|drama|work|record)\w* (?:from|of|in) $"
)


def _dates_work(said: Said, meaning: Meaning, head: Span, tail: Span) -> bool:
    """Whether a date stands beside a work as its year: "Dune Rain (1950)", "is a 1950 film"."""
    if "release" not in meaning.says or head[0] > tail[0]:
        return False
    between = said.clean[head[1] : tail[0]]
    return "born" not in between and bool(_IN_A_YEAR.match(between))


_AND = re.compile(r" (?:, )?(?:and|as well as|&|,|along with|together with)(?: the)? $")
_LED_TO = re.compile(
    r"(?:^| )(?:in|on|at|of|by|from|with|to|for|near|as|starring|featuring|opposite|the|an?|\(|born|died|--"
    r"|(?:\w+ )?(?:film|novel|song|album|son|daughter|director|writer|actor|actress)) $"
)


def _past_list(said: Said, first: Span, second: Span) -> int:
    """Where a list of names that the first one opens ends: "Ana Vorr and Ors Velt are …"."""
    end = first[1]
    for (a, b), _ in said.values:
        if end < a and b <= second[0] and _AND.match(said.clean[end:a]):
            end = b
    return end


def _has_own_subject(said: Said, low: int, high: int) -> bool:
    """Whether a name between two offsets is what the words behind it speak of.

    A name that a preposition, or wording of some sense, leads up to is spoken of already.
    """
    for (a, b), _ in said.values:
        if not (low <= a and b <= high) or dates_in(said.clean[a:b]):
            continue
        if is_nation(said.clean[a:b]):
            continue
        before = said.clean[low:a]
        if _LED_TO.search(before) or before.count("(") > before.count(")"):
            continue
        led = [cue for cue in said.cues if low <= cue.start and cue.end < a and a - cue.end <= 2]  # noqa: PLR2004
        if not led:
            return True
    return False


def _sign(cue: SenseCue, meaning: Meaning) -> int:
    return 1 if cue.sense in meaning.says else -1


_ADJECTIVE = re.compile(r"^(?: [a-z-]+){1,5} $")
_HAS_NATION = re.compile(r".*\b(?:has|had|holds?)\b")
_NATIONALITY = re.compile(r" (?:nationality|citizenship|origin|passport)")
_COPULA = re.compile(
    r"^(?: \([^)]*\))?[ ,]*(?:(?:[a-z]+-(?=[a-z]*$)|is|was|are|were|both|also|being|an?|the|of|by|from|in|born|\d+|who|which"
    r"|had|has|holds?|held|nationality|citizenship|(?:long|feature|short)?[ -]?length|former|19\d\ds?|20\d\ds?)\s?)*$"
)


def _is_adjective(said: Said, head: Span, tail: Span, cues: Sequence[SenseCue]) -> bool:
    """Whether a nation is said of a head as what it is: "is an American …", "the American Ana"."""
    if head[1] <= tail[0]:
        led = any(said.clean[cue.end : head[0]] in _LED for cue in cues if cue.end <= head[0])
        has = _HAS_NATION.match(said.clean[head[1] :][: tail[0] - head[1]])
        if has and not _NATIONALITY.match(said.clean[tail[1] :]):
            return False
        return not led and bool(_COPULA.match(said.clean[head[1] : tail[0]]))
    plain = said.clean[tail[1] : head[0]].split()
    acts = any(tail[1] <= cue.start < head[0] and cue.form != "nouns" for cue in cues)
    few = len(plain) <= 4 and all(w.isalpha() and w not in _STOP_WORDS for w in plain)  # noqa: PLR2004
    return few and not acts


def _governing(said: Said, first: Span, second: Span) -> list[SenseCue]:
    """The cues that join two spans: between them, else before both, else behind both."""
    text = said.clean
    low = text.rfind(_STOP, 0, first[0]) + 1
    high = text.find(_STOP, second[1])
    high = len(text) if high < 0 else high
    cues = [
        cue for cue in said.cues
        if low <= cue.start and cue.end <= high
        and all(cue.end <= a or b <= cue.start for a, b in (first, second))
    ]  # fmt: skip
    between = [cue for cue in cues if first[1] <= cue.start and cue.end <= second[0]]
    if between and all(_WEAK.match(text[c.start : c.end]) for c in between):
        led = [c for c in cues if text[c.end : first[0]] in _LED]
        between = [] if led else between
    while len(between) > 1 and between[-1].form == "nouns" and _leads_on(
        text, between[-1].start - 1, second
    ):
        between = between[:-1]  # "his wife was the screenwriter Ana Vorr"
    while between:
        last = [cue for cue in between if cue.end == between[-1].end]
        last += [c for c in between if c not in last and _together(text, c, last[0])]
        if not _is_taken(said, between[-1], second):
            return last
        between = [cue for cue in between if cue.end < between[-1].end]
    before = [cue for cue in cues if cue.end <= first[0]]
    near = [
        cue for cue in before
        if not _names_between(said, cue.end, first[0])
        and (cue.form == "nouns" or not _has_own_subject(said, low, cue.start))
    ]  # fmt: skip
    if near:
        end = max(cue.end for cue in near)
        return [cue for cue in near if cue.end == end or _together(text, cue, near[-1])]
    if before and _ELLIPSIS.fullmatch(text[first[1] : second[0]]):
        last = before[-1]  # "… was founded in 1870, and the other in 1911"
        return [cue for cue in before if cue.end == last.end and cue.form != "nouns"]
    behind = [cue for cue in cues if cue.start >= second[1]]
    near = [cue for cue in behind if not _names_between(said, second[1], cue.start)]
    near = [cue for cue in near if not _is_taken(said, cue, (high, high))]
    return [cue for cue in near if cue.start == near[0].start]


_ELLIPSIS = re.compile(r" (?:(?:was|is) )?(?:by|in|on|from|at) (?:the )?")
_WEAK = re.compile(r"(?:is|was|are|were|be|both) (?:both )?(?:in|from)$")
_LED = frozenset((" of ", " of the ", " of the film ", " for "))


def _together(text: str, cue: SenseCue, last: SenseCue) -> bool:
    """Whether two cues are one: "wrote and directed"."""
    return cue.end <= last.start and bool(_COORDINATED.match(text[cue.end : last.start]))


def _is_taken(said: Said, cue: SenseCue, second: Span) -> bool:
    """Whether something else than the second span is what a cue says: "born in Vel, died in Oru"."""
    taken = [
        (a, b) for (a, b), _ in said.values
        if cue.end <= a and b <= second[0] and a - cue.end <= _NEAR
        and not _overlaps((a, b), second)
        and not _leads_on(said.clean, b, second)
    ]  # fmt: skip
    if not taken or cue.form == "nouns":
        return False
    a, b = min(taken)
    if any(c.start >= cue.end and c.end <= a for c in said.cues):
        return False
    kinds = {bool(dates_in(said.clean[x:y])) for x, y in (taken[0], second)}
    if len(kinds) > 1:  # a date beside a place is what the same cue says
        return False
    rest = said.clean[b : second[0]]
    for x, y in sorted(taken[1:], reverse=True):
        rest = rest[: x - b] + rest[y - b :] if x >= b else rest
    return not _LISTED.match(rest)


def _leads_on(text: str, end: int, second: Span) -> bool:
    """Whether words say what the second span is: "the American actor Edward Dillon"."""
    return bool(re.fullmatch(rf" (?:(?:film )?(?:{_SORTS}) ){{0,3}}", text[end : second[0]]))


def _overlaps(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _holds(longer: Span, span: Span) -> bool:
    within = longer[0] <= span[0] and span[1] <= longer[1]
    return within and longer[1] - longer[0] > span[1] - span[0]


def _names_between(said: Said, low: int, high: int) -> bool:
    return any(low <= a and b <= high for (a, b), _ in said.values) or high - low > 3 * _NEAR


def _direction(
    said: Said, cue: SenseCue, head: Span, tail: Span, *, text_is_said: bool = False
) -> int:
    """1 where a cue makes the head its head, -1 where its tail, 0 where it does not tell."""
    if cue.form == "both" or text_is_said:
        return 0
    if cue.form == "nouns" or said.clean.startswith(" of ", cue.end):
        return _owner(said, cue, head, tail)
    sign = _FOLLOWS[cue.form]
    after = [span for span in (head, tail) if span[0] >= cue.end]
    if len(after) == 1:
        return sign if after[0] == tail else -sign
    if not after:  # "Oru is where Ana was born": what stands last before it is what it is said of
        return sign if max(head, tail) == head else -sign
    if _names_between(said, cue.end, min(after)[0]):
        return 0
    # "directed by Ana, Dune Rain …", "born in Oru, Ana …": what comes first is what it leads to
    return sign if min(after) == tail else -sign


_FOLLOWS: dict[Form, int] = {"to_tail": 1, "to_head": -1}
_HAD = re.compile(r" ha[sd] .* as (?:an? |the |its |his |her )?$")
_OF = re.compile(
    r"^ (?:(?:credited|position|duties) )?(?:of|for|to|behind|in|on)(?: (?!and\b|is\b|was\b)[\w-]+){0,5}? $"
)


def _owner(said: Said, cue: SenseCue, head: Span, tail: Span) -> int:
    """Whose tail a noun names: "the director of Dune Rain", "Dune Rain's director"."""
    text = said.clean
    for span, sign in ((head, 1), (tail, -1)):
        if cue.end <= span[0] and _OF.match(text[cue.end : span[0]]):
            return sign
        if span[1] <= cue.start and re.match(r"^ ?'s (?:[\w-]+ ){0,3}$", text[span[1] : cue.start]):
            return sign
        if text[span[0] : span[1]] in ("his", "her", "its", "their", "whose"):
            return sign
    if max(head, tail)[1] <= cue.start and _HAD.search(text[: cue.start]):
        return 1 if head < tail else -1
    return 0


# ---------------------------------------------------------------------------------- free relations


def _free(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same for a relation in words of its own, or a question."""
    asks = clean(triple.relation)
    tails = tuple(span for span in tails if said.clean[slice(*span)] not in asks)
    words = content_words(triple.relation) - content_words(triple.head)
    words -= content_words(triple.tail)
    has_head = bool(heads or _named(said, triple.head)) or _covers(said, triple.head)
    if not has_head and triple.head in said.focus:
        has_head = bool(_stand_ins(said, tails))
    if not has_head and "…" not in triple.relation:
        # What a question asks about stands in it; its head is but the page that answers it.
        asked_about = said_by(triple.relation).reading.values
        has_head = any(
            said.named(name) for name in asked_about if clean(name) not in _STOP_WORDS
        )
    by_name = bool(heads)
    has_tail = bool(tails) or _covers(said, triple.tail)
    if not has_tail:
        return "no"
    share = coverage(words, said.reading.claim)
    if not has_head:
        return "states" if words and share >= _MOST else "no"
    if verbatim := _verbatim(said, triple.relation, heads, tails):
        return verbatim
    if not words or share >= _HALF:
        return "reversed" if _turned(said, triple, heads, tails) else "states"
    return _by_sense(said, triple, heads, tails)


def _by_sense(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> Stand:
    """The same where a step has other words than a free relation: by what both mean.

    Words of which no sense is known are no other relation: such a step states the triple.
    """
    asked = sense_cues(clean(triple.relation))
    cues = [
        cue
        for head in heads for tail in tails
        if head[1] <= tail[0] or tail[1] <= head[0]
        for cue in _governing(said, *sorted((head, tail)))
    ] or list(said.cues)  # fmt: skip
    if shared := {cue.sense for cue in asked} & {cue.sense for cue in cues}:
        return "reversed" if _turns(said, triple, heads, tails, shared) else "states"
    by_name = bool(heads or said.pronouns)
    known, told = ([c for c in those if c.form != "nouns"] for those in (asked, cues))
    if known and told and heads and tails:
        return "relation"
    return "states" if by_name and tails else "near"


def _turns(
    said: Said, triple: Triple, heads: Sequence[Span], tails: Sequence[Span], senses: set[str]
) -> bool:
    """Whether a step joins the ends by a sense of a free relation the other way round."""
    if is_free(triple):
        return False
    gold = said_by(f"{triple.head} {triple.relation} {triple.tail}.")
    ours, theirs = (
        {
            _direction(of, cue, head, tail)
            for cue in of.cues if cue.sense in senses
            for head in ones for tail in others
        }
        for of, ones, others in (
            (gold, gold.named(triple.head), gold.named(triple.tail)), (said, heads, tails)
        )
    )  # fmt: skip
    return len(ours) == len(theirs) == 1 and next(iter(ours)) * next(iter(theirs)) == -1


def _covers(said: Said, name: str) -> bool:
    """Whether a step has most of the words of a phrase, which is no name."""
    words = content_words(name)
    if not words:
        return clean(name) in said.clean
    if len(words) == 1 or (len(name.split()) < _LONG and name[:1].isupper()):
        return False
    return coverage(words, said.reading.claim) >= _MOST


def _turned(said: Said, triple: Triple, heads: tuple[Span, ...], tails: tuple[Span, ...]) -> bool:
    """Whether a step has a free relation's very words between its ends, exchanged."""
    relation = f" {clean(triple.relation)} "
    cues = sense_cues(relation)
    if not relation.strip() or any(cue.form == "both" for cue in cues):
        return False

    def between(ones: Sequence[Span], others: Sequence[Span]) -> bool:
        return any(
            said.clean[a[1] : b[0]].startswith(relation) or said.clean[a[1] : b[0]] == relation
            for a in ones for b in others if a[1] < b[0]
        )  # fmt: skip

    return between(tails, heads) and not between(heads, tails)
