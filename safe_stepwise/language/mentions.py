"""Finds where a text names something, and decides what a passage is about. Texts are cleaned (`reading.clean`)."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile

from safe_stepwise.language.reading import OPENERS, Span, Text, clean, read
from safe_stepwise.language.text import CAPITAL, as_date, dates_in, fold, has_words, normal_name, other_names
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

_PARTICLES = word_list("particles")
_HONORIFICS = word_list("honorifics")
_SORTS = word_list("sorts")
_DIVISIONS = word_list("divisions")
_LIST = 80  # characters in which the plural after a list is looked for


@lru_cache(maxsize=32768)
def _forms(name: str) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the full forms of a name, and its first and last word (None for one word).

    Full forms are the name itself, without brackets or a part after a comma, and former names. Between first and last
    word there may be middle names.
    """
    bare = _unqualified(name)[0] or name
    first = clean(bare).split(" ,")[0]
    forms = dict.fromkeys([clean(name), clean(bare), first, normal_name(name), *other_names(first)])
    words = [w for w in normal_name(bare.split(",")[0]).split() if w not in _PARTICLES]
    ends = (words[0], words[-1]) if len(words) >= 2 else None
    return tuple(form for form in forms if form), ends


def _unqualified(name: str) -> tuple[str, str]:
    """Split a name into itself and the text in brackets at its end, from the first bracket on."""
    bare, bracket, remainder = name.partition("(")
    return (bare.rstrip(), remainder[:-1]) if bracket and remainder.endswith(")") else (name, "")


_MIDDLE_NAMES = 3
_WORDS = re.compile(rf"[^ ]*+(?: [^ ]*+){{0,{_MIDDLE_NAMES + 5}}}")
# "Ana (Nan) Maria Vorr"
_NICKNAME = re.compile(r"\( (?:\w+ ){1,3}\) ")


def _spans(text: str, name: str, low: int = 0, high: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the spans of a name between two offsets, form by form."""
    low, high = max(0, low - 1), len(text) if high is None else high + 1
    forms, ends = _forms(name)
    for form in forms:
        yield from word_spans(text, form, low, high)
    if ends is None:
        return
    if ends[1] in _DIVISIONS:
        yield from _spans_in_list(text, name, ends[1], low, high)
    if text.find(f" {ends[1]} ", low, high + 1) < 0:
        return
    for start, end in word_spans(text, ends[0], low, high):
        words = _WORDS.match(text, end + 1, high)
        following = words[0].split(" ") if words else []
        if ends[1] in following:
            between = "".join(f"{word} " for word in following[: following.index(ends[1])])
            plain = _NICKNAME.sub("", between, count=1).split()  # middle names, one of them in brackets
            if len(plain) <= _MIDDLE_NAMES and all(word.isalnum() for word in plain):
                yield start, end + 1 + len(between + ends[1])


def _spans_in_list(text: str, name: str, division: str, low: int, high: int) -> Iterator[Span]:
    """Yield the spans of "Oru" for Oru County in "Oru and Vel Counties"."""
    plural = division.removesuffix("y") + "ies" if division.endswith("y") else f"{division}s"
    bare = clean(name).partition(" ,")[0].removesuffix(f" {division}")
    for start, end in word_spans(text, bare, low, high):
        following = text[end : min(high, end + _LIST)]
        if f" {plural} " in following and " . " not in following.partition(f" {plural} ")[0]:
            yield start, end


def word_spans(text: str, words: str, low: int, high: int) -> Iterator[Span]:
    """Yield the spans of words between two offsets; only full words count."""
    sought = f" {words} "
    place = text.find(sought, low, high)
    while place >= 0:
        yield place + 1, place + len(sought) - 1
        place = text.find(sought, place + 1, high)


def mentions(text: Text, name: str) -> list[Span]:
    """Return the spans of a name; after a full mention, its last word alone counts, too."""
    full, short = _full_and_short(text, name)
    covered = {end for _, end in full}
    later = short[bisect_left(short, (full[0][1],)) :] if full else ()
    return [*full, *(span for span in later if span[1] not in covered)]


@lru_cache(maxsize=8192)
def _full_and_short(text: Text, name: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the spans of a full name and those of its last word alone, each in order (cached)."""
    by_start: dict[int, Span] = {}
    for span in _spans(text.clean, name):
        by_start.setdefault(span[0], span)
    full = tuple(sorted(by_start.values())) or _same_day(text, name)
    return full, tuple(_short_spans(text, name, in_full_elsewhere=bool(full)))


def _same_day(text: Text, name: str) -> tuple[Span, ...]:
    """Return the spans of a day in another form: "August 16, 1967" for "16 August 1967"."""
    day = as_date(name)
    if day is None or not day.day:
        return ()
    return tuple((date.start, date.end) for date in dates_in(text.clean) if date[:3] == day[:3])


def first_mention(text: Text, name: str) -> int | None:
    """Return the offset of the first mention of a name or other words; None if there is none."""
    spans = mentions(text, name) or list(word_spans(text.clean, clean(name), 0, len(text.clean)))
    return spans[0][0] if spans else None


def _short_spans(text: Text, name: str, *, in_full_elsewhere: bool) -> Iterator[Span]:
    """Spans of a name's last word alone, where nobody else's given name leads it.

    Where others of that surname are named, the name itself must stand in full (``in_full_elsewhere``).
    """
    last = _short_form(text, name)
    if not last:
        return
    words = normal_name(name).split()
    namesakes = text.full_names.get(last, frozenset()) if len(words) <= _MIDDLE_NAMES else frozenset()
    if namesakes:
        own_words = {*words, *_HONORIFICS}
        namesakes = frozenset(pair for pair in namesakes if pair.removesuffix(f" {last}") not in own_words)
    if namesakes and not in_full_elsewhere:
        return
    for start, end in word_spans(text.clean, last, 0, len(text.clean)):
        given_name = text.clean[max(0, start - 40) : start].split()[-1:]
        if not given_name or f"{given_name[0]} {last}" not in namesakes:
            yield start, end


_EPITHETS = ("elder", "younger", "senior", "junior")
_COMMON_NOUNS = word_list("common_nouns")


def _short_form(text: Text, name: str) -> str:
    """Return the last word of a name if it can stand for the full name, and is no namesake's surname; else ""."""
    words, title = normal_name(name).split(), normal_name(text.title).split()
    if words and words[-1] in _EPITHETS:
        return ""
    if len(words) < 2 or len(words[-1]) < 4 or words[-1] in _COMMON_NOUNS:
        return ""
    namesake = title and title[-1] == words[-1] and not is_about(text, name)
    return "" if namesake else words[-1]


def mentioned_within(text: Text, name: str, low: int, high: int, *, in_full: bool = False) -> bool:
    """Whether a name, or (unless ``in_full``) its last word, lies between two offsets."""
    full, short = _full_and_short(text, name)
    return _lies_between(full, low, high) or (not in_full and _lies_between(short, low, high))


def _lies_between(spans: Sequence[Span], low: int, high: int) -> bool:
    place = bisect_left(spans, (low,))
    return place < len(spans) and spans[place][1] <= high


_LONG_NAME = 8  # characters of a name that says enough without its spaces
_LONGEST_NAME = 8  # words
_LEAD = 300  # characters in which a passage names its subject


@lru_cache(maxsize=4096)
def is_about(text: Text, name: str) -> bool:
    """Whether a passage is about ``name``: its title, or a name that its opening gives to its subject.

    >>> from safe_stepwise.language.reading import read
    >>> is_about(read(Passage("Ana Vorr (poet)", ("Ana Maria Vorr was a poet.",))), "Ana Vorr")
    True
    """
    title, key = normal_name(text.title), normal_name(name)
    if _other_qualifier(text.title, name) or _numbers(title) != _numbers(key) != frozenset():
        return False
    if key and key == normal_name(text.title.partition(",")[0]):
        return True
    if title == key:
        return True
    if len(key.split()) > _LONGEST_NAME or as_date(name):
        return False
    a, b = set(title.split()) - _PARTICLES, set(key.split()) - _PARTICLES
    base = normal_name(text.title.split(",")[0]).split()
    overlaps = a <= b or (base and b <= a and base[0] in b and base[-1] in b | _PARTICLES | _SORTS)
    if a and b and overlaps and (min(len(a), len(b)) >= 2 or len(a) == len(b)):
        return True
    return any(_names_subject(text.clean, *span) for span in _spans(text.clean, name, 0, _LEAD))


def mentions_subject(text: Text, name: str) -> bool:
    """Whether a name means a passage's subject, in full or by words of its title."""
    return is_about(text, name) or has_words(normal_name(text.title), normal_name(name))


def titles_of(names: Iterable[str], pages: Iterable[tuple[int, Passage]]) -> dict[str, str]:
    """Map names of a numbered passage's subject that differ from its title to that title.

    >>> titles_of(["Ana Vorr", "Oru"], [(1, Passage("Ana Vorr (poet)", ("Ana Vorr wrote.",)))])
    {'Ana Vorr': 'Ana Vorr (poet)'}
    """
    texts = [read(passage) for _, passage in pages]
    titles = {}
    for name in dict.fromkeys(name for name in names if not as_date(name)):
        about = [text.title for text in texts if is_about(text, name) or _is_spaced_otherwise(text.title, name)]
        if len(about) == 1 and about[0] != name:
            titles[name] = about[0]
    return titles


def _is_spaced_otherwise(title: str, name: str) -> bool:
    """Whether a title begins with a name whose words are joined or parted ("Abdul Rahman", "Abdulrahman Vel").

    >>> _is_spaced_otherwise("Abdulrahman Vel", "Abdul Rahman"), _is_spaced_otherwise("Oru Vel", "Oru")
    (True, False)
    """
    title, name = normal_name(title), normal_name(name)
    joined = name.replace(" ", "")
    if len(joined) < _LONG_NAME or title[:1] != joined[0] or not title.replace(" ", "").startswith(joined):
        return False
    words = title.split()
    return joined in ("".join(words[:n]) for n in range(1, len(words) + 1) if n != len(name.split()))


def _other_qualifier(title: str, name: str) -> bool:
    """Whether title and name have different descriptions in brackets."""
    if not (title.endswith(")") and name.endswith(")")):
        return False
    qualifier_left, qualifier_right = _unqualified(title)[1], _unqualified(name)[1]
    if not qualifier_left or not qualifier_right:
        return False
    a, b = set(clean(qualifier_left).split()), set(clean(qualifier_right).split())
    return not a <= b and not b <= a


_NUMBER = re.compile(r"\b(?:\d+(?:st|nd|rd|th)|(?=[ivx])x{0,2}(?:ix|iv|v?i{0,3}))\b")


def _numbers(name: str) -> frozenset[str]:
    """Return the ordinals of a normalised name: the 3rd Earl is not the 4th, and Ors II is not Ors III."""
    return frozenset(_NUMBER.findall(name))


_NAMING = re.compile(r"\b(?:known as|called|named|born|nee|aka|a k a|also|or|titled|stage name|name) $")
# What follows a name up to the verb: "Prize" in "the Vorr Prize is a prize".
_LONGER_NAME = re.compile(r"(?: (?!(?:is|was|are|were|served)\b)\w++){0,40}+")
_VERB = re.compile(r"\b(?:is|was|are|were|served)\b")
_PREPOSITION = re.compile(r"\b(?:in|of|at|by|from|to|for|with|and|s)\b|\(")
# "born Oru , 3 May 1901" says where; a name at birth has two words or more.
_BORN_WHERE = re.compile(r"born (\w+) (?:,|--|in|at|on|\d)")


@lru_cache(maxsize=4096)
def _first_verb(text: str) -> int | None:
    verb = _VERB.search(text)
    return verb.start() if verb else None


def _names_subject(text: str, start: int, end: int) -> bool:
    """Whether a span names the text's subject: it opens the text, or follows a word such as "called"."""
    if _NAMING.search(text, 0, start):
        return not _BORN_WHERE.match(text, max(0, start - len("born ")))
    longer = _LONGER_NAME.match(text, end)
    if longer and _COMMON_NOUNS.intersection(longer[0].split()):
        return False
    if start <= 1:
        return True
    verb = _first_verb(text)
    early = verb is not None and end <= verb and start <= 60
    return early and not _PREPOSITION.search(text, 0, start)


_SHORTEST_NAME = 3
_NAME_RUN = re.compile(rf"{CAPITAL}[\w'’-]*\w(?: (?:{CAPITAL}[\w'’-]+|of|the|de)(?= |,|\.|;|\)|$))*")


@lru_cache(maxsize=4096)
def names_in(passage: Passage) -> dict[str, tuple[str, int]]:
    """Map cleaned runs of capitalised words to their first spelling and its sentence (from 0).

    >>> names_in(Passage("Oru", ("In 1901 the painter Ana Vorr came to Oru.",)))
    {'ana vorr': ('Ana Vorr', 0), 'oru': ('Oru', 0)}
    """
    runs: dict[str, tuple[str, int]] = {}
    for number, sentence in enumerate(passage.sentences):
        if "&" in sentence or not sentence.isprintable():  # what is written stays as it is, where it can be read
            sentence = fold(sentence)
        for run in _NAME_RUN.finditer(sentence):
            words = dropwhile(lambda word: clean(word) in OPENERS, run.group().split())
            spelling = " ".join(words)
            if len(clean(spelling)) >= _SHORTEST_NAME:
                runs.setdefault(clean(spelling), (spelling, number))
    return runs
