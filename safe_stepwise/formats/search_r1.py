"""Rollouts of Search-R1 (arXiv 2503.09516): one text with tags.

``{"question": "Where is Oru?", "response": "<think>I look it up.</think><search>Oru</search><information>Doc 1(Title:
"Oru") It is in Marn.</information><think>It is in Marn.</think><answer>Marn</answer>"}``

A step is the text between two results. It includes the thoughts, as this model reasons nowhere else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from safe_stepwise.errors import RowError
from safe_stepwise.formats import plain
from safe_stepwise.formats import steps as own_rows
from safe_stepwise.formats.chains import ANSWER, Chain, ChainStep, add_pages, with_fresh_pages
from safe_stepwise.records import Passage

# A tag holds no other tag of its name, so that the search stays linear in a text that never closes them.
_RESULT = re.compile(r"<information>((?:(?!</?information>).)*+)(?:</information>|\Z)", re.DOTALL)
_SEARCH = re.compile(r"<search>((?:(?!</?search>).)*+)</search>", re.DOTALL)
_THOUGHT = re.compile(r"</?think>")
_INVALID_ACTION = re.compile(
    r"My (?:previous )?action is (?:invalid|not correct)\..{0,600}?Let me try again\.\s*", re.DOTALL
)
"""The environment's text after an action that it could not read."""
_PROMPT = re.compile(r"\A.*(?:<\|im_start\|>|<\|start_header_id\|>)assistant(?:<\|end_header_id\|>)?\s*", re.DOTALL)
_DOCUMENT = re.compile(r"(?:\A|\n)\s*Doc \d+ ?\(Title: ?(?:\"([^\n]*?)\"\)|([^)\n]*)\))")
_TAGS = re.compile(r"</?(?:information|search|answer)>")


def read(row: Mapping[str, Any]) -> Chain:
    """Read a chain from a tagged text, without its prompt; raises ``ValueError`` for a row without a text."""
    chain, response = plain.read_response(row)
    steps, pages = list[ChainStep](), [*chain.passages]
    pieces = _RESULT.split(_INVALID_ACTION.sub("", _PROMPT.sub("", response)))
    for turn, result in zip(pieces[::2], (*pieces[1::2], ""), strict=True):
        searches = tuple(query.strip() for query in _SEARCH.findall(turn) if query.strip())
        text = _THOUGHT.sub("\n", _SEARCH.sub("", turn)).strip()
        step = ChainStep(text, len(pages), searches)
        steps += [step] if step.shown_text else []
        add_pages(pages, _read_documents(result))
    answers = [answer.strip() for answer in ANSWER.findall(response)]
    prediction = chain.prediction or (answers[-1] if answers else "")
    return replace(chain, steps=tuple(steps), passages=tuple(pages), prediction=prediction)


def _read_documents(result: str) -> Iterator[Passage]:
    """Yield the documents of a result; a text before the first one is also a passage."""
    headers = [*_DOCUMENT.finditer(result)]
    edges = [*(header.start() for header in headers), len(result)]
    if opening := result[: edges[0]].strip():
        yield Passage("", (opening,))
    for header, end in zip(headers, edges[1:], strict=True):
        yield Passage((header[1] or header[2] or "").strip(), (result[header.end() : end].strip(),))


def write(chain: Chain) -> Iterator[dict[str, Any]]:
    """Write a chain as a tagged text; raises ``RowError`` for a text that has a tag."""
    lines = list[str]()
    for step, fresh_pages in with_fresh_pages(chain.steps, chain.passages):
        documents = [f'Doc {n}(Title: "{page.title}") {page.text}' for n, page in enumerate(fresh_pages, 1)]
        texts = [ANSWER.sub("", step.text), *step.searches, *documents]
        if any(_TAGS.search(text) for text in texts):
            raise RowError("a step or passage holds a tag of Search-R1 (<search>, <information>, <answer>); remove it")
        lines += [f"<information>{chr(10).join(documents)}</information>"] if documents else []
        lines += [f"<think>{ANSWER.sub('', step.text).strip()}</think>"] if step.text else []
        lines += [f"<search>{query}</search>" for query in step.searches]
        lines += [tag[0] for tag in ANSWER.finditer(step.text)]
    yield {**own_rows.describe(chain), "response": "\n".join(lines)}
