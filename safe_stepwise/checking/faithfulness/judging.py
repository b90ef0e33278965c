"""The one door: a chain judged by a rule."""

from dataclasses import replace

from safe_stepwise.checking.faithfulness import edits, house, paper
from safe_stepwise.checking.faithfulness.chains import Chain, ChainVerdict, Grounds, Rule
from safe_stepwise.checking.faithfulness.retrieval import Retrieval, words


def judge_chain(
    grounds: Grounds,
    chain: Chain,
    rule: Rule = "house",
    retrieval: Retrieval | None = None,
    sigma: float | None = None,
) -> ChainVerdict:
    """What a chain comes to under a rule, with its edits to the nearest gold path.

    ``retrieval`` (default: `retrieval.words`) and ``sigma`` (default: the paper's .7) are the
    paper's rule's alone. Pure: the same verdict in any order and process. ``ValueError`` for an
    unknown rule.

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
        found = paper.judge(
            grounds, chain, retrieval=retrieval or words, sigma=paper.SIGMA if sigma is None else sigma
        )
    elif rule == "house":
        found = house.judge(grounds, chain)
    else:
        raise ValueError(f"unknown rule {rule!r}: paper or house")
    away = edits.to_gold(grounds, found.steps) if found.path != "unjudgeable" else None
    count, distance = away or (None, None)
    return replace(found, edits=count, distance=distance)
