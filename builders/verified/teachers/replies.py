"""What a model replied, read as far as it can be: JSON, JSON amid prose, JSON that breaks off.

Every reply falls into one class, which is counted: ``clean`` (JSON of the form that was asked
for), ``salvaged`` (such pieces found in something else), ``unreadable``. A reply is data: nothing
in it is evaluated, and the time to read it grows with its length only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from safe_stepwise.records import NOISE_TYPES, NoiseType, Triple

ReplyClass = Literal["clean", "salvaged", "unreadable"]

LONGEST_NAME = 300
"""Characters of a head, relation or tail; what is longer is a paragraph, not a name."""
MOST_TRIPLES = 200
"""Triples of one reply: 100 words state some 30; more is a model that repeats itself."""

# Possessive throughout, like the reader of feedback: what stands in braces without further braces.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_OBJECT = re.compile(rf"\{{(?:[^{{}}\[\]\"]++|{_STRING})*+\}}", re.DOTALL)
_LIST = re.compile(rf"\[(?:[^{{}}\[\]\"]++|{_STRING})*+\]", re.DOTALL)
_FENCE = re.compile(r"^\s*```\w*\s*(.*?)\s*(?:```\s*)?$", re.DOTALL)
_HEADS = ("head", "subject", "source")
_RELATIONS = ("relation", "predicate", "property")
_TAILS = ("tail", "object", "target")


class UnreadableReply(ValueError):
    """Nothing of the form that was asked for is in the reply; the message says what was."""


@dataclass(frozen=True, slots=True)
class Triples:
    """Triples of a reply with their sentence, its class, and how many had to be left out."""

    triples: tuple[Triple, ...]
    kind: ReplyClass
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Path:
    """A proposed path: numbers of given triples (from 1), or triples written out."""

    steps: tuple[int | Triple, ...]
    verdict: NoiseType
    explanation: str
    kind: ReplyClass


def read_triples(text: str) -> Triples:
    """The triples of an extraction or gleaning reply; raises `UnreadableReply`.

    >>> read_triples('Sure! [["Oru", "country", "Marn"], ["Oru", "popul').triples
    (Triple(head='Oru', relation='country', tail='Marn', passage=None, sentence=None),)
    """
    whole = _whole(text)
    listed = _listed(whole, "triples")
    kind: ReplyClass = "clean"
    if listed is None:
        listed, kind = [v for v in _pieces(text) if _is_triple_like(v)], "salvaged"
        if not listed:
            raise UnreadableReply(_description(text))
    found = [_triple(value) for value in listed]
    kept = dict.fromkeys(triple for triple in found if triple is not None)
    triples = tuple(kept)[:MOST_TRIPLES]
    broken = sum(triple is None for triple in found)
    return Triples(triples, kind, broken + len(kept) - len(triples))


def read_groups(text: str) -> tuple[tuple[tuple[str, ...], ...], ReplyClass]:
    """Groups of names of one entity; raises `UnreadableReply`.

    >>> read_groups('{"groups": [["USA", "United States"], ["Oru"]]}')
    ((('USA', 'United States'),), 'clean')
    """
    listed = _listed(_whole(text), "groups")
    kind: ReplyClass = "clean"
    if listed is None:
        listed, kind = [v for v in _pieces(text) if isinstance(v, list) and v], "salvaged"
        if not listed:
            raise UnreadableReply(_description(text))
    groups = (
        tuple(dict.fromkeys(name for name in group if isinstance(name, str)))
        for group in listed
        if isinstance(group, list)
    )
    return tuple(group for group in groups if len(group) > 1), kind


def read_path(text: str) -> Path:
    """The path of a proposal; raises `UnreadableReply`, also for two verdicts that differ.

    >>> read_path('{"path": [2, 1], "verdict": "none", "explanation": "Both hold."}').steps
    (2, 1)
    """
    whole = _whole(text)
    kind: ReplyClass = "clean"
    if not (isinstance(whole, dict) and "verdict" in whole):
        kind = "salvaged"
        found = [v for v in _objects_amid(text) if "verdict" in v]
        if not found:
            raise UnreadableReply(_description(text))
        if any(v != found[0] for v in found):
            raise UnreadableReply("two different verdicts")
        whole = found[0]
    given = whole["verdict"]
    verdict = (
        (given if isinstance(given, str) else "")
        .strip()
        .lower()
        .replace(" ", "_")
        .replace("-", "_")
    )
    if verdict not in NOISE_TYPES or verdict == "unparsed":
        raise UnreadableReply(f"unknown verdict {_short(str(given))!r}")
    steps = whole.get("path") or []
    if not isinstance(steps, list):
        raise UnreadableReply("its path is no list")
    return Path(
        steps=tuple(_step(step) for step in steps),
        verdict=next(name for name in NOISE_TYPES if name == verdict),
        explanation=_one_line(whole.get("explanation")),
        kind=kind,
    )


def _step(value: Any) -> int | Triple:
    if isinstance(value, bool):
        raise UnreadableReply("a step of its path is neither a number nor a triple")
    if isinstance(value, int):
        return value
    if isinstance(value, str) and re.fullmatch(r"\s*[Tt#]?\d{1,6}\s*", value):
        return int(value.strip().lstrip("Tt#"))
    triple = _triple(value) if isinstance(value, dict | list) else None
    if triple is None:
        raise UnreadableReply("a step of its path is neither a number nor a triple")
    return triple


def _whole(text: str) -> Any:
    """The reply as one JSON value, without a code fence around it, or None."""
    fenced = _FENCE.match(text)
    try:
        return json.loads(fenced[1] if fenced else text, strict=False)
    except (ValueError, RecursionError):
        return None


def _listed(whole: Any, key: str) -> list[Any] | None:
    """The list that was asked for: under its key, or bare."""
    value = whole.get(key) if isinstance(whole, Mapping) else whole
    return value if isinstance(value, list) else None


def _pieces(text: str) -> Iterator[Any]:
    """Innermost objects and lists of a text, as far as they are JSON."""
    spans = sorted(
        (match.start(), match[0]) for form in (_OBJECT, _LIST) for match in form.finditer(text)
    )
    for _, piece in spans:
        try:
            yield json.loads(piece, strict=False)
        except ValueError:
            continue


_SPOKEN = re.compile(
    rf"\{{(?:[^{{}}\[\]\"]++|{_STRING}|\[(?:[^{{}}\[\]\"]++|{_STRING}|"
    rf"[\[{{](?:[^{{}}\[\]\"]++|{_STRING})*+[\]}}])*+\])*+\}}",
    re.DOTALL,
)
"""An object whose values may be lists (of lists or objects): what a path is amid prose."""


def _objects_amid(text: str) -> Iterator[dict[str, Any]]:
    for match in _SPOKEN.finditer(text):
        try:
            value = json.loads(match[0], strict=False)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


def _is_triple_like(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) in (3, 4) and all(isinstance(v, str) for v in value[:3])
    return isinstance(value, dict) and any(key in value for key in _HEADS)


def _triple(value: Any) -> Triple | None:
    """A triple in any of the forms models use, or None for what is none."""
    sentence: Any = None
    if isinstance(value, Mapping):
        parts = [
            next((value[key] for key in keys if key in value), None)
            for keys in (_HEADS, _RELATIONS, _TAILS)
        ]
        sentence = value.get("sentence")
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) in (3, 4):
        parts = list(value[:3])
        sentence = value[3] if len(value) > 3 else None
    else:
        return None
    head, relation, tail = map(_name, parts)
    if not (head and relation and tail):
        return None
    number = sentence if isinstance(sentence, int) and not isinstance(sentence, bool) else None
    return Triple(head, relation, tail, None, number)


def _name(value: Any) -> str:
    """A name as one line; empty for what can be none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    name = _one_line(value).replace("_", " ").strip()
    return name if len(name) <= LONGEST_NAME else ""


def _one_line(value: Any) -> str:
    text = "" if value is None else str(value)
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


def _short(text: str) -> str:
    return _one_line(text)[:60]


def _description(text: str) -> str:
    """What an unreadable reply is, for the row's explanation."""
    if not text.strip():
        return "it is empty"
    if "{" in text or "[" in text:
        return "its JSON is broken"
    return "it holds no JSON"
