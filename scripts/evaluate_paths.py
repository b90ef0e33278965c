"""Measure whether a model tells valid relation paths from corrupted ones (safe-path-probe).

    safe-stepwise evaluate_paths --probe build/paths --engine openai:MODEL@http://host/v1 \\
        --output build/paths-results --prompt zero_shot --prompt few_shot_reasoning
"""

from collections.abc import Sequence
from contextlib import closing

from evaluators.asking import spent
from evaluators.paths import probe_set, runs
from evaluators.paths.page import summary
from evaluators.paths.report import OWNED, PAGE, files, results, write
from safe_stepwise.engines import client as asking
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.errors import one_of
from safe_stepwise.methods.paths import WAYS, roles
from safe_stepwise.open import Opener
from safe_stepwise.store.locks import exclusive
from safe_stepwise.store.names import TEST
from scripts.cli import COUNT, FOLDER, NAMES, SEED, Parser, add_model_options, command, run
from scripts.role_options import add_role_options

IN_FLIGHT = 64


def main(arguments: Sequence[str]) -> None:
    """Measure, write, print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    said = [one_of(way, WAYS, "--prompt") for way in options.prompt] or WAYS[:1]
    ways = [way for way in WAYS if way in said]
    opener = Opener(options.timeout)
    opener(options.engine)
    probe = probe_set.find_probe(options.probe)
    cases = probe_set.read_cases(probe, options.split, options.limit)
    about = {**probe_set.about(probe, options.split), "limit": options.limit}
    made, told = list[runs.PathRun](), list[str]()
    with exclusive(options.output, owned=OWNED), closing(ResponseCache(options.cache or default_cache())) as cache:
        for way in ways:
            how = (cache, options.in_flight, asking.TRIES, options.allowance)
            client = asking.Client(opener(options.engine), *how)
            made.append(runs.run(client, cases, way))
            told += spent(client, way, "stand in no accuracy")
        found = results(about, cases, made, options.seed)
        write(options.output, files(found, cases, made))
    print("\n".join([summary(found), "", str(options.output / PAGE), "", *told]))


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
