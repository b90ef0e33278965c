"""Decides which cue governs a name or date in a sentence: "born", "directed by", "son of".

Cues of one group compete ("born in Oru and died in Vel"); see ``vocabulary/relations.yaml``. All texts are cleaned
(`reading.clean`).

Words of kinship express both directions: "son of Vorr" makes Vorr a parent, "his son Vorr" a child. So a kinship cue
is parsed together with the words between it and the name; nearness alone is not enough.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

from safe_stepwise.language.relations import REACH, Cue, cues_between, has_brackets_closed
from safe_stepwise.language.text import MONTHS, Span
from safe_stepwise.language.vocabulary import load, wording

_MAX_SENTENCE_CHARS = 3 * REACH
"""Characters before and after a span in which cues are looked for: no sentence of prose is longer, and the time for an
endless list stays bounded."""

_JOINED = wording("cues", "joined")
_JOINED_BY_BEING = re.compile(_JOINED.pattern.replace("and|", "and|is|are|was|were|", 1))
# "produced by one of its stars , NAME", "the debut of actress NAME": a profession before a name is not a cue itself.
_PROFESSION = wording("cues", "profession")
_BY_SOMEBODY = wording("cues", "by_somebody")
_OF_THE_NAME = re.compile(r" (?:, )?| : (?:(?:[\w'-]+ ){1,5}, ){0,3}(?:(?:[\w'-]+ ){1,5}and )?")
# "starring NAME , who also produced it"
_WHO_ALSO = re.compile(r"(?: \([^()]*\))?(?: ,)? who (?:later |had |has )*(?:also |himself |herself )+")
# "starring Ana , Ors ( as himself ) , NAME": a list may be long.
_LISTED = re.compile(r"(?:(?: [\w'-]++){1,7}+(?: \([^()]*+\))? ,)++(?:(?: [\w'-]++){1,7}+)?+ ")
_PASSIVE = re.compile(r"\w+(?:ed|ing)|written|sung")
_IS_THE = re.compile(r" (?:is|was|were|are|became|(?:served|acted|worked) as) (?:(?:the|its|an?) )?(?:\w+ )?")
_NO_OBJECT = re.compile(r" (?:by|for|in|at|on|from|as|with|alongside|,|\.|\))(?: |$)")
_AND_SOMEBODY = re.compile(r" and (?:\w+ ){1,4}")
# What is between a place and a life event of it: "Oru is where she died", "in Oru that Vorr was born".
_IS_WHERE = wording("cues", "placed")
# ... and after a place or date that opens the sentence: "In Oru she died".
_OWN_SUBJECT = re.compile(r"(?: \([^()]*\))?(?: ,)?(?: on [\w ]{1,30} ,?)?(?: [\w'-]+){1,5} ")
# What may come before a name that still opens its sentence.
_OPENING_WORDS = {
    f"{lead}{word}{article}".strip()
    for lead in ("", "it was ")
    for word in ("", "in", "on", "at", "from")
    for article in ("", " the", " the town of", " the city of", " the village of")
}
_MAX_OPENING_CHARS = max(map(len, _OPENING_WORDS)) + 2
_LIFE_EVENTS = ("birth", "death", "burial")
_SEPARATION = re.compile(r"[\d;)]| -- | and ")
_WHERE_SHE = re.compile(r"(?: in(?: the)?(?: [\w'-]+){1,3})? , where [^,]{1,60} , (?:s?he|they|[\w'-]+) $")
_NOT_AHEAD = ("preposition", "lies")  # labels of cues that are never about a place before them
_MAX_CLAUSE_CHARS = 120
# "in Oru", "in the town of Oru", "in Oru, Vel": the words before a place.
_LEADING_IN = re.compile(r"\b(?:in|within|from|near|of|at|for)(?: the)?(?: \w+ of)? (?:(?:[\w'-]+ ){1,4}, ){0,3}$")
_OWN_PLACE = wording("cues", "own_place", months="|".join(MONTHS))
_POSSESSIONS: Mapping[str, Sequence[str]] = load("relations")["possessions"]
_POSSESSED = re.compile(rf" 's (?:\w+ ){{0,5}}?({'|'.join(_POSSESSIONS)})\b")


def governing_cues(text: str, start: int, end: int, low: int, high: int, group: str) -> frozenset[str]:
    """Return the labels of the cues that govern a span.

    These are the last cue before the span and those joined to that cue ("written and directed by"); or the first cue
    after the span, if it is much nearer ("Vorr composed the score").

    ``start`` and ``end`` are the span in a cleaned text, ``low`` and ``high`` its sentence.

    >>> text = "it was written and directed by ana vorr and starred ors velt"
    >>> sorted(governing_cues(text, 31, 39, 0, len(text), "credit"))
    ['director', 'writer']
    """
    leading = cues_between(text, group, max(low, start - _MAX_SENTENCE_CHARS), start)
    before = [cue for cue in leading if not cue.denied and has_brackets_closed(text, cue, start)]
    following = cues_between(text, group, end, min(high, end + _MAX_SENTENCE_CHARS))
    after = next(
        (
            cue
            for cue in following
            if cue.label not in _NOT_AHEAD
            and not text.startswith(" :", cue.end)
            and (group != "place" or text.count("(", end, cue.start) <= text.count(")", end, cue.start))
        ),
        None,
    )
    opens = start - low <= _MAX_OPENING_CHARS and text[low:start].strip() in _OPENING_WORDS  # also after "in"
    if after and not _can_be_subject(text, end, after, group, opens=opens):
        after = None
    if group == "place":
        return _place_labels(text, before, after, start, end)
    owned = _POSSESSED.match(text, end)
    if owned and group == "credit":
        return frozenset(_POSSESSIONS[owned[1]])
    if after is not None and after.label in _LIFE_EVENTS and text.startswith(" there", after.end):
        return frozenset([after.label])
    if group == "life" and (event := _event_after(text, end, following, opens)):
        return frozenset([event.label])
    if after is not None and _IS_THE.fullmatch(text, end, after.start):
        return frozenset([after.label])
    back = start - before[-1].end if before else REACH + 1
    if back > REACH and before and group != "time" and _LISTED.fullmatch(text, before[-1].end, start):
        back = REACH
    if group == "credit" and following and _WHO_ALSO.fullmatch(text, end, following[0].start):
        return frozenset([following[0].label]).union(_with_coordinated(text, before, group) if back <= REACH else ())
    if after is not None and (back > REACH or after.start - end < back // 2):
        return frozenset([after.label])
    if back > REACH:
        return frozenset()
    return _with_coordinated(text, before, group) | _before_profession(text, before, start, group)


def _before_profession(text: str, cues: list[Cue], start: int, group: str) -> frozenset[str]:
    """Return the labels of the cue before the profession that precedes a name ("directed by the actor NAME")."""
    if group != "credit" or len(cues) < 2 or not _PROFESSION.fullmatch(text, cues[-1].start, cues[-1].end):
        return frozenset()
    is_apposed = _OF_THE_NAME.fullmatch(text, cues[-1].end, start)
    if is_apposed and _BY_SOMEBODY.fullmatch(text, cues[-2].end, cues[-1].start):
        return _with_coordinated(text, cues[:-1], group)
    return frozenset()


def _place_labels(text: str, before: list[Cue], after: Cue | None, start: int, end: int) -> frozenset[str]:
    """Return the labels of the cues that govern a place; "in" by itself decides only if nothing else does."""
    if any(cue.label == "contact" for cue in before if start - cue.end <= REACH):
        return frozenset(["contact"])
    has_preposition = _LEADING_IN.search(text, max(0, start - _MAX_CLAUSE_CHARS), start) is not None
    strong = [cue for cue in before if cue.label not in _NOT_AHEAD]
    back = start - strong[-1].end if strong else REACH + 1
    if after is not None and (back > REACH or after.start - end < back // 2):
        return frozenset([after.label])
    labels = _with_coordinated(text, strong, "place") if back <= REACH else frozenset[str]()
    return labels.union(_NOT_AHEAD) if has_preposition else labels


def _event_after(text: str, end: int, following: tuple[Cue, ...], opens: bool) -> Cue | None:
    """Return the first life event after a place that opens its sentence ("In Oru, where she had moved, she died")."""
    event = next((cue for cue in following if cue.label in _LIFE_EVENTS), None)
    if event is None or not opens or text[end - 1].isdigit():
        return None
    clause = _WHERE_SHE.match(text, end, event.start)
    return event if clause and not _OWN_PLACE.match(text, event.end) else None


def _is_own_event(text: str, end: int, cue: Cue, *, opens: bool) -> bool:
    """Whether a life event after a place or date has this place or date ("Oru, where she died")."""
    between = text[end : cue.start]
    if text.startswith(" there", cue.end):
        return cue.label in _LIFE_EVENTS
    if text[end - 1].isdigit():
        is_separate = _SEPARATION.search(between) is not None
        return cue.label in _LIFE_EVENTS and not is_separate and len(between) <= REACH // 2
    if _OWN_PLACE.match(text, cue.end):
        return False
    placement = _IS_WHERE.fullmatch(between) or (opens and _OWN_SUBJECT.fullmatch(between))
    return bool(placement) or (cue.label in _LIFE_EVENTS and len(between) <= 2)


def _can_be_subject(text: str, end: int, cue: Cue, group: str, *, opens: bool) -> bool:
    """Whether a cue after a name can have it as its subject ("Vorr composed it", "Vorr 's wife").

    ``opens``: whether the name opens its sentence.
    """
    between, cue_text = text[end : cue.start], text[cue.start : cue.end]
    if group == "life":
        return _is_own_event(text, end, cue, opens=opens)
    passive = text.startswith(" by ", cue.end)
    if opens and _AND_SOMEBODY.fullmatch(between):
        return not passive
    if " and " in between or " but " in between or passive:
        return False
    if group == "place":
        is_placed = cue.label in ("border", "capital") or _IS_WHERE.fullmatch(between) is not None
        return is_placed and len(between) <= REACH // 2
    if _PASSIVE.fullmatch(cue_text) and (cue_text.endswith("ing") or _NO_OBJECT.match(text, cue.end)):
        return False
    return len(between) <= 40


def _with_coordinated(text: str, cues: list[Cue], group: str) -> frozenset[str]:
    """Return the labels of the last cue and of those joined to it ("written and directed by")."""
    labels = {cues[-1].label}
    joined = _JOINED if group == "credit" else _JOINED_BY_BEING
    for later, earlier in pairwise(reversed(cues)):
        if not joined.fullmatch(text, earlier.end, later.start):
            break
        labels.add(earlier.label)
    return frozenset(labels)


Role = Literal["father", "mother", "parent", "child", "spouse", "sibling", "other"]

_VOCABULARY = load("kin")
ROLES: dict[str, frozenset[Role]] = {name: frozenset(roles) for name, roles in _VOCABULARY["roles"].items()}
"""The roles that the tail of a kinship relation may have towards its head."""
TURNED: dict[str, frozenset[Role]] = {name: frozenset(roles) for name, roles in _VOCABULARY["turned"].items()}
"""The roles that the head of a kinship relation may have towards its tail."""
_LEADING_ROLES: dict[str, Role] = _VOCABULARY["ahead"]
_FOLLOWING_ROLES: dict[str, Role] = _VOCABULARY["behind"]
_POSSESSED_ROLES: dict[str, Role] = _VOCABULARY["possessed"]

_OWNER = re.compile(r"(?: and(?: \w+){1,4})? 's (?:\w+ ){0,3}$")
_AND_HER = re.compile(r"(?: ,)? and (?:his|her|their) (?:\w+ ){0,2}$")
_IS = wording("kin", "is")
_HAS = re.compile(r"(?: and(?: \w+){1,6})?(?: also| later| only)? (?:had|has|have|bore|left) (?:\w+ ){0,4}$")
_UP_TO_WEDDING = re.compile(r"(?: and(?: \w+){1,4})?(?: ,)?(?: \w+){0,4} $")
_WEDDING = re.compile(r"(?:re)?married|eloped|divorced|wed|wedded|marries|couple|wedding")
_CHAINED = wording("kin", "chained")
_SUBJECT_AGAIN = re.compile(r"\b(?:s?he|they|it)\b|[;.]| and (?:was|is) | and the ")
_AND_HIS = re.compile(r"[^;]{1,200}\b(?:and|with|by)(?: of)?(?: his| her)? (?:\w+ ){0,3}$")
# "She was married to and worked with NAME."
_AND_ALSO = re.compile(r"(?: to| of| with)?(?: ,)? and ")
_BY_HIS = re.compile(r"\bby (?:his|her) (?:\w+ )?$")
_OWNER_FOLLOWS = ("father_of", "mother_of", "parent_of", "child_of")
# "The father of Ana Vorr was NAME."
_OF_WHOM_IS = wording("kin", "of_whom_is")
_ASIDE_ENDS = re.compile(r" , and ")
_OF_PARENTS = ("child_of", "parent", "child")
_AND_THE_OTHER = re.compile(r"(?: ,[^;.]{0,80}?)?(?: \([^()]*\))? and (?:\w+ ){0,3}")
_ASIDE = re.compile(r"\b(?:who|whom|when|after|before)\b")


def roles_of(text: str, start: int, end: int, low: int, high: int, owners: Sequence[Span] = ()) -> frozenset[Role]:
    """Return the roles of the person at a span of cleaned text towards others in its sentence.

    ``owners`` are the spans of the name whose relative is looked for, none if that is the sentence's subject. Usually
    it is one role, also for the second of two parents ("of Ors Vorr and his wife Ana"); ``other`` for an uncle, a
    friend, or a relative's relative; none where the sentence states no kinship.

    >>> def role(text, name):
    ...     start = text.index(name)
    ...     return sorted(roles_of(text, start, start + len(name), 0, len(text)))
    >>> role("ana was the daughter of ors vorr", "ors"), role("his son ors vorr died", "ors")
    (['parent'], ['child'])
    """
    leading = [
        cue
        for cue in cues_between(text, "kin", max(low, start - 2 * REACH), start)
        if not cue.denied
        and has_brackets_closed(text, cue, start)
        # "Ana, who married Ors, and NAME"
        and not (text.endswith(" who ", 0, cue.start) and _ASIDE_ENDS.search(text, cue.end, start))
    ]
    if leading and start - leading[-1].end > REACH:
        leading = []
    following = next(iter(cues_between(text, "kin", end, min(high, end + REACH))), None)
    role_after = _role_by_following(text, end, following) if following else None
    if role_after and following:
        # A cue before the name is less likely than a nearer one after it, except in an apposition.
        between = text[end : following.start]
        is_near = not leading or len(between) < (start - leading[-1].end) // 2
        if not leading or (is_near and not between.startswith((" ,", " and "))):
            return frozenset((role_after,))
    return _roles_by_leading(text, leading, start, owners) if leading else frozenset()


def _role_by_following(text: str, end: int, cue: Cue) -> Role | None:
    """Return a name's role by the cue after it; None if that cue does not belong to the name."""
    between = text[end : cue.start]
    if _OWNER.fullmatch(between) or _AND_HER.fullmatch(between):
        return _POSSESSED_ROLES.get(cue.label, "other")
    if cue.label == "spouse" and _WEDDING.fullmatch(text, cue.start, cue.end):
        return "spouse" if _UP_TO_WEDDING.fullmatch(between) and not _ASIDE.search(between) else None
    if cue.label in ("father_of", "mother_of") and between == " ":
        return _FOLLOWING_ROLES[cue.label]
    if cue.label in ("child", "child_of") and _HAS.fullmatch(between):
        return "parent"
    return _FOLLOWING_ROLES.get(cue.label, "other") if _IS.fullmatch(between) else None


def _roles_by_leading(text: str, leading: list[Cue], start: int, owners: Sequence[Span]) -> frozenset[Role]:
    """Return a name's roles by the cues before it; the last one counts most."""
    last = leading[-1]
    spans = owners if last.label in _OF_PARENTS else ()
    if any(last.end <= low and _AND_THE_OTHER.fullmatch(text, high, start) for low, high in spans):
        return frozenset(("spouse",))
    role = _LEADING_ROLES.get(last.label, "other")
    if last.label in _OWNER_FOLLOWS and _OF_WHOM_IS.fullmatch(text, last.end, start):
        return frozenset((_FOLLOWING_ROLES[last.label],))
    earlier = leading[-2] if len(leading) > 1 else None
    if earlier is None or earlier.label == "colleague":
        return frozenset((role,))
    between = text[earlier.end : last.start]
    if _AND_ALSO.fullmatch(between):
        return frozenset((role, _LEADING_ROLES.get(earlier.label, "other")))
    owned = any(earlier.end <= low and high <= last.start for low, high in owners)
    weds = text.startswith("marr", last.start)
    if weds and earlier.label == "child_of" and _BY_HIS.search(between):
        return frozenset(("parent",))
    is_direct = weds or text.startswith(" of ", last.end)
    if role == "spouse" and not is_direct and _AND_HIS.fullmatch(between):
        if owned or earlier.label == "spouse":
            return frozenset((role,))
        return frozenset(("parent",) if earlier.label == "child_of" else ("other",))
    if not _SUBJECT_AGAIN.search(between) and _CHAINED.fullmatch(between) and not owned:
        return frozenset(("other",))
    return frozenset((role,))
