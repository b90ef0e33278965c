"""The elements of a JSON array in a file, one by one: memory does not grow with the array.

They come as text, to be read by who wants them; here they are only told apart.
"""

import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import BinaryIO, NoReturn

WHITE = " \t\r\n"
"""What may stand between the parts of JSON."""
_BLOCK = 2**16
# Finds where a value ends; its numbers need no reading, however long they are.
_DECODER = json.JSONDecoder(parse_int=bool, parse_float=bool, parse_constant=bool)


def elements(file: BinaryIO, longest: int) -> Iterator[str]:
    """The elements as they stand; bytes that are no UTF-8 become lone surrogates.

    Raises ``ValueError`` where there is no array, or one has more than ``longest`` characters.
    """
    text = _Text(file, longest)
    text.skip("[")
    while text.first() != "]":
        yield text.value()
        if text.first() != "]":
            text.skip(",")
            if text.first() == "]":
                text.refuse("no element after the comma")
    text.skip("]")
    if text.first():
        text.refuse("more text after the array")


class _Text:
    """What was read of a file and is not yet used."""

    def __init__(self, file: BinaryIO, longest: int) -> None:
        self._file, self._longest = file, longest
        self._decoder = getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._text, self._at, self._is_whole = "", 0, False

    def first(self) -> str:
        """The next character that isn't white space, which is passed over; empty at the end."""
        while True:
            for place in range(self._at, len(self._text)):
                if self._text[place] not in WHITE:
                    self._at = place
                    return self._text[place]
            self._text, self._at = "", 0
            if not self._read(_BLOCK):
                return ""

    def skip(self, mark: str) -> None:
        """Pass over a character, which has to come next."""
        if self.first() != mark:
            self.refuse(f"expected {mark}")
        self._at += 1

    def value(self) -> str:
        """The text of the value that comes next, which is passed over."""
        while True:
            there = len(self._text) - self._at
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except RecursionError:
                raise ValueError("nested too deep") from None
            except json.JSONDecodeError:
                if there > self._longest:
                    raise ValueError(f"longer than {self._longest:,}, or damaged") from None
                if not self._read(max(_BLOCK, there)):  # twice as much, so all in all linear
                    raise
            else:
                goes_on = self._text[end : end + 1] in ("", *"+-.eE")  # as a number may
                if not goes_on or there > self._longest or not self._read(_BLOCK):
                    start, self._at = self._at, end
                    return self._text[start:end]

    def refuse(self, reason: str) -> NoReturn:
        """Raise ``ValueError`` about what comes next."""
        raise json.JSONDecodeError(reason, self._text, self._at)

    def _read(self, size: int) -> bool:
        """Read on; whether there was more."""
        if self._is_whole:
            return False
        block = self._file.read(size)
        self._is_whole = not block
        self._text = self._text[self._at :] + self._decoder.decode(block, final=not block)
        self._at = 0
        return True
