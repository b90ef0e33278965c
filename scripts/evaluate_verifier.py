"""Measure verifiers on the labelled steps of safe-verifier-steps, baselines beside them.

    safe-stepwise evaluate_verifier --steps build/steps --output build/verifier-quality \\
        --verifier openai:safe-verifier@http://localhost:8000/v1
"""

from collections.abc import Sequence

from builders.steps.first import find_steps
from builders.verified.lookup import annotated
from evaluators.verifier.command import Rooms, run_verifiers
from evaluators.verifier.options import IN_FLIGHT, Options
from safe_stepwise.methods.prompt_sets import PROMPTS
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.records import VERDICT_ORDERS
from safe_stepwise.store.names import TEST
from safe_stepwise.taxonomy import DROPPABLE
from scripts.cli import COUNT, FOLDER, NAMES, SEED, Parser, add_model_options, command, run
from scripts.role_options import add_role_options

ROOMS = Rooms(find_steps, annotated)


def main(arguments: Sequence[str]) -> None:
    """Measure, write, print a summary; raises ``UserError`` for what the user can mend."""
    print(evaluated(Options(**vars(_parser().parse_args(arguments)))))


def evaluated(options: Options) -> str:
    """Measure and write; returns the summary, and raises as `main` does."""
    return run_verifiers(options, ROOMS)


def _parser() -> Parser:
    parser = command("evaluate_verifier", "Measure a verifier on the labelled steps of safe-verifier-steps.")
    add = parser.add_argument
    add("--steps", required=True, metavar="DIR|ID@REV", help="a safe-verifier-steps: folder or Hub")
    add("--verifier", required=True, metavar="SPEC", help="openai:, vllm:, transformers:, symbolic")
    add("--output", **FOLDER, required=True, help="the results go there")
    add("--baseline", **NAMES, metavar="SPEC", help="beside it; repeatable")
    add("--verified", **FOLDER, help="annotations, for symbolic (build_verified)")
    add("--split", default=TEST, metavar="NAME", help="of the set (default test)")
    lacking = "with twelve labels: rows that lack evidence, too"
    add("--incomplete-evidence", action="store_true", help=lacking)
    learnt = "that the prompt lacks, of a served verifier that learnt so (adapters here say it)"
    add("--drop-category", choices=DROPPABLE, help=learnt)
    asked = "of the prompts, for a model of which nothing is known (ours say what they learnt)"
    add("--prompts", choices=PROMPTS, help=f"the set {asked}")
    add("--verdict-order", choices=VERDICT_ORDERS, help=f"what a verdict begins with, {asked}")
    add("--limit", **COUNT, help="the first N rows (default: all)")
    add_model_options(parser, IN_FLIGHT)
    add_role_options(parser, [ROLE], [ROLE])
    add("--seed", **SEED, help="of the bootstrap (default 0)")
    return parser


if __name__ == "__main__":
    run(main)
