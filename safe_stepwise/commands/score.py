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
@click.option(
    "--benchmark", required=True, metavar="B", help=f"whose scorer counts: {', '.join(BENCHMARKS)}"
)
@click.option(
    "--judge", metavar="SPEC", help="a model that judges, as in openai:MODEL@http://HOST:8000/v1"
)
@click.option(
    "--judge-repeats",
    type=click.IntRange(1),
    default=1,
    help="verdicts an answer, and how well they agree (default 1)",
)
@click.option("--skip-exact", is_flag=True, help="do not ask about exact matches")
@click.option(
    "--cache", type=click.Path(dir_okay=False, path_type=Path), help="the judge's replies"
)
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
    predictions, references, questions = [], [], []
    for where, row in rows_of(file):
        if "prediction" not in row:
            raise UserError(f"{where}: lacks its prediction (null where none was given)")
        accepted = row.get("references")
        if accepted is None and "answer" in row:
            accepted = [row["answer"], *(row.get("aliases") or [])]
        if not accepted:
            raise UserError(f"{where}: lacks its references")
        predictions.append(row["prediction"])
        references.append([accepted] if isinstance(accepted, str) else accepted)
        questions.append(row.get("question") or "")
    asked = questions if any(questions) else None
    found = answers_given(
        predictions, references, benchmark=benchmark, judge=judge, questions=asked, **options
    )
    print(canonical_json(found))
