"""Judge the steps of FILE by the graph-based checker, in the order of the taxonomy."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import question_in, rows_of
from safe_stepwise.commands.telling import ascii_json
from safe_stepwise.commands.values import Known
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
"""Where the checker proves neither an error nor that the step is sound."""
NO_PLAN, NO_STEP = "no plan", "no step"
Check = Callable[[tuple[Step, ...], Step], Feedback | None]


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    benchmark: Annotated[str, Known(BENCHMARKS)] | None = None
    as_json: bool = False


def check_file(options: Options) -> None:
    """Print the label of each step, row by row, and how often each label was given."""
    counted = Counter[str]()
    for where, row in rows_of(options.file):
        steps = row.get("steps")
        if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
            raise UserError(f"{where}: lacks its steps, a list of texts")
        with at_place(where, RowError):
            check_steps(steps)
        question = question_in(where, row, options.benchmark)
        judged = list(zip(steps, verdicts(question, steps), strict=True))
        counted.update(label for _, (label, _) in judged)
        if options.as_json:
            labelled = [{"step": step, "label": label, **feedback} for step, (label, feedback) in judged]
            print(ascii_json({"id": question.id, "steps": labelled}))
            continue
        print(f"{printable(question.id)}: {printable(question.question)}")
        for step, (label, feedback) in judged:
            print(f"  {printable(step)}\n    {label}", printable(feedback.get("diagnosis", "")))
    if not options.as_json:
        print(", ".join(f"{label} {number}" for label, number in counted.most_common()))


main = command(check_file)


def verdicts(question: Question, texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """A label for each step, with diagnosis and guidance where the checker gives them."""
    if not question.answer.strip():
        return [(NO_PLAN, {"diagnosis": "the row has no answer"})] * len(texts)
    try:
        checker = strict_checker_of(question)
    except EngineError as error:
        return [(NO_PLAN, {"diagnosis": str(error)})] * len(texts)
    judged: list[tuple[str, dict[str, Any]]] = []
    previous: list[Step] = []
    for text in texts:
        step, label, feedback = verdict(checker.check, previous, partial(_read, text))
        judged.append((label, feedback))
        previous += [step] if step else []
    return judged


def verdict(
    check: Check, previous: Sequence[Step], read: Callable[[], Step]
) -> tuple[Step | None, str, dict[str, Any]]:
    """A step as it is read, if it is one; its label; diagnosis and guidance where the checker gives them."""
    try:
        step = read()
    except StepError as error:
        return None, NO_STEP, {"diagnosis": str(error)}
    feedback = check(tuple(previous), step)
    values = {} if feedback is None else as_object(feedback)
    return step, values.pop("error_type", ABSTAINS), {name: value for name, value in values.items() if value}


def _read(text: str) -> Step:
    step = read_step(split_thought(text).text)
    format_step(step)
    return step
