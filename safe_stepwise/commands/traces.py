"""Show each try at a step, its verdict, and what became of it.

The command ``view_traces`` of a checkout makes a page of them, with filters and totals.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.transcript import render_attempt, verdict_text
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import Trajectory
from safe_stepwise.store import files, terminal
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.store.names import QUESTIONS, SIMULATED, TRAJECTORIES
from safe_stepwise.taxonomy import CORRECT

_GIVE = "give what an evaluation, or answer --output, wrote"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trajectory with its question's text, and with its scores as text ("" without scores)."""

    trajectory: Trajectory
    question: str
    simulated: bool
    scores: str = ""

    @property
    def was_rejected(self) -> bool:
        verdicts = (attempt.feedback for attempt in self.trajectory.attempts)
        return any(feedback is not None and feedback.error_type != CORRECT for feedback in verdicts)


@dataclass(frozen=True, kw_only=True)
class Options:
    place: Path
    question: str | None = None
    method: str | None = None
    rejected: bool = False
    limit: Count | None = None

    def selects(self, trace: Trace) -> bool:
        run = trace.trajectory
        return (
            self.question in (None, run.question_id, trace.question)
            and self.method in (None, run.method)
            and (trace.was_rejected or not self.rejected)
        )


def show_traces(options: Options) -> None:
    """Print the trajectories of a file or folder that the options select."""
    total = printed = 0
    for trace in read_traces(options.place):
        total += 1
        if not options.selects(trace):
            continue
        if options.limit is not None and printed == options.limit:
            break
        printed += 1
        for line in render_trace(trace):
            print(line)
        print()
    if not total:
        raise UserError(f"{options.place}: has no trajectories")
    print(f"{printed:,} shown")


main = command(show_traces)


def render_trace(trace: Trace) -> Iterator[str]:
    """Yield the lines that show one trajectory."""
    run = trace.trajectory
    marked = SIMULATED if trace.simulated else ""
    yield terminal.printable(f"{trace.question or run.question_id} [{run.method}{marked}]")
    for attempt in run.attempts:
        for line in render_attempt(attempt):
            yield f"  {line}"
    yield terminal.printable(f"{verdict_text(doubts(run))}; {run.stop_reason}")
    yield terminal.printable(f"Answer: {run.answer or 'none'}")
    if trace.scores:
        yield terminal.printable(trace.scores)


def read_traces(place: Path) -> Iterator[Trace]:
    """Yield the traces of a file of trajectories or a run's folder; raises ``UserError`` for an unreadable line."""
    file = files.locate_lines(place, TRAJECTORIES) if place.is_dir() else place
    questions = _read_questions(files.locate_lines(place, QUESTIONS)) if place.is_dir() else {}

    def trace_of(content: bytes) -> Trace:
        line = parse_json(content)
        run = read(Trajectory, line["trajectory"], "the trajectory")
        question = questions.get((str(line.get("benchmark")), run.question_id)) or str(line.get("question", ""))
        return Trace(run, question, bool(line["simulated"]), _render_scores(line))

    yield from (trace for _, trace in files.read_lines(file, trace_of, "trajectory", _GIVE))


def _render_scores(line: Mapping[str, Any]) -> str:
    if "exact_match" not in line:
        return ""
    judged = f", judged {line['verdict']}" if line.get("verdict") else ""
    return f"exact match {float(line['exact_match']):g}, F1 {float(line['f1']):.3g}{judged}"


def _read_questions(file: Path) -> dict[tuple[str, str], str]:
    if not file.exists():
        return {}

    def parse_question(content: bytes) -> tuple[tuple[str, str], str]:
        row = parse_json(content)
        return (str(row.get("benchmark")), str(row.get("id"))), str(row.get("question"))

    return dict(question for _, question in files.read_lines(file, parse_question, "question", _GIVE))
