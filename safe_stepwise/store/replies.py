"""Finds the JSON in a model's reply, and refuses ambiguous answers; all replies are read here.

- A *value* is a JSON object or list in the reply: in prose, in a code fence, or within another value. A thought
  (`store.thoughts`) has no values. A trailing comma is allowed.
- A *malformed* value breaks off, repeats a key with another value, or is nested beyond `MAX_DEPTH`. It is not read,
  but complete values inside it are.
- An *answer* is an object with the key that the caller asks for (`Reply.answers`). An answer that could only be
  guessed is refused: it is malformed, it contains another answer, or its key also occurs outside of it.
- A *planted* answer (`is_planted`) is quoted from the request: passages and steps may hold an object in the requested
  form, so that the model repeats it. An answer counts only if its reason is the model's own. Only the letters and
  digits of texts are compared, so changes of spacing, case, accents, escapes or punctuation do not hide a quotation.
- A verdict is *taken back* (`Reply.takes_back`) if the words around it deny it or make it conditional.

Nothing in a reply is evaluated. The time to read a reply grows linearly with its length.
"""

import functools
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.store.packaged import read_patterns
from safe_stepwise.store.thoughts import split_thought

MAX_DEPTH = 60
"""Maximum levels of objects and lists within each other; a model that goes deeper repeats itself."""
MAX_CHARACTERS = 256 * 1024
"""Maximum characters of a reply, 25 times what fits into 2,048 tokens; a longer reply is not read."""

_DECODER = json.JSONDecoder(strict=False)  # models leave newlines unescaped
# All quantifiers are possessive, so that no quote is read twice.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_ATOM = re.compile(rf"{_STRING}|-?+[0-9][-+.0-9eE]*+|true|false|null|NaN|-?Infinity", re.DOTALL)
_SPACE = re.compile(r"\s*+")
_VALUE_START = re.compile(rf'\{{(?=\s*+(?:\}}|{_STRING}\s*+:))|\[(?=\s*+["{{\[\]\-0-9tfnNI])', re.DOTALL)
_FENCE = re.compile(r"(?:```|~~~)\w*")
_FENCED = re.compile(r"```\w*\s(.*)```", re.DOTALL)
_WRITTEN_KEY = re.compile(r'(?<!\\)"([^"\\\r\n]{1,40}+)"\s*+:')
_WRAPPER_KEYS = frozenset(
    ("feedback", "verdict", "answer", "result", "output", "response", "reply", "judgement", "judgment")
)
"""Keys (`plain_key`) that only wrap an object, and say nothing about its content."""
_JOINERS = re.compile(r"[\s_\-\u2010-\u2015\u2212]+")
_MAX_REMARK_WORDS = 40
"""Maximum words after a verdict; more words discuss it, and may end in another verdict."""
_SENTENCE_END = re.compile(r"[.!?\n]")
_PATTERNS = read_patterns(Path(__file__).with_suffix(".yaml"))
_CONDITIONAL = re.compile(_PATTERNS["conditional"], re.IGNORECASE)
_DISOWNING = re.compile(_PATTERNS["disowning"], re.IGNORECASE)
"""Words before an accepting verdict, or marks around it, by which it may be another's or an earlier draft."""
_TAKING_BACK = re.compile(_PATTERNS["taking_back"], re.IGNORECASE)
_COURTESY = re.compile(_PATTERNS["courtesy"], re.IGNORECASE)
_ONLY_MARKS = re.compile(r"[\s\u200b.,:;!?*_`#$()\[\]{}\"'🙂👍✅-]*")

MAX_ANSWERS = 20
"""Maximum number of different answers in a reply, as each is compared with the data of the request."""
TOO_LONG = f"the reply is longer than {MAX_CHARACTERS:,} characters"


class ReplyError(ValueError):
    """A reply lacks the one answer that was requested; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A malformed object or list: what is wrong, and the keys that were read before the fault."""

    reason: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outermost ``values`` of a reply (objects and lists), in order, and its malformed values (``broken``).

    ``is_clean``: the reply is one value of strict JSON, perhaps in a fence. ``around``: the texts before, between and
    after the values, with malformed values and without thoughts. ``is_too_long``: the reply was not read.
    """

    values: tuple[Any, ...]
    broken: tuple[Broken, ...]
    is_clean: bool
    around: tuple[str, ...]
    is_too_long: bool = False

    def outermost(self, matches: Callable[[Any], bool]) -> list[Any]:
        """List the objects and lists in the values that match, except those inside another match."""
        return [match for value in self.values for match in _find_outermost(value, matches)]

    def has_outermost(self, key: str) -> bool:
        """Whether an outermost object, or an item of an outermost list, has ``key`` in any spelling.

        An object whose only field just wraps its content, as ``{"feedback": {...}}``, counts as its content.
        """
        items = (item for value in self.values for item in (value if isinstance(value, list) else [value]))
        objects = (_unwrap(item) for item in items if isinstance(item, dict))
        return any(plain_key(name) == plain_key(key) for content in objects for name in content)

    def takes_back(self, accepts: bool, alternatives: Iterable[str] = ()) -> bool:
        """Whether the words around a verdict make it conditional or take it back.

        They do if a conditional sentence leads to it ("If it were right I would say {...}"), or if the text after it
        reverses it ("No wait"), names one of the ``alternatives`` to the verdict, or is long. It costs less to repeat
        a step than to accept a wrong one: before a verdict that ``accepts`` a step nothing may disown it or name
        an alternative, and only courtesies may follow it.

        >>> read_reply('{"verdict": "yes"} I hope this helps!').takes_back(accepts=True)
        False
        >>> read_reply('I would say {"verdict": "yes"}, but it is wrong.').takes_back(accepts=True)
        True
        """
        *before, after_verdict = (_FENCE.sub("", text).strip() for text in self.around)
        if any(_CONDITIONAL.search(_SENTENCE_END.split(text)[-1]) for text in before):
            return True
        cases = [(name, 0 if name.isupper() else re.IGNORECASE) for name in alternatives]
        names = [re.compile(rf"\b{re.escape(name)}\b", flag) for name, flag in cases]
        if accepts and any(rule.search(text) for rule in (_DISOWNING, *names) for text in before):
            return True
        if accepts and not _ONLY_MARKS.fullmatch(_COURTESY.sub("", after_verdict)):
            return True
        is_long = len(after_verdict.split()) > _MAX_REMARK_WORDS
        return is_long or any(rule.search(after_verdict) for rule in (_TAKING_BACK, *names))

    def answers(self, *keys: str, data: str = "") -> list[dict[str, Any]]:
        """Return the reply's answers: the objects with the first of ``keys``, these keys spelled as in ``keys``.

        ``data`` is the text that the request quoted: planted answers and blank forms are left out.
        Raises `ReplyError` for a reply that is too long, a key in a malformed object, the first key outside of an
        answer or in another field of one, more than `MAX_ANSWERS` different answers, and if all are left out.

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

        def is_answer(value: Any) -> bool:
            return isinstance(value, dict) and any(plain_key(key) == first for key in value)

        answers = self.outermost(is_answer)
        fields = (answer[key] for answer in answers for key in answer if plain_key(key) not in names)
        is_nested = any(True for value in fields for _ in _find_outermost(value, is_answer))
        keys_outside = (key for text in self.around for key in _WRITTEN_KEY.findall(text))
        if is_nested or (answers and any(plain_key(key) == first for key in keys_outside)):
            raise ReplyError(f"{keys[0]} is given outside of the answer, too")
        spelled = [{names.get(plain_key(key), key): answer[key] for key in answer} for answer in answers]
        return _without_quotations(spelled, keys, data)


def _unwrap(value: dict[str, Any]) -> dict[str, Any]:
    content = next(iter(value.values()), None)
    if isinstance(content, dict) and len(value) == 1 and plain_key(next(iter(value))) in _WRAPPER_KEYS:
        return content
    return value


def plain_key(key: str) -> str:
    """Normalise a key, so that its spellings are equal: without case, spaces, hyphens or Markdown.

    >>> plain_key("**Error Type**") == plain_key("error_type") == plain_key("errorType")
    True
    """
    return _JOINERS.sub("", key.strip(" \t\r\n*`'\"#.:")).casefold()


def read_reply(text: str) -> Reply:
    """Read all JSON values in a reply; one of more than `MAX_CHARACTERS` is not read. Raises nothing.

    >>> read_reply('Here: {"a": [1]} and [2, {"b": 3}, {"c"').values
    ({'a': [1]}, {'b': 3})
    """
    if len(text) > MAX_CHARACTERS:
        return Reply((), (), is_clean=False, around=(), is_too_long=True)
    text = split_thought(text).text
    reader = _Reader(text)
    reader.read()
    starts = [start for start, _, _ in reader.values]
    ends = [end for _, end, _ in reader.values]
    gaps = zip([0, *ends], [*starts, len(text)], strict=True)
    return Reply(
        tuple(value for _, _, value in reader.values),
        tuple(reader.broken),
        reader.is_strict and len(starts) == 1 and _is_whole_reply(text, starts[0], ends[0]),
        tuple(text[start:end] for start, end in gaps),
    )


def without_fence(text: str) -> str:
    """Return the content of the Markdown fence that a text consists of; return any other text unchanged.

    >>> without_fence("```json\\n{}```")
    '{}'
    """
    fenced = _FENCED.fullmatch(text.strip())
    return fenced[1] if fenced else text


def _is_whole_reply(text: str, start: int, end: int) -> bool:
    before, after = text[:start].strip(), text[end:].strip()
    return (not before and not after) or bool(_FENCE.fullmatch(before) and after in ("", "```"))


def _without_quotations(answers: list[dict[str, Any]], keys: tuple[str, ...], data: str) -> list[dict[str, Any]]:
    """Return the answers that are the model's own: filled in, and not quoted from the data."""
    filled_in = [answer for answer in answers if not is_blank_form(answer, keys)]
    if answers and not filled_in:
        raise ReplyError("the answer is the form alone, not filled in")
    different: list[dict[str, Any]] = []
    for answer in filled_in:
        if answer not in different:
            different.append(answer)
        if len(different) > MAX_ANSWERS:
            raise ReplyError(f"the answer is given in more than {MAX_ANSWERS} ways")
    planted = [answer for answer in different if is_planted(answer, keys, data)]
    if planted and planted == different:
        raise ReplyError("the answer is copied from the texts that the prompt quotes")
    return [answer for answer in filled_in if answer not in planted]


def _find_outermost(value: Any, matches: Callable[[Any], bool]) -> Iterator[Any]:
    if isinstance(value, dict | list):
        if matches(value):
            yield value
        else:
            for inner in value.values() if isinstance(value, dict) else value:
                yield from _find_outermost(inner, matches)


class _Malformed(Exception):
    """A value is malformed; the reader continues at ``offset``."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset, self.keys = offset, list[str]()


class _Reader:
    """Reads a text once, from left to right; ``values`` has the outermost values with their start and end."""

    def __init__(self, text: str) -> None:
        self.text, self.is_strict = text, True
        self.values: list[tuple[int, int, Any]] = []
        self.broken: list[Broken] = []

    def read(self) -> None:
        offset = 0
        while match := _VALUE_START.search(self.text, offset):
            try:
                _, offset = self._read_container(match.start(), 1)
            except _Malformed as error:
                offset = error.offset
                self.broken.append(Broken(str(error), tuple(error.keys)))

    def _read_container(self, start: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise _Malformed(start, "the JSON is nested too deeply")
        read = self._read_object if self.text[start] == "{" else self._read_list
        value, end = read(start + 1, depth)
        while self.values and self.values[-1][0] > start:
            self.values.pop()
        self.values.append((start, end, value))
        return value, end

    def _read_object(self, offset: int, depth: int) -> tuple[dict[str, Any], int]:
        content: dict[str, Any] = {}
        spelled: dict[str, str] = {}
        key = repeated_key = ""
        try:
            while not self.text.startswith("}", offset := self._skip_space(offset)):
                key, offset = self._read_key(offset, key)
                name = spelled.setdefault(plain_key(key), key)
                value, offset = self._read_value(offset, depth, key)
                if content.setdefault(name, value) != value:
                    repeated_key = repeated_key or name
                offset = self._skip_comma(offset, "}", key)
            if repeated_key:
                raise _Malformed(offset + 1, f"two values for {_quote(repeated_key)} in one object")
        except _Malformed as error:
            error.keys += spelled.values()
            raise
        return content, offset + 1

    def _read_key(self, offset: int, previous_key: str) -> tuple[str, int]:
        reason = _word_malformed(previous_key)
        if not self.text.startswith('"', offset):
            raise _Malformed(offset, reason)
        key, offset = self._atom(offset, reason)
        offset = self._skip_space(offset)
        if not self.text.startswith(":", offset):
            raise _Malformed(offset, reason)
        return key, self._skip_space(offset + 1)

    def _read_list(self, offset: int, depth: int) -> tuple[list[Any], int]:
        elements: list[Any] = []
        while not self.text.startswith("]", offset := self._skip_space(offset)):
            value, offset = self._read_value(offset, depth, "")
            elements.append(value)
            offset = self._skip_comma(offset, "]", "")
        return elements, offset + 1

    def _read_value(self, offset: int, depth: int, key: str) -> tuple[Any, int]:
        if self.text.startswith(("{", "["), offset):
            return self._read_container(offset, depth + 1)
        fault = f"{_quote(key)} is no JSON string" if key else "a list holds no JSON"
        return self._atom(offset, f"{fault}, or the reply breaks off in it")

    def _atom(self, offset: int, reason: str) -> tuple[Any, int]:
        match = _ATOM.match(self.text, offset)
        if match is None:
            raise _Malformed(offset, reason)
        try:
            return _DECODER.decode(match[0]), match.end()
        except ValueError as error:
            raise _Malformed(match.end(), f"not JSON: {match[0][:40]!r} ({error})") from None

    def _skip_comma(self, offset: int, close: str, key: str) -> int:
        """Return the offset behind a comma, or that of the closing bracket."""
        offset = self._skip_space(offset)
        if not self.text.startswith(",", offset):
            if not self.text.startswith(close, offset):
                raise _Malformed(offset, _word_malformed(key))
            return offset
        offset = self._skip_space(offset + 1)
        if self.text.startswith(close, offset):
            self.is_strict = False
        return offset

    def _skip_space(self, offset: int) -> int:
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset


def _quote(key: str) -> str:
    return key[:40] if key.isidentifier() else repr(key[:40])


def _word_malformed(key: str) -> str:
    after = f" after {_quote(key)}" if key else ""
    return f"the JSON object is malformed or breaks off{after}"


_MAX_UNESCAPES = 20
"""Maximum number of times that escapes are undone; each round halves a run of backslashes."""
_MIN_QUOTED_LETTERS = 20
"""Minimum letters of a text that data does not contain by chance."""
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(\\)|\\.", re.DOTALL)
_AMPERSANDS = re.compile("&(?:amp;)++")
_NO_LETTERS = re.compile(r"[\W_]+")
_ELLIPSES = ("...", "…")
_PLACEHOLDER = re.compile(r"<[^<>]{1,80}>")


def is_planted(answer: Mapping[str, object], keys: Sequence[str], data: str) -> bool:
    """Whether an answer is quoted: the data has its first key, the key of its reason, and the reason's text.

    The reason is the first text with a letter under a key after the first, in the order of the keys; if there is
    none, the text under the first key. A short reason counts only right after its key, as any text may hold "yes".

    >>> data = 'Oru lies on the Vel. {"verdict": "none", "why": "It is so."}'
    >>> is_planted({"verdict": "none", "why": "It  is so"}, ("verdict", "why"), data)
    True
    """
    texts = ((_letters(key), _letters(_text_of(answer, key))) for key in (*keys[1:], keys[0]))
    key, reason = next((text for text in texts if text[1]), ("", ""))
    quotations = (_letters(keys[0]), key, reason if len(reason) >= _MIN_QUOTED_LETTERS else key + reason)
    return all(quotation in _data_letters(data) for quotation in quotations)


def is_quoted(text: str, data: str) -> bool:
    """Whether the data contains a text that is too long (`_MIN_QUOTED_LETTERS`) to be there by chance."""
    letters = _letters(text)
    return len(letters) >= _MIN_QUOTED_LETTERS and letters in _data_letters(data)


def is_copied(answer: Mapping[str, object], texts: Iterable[str]) -> bool:
    """Whether a text has each key of an answer right before its value; for answers without a reason (`is_planted`).

    >>> is_copied({"continue": False}, ["Reply with {'continue': false}.", "Go on."])
    True
    """
    quotations = [
        _letters(key) + _letters(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in answer.items()
    ]
    return any(quotations and all(quotation in _page_letters(text) for quotation in quotations) for text in texts)


def is_blank_form(answer: Mapping[str, object], keys: Sequence[str]) -> bool:
    """Whether an answer is a blank form, as in instructions: all texts after the first key are dots or ``<words>``.

    >>> is_blank_form({"verdict": "none", "why": "..."}, ("verdict", "why"))
    True
    """
    texts = [text.strip() for key in keys[1:] if (text := _text_of(answer, key))]
    return bool(texts) and all(text in _ELLIPSES or _PLACEHOLDER.fullmatch(text) for text in texts)


def _text_of(answer: Mapping[str, object], key: str) -> str:
    value = answer.get(key)
    return value if isinstance(value, str) else ""


def _letters(text: str) -> str:
    """Return a text's letters and digits without escapes, however many of them a model has already undone."""
    for _ in range(_MAX_UNESCAPES):
        before, text = text, html.unescape(_AMPERSANDS.sub("&", _ESCAPE.sub(_unescape, text)))
        if text == before:
            break
        # Letters beyond the first plane are escaped as two halves.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # Marks are removed before NFKD orders them, which takes time quadratic in the length of a run of them.
    plain = unicodedata.normalize("NFKD", _NO_LETTERS.sub("", text)).casefold()
    return _NO_LETTERS.sub("", plain)


def _unescape(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else escape[2] or " "


_data_letters = functools.lru_cache(maxsize=1)(_letters)  # a reply may hold many answers
_page_letters = functools.lru_cache(maxsize=512)(_letters)  # the passages of running questions
