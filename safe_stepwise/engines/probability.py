"""Reads the probability of a label from the log-probabilities of a reply's tokens."""

import math
import re
from collections.abc import Callable, Iterable, Sequence

TOP = 20
"""Number of likeliest tokens per place that engines request: the most that OpenAI and vLLM return."""
_KEY = r'"error[_ ]?type"\s*:\s*"'
"""The text before a label in a reply."""
Alternatives = Iterable[tuple[str, float]]
"""Texts of tokens with their log-probabilities."""


def label_probability(
    tokens: Sequence[str], alternatives_at: Callable[[int], Alternatives], labels: Sequence[str]
) -> float | None:
    """Return the probability (0-1) of the first of ``labels``, of which a reply has one as its ``error_type`` in JSON.

    ``tokens`` are the texts of the reply's tokens, and ``alternatives_at`` returns the likeliest tokens at an index.
    The probability is relative to the labels that these tokens can begin. If a token begins several labels, as "Co"
    begins Correct and Contradictory, and the reply has it, the next token is read as well; otherwise the token's
    probability is divided equally between the labels. Returns None if the reply has no such label.
    """
    text = "".join(tokens)
    occurrences = [*re.finditer(f'{_KEY}({"|".join(map(re.escape, labels))})"', text, re.IGNORECASE)]
    if not occurrences:
        return None
    start, first_share, other_share = occurrences[-1].start(1), 0.0, 0.0
    reached, offset = 1.0, 0  # the probability of the label's tokens so far
    for index, token in enumerate(tokens):
        end = offset + len(token)
        if end > start:
            before, beginning = text[offset:start], text[start:offset]
            continued = 0.0
            for alternative, log_probability in alternatives_at(index):
                if not alternative.startswith(before):
                    continue
                possible = _possible_labels(labels, beginning + alternative[len(before) :])
                share = reached * math.exp(log_probability)
                if possible == {labels[0]}:
                    first_share += share
                elif labels[0] not in possible:
                    other_share += share if possible else 0
                elif alternative == token:
                    continued = share
                else:
                    first_share += share / len(possible)
                    other_share += share * (1 - 1 / len(possible))
            if not continued:
                break
            reached = continued
        offset = end
    return first_share / (first_share + other_share) if first_share + other_share else None


def _possible_labels(labels: Iterable[str], beginning: str) -> set[str]:
    """Return the labels that a text may begin; it may extend beyond the label's closing quote."""
    return {label for label in labels if f'{label}"'.startswith(beginning) or beginning.startswith(f'{label}"')}
