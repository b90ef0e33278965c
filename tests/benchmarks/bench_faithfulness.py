"""Processor time of judging chains, by rule and retrieval, and what of it a kept text saves.

    python -m tests.benchmarks.bench_faithfulness
    python -m tests.benchmarks.bench_faithfulness 300      # chains (default 3,000)

Each chain is of a question of its own, of the made-up world with its passages, so that nothing but
a passage is read twice: an evaluation of several methods shares more. Every third tells a fact with
another's tail, every third tells its facts backwards. ``again`` is a second turn in one process.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from builders.synthetic import Spec, generate
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Grounds, Rule, grounds_of
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.retrieval import RETRIEVALS, check_installed
from safe_stepwise.errors import UserError
from safe_stepwise.records import Question, Triple
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive

CHAINS = 3000
HEADER = ("rule", "retrieval", "chains", "CPU s", "again", "ms a chain", "to words", "faithful")


def cases(number: int) -> Iterator[tuple[Grounds, Chain]]:
    """Questions and chains: told as the graph has it, with a false tail, backwards, in turns."""
    asked = [q for q, _ in generate(Spec(rows=2 * number)) if q.evidence]
    for place, question in enumerate(asked[:number]):
        facts = [*question.evidence]
        if place % 3 == 1:
            facts[-1] = replace(facts[-1], tail=asked[place - 1].evidence[-1].tail)
        told = tuple(map(sentence, facts[::-1] if place % 3 == 2 else facts))
        yield grounds_of(question, _beside(asked, place)), Chain(told, question.answer)


def _beside(asked: Sequence[Question], place: int) -> Iterator[Triple]:
    """Facts of other questions: what a label's graph has besides the path."""
    return (t for question in asked[max(0, place - 6) : place] for t in question.evidence)


def sentence(fact: Triple) -> str:
    """A fact as a step tells it."""
    return f"According to the passage, the {fact.relation} of {fact.head} is {fact.tail}."


def measured(judge: Callable[[], list[ChainVerdict]]) -> tuple[float, float, list[ChainVerdict]]:
    """Processor seconds of a first and a second turn, and what it gave, which must be one."""
    start = time.process_time()
    first = judge()
    between = time.process_time()
    if judge() != first:
        raise AssertionError("a second turn judges otherwise")
    return between - start, time.process_time() - between, first


def main(argv: Sequence[str]) -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="?", type=positive, default=CHAINS, metavar="CHAINS")
    args = parser.parse_args(argv)
    chains = list(cases(args.chains))
    rows: list[tuple[object, ...]] = []
    unit = 0.0
    for rule, name in (("paper", "words"), ("paper", "embeddings"), ("house", "")):
        if name == "embeddings" and not _have_embeddings():
            continue
        first, again, found = measured(lambda: _all(chains, rule, name))  # noqa: B023
        unit = unit or first
        share = sum(verdict.path == "faithful" for verdict in found) / len(found)
        figures = (f"{first:.1f}", f"{again:.1f}", f"{1000 * first / len(found):.2f}")
        rows.append((rule, name, len(found), *figures, f"{first / unit:.1f}", f"{share:.3f}"))
    print(text_table([HEADER, *rows]))


def _all(chains: Sequence[tuple[Grounds, Chain]], rule: Rule, name: str) -> list[ChainVerdict]:
    return [judge_chain(grounds, chain, rule, RETRIEVALS.get(name)) for grounds, chain in chains]


def _have_embeddings() -> bool:
    try:
        check_installed()
    except UserError:
        return False
    return True


if __name__ == "__main__":
    run(main)
