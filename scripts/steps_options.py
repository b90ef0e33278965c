"""What a verifier set is composed of: options of the command that builds one."""

import argparse
from typing import Any

from builders.benchmarks import BENCHMARKS
from builders.steps.composition import ROWS_PER_QUESTION, Composition
from builders.steps.first import read_first
from safe_stepwise.errors import UserError, one_of
from scripts.cli import COUNT, FILE, NAMES, Parser, share

OTHERS = ("questions", "rows_per_question", "ideal", "test_share", "test_split", "benchmark", "pool")
"""Options that say what is in a set, unless it is to have the rows of another."""


def add_composition(parser: Parser) -> None:
    """Add them."""
    rows = parser.add_mutually_exclusive_group(required=True)
    rows.add_argument("--rows", **COUNT, help="rows to choose; copies are then taken out of test")
    made = "another build (DIR or ID@REV), whose rows are made anew by this teacher, as far as it can"
    rows.add_argument("--rows-of", metavar="STEPS", help=made)
    add = parser.add_argument
    add("--questions", **COUNT, help="of exactly N questions (default: any)")
    most = f"at most N rows of a question (default {ROWS_PER_QUESTION})"
    add("--rows-per-question", **COUNT, help=most)
    add("--ideal", type=share, metavar="SHARE", help="of correct steps (0.34)")
    apart = parser.add_mutually_exclusive_group().add_argument
    apart("--test-share", type=share, metavar="SHARE", help="of rows for test (0.1)")
    own = "the benchmarks' questions of this split for test, as validation"
    apart("--test-split", metavar="SPLIT", help=own)
    some = "one of those in --verified; may be repeated (default: all of them)"
    add("--benchmark", **NAMES, metavar="NAME", help=some)
    add("--refined", **FILE, help="of refine_verifier_steps: rows that join in")
    others = "of the questions that could not be verified instead; nothing checks their steps"
    add("--unverifiable", action="store_true", help=others)
    tried = "try N questions of each split (default: one for 3 rows, 200 at least)"
    add("--pool", **COUNT, help=tried)
    add("--seed", type=int, metavar="N", help="of every draw (default 0)")


def composition_of(options: argparse.Namespace) -> dict[str, Any]:
    """What `add_composition` was given, as fields of a `StepsBuild`."""
    if options.rows_of is not None:
        return _as_another(options)
    if options.unverifiable and options.refined:
        raise UserError("--refined rows are of verified questions; leave it out, or --unverifiable")
    named = {name: getattr(options, name) for name in ("ideal", "rows_per_question")}
    said = {name: value for name, value in named.items() if value is not None}
    refined = None if options.refined else 0
    composition = Composition(options.rows, options.questions, refined=refined, **said)
    share = {} if options.test_share is None else {"test_share": options.test_share}
    return {
        "composition": composition,
        "benchmarks": tuple(one_of(name, BENCHMARKS, "--benchmark") for name in options.benchmark),
        "refined": options.refined,
        "test_split": options.test_split,
        "unverifiable": options.unverifiable,
        "pool": options.pool,
        "seed": options.seed or 0,
        **share,
    }


def _as_another(options: argparse.Namespace) -> dict[str, Any]:
    for name in (*OTHERS, "unverifiable", "seed"):
        said = getattr(options, name)
        if said is not None and said is not False and said != []:
            raise UserError(
                f"--rows-of takes all but the teacher from the first build; leave out --{name.replace('_', '-')}"
            )
    return {**read_first(options.rows_of).terms, "refined": options.refined}
