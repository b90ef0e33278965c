"""The one door: a chain judged by a rule, with how far it is from the nearest gold path; chains given as text, too.

The distance is the paper's (3.2.2 and Algorithm 3). Algorithm 3 as printed starts its minimum at 0, and so returns 0:
here it starts at infinity.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from rapidfuzz.distance import Levenshtein

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness import house, paper
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Rule, StepVerdict
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS, Retrieval, words
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.records import Passage, Question, Triple
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, parse_step
from safe_stepwise.store.codec import passage_of

_FOREIGN: frozenset[Fault] = frozenset(("factual", "relation", "reversed", "unread"))
"""Faults of a step that tells no fact of the graph, as one out of order does all the same."""


def edits(path_told: Sequence[Hashable], gold: Sequence[Hashable]) -> int:
    """Insertions, deletions and substitutions, each of cost 1, that make one path of another.

    >>> edits("abc", "abd"), edits("ab", ""), edits("ab", "ba")
    (1, 2, 2)
    """
    numbers: dict[Hashable, int] = {}  # what equals has one number; hashes may collide
    paths = ([numbers.setdefault(fact, len(numbers)) for fact in path] for path in (path_told, gold))
    return Levenshtein.distance(*paths)


def nearest(path_told: Sequence[Hashable], golds: Iterable[Sequence[Hashable]]) -> tuple[int, float] | None:
    """Edits to the nearest gold path, and those over the longer of both (0-1); None without any.

    >>> nearest("abc", ["xyz", "ab"]), nearest("", [""]), nearest("a", [])
    ((1, 0.3333333333333333), (0, 0.0), None)
    """
    lengths = ((edits(path_told, gold), max(len(path_told), len(gold))) for gold in golds)
    return min(((count, count / (longer or 1)) for count, longer in lengths), default=None)


def told_by(steps: Iterable[StepVerdict]) -> list[Hashable]:
    """The path that steps tell: each fact where it is first told, and what is none of the graph.

    What the paper's rule matched a faulty step to is not what it says, and stands for nothing.
    """
    path: dict[Hashable, None] = {}
    for number, step in enumerate(steps):
        is_foreign = step.fault in _FOREIGN
        if not (is_foreign and step.score is not None):
            path |= dict.fromkeys(map(nouns.fact_of, step.triples))
        if is_foreign:
            path[number] = None
    return list(path)


def to_gold(grounds: Grounds, steps: Iterable[StepVerdict]) -> tuple[int, float] | None:
    """Edits from what steps tell to the nearest gold path, as `nearest`; branches in any order."""
    golds = (order for path in grounds.paths for order in (nouns.orders(path) if grounds.is_branched else (path,)))
    return nearest(told_by(steps), ([nouns.fact_of(triple) for triple in gold] for gold in golds))


def judge_chain(
    grounds: Grounds,
    chain: Chain,
    rule: Rule = "house",
    retrieval: Retrieval | None = None,
    sigma: float | None = None,
) -> ChainVerdict:
    """Judge a chain by a rule, and count its edits to the nearest gold path.

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


RULES: Mapping[str, tuple[Rule, ...]] = {"both": ("house", "paper"), "house": ("house",), "paper": ("paper",)}
Outcome = Literal["faithful", "unfaithful", "unjudgeable", "unstructured"]
OUTCOMES: tuple[Outcome, ...] = ("faithful", "unfaithful", "unjudgeable", "unstructured")


def chains_given(
    questions: Sequence[str],
    steps: Sequence[Sequence[str]],
    answers: Sequence[str],
    evidence: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
    *,
    passages: Sequence[Sequence[Mapping[str, Any] | Passage]] | None = None,
    rule: str = "both",
    retrieval: str = "words",
    sigma: float | None = None,
) -> dict[str, Any]:
    """Whether right answers were earned: shares 0-1 by rule, and a verdict a chain.

    ``steps[i]`` are the texts of one chain, with or without ``Step K:`` and kind; one without any
    is ``unstructured``. ``evidence[i]`` is the gold path, (head, relation, tail) each; a question
    without is ``unjudgeable``. ``passages[i]`` are objects of ``title`` and ``text`` or
    ``sentences``, which the house's rule goes by, too. ``retrieval`` and ``sigma`` are the paper's
    rule's. Raises ``UserError`` for an option that is none and for columns of several lengths.

    Returns ``exact_match`` and, under the name of each rule, the share of chains that are
    ``faithful``, ``unfaithful``, ``unjudgeable``, ``unstructured``; ``spurious_share``,
    P(unfaithful | right answer) over the decided ones (None where none is) with its
    ``spurious_bounds`` if all unjudgeable ones were faithful, or unfaithful; ``reasoning``, the
    share answered rightly by a faithful chain; ``gap``, exact match less that; ``verdicts``.

    >>> found = chains_given(
    ...     ["Who married Dune Rain's director?"],
    ...     [["The director of Dune Rain is Ors Velt.", "Ors Velt's spouse is Ana."]], ["Ana"],
    ...     [[("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "spouse", "Ana")]], [["Ana"]],
    ...     rule="paper")
    >>> found["exact_match"], found["paper"]["faithful"], found["paper"]["spurious_share"]
    (1.0, 1.0, 0.0)
    """
    rules = RULES[check_choice(rule, RULES, "rule")]
    retrieves = RETRIEVALS[check_choice(retrieval, RETRIEVALS, "retrieval")]
    if sigma is not None and not 0 <= sigma <= 1:
        raise UserError(f"sigma is {sigma!r}: give a number from 0 to 1")
    pages = [()] * len(questions) if passages is None else passages
    if len({len(column) for column in (questions, steps, answers, evidence, references, pages)}) > 1:
        raise UserError("columns of several lengths: give as many of each as there are questions")
    rows_asked = [_question(*row) for row in zip(questions, evidence, references, pages, strict=True)]
    chains = [chain_of(texts, answer) for texts, answer in zip(steps, answers, strict=True)]
    right = [bool(exact_match(chain.answer, q.accepted)) for chain, q in zip(chains, rows_asked, strict=True)]
    rows = list(zip(map(nouns.grounds_of, rows_asked), chains, strict=True))
    shares: dict[str, Any] = {"exact_match": sum(right) / len(right)}
    for name in rules:
        verdicts = (
            judge_chain(ground, chain, name, retrieves, sigma) if chain.steps else None for ground, chain in rows
        )
        shares[name] = _summed([*verdicts], right)
    return shares


def chain_of(steps: Sequence[str], answer: str) -> Chain:
    """The chain of some steps, written by the grammar of steps or as plain texts.

    >>> chain = chain_of(["Step 1: Oru lies on the Vel. (Attribution)", "Oru is old."], "Oru")
    >>> chain.steps
    ('Oru lies on the Vel.', 'Oru is old.')
    """
    read: list[tuple[str, str]] = []
    for text in steps:
        try:
            step = parse_step(text)
        except StepError:
            read.append((text, ""))
        else:
            read += [(step.text, step.kind)] if step.kind != "Final Answer" else []
    logical = tuple(place for place, (_, kind) in enumerate(read, 1) if kind == "Logical")
    return Chain(tuple(text for text, _ in read), answer, concluding=logical)


def _question(
    text: str,
    evidence: Sequence[Sequence[str]],
    references: Sequence[str],
    passages: Sequence[Mapping[str, Any] | Passage],
) -> Question:
    answer, *aliases = references
    return Question(
        *("", "", "", text, answer, tuple(aliases)),
        passages=tuple(page if isinstance(page, Passage) else passage_of(page) for page in passages),
        evidence=tuple(Triple(head, relation, tail) for head, relation, tail in evidence),
    )


def _summed(verdicts: Sequence[ChainVerdict | None], right: Sequence[bool]) -> dict[str, Any]:
    outcomes = [verdict.path if verdict else "unstructured" for verdict in verdicts]
    size, counts = len(outcomes), Counter(outcomes)
    earned = Counter(outcome for outcome, is_so in zip(outcomes, right, strict=True) if is_so)
    decided = earned["faithful"] + earned["unfaithful"]
    chains = decided + earned["unjudgeable"]
    # With all that is unjudgeable taken for faithful, then for unfaithful.
    bounds = [bad / chains if chains else None for bad in (earned["unfaithful"], chains - earned["faithful"])]
    return {
        **{name: counts[name] / size for name in OUTCOMES},
        "spurious_share": earned["unfaithful"] / decided if decided else None,
        "spurious_bounds": bounds,
        "reasoning": earned["faithful"] / size,
        "gap": (sum(right) - earned["faithful"]) / size,
        "verdicts": [nouns.verdict_row(verdict) if verdict else None for verdict in verdicts],
    }
