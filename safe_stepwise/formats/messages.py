"""Reads and writes a chat with tool calls: a step is a turn of the assistant, passages are results of tools."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats.chains import ChainStep, StepLabel, add_pages, page_of, with_fresh_pages
from safe_stepwise.records import Passage
from safe_stepwise.store import boundary

_QUERY_KEYS = ("query_list", "queries", "query", "q", "search_query")


def read_turns(
    turns: Any, labels: Mapping[str, StepLabel] | None = None, first_pages: Sequence[Passage] = ()
) -> tuple[tuple[ChainStep, ...], tuple[Passage, ...]]:
    """Return the steps of a chat and the passages in its tools' results; raises ``ValueError`` for anything else.

    ``labels`` has steps' labels by the message's index (from 0), which is also a step's key; ``first_pages`` are the
    passages that the model had from the start. An assistant's message without text or call is not a step; a label for
    it raises ``RowError``.

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
        text = text_of(turn, name)
        if turn.get("role") in ("tool", "function"):
            add_pages(pages, read_pages(text))
        if turn.get("role") == "assistant":
            calls = turn.get("tool_calls") or ([turn["function_call"]] if turn.get("function_call") else [])
            calls = boundary.read(tuple[Mapping[str, Any], ...], calls, f"{name}.tool_calls")
            searches = tuple(query for call in calls for query in _read_queries(call))
            step = ChainStep(text.strip(), len(pages), searches, labels.get(str(number)), str(number))
            if step.shown_text:
                steps.append(step)
                labels.pop(str(number), None)
    if labels:
        raise RowError(f"step_labels[{min(labels)}]: that message is no step (an assistant's, with text or a call)")
    return tuple(steps), tuple(pages)


def text_of(turn: Mapping[str, Any], name: str) -> str:
    """Return a message's text: content, parts one a line, or refusal; raises ``RowError`` for a different schema."""
    content = turn.get("content") or turn.get("refusal") or ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise RowError(f"{name}.content is neither a text nor a list of parts")
    return "\n".join(text for block in content if isinstance(text := block.get("text"), str))


def _read_queries(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the queries of a call: the texts of the usual arguments, or else all its arguments as one text."""
    function = call.get("function", call)
    arguments = function.get("arguments", "") if isinstance(function, Mapping) else ""
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = boundary.parse_json(arguments)
    if not isinstance(arguments, Mapping):
        yield arguments.strip() if isinstance(arguments, str) else json.dumps(arguments)
        return
    values = [arguments[name] for name in _QUERY_KEYS if name in arguments]
    texts = [text for value in values for text in (value if isinstance(value, list) else [value])]
    queries = dict.fromkeys(text.strip() for text in texts if isinstance(text, str) and text.strip())
    yield from queries or (json.dumps(arguments, ensure_ascii=False),)


def read_pages(content: str) -> list[Passage]:
    """Read the passages of a tool's result: those in its JSON, or else the whole text; JSON of an error has none.

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
    pages = [*_find_pages(value)]
    is_error = isinstance(value, Mapping) and bool(value.get("error"))
    return pages or ([] if is_error or value in ([], {}) else [Passage("", (content.strip(),))])


def _find_pages(value: Any) -> Iterator[Passage]:
    """Yield the passages at any depth of JSON: the texts of lists, and objects with a text."""
    if isinstance(value, list):
        for inner in value:
            yield from [page_of(inner)] if isinstance(inner, str) and inner.strip() else _find_pages(inner)
    elif isinstance(value, Mapping):
        with suppress(ValueError):
            yield page_of(value)
            return
        for inner in value.values():
            yield from _find_pages(inner) if isinstance(inner, list | Mapping) else ()


def write_turns(question: str, steps: Sequence[ChainStep], pages: Sequence[Passage]) -> list[dict[str, Any]]:
    """Write a chat of a question and steps; passages are a tool's result before the first step that knows them."""
    turns: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for step, fresh_pages in with_fresh_pages(steps, pages):
        if fresh_pages:
            documents = [{"document": {"contents": f'"{page.title}"\n{page.text}'}} for page in fresh_pages]
            turns.append({"role": "tool", "content": json.dumps({"result": [documents]}, ensure_ascii=False)})
        turn: dict[str, Any] = {"role": "assistant", "content": step.text}
        if step.searches:
            arguments = json.dumps({"query_list": step.searches}, ensure_ascii=False)
            turn["tool_calls"] = [{"type": "function", "function": {"name": "search", "arguments": arguments}}]
        turns.append(turn)
    return turns
