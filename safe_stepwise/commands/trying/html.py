"""Renders the results of the Space's page as HTML, with every text escaped."""

from collections.abc import Iterator, Sequence
from html import escape

from safe_stepwise.commands.traces import Trace
from safe_stepwise.commands.trying.answering import Progress
from safe_stepwise.methods.verified import doubt, doubts, fate_of, step_of
from safe_stepwise.records import Attempt
from safe_stepwise.store.terminal import printable

STYLE = """
ul.tries { list-style: none !important; margin: 0; padding: 0 !important; }
.tries li { border-left: 4px solid; margin: .5rem 0; padding: .3rem .8rem; }
.tries li, .ended { overflow-wrap: anywhere; }
.tries .passed { border-color: #1a7f37; }
.tries .rejected { border-color: #b42318; }
.tries .doubted { border-color: #9a6700; }
.tries li > div { margin: .15rem 0; }
.tries .step { font-weight: 600; }
.tries .checker { font-style: italic; }
.ended { border-top: 1px solid; margin-top: .6rem; padding-top: .4rem; }
"""


def render_progress(progress: Progress) -> str:
    """Render the attempts so far, and the answer once there is one."""
    body = _tries(progress.attempts, progress.labels)
    if (record := progress.record) is None:
        return f"{body}<p>at work …</p>"
    return body + _end(record["answer"], record["doubts"], simulated=record["simulated"])


def render_trajectory(trace: Trace) -> str:
    run = trace.trajectory
    question = f"<p><b>{_text(trace.question or run.question_id)}</b></p>"
    end = _end(run.answer, doubts(run), simulated=trace.simulated)
    scores = f"<p>{_text(trace.scores)}</p>" if trace.scores else ""
    return f"{question}{_tries(run.attempts, ())}{end}{scores}"


def render_error(message: str) -> str:
    """Render one line that says what is wrong."""
    return f'<p role="alert">{_text(message)}</p>'


def _tries(attempts: Sequence[Attempt], labels: Sequence[str]) -> str:
    labels = [f"the checker: {label}" for label in labels] or [""] * len(attempts)
    items = (
        f'<li class="{_class(attempt)}">{"".join(_lines(attempt, label))}</li>'
        for attempt, label in zip(attempts, labels, strict=True)
    )
    return f'<ul class="tries">{"".join(items)}</ul>'


def _lines(attempt: Attempt, checker: str) -> Iterator[str]:
    guidance = attempt.feedback.guidance if attempt.feedback else ""
    yield _line("step", step_of(attempt))
    yield _line("fate", fate_of(attempt))
    if guidance.strip():
        yield _line("next", f"next: {guidance}")
    if checker:
        yield _line("checker", checker)


def _class(attempt: Attempt) -> str:
    if not attempt.accepted:
        return "rejected"
    return "doubted" if doubt(attempt) else "passed"


def _end(answer: str, reasons: Sequence[str], *, simulated: bool) -> str:
    marked = "<p>Simulated: no model wrote or judged this.</p>" if simulated else ""
    verified = f"NOT VERIFIED: {'; '.join(reasons)}" if reasons else "verified"
    lines = _line("verified", verified) + _line("answer", f"Answer: {answer or 'none'}")
    return f'<div class="ended">{lines}{marked}</div>'


def _line(name: str, text: str) -> str:
    return f'<div class="{name}">{_text(text)}</div>'


def _text(text: str) -> str:
    return escape(printable(text))
