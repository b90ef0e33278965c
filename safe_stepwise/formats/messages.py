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
    passages that the model had from the start. An assistant's message without text and without a call is no step; its
    label raises ``RowError``. Anthropic's blocks (``tool_use``, ``tool_result``) are read, too.

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
    labels = dict(labels or {})
    steps, pages = list[ChainStep](), [*first_pages]
    for number, turn in enumerate(boundary.read(tuple[Mapping[str, Any], ...], turns, "messages")):
        name = f"messages[{number}]"
        blocks = _blocks_of(turn.get("content"), name)
        text = text_of(turn, name)
        if turn.get("role") in ("tool", "function"):
            add_pages(pages, read_pages(text))
        for block in blocks:
            if block.get("type") == "tool_result":
                add_pages(pages, read_pages(text_of(block, name)))
        if turn.get("role") == "assistant":
            calls = [*_calls_of(turn, name), *(block for block in blocks if block.get("type") == "tool_use")]
            searches = tuple(query for call in calls for query in _queries(call))
            step = ChainStep(text.strip(), len(pages), searches, labels.get(str(number)), str(number))
            if step.shown_text:
                steps.append(step)
                labels.pop(str(number), None)
    if labels:
        raise RowError(f"step_labels[{min(labels)}]: that message is no step (an assistant's, with text or a call)")
    return tuple(steps), tuple(pages)


def _blocks_of(content: Any, name: str) -> list[Mapping[str, Any]]:
    """Return the blocks of a message whose content is a list; raises ``RowError`` for content of another form."""
    if isinstance(content, str | None):
        return []
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise RowError(f"{name}.content is neither a text nor a list of parts")
    return content


def text_of(turn: Mapping[str, Any], name: str) -> str:
    """Return the text of a message or block: its content, or the texts of its parts, one a line; or its refusal."""
    content = turn.get("content") or turn.get("refusal")
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _blocks_of(content, name) if isinstance(text := block.get("text"), str))


def _calls_of(turn: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    calls = turn.get("tool_calls") or ([turn["function_call"]] if turn.get("function_call") else [])
    return boundary.read(tuple[Mapping[str, Any], ...], calls, f"{name}.tool_calls")


def _queries(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a call searches for: the texts of its usual arguments, or the arguments as they are."""
    function = call.get("function", call)
    arguments = function.get("arguments", function.get("input", "")) if isinstance(function, Mapping) else ""
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
    """Read the passages of a tool's result: those of its JSON, or else all of it as one; JSON of an error has none.

    >>> read_pages('{"result": [[{"document": {"contents": "\\\\"Oru\\\\"\\\\nIt is old."}}]]}')[0].title
    'Oru'
    >>> read_pages("[1] Oru: It is old."), read_pages('{"error": "no such index"}')
    ([Passage(title='', sentences=('[1] Oru: It is old.',), is_gold=False)], [])
    """
    if not content.strip():
        return []
    try:
        value = boundary.parse_json(content)
    except ValueError:
        return [Passage("", (content.strip(),))]
    pages = [*_pages_in(value)]
    is_error = isinstance(value, Mapping) and bool(value.get("error"))
    return pages or ([] if is_error or value in ([], {}) else [Passage("", (content.strip(),))])


def _pages_in(value: Any) -> Iterator[Passage]:
    """Yield the passages at any depth of JSON: the texts of lists, and objects with a text."""
    if isinstance(value, list):
        for inner in value:
            yield from [page_of(inner)] if isinstance(inner, str) and inner.strip() else _pages_in(inner)
    elif isinstance(value, Mapping):
        with suppress(ValueError):
            yield page_of(value)
            return
        for inner in value.values():
            yield from _pages_in(inner) if isinstance(inner, list | Mapping) else ()


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
