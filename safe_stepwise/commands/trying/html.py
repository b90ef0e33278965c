"""What the page shows, as HTML: every text in it escaped, and none of it ours to trust."""

from collections.abc import Iterator, Sequence
from html import escape

from safe_stepwise.commands.traces import Trace
from safe_stepwise.commands.trying.answering import Standing
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


def shown(standing: Standing) -> str:
    """The tries so far, and the answer once there is one."""
    body = _tries(standing.attempts, standing.labels)
    known = standing.record
    if known is None:
        return f"{body}<p>at work …</p>"
    why = known["doubts"]
    return body + _end(known["answer"], why, simulated=known["simulated"])


def trace_shown(trace: Trace) -> str:
    """A trajectory of a release."""
    run = trace.trajectory
    asked = f"<p><b>{_text(trace.question or run.question_id)}</b></p>"
    end = _end(run.answer, doubts(run), simulated=trace.simulated)
    scores = f"<p>{_text(trace.scores)}</p>" if trace.scores else ""
    return f"{asked}{_tries(run.attempts, ())}{end}{scores}"


def complaint(message: str) -> str:
    """One line that says what is wrong."""
    return f'<p role="alert">{_text(message)}</p>'


def _tries(attempts: Sequence[Attempt], labels: Sequence[str]) -> str:
    """Each try with its verdict, and what the checker says where it was asked."""
    said = [f"the checker: {label}" for label in labels] or [""] * len(attempts)
    parts = (_try(one, text) for one, text in zip(attempts, said, strict=True))
    return f'<ul class="tries">{"".join(parts)}</ul>'


def _try(attempt: Attempt, checker: str) -> str:
    return f'<li class="{_class(attempt)}">{"".join(_lines(attempt, checker))}</li>'


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


def _end(answer: str, why: Sequence[str], *, simulated: bool) -> str:
    marked = "<p>Simulated: no model wrote or judged this.</p>" if simulated else ""
    verified = f"NOT VERIFIED: {'; '.join(why)}" if why else "verified"
    told = _line("verified", verified) + _line("answer", f"Answer: {answer or 'none'}")
    return f'<div class="ended">{told}{marked}</div>'


def _line(name: str, text: str) -> str:
    return f'<div class="{name}">{_text(text)}</div>'


def _text(text: str) -> str:
    """A text of whoever, in which nothing is markup and nothing steers."""
    return escape(printable(text))
