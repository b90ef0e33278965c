"""Find the steps on which a verifier errs, and write them as rows to train it further on.

    python -m scripts.refine_verifier_steps --verified build/verified --generator SPEC \\
        --verifier SPEC --teacher annotations --rows 848 --output build/refined
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from builders.benchmarks import BENCHMARKS
from builders.steps.mining import Refinement
from builders.steps.refined import REFINED, STATISTICS
from builders.steps.refinement import RefinementStatistics, refine
from builders.steps.relabelling import ANNOTATIONS
from safe_stepwise.engines.cache import ResponseCache
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import DEFAULT, Limits
from safe_stepwise.open import open_engine
from safe_stepwise.store.names import known_version
from scripts.cli import Parser, one_of, positive, run, table
from scripts.teacher import add_teacher_options, default_cache

SHOWN = 15
"""Patterns in the summary; all of them are in the record."""

EXAMPLES = """
examples:
  # no model: generator and verifier play their parts, wrong in 3 of 10 steps (simulated)
  python -m scripts.build_verified --benchmark synthetic --input rows=500,seed=1 --split train \\
      --teacher annotations --output build/synthetic
  python -m scripts.refine_verifier_steps --verified build/synthetic --limit 200 \\
      --generator symbolic:error_rate=0.3,seed=1 --verifier symbolic:error_rate=0.3,seed=2 \\
      --teacher annotations --rows 100 --output build/refined

  # a verifier under training, behind a server that holds the generator and the adapter
  python -m scripts.refine_verifier_steps --verified build/verified --rows 848 \\
      --generator openai:Qwen/Qwen3-8B@http://localhost:8000/v1 \\
      --verifier openai:safe-verifier@http://localhost:8000/v1 \\
      --teacher openai:openai/gpt-oss-120b@http://localhost:8001/v1 --output build/refined

Only training questions are used, and none that is nearly a question of the evaluation sample. A run
that was stopped goes on where it was when started again, from the replies in --cache.

exit status: 0 done, 2 something to mend (one line says what), 130 interrupted, 1 a fault of ours
"""


def main(arguments: Sequence[str]) -> None:
    """Mine and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    plan = Refinement(
        verified=options.verified,
        output=options.output,
        rows=options.rows,
        limit=options.limit,
        benchmarks=tuple(one_of(name, BENCHMARKS, "--benchmark") for name in options.benchmark),
        limits=Limits(options.max_steps, options.max_retries),
        version=known_version(options.version),
        seed=options.seed,
        at_once=options.in_flight,
    )
    cache = ResponseCache(options.cache or default_cache())
    try:
        generator, verifier = (_client(options, name, cache) for name in ("generator", "verifier"))
        told = options.teacher == ANNOTATIONS
        teacher = None if told else _client(options, "teacher", cache)
        statistics = refine(plan, generator, verifier, teacher)
    finally:
        cache.close()
    print(summary(plan, statistics))


def _client(options: argparse.Namespace, name: str, cache: ResponseCache) -> Client:
    spec = getattr(options, name)
    try:
        return Client(open_engine(spec), cache, options.in_flight)
    except UserError as error:
        other = "; or use annotations, which needs no model" if name == "teacher" else ""
        raise UserError(f"--{name}: {error}{other}") from None


def summary(plan: Refinement, found: RefinementStatistics) -> str:
    """What was found, where it is."""
    header = ("verifier says", "checker says", "step", "plan", "differ", "of", "rate", "rows")
    clusters = [
        (
            c["verifier"],
            c["checker"],
            c["step_kind"],
            c["plan"],
            c["disagreements"],
            c["checked"],
            f"{c['mining_rate']:.1%}",
            c["rows"],
        )
        for c in found.clusters
    ]
    counts = ", ".join(
        f"{number:,} {what}" for what, number in [*found.questions.items(), *found.tries.items()]
    )
    lines = [table([header, *clusters[:SHOWN]]), ""] if clusters else []
    if len(clusters) > SHOWN:
        lines.insert(1, f"... and {len(clusters) - SHOWN:,} patterns more")
    lines.append(
        f"mining rate: {found.mining_rate:.1%} ({found.disagreements:,} of {found.checked:,} steps "
        f"that the checker could judge)"
    )
    lines.append(f"questions and tries: {counts}")
    lines += [f"refused, {reason}: {number:,}" for reason, number in found.refused.items()]
    if found.rows < found.wanted:
        lines.append(f"{found.rows:,} rows instead of {found.wanted:,}: there are no more cases")
    if found.simulated:
        lines.append(
            "simulated: an engine without a model took part, so no number here is a result"
        )
    lines.append(f"\n{plan.output / REFINED}: {found.rows:,} rows by {found.teacher}")
    lines.append(f"{plan.output / STATISTICS}: all numbers")
    return "\n".join(lines)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m scripts.refine_verifier_steps",
        description=(__doc__ or "").partition("\n")[0],
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--verified", required=True, type=Path, metavar="DIR", help="what build_verified wrote")
    add("--generator", required=True, metavar="SPEC", help="the engine that writes steps")
    add("--verifier", required=True, metavar="SPEC", help="the engine under test")
    add(
        "--teacher",
        required=True,
        metavar="SPEC",
        help="annotations (no model), or the engine that words the labels; it has to agree with "
        "the checker",
    )
    add("--rows", required=True, type=positive, metavar="N", help="rows to write, at most")
    add("--output", required=True, type=Path, metavar="DIR", help=f"for {REFINED}, {STATISTICS}")
    add("--limit", type=positive, metavar="N", help="training questions to use (default all)")
    add(
        "--benchmark", action="append", default=[], metavar="B", help="default all; may be repeated"
    )
    add("--max-steps", type=positive, default=DEFAULT.max_steps, metavar="K", help="default 10")
    add("--max-retries", type=positive, default=DEFAULT.max_retries, metavar="N", help="default 3")
    add("--seed", type=int, default=0, metavar="N", help="of the draw and the passages (default 0)")
    add("--version", default="v0.1.0", help="of the verified set (default v0.1.0)")
    add_teacher_options(parser)
    return parser


if __name__ == "__main__":
    run(main)
