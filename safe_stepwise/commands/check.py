"""Judge the steps of FILE without a model: by the question's annotations, or by its passages alone.

With annotations, the graph-based checker labels each step in the order of the taxonomy. Without, the passages decide
(`checking.passage_checker`). Either way each claim of a step comes with the sentence that states it, or why it is
not accepted.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from safe_stepwise.checker import NO_STEP, judge_steps
from safe_stepwise.checker import UNDECIDED as ABSTAINS
from safe_stepwise.commands import reading, transcript
from safe_stepwise.commands.command import command
from safe_stepwise.commands.step_reports import ANNOTATIONS, PASSAGES, RowReport, StepReport, render_reports
from safe_stepwise.commands.values import Name
from safe_stepwise.engines.base import EngineError
from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.records import Feedback, Question, Step, as_object
from safe_stepwise.scoring import BENCHMARKS
from safe_stepwise.steps import StepError, format_step, read_step
from safe_stepwise.store import page, sizes, thoughts

Check = Callable[[tuple[Step, ...], Step], Feedback | None]


@dataclass(frozen=True, kw_only=True)
class Options:
    file: Path
    benchmark: Annotated[str, Name(BENCHMARKS)] | None = None
    as_json: bool = False
    html: Path | None = None


def check_file(options: Options) -> None:
    """Print the label of each step of each row, and the number of each label; raises ``UserError`` for a bad row."""
    if options.html:
        page.check_output(options.html, reading.input_path(options.file))
    counts, reports = Counter[str](), list[RowReport]()
    for place, row in reading.read_rows(options.file):
        reading.check_columns(place, row, "question", "passages", "steps")
        steps = row["steps"]
        if number := next((n for n, step in enumerate(steps, 1) if not isinstance(step, str)), 0):
            raise UserError(f"{place}: step {number} is not a text")
        with at_place(place, RowError):
            sizes.check_steps(steps)
        report = report_row(reading.parse_question(place, row, options.benchmark), steps)
        counts.update(step.label for step in report.steps)
        if options.html:
            reports.append(report)
        lines = [transcript.ascii_json(report.as_object())] if options.as_json else report.lines()
        print(*lines, sep="\n")
    if options.html:
        page.write_page(options.html, render_reports(options.file.name, reports))
    if not options.as_json:
        print(", ".join(f"{label} {number}" for label, number in counts.most_common()))


main = command(check_file)


def report_row(question: Question, texts: Sequence[str]) -> RowReport:
    """Judge the steps of a chain by a question's annotations; if these do not suffice, by its passages."""
    verdicts = judge_steps(question.question, question.passages, texts)
    try:
        labels = _labels_by_annotations(question, texts)
        judged_by, note = ANNOTATIONS, ""
    except EngineError as error:
        labels = [(v.label, {"diagnosis": v.reason} if v.reason else {}) for v in verdicts]
        judged_by, note = PASSAGES, str(error) if question.is_annotated else ""
    steps = [StepReport(t, *label, v.claims) for t, label, v in zip(texts, labels, verdicts, strict=True)]
    return RowReport(question, judged_by, note, steps)


def label_steps(question: Question, texts: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """Label the steps of a chain; returns for each its label, and the fields of its feedback that are not empty."""
    return [(step.label, step.feedback) for step in report_row(question, texts).steps]


def _labels_by_annotations(question: Question, texts: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Label the steps of a chain by the graph-based checker; raises ``EngineError`` if it has no plan."""
    if not question.answer.strip():
        raise EngineError("the row has no answer")
    checker = strict_checker_of(question)
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
    step = read_step(thoughts.split_thought(text).text)
    format_step(step)
    return step
