"""Measure whether a model tells valid relation paths from corrupted ones (safe-path-probe).

    safe-stepwise evaluate_paths --probe build/paths --engine openai:MODEL@http://host/v1 \\
        --output build/paths-results --prompt zero_shot --prompt few_shot_reasoning
"""

from collections.abc import Sequence

from evaluators.paths.command import IN_FLIGHT, Options, run_paths
from safe_stepwise.methods.paths import WAYS, roles
from safe_stepwise.store.names import TEST
from scripts.cli import COUNT, FOLDER, NAMES, SEED, Parser, add_model_options, command, run
from scripts.role_options import add_role_options


def main(arguments: Sequence[str]) -> None:
    """Measure, write, print a summary; raises ``UserError`` for what the user can mend."""
    print(run_paths(Options(**vars(_parser().parse_args(arguments)))))


def _parser() -> Parser:
    parser = command("evaluate_paths", "Measure a model's verdicts on relation paths.")
    add = parser.add_argument
    add("--probe", **FOLDER, required=True, help="what build_path_probe wrote")
    add("--engine", required=True, metavar="SPEC", help="openai:, vllm:, transformers:, symbolic")
    add("--output", **FOLDER, required=True, help="the results go there")
    ways = f"{', '.join(WAYS)}; repeatable (default {WAYS[0]})"
    add("--prompt", **NAMES, metavar="NAME", help=ways)
    add("--split", default=TEST, metavar="NAME", help="of the probe (default test)")
    add("--limit", **COUNT, help="the first N rows, a draw (default: all)")
    add_model_options(parser, IN_FLIGHT)
    add_role_options(parser, roles())
    add("--seed", **SEED, help="of the bootstrap (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
