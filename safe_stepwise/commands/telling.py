"""An answer of the loop in words, and as JSON: what `answer`, `serve` and `traces` tell of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from safe_stepwise.engines.client import Client
from safe_stepwise.methods.base import Method
from safe_stepwise.methods.running import statistics
from safe_stepwise.methods.verified import doubts, fate_of, step_of
from safe_stepwise.records import Attempt, Question, Trajectory, as_object
from safe_stepwise.store.boundary import plain
from safe_stepwise.store.names import SIMULATED
from safe_stepwise.store.terminal import printable


def lines_of_attempt(attempt: Attempt) -> Iterator[str]:
    """A try, what became of it, and what its writer was told to do next."""
    yield printable(step_of(attempt))
    yield f"    {printable(fate_of(attempt))}"
    said = attempt.feedback
    if said is not None and said.guidance.strip():
        yield f"    next: {printable(said.guidance)}"


def ascii_json(value: Any) -> str:
    """A value as one line of JSON that is the same wherever it is printed, whatever is in it.

    >>> ascii_json({"answer": "Oru, é"})
    '{"answer":"Oru, \\\\u00e9"}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=as_object)


def record(
    question: Question, trajectory: Trajectory, clients: Mapping[str, Client], method: Method
) -> dict[str, Any]:
    """What is written down of an answer: JSON values, whatever came of it."""
    why = doubts(trajectory)
    return {
        "question": question.question,
        "answer": trajectory.answer,
        "verified": not why,
        "doubts": list(why),
        "simulated": any(clients[role].engine.simulated for role in method.roles),
        "players": {role: clients[role].name for role in method.roles},
        "passages": [{"title": p.title, "text": p.text} for p in question.passages],
        "trajectory": plain(trajectory),
    }


def verdict(told: Mapping[str, Any]) -> str:
    """The last lines: the answer, whether it is verified, and who says so; that it is not stands before it."""
    end = "verified" if told["verified"] else f"NOT VERIFIED: {'; '.join(told['doubts'])}"
    tries, steps = told["trajectory"]["attempts"], told["trajectory"]["steps"]
    marked = SIMULATED if told["simulated"] else ""
    answer = f"Answer: {printable(told['answer']) or 'none'}"
    told_of_it = printable(f"{end}; {len(steps)} steps, {len(tries)} tries{marked}")
    return f"{answer}\n{told_of_it}" if told["verified"] else f"{told_of_it}\n{answer}"


def tokens(trajectory: Trajectory) -> dict[str, dict[str, int]]:
    """Tokens by role: of prompts, of those cached, of replies, and of thoughts where there are any."""
    known = statistics([trajectory])
    parts = {"prompt": known.prompt_tokens, "cached": known.cached_tokens, "completion": known.completion_tokens}
    parts |= {"thought": known.thought_tokens} if known.thought_tokens else {}
    return {role: {name: by.get(role, 0) for name, by in parts.items()} for role in known.calls}
