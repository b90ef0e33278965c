"""Finds where a text names something, and decides what a passage is about. Texts are cleaned (`reading.clean`)."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import dropwhile

from safe_stepwise.language.reading import OPENERS, Text, clean, read
from safe_stepwise.language.text import CAPITAL, Span, as_date, dates_in, fold, has_words, normal_name, other_names
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage

_PARTICLES = word_list("particles")
_HONORIFICS = word_list("honorifics")
_SORTS = word_list("sorts")
_DIVISIONS = word_list("divisions")
_MAX_LIST_CHARS = 80  # characters after a name in which the plural of its list is looked for
_NUMBER = re.compile(r"[1-9]\d{3,11}|[1-9]\d{0,2}(?:,\d{3}){1,3}", re.ASCII)


@lru_cache(maxsize=32768)
def _full_forms(name: str) -> tuple[tuple[str, ...], tuple[str, str] | None]:
    """Return the full forms of a name, and its first and last word (None if it has only one).

    Full forms are the name itself, the name without brackets or a part after a comma, and former names. In a text,
    middle names may stand between first and last word. A large number has a form with commas and one without.
    """
    if _NUMBER.fullmatch(name.strip()):
        digits = name.strip().replace(",", "")
        return (digits, f"{int(digits):,}".replace(",", " , ")), None
    bare = _unqualified(name)[0] or name
    first = clean(bare).split(" ,")[0]
    forms = dict.fromkeys([clean(name), clean(bare), first, normal_name(name), *other_names(first)])
    words = [w for w in normal_name(bare.split(",")[0]).split() if w not in _PARTICLES]
    return tuple(form for form in forms if form), (words[0], words[-1]) if len(words) >= 2 else None


def _unqualified(name: str) -> tuple[str, str]:
    """Split a name into the part before its first bracket and the text in brackets, which must be at its end."""
    bare, bracket, remainder = name.partition("(")
    return (bare.rstrip(), remainder[:-1]) if bracket and remainder.endswith(")") else (name, "")


_MAX_MIDDLE_NAMES = 3
_FOLLOWING_WORDS = re.compile(rf"[^ ]*+(?: [^ ]*+){{0,{_MAX_MIDDLE_NAMES + 5}}}")
_NICKNAME = re.compile(r"\( (?:\w+ ){1,3}\) ")  # "Ana (Nan) Maria Vorr"


def _full_spans(text: str, name: str, low: int = 0, high: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the spans of a name in full between two offsets, form by form; it may have middle names."""
    low, high = max(0, low - 1), len(text) if high is None else high + 1
    forms, first_and_last = _full_forms(name)
    for form in forms:
        yield from word_spans(text, form, low, high)
    if first_and_last is None:
        return
    first, last = first_and_last
    if last in _DIVISIONS:
        yield from _spans_in_list(text, name, last, low, high)
    if text.find(f" {last} ", low, high + 1) < 0:
        return
    for start, end in word_spans(text, first, low, high):
        words = _FOLLOWING_WORDS.match(text, end + 1, high)
        following = words[0].split(" ") if words else []
        if last in following:
            between = "".join(f"{word} " for word in following[: following.index(last)])
            middle_names = _NICKNAME.sub("", between, count=1).split()
            if len(middle_names) <= _MAX_MIDDLE_NAMES and all(word.isalnum() for word in middle_names):
                yield start, end + 1 + len(between + last)


def _spans_in_list(text: str, name: str, division: str, low: int, high: int) -> Iterator[Span]:
    """Yield the spans of "Oru" for Oru County in "Oru and Vel Counties"."""
    plural = division.removesuffix("y") + "ies" if division.endswith("y") else f"{division}s"
    bare = clean(name).partition(" ,")[0].removesuffix(f" {division}")
    for start, end in word_spans(text, bare, low, high):
        following = text[end : min(high, end + _MAX_LIST_CHARS)]
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
    """Return the spans of a name; after a full mention, its last word also counts by itself."""
    full, short = _full_and_short_spans(text, name)
    covered = {end for _, end in full}
    later = short[bisect_left(short, (full[0][1],)) :] if full else ()
    return [*full, *(span for span in later if span[1] not in covered)]


@lru_cache(maxsize=8192)
def _full_and_short_spans(text: Text, name: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the spans of a full name and those of its last word by itself, each in order (cached)."""
    by_start: dict[int, Span] = {}
    for span in _full_spans(text.clean, name):
        by_start.setdefault(span[0], span)
    full = tuple(sorted(by_start.values())) or _same_day_spans(text, name)
    return full, tuple(_short_spans(text, name, in_full_elsewhere=bool(full)))


def _same_day_spans(text: Text, name: str) -> tuple[Span, ...]:
    """Return the spans of a day that the text writes in another form: "August 16, 1967" for "16 August 1967"."""
    day = as_date(name)
    if day is None or not day.day:
        return ()
    return tuple((date.start, date.end) for date in dates_in(text.clean) if date[:3] == day[:3])


def first_mention(text: Text, name: str) -> int | None:
    """Return the offset of the first mention of a name or other words; None if there is none."""
    spans = mentions(text, name) or list(word_spans(text.clean, clean(name), 0, len(text.clean)))
    return spans[0][0] if spans else None


def _short_spans(text: Text, name: str, *, in_full_elsewhere: bool) -> Iterator[Span]:
    """Yield the spans of a name's last word by itself, except after the given name of somebody else.

    Where the text names others with that surname, it must also have the name itself in full (``in_full_elsewhere``).
    """
    last = _short_form(text, name)
    if not last:
        return
    words = normal_name(name).split()
    namesakes = text.full_names.get(last, frozenset()) if len(words) <= _MAX_MIDDLE_NAMES else frozenset()
    if namesakes:
        own_words = {*words, *_HONORIFICS}
        namesakes = frozenset(pair for pair in namesakes if pair.removesuffix(f" {last}") not in own_words)
    if namesakes and not in_full_elsewhere:
        return
    for start, end in word_spans(text.clean, last, 0, len(text.clean)):
        given_name = text.clean[max(0, start - _MAX_GIVEN_NAME_CHARS) : start].split()[-1:]
        if not given_name or f"{given_name[0]} {last}" not in namesakes:
            yield start, end


_MAX_GIVEN_NAME_CHARS = 40
_EPITHETS = ("elder", "younger", "senior", "junior")
_COMMON_NOUNS = word_list("common_nouns")


def _short_form(text: Text, name: str) -> str:
    """Return the last word of a name, or "" if it cannot stand for the name, as it may mean the passage's subject."""
    words, title = normal_name(name).split(), normal_name(text.title).split()
    if words and words[-1] in _EPITHETS:
        return ""
    if len(words) < 2 or len(words[-1]) < 4 or words[-1] in _COMMON_NOUNS:
        return ""
    means_subject = title and title[-1] == words[-1] and not is_about(text, name)
    return "" if means_subject else words[-1]


def mentioned_within(text: Text, name: str, low: int, high: int, *, in_full: bool = False) -> bool:
    """Whether a name, or (unless ``in_full``) its last word by itself, lies between two offsets."""
    full, short = _full_and_short_spans(text, name)
    return _lies_between(full, low, high) or (not in_full and _lies_between(short, low, high))


def _lies_between(spans: Sequence[Span], low: int, high: int) -> bool:
    index = bisect_left(spans, (low,))
    return index < len(spans) and spans[index][1] <= high


_MIN_JOINED_CHARS = 8  # a shorter name is not recognised without its spaces
_MAX_NAME_WORDS = 8  # a longer text is not another name of a passage's subject
_MAX_LEAD_CHARS = 300  # the opening in which a passage names its subject


@lru_cache(maxsize=4096)
def is_about(text: Text, name: str) -> bool:
    """Whether a passage is about ``name``: its title, or a name that its opening gives to its subject.

    >>> from safe_stepwise.language.reading import read
    >>> is_about(read(Passage("Ana Vorr (poet)", ("Ana Maria Vorr was a poet.",))), "Ana Vorr")
    True
    """
    title, short_title, key = map(normal_name, (text.title, text.title.partition(",")[0], name))
    ordinals = _ordinals(key)
    if _qualifiers_differ(text.title, name) or (ordinals and ordinals != _ordinals(title)):
        return False
    if key == title or (key and key == short_title):
        return True
    if len(key.split()) > _MAX_NAME_WORDS or as_date(name):
        return False
    title_words, name_words = set(title.split()) - _PARTICLES, set(key.split()) - _PARTICLES
    if title_words and name_words and (min(len(title_words), len(name_words)) >= 2 or title_words == name_words):
        parts = short_title.split()
        has_ends = parts and parts[0] in name_words and parts[-1] in name_words | _PARTICLES | _SORTS
        if title_words <= name_words or (name_words <= title_words and has_ends):
            return True
    return any(_names_subject(text.clean, *span) for span in _full_spans(text.clean, name, 0, _MAX_LEAD_CHARS))


def mentions_subject(text: Text, name: str) -> bool:
    """Whether a name means a passage's subject, in full or by words of its title."""
    return is_about(text, name) or has_words(normal_name(text.title), normal_name(name))


def titles_of(names: Iterable[str], passages: Iterable[Passage]) -> dict[str, str]:
    """Map each name that means the subject of exactly one passage to that passage's title, if they differ.

    >>> titles_of(["Ana Vorr", "Oru"], [Passage("Ana Vorr (poet)", ("Ana Vorr wrote.",))])
    {'Ana Vorr': 'Ana Vorr (poet)'}
    """
    texts = [read(passage) for passage in passages]
    titles = {}
    for name in dict.fromkeys(name for name in names if not as_date(name)):
        about = [text.title for text in texts if is_about(text, name) or _differs_in_spaces(text.title, name)]
        if len(about) == 1 and about[0] != name:
            titles[name] = about[0]
    return titles


def _differs_in_spaces(title: str, name: str) -> bool:
    """Whether a title begins with a name, but has other spaces in it ("Abdulrahman Vel" and "Abdul Rahman").

    >>> _differs_in_spaces("Abdulrahman Vel", "Abdul Rahman"), _differs_in_spaces("Oru Vel", "Oru")
    (True, False)
    """
    title, name = normal_name(title), normal_name(name)
    joined = name.replace(" ", "")
    if len(joined) < _MIN_JOINED_CHARS or title[:1] != joined[0] or not title.replace(" ", "").startswith(joined):
        return False
    words = title.split()
    return joined in ("".join(words[:n]) for n in range(1, len(words) + 1) if n != len(name.split()))


def _qualifiers_differ(title: str, name: str) -> bool:
    """Whether title and name have brackets at their end, and the words of neither include those of the other."""
    if not (title.endswith(")") and name.endswith(")")):
        return False
    title_words, name_words = (set(clean(_unqualified(text)[1]).split()) for text in (title, name))
    return not title_words <= name_words and not name_words <= title_words


_ORDINAL = re.compile(r"\b(?:\d+(?:st|nd|rd|th)|(?=[ivx])x{0,2}(?:ix|iv|v?i{0,3}))\b")


def _ordinals(name: str) -> frozenset[str]:
    """Return the ordinals of a normalised name ("3rd", "iii"): the 3rd Earl is not the 4th, Ors II is not Ors III."""
    return frozenset(_ORDINAL.findall(name))


_NAMING = re.compile(r"\b(?:known as|called|named|born|nee|aka|a k a|also|or|titled|stage name|name) $")
# The words from a name to the verb: "Prize" in "the Vorr Prize is a prize".
_WORDS_TO_VERB = re.compile(r"(?: (?!(?:is|was|are|were|served)\b)\w++){0,40}+")
_VERB = re.compile(r"\b(?:is|was|are|were|served)\b")
_PREPOSITION = re.compile(r"\b(?:in|of|at|by|from|to|for|with|and|s)\b|\(")
# In "born Oru , 3 May 1901", Oru is a place: a name at birth has two words or more.
_BIRTHPLACE = re.compile(r"born (\w+) (?:,|--|in|at|on|\d)")


@lru_cache(maxsize=4096)
def _first_verb(text: str) -> int | None:
    """Return the offset of the first verb that may follow a subject; None if there is none."""
    verb = _VERB.search(text)
    return verb.start() if verb else None


def _names_subject(text: str, start: int, end: int) -> bool:
    """Whether a span names the text's subject: it opens the text, or follows a word such as "called"."""
    if _NAMING.search(text, 0, start):
        return not _BIRTHPLACE.match(text, max(0, start - len("born ")))
    following = _WORDS_TO_VERB.match(text, end)
    if following and _COMMON_NOUNS.intersection(following[0].split()):
        return False
    if start <= 1:
        return True
    verb = _first_verb(text)
    precedes_verb = verb is not None and end <= verb and start <= _MAX_SUBJECT_OFFSET
    return precedes_verb and not _PREPOSITION.search(text, 0, start)


_MAX_SUBJECT_OFFSET = 60
_MIN_NAME_CHARS = 3
_NAME_RUN = re.compile(rf"{CAPITAL}[\w'’-]*\w(?: (?:{CAPITAL}[\w'’-]+|of|the|de)(?= |,|\.|;|\)|$))*")


@lru_cache(maxsize=4096)
def names_in(passage: Passage) -> dict[str, tuple[str, int]]:
    """Map cleaned runs of capitalised words to their first spelling and its sentence (from 0).

    >>> names_in(Passage("Oru", ("In 1901 the painter Ana Vorr came to Oru.",)))
    {'ana vorr': ('Ana Vorr', 0), 'oru': ('Oru', 0)}
    """
    runs: dict[str, tuple[str, int]] = {}
    for number, sentence in enumerate(passage.sentences):
        if "&" in sentence or not sentence.isprintable():  # elsewhere the spelling stays
            sentence = fold(sentence)
        for run in _NAME_RUN.finditer(sentence):
            spelling = " ".join(dropwhile(lambda word: clean(word) in OPENERS, run.group().split()))
            if len(clean(spelling)) >= _MIN_NAME_CHARS:
                runs.setdefault(clean(spelling), (spelling, number))
    return runs
