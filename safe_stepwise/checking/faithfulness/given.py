"""Chains given as text, judged by evidence given as triples: the metric's config ``faithfulness``.

What `evaluators.faithfulness` measures of a whole evaluation, for steps and answers from anywhere.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from safe_stepwise.checking.faithfulness.chains import Chain, ChainVerdict, Rule, verdict_row
from safe_stepwise.checking.faithfulness.grounds import grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.records import Passage, Question, Triple
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, parse_step
from safe_stepwise.store.codec import passage_of

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
    rules = RULES[one_of(rule, RULES, "rule")]
    retrieves = RETRIEVALS[one_of(retrieval, RETRIEVALS, "retrieval")]
    if sigma is not None and not 0 <= sigma <= 1:
        raise UserError(f"sigma is {sigma!r}: give a number from 0 to 1")
    pages = [()] * len(questions) if passages is None else passages
    if len({len(column) for column in (questions, steps, answers, evidence, references, pages)}) > 1:
        raise UserError("columns of several lengths: give as many of each as there are questions")
    asked = [_question(*row) for row in zip(questions, evidence, references, pages, strict=True)]
    chains = [chain_of(texts, answer) for texts, answer in zip(steps, answers, strict=True)]
    right = [bool(exact_match(chain.answer, q.accepted)) for chain, q in zip(chains, asked, strict=True)]
    rows = list(zip(map(grounds_of, asked), chains, strict=True))
    shares: dict[str, Any] = {"exact_match": sum(right) / len(right)}
    for name in rules:
        verdicts = [
            judge_chain(known, chain, name, retrieves, sigma) if chain.steps else None for known, chain in rows
        ]
        shares[name] = _summed(verdicts, right)
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
        id="",
        benchmark="",
        split="",
        question=text,
        answer=answer,
        aliases=tuple(aliases),
        passages=tuple(page if isinstance(page, Passage) else passage_of(page) for page in passages),
        evidence=tuple(Triple(head, relation, tail) for head, relation, tail in evidence),
    )


def _summed(verdicts: Sequence[ChainVerdict | None], right: Sequence[bool]) -> dict[str, Any]:
    outcomes = [verdict.path if verdict else "unstructured" for verdict in verdicts]
    size, counts = len(outcomes), Counter(outcomes)
    earned = Counter(came for came, is_so in zip(outcomes, right, strict=True) if is_so)
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
        "verdicts": [verdict_row(verdict) if verdict else None for verdict in verdicts],
    }
