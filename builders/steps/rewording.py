"""Half of the test rows, made anew in words that no training row has.

So a test measures what a verifier has learned of checking, not of wordings (DESIGN, section 6).
"""

from collections import defaultdict
from collections.abc import Sequence

from builders.steps.chunks import Maker, pairs_of
from builders.steps.collect import StepsBuild, chunks_of
from builders.steps.composition import rank
from builders.steps.questions import VerifiedSet, question_key
from builders.steps.rows import StepRow
from safe_stepwise.store.names import REFINED

_Made = tuple[str, str, str, int]


def in_held_back_words(
    plan: StepsBuild, verified: VerifiedSet, maker: Maker, rows: Sequence[StepRow]
) -> dict[str, StepRow]:
    """By the id of a row the same in held-back words, for half of the rows, drawn by their ids.

    A row for which there are none, or none that the checker passes, is left out. A maker that asks
    a model has no words of its own to hold back.
    """
    if maker.held_back is None:
        return {}
    wanted: dict[str, list[StepRow]] = defaultdict(list)
    for row in rows:
        key = question_key(row.question.benchmark, row.question.id)
        drawn = key if row.incomplete else row.id  # a row and its twin have the same words
        if row.origin != REFINED and rank(plan.seed, f"words {drawn}")[0] % 2:
            wanted[key].append(row)
    found = {}
    for chunk in chunks_of(plan, verified, maker, {}):
        if not any(question_key(chunk.benchmark, row.question.id) in wanted for row in chunk.rows):
            continue
        pairs, _ = pairs_of(chunk)
        places = [n for n, (q, _) in enumerate(pairs) if question_key(q.benchmark, q.id) in wanted]
        for made in maker.held_back.make_some(pairs, places):
            new = {_what(row): row for row in made.rows}
            for question in {row.question.id for row in made.rows}:
                for row in wanted[question_key(chunk.benchmark, question)]:
                    if _what(row) in new:
                        found[row.id] = new[_what(row)]
    return found


def _what(row: StepRow) -> _Made:
    """What a row is of its question, whatever the words."""
    kind = f"{row.context} {row.twin}"
    return (row.feedback.error_type, row.origin, kind, row.step.number)
