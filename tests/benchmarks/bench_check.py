"""Processor time of judging steps by their passages alone, beside a plain pass of word overlap.

    python -m tests.benchmarks.bench_check
    python -m tests.benchmarks.bench_check 200       # steps (default 1,000)

Each chain is of a question of its own, of the made-up world with its passages; every third step has
another's tail. ``again`` is a second turn in one process, ``to words`` the ratio to the plain pass,
which asks what share of a step's words its best passage has. Aim: 20 s for 1,000 steps.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from builders.synthetic import Spec, generate
from safe_stepwise.checker import judge_steps
from safe_stepwise.checking.step_reading import content_words, coverage
from safe_stepwise.records import Question
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive

STEPS = 1000
HEADER = ("steps", "CPU s", "again", "ms a step", "words CPU s", "to words", "sound", "error", "undecided")
Chain = tuple[Question, list[str]]


def chains(number: int) -> Iterator[Chain]:
    """Questions with steps that state their facts, of which every third has a wrong tail."""
    asked = [q for q, _ in generate(Spec(rows=number)) if q.evidence]
    tails = [fact.tail for question in asked for fact in question.evidence]
    place = 0
    for question in asked:
        steps = []
        for fact in question.evidence:
            place += 1
            tail = tails[(place * 7) % len(tails)] if place % 3 == 0 else fact.tail
            steps.append(f"The {fact.relation} of {fact.head} is {tail}.")
        yield question, steps


def seconds_of(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def overlap(chosen: Sequence[Chain]) -> list[float]:
    """The share of each step's words in the passage that has most of them."""
    return [
        max(coverage(content_words(step), page.text) for page in question.passages)
        for question, steps in chosen
        for step in steps
    ]


def main(argv: Sequence[str]) -> None:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="?", type=positive, default=STEPS, metavar="STEPS")
    number = parser.parse_args(argv).steps
    chosen = list(islice(chains(number), max(1, number // 2)))
    labels = Counter[str]()

    def judge() -> None:
        labels.clear()
        for question, steps in chosen:
            verdicts = judge_steps(question.question, question.passages, steps)
            labels.update("error" if v.label not in ("sound", "undecided") else v.label for v in verdicts)

    first, again = seconds_of(judge), seconds_of(judge)
    words = seconds_of(lambda: overlap(chosen))
    total = sum(len(steps) for _, steps in chosen)
    figures = (f"{first:.1f}", f"{again:.1f}", f"{1000 * first / total:.1f}", f"{words:.2f}", f"{first / words:.0f}")
    print(text_table([HEADER, (total, *figures, labels["sound"], labels["error"], labels["undecided"])]))


if __name__ == "__main__":
    run(main)
