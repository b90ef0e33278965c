"""Answer questions over a knowledge graph by relation paths, and score the answers.

    safe-stepwise evaluate_deliberation --questions questions.jsonl --kb kb.txt \\
        --paths transformers:MODEL+ADAPTER --generator SPEC --output build/deliberation
"""

from collections.abc import Sequence
from contextlib import closing

from builders.paths.questions import Questions
from builders.paths.relation_readers import known_benchmark
from evaluators.deliberation.command import carry_out
from evaluators.deliberation.contending import contenders, engines_of
from evaluators.deliberation.options import Options
from evaluators.deliberation.results import GRAPH, OWNED
from evaluators.deliberation.running import Plan
from evaluators.deliberation.source import chosen
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import TRIES, Client
from safe_stepwise.open import Opener
from safe_stepwise.store.files import remove_folder
from safe_stepwise.store.locks import exclusive
from scripts.cli import command, run, warn
from scripts.deliberation_options import options_of


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    parser = command("evaluate_deliberation", (__doc__ or "").partition("\n")[0])
    print(evaluated(options_of(parser, arguments)))


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises as `main` does."""
    read = known_benchmark(options.benchmark), options.questions, options.split, options.kb
    questions = Questions(*read, options.max_hops, options.output / GRAPH)
    opener = Opener(options.timeout)
    with (
        exclusive(options.output, "evaluation", OWNED),
        closing(ResponseCache(options.cache or default_cache())) as cache,
    ):
        asked = chosen(options, questions)
        if asked.note:
            warn(asked.note)
        # What is wrong with the files is said by now, before an engine lacks its extra.
        asking = (cache, options.in_flight, TRIES, options.allowance)
        generating = Client(opener(options.generator), *asking) if options.generator else None
        clients = {spec: Client(opener(spec), *asking) for spec in engines_of(options.paths)}
        how = options.proposing
        source, notes = asked.joined(options.convention)
        plan = Plan(
            source,
            contenders(options.paths, how, source.asked, asked.learnt, clients),
            options.output,
            generating,
            options.loop,
            options.at_once,
            options.seed,
            {**notes, "candidates": how.candidates, "constrained": how.constrained},
            {**options.conditions, **asked.learnt_from},
        )
        said = carry_out(plan)
        remove_folder(options.output / GRAPH)
        return said


if __name__ == "__main__":
    run(main)
