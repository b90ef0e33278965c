"""Judges chains by a rule, from records or columns of text, and measures their distance to the nearest gold path.

The distance is the paper's (arXiv 2402.11199, 3.2.2 and Algorithm 3). As printed, Algorithm 3 starts its minimum at 0
and would always return 0; here it starts at infinity.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from rapidfuzz.distance import Levenshtein

from safe_stepwise.checking.faithfulness import grounds as nouns
from safe_stepwise.checking.faithfulness import house, paper
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Fault, Grounds, Rule, StepVerdict
from safe_stepwise.checking.faithfulness.groups import claimless_steps, kind_of, score_reasoning
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS, Retrieval, words
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.records import Passage, Question, Triple
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, parse_step
from safe_stepwise.store.codec import passage_of

_FOREIGN: frozenset[Fault] = frozenset(("factual", "relation", "reversed", "unread"))
"""Faults of a step that does not state a fact of the graph; a step with an order fault does."""


def count_edits(path: Sequence[Hashable], gold: Sequence[Hashable]) -> int:
    """Count the insertions, deletions and substitutions (each of cost 1) that turn one path into another.

    >>> count_edits("abc", "abd"), count_edits("ab", ""), count_edits("ab", "ba")
    (1, 2, 2)
    """
    numbers: dict[Hashable, int] = {}  # equal facts get one number; hashes may collide
    numbered = ([numbers.setdefault(fact, len(numbers)) for fact in facts] for facts in (path, gold))
    return Levenshtein.distance(*numbered)


def distance_to_nearest(path: Sequence[Hashable], golds: Iterable[Sequence[Hashable]]) -> tuple[int, float] | None:
    """Return the edits to the nearest gold path and their share (0-1) of the longer path; None without gold.

    >>> distance_to_nearest("abc", ["xyz", "ab"]), distance_to_nearest("", [""]), distance_to_nearest("a", [])
    ((1, 0.3333333333333333), (0, 0.0), None)
    """
    lengths = ((count_edits(path, gold), max(len(path), len(gold))) for gold in golds)
    return min(((count, count / (longer or 1)) for count, longer in lengths), default=None)


def path_of(steps: Iterable[StepVerdict]) -> list[Hashable]:
    """Return the facts that steps state, each once and in order, with a number for each step without a graph fact.

    The triple that the paper's rule matched to a faulty step is left out, as the step does not state it.
    """
    path: dict[Hashable, None] = {}
    for number, step in enumerate(steps):
        is_foreign = step.fault in _FOREIGN
        if not (is_foreign and step.score is not None):
            path |= dict.fromkeys(map(nouns.fact_of, step.triples))
        if is_foreign:
            path[number] = None
    return list(path)


def distance_to_gold(grounds: Grounds, steps: Iterable[StepVerdict]) -> tuple[int, float] | None:
    """Return the `distance_to_nearest` of a chain's steps to the gold paths; branches may come in any order."""
    golds = (order for path in grounds.paths for order in (nouns.orders(path) if grounds.is_branched else (path,)))
    return distance_to_nearest(path_of(steps), ([nouns.fact_of(triple) for triple in gold] for gold in golds))


def judge_chain(
    grounds: Grounds,
    chain: Chain,
    rule: Rule = "house",
    retrieval: Retrieval | None = None,
    sigma: float | None = None,
) -> ChainVerdict:
    """Judge a chain by a rule, and count its edits to the nearest gold path.

    Only the paper's rule uses ``retrieval``, which finds the triple nearest to a step (None: by shared words), and
    ``sigma``, the lowest similarity (0-1) at which a step states it (None: the paper's .7). The verdict depends on no
    other chain. Raises ``ValueError`` for an unknown rule.

    >>> from safe_stepwise.checking.faithfulness.grounds import grounds_of_paths
    >>> from safe_stepwise.records import Triple
    >>> path = [Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana")]
    >>> grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana"], [path])
    >>> chain = Chain(("The director of Dune Rain is Ors Velt.", "Ors Velt's spouse is Ana."), "Ana")
    >>> verdict = judge_chain(grounds, chain, "paper")
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
    edits_and_share = None if verdict.path == "unjudgeable" else distance_to_gold(grounds, verdict.steps)
    count, distance = edits_and_share or (None, None)
    return replace(verdict, edits=count, distance=distance)


RULES: Mapping[str, tuple[Rule, ...]] = {"both": ("house", "paper"), "house": ("house",), "paper": ("paper",)}
Outcome = Literal["faithful", "unfaithful", "unjudgeable", "abstained", "unstructured"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def judge_columns(
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
    """Judge chains given as columns of text; return shares (0-1) by rule, and each chain's verdict.

    ``steps[i]`` are the texts of one chain, with or without ``Step K:`` and kind; a chain whose steps state nothing is
    ``unstructured``, and one with a wrong answer that says that there is no answer is ``abstained``. ``evidence[i]``
    is the gold path of (head, relation, tail); without it, the chain is ``unjudgeable``. ``passages[i]`` are objects
    with ``title`` and ``text`` or ``sentences``, used by the house rule. Only the paper's rule uses ``retrieval`` and
    ``sigma``. Raises ``UserError`` for an unknown option and for columns of different lengths.

    Returns ``exact_match`` and, under each rule's name: the share of ``faithful``, ``unfaithful``, ``unjudgeable``,
    ``abstained`` and ``unstructured`` chains; ``spurious_share``, P(unfaithful | right answer) over the decided chains
    (None if there are none); ``spurious_bounds``, this share if all unjudgeable chains were faithful, or unfaithful;
    ``reasoning``, the share of right answers with a faithful chain; ``gap``, exact match minus ``reasoning``;
    ``scores``, the paper's precision, recall and F1 (`score_reasoning`); ``verdicts``.

    >>> shares = judge_columns(
    ...     ["Who married Dune Rain's director?"],
    ...     [["The director of Dune Rain is Ors Velt.", "Ors Velt's spouse is Ana."]], ["Ana"],
    ...     [[("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "spouse", "Ana")]], [["Ana"]],
    ...     rule="paper")
    >>> shares["exact_match"], shares["paper"]["faithful"], shares["paper"]["spurious_share"]
    (1.0, 1.0, 0.0)
    """
    rules = RULES[check_choice(rule, RULES, "rule")]
    retrieves = RETRIEVALS[check_choice(retrieval, RETRIEVALS, "retrieval")]
    if sigma is not None and not 0 <= sigma <= 1:
        raise UserError(f"sigma is {sigma!r}: give a number from 0 to 1")
    pages = [()] * len(questions) if passages is None else passages
    if len({len(column) for column in (questions, steps, answers, evidence, references, pages)}) > 1:
        raise UserError("columns of several lengths: give as many of each as there are questions")
    questions_ = [_make_question(*row) for row in zip(questions, evidence, references, pages, strict=True)]
    chains = [chain_of(texts, answer) for texts, answer in zip(steps, answers, strict=True)]
    right = [bool(exact_match(chain.answer, q.accepted)) for chain, q in zip(chains, questions_, strict=True)]
    rows = list(zip(map(nouns.grounds_of, questions_), chains, strict=True))
    shares: dict[str, Any] = {"exact_match": sum(right) / len(right)}
    kinds = [kind_of(chain.steps, chain.answer, is_right) for chain, is_right in zip(chains, right, strict=True)]
    for name in rules:
        verdicts = [
            judge_chain(ground, chain, name, retrieves, sigma) if kind == "chain" else None
            for (ground, chain), kind in zip(rows, kinds, strict=True)
        ]
        outcomes = [verdict.path if verdict else kind for verdict, kind in zip(verdicts, kinds, strict=True)]
        shares[name] = {
            **_summarise(outcomes, right),
            "verdicts": [nouns.verdict_row(verdict) if verdict else None for verdict in verdicts],
        }
    return shares


def chain_of(steps: Sequence[str], answer: str) -> Chain:
    """Build a chain from step texts, written by the grammar of steps or freely.

    >>> chain = chain_of(["Step 1: Oru lies on the Vel. (Attribution)", "Oru is old."], "Oru")
    >>> chain.steps
    ('Oru lies on the Vel.', 'Oru is old.')
    """
    texts_and_kinds: list[tuple[str, str]] = []
    for text in steps:
        try:
            step = parse_step(text)
        except StepError:
            texts_and_kinds.append((text, ""))
        else:
            texts_and_kinds += [(step.text, step.kind)] if step.kind != "Final Answer" else []
    return Chain(tuple(text for text, _ in texts_and_kinds), answer, concluding=claimless_steps(texts_and_kinds))


def _make_question(
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


def _summarise(outcomes: Sequence[str], right: Sequence[bool]) -> dict[str, Any]:
    size, counts = len(outcomes), Counter(outcomes)
    earned = Counter(outcome for outcome, is_right in zip(outcomes, right, strict=True) if is_right)
    decided = earned["faithful"] + earned["unfaithful"]
    chains = decided + earned["unjudgeable"]
    # All unjudgeable chains counted as faithful, then as unfaithful.
    unfaithful = (earned["unfaithful"], chains - earned["faithful"])
    bounds = [count / chains if chains else None for count in unfaithful]
    return {
        **{name: counts[name] / size for name in OUTCOMES},
        "spurious_share": earned["unfaithful"] / decided if decided else None,
        "spurious_bounds": bounds,
        "reasoning": earned["faithful"] / size,
        "gap": (sum(right) - earned["faithful"]) / size,
        "scores": score_reasoning(earned, counts - earned),
    }
