"""The order in which a chain tells a path's facts, counted in edits; and whether it ends right."""

from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

from safe_stepwise.checking.faithfulness.chains import Fault, Grounds, Path
from safe_stepwise.checking.faithfulness.misstating import same
from safe_stepwise.checking.faithfulness.stating import Said
from safe_stepwise.records import Triple
from safe_stepwise.scoring import normalize_answer


def is_right(answer: str, answers: Sequence[str]) -> bool:
    """Whether an answer is one of those that count, dates and nations by what they mean.

    >>> is_right("the Oru.", ["Oru"]), is_right("May 3, 1901", ["3 May 1901"]), is_right("", ["a"])
    (True, True, False)
    """
    given = normalize_answer(answer)
    return bool(given) and any(given == normalize_answer(a) or same(answer, a) for a in answers)


def new_in(said: Said) -> bool:
    """Whether a step names anything that was not told before it."""
    known = {span for name in said.familiar for span in said.named(name)}
    return len(said.reading.values) > len(known)


def edits_of(
    grounds: Grounds,
    path: Path,
    stated: Sequence[Sequence[Triple]],
    faults: Sequence[Fault],
    new: Sequence[bool],
) -> tuple[int, float]:
    """Insertions, deletions and substitutions from what was told to a path, and their share.

    A step that says something false or not needed is one fact that the path does not have; one
    that only sums up what was told counts for none.

    Returns the count and the count over the longer of both (0-1).
    """
    told: list[str] = []
    for triples, fault, is_new in zip(stated, faults, new, strict=True):
        fresh = [_token(t) for t in path if t in triples and _token(t) not in told]
        told += fresh
        if not triples and (fault in ("factual", "relation", "reversed") or is_new):
            told.append("")
    gold = [_token(t) for t in (_as_told(path, told) if grounds.is_branched else path)]
    edits = Levenshtein.distance(told, gold)
    return edits, edits / max(1, len(told), len(gold))


def _token(triple: Triple) -> str:
    return "\0".join((triple.head, triple.relation, triple.tail))


def _as_told(path: Path, told: Sequence[str]) -> Path:
    """A path with its branches in the order in which a chain tells them."""
    branches: list[list[Triple]] = []
    for triple in path:
        own = [b for b in branches if any({triple.head} & {t.head, t.tail} for t in b)]
        own[0].append(triple) if own else branches.append([triple])
    places = {token: n for n, token in enumerate(told)}
    branches.sort(key=lambda b: min(places.get(_token(t), len(told)) for t in b))
    return tuple(triple for branch in branches for triple in branch)
