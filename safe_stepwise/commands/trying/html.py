"""Renders the results of the Space's page as HTML, with every text escaped."""

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from safe_stepwise.commands.traces import Trace
from safe_stepwise.commands.transcript import verdict_text
from safe_stepwise.commands.trying.answering import Progress
from safe_stepwise.methods.verified import doubt, doubts, fate_of, step_of
from safe_stepwise.records import Attempt
from safe_stepwise.store.tables import environment
from safe_stepwise.store.terminal import printable

_TEMPLATES = Path(__file__).parents[1] / "templates"
STYLE = f"\n{(_TEMPLATES / 'tries.css').read_text(encoding='utf-8')}"


def render_progress(progress: Progress) -> str:
    """Render the attempts so far, and the answer once there is one."""
    labels = progress.labels or [""] * len(progress.attempts)
    return _render(zip(progress.attempts, labels, strict=True), progress.record)


def render_trajectory(trace: Trace) -> str:
    run = trace.trajectory
    end = {"answer": run.answer, "doubts": doubts(run), "simulated": trace.simulated}
    tries = [(attempt, "") for attempt in run.attempts]
    return _render(tries, end, question=trace.question or run.question_id, scores=trace.scores)


def render_error(message: str) -> str:
    """Render one line that says what is wrong."""
    return f'<p role="alert">{escape(printable(message))}</p>'


def _render(tries: Iterable[tuple[Attempt, str]], end: Mapping[str, Any] | None, **texts: str) -> str:
    functions = {"doubt": doubt, "step_of": step_of, "fate_of": fate_of, "verdict_text": verdict_text}
    values = {"question": "", "scores": "", **texts, **functions}
    return (
        environment((_TEMPLATES,), is_html=True)
        .get_template("tries.html.jinja")
        .render(tries=tries, end=end, **values)
    )
