"""Score the answers of FILE: exact match, F1, and accuracy where a judge is named."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import read_rows
from safe_stepwise.commands.values import Count, Name, Seconds
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.metric import compute, input
from safe_stepwise.records import canonical_json
from safe_stepwise.scoring import BENCHMARKS, CUSTOM
from safe_stepwise.store.terminal import printable


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    benchmark: Annotated[str, Name([*BENCHMARKS, CUSTOM])]
    judge: str | None = None
    judge_repeats: Count = 1
    skip_exact: bool = False
    cache: Path | None = None
    timeout: Seconds | None = None


@command
def main(options: Options) -> str:
    """Score the answers in the rows of a file; return the scores as JSON. Raises ``UserError`` for a bad row."""
    if options.judge is None and options.judge_repeats > 1:
        raise UserError("--judge-repeats is how often a judge is asked: name one by --judge")
    predictions, references, questions = [], [], []
    for place, row in read_rows(options.file):
        label = f"{place} (id {printable(str(row['id']))[:60]})" if "id" in row else place
        if "prediction" not in row:
            raise UserError(f"{label}: lacks its prediction (null where none was given)")
        accepted = _texts(row.get("references"), f"{label}: references")
        if not accepted and "answer" in row:
            aliases = _texts(row.get("aliases"), f"{label}: aliases")
            accepted = [*_texts(row["answer"], f"{label}: answer"), *aliases]
        if not accepted:
            raise UserError(f"{label}: lacks its references")
        if not isinstance(row["prediction"], str | None):
            raise UserError(f"{label}: prediction is neither a text nor null")
        question = row.get("question", "")
        if not isinstance(question, str | None):
            raise UserError(f"{label}: question is neither a text nor null")
        with at_place(label):
            input.check_letters([row["prediction"] or "", question or "", *accepted], "texts")
        predictions.append(row["prediction"])
        references.append(accepted)
        questions.append(question or "")
    settings = {field.name: getattr(options, field.name) for field in fields(options) if field.name != "file"}
    settings |= {"questions": questions if any(questions) else None}
    return canonical_json(compute.answers_given(predictions, references, **settings))


def _texts(value: Any, label: str) -> list[str]:
    texts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{label} is neither a text nor a list of texts")
    return texts
