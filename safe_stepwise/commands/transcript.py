"""Renders an answer of the loop as text and as JSON, for `answer` and `serve`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from safe_stepwise.engines.client import Client
from safe_stepwise.methods import running, verified
from safe_stepwise.methods.base import Method
from safe_stepwise.records import Attempt, Question, Trajectory, as_object
from safe_stepwise.store import boundary, names, terminal


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
