"""``safe-stepwise check``: steps of reasoning, judged without a model."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.reading import question_in, rows_of
from safe_stepwise.commands.telling import ascii_json
from safe_stepwise.engines.base import EngineError
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.players.steps import own_checker_of
from safe_stepwise.records import Question, Step, as_object
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.steps import StepError, format_step, parse_step
from safe_stepwise.store.terminal import printable

ABSTAINS = "undecided"
"""Where the checker proves neither an error nor that the step is sound."""
NO_PLAN, NO_STEP = "no plan", "no step"


@click.command("check", epilog=EXIT_STATUS)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--benchmark", metavar="B", help=f"of all rows: {', '.join(BENCHMARKS)}")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object a row instead")
def check(file: Path, benchmark: str | None, as_json: bool) -> None:
    """Judge the steps of FILE by the graph-based checker, in the order of the taxonomy.

    FILE is JSONL, or a JSON list, of rows as the verified configs have them ("question", "answer",
    "passages", and "evidence", "decomposition" or "supporting_facts") with "steps", a list of texts
    like "Step 1: According to Passage 2, ... (Attribution)". Each step is judged after those before
    it. "undecided": neither an error nor soundness could be proved; "no plan": the row's
    annotations give nothing to judge by. Both are counted.
    """
    counted = Counter[str]()
    if benchmark is not None:
        one_of(benchmark, BENCHMARKS, "--benchmark")
    for where, row in rows_of(file):
        steps = row.get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            raise UserError(f"{where}: lacks its steps, a list of texts")
        question = question_in(where, row, benchmark)
        judged = verdicts(question, steps)
        counted.update(label for label, _ in judged)
        if as_json:
            pairs = zip(steps, judged, strict=True)
            told = [{"step": step, "label": label, **said} for step, (label, said) in pairs]
            print(ascii_json({"id": question.id, "steps": told}))
            continue
        print(f"{printable(question.id)}: {printable(question.question)}")
        for step, (label, said) in zip(steps, judged, strict=True):
            print(f"  {printable(step)}\n    {label}", printable(said.get("diagnosis", "")))
    if not as_json:
        print(", ".join(f"{label} {number}" for label, number in counted.most_common()))


def verdicts(question: Question, texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """A label for each step, with diagnosis and guidance where the checker gives them."""
    if not question.answer.strip():
        return [(NO_PLAN, {"diagnosis": "the row has no answer"})] * len(texts)
    try:
        checker = own_checker_of(question)
    except EngineError as error:
        return [(NO_PLAN, {"diagnosis": str(error)})] * len(texts)
    found: list[tuple[str, dict[str, Any]]] = []
    previous: list[Step] = []
    for text in texts:
        try:
            step = parse_step(text)
            format_step(step)
        except StepError as error:
            found.append((NO_STEP, {"diagnosis": str(error)}))
            continue
        said = checker.check(tuple(previous), step)
        previous.append(step)
        known = {} if said is None else as_object(said)
        found.append((known.pop("error_type", ABSTAINS), {k: v for k, v in known.items() if v}))
    return found
