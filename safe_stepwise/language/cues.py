"""Which cue governs a name or date in a sentence: "born", "directed by", "son of".

Cues of one group compete ("born in Oru and died in Vel"); see ``vocabulary/relations.yaml``.
"""

import re
from itertools import pairwise

from safe_stepwise.language.relations import cue_pattern

REACH = 140
"""Characters between a cue and what it governs, at most: about a long clause."""

_JOINED = re.compile(
    r"[\s,]*(?:(?:and|or|also|co|later|then|as well as|is|are|was|by|to|the|his|her|\w+ed)[\s,]*)*"
)
_DENIED = re.compile(r"\b(?:not|never|nor)(?: \w+)? $")
_RECIPROCAL = re.compile(r"married|eloped|divorced|wed|wedded|remarried|marry|couple")
_PASSIVE = re.compile(r"\w+(?:ed|ing)|written|sung")
_NO_OBJECT = re.compile(r" (?:by|for|in|at|on|from|as|with|alongside|,|\.|\))(?: |$)")
_AND_SOMEBODY = re.compile(r" and (?:\w+ ){1,4}")
_HIS = re.compile(r"(?: ,)?(?: and)? (?:his|her|their) (?:\w+ )?")
_POSSESSIONS = {
    "film": {"director"},
    "movie": {"director"},
    "documentary": {"director"},
    "novel": {"writer"},
    "book": {"writer"},
    "opera": {"composer"},
    "song": {"performer", "composer"},
    "single": {"performer"},
    "album": {"performer"},
    "company": {"founder", "owner"},
}
_POSSESSED = re.compile(rf" 's (?:\w+ ){{0,5}}?({'|'.join(_POSSESSIONS)})\b")


def governing_cues(
    text: str, start: int, end: int, low: int, high: int, group: str
) -> frozenset[str]:
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
    before: list[re.Match[str]] = []
    after: re.Match[str] | None = None
    for cue in cue_pattern(group).finditer(text, low, high):
        if cue.end() <= start:
            denied = _DENIED.search(text, low, cue.start())
            between = text[cue.end() : start]
            if not denied and between.count(")") <= between.count("("):
                before.append(cue)
        elif cue.start() >= end:
            after = cue if _has_subject(text, end, cue, group, opens=start <= low + 1) else None
            break
    owned = _POSSESSED.match(text, end)
    if owned and group == "credit":
        return frozenset(_POSSESSIONS[owned[1]])
    back = start - before[-1].end() if before else REACH + 1
    if after is not None and (back > REACH or after.start() - end < back // 2):
        return frozenset([after.lastgroup or ""])
    if back > REACH:
        return frozenset()
    if group == "place" and any(cue.lastgroup == "contact" for cue in before):
        return frozenset(["contact"])
    return _with_coordinated(text, before, group)


def _has_subject(text: str, end: int, cue: re.Match[str], group: str, *, opens: bool) -> bool:
    """Whether a cue after a name can have it as its subject ("Vorr composed it", "Vorr 's wife").

    ``opens``: the name opens its sentence.
    """
    between = text[end : cue.start()]
    passive = text.startswith(" by ", cue.end())
    if group == "kin" and _RECIPROCAL.fullmatch(cue[0]):
        return len(between) <= 60
    if group == "kin" and _HIS.fullmatch(between):
        return True
    if opens and _AND_SOMEBODY.fullmatch(between):
        return not passive
    if " and " in between or " but " in between or passive:
        return False
    no_object = cue[0].endswith("ing") or _NO_OBJECT.match(text, cue.end())
    if _PASSIVE.fullmatch(cue[0]) and no_object:
        return False
    if group == "place" and cue.lastgroup not in ("border", "capital"):
        return False
    return len(between) <= (2 if group == "life" else 40)


def _with_coordinated(text: str, cues: list[re.Match[str]], group: str) -> frozenset[str]:
    labels = {cues[-1].lastgroup or ""}
    for later, earlier in pairwise(reversed(cues)):
        if "colleague" in (later.lastgroup, earlier.lastgroup):
            break
        through_spouse = group == "kin" and later.lastgroup == "spouse"
        if not through_spouse and not _JOINED.fullmatch(text, earlier.end(), later.start()):
            break
        labels.add(earlier.lastgroup or "")
    return frozenset(labels)
