"""Judge the steps of FILE by the graph-based checker, in the order of the taxonomy."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import parse_question, read_rows
from safe_stepwise.commands.transcript import ascii_json
from safe_stepwise.commands.values import Name
from safe_stepwise.engines.base import EngineError
from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.records import Feedback, Question, Step, as_object
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.steps import StepError, format_step, read_step
from safe_stepwise.store.sizes import check_steps
from safe_stepwise.store.terminal import printable
from safe_stepwise.store.thoughts import split_thought

ABSTAINS = "undecided"
"""The label of a step that the checker proves neither wrong nor sound."""
NO_PLAN, NO_STEP = "no plan", "no step"
Check = Callable[[tuple[Step, ...], Step], Feedback | None]


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    benchmark: Annotated[str, Name(BENCHMARKS)] | None = None
    as_json: bool = False


def check_file(options: Options) -> None:
    """Print the label of each step of each row, and the number of each label; raises ``UserError`` for a bad row."""
    counts = Counter[str]()
    for place, row in read_rows(options.file):
        steps = row.get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            raise UserError(f"{place}: lacks its steps, a list of texts")
        with at_place(place, RowError):
            check_steps(steps)
        question = parse_question(place, row, options.benchmark)
        verdicts = label_steps(question, steps)
        counts.update(label for label, _ in verdicts)
        if options.as_json:
            pairs = zip(steps, verdicts, strict=True)
            labelled = [{"step": step, "label": label, **feedback} for step, (label, feedback) in pairs]
            print(ascii_json({"id": question.id, "steps": labelled}))
            continue
        print(f"{printable(question.id)}: {printable(question.question)}")
        for step, (label, feedback) in zip(steps, verdicts, strict=True):
            print(f"  {printable(step)}\n    {label}", printable(feedback.get("diagnosis", "")))
    if not options.as_json:
        print(", ".join(f"{label} {number}" for label, number in counts.most_common()))


main = command(check_file)


def label_steps(question: Question, texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Label the steps of a chain; returns for each its label, and the fields of its feedback that are not empty."""
    if not question.answer.strip():
        return [(NO_PLAN, {"diagnosis": "the row has no answer"})] * len(texts)
    try:
        checker = strict_checker_of(question)
    except EngineError as error:
        return [(NO_PLAN, {"diagnosis": str(error)})] * len(texts)
    verdicts: list[tuple[str, dict[str, Any]]] = []
    previous: list[Step] = []
    for text in texts:
        step, label, feedback = label_step(checker.check, previous, partial(_read_step, text))
        verdicts.append((label, feedback))
        previous += [step] if step else []
    return verdicts


def label_step(
    check: Check, previous: Sequence[Step], read: Callable[[], Step]
) -> tuple[Step | None, str, dict[str, Any]]:
    """Read a step and label it; returns the step (None if it can't be read), its label, and the feedback's fields."""
    try:
        step = read()
    except StepError as error:
        return None, NO_STEP, {"diagnosis": str(error)}
    feedback = check(tuple(previous), step)
    values = {} if feedback is None else as_object(feedback)
    return step, values.pop("error_type", ABSTAINS), {name: value for name, value in values.items() if value}


def _read_step(text: str) -> Step:
    step = read_step(split_thought(text).text)
    format_step(step)
    return step
