"""Show each try at a step, its verdict, and what became of it.

The page with filters and totals stands on what a checkout has (``view_traces``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.commands.command import command
from safe_stepwise.commands.telling import lines_of_attempt
from safe_stepwise.commands.values import Count
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import Trajectory
from safe_stepwise.store.boundary import parse_json, read
from safe_stepwise.store.files import locate_lines, read_lines
from safe_stepwise.store.names import QUESTIONS, SIMULATED, TRAJECTORIES
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT

_GIVE = "give what an evaluation, or answer --output, wrote"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trajectory, what was asked, and what else its line says."""

    trajectory: Trajectory
    question: str
    simulated: bool
    scores: str = ""

    @property
    def was_rejected(self) -> bool:
        """Whether any try at a step was."""
        found = (attempt.feedback for attempt in self.trajectory.attempts)
        return any(said is not None and said.error_type != CORRECT for said in found)


@dataclass(frozen=True, kw_only=True)
class Options:
    place: Path
    question: str | None = None
    method: str | None = None
    rejected: bool = False
    limit: Count | None = None

    def wants(self, trace: Trace) -> bool:
        """Whether a trajectory is one of those to be shown."""
        run = trace.trajectory
        return (
            self.question in (None, run.question_id, trace.question)
            and self.method in (None, run.method)
            and (trace.was_rejected or not self.rejected)
        )


def show_traces(options: Options) -> None:
    """Print the trajectories of a file or folder that are wanted."""
    seen = shown = 0
    for trace in read_traces(options.place):
        seen += 1
        if not options.wants(trace):
            continue
        if options.limit is not None and shown == options.limit:
            break
        shown += 1
        for line in lines_of(trace):
            print(line)
        print()
    if not seen:
        raise UserError(f"{options.place}: has no trajectories")
    print(f"{shown:,} shown")


main = command(show_traces)


def lines_of(trace: Trace) -> Iterator[str]:
    """One trajectory in words."""
    run = trace.trajectory
    marked = SIMULATED if trace.simulated else ""
    yield printable(f"{trace.question or run.question_id} [{run.method}{marked}]")
    for attempt in run.attempts:
        for line in lines_of_attempt(attempt):
            yield f"  {line}"
    why = doubts(run)
    end = f"NOT VERIFIED: {'; '.join(why)}" if why else "verified"
    yield printable(f"{end}; {run.stop_reason}")
    yield printable(f"Answer: {run.answer or 'none'}")
    if trace.scores:
        yield printable(trace.scores)


def read_traces(place: Path) -> Iterator[Trace]:
    """The traces of a file or folder; raises ``UserError`` for what can't be read."""
    file = locate_lines(place, TRAJECTORIES) if place.is_dir() else place
    known = _questions(locate_lines(place, QUESTIONS)) if place.is_dir() else {}

    def trace_of(content: bytes) -> Trace:
        line = parse_json(content)
        run = read(Trajectory, line["trajectory"], "the trajectory")
        asked = known.get((str(line.get("benchmark")), run.question_id)) or str(line.get("question", ""))
        return Trace(run, asked, bool(line["simulated"]), _scores(line))

    yield from (trace for _, trace in read_lines(file, trace_of, "trajectory", _GIVE))


def _scores(line: Mapping[str, Any]) -> str:
    if "exact_match" not in line:
        return ""
    judged = f", judged {line['verdict']}" if line.get("verdict") else ""
    return f"exact match {float(line['exact_match']):g}, F1 {float(line['f1']):.3g}{judged}"


def _questions(file: Path) -> dict[tuple[str, str], str]:
    if not file.exists():
        return {}

    def asked(content: bytes) -> tuple[tuple[str, str], str]:
        row = parse_json(content)
        return (str(row.get("benchmark")), str(row.get("id"))), str(row.get("question"))

    return dict(question for _, question in read_lines(file, asked, "question", _GIVE))
