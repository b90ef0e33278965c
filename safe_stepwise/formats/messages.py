"""Reads and writes a chat with tool calls: a step is a turn of the assistant, passages are results of tools."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats.chains import ChainStep, StepLabel, add_pages, page_of
from safe_stepwise.records import Passage
from safe_stepwise.store import boundary

_QUERIES = ("query_list", "queries", "query", "q", "search_query")


def read_turns(
    turns: Any, labels: Mapping[str, StepLabel] | None = None, first_pages: Sequence[Passage] = ()
) -> tuple[tuple[ChainStep, ...], tuple[Passage, ...]]:
    """Return the steps of a chat and the passages of its tools' results; raises ``ValueError`` for another value.

    ``labels`` are the steps' labels by the message's index (from 0), which is also the steps' key; ``first_pages`` are
    passages that the model had from the start. An assistant's message without text and without a call is no step.

    >>> call = {"function": {"name": "search", "arguments": '{"query": "Oru"}'}}
    >>> steps, pages = read_turns([
    ...     {"role": "user", "content": "Where is Oru?"},
    ...     {"role": "assistant", "content": "", "tool_calls": [call]},
    ...     {"role": "tool", "content": "Oru is in Marn."},
    ...     {"role": "assistant", "content": "In Marn."},
    ... ])
    >>> [(step.shown_text, step.known_passages) for step in steps], pages[0].text
    ([('Search: Oru', 0), ('In Marn.', 1)], 'Oru is in Marn.')
    """
    steps, pages = list[ChainStep](), [*first_pages]
    for number, turn in enumerate(boundary.read(tuple[Mapping[str, Any], ...], turns, "messages")):
        name = f"messages[{number}]"
        role, text = turn.get("role"), _text_of(turn.get("content"), name)
        if role == "tool":
            add_pages(pages, read_pages(text))
        elif role == "assistant":
            calls = boundary.read(tuple[Mapping[str, Any], ...], turn.get("tool_calls") or [], f"{name}.tool_calls")
            searches = tuple(query for call in calls for query in _queries(call))
            step = ChainStep(text.strip(), len(pages), searches, (labels or {}).get(str(number)), str(number))
            steps += [step] if step.shown_text else []
    return tuple(steps), tuple(pages)


def _text_of(content: Any, name: str) -> str:
    """Return the text of a message, which may be a text, none, or a list of parts."""
    if isinstance(content, list):
        content = "".join(piece.get("text") or "" for piece in content if isinstance(piece, Mapping))
    if not isinstance(content, str | None):
        raise RowError(f"{name}.content is neither a text nor a list of parts")
    return content or ""


def _queries(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a call searches for: the texts of its usual arguments, or the arguments as they are."""
    function = call.get("function", call)
    arguments = function.get("arguments", "") if isinstance(function, Mapping) else ""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = boundary.parse_json(arguments)
    if not isinstance(arguments, Mapping):
        yield arguments.strip() if isinstance(arguments, str) else json.dumps(arguments)
        return
    values = [arguments[name] for name in _QUERIES if name in arguments]
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    queries = dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())
    yield from queries or (json.dumps(arguments, ensure_ascii=False),)


def read_pages(content: str) -> list[Passage]:
    """Read the passages of a tool's result: Search-R1's JSON, JSON of passages, or one text; an error has none.

    >>> read_pages('{"result": [[{"document": {"contents": "\\\\"Oru\\\\"\\\\nIt is old."}}]]}')
    [Passage(title='Oru', sentences=('It is old.',), is_gold=False)]
    """
    try:
        value = boundary.parse_json(content)
    except ValueError:
        return [Passage("", (content.strip(),))] if content.strip() and content.lstrip()[:1] not in "{[" else []
    if isinstance(value, Mapping) and "error" in value:
        return []
    if isinstance(value, Mapping):
        value = next((value[name] for name in ("result", "results", "documents", "passages") if name in value), [])
    return [*_pages_in(value)]


def _pages_in(value: Any) -> Iterator[Passage]:
    if isinstance(value, list):
        for inner in value:
            yield from _pages_in(inner)
    elif isinstance(value, Mapping) and isinstance(value.get("document"), Mapping):
        yield from _pages_in(value["document"])
    elif isinstance(value, Mapping) and isinstance(value.get("contents"), str):
        title, _, text = value["contents"].partition("\n")
        yield Passage(title.strip().strip('"'), (text.strip(),))
    elif isinstance(value, str | Mapping):
        with suppress(ValueError):
            yield page_of(value)


def write_turns(question: str, steps: Sequence[ChainStep], pages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Write a chat of a question and steps; passages come as a tool's result before the first step that knows them."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": question}]
    shown_pages = 0
    for step in steps:
        known_pages = len(pages) if step.known_passages is None else step.known_passages
        if known_pages > shown_pages:
            fresh_pages = pages[shown_pages:known_pages]
            documents = [{"document": {"contents": f'"{page.title}"\n{page.text}'}} for page in fresh_pages]
            turns.append({"role": "tool", "content": json.dumps({"result": [documents]}, ensure_ascii=False)})
            shown_pages = known_pages
        turn: dict[str, Any] = {"role": "assistant", "content": step.text}
        if step.searches:
            arguments = json.dumps({"query_list": step.searches}, ensure_ascii=False)
            turn["tool_calls"] = [{"type": "function", "function": {"name": "search", "arguments": arguments}}]
        turns.append(turn)
    return turns
