"""Reads the probability of a label from the log-probabilities of a reply's tokens."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

TOP = 20
"""The likeliest tokens at a place that engines are asked for: the most that OpenAI and vLLM tell."""
_KEY = r'"error[_ ]?type"\s*:\s*"'
"""What stands before a label in a reply."""
Alternatives = Iterable[tuple[str, float]]
"""Texts of tokens with their log-probabilities."""


def label_probability(
    tokens: Sequence[str], alternatives_at: Callable[[int], Alternatives], labels: Sequence[str]
) -> float | None:
    """Return the probability (0-1) of the first of ``labels``, of which a reply has one as its ``error_type`` in JSON.

    ``tokens`` are the texts of the reply's tokens, and ``alternatives_at`` returns the likeliest tokens at an index.
    The probability is relative to the labels that these tokens can begin. A token that begins several labels, as "Co"
    begins Correct and Contradictory, is followed where the reply goes on with it; elsewhere its probability is divided
    equally between them. Returns None where the reply has no such label.

    >>> told = [[("Red", -0.1), ("Cor", -2.3)], [("undancy", 0.0)]]
    >>> reply = ['{"error_type": "', "Red", "undancy", '"}']
    >>> round(label_probability(reply, lambda n: told[n - 1], ["Correct", "Redundancy"]), 2)
    0.1
    """
    text = "".join(tokens)
    places = [*re.finditer(f'{_KEY}({"|".join(map(re.escape, labels))})"', text, re.IGNORECASE)]
    if not places:
        return None
    start, right, errors = places[-1].start(1), 0.0, 0.0
    reached, offset = 1.0, 0  # the probability of the label's tokens so far
    for index, token in enumerate(tokens):
        end = offset + len(token)
        if end > start:
            before, beginning = text[offset:start], text[start:offset]
            went_on = 0.0
            for alternative, log_probability in alternatives_at(index):
                if not alternative.startswith(before):
                    continue
                possible = _continuing(labels, beginning + alternative[len(before) :])
                share = reached * math.exp(log_probability)
                if possible == {labels[0]}:
                    right += share
                elif labels[0] not in possible:
                    errors += share if possible else 0
                elif alternative == token:
                    went_on = share
                else:
                    right += share / len(possible)
                    errors += share * (1 - 1 / len(possible))
            if not went_on:
                break
            reached = went_on
        offset = end
    return right / (right + errors) if right + errors else None


def _continuing(labels: Iterable[str], beginning: str) -> set[str]:
    """Return the labels that a text may begin; it may go on after the label's closing quote."""
    return {label for label in labels if f'{label}"'.startswith(beginning) or beginning.startswith(f'{label}"')}
