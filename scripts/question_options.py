"""Options of which questions an evaluation is about; no command itself."""

import argparse

from safe_stepwise.store.names import REJECTS, TEST
from scripts.cli import COUNT, FILE


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
