"""Read the replies of a teacher: triples, groups of names, a path, a ruling on a claim.

`store.replies` finds the JSON, or pieces of the requested form in something else.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.records import TEACHER_TYPES, NoiseType, Triple
from safe_stepwise.store.replies import MAX_CHARACTERS, TOO_LONG, Reply, ReplyError, read_reply

MAX_NAME_CHARS = 300
"""The maximum number of characters of a head, relation or tail; a longer text is a paragraph, not a name."""
MAX_TRIPLES = 200
"""The maximum number of triples of a reply: 100 words state some 30; a model with more repeats itself."""

_HEADS = ("head", "subject", "source")
_RELATIONS = ("relation", "predicate", "property")
_KEYS = (_HEADS, _RELATIONS, ("tail", "object", "target"), ("sentence",))


class UnreadableReply(ValueError):
    """The reply has nothing of the requested form; the message says what it has."""


@dataclass(frozen=True, slots=True)
class Triples:
    """The triples of a reply with their sentences, and the number of triples left out."""

    triples: tuple[Triple, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """A proposed path: numbers of triples in the request (from 1), or triples written out."""

    steps: tuple[int | Triple, ...]
    verdict: NoiseType
    explanation: str


def read_triples(text: str) -> Triples:
    """Read the triples of an extraction or gleaning reply; raise `UnreadableReply` if there are none."""
    parsed = [_read_triple(value) for value in _read_list(text, "triples", _is_triple_like)]
    unique = dict.fromkeys(triple for triple in parsed if triple is not None)
    triples = tuple(unique)[:MAX_TRIPLES]
    broken = sum(triple is None for triple in parsed)
    return Triples(triples, broken + len(unique) - len(triples))


def read_groups(text: str) -> tuple[tuple[str, ...], ...]:
    """Read groups of names of one entity; raise `UnreadableReply` if there are none."""
    lists = (group for group in _read_list(text, "groups", _is_innermost_list) if isinstance(group, list))
    groups = (tuple(dict.fromkeys(n for n in group if isinstance(n, str))) for group in lists)
    return tuple(group for group in groups if len(group) > 1)


def read_path(text: str, data: str = "") -> Path:
    """Read a proposed path outside ``data``; raise `UnreadableReply` if there is none, or two verdicts differ."""
    reply, answer = _read_answer(text, "verdict", ("path", "explanation"), data)
    value = answer["verdict"]
    verdict = re.sub("[ -]", "_", value.strip().lower()) if isinstance(value, str) else ""
    if verdict not in TEACHER_TYPES:
        raise UnreadableReply(f"unknown verdict {one_line(str(value))[:60]!r}")
    if reply.takes_back(accepts=verdict == "none"):
        raise UnreadableReply("the words around its verdict take it back, or suppose it only")
    steps = answer.get("path") or []
    if not isinstance(steps, list):
        raise UnreadableReply("its path is no list")
    return Path(
        steps=tuple(_to_step(step) for step in steps), verdict=verdict, explanation=one_line(answer.get("explanation"))
    )


def read_ruling(text: str, data: str = "") -> tuple[bool, str]:
    """Read whether passages state a claim, and their words, if any; raise `UnreadableReply` if that is unclear.

    ``data`` is the text that the request quoted: a ruling inside it does not count.

    >>> read_ruling('{"stated": "yes", "quote": "born in Oru"}')
    (True, 'born in Oru')
    """
    reply, answer = _read_answer(text, "stated", ("quote",), data)
    value = one_line(answer["stated"]).lower()
    is_stated = {"yes": True, "true": True, "no": False, "false": False}.get(value)
    if is_stated is None:
        raise UnreadableReply(f"“stated” is neither yes nor no, but {value[:60]!r}")
    if reply.takes_back(accepts=is_stated):
        raise UnreadableReply("the words around its verdict take it back, or suppose it only")
    quote = answer.get("quote")
    return is_stated, one_line(quote) if isinstance(quote, str) else ""


def _read_answer(text: str, key: str, further_keys: Sequence[str], data: str) -> tuple[Reply, Mapping[str, Any]]:
    """Return the reply and its object with ``key``; raise `UnreadableReply` if there is none, or two differ."""
    reply = read_reply(text)
    try:
        answers = reply.answers(key, *further_keys, data=data)
    except ReplyError as error:
        raise UnreadableReply(why_unreadable(text) if reply.broken else str(error)) from None
    if not answers:
        raise UnreadableReply(why_unreadable(text))
    if any(repeat != answers[0] for repeat in answers):
        raise UnreadableReply("two different verdicts")
    return reply, answers[0]


def _to_step(value: Any) -> int | Triple:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[Tt#]?\d{1,6}\s*", value):
        return int(value.strip().lstrip("Tt#"))
    triple = _read_triple(value) if isinstance(value, dict | list) else None
    if triple is None:
        raise UnreadableReply("a step of its path is neither a number nor a triple")
    return triple


def _read_list(text: str, key: str, is_piece: Callable[[Any], bool]) -> Sequence[Any]:
    """Read the requested list, under its key or bare, or else the pieces of such a list in the reply."""
    reply = read_reply(text)
    value = reply.values[0] if reply.is_clean else None
    listed = value.get(key) if isinstance(value, Mapping) else value
    if isinstance(listed, list):
        return listed
    pieces = reply.outermost(is_piece)
    if not pieces:
        raise UnreadableReply(why_unreadable(text))
    return pieces


def _is_triple_like(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) in (3, 4) and all(isinstance(v, str) for v in value[:3])
    return isinstance(value, dict) and any(key in value for key in _HEADS)


def _is_innermost_list(value: Any) -> bool:
    flat = isinstance(value, list) and not any(isinstance(item, dict | list) for item in value)
    return flat and bool(value)


def _read_triple(value: Any) -> Triple | None:
    """Read a triple in any of the forms that models use; None for another value."""
    if isinstance(value, Mapping):
        cells = [next((value[key] for key in keys if key in value), None) for keys in _KEYS]
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) in (3, 4):
        cells = [*value, None][:4]
    else:
        return None
    head, relation, tail = map(_name, cells[:3])
    if not (head and relation and tail):
        return None
    number = cells[3] if isinstance(cells[3], int) and not isinstance(cells[3], bool) else None
    return Triple(head, relation, tail, None, number)


def _name(value: Any) -> str:
    """Read a name on one line; return "" for a value that is not a name."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    name = one_line(value).replace("_", " ").strip()
    return name if len(name) <= MAX_NAME_CHARS else ""


def one_line(value: Any) -> str:
    """Put a text of a reply on one line, encodable as UTF-8."""
    text = "" if value is None else str(value)
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def why_unreadable(text: str) -> str:
    """Say in one clause why a reply is unreadable."""
    if not text.strip():
        return "it is empty"
    if len(text) > MAX_CHARACTERS:
        return TOO_LONG
    if "{" in text or "[" in text:
        return "its JSON is broken"
    return "it holds no JSON"
