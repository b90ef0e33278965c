"""Measure HotpotQA graphs and ideal trajectories against R4C's gold derivations.

python -m scripts.compare_derivations                     # the real data beside the checkout
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from builders.steps.making import AnnotationsMaker
from builders.verified.lookup import verified_rows
from builders.verified.real_data import REAL_DATA, SPLITS
from evaluators.derivations import HEADER, measured, read_derivations
from safe_stepwise.checking.plans import MOST_GOLD
from safe_stepwise.records import Label, Question, Step
from safe_stepwise.store.tables import table
from scripts.cli import command, run


def main(arguments: Sequence[str]) -> None:
    """Print the table; raises ``UserError`` where the data is not there."""
    parser = command(
        "compare_derivations", "Compare HotpotQA graphs and ideal trajectories with R4C's gold derivations."
    )
    parser.add_argument("--data", type=Path, default=REAL_DATA, help="hotpotqa_*.jsonl and r4c_derivations.jsonl")
    print(table([HEADER, *of_hotpotqa(parser.parse_args(arguments).data)]))


def of_hotpotqa(data: Path) -> list[tuple[object, ...]]:
    """Rows of the table, from the files in a folder."""
    derivations = read_derivations(data / "r4c_derivations.jsonl")
    files = ((data / f"hotpotqa_{part}.jsonl", split) for part, split in SPLITS.items())
    rows = (row for f, split in files for row in verified_rows("hotpotqa", f, split, derivations.keys()))
    return measured(rows, derivations, _ideal)


def _ideal(question: Question, label: Label) -> Iterator[Step]:
    made = AnnotationsMaker().make(question, label)
    if len(question.gold) > MOST_GOLD:
        print(f"no ideal trajectory: {question.id}: {made.refused[0].reason}")
    return (row.step for row in made.rows if row.origin == "ideal")


if __name__ == "__main__":
    run(main)
