"""One reader of the JSON in a model's reply: which objects and lists stand in it, and which do not.

Around JSON anything may stand: prose, a code fence, a thought (`store.thoughts`: what stands in it is no reply), an
object or list around what was asked for, a comma that trails. A value is taken whole or not at all; of one that is
malformed or breaks off, what is complete inside it stands for itself. An object that gives two values for one key,
however the key is spelled, is malformed. `Reply.answers` refuses what only guessing could read: an answer that breaks
off, one that holds another, a key of it that stands outside; and it passes over answers that are merely quoted
(`is_planted`): passages, questions and steps may hold an object in the very form that is asked for, in the hope that
the model repeats it, so an answer counts only if its reason is the model's own. Letters and digits alone are compared:
neither spacing, case, accents, punctuation, escapes of JSON and HTML nor full-width letters make a quotation an
answer. A verdict may also be taken back in the words around it (`Reply.takes_back`).

A reply is data: nothing in it is evaluated, the time to read it grows with its length only, nesting
beyond `DEEPEST` is malformed, and a reply beyond `LONGEST` holds nothing.
"""

import functools
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.store.thoughts import split_thought

DEEPEST = 60
"""Objects and lists within each other; what goes deeper is a model that repeats itself."""
LONGEST = 256 * 1024
"""Characters of a reply that is looked into: 25 times what fits into 2,048 tokens."""

_DECODER = json.JSONDecoder(strict=False)  # models leave newlines unescaped
# Possessive throughout, so that no quote is looked at twice.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_ATOM = re.compile(rf"{_STRING}|-?+[0-9][-+.0-9eE]*+|true|false|null|NaN|-?Infinity", re.DOTALL)
_SPACE = re.compile(r"\s*+")
_OPENS = re.compile(rf'\{{(?=\s*+(?:\}}|{_STRING}\s*+:))|\[(?=\s*+["{{\[\]\-0-9tfnNI])', re.DOTALL)
_FENCE = re.compile(r"```\w*")
_FENCED = re.compile(r"```\w*\s(.*)```", re.DOTALL)
_WRITTEN_KEY = re.compile(r'(?<!\\)"([^"\\\r\n]{1,40}+)"\s*+:')
_JOINERS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")
_MOST_REMARKS = 40
"""Words behind a verdict; more are a discussion of it, whose end nobody foresees."""
_SENTENCE_END = re.compile(r"[.!?\n]")
_SUPPOSES = re.compile(
    r"\b(?:if|unless|suppos(?:e|ing)|imagine|assuming|instead of|rather than|not|would (?:say|write|reply|have))\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:wait|but|however|actually|instead|scratch|retract|withdraw|disregard|ignore|reconsider|correction|mistaken?|"
    r"sorry|on second thought|no(?=\s*[,.:;!-]))\b",
    re.IGNORECASE,
)
_COURTESY = re.compile(
    r"i hope (?:this|that|it) helps|let me know if [^.!?\n]{0,80}|th(?:is|at) is my (?:final )?verdict|done|"
    r"thanks?(?: you)?|end(?: of (?:verdict|reply|json))?",
    re.IGNORECASE,
)


MOST_DIFFERENT = 20
"""Answers of one reply that are compared with the data of its request."""
TOO_LONG = f"the reply is longer than {LONGEST:,} characters"


class ReplyError(ValueError):
    """A reply without the one answer that was asked for; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What began as an object or list: why it is none, and the keys that were read till there."""

    reason: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outermost objects and lists of a reply, in order, and those that are malformed.

    ``is_clean``: it is one value of strict JSON, a fence aside. ``around``: the text before, between and behind the
    values, what is malformed and no thought included. ``is_too_long``: nothing was looked for in it.
    """

    values: tuple[Any, ...]
    broken: tuple[Broken, ...]
    is_clean: bool
    around: tuple[str, ...]
    is_too_long: bool = False

    def outermost(self, is_wanted: Callable[[Any], bool]) -> list[Any]:
        """Objects and lists that are wanted, wherever they stand but within another such one."""
        return [found for value in self.values for found in _outermost(value, is_wanted)]

    def takes_back(self, accepts: bool, others: Iterable[str] = ()) -> bool:
        """Whether the words around a verdict make it conditional or take it back.

        A sentence that supposes something runs into it ("If it were right I would say {...}"), or what stands behind
        it turns round ("No wait"), names one of the ``others`` that could have been said, or is long. Behind a verdict
        that ``accepts``, no words but those of courtesy may stand: to ask for the step anew is the cheaper mistake.

        >>> read_reply('{"verdict": "yes"} I hope this helps!').takes_back(accepts=True)
        False
        >>> read_reply('I would say {"verdict": "yes"}, but it is wrong.').takes_back(accepts=True)
        True
        """
        *before, behind = (_FENCE.sub("", text).strip() for text in self.around)
        if any(_SUPPOSES.search(_SENTENCE_END.split(text)[-1]) for text in before):
            return True
        if len(behind.split()) > _MOST_REMARKS or (accepts and re.search(r"[^\W\d_]", _COURTESY.sub("", behind))):
            return True
        named = any(re.search(rf"\b{re.escape(name)}\b", behind, re.IGNORECASE) for name in others)
        return named or bool(_TAKES_BACK.search(behind))

    def answers(self, *keys: str, data: str = "") -> list[dict[str, Any]]:
        """The objects that hold the first of some keys, those keys spelled as they are here.

        ``data`` is what the request quoted: answers that stand in it, and forms that nobody filled in, are passed
        over. Raises `ReplyError` for a reply that is too long, where a key stands in a malformed object, where the
        first is given once more (outside of an answer, or within one, in a field of another name), where all answers
        are passed over, or more than `MOST_DIFFERENT` differ.

        >>> read_reply('So: {"Verdict": "none", "path": [1],}').answers("verdict")
        [{'verdict': 'none', 'path': [1]}]
        """
        if self.is_too_long:
            raise ReplyError(TOO_LONG)
        names = {plain_key(key): key for key in keys}
        first = plain_key(keys[0])
        for broken in self.broken:
            if any(plain_key(key) in names for key in broken.keys):
                raise ReplyError(broken.reason)

        def holds(value: Any) -> bool:
            return isinstance(value, dict) and any(plain_key(key) == first for key in value)

        found = self.outermost(holds)
        others = (one[key] for one in found for key in one if plain_key(key) not in names)
        within = any(True for other in others for _ in _outermost(other, holds))
        loose = (key for text in self.around for key in _WRITTEN_KEY.findall(text))
        if within or (found and any(plain_key(key) == first for key in loose)):
            raise ReplyError(f"{keys[0]} is given outside of the answer, too")
        spelled = [{names.get(plain_key(key), key): one[key] for key in one} for one in found]
        return _own(spelled, keys, data)


def plain_key(key: str) -> str:
    """What is left of a key when its spelling is set aside: case, joiners, markdown.

    >>> plain_key("**Error Type**") == plain_key("error_type") == plain_key("errorType")
    True
    """
    return _JOINERS.sub("", key.strip(" \t\r\n*`'\"#.:")).casefold()


def read_reply(text: str) -> Reply:
    """All that stands in a reply, nothing if it is too long; raises nothing.

    >>> read_reply('Here: {"a": [1]} and [2, {"b": 3}, {"c"').values
    ({'a': [1]}, {'b': 3})
    """
    if len(text) > LONGEST:
        return Reply((), (), is_clean=False, around=(), is_too_long=True)
    text = split_thought(text).text
    reader = _Reader(text)
    reader.read()
    starts = [start for start, _, _ in reader.found]
    ends = [end for _, end, _ in reader.found]
    gaps = zip([0, *ends], [*starts, len(text)], strict=True)
    return Reply(
        tuple(value for _, _, value in reader.found),
        tuple(reader.broken),
        reader.is_strict and len(starts) == 1 and _is_alone(text, starts[0], ends[0]),
        tuple(text[start:end] for start, end in gaps),
    )


def without_fence(text: str) -> str:
    """What stands in a Markdown fence that is all of a text; any other text as it is.

    >>> without_fence("```json\\n{}```")
    '{}'
    """
    fenced = _FENCED.fullmatch(text.strip())
    return fenced[1] if fenced else text


def _is_alone(text: str, start: int, end: int) -> bool:
    """Whether nothing but a fence stands around a span; one that is left open is one, too."""
    before, after = text[:start].strip(), text[end:].strip()
    return (not before and not after) or bool(_FENCE.fullmatch(before) and after in ("", "```"))


def _own(found: list[dict[str, Any]], keys: tuple[str, ...], data: str) -> list[dict[str, Any]]:
    """The answers that the model gives itself."""
    filled_in = [one for one in found if not is_blank_form(one, keys)]
    if found and not filled_in:
        raise ReplyError("the answer is the form alone, not filled in")
    different: list[dict[str, Any]] = []
    for one in filled_in:
        if one not in different:
            different.append(one)
        if len(different) > MOST_DIFFERENT:
            raise ReplyError(f"the answer is given in more than {MOST_DIFFERENT} ways")
    planted = [one for one in different if is_planted(one, keys, data)]
    if planted and planted == different:
        raise ReplyError("the answer is one that the data brought along, quoted")
    return [one for one in filled_in if one not in planted]


def _outermost(value: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    if not isinstance(value, dict | list):
        return
    if is_wanted(value):
        yield value
        return
    for inner in value.values() if isinstance(value, dict) else value:
        yield from _outermost(inner, is_wanted)


class _Broke(Exception):
    """A value is malformed ``at`` an offset, from which reading goes on."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at, self.keys = at, list[str]()


class _Reader:
    """Reads a text from left to right, once: what breaks off is not tried again from within."""

    def __init__(self, text: str) -> None:
        self.text, self.is_strict = text, True
        self.found: list[tuple[int, int, Any]] = []
        self.broken: list[Broken] = []

    def read(self) -> None:
        at = 0
        while match := _OPENS.search(self.text, at):
            try:
                _, at = self._container(match.start(), 1)
            except _Broke as error:
                at = error.at
                self.broken.append(Broken(str(error), tuple(error.keys)))

    def _container(self, start: int, depth: int) -> tuple[Any, int]:
        if depth > DEEPEST:
            raise _Broke(start, "the JSON is nested too deeply")
        read = self._object if self.text[start] == "{" else self._list
        value, end = read(start + 1, depth)
        while self.found and self.found[-1][0] > start:
            self.found.pop()
        self.found.append((start, end, value))
        return value, end

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        spelled: dict[str, str] = {}
        key = doubled = ""
        try:
            while not self.text.startswith("}", at := self._skip(at)):
                key, at = self._key(at, key)
                name = spelled.setdefault(plain_key(key), key)
                value, at = self._value(at, depth, key)
                if found.setdefault(name, value) != value:
                    doubled = doubled or name
                at = self._comma(at, "}", key)
            if doubled:
                raise _Broke(at + 1, f"two values for {_shown(doubled)} in one object")
        except _Broke as error:
            error.keys += spelled.values()
            raise
        return found, at + 1

    def _key(self, at: int, before: str) -> tuple[str, int]:
        """A key, behind another, and its colon."""
        reason = _malformed(before)
        if not self.text.startswith('"', at):
            raise _Broke(at, reason)
        key, at = self._atom(at, reason)
        at = self._skip(at)
        if not self.text.startswith(":", at):
            raise _Broke(at, reason)
        return key, self._skip(at + 1)

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        while not self.text.startswith("]", at := self._skip(at)):
            value, at = self._value(at, depth, "")
            found.append(value)
            at = self._comma(at, "]", "")
        return found, at + 1

    def _value(self, at: int, depth: int, key: str) -> tuple[Any, int]:
        if self.text.startswith(("{", "["), at):
            return self._container(at, depth + 1)
        what = f"{_shown(key)} is no JSON string" if key else "a list holds no JSON"
        return self._atom(at, f"{what}, or the reply breaks off in it")

    def _atom(self, at: int, reason: str) -> tuple[Any, int]:
        """A string, number, ``true``, ``false`` or ``null``."""
        match = _ATOM.match(self.text, at)
        if match is None:
            raise _Broke(at, reason)
        try:
            return _DECODER.decode(match[0]), match.end()
        except ValueError as error:
            raise _Broke(match.end(), f"not JSON: {match[0][:40]!r} ({error})") from None

    def _comma(self, at: int, close: str, key: str) -> int:
        """Past a comma, or at the close."""
        at = self._skip(at)
        if not self.text.startswith(",", at):
            if not self.text.startswith(close, at):
                raise _Broke(at, _malformed(key))
            return at
        at = self._skip(at + 1)
        if self.text.startswith(close, at):
            self.is_strict = False
        return at

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at


def _shown(key: str) -> str:
    """A key as a message can hold it."""
    return key[:40] if key.isidentifier() else repr(key[:40])


def _malformed(key: str) -> str:
    after = f" after {_shown(key)}" if key else ""
    return f"the JSON object is malformed or breaks off{after}"


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
