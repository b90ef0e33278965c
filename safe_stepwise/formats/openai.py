"""Chats in OpenAI's form: ``{"messages": [{"role": "user", "content": ...}, {"role": "assistant", ...}]}``.

The question is the row's, or else the last user turn before the first step. Passages of the row were known from the
start; all others come from tools' results.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats import steps as own_rows
from safe_stepwise.formats.chains import Chain
from safe_stepwise.formats.messages import read_turns, text_of, write_turns


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain from a chat with tool calls; raises ``ValueError`` for a row with a different schema."""
    turns = row.get("messages")
    if not isinstance(turns, list):
        raise RowError("messages is not a list")
    chain = own_rows.read({**row, "steps": [], "question": row.get("question") or _find_question(turns)})
    steps, pages = read_turns(turns, first_pages=chain.passages)
    return replace(chain, steps=steps, passages=pages)


def _find_question(turns: Sequence[Any]) -> str:
    opening = ""
    for turn in turns:
        role = turn.get("role") if isinstance(turn, Mapping) else None
        if role == "assistant":
            break
        opening = text_of(turn, "messages") if role == "user" else opening
    return opening


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain as a chat; its passages are in tools' results."""
    yield {**own_rows.describe(chain), "messages": write_turns(chain.question, chain.steps, chain.passages)}
