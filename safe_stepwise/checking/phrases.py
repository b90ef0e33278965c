"""How a step is put: wordings drawn from a grammar (``vocabulary/phrases.yaml``), the same for all.

What a step says is the caller's; the grammar varies how it is said, whatever label the step will
get, so that no wording gives a label away.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence

from safe_stepwise.language.vocabulary import load

_PLACE = re.compile(r"{(\w+)}|\[([^\]]*)\]")


def choice_for(*parts: str) -> int:
    """A number that depends on some texts alone.

    >>> choice_for("a") == choice_for("a") != choice_for("b")
    True
    """
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big")


class _Lacking(Exception):
    """A wording wants a value that is not there."""


def phrase(kind: str, seed: str, *, unseen: bool = False, **values: object) -> str:
    """One wording of a kind of step; such as want a value that is not given are not taken.

    Equal arguments give equal words. ``unseen`` draws from the half that is held back for tests.
    Raises KeyError for a kind that is none.

    >>> phrase("fact", "b", n=3, claim="Oru is a town")
    'Here, Oru is a town, according to Passage 3.'
    """
    half = "unseen" if unseen else "seen"
    values["later" if values.get("k") else "first"] = ""
    if " and " in str(values.get("steps")):
        values["several"] = ""
    text = _drawn(kind, half, seed, {k: str(v) for k, v in values.items() if v is not None})
    return text[:1].upper() + text[1:]


def _drawn(kind: str, half: str, seed: str, values: Mapping[str, str]) -> str:
    options: Sequence[str] = load("phrases")[kind][half]
    start = choice_for(seed, kind)
    for n in range(len(options)):
        try:
            return _filled(options[(start + n) % len(options)], half, seed, values)
        except _Lacking:
            continue
    raise _Lacking(kind)


def _filled(option: str, half: str, seed: str, values: Mapping[str, str]) -> str:
    """A wording with its places filled; values are not looked into."""
    parts: list[str] = []
    end = 0
    for number, place in enumerate(_PLACE.finditer(option)):
        parts.append(option[end : place.start()])
        end = place.end()
        name, either = place.groups()
        if name is None:
            choices = either.split("|")
            chosen = choices[choice_for(seed, option, str(number)) % len(choices)]
            parts.append(_filled(chosen, half, seed, values))
        elif name in values:
            parts.append(values[name])
        elif name in load("phrases"):
            parts.append(_drawn(name, half, seed, values))
        else:
            raise _Lacking(name)
    return "".join([*parts, option[end:]])
