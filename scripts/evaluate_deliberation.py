"""Answer questions over a knowledge graph by relation paths, and score the answers.

    python -m scripts.evaluate_deliberation --questions questions.jsonl --kb kb.txt \\
        --paths transformers:MODEL+ADAPTER --generator SPEC --output build/deliberation
"""

from collections.abc import Sequence
from contextlib import closing

from builders.paths.relation_readers import READERS
from evaluators.deliberation.command import carry_out
from evaluators.deliberation.contending import CANDIDATES, Proposing, contenders, engines_of
from evaluators.deliberation.results import OWNED
from evaluators.deliberation.running import Plan
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import TRIES, Client
from safe_stepwise.errors import one_of
from safe_stepwise.methods.deliberation import Deliberating
from safe_stepwise.open import Opener
from safe_stepwise.store.locks import exclusive
from scripts.cli import Parser, command, run
from scripts.deliberation_options import add_options
from scripts.deliberation_source import source_of


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    options = _parser().parse_args(arguments)
    options.benchmark = one_of(options.benchmark, READERS, "--benchmark")
    opener = Opener(options.timeout)
    generating = None if options.generator is None else opener(options.generator)
    proposing = {spec: opener(spec) for spec in engines_of(options.paths)}
    candidates = options.candidates or (CANDIDATES if options.generator else 1)
    parts = options.introspection, options.predefined_constraints, options.feedback
    loop = Deliberating(*parts, most_ends=options.most_ends)
    with (
        exclusive(options.output, "evaluation", OWNED),
        closing(ResponseCache(options.cache or default_cache())) as cache,
    ):
        source, learnt, notes = source_of(options)
        how = Proposing(candidates, not options.free, options.labels, options.seed)
        asking = (cache, options.in_flight, TRIES, options.allowance)
        found = contenders(
            *(options.paths, how, source.asked, learnt),
            {spec: Client(engine, *asking) for spec, engine in proposing.items()},
        )
        plan = Plan(
            source,
            found,
            options.output,
            None if generating is None else Client(generating, *asking),
            loop,
            options.at_once,
            options.seed,
            {**notes, "candidates": candidates, "constrained": how.constrained},
        )
        print(carry_out(plan))


def _parser() -> Parser:
    parser = command("evaluate_deliberation", (__doc__ or "").partition("\n")[0])
    add_options(parser)
    return parser


if __name__ == "__main__":
    run(main)
