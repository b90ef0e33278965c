"""Renders an answer of the loop as text and JSON, for `answer` and `serve`, and as HTML, for the Space's page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.engines.client import Client
from safe_stepwise.methods import running, verified
from safe_stepwise.methods.base import Method
from safe_stepwise.records import Attempt, Question, Trajectory, as_object
from safe_stepwise.store import boundary, files, names, tables, terminal

_TEMPLATES = Path(__file__).with_name("templates")
STYLE = f"\n{(_TEMPLATES / 'tries.css').read_text(encoding='utf-8')}"
_GIVE = "give what an evaluation, or answer --output, wrote"


def render_attempt(attempt: Attempt) -> Iterator[str]:
    """Yield the lines of an attempt: its step, its verdict, and the guidance for the next one."""
    yield terminal.printable(verified.step_of(attempt))
    yield f"    {terminal.printable(verified.fate_of(attempt))}"
    if attempt.feedback is not None and attempt.feedback.guidance.strip():
        yield f"    next: {terminal.printable(attempt.feedback.guidance)}"


def ascii_json(value: Any) -> str:
    """Encode a value as one line of ASCII JSON, which looks the same in every terminal and encoding.

    >>> ascii_json({"answer": "Oru, é"})
    '{"answer":"Oru, \\\\u00e9"}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=as_object)


def answer_record(
    question: Question, trajectory: Trajectory, clients: Mapping[str, Client], method: Method
) -> dict[str, Any]:
    """Make the record of an answered or failed question, with its trajectory, as JSON values."""
    reasons = verified.doubts(trajectory)
    return {
        "question": question.question,
        "answer": trajectory.answer,
        "verified": not reasons,
        "doubts": list(reasons),
        "simulated": any(clients[role].engine.simulated for role in method.roles),
        "players": {role: clients[role].name for role in method.roles},
        "passages": [{"title": p.title, "text": p.text} for p in question.passages],
        "trajectory": boundary.plain(trajectory),
    }


def verdict_text(reasons: Sequence[str]) -> str:
    """Render whether an answer is verified, with the reasons to doubt it."""
    return f"NOT VERIFIED: {'; '.join(reasons)}" if reasons else "verified"


def render_answer(record: Mapping[str, Any]) -> str:
    """Render a record's answer and verification as two lines; if it is not verified, that warning comes first."""
    tries, steps = record["trajectory"]["attempts"], record["trajectory"]["steps"]
    marked = names.SIMULATED if record["simulated"] else ""
    answer = f"Answer: {terminal.printable(record['answer']) or 'none'}"
    summary = terminal.printable(f"{verdict_text(record['doubts'])}; {len(steps)} steps, {len(tries)} tries{marked}")
    return f"{answer}\n{summary}" if record["verified"] else f"{summary}\n{answer}"


def tokens_by_role(trajectory: Trajectory) -> dict[str, dict[str, int]]:
    """Count tokens by role: of prompts, of their cached part, of replies, and of thoughts if there are any."""
    stats = running.statistics([trajectory])
    counts = {"prompt": stats.prompt_tokens, "cached": stats.cached_tokens, "completion": stats.completion_tokens}
    counts |= {"thought": stats.thought_tokens} if stats.thought_tokens else {}
    return {role: {name: count.get(role, 0) for name, count in counts.items()} for role in stats.calls}


@dataclass(frozen=True, slots=True)
class Trace:
    """A trajectory with its question's text, and with its scores as text ("" without scores)."""

    trajectory: Trajectory
    question: str
    simulated: bool
    scores: str = ""


def render_trace(trace: Trace) -> str:
    """Render the attempts of a trace with their verdicts, and its answer; every text is escaped."""
    verdict = verdict_text(verified.doubts(trace.trajectory))
    template = tables.environment((_TEMPLATES,), is_html=True).get_template("tries.html.jinja")
    return template.render(trace=trace, verdict=verdict, verified=verified)


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
