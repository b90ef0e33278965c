"""Who somebody named in a sentence is to its subject: father, child, spouse, sibling.

The same words say both directions: "son of Vorr" makes Vorr a parent, "his son Vorr" a child. So a
cue of kin is read with what stands between it and the name, and never as mere nearness.
"""

import re
from collections.abc import Sequence
from typing import Literal

from safe_stepwise.language.reading import Span
from safe_stepwise.language.relations import REACH, Cue, cues_between, has_brackets_closed
from safe_stepwise.language.vocabulary import load, wording

Role = Literal["father", "mother", "parent", "child", "spouse", "sibling", "other"]

_VOCABULARY = load("kin")
ROLES: dict[str, frozenset[Role]] = {name: frozenset(roles) for name, roles in _VOCABULARY["roles"].items()}
"""What a relation's tail is to its head."""
TURNED: dict[str, frozenset[Role]] = {name: frozenset(roles) for name, roles in _VOCABULARY["turned"].items()}
"""What its head is to its tail."""
_AHEAD: dict[str, Role] = _VOCABULARY["ahead"]
_BEHIND: dict[str, Role] = _VOCABULARY["behind"]
_POSSESSED: dict[str, Role] = _VOCABULARY["possessed"]

_OWNER = re.compile(r"(?: and(?: \w+){1,4})? 's (?:\w+ ){0,3}$")
_AND_HER = re.compile(r"(?: ,)? and (?:his|her|their) (?:\w+ ){0,2}$")
_IS = wording("kin", "is")
_HAS = re.compile(r"(?: and(?: \w+){1,6})?(?: also| later| only)? (?:had|has|have|bore|left) (?:\w+ ){0,4}$")
_WEDS = re.compile(r"(?: and(?: \w+){1,4})?(?: ,)?(?: \w+){0,4} $")
_WED = re.compile(r"(?:re)?married|eloped|divorced|wed|wedded|marries|couple|wedding")
_CHAINED = wording("kin", "chained")
_SUBJECT_AGAIN = re.compile(r"\b(?:s?he|they|it)\b|[;.]| and (?:was|is) | and the ")
_AND_HIS = re.compile(r"[^;]{1,200}\b(?:and|with|by)(?: of)?(?: his| her)? (?:\w+ ){0,3}$")
# "She was married to and worked with NAME."
_AND_ALSO = re.compile(r"(?: to| of| with)?(?: ,)? and ")
_BY_HIS = re.compile(r"\bby (?:his|her) (?:\w+ )?$")
_OF = ("father_of", "mother_of", "parent_of", "child_of")
# "The father of Ana Vorr was NAME."
_OF_WHOM_IS = wording("kin", "of_whom_is")
_ASIDE_ENDS = re.compile(r" , and ")
_OF_A_COUPLE = ("child_of", "parent", "child")
_AND_THE_OTHER = re.compile(r"(?: ,[^;.]{0,80}?)?(?: \([^()]*\))? and (?:\w+ ){0,3}")
_ASIDE = re.compile(r"\b(?:who|whom|when|after|before)\b")


def roles_of(text: str, start: int, end: int, low: int, high: int, owners: Sequence[Span] = ()) -> frozenset[Role]:
    """What the person at a span of cleaned text is to somebody told of in its sentence.

    Args:
        text: cleaned text (``reading.read``).
        start, end: where the person is named; low, high: the sentence.
        owners: where the one is named whose relative is looked for; the sentence's subject else.

    Returns:
        Usually one role; ``parent`` for the second of two ("of Ors Vorr and his wife Ana");
        ``other`` for an uncle, a friend, or a relative's relative; empty where nothing is said.

    >>> def role(text, name):
    ...     start = text.index(name)
    ...     return sorted(roles_of(text, start, start + len(name), 0, len(text)))
    >>> role("ana was the daughter of ors vorr", "ors"), role("his son ors vorr died", "ors")
    (['parent'], ['child'])
    >>> role("she was the daughter of velt and his wife ana vorr", "ana")
    ['parent']
    >>> role("he married ana vorr , the daughter of ors velt", "ors")
    ['other']
    """
    ahead = [
        cue
        for cue in cues_between(text, "kin", max(low, start - 2 * REACH), start)
        if not cue.denied
        and has_brackets_closed(text, cue, start)
        # "Ana, who married Ors, and NAME"
        and not (text.endswith(" who ", 0, cue.start) and _ASIDE_ENDS.search(text, cue.end, start))
    ]
    if ahead and start - ahead[-1].end > REACH:
        ahead = []
    following = next(iter(cues_between(text, "kin", end, min(high, end + REACH))), None)
    behind = _told_behind(text, end, following) if following else None
    if behind and following:
        # Although a cue leads the name it may belong to the one behind it: not in an apposition.
        between = text[end : following.start]
        is_near = not ahead or len(between) < (start - ahead[-1].end) // 2
        if not ahead or (is_near and not between.startswith((" ,", " and "))):
            return frozenset((behind,))
    return _told_ahead(text, ahead, start, owners) if ahead else frozenset()


def _told_behind(text: str, end: int, cue: Cue) -> Role | None:
    """What a name is by the cue that follows it, or None where that tells of something else."""
    between = text[end : cue.start]
    if _OWNER.fullmatch(between) or _AND_HER.fullmatch(between):
        return _POSSESSED.get(cue.label, "other")
    if cue.label == "spouse" and _WED.fullmatch(text, cue.start, cue.end):
        return "spouse" if _WEDS.fullmatch(between) and not _ASIDE.search(between) else None
    if cue.label in ("father_of", "mother_of") and between == " ":
        return _BEHIND[cue.label]
    if cue.label in ("child", "child_of") and _HAS.fullmatch(between):
        return "parent"
    return _BEHIND.get(cue.label, "other") if _IS.fullmatch(between) else None


def _told_ahead(text: str, ahead: list[Cue], start: int, owners: Sequence[Span]) -> frozenset[Role]:
    """What a name is by the cues that lead it, the last of them first."""
    last = ahead[-1]
    if last.label in _OF_A_COUPLE and any(
        last.end <= low and _AND_THE_OTHER.fullmatch(text, high, start) for low, high in owners
    ):
        return frozenset(("spouse",))
    role = _AHEAD.get(last.label, "other")
    if last.label in _OF and _OF_WHOM_IS.fullmatch(text, last.end, start):
        return frozenset((_BEHIND[last.label],))
    earlier = ahead[-2] if len(ahead) > 1 else None
    if earlier is None or earlier.label == "colleague":
        return frozenset((role,))
    between = text[earlier.end : last.start]
    if _AND_ALSO.fullmatch(between):
        return frozenset((role, _AHEAD.get(earlier.label, "other")))
    owned = any(earlier.end <= low and high <= last.start for low, high in owners)
    weds = text.startswith("marr", last.start)
    if weds and earlier.label == "child_of" and _BY_HIS.search(between):
        return frozenset(("parent",))
    own = weds or text.startswith(" of ", last.end)
    if role == "spouse" and not own and _AND_HIS.fullmatch(between):
        if owned or earlier.label == "spouse":
            return frozenset((role,))
        return frozenset(("parent",) if earlier.label == "child_of" else ("other",))
    if not _SUBJECT_AGAIN.search(between) and _CHAINED.fullmatch(between) and not owned:
        return frozenset(("other",))
    return frozenset((role,))
