"""How a step is put: wordings drawn from a grammar (``vocabulary/phrases.yaml``), the same for all.

What a step says is the caller's; the grammar varies how it is said, whatever label the step will
get, so that no wording gives a label away. Half of it is held back for tests. For models that have
room for little there are brief wordings (``vocabulary/brief.yaml``) in the place of some.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from safe_stepwise.language.vocabulary import load

Half = Literal["seen", "unseen", "brief", "brief unseen"]
"""Which wordings are taken; those that are ``unseen`` are held back for tests."""
HELD_BACK: Mapping[Half, Half] = {"seen": "unseen", "brief": "brief unseen"}

_PLACE = re.compile(r"{(\w+)}|\[([^\]]*)\]")


def choice_for(*parts: str) -> int:
    """A number that depends on some texts alone.

    >>> choice_for("a") == choice_for("a") != choice_for("b")
    True
    """
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:4], "big")


class _Lacking(Exception):
    """A wording wants a value that is not there."""


def part_of(half: Half) -> str:
    """The key of a half's wordings in the vocabulary."""
    return "unseen" if half.endswith("unseen") else "seen"


def is_brief(half: Half) -> bool:
    """Whether brief wordings go before others."""
    return half.startswith("brief")


def phrase(kind: str, seed: str, *, half: Half = "seen", **values: object) -> str:
    """One wording of a kind of step; such as want a value that is not given are not taken.

    Equal arguments give equal words. Raises KeyError for a kind that is none.

    >>> phrase("fact", "b", n=3, claim="Oru is a town")
    'Here, Oru is a town, according to Passage 3.'
    >>> phrase("fact", "b", half="brief", n=3, claim="Oru is a town")
    'Passage 3: Oru is a town.'
    """
    values["later" if values.get("k") else "first"] = ""
    if " and " in str(values.get("steps")):
        values["several"] = ""
    text = _drawn(kind, half, seed, {k: str(v) for k, v in values.items() if v is not None})
    return text[:1].upper() + text[1:]


def _drawn(kind: str, half: Half, seed: str, values: Mapping[str, str]) -> str:
    brief = load("brief")["phrases"] if is_brief(half) else {}
    options: Sequence[str] = (brief.get(kind) or load("phrases")[kind])[part_of(half)]
    start = choice_for(seed, kind)
    for n in range(len(options)):
        try:
            return _filled(options[(start + n) % len(options)], half, seed, values)
        except _Lacking:
            continue
    raise _Lacking(kind)


def _filled(option: str, half: Half, seed: str, values: Mapping[str, str]) -> str:
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
