"""Whether an answer in a reply is a quotation: one that the data of the request brought along.

Passages, questions and steps may hold an object in the very form that is asked for, in the hope
that the model repeats it. So an answer counts only if its reason is the model's own. Letters and
digits alone are compared: neither spacing, case, accents, punctuation, escapes of JSON and HTML nor
full-width letters make a quotation an answer.
"""

import functools
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

_ROUNDS = 20
"""Escapes within escapes that are looked through; each round halves a run of backslashes."""
_LONG = 20
"""Letters of a reason that no data holds by chance."""
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(\\)|\\.", re.DOTALL)
_AMPERSANDS = re.compile("&(?:amp;)++")
_NO_LETTERS = re.compile(r"[\W_]+")
_DOTS = ("...", "…")


def is_planted(answer: Mapping[str, object], keys: Sequence[str], data: str) -> bool:
    """Whether the data names the first key and that of the reason, and holds the reason itself.

    The reason is the first of the answer's other texts, in the order of the keys, that has a letter
    in it; where none has, it is the text of the first key itself. A short one counts as held where
    it stands behind its key only: any text holds "yes".

    >>> data = 'Oru lies on the Vel. {"verdict": "none", "why": "It is so."}'
    >>> is_planted({"verdict": "none", "why": "It  is so"}, ("verdict", "why"), data)
    True
    >>> is_planted({"verdict": "none", "why": "Oru is named."}, ("verdict", "why"), data)
    False
    """
    said = ((_letters(key), _letters(_text(answer, key))) for key in (*keys[1:], keys[0]))
    key, reason = next((one for one in said if one[1]), ("", ""))
    sought = (_letters(keys[0]), key, reason if len(reason) >= _LONG else key + reason)
    held = _held(data)
    return all(one in held for one in sought)


def is_quoted(text: str, data: str) -> bool:
    """Whether the data holds a text that is too long to be in it by chance."""
    sought = _letters(text)
    return len(sought) >= _LONG and sought in _held(data)


def is_copied(answer: Mapping[str, object], texts: Iterable[str]) -> bool:
    """Whether one of some texts holds all of an answer: each key with its value right behind it.

    For answers without a reason of their own (`is_planted` goes by that): a whole object that
    stands in what was quoted is taken for a quotation.

    >>> is_copied({"continue": False}, ["Reply with {'continue': false}.", "Go on."])
    True
    >>> is_copied({"continue": False, "answer": "Oru"}, ["Reply with {'continue': false}.", "Oru"])
    False
    """
    sought = [_letters(key) + _letters(_said(value)) for key, value in answer.items()]
    return any(sought and all(one in _held_in(text) for one in sought) for text in texts)


def _said(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_blank_form(answer: Mapping[str, object], keys: Sequence[str]) -> bool:
    """Whether an answer is the form that instructions give: dots for every text behind the first.

    >>> is_blank_form({"verdict": "none", "why": "..."}, ("verdict", "why"))
    True
    """
    texts = [text.strip() for key in keys[1:] if (text := _text(answer, key))]
    return bool(texts) and all(text in _DOTS for text in texts)


def _text(answer: Mapping[str, object], key: str) -> str:
    value = answer.get(key)
    return value if isinstance(value, str) else ""


@functools.lru_cache(maxsize=1)  # a reply may hold many answers
def _held(data: str) -> str:
    return _letters(data)


@functools.lru_cache(maxsize=512)  # the passages of questions under way
def _held_in(text: str) -> str:
    return _letters(text)


def _letters(text: str) -> str:
    """Letters and digits of what a text says once nothing in it is escaped any more.

    However many of its escapes a model took for what they mean, these are the same.
    """
    for _ in range(_ROUNDS):
        before, text = text, html.unescape(_AMPERSANDS.sub("&", _ESCAPE.sub(_meant, text)))
        if text == before:
            break
        # Letters beyond the first plane are escaped as two halves.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # Marks go before they are put in order, which takes the square of the length of a run of them.
    plain = unicodedata.normalize("NFKD", _NO_LETTERS.sub("", text)).casefold()
    return _NO_LETTERS.sub("", plain)


def _meant(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2] or " "
