"""What the benchmarks of the loop have in common: real questions, players at the paper's profile.

SAFE v1, Table 8: 43.8M prompt tokens of the generator and 100.4M of the evaluator over 3,000
questions, 32.9M and 95.4M of them cached. Its figures give no count of calls but "< 15" a question
(Figure 2) and that 59.0% of errors fall on the first three steps (Figure 4). With about 2,300
tokens a generator prompt, 14,600 a question are 6 to 7 calls, each with its verdict: 13 calls.
The players are the symbolic ones, wrong at rates that come to that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import chain, zip_longest
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from evaluators.run.command import remove_passage
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.open import open_engine
from safe_stepwise.players.steps import checker_of
from safe_stepwise.players.symbolic import SymbolicEngine
from safe_stepwise.records import Question

PASSAGES = 10
FILES = {
    "2wikimultihopqa": "2wikimultihopqa_dev.jsonl",
    "hotpotqa": "hotpotqa_dev.jsonl",
    "musique": "musique_dev.jsonl",
}
GENERATOR_ERRORS, VERIFIER_ERRORS = 0.3, 0.02


PAPER = {"generator": (43.8e6 / 3000, 10.9e6 / 3000), "verifier": (100.4e6 / 3000, 5.0e6 / 3000)}
"""Prompt tokens a question, all and computed, by role."""


def questions(number: int) -> list[Question]:
    """Real questions with ten passages, the benchmarks taking turns; those that have a plan."""
    folder = Path(os.environ.get("SAFE_STEPWISE_REAL_DATA", "../shared/data"))
    if not folder.is_dir():
        raise UserError(f"{folder}: no real questions there; set SAFE_STEPWISE_REAL_DATA")
    kept = [list(_readable(folder / file, name, number)) for name, file in FILES.items()]
    turns = [q for q in chain.from_iterable(zip_longest(*kept)) if q is not None]
    return turns[:number]


def _readable(file: Path, benchmark: str, number: int) -> Iterator[Question]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                question = _ten(BENCHMARKS[benchmark].parse(json.loads(line), "validation"))
                checker_of(question)
            except (RowError, EngineError):
                continue
            if len(question.passages) == PASSAGES:
                yield question
                number -= 1
            if not number:
                return


def _ten(question: Question) -> Question:
    others = [n for n, page in enumerate(question.passages, 1) if not page.is_gold]
    for number in others[::-1][: max(0, len(question.passages) - PASSAGES)]:
        question = remove_passage(question, number)
    return question


def player(errors: float, seed: int = 1) -> Callable[[Request], str]:
    """What a symbolic player with this rate of errors says."""
    engine = open_engine(f"symbolic:error_rate={errors},seed={seed}")
    assert isinstance(engine, SymbolicEngine)

    def reply(request: Request) -> str:
        found = engine.answer(request)
        if isinstance(found, EngineError):
            raise found
        return found.text

    return reply
