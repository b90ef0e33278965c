"""Reads the trajectories that an evaluation or `answer` wrote, and renders them as HTML for the Space's page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.commands.transcript import verdict_text
from safe_stepwise.methods.verified import doubt, doubts, fate_of, step_of
from safe_stepwise.records import Trajectory
from safe_stepwise.store import boundary, files, names, tables

_TEMPLATES = Path(__file__).with_name("templates")
STYLE = f"\n{(_TEMPLATES / 'tries.css').read_text(encoding='utf-8')}"
_GIVE = "give what an evaluation, or answer --output, wrote"


@dataclass(frozen=True, slots=True)
class Trace:
    """A trajectory with its question's text, and with its scores as text ("" without scores)."""

    trajectory: Trajectory
    question: str
    simulated: bool
    scores: str = ""


def render_trace(trace: Trace) -> str:
    """Render the attempts of a trace with their verdicts, and its answer; every text is escaped."""
    functions = {"doubt": doubt, "step_of": step_of, "fate_of": fate_of}
    verdict = verdict_text(doubts(trace.trajectory))
    template = tables.environment((_TEMPLATES,), is_html=True).get_template("tries.html.jinja")
    return template.render(trace=trace, verdict=verdict, **functions)


def read_traces(place: Path) -> Iterator[Trace]:
    """Yield the traces of a file of trajectories or a run's folder; raises ``UserError`` for an unreadable line."""
    file = files.locate_lines(place, names.TRAJECTORIES) if place.is_dir() else place
    questions = _read_questions(files.locate_lines(place, names.QUESTIONS)) if place.is_dir() else {}

    def trace_of(content: bytes) -> Trace:
        line = boundary.parse_json(content)
        run = boundary.read(Trajectory, line["trajectory"], "the trajectory")
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
        row = boundary.parse_json(content)
        return (str(row.get("benchmark")), str(row.get("id"))), str(row.get("question"))

    return dict(question for _, question in files.read_lines(file, parse_question, "question", _GIVE))
