"""Which questions an evaluation is about: its options, and how they are read."""

import argparse
from dataclasses import replace

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import Questions, read, without_drawn_gold
from evaluators.run.options import Options
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.scoring import CUSTOM
from safe_stepwise.store.files import write_parts
from safe_stepwise.store.names import REJECTS, TEST
from scripts.cli import COUNT, FILE, warn


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    add = parser.add_argument_group("which questions").add_argument
    add("--benchmark", action="append", metavar="B", help="default all; repeatable")
    add("--split", choices=("train", "validation", TEST), help=f"default {TEST}, the sample")
    add("--limit", **COUNT, help="questions a benchmark (default all)")
    bad = f"a row that can't be read stops the run, or is kept apart in DIR/{REJECTS}"
    choices = ("stop", "keep", "skip")
    add("--on-error", choices=choices, help=f"{bad}; skip is an older word for keep")
    add("--drop-gold", action="store_true", help="without one gold passage of each, drawn")
    add("--passages", choices=("10", "all"), help="of rows with more than ten (default 10)")
    add("--derivations", **FILE, help="R4C's, for HotpotQA: what prompting methods find is compared")
    add("--corpus", **FILE, help="passages to search when evidence is missing")


def questions_of(options: Options) -> Questions:
    """The questions that options choose; raises ``UserError`` where there are none to ask."""
    found = read(
        options.questions,
        [one_of(name, [*BENCHMARKS, CUSTOM], "--benchmark") for name in options.benchmark],
        options.split,
        options.limit,
        options.seed,
        skip=options.on_error != "stop",
        planned=bool(options.symbolic),
        whole=options.passages == "all",
    )
    if found.skipped:
        kept = f"rows kept apart in {REJECTS}: {len(found.skipped)}"
        warn(f"{kept}, the first: {found.skipped[0]}")
    if not any(question.is_annotated for question in found.questions):
        options.refuse_symbolic()
    if not options.drop_gold:
        return found
    if without := sum(not question.gold for question in found.questions):
        told = f"--drop-gold: {without} of {len(found.questions)} questions mark no gold passage"
        if without == len(found.questions):
            raise UserError(f'{told}; give passages "is_gold": true')
        warn(f"{told}, and stay whole")
    less = tuple(without_drawn_gold(question, options.seed) for question in found.questions)
    return replace(found, questions=less)


def keep_rejects(options: Options, asked: Questions) -> None:
    """Write the rows that could not be read beside the results, as a build does."""
    if asked.rejects:
        write_parts(options.output / REJECTS, asked.rejects)
    elif options.on_error != "stop":
        (options.output / REJECTS).unlink(missing_ok=True)
