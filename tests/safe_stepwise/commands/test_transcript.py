"""A trace on the Space's page: every text is text."""

from __future__ import annotations

from safe_stepwise.commands.transcript import Trace, render_trace
from safe_stepwise.methods.loop import UNREAD
from safe_stepwise.records import Attempt, Feedback, Trajectory
from tests.browsing import BREAKOUTS


def test_every_text_is_escaped() -> None:
    nasty = " ".join(BREAKOUTS)
    attempts = (
        Attempt(1, f"Step 1: {nasty} (Logical)", Feedback("Contradictory", nasty, nasty), False),
        Attempt(1, nasty, Feedback(UNREAD, nasty, ""), True),
    )
    trajectory = Trajectory("q1", "safe", (), attempts, nasty, nasty)
    page = render_trace(Trace(trajectory, nasty, simulated=True, scores=nasty))
    for mark in ("<script", "<img", "<svg", "<!--", "\u202e", "\0"):
        assert mark not in page
