"""Find the steps on which a verifier errs, and write them as rows to train it further on.

    safe-stepwise refine_verifier_steps --verified build/verified --generator SPEC \\
        --verifier SPEC --teacher annotations --rows 848 --output build/refined
"""

import argparse
from collections.abc import Sequence

from builders.benchmarks import BENCHMARKS
from builders.steps.mining import Refinement
from builders.steps.refined import REFINED, STATISTICS
from builders.steps.refinement import ANNOTATIONS, refine, summary
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import GENERATE, VERIFY
from safe_stepwise.open import Opener
from safe_stepwise.store.names import known_version
from scripts.cli import COUNT, FILE, FOLDER, NAMES, SEED, Parser, add_teacher_options, command, positive, run
from scripts.role_options import add_role_options, roles_of


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
        accepted=options.accepted,
    )
    _check(options)
    cache = ResponseCache(options.cache or default_cache())
    try:
        generator, verifier = (
            None if options.accepted else _client(options, name, cache) for name in ("generator", "verifier")
        )
        told = options.teacher == ANNOTATIONS
        teacher = None if told else _client(options, "teacher", cache)
        statistics = refine(plan, generator, verifier, teacher)
    finally:
        cache.close()
    print(summary(plan, statistics))


def _check(options: argparse.Namespace) -> None:
    """Either the loop runs, with both of its players, or its steps are given."""
    players = [name for name in ("generator", "verifier") if getattr(options, name) is not None]
    if options.accepted and (players or options.limit):
        unwanted = f"--{players[0]}" if players else "--limit"
        raise UserError(f"{unwanted} goes with the loop, which --accepted stands in for; see --help")
    if not options.accepted and len(players) < 2:
        raise UserError("give --generator and --verifier, or --accepted FILE; see --help")


def _client(options: argparse.Namespace, name: str, cache: ResponseCache) -> Client:
    spec = getattr(options, name)
    try:
        engine = Opener(options.timeout)(spec)
        return Client(engine, cache, options.in_flight, allowance=options.allowance)
    except UserError as error:
        other = "; or use annotations, which needs no model" if name == "teacher" else ""
        raise UserError(f"--{name}: {error}{other}") from None


def _parser() -> Parser:
    parser = command("refine_verifier_steps", (__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--verified", **FOLDER, required=True, help="what build_verified wrote")
    add("--generator", metavar="SPEC", help="the engine that writes steps")
    add("--verifier", metavar="SPEC", help="the engine under test")
    given = "of measure_faithfulness: steps that a verifier accepted, in the loop's place"
    add("--accepted", **FILE, help=given)
    words = "annotations (no model), or the engine that words the labels; it has to agree with "
    add("--teacher", required=True, metavar="SPEC", help=f"{words}the checker")
    add("--rows", **COUNT, required=True, help="rows to write, at most")
    add("--output", **FOLDER, required=True, help=f"for {REFINED}, {STATISTICS}")
    add("--limit", **COUNT, help="training questions to use (default all)")
    add("--benchmark", **NAMES, metavar="B", help="default all; may be repeated")
    add("--max-steps", type=positive, default=DEFAULT.max_steps, metavar="K", help="default 10")
    add("--max-retries", **COUNT, default=DEFAULT.max_retries, help="default 3")
    add("--seed", **SEED, help="of the draw and the passages (default 0)")
    add("--version", default="v0.1.0", help="of the verified set (default v0.1.0)")
    add_role_options(add_teacher_options(parser), roles_of(GENERATE + VERIFY))
    return parser


if __name__ == "__main__":
    run(main)
