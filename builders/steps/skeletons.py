"""Measures how varied the wordings of a set are, by the skeletons of its texts.

A *skeleton* is a step or a diagnosis with the question's content masked: names, numbers, dates, quotations. Two rows
with one skeleton were worded by one template. The rules are coarse on purpose (a set looks more monotonous by them,
never less):

- Quotation marks with what they enclose are one mask; so is what follows a colon and opens with a
  capital or a number ("Passage 3 states: Ana Vorr was ..."), but for a citation.
- A word with a digit, a number word from two on and a word with a capital are masks. Of the last
  those stay words that are not names: small ones ("According", "Passage") anywhere, and
  at the start of a sentence forms in -ing and -ly.
- Articles before a mask, and lists or particles between two ("the Duke of Oru", "Step 1 and Step
  2"), belong to it. Neighbouring masks are one. Punctuation and case are dropped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from builders.steps.rows import StepRow
from builders.steps.values import words
from safe_stepwise.taxonomy import TAXONOMY

MASK = "_"
MAX_SHARE = 0.02
"""Highest share of a type's rows that one skeleton should have, unless a single row is a greater share."""
COMMONEST = 20
"""Number of commonest diagnoses whose share is reported."""

# A mark that opens twice is read from the second on: else a text of them took quadratic time.
_QUOTED = re.compile(r"“[^“”]*+”|«[^«»]*+»|`[^`]*+`|\"[^\"]*+\"|(?<!\w)‘[^‘’]*+’(?!\w)|(?<!\w)'[^']*+'(?!\w)")
_SPOKEN = re.compile(r":\s++(?!(?:Passage|Step)s? \d)(?=[^\Wa-z]).*", re.DOTALL)
_WORD = re.compile(r"\w++(?:['’.&-]\w++)*+")
_SENTENCE = re.compile(r"[.?!]\s|\A")
_NO_NAMES, _NUMBERS, _INNER = words("no_names"), words("numbers"), words("inner")
_ARTICLES = frozenset("the a an".split())
_CITED = frozenset("passage passages step steps".split())


@lru_cache(maxsize=16384)
def skeleton(text: str) -> str:
    """Return the skeleton of a text: words in lower case and masks, separated by one space.

    >>> skeleton("According to Passage 3, the author of “Oru” was born on 5 May 1901 in St. Vel.")
    'according to passage _ the author of _ was born on _ in _'
    >>> skeleton("Comparing Step 1, Step 2 and Step 4, Ana Vorr is the older one.")
    'comparing step _ is the older one'
    """
    masked = _SPOKEN.sub(f" {MASK} ", _QUOTED.sub(f" {MASK} ", text))
    starts = {match.end() for match in _SENTENCE.finditer(masked)}
    merged: list[str] = []
    for word in (_mask(match, starts) for match in _WORD.finditer(masked)):
        if word == MASK:
            _join(merged)
        else:
            merged.append(word)
    return " ".join(merged)


@dataclass(frozen=True, slots=True)
class Variety:
    """Counts of the wordings of one type; a share is None without rows. Final answers are not among the steps."""

    rows: int
    steps: int
    """Skeletons of steps."""
    commonest_step: float | None
    """Share of the commonest skeleton among the rows that are not final answers."""
    diagnoses: int
    commonest_diagnosis: float | None


def varieties(rows: Iterable[StepRow]) -> dict[str, Variety]:
    """Return the variety of each type that has rows, in the taxonomy's order."""
    of_type: dict[str, list[StepRow]] = {entry.name: [] for entry in TAXONOMY}
    for row in rows:
        of_type[row.feedback.error_type].append(row)
    result = {}
    for name, type_rows in of_type.items():
        steps = Counter(skeleton(row.step.text) for row in type_rows if row.step.kind != "Final Answer")
        diagnoses = Counter(skeleton(row.feedback.diagnosis) for row in type_rows)
        if type_rows:
            result[name] = Variety(len(type_rows), len(steps), _top(steps), len(diagnoses), _top(diagnoses))
    return result


def common_diagnoses(rows: Sequence[StepRow]) -> float | None:
    """Return the share of rows whose diagnosis has one of the `COMMONEST` skeletons; None without rows."""
    return _top(Counter(skeleton(row.feedback.diagnosis) for row in rows), COMMONEST)


def find_unseen(test: Iterable[StepRow], train: Iterable[StepRow]) -> frozenset[str]:
    """Return ids of test rows whose step has a skeleton that train lacks; all final answers have the same one."""

    def key(row: StepRow) -> str:
        return MASK if row.step.kind == "Final Answer" else skeleton(row.step.text)

    train_skeletons = set(map(key, train))
    return frozenset(row.id for row in test if key(row) not in train_skeletons)


def _top(counts: Counter[str], number: int = 1) -> float | None:
    """Return the share of the commonest entries, or None if there are none."""
    return round(sum(n for _, n in counts.most_common(number)) / counts.total(), 4) if counts else None


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


def _join(merged: list[str]) -> None:
    """Add a mask at the end, or merge it with the mask there."""
    end = len(merged)
    while end and merged[end - 1] in _INNER:
        end -= 1
    if end and merged[end - 1] == MASK:
        del merged[end:]
    else:
        while merged and merged[-1] in _ARTICLES:
            merged.pop()
        merged.append(MASK)
    # "Step 1, Step 2 and Step 3" is one list as well.
    if merged[-2:-1] and merged[-2] in _CITED:
        end = len(merged) - 2
        end -= end > 0 and merged[end - 1] in ("and", "or")
        if end > 1 and merged[end - 1] == MASK and merged[end - 2] in _CITED:
            del merged[end:]
