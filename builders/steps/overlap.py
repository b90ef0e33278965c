"""Measures how far a step's words overlap with its passages, and the traits by which rows of a set are balanced.

What overlaps tells no label if all labels have the same shares of it. So `composition` chooses rows by their *traits*:
in which band each measure of overlap lies, and the manner in which the step is put.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from builders.steps.rows import StepRow
from safe_stepwise.language.vocabulary import word_list
from safe_stepwise.records import Passage
from safe_stepwise.store.packaged import read_yaml

FEATURES = (
    *("cited", "elsewhere", "cited - elsewhere", "anywhere", "one sentence", "cited - one sentence"),
    *("copied words", "copied share", "names", "names not in cited", "names nowhere", "words not in cited"),
    *("question", "earlier steps", "question in cited", "question anywhere"),
    *("words", "content words", "citations", "passages", "earlier"),
)
"""Shares (0-1) of a step's content words that a text has, of the question's that the passages have, and counts."""
_WORD = re.compile(r"[\w'’-]+")
_NAME = re.compile(r"[A-Z][\w'’-]+|\d[\d,.]*\d|\d")
_CITED = re.compile(r"\b[Pp]assage (\d{1,9})")
_IDLE = word_list("stop_words") | word_list("step_openers") | {*"according based passage passages step steps".split()}


def overlap(row: StepRow) -> list[float]:
    """Return the `FEATURES` of a row.

    >>> from safe_stepwise.records import Feedback, Question, Step
    >>> page = Passage("Oru", ("Oru is a town in Kelvia.",))
    >>> asked = Question("q", "b", "train", "Where is Oru?", "Kelvia", passages=(page,))
    >>> step = Step(1, "According to Passage 1, Oru lies in Kelvia.", "Attribution")
    >>> features = overlap(StepRow(asked, (), step, Feedback("Correct", "So.", ""), "ideal", "hand"))
    >>> [round(dict(zip(FEATURES, features))[name], 2) for name in ("cited", "copied words", "names nowhere")]
    [0.67, 2, 0]
    """
    words = _words(row.step.text)
    content = [word for word in words if word not in _IDLE and (len(word) == 4 or not word.isdigit())]
    pages = [_words_of_page(page) for page in row.question.passages]
    sets = [frozenset(page) for page in pages]
    places = [int(n) - 1 for n in _CITED.findall(row.step.text) if 0 < int(n) <= len(pages)][:3]
    shares = [_share(content, page) for page in sets]
    cited = max((shares[n] for n in places), default=-1.0)
    elsewhere = max((share for n, share in enumerate(shares) if n not in places), default=-1.0)
    sentences = [frozenset(_words(s)) for n in places for s in row.question.passages[n].sentences]
    sentence = max((_share(content, words) for words in sentences), default=-1.0)
    copied = max((_longest_run(words, pages[n]) for n in places), default=0)
    names = [name.lower() for name in _NAME.findall(_CITED.sub("", row.step.text)) if name.lower() not in _IDLE]
    question = [word for word in _words(row.question.question) if word not in _IDLE]
    earlier = frozenset(_words(" ".join(step.text for step in row.previous)))
    of_question = [_share(question, page) for page in sets]
    return [
        *(cited, elsewhere, cited - elsewhere, max(shares, default=-1.0), sentence, cited - sentence),
        *(copied, copied / max(1, len(words)), len(names), _missing(names, [sets[n] for n in places])),
        *(_missing(names, [frozenset[str]().union(*sets)]), _missing(content, [sets[n] for n in places])),
        *(_share(content, frozenset(question)), _share(content, earlier)),
        *(max((of_question[n] for n in places), default=-1.0), max(of_question, default=-1.0)),
        *(len(words), len(content), len(places), len(pages), len(row.previous)),
    ]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@lru_cache(maxsize=4096)
def _words_of_page(page: Passage) -> tuple[str, ...]:
    return tuple(_words(f"{page.title} . {page.text}"))


def _share(words: Sequence[str], text: frozenset[str]) -> float:
    return sum(word in text for word in words) / len(words) if words else 0.0


def _missing(words: Sequence[str], texts: Sequence[frozenset[str]]) -> int:
    """Return how many words the text lacks that lacks fewest; -1 without texts."""
    return min((sum(word not in text for word in words) for text in texts), default=-1)


def _longest_run(words: Sequence[str], text: Sequence[str]) -> int:
    """Return the number of words in a row that two texts share.

    >>> _longest_run("he was born in oru".split(), "ana was born in vel".split())
    3
    """
    return SequenceMatcher(None, words, text, autojunk=False).find_longest_match().size


_MEASURES = read_yaml(Path(__file__).with_name("bands.yaml"))
BANDS: Mapping[str, Sequence[float]] = _MEASURES["bands"]
"""The bands of each measure, by the lower bounds of all but the lowest. The last five are manners, of two bands."""
_FIRST = dict(zip(BANDS, accumulate((len(bounds) + 1 for bounds in BANDS.values()), initial=0), strict=False))
LIMITS: Mapping[str, tuple[float, float]] = _MEASURES["limits"]
"""The least and the most share of rows (0-1) that are to be in a manner's upper band."""
WEIGHTS = {_FIRST[name] + band: 12 for name in LIMITS for band in (0, 1)}
"""How much more the manners count than the other traits, of which there are more."""
_OPENING = re.compile(r"(?:\w+,? )?(?:According to|Based on) ", re.IGNORECASE)
_NEXT_SENTENCE = re.compile(r"(?<!\b[A-Z])(?<!\b[JSD]r)[.?!]”? [A-Z“]")
_CALCULATION = re.compile(r"\d+ years|\b(?:has|makes) \d")


def traits(row: StepRow) -> tuple[int, ...]:
    """Return the bands (numbers from 0 over all `BANDS`) of an attribution, or the manner of a deduction."""
    text = row.step.text
    measures: dict[str, float] = {}
    if row.step.kind == "Attribution":
        manners = (_OPENING.match(text), "“" in text, _NEXT_SENTENCE.search(text))
        measures = dict(zip(FEATURES, overlap(row), strict=True))
        measures["long run"] = measures["copied words"]
        measures |= dict(zip(("opening", "quotation", "sentences"), map(bool, manners), strict=True))
    elif row.step.kind == "Logical":
        measures = {"calculation": bool(_CALCULATION.search(text))}
    return tuple(_FIRST[name] + bisect_right(BANDS[name], measures[name]) for name in BANDS if name in measures)


def keep_limits(shares: Mapping[int, float]) -> Mapping[int, float]:
    """Return the shares of traits with those of the manners moved into their `LIMITS`."""
    bounded = dict(shares)
    for name, (lowest, highest) in LIMITS.items():
        lower, upper = _FIRST[name], _FIRST[name] + 1
        if 0 < shares.get(upper, 0) < 1:
            bounded[upper] = min(max(shares[upper], lowest), highest)
            bounded[lower] = 1 - bounded[upper]
    return bounded
