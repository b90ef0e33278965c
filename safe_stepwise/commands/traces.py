"""``safe-stepwise traces``: what was tried, said and accepted, as text.

The page with filters and totals stands on what a checkout has (``view_traces``).
"""

import gzip
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.telling import lines_of_attempt
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import Trajectory
from safe_stepwise.store.boundary import read
from safe_stepwise.store.names import QUESTIONS, SIMULATED, TRAJECTORIES
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.store.terminal import printable
from safe_stepwise.taxonomy import CORRECT


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


@click.command("traces", epilog=EXIT_STATUS)
@click.argument("place", type=click.Path(path_type=Path), metavar="FILE_OR_DIR")
@click.option("--question", "wanted", metavar="ID|TEXT", help="of this question alone")
@click.option("--method", metavar="M", help="of this method alone")
@click.option("--rejected", is_flag=True, help="of those alone in which a step was rejected")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="so many at most")
def traces(place: Path, wanted: str | None, method: str | None, rejected: bool, limit: int | None) -> None:
    """Show each try at a step, its verdict, and what became of it.

    FILE is what `safe-stepwise answer --output FILE` wrote; DIR an evaluation's folder (of
    evaluate_stepwise, or a release's report), packed or not. A checkout adds the same as one HTML
    page with filters: safe-stepwise view_traces DIR.
    """
    seen = shown = 0
    for trace in read_traces(place):
        seen += 1
        asked = wanted in (None, trace.trajectory.question_id, trace.question)
        if not asked or method not in (None, trace.trajectory.method):
            continue
        if rejected and not trace.was_rejected:
            continue
        if limit is not None and shown == limit:
            break
        shown += 1
        for line in lines_of(trace):
            print(line)
        print()
    if not seen:
        raise UserError(f"{place}: has no trajectories")
    print(f"{shown:,} shown")


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
    yield printable(f"Answer: {run.answer or 'none'} ({run.stop_reason}; {end})")
    if trace.scores:
        yield printable(trace.scores)


def read_traces(place: Path) -> Iterator[Trace]:
    """The traces of a file or folder; raises ``UserError`` for what can't be read."""
    file = _file(place / TRAJECTORIES) if place.is_dir() else place
    known = _questions(_file(place / QUESTIONS)) if place.is_dir() else {}
    for where, line in _lines(file):
        try:
            run = read(Trajectory, line["trajectory"], "the trajectory")
            asked = known.get((str(line.get("benchmark")), run.question_id))
            asked = asked or str(line.get("question", ""))
            yield Trace(run, asked, bool(line["simulated"]), _scores(line))
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{where}: holds no trajectory ({error})") from None


def _scores(line: Mapping[str, Any]) -> str:
    if "exact_match" not in line:
        return ""
    judged = f", judged {line['verdict']}" if line.get("verdict") else ""
    return f"exact match {float(line['exact_match']):g}, F1 {float(line['f1']):.3g}{judged}"


def _questions(file: Path) -> dict[tuple[str, str], str]:
    if not file.exists():
        return {}
    rows = (row for _, row in _lines(file))
    return {(str(r.get("benchmark")), str(r.get("id"))): str(r.get("question")) for r in rows}


def _file(plain: Path) -> Path:
    packed = plain.with_name(f"{plain.name}.gz")
    return packed if packed.is_file() and not plain.exists() else plain


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
            for number, line in enumerate(opened, 1):
                where = f"{file}, line {number}"
                try:
                    found = parse_json(line)
                except ValueError as error:
                    raise UserError(f"{where}: is no JSON ({error})") from None
                if not isinstance(found, dict):
                    raise UserError(f"{where}: is no JSON object")
                yield where, found
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: cannot be read ({reason})") from None
