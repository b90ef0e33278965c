"""Lists of questions that others call unverifiable: bare texts, as the SAFE authors share theirs.

A list is a text file: a question a line, as it stands; or every line a JSON string; or the whole
one JSON array of strings. A row is named by its question's exact text; where no entry is that, by
its `plain` form, as editors trim blanks and recompose accents. A text names every row that has it.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import MOST_JSON, content_of, parse_json

Match = Literal["exact", "plain"]


@dataclass(frozen=True, slots=True)
class QuestionList:
    """A list as it was read: ``texts`` in their order, those that are there twice too.

    ``name`` is the file's, without its folder; ``sha256`` (64 hex digits) that of its content.
    """

    name: str
    sha256: str
    texts: tuple[str, ...]


class Index:
    """Which questions some lists name."""

    def __init__(self, lists: Iterable[QuestionList]) -> None:
        self._texts = frozenset(text for one in lists for text in one.texts)
        self._plain = frozenset(map(plain, self._texts))

    def find(self, question: str) -> Match | None:
        """How a question is named; None if it is not.

        >>> index = Index([QuestionList("a.txt", "", ("Who  was Ana?",))])
        >>> index.find("Who  was Ana?"), index.find("Who was Ana? "), index.find("who was ana?")
        ('exact', 'plain', None)
        """
        if question in self._texts:
            return "exact"
        return "plain" if plain(question) in self._plain else None


def plain(text: str) -> str:
    """A text in Unicode's composed form (NFC), without outer blanks, every blank inside one space.

    >>> plain(" Who  wrote\\u00a0E\\u0301mile? ")
    'Who wrote Émile?'
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def read_list(file: Path) -> QuestionList:
    """The questions of a file; ``UserError``, with the line, for one that is no such list.

    An empty one is none: it would call every row sound.
    """
    content = content_of(file, MOST_JSON)
    try:
        texts = questions_of(content)
    except ValueError as error:
        raise UserError(f"{file}{error}; name a text file of questions, one a line") from None
    return QuestionList(file.name, hashlib.sha256(content).hexdigest(), tuple(texts))


def questions_of(content: bytes) -> list[str]:
    r"""The questions of a list in UTF-8 (byte order mark or not); lines of blanks are none.

    Raises ``ValueError``, which begins with the line or entry, for what is no list of questions.

    >>> questions_of(b' Who is "Ana"?\r\n\n"Oru", where is it?')
    [' Who is "Ana"?', '"Oru", where is it?']
    >>> questions_of(b'"Who is \\"Ana\\"?"\n"Where is Oru?"')
    ['Who is "Ana"?', 'Where is Oru?']
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f":{line}: not UTF-8 text") from None
    whole = _value(text)
    if isinstance(whole, dict):
        raise ValueError(": holds an object of JSON, not questions")
    questions = whole if isinstance(whole, list) else _texts(text)
    for number, question in enumerate(questions, 1):
        if not isinstance(question, str):
            raise ValueError(f": entry {number} is not the text of a question")
    if not (filled := [question for question in questions if question.strip()]):
        raise ValueError(": holds no question")
    return filled


def _texts(text: str) -> list[str]:
    """The lines of a text, or what they say if each is a string of JSON.

    Where most are, a line that is none is broken: read as it stands it would name nothing.
    """
    # Newlines alone end a line: a question may hold what else Python takes for the end of one.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    values = [_value(line) for line in lines]
    for number, value in enumerate(values, 1):
        if isinstance(value, dict | list):
            raise ValueError(f":{number}: holds an object of JSON, not the text of a question")
    said = [value for value in values if isinstance(value, str)]
    bare = [n for n, line in enumerate(lines, 1) if line.strip() and values[n - 1] is None]
    if len(said) > len(bare) > 0:
        raise ValueError(f":{bare[0]}: is no string of JSON, as most lines are")
    return lines if bare else said


def _value(text: str) -> object:
    """What a text says as JSON, if it is a string, list or object of it; else None."""
    if not text.lstrip().startswith(('"', "[", "{")):
        return None
    try:
        return parse_json(text.strip())
    except ValueError:
        return None
