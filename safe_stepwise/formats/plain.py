"""A chain of thought as one text: ``{"question": ..., "passages": [...], "response": "1. Oru is in Marn. 2. ..."}``.

Its steps are the numbered parts ("Step 1: ...", "1. ..."), or the sentences of a text without numbers.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats import steps as own_rows
from safe_stepwise.formats.chains import Chain, ChainStep
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.language.vocabulary import wording
from safe_stepwise.store.thoughts import split_thought

_RESPONSES = ("response", "completion", "output", "generation", "reasoning", "text")
_NUMBERED = wording("plain", "numbered", re.IGNORECASE)


def read_response(row: Mapping[str, Any]) -> tuple[Chain, str]:
    """Return a row's chain without steps, and the model's text; raises ``ValueError`` for a row without a text."""
    response = next((row[name] for name in _RESPONSES if isinstance(row.get(name), str)), None)
    if response is None:
        raise RowError(f"it has no text under {', '.join(_RESPONSES)}")
    return own_rows.read({**row, "steps": []}), response


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain from a model's text, with its thoughts if only an answer follows; raises ``ValueError``."""
    chain, response = read_response(row)
    reply = split_thought(response)
    texts = split_steps(reply.text)
    if len(texts) < 2 and reply.thought:
        texts = [*split_steps(reply.thought), *texts]
    texts = texts or split_steps(response.replace("<think>", "").replace("</think>", ""))  # a thought that never ends
    return replace(chain, steps=tuple(ChainStep(text, len(chain.passages)) for text in texts))


def split_steps(text: str) -> list[str]:
    """Split a chain of thought into steps that are numbered from 1, or else into sentences.

    >>> split_steps("Let us see.\\nStep 1: Oru is in Marn. It is old.\\nStep 2: So Marn.")
    ['Let us see.', 'Oru is in Marn. It is old.', 'So Marn.']
    >>> split_steps("1. Oru is in Marn. 2. So Marn."), split_steps("Oru is in Marn. It has\\n2 rivers.")
    (['Oru is in Marn.', 'So Marn.'], ['Oru is in Marn.', 'It has', '2 rivers.'])
    """
    marks = list[re.Match[str]]()
    for mark in _NUMBERED.finditer(text):
        marks += [mark] if int(mark[1] or mark[2]) == len(marks) + 1 else []
    if not marks:
        pieces = [sentence for line in text.splitlines() for sentence in split_sentences(line)]
    else:
        edges = zip([0, *(mark.end() for mark in marks)], [*(mark.start() for mark in marks), len(text)], strict=True)
        pieces = [text[start:end] for start, end in edges]
    return [" ".join(piece.replace("**", "").split()) for piece in pieces if re.search(r"\w", piece)]


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain as numbered lines."""
    lines = [f"Step {number}: {step.shown_text}" for number, step in enumerate(chain.steps, 1)]
    (row,) = own_rows.write(replace(chain, steps=()))
    yield {**row, "response": "\n".join(lines)}
