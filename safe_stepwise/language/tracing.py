"""Replaces parts of a text and keeps, for each character, the offsets in the source that it comes from."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True, slots=True)
class TracedText:
    """A text made from a source; character ``n`` stands for the source's characters ``starts[n]`` to ``ends[n]``."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def from_source(cls, source: str) -> "TracedText":
        """Make a text that equals its source."""
        return cls(source, range(len(source)), range(1, len(source) + 1))

    def sub(self, pattern: re.Pattern[str], replacement: Replacement) -> "TracedText":
        """Replace as `re.sub` does; each character of a replacement stands for the whole match.

        >>> traced = TracedText.from_source("4 &amp; 5").sub(re.compile("&amp;"), "and")
        >>> traced.text, traced.source_span(2, 5), traced.source_span(6, 7)
        ('4 and 5', (2, 7), (8, 9))
        """
        pieces, starts, ends, end = list[str](), list[int](), list[int](), 0
        for match in pattern.finditer(self.text):
            words = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
            start, stop = self.source_span(*match.span())
            pieces += [self.text[end : match.start()], words]
            starts += [*self.starts[end : match.start()], *[start] * len(words)]
            ends += [*self.ends[end : match.start()], *[stop] * len(words)]
            end = match.end()
        if not pieces:
            return self
        pieces.append(self.text[end:])
        return TracedText("".join(pieces), [*starts, *self.starts[end:]], [*ends, *self.ends[end:]])

    def join(self, spans: Iterable[tuple[int, int]]) -> "TracedText":
        """Join the parts of the text at some spans."""
        slices = [slice(start, end) for start, end in spans]
        return TracedText(
            "".join(self.text[span] for span in slices),
            [offset for span in slices for offset in self.starts[span]],
            [offset for span in slices for offset in self.ends[span]],
        )

    def source_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the source for a span of the text; an empty one stays empty."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        place = self.starts[start] if start < len(self.text) else max(self.ends[-1:], default=0)
        return place, place
