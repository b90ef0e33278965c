"""Which cue governs a name or date in a sentence: "born", "directed by", "son of".

Cues of one group compete ("born in Oru and died in Vel"); see ``vocabulary/relations.yaml``.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from safe_stepwise.language.relations import REACH, Cue, cues_between, has_brackets_closed
from safe_stepwise.language.text import MONTHS
from safe_stepwise.language.vocabulary import load, wording

_SENTENCE = 3 * REACH
"""Characters, before and behind a span, within which other cues have a say: no sentence of prose is
longer, and a list without end is not read anew for each of its names."""

_JOINED = wording("cues", "joined")
_JOINED_BY_BEING = re.compile(_JOINED.pattern.replace("and|", "and|is|are|was|were|", 1))
_PASSIVE = re.compile(r"\w+(?:ed|ing)|written|sung")
_IS_THE = re.compile(r" (?:is|was|were|are|became|(?:served|acted|worked) as) (?:(?:the|its|an?) )?(?:\w+ )?")
_NO_OBJECT = re.compile(r" (?:by|for|in|at|on|from|as|with|alongside|,|\.|\))(?: |$)")
_AND_SOMEBODY = re.compile(r" and (?:\w+ ){1,4}")
# "Oru is where she died", "Oru was her place of birth", "in Oru that Vorr was born".
_PLACED = wording("cues", "placed")
_OPENED = re.compile(r"(?: \([^()]*\))?(?: ,)?(?: on [\w ]{1,30} ,?)?(?: [\w'-]+){1,5} ")
_LEADS = {
    f"{lead}{word}{article}".strip()
    for lead in ("", "it was ")
    for word in ("", "in", "on", "at", "from")
    for article in ("", " the", " the town of", " the city of", " the village of")
}
_LONGEST_LEAD = max(map(len, _LEADS)) + 2
_EVENTS = ("birth", "death", "burial")
_APART = re.compile(r"[\d;)]| -- | and ")
_WHERE_SHE = re.compile(r"(?: in(?: the)?(?: [\w'-]+){1,3})? , where [^,]{1,60} , (?:s?he|they|[\w'-]+) $")
_WEAK = ("preposition", "lies")  # labels of words that tell nothing of a place before them
_ANOTHER_WORK = wording("cues", "another_work")
_CLAUSE = 120
# "in Oru", "in the town of Oru", "in Oru, Vel": what a place stands behind.
_LED = re.compile(r"\b(?:in|within|from|near|of|at|for)(?: the)?(?: \w+ of)? (?:(?:[\w'-]+ ){1,4}, ){0,3}$")
_OWN_PLACE = wording("cues", "own_place", months="|".join(MONTHS))
_POSSESSIONS: Mapping[str, Sequence[str]] = load("relations")["possessions"]
_POSSESSED = re.compile(rf" 's (?:\w+ ){{0,5}}?({'|'.join(_POSSESSIONS)})\b")


def governing_cues(text: str, start: int, end: int, low: int, high: int, group: str) -> frozenset[str]:
    """Labels of the cues that govern a span of a sentence of cleaned text.

    The last cue before it, with those coordinated to that ("written and directed by"); or, when it
    stands much nearer, the first cue after it ("Vorr composed the score").

    Args:
        text: cleaned text (``reading.read``).
        start, end: the span; low, high: its sentence.
        group: a cue group of the vocabulary.

    >>> text = "it was written and directed by ana vorr and starred ors velt"
    >>> sorted(governing_cues(text, 31, 39, 0, len(text), "credit"))
    ['director', 'writer']
    """
    leading = cues_between(text, group, max(low, start - _SENTENCE), start)
    before = [cue for cue in leading if not cue.denied and has_brackets_closed(text, cue, start)]
    following = cues_between(text, group, end, min(high, end + _SENTENCE))
    after = next(
        (
            cue
            for cue in following
            if cue.label not in _WEAK
            and not text.startswith(" :", cue.end)
            and (group != "place" or text.count("(", end, cue.start) <= text.count(")", end, cue.start))
        ),
        None,
    )
    opens = start - low <= _LONGEST_LEAD and text[low:start].strip() in _LEADS  # its sentence, be it behind "in"
    if after and not _has_subject(text, end, after, group, opens=opens):
        after = None
    if group == "place":
        return _placed(text, before, after, start, end)
    owned = _POSSESSED.match(text, end)
    if owned and group == "credit":
        return frozenset(_POSSESSIONS[owned[1]])
    if after is not None and after.label in _EVENTS and text.startswith(" there", after.end):
        return frozenset([after.label])
    if group == "life" and (event := _event_behind(text, end, following, opens)):
        return frozenset([event.label])
    if after is not None and _IS_THE.fullmatch(text, end, after.start):
        return frozenset([after.label])
    back = start - before[-1].end if before else REACH + 1
    if after is not None and (back > REACH or after.start - end < back // 2):
        return frozenset([after.label])
    if back > REACH:
        return frozenset()
    return _with_coordinated(text, before, group)


def _placed(text: str, before: list[Cue], after: Cue | None, start: int, end: int) -> frozenset[str]:
    """What a place is to its sentence's subject; "in" says it only where nothing else does."""
    if any(cue.label == "contact" for cue in before if start - cue.end <= REACH):
        return frozenset(["contact"])
    led = _LED.search(text, max(0, start - _CLAUSE), start) is not None
    telling = [cue for cue in before if cue.label not in _WEAK]
    back = start - telling[-1].end if telling else REACH + 1
    if after is not None and (back > REACH or after.start - end < back // 2):
        return frozenset([after.label])
    labels = _with_coordinated(text, telling, "place") if back <= REACH else frozenset[str]()
    return labels.union(_WEAK) if led else labels


def _event_behind(text: str, end: int, following: tuple[Cue, ...], opens: bool) -> Cue | None:
    """What happened at a place that opens its sentence: "In Oru, where she had moved, she died"."""
    events = (cue for cue in following if cue.label in _EVENTS)
    event = next(events, None)
    if event is None or not opens or text[end - 1].isdigit():
        return None
    where = _WHERE_SHE.match(text, end, event.start)
    return event if where and not _OWN_PLACE.match(text, event.end) else None


def _is_told_of(text: str, end: int, cue: Cue, *, opens: bool) -> bool:
    """Whether an event of a life behind a place or date belongs to it ("Oru, where she died")."""
    between = text[end : cue.start]
    if text.startswith(" there", cue.end):
        return cue.label in _EVENTS
    if text[end - 1].isdigit():
        apart = _APART.search(between) is not None
        return cue.label in _EVENTS and not apart and len(between) <= REACH // 2
    if _OWN_PLACE.match(text, cue.end):
        return False
    told = _PLACED.fullmatch(between) or (opens and _OPENED.fullmatch(between))
    return bool(told) or (cue.label in _EVENTS and len(between) <= 2)


def _has_subject(text: str, end: int, cue: Cue, group: str, *, opens: bool) -> bool:
    """Whether a cue after a name can have it as its subject ("Vorr composed it", "Vorr 's wife").

    ``opens``: the name opens its sentence.
    """
    between, said = text[end : cue.start], text[cue.start : cue.end]
    if group == "life":
        return _is_told_of(text, end, cue, opens=opens)
    passive = text.startswith(" by ", cue.end)
    if opens and _AND_SOMEBODY.fullmatch(between):
        return not passive
    if " and " in between or " but " in between or passive:
        return False
    if group == "place":
        return len(between) <= REACH // 2 and (
            cue.label in ("border", "capital") or _PLACED.fullmatch(between) is not None
        )
    no_object = said.endswith("ing") or _NO_OBJECT.match(text, cue.end)
    if _PASSIVE.fullmatch(said) and no_object:
        return False
    return len(between) <= 40


def _with_coordinated(text: str, cues: list[Cue], group: str) -> frozenset[str]:
    labels = {cues[-1].label}
    joined = _JOINED if group == "credit" else _JOINED_BY_BEING
    for later, earlier in pairwise(reversed(cues)):
        if not joined.fullmatch(text, earlier.end, later.start):
            break
        labels.add(earlier.label)
    return frozenset(labels)
