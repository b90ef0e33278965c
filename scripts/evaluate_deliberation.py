"""Answer questions over a knowledge graph by relation paths, and score the answers.

    safe-stepwise evaluate_deliberation --questions questions.jsonl --kb kb.txt \\
        --paths transformers:MODEL+ADAPTER --generator SPEC --output build/deliberation
"""

from collections.abc import Sequence
from pathlib import Path

from builders.paths.questions import Questions
from builders.paths.relation_readers import known_benchmark
from evaluators.deliberation.command import run_deliberation
from evaluators.deliberation.options import Options
from scripts.cli import command, run
from scripts.deliberation_options import options_of


def main(arguments: Sequence[str]) -> None:
    """Evaluate and print a summary; raises ``UserError`` for what the user can mend."""
    parser = command("evaluate_deliberation", (__doc__ or "").partition("\n")[0])
    print(evaluated(options_of(parser, arguments)))


def evaluated(options: Options) -> str:
    """Evaluate; returns the summary, and raises as `main` does."""
    return run_deliberation(options, _rows)


def _rows(options: Options, work: Path) -> Questions:
    benchmark = known_benchmark(options.benchmark)
    return Questions(benchmark, options.questions, options.split, options.kb, options.max_hops, work)


if __name__ == "__main__":
    run(main)
