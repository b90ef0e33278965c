"""``safe-stepwise score``: answers against references, as each benchmark's official scorer does."""

from pathlib import Path
from typing import Any

import click

from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.reading import rows_of
from safe_stepwise.errors import UserError
from safe_stepwise.metric.compute import answers_given
from safe_stepwise.records import canonical_json
from safe_stepwise.scoring import BENCHMARKS


@click.command("score", epilog=EXIT_STATUS)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--benchmark", required=True, metavar="B", help=f"whose scorer counts: {', '.join(BENCHMARKS)}")
@click.option("--judge", metavar="SPEC", help="a model that judges, as in openai:MODEL@http://HOST:8000/v1")
@click.option(
    "--judge-repeats",
    type=click.IntRange(1),
    default=1,
    help="verdicts an answer, and how well they agree (default 1)",
)
@click.option("--skip-exact", is_flag=True, help="do not ask about exact matches")
@click.option("--cache", type=click.Path(dir_okay=False, path_type=Path), help="the judge's replies")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="for one call to the judge's server",
)
def score(file: Path, benchmark: str, judge: str | None, **options: Any) -> None:
    """Score the answers of FILE: exact match, F1, and accuracy where a judge is named.

    FILE is JSONL, or a JSON list, of objects with "prediction" (null: none was given),
    "references" (a text or a list of them; or "answer" and "aliases") and, for the judge,
    "question". Prints one JSON object, shares from 0 to 1; "unscored" counts answers without a
    readable verdict, which are neither right nor wrong.
    """
    if judge is None and options["judge_repeats"] > 1:
        raise UserError("--judge-repeats is how often a judge is asked: name one by --judge")
    predictions, references, questions = [], [], []
    for where, row in rows_of(file):
        if "prediction" not in row:
            raise UserError(f"{where}: lacks its prediction (null where none was given)")
        accepted = _texts(row.get("references"), f"{where}: references")
        if not accepted and "answer" in row:
            aliases = _texts(row.get("aliases"), f"{where}: aliases")
            accepted = [*_texts(row["answer"], f"{where}: answer"), *aliases]
        if not accepted:
            raise UserError(f"{where}: lacks its references")
        if not isinstance(row["prediction"], str | None):
            raise UserError(f"{where}: prediction is neither a text nor null")
        predictions.append(row["prediction"])
        references.append(accepted)
        questions.append(row.get("question") or "")
    asked = questions if any(questions) else None
    found = answers_given(predictions, references, benchmark=benchmark, judge=judge, questions=asked, **options)
    print(canonical_json(found))


def _texts(value: Any, what: str) -> list[str]:
    """A text, or a list of them, as a list; ``UserError`` for anything else."""
    found = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
        raise UserError(f"{what} is neither a text nor a list of texts")
    return found
