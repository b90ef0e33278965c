"""The one door: a chain judged by a rule, with how far it is from the nearest gold path.

The distance is the paper's (3.2.2 and Algorithm 3). Algorithm 3 as printed starts its minimum at 0, and so returns 0:
here it starts at infinity.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from safe_stepwise.checking.faithfulness import house, paper
from safe_stepwise.checking.faithfulness.chains import Chain, ChainVerdict, Fault, Grounds, Rule, StepVerdict
from safe_stepwise.checking.faithfulness.grounds import orders
from safe_stepwise.checking.faithfulness.names import fact_of
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, words

_FOREIGN: frozenset[Fault] = frozenset(("factual", "relation", "reversed", "unread"))
"""Faults of a step that tells no fact of the graph, as one out of order does all the same."""


def edits(told: Sequence[Hashable], gold: Sequence[Hashable]) -> int:
    """Insertions, deletions and substitutions, each of cost 1, that make one path of another.

    >>> edits("abc", "abd"), edits("ab", ""), edits("ab", "ba")
    (1, 2, 2)
    """
    numbers: dict[Hashable, int] = {}  # what equals has one number; hashes may collide
    paths = ([numbers.setdefault(fact, len(numbers)) for fact in path] for path in (told, gold))
    return Levenshtein.distance(*paths)


def nearest(told: Sequence[Hashable], golds: Iterable[Sequence[Hashable]]) -> tuple[int, float] | None:
    """Edits to the nearest gold path, and those over the longer of both (0-1); None without any.

    >>> nearest("abc", ["xyz", "ab"]), nearest("", [""]), nearest("a", [])
    ((1, 0.3333333333333333), (0, 0.0), None)
    """
    found = ((edits(told, gold), max(len(told), len(gold))) for gold in golds)
    return min(((count, count / (longer or 1)) for count, longer in found), default=None)


def told_by(steps: Iterable[StepVerdict]) -> list[Hashable]:
    """The path that steps tell: each fact where it is first told, and what is none of the graph.

    What the paper's rule matched a faulty step to is not what it says, and stands for nothing.
    """
    path: dict[Hashable, None] = {}
    for number, step in enumerate(steps):
        is_foreign = step.fault in _FOREIGN
        if not (is_foreign and step.score is not None):
            path |= dict.fromkeys(map(fact_of, step.triples))
        if is_foreign:
            path[number] = None
    return list(path)


def to_gold(grounds: Grounds, steps: Iterable[StepVerdict]) -> tuple[int, float] | None:
    """Edits from what steps tell to the nearest gold path, as `nearest`; branches in any order."""
    golds = (order for path in grounds.paths for order in (orders(path) if grounds.is_branched else (path,)))
    return nearest(told_by(steps), ([fact_of(triple) for triple in gold] for gold in golds))


def judge_chain(
    grounds: Grounds,
    chain: Chain,
    rule: Rule = "house",
    retrieval: Retrieval | None = None,
    sigma: float | None = None,
) -> ChainVerdict:
    """What a chain comes to under a rule, with its edits to the nearest gold path.

    ``retrieval`` (default: `retrieval.words`) and ``sigma`` (default: the paper's .7) are the paper's rule's alone.
    Pure: the same verdict in any order and process. ``ValueError`` for an unknown rule.

    >>> from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
    >>> from safe_stepwise.records import Triple
    >>> path = [Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana")]
    >>> grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana"], [path])
    >>> told = Chain(("The director of Dune Rain is Ors Velt.", "Ors Velt's spouse is Ana."), "Ana")
    >>> verdict = judge_chain(grounds, told, "paper")
    >>> verdict.path, verdict.is_right, verdict.edits
    ('faithful', True, 0)
    """
    if rule == "paper":
        sigma = paper.SIGMA if sigma is None else sigma
        verdict = paper.judge(grounds, chain, retrieval=retrieval or words, sigma=sigma)
    elif rule == "house":
        verdict = house.judge(grounds, chain)
    else:
        raise ValueError(f"unknown rule {rule!r}: paper or house")
    away = None if verdict.path == "unjudgeable" else to_gold(grounds, verdict.steps)
    count, distance = away or (None, None)
    return replace(verdict, edits=count, distance=distance)
