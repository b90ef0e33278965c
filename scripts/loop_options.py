"""Options of the loop: its limits and rules, and where the papers choose otherwise than we do."""

import argparse
from collections.abc import Mapping

from safe_stepwise.methods.asking import SAMPLING, Iterating
from safe_stepwise.methods.limits import DEFAULT, FEEDBACK_FORMS
from scripts.cli import numbers, words

CHOICES: Mapping[str, str] = {
    "tries-total": "N counts tries at a step; ours: retries after the first (the papers say both)",
    "accepted-diagnosis": "tell why a step passed (v1, Figure 11); ours: only what to do next",
    "last-rejected": "show the last rejected try (v1, Figure 11); ours: all tries at the step",
    "answer-when-told": "ask for the final answer alone once the guidance does (v1, Figures 12 "
    "and 13); ours: when no step is left",
}
"""By the names of the loop's options, with dashes."""


def add_loop_options(parser: argparse.ArgumentParser) -> None:
    """Add them; of each several values may be given, which are all tried."""
    add = parser.add_argument_group("the loop").add_argument
    K, N = DEFAULT.max_steps, DEFAULT.max_retries
    add("--max-steps", action="extend", type=numbers(1), metavar="K[,K]", help=f"default {K}")
    add("--max-retries", action="extend", type=numbers(0), metavar="N[,N]", help=f"default {N}")
    rules = words(("accept", "drop"), "--on-exhausted")
    add("--on-exhausted", action="extend", type=rules, metavar="R[,R]", help="accept, drop")
    forms = words(FEEDBACK_FORMS, "--feedback")
    add("--feedback", action="extend", type=forms, metavar="F[,F]", help=", ".join(FEEDBACK_FORMS))
    add("--option", action="append", metavar="NAME=VALUE[,VALUE]", help="another of a method's own")
    told = "each has a --no-, and ours is the default"
    add = parser.add_argument_group("as the papers have it, not we", told).add_argument
    everything = "all of these and --examples all, but for what is said otherwise beside it"
    add("--as-published", action="store_true", help=everything)
    for name, meaning in CHOICES.items():
        dest = name.replace("-", "_")
        add(f"--{name}", action="append_const", dest=dest, const=True, help=meaning)
        add(f"--no-{name}", action="append_const", dest=dest, const=False, help=argparse.SUPPRESS)
    blind = "the judge goes by the answers alone (v1, Figure 14); ours: it sees the question"
    add("--judge-without-question", action=argparse.BooleanOptionalAction, help=blind)


def add_prompting_options(parser: argparse.ArgumentParser) -> None:
    """Add those of the prompting methods and machines, likewise."""
    add = parser.add_argument_group("prompting methods").add_argument
    M, R = Iterating().iterations, Iterating().revisions
    add("--iterations", action="extend", type=numbers(1), metavar="M[,M]", help=f"default {M}")
    add("--revisions", action="extend", type=numbers(0), metavar="R[,R]", help=f"default {R}")
    add("--samples", action="extend", type=numbers(1), metavar="S[,S]", help="put to the vote")
    ways = words(SAMPLING, "--sampling")
    add("--sampling", action="extend", type=ways, metavar="W[,W]", help=", ".join(SAMPLING))
    asked = "also ask for supporting facts and triples (SG-FSM's Setting 2)"
    add("--evidence", action="store_const", const=(True,), help=asked)
