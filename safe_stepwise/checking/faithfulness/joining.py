"""How the wording between and around two names of a step joins them, and which way."""

import re
from collections.abc import Sequence

from safe_stepwise.checking.faithfulness.said import SORTS, Said, overlaps
from safe_stepwise.language.reading import Span
from safe_stepwise.language.relations import is_nation
from safe_stepwise.language.senses import Form, SenseCue
from safe_stepwise.language.text import dates_in
from safe_stepwise.language.vocabulary import word_list, wording

_COORDINATING = frozenset(", and also then co or & as well".split())
_LISTING = word_list("listing")
STOP = " . "
_NEAR = 25  # characters between a wording and a name beside it, where no name stands between them


_AND = re.compile(r" (?:, )?(?:and|as well as|&|,|along with|together with)(?: the)? $")
_LED_TO = wording("joining", "led_to")


def past_list(said: Said, first: Span, second: Span) -> int:
    """Where a list of names that the first one opens ends: "Ana Vorr and Ors Velt are …"."""
    end = first[1]
    for (a, b), _ in said.values:
        if end < a and b <= second[0] and _AND.match(said.clean[end:a]):
            end = b
    return end


def has_own_subject(said: Said, low: int, high: int) -> bool:
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
        led = [cue for cue in said.cues if low <= cue.start and cue.end < a and a - cue.end <= 2]
        if not led:
            return True
    return False


def governing(said: Said, first: Span, second: Span) -> list[SenseCue]:
    """The cues that join two spans: between them, else before both, else behind both."""
    text = said.clean
    low = text.rfind(STOP, 0, first[0]) + 1
    high = text.find(STOP, second[1])
    high = len(text) if high < 0 else high
    cues = [
        cue for cue in said.cues
        if low <= cue.start and cue.end <= high
        and all(cue.end <= a or b <= cue.start for a, b in (first, second))
    ]  # fmt: skip
    return (
        _between(said, cues, first, second)
        or _before(said, cues, first, second, low)
        or _behind(said, cues, first, second, high)
    )


def _between(said: Said, cues: Sequence[SenseCue], first: Span, second: Span) -> list[SenseCue]:
    """The last cue between two spans that says nothing of another value, and those one with it."""
    text = said.clean
    left = [cue for cue in cues if first[1] <= cue.start and cue.end <= second[0]]
    if all(_WEAK.match(text[cue.start : cue.end]) for cue in left):
        left = [] if any(text[cue.end : first[0]] in LED for cue in cues) else left
    if len({cue.end for cue in left}) > 1:  # "his wife was the screenwriter Ana Vorr"
        plain = [c for c in left if c.form != "nouns" or not leads_on(text, c.start - 1, second)]
        left = plain or left
    while left:
        end = left[-1].end
        if not _is_taken(said, left[-1], second):
            last = [cue for cue in left if cue.end == end]
            return last + [c for c in left if c.end < end and _together(text, c, last[0])]
        left = [cue for cue in left if cue.end < end]
    return []


def _before(said: Said, cues: Sequence[SenseCue], first: Span, second: Span, low: int) -> list[SenseCue]:
    """The cue that leads up to two spans: "the director of Dune Rain is Ana Vorr"."""
    before = [cue for cue in cues if cue.end <= first[0]]
    near = [
        cue for cue in before
        if not _names_between(said, cue.end, first[0])
        and (cue.form == "nouns" or not has_own_subject(said, low, cue.start))
    ]  # fmt: skip
    if near:
        end = max(cue.end for cue in near)
        return [cue for cue in near if cue.end == end or _together(said.clean, cue, near[-1])]
    if before and _ELLIPSIS.fullmatch(said.clean[first[1] : second[0]]):
        end = before[-1].end  # "… was founded in 1870, and the other in 1911"
        return [cue for cue in before if cue.end == end and cue.form != "nouns"]
    return []


def _behind(said: Said, cues: Sequence[SenseCue], first: Span, second: Span, high: int) -> list[SenseCue]:
    """The cue that follows on two spans: "Oru is where Ana Vorr was born"."""
    relative = _ends(said.clean[first[1] : second[0]].strip(" ,")) in _RELATIVES
    near = [
        cue for cue in cues
        if cue.start >= second[1] and not _names_between(said, second[1], cue.start)
        and (relative or not _is_taken(said, cue, (high, high)))
    ]  # fmt: skip
    return [
        cue for cue in near
        if cue.start == near[0].start or _together(said.clean, near[0], cue)
    ]  # fmt: skip


_RELATIVES = frozenset(("which", "that", "whom", "where", "when"))
_ELLIPSIS = re.compile(r" (?:(?:was|is) )?(?:by|in|on|from|at) (?:the )?")
_WEAK = re.compile(r"(?:is|was|are|were|be|both) (?:both )?(?:in|from)$")
LED = frozenset((" of ", " of the ", " of the film ", " for "))


def _together(text: str, cue: SenseCue, last: SenseCue) -> bool:
    """Whether two cues are one: "wrote and directed"."""
    return cue.end <= last.start and _COORDINATING.issuperset(text[cue.end : last.start].split())


def _is_taken(said: Said, cue: SenseCue, second: Span) -> bool:
    """Whether another value than the second span is what a cue says: "born in Vel, died in …"."""
    taken = [
        (a, b) for (a, b), _ in said.values
        if cue.end <= a and b <= second[0] and a - cue.end <= _NEAR
        and not overlaps((a, b), second)
        and not (is_nation(said.clean[a:b]) and not is_nation(said.clean[slice(*second)]))
        and not leads_on(said.clean, b, second)
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
    if rest == " in " or (_ends(said.clean[:a]) == "by" and _ends(rest) in ("in", "at", "on")):
        return False  # "at Vel in Oru", "killed by Ors in Oru"
    for x, y in sorted(taken[1:], reverse=True):
        rest = rest[: x - b] + rest[y - b :] if x >= b else rest
    return not all(len(w) == 1 or w in _LISTING for w in rest.split())


def _ends(text: str) -> str:
    return text.split()[-1] if text.split() else ""


def leads_on(text: str, end: int, second: Span) -> bool:
    """Whether words say what the second span is: "the American actor Edward Dillon"."""
    return bool(re.fullmatch(rf" (?:(?:film )?(?:{SORTS}) ){{0,3}}", text[end : second[0]]))


def _names_between(said: Said, low: int, high: int) -> bool:
    return any(low <= a and b <= high for (a, b), _ in said.values) or high - low > 3 * _NEAR


def direction(said: Said, cue: SenseCue, head: Span, tail: Span, *, text_is_said: bool = False) -> int:
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
_OF = wording("joining", "of")


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
