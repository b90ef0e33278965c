"""Splits a paragraph into sentences."""

import sentencex

from safe_stepwise.language.text import LONE_SURROGATE

_CLOSERS = " \t\"'`”’»)]*"


def split_sentences(text: str) -> tuple[str, ...]:
    """Split a paragraph into sentences without surrounding white space; nothing else is lost.

    sentencex takes "1996 - 11 - 4)" for a list and the "!" of a name for a full stop. So a boundary counts only if the
    text before it ends a sentence and the next does not begin in lower case.

    >>> split_sentences("Go! is a film by A. Brell (b. 1901). It came out in 1920.")
    ('Go! is a film by A. Brell (b. 1901).', 'It came out in 1920.')
    """
    sentences, end = [""], 0
    for segment in sentencex.segment("en", LONE_SURROGATE.sub("\ufffd", text)):  # it refuses them
        piece, end = text[end : end + len(segment)], end + len(segment)
        begins_lower = piece.lstrip(_CLOSERS)[:1].islower()
        is_ended = sentences[-1].rstrip(_CLOSERS)[-1:] in tuple(".?!…")
        if not piece.strip() or (is_ended and not begins_lower):
            sentences.append("")
        sentences[-1] += piece
    return tuple(sentence.strip() for sentence in sentences if sentence.strip())
