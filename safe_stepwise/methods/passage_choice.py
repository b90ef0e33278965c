"""Chooses the passages that a verifier's prompt quotes, step by step (option ``verifier_evidence``).

A passage is quoted once, before the first step that calls for it, and stays for all later steps. The prompt for the
next step thus extends the prompt for this one, so that an engine's prefix cache holds, and a step that rests on
earlier ones has their passages at hand.

- ``cited``: the passages that a step cites, and their rivals, which could be meant instead: first those whose title
  the step names, then those that BM25 finds for it, as many as fit into `RIVAL_WORDS`.
- ``retrieved``: the best by BM25, whatever the step cites.

A step that cites no passage at hand calls for none if it rests on earlier steps, that is, if it names one or submits
the answer. Any other step gets what BM25 finds. All passages keep their numbers.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from safe_stepwise.methods import ranking
from safe_stepwise.methods.prompt_sets import CITED, EvidenceChoice
from safe_stepwise.records import Passage

RIVALS, RIVAL_WORDS = 1, 120
"""The most rivals of a step's cited passages, and the most words that they have together."""
RETRIEVED = 2
"""The number of passages that a step gets by retrieval alone."""
Numbers = tuple[int, ...]
"""Numbers of passages, from 1."""

_MARK = r" {0,2}(?:#|no\. ?|number )?\[?"
_CITATION = re.compile(
    rf"\bpassages?{_MARK}\d+\b\]?(?:(?:,? and|,? or|,| &| to| ?[-–/])(?: passage)?{_MARK}\d+\b\]?)*", re.IGNORECASE
)
_RESTS_ON_STEPS = re.compile(r"\bsteps? \d+(?!\d*:)|\(Final Answer\)$", re.IGNORECASE)
_RANGE = re.compile(r"(\d{1,9})(?: ?(?:[-–]|to) ?(\d{1,9}))?")
_QUALIFIER = re.compile(r" \(|, ")


def choose_passages(passages: Sequence[Passage], steps: Sequence[str], choice: EvidenceChoice) -> tuple[Numbers, ...]:
    """Return, for each step, the numbers of the passages to quote before it; each passage once.

    >>> pages = [Passage("Oru", ("Oru is a town on the Vel.",)), Passage("Vel", ("The Vel is a river.",))]
    >>> choose_passages(pages, ["Step 1: According to Passage 1, Oru is on the Vel. (Attribution)"], "cited")
    ((1, 2),)
    """
    quoted, turns = set[int](), list[Numbers]()
    for step in steps:
        numbers = called_for(tuple(passages), step, choice, not quoted)
        turns.append(tuple(number for number in numbers if number not in quoted))
        quoted.update(numbers)
    return tuple(turns)


def name_left_out(passages: int, turns: Sequence[Numbers]) -> str:
    """Name the passages, from 1 to their number, that no turn has.

    >>> name_left_out(9, [(2,), (), (4, 3)]), name_left_out(1, [(1,)]), name_left_out(0, [()])
    ('Passages 1, 5-9', 'none', 'none')
    """
    quoted = {number for turn in turns for number in turn}
    absent = [number for number in range(1, passages + 1) if number not in quoted]
    runs = [[*run] for _, run in groupby(absent, key=lambda number: number - absent.index(number))]
    names = (f"{run[0]}-{run[-1]}" if run[1:] else str(run[0]) for run in runs)
    return f"Passage{'s' * (len(absent) > 1)} {', '.join(names)}" if absent else "none"


def describe(choice: EvidenceChoice) -> str:
    """Describe all that decides the choice, for digests."""
    return f"{choice} {RIVALS} {RIVAL_WORDS} {RETRIEVED}"


def cited_in(step: str, passages: int) -> Numbers:
    """Return the numbers, from 1 to ``passages``, of those that a step cites."""
    ranges = [match for citation in _CITATION.findall(step) for match in _RANGE.findall(citation)]
    bounds = [(max(1, int(first)), min(int(last or first), passages)) for first, last in ranges]
    return tuple(dict.fromkeys(number for first, last in bounds for number in range(first, last + 1)))


def without_citations(step: str) -> str:
    return _CITATION.sub("", step)


@lru_cache(maxsize=8192)
def called_for(passages: tuple[Passage, ...], step: str, choice: EvidenceChoice, is_first: bool) -> Numbers:
    """Return the numbers of the passages that a step calls for; ``is_first``: nothing stands before it."""
    cited = cited_in(step, len(passages))
    if not cited and _RESTS_ON_STEPS.search(step) and not is_first:
        return ()
    ranked = [number + 1 for number in ranking.rank_by_bm25(_index(passages), without_citations(step), len(passages))]
    if not cited or choice != CITED:
        return tuple(ranked[:RETRIEVED])
    by_title = [number for number, page in enumerate(passages, 1) if _is_named(page.title, step)]
    rivals, words = list[int](), 0
    for number in dict.fromkeys(n for n in (*by_title, *ranked) if n not in cited):
        words += len(passages[number - 1].text.split())
        if len(rivals) == RIVALS or words > RIVAL_WORDS:
            break
        rivals.append(number)
    return (*cited, *rivals)


def _is_named(title: str, step: str) -> bool:
    """Whether a step has a title's words, without what tells it apart from namesakes."""
    name = _QUALIFIER.split(title)[0]
    return bool(name) and bool(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", step))


@lru_cache(maxsize=512)
def _index(passages: tuple[Passage, ...]) -> Any:
    return ranking.index_passages(passages)
