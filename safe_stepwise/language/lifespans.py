"""Life spans in brackets, spelled out: ``( 1901 -- 1970 )`` as ``( born 1901 -- died 1970 )``."""

from __future__ import annotations

import re

from safe_stepwise.language.text import dates_in

_OPENING = 260
_BRACKETS = re.compile(r"[(;] ([^()]*(?:\([^()]*\)[^()]*)*)\)")
_UNKNOWN_BIRTH = re.compile(r"^-- ")
_NOT_A_LIFE = re.compile(
    r"\b(?:reign|reigned|ruled|active|founded|released|film|song|flourished)\b"
)
_EVENT = re.compile(r"\b(?:born|died)\b")
_BARE_YEARS = re.compile(r"(?<=^\( )(\d{4}) (\d{4})(?= \)$)")
_BORN = re.compile(r"\bborn (?:c |circa |about |around )?$")
_CIRCA = re.compile(r"\b(?:c|ca|circa|about|around) $")
_SHORT_EVENTS = (
    (re.compile(r"(?<=[(;-] )d (?=\d|c |circa|[a-z]+ \d)"), "died "),
    (re.compile(r"(?<=[(;] )b (?=\d|c |circa|[a-z]+ \d)"), "born "),
)


def spell_out_life(text: str) -> str:
    """Mark what was born and what died in the brackets after a name, however they are punctuated.

    Words are added, and ``d`` and ``b`` spelled out; none is taken away.
    """
    for opening in _BRACKETS.finditer(text, 0, _OPENING):
        inside = opening[0]
        for pattern, event in _SHORT_EVENTS:
            inside = pattern.sub(event, inside)
        inside = _BARE_YEARS.sub(r"\1 -- \2", inside)
        marked = f"{inside[0]} {_marked(inside[2:-1])})"
        if marked != opening[0]:
            return text[: opening.start()] + marked + text[opening.end() :]
    return text


def _marked(inside: str) -> str:
    if _NOT_A_LIFE.search(inside):
        return inside
    inside = _UNKNOWN_BIRTH.sub("born -- ", inside)
    full = [d for d in dates_in(inside) if d.year]
    if " -- " not in inside and len(_EVENT.findall(inside)) > 1:
        return inside
    if " -- " not in inside and len(full) == 2 and all(d.day for d in full):
        inside = f"{inside[: full[1].start]} -- {inside[full[1].start :]}"
    elif " -- " not in inside and len(full) == 1 and full[0].day and not _EVENT.search(inside):
        return f"born {inside}"
    birth, dash, death = inside.partition(" -- ")
    if not dash or not (full or len(birth.split()) <= 4):
        return inside
    first = next((d for d in dates_in(birth) if d.year), None)
    if first and not _BORN.search(birth, 0, first.start):
        about = _CIRCA.search(birth, 0, first.start)
        place = about.start() if about else first.start
        birth = f"{birth[:place]}born {birth[place:]}"
    if not birth.startswith("born "):
        birth = f"born {birth}"
    return f"{birth} -- {death if death.startswith('died ') else 'died ' + death}"
