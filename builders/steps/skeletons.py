"""Finds test rows whose wording no training row has, by the skeletons of their texts.

A *skeleton* is a step or a diagnosis with the question's content masked: names, numbers, dates, quotations. Two rows
with one skeleton were worded by one template. The rules are coarse on purpose (a set looks more monotonous by them,
never less):

- Quotation marks with what they enclose are one mask; so is what follows a colon and opens with a
  capital or a number ("Passage 3 states: Ana Vorr was ..."), but for a citation.
- A word with a digit, a number word from two on and a word with a capital are masks. Of the last
  those stay words that are not names: small ones ("According", "Passage") anywhere, and
  at the start of a sentence forms in -ing and -ly.
- A list of citations ("Step 1 and Step 2") is one citation. Articles and what joins names ("the Duke
  of Oru") are dropped, and so are punctuation and case. Neighbouring masks are one.
"""

import re
from collections.abc import Iterable

from builders.steps.rows import StepRow
from builders.steps.values import PATTERNS, words

MASK = "_"

# A mark that opens twice is read from the second on: else a text of them took quadratic time.
_QUOTED = re.compile(r"“[^“”]*+”|«[^«»]*+»|`[^`]*+`|\"[^\"]*+\"|(?<!\w)‘[^‘’]*+’(?!\w)|(?<!\w)'[^']*+'(?!\w)")
_SPOKEN = re.compile(r":\s++(?!(?:Passage|Step)s? \d)(?=[^\Wa-z]).*", re.DOTALL)
_WORD = re.compile(r"\w++(?:['’.&-]\w++)*+")
_SENTENCE = re.compile(r"[.?!]\s|\A")
_NO_NAMES, _NUMBERS, _INNER = words("no_names"), words("numbers"), words("inner")
_CITED = re.compile(PATTERNS["citations"], re.IGNORECASE)


def skeleton(text: str) -> str:
    """Return the skeleton of a text: words in lower case and masks, separated by one space.

    >>> skeleton("According to Passage 3, the author of “Oru” was born on 5 May 1901 in St. Vel.")
    'according to passage _ author _ was born on _ in _'
    >>> skeleton("Comparing Step 1, Step 2 and Step 4, Ana Vorr is the older one.")
    'comparing step _ is older one'
    """
    masked = _CITED.sub(rf"\1 {MASK} ", _SPOKEN.sub(f" {MASK} ", _QUOTED.sub(f" {MASK} ", text)))
    starts = {match.end() for match in _SENTENCE.finditer(masked)}
    masked_words = (_mask(match, starts) for match in _WORD.finditer(masked))
    kept = [word for word in masked_words if word not in _INNER]
    return " ".join(word for n, word in enumerate(kept) if word != MASK or kept[n - 1 : n] != [MASK])


def find_unseen(test: Iterable[StepRow], train: Iterable[StepRow]) -> frozenset[str]:
    """Return ids of test rows whose step has a skeleton that train lacks; all final answers have the same one."""

    def key(row: StepRow) -> str:
        return MASK if row.step.kind == "Final Answer" else skeleton(row.step.text)

    train_skeletons = set(map(key, train))
    return frozenset(row.id for row in test if key(row) not in train_skeletons)


def _mask(match: re.Match[str], starts: set[int]) -> str:
    """Return a word in lower case, or a mask for it."""
    word = match[0]
    plain = word.lower()
    if any(c.isdigit() for c in word) or plain in _NUMBERS:
        return MASK
    if word.islower() or plain in _NO_NAMES:
        return plain
    # A verb or adverb may open a sentence; capitalised elsewhere, it is part of a name.
    opens = plain == "i" or (plain.isascii() and plain.endswith(("ing", "ly")))
    return plain if opens and match.start() in starts else MASK
