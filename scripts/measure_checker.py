"""Score the graph-based checker on injected errors it was not developed on."""

from dataclasses import dataclass
from pathlib import Path

from builders.steps.making import UNSEEN, count_verdicts
from builders.verified.lookup import labelled
from safe_stepwise.store.tables import text_table
from scripts.cli import command, run
from studies.labels.agreement import build_checker_table, summarize_ideal


@dataclass(frozen=True, kw_only=True)
class Options:
    verified: Path
    seed: int = 1


@command
def main(options: Options) -> None:
    """Print a table for each benchmark."""
    for benchmark, rows in labelled(options.verified):
        pairs, ideal = count_verdicts(rows, options.seed, UNSEEN)
        print(f"{text_table(build_checker_table(benchmark, pairs))}\n{summarize_ideal(ideal)}\n")


if __name__ == "__main__":
    run(main)
