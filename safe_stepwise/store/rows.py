"""Reads rows of anyone's own: guesses which columns hold what, and brings a row into our columns.

Our columns are those of a verified row (`codec.question_row`). A *field* is one of `FIELDS`, a *column* what a row
calls it. Several columns may hold one field (``context_1``, ``context_2``). What is of no known form stays as it is,
so that who reads the row says what is wrong with it.

Known forms: an answer as a text, a list, or SQuAD's ``{"text": [...]}``; passages as texts, pairs of title and text or
sentences, objects, lists by column, a mapping of titles to texts, or one text; supporting facts as pairs of title (or
passage number) and sentence number, titles, passage numbers, or sentences in full; triples and hops as lists or
objects. A text that holds JSON is read, as in CSV.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from safe_stepwise.errors import RowError, UserError, check_choice
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.terminal import printable

Row = Mapping[str, Any]
Columns = Mapping[str, tuple[str, ...]]
"""The columns that hold each field."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "_id", "qid", "question_id", "uid"),
    "question": ("question", "query"),
    "answer": (
        "references",
        "answer",
        "answers",
        "gold_answer",
        "gold_answers",
        "golden_answers",
        "ground_truth",
        "target",
    ),
    "aliases": ("aliases", "answer_aliases"),
    "passages": ("passages", "contexts", "context", "paragraphs", "documents", "docs", "ctxs", "pages", "texts"),
    "title": ("title",),
    "supporting_facts": ("supporting_facts", "supporting", "gold_passages", "gold_titles", "gold_ids"),
    "evidence": ("evidence", "evidences", "triples", "facts"),
    "decomposition": ("decomposition", "question_decomposition", "hops"),
    "kind": ("kind", "type", "question_type"),
    "hops": ("hops", "num_hops"),
}
"""Each field, with the names that its column may have; the first that a file has counts."""
REQUIRED = ("question", "answer", "passages")
_NUMBERED = re.compile(r"(?:context|passage|paragraph|document|doc)[ _-]?(\d{1,3})", re.IGNORECASE)
_TITLE, _TEXT = ("title", "name", "heading"), ("sentences", "text", "paragraph_text", "content", "passage", "body")
_GOLD, _INDEX = ("is_gold", "is_supporting", "is_relevant"), ("idx", "index")
_SENTENCE = ("sentence", "sent_id", "sent_idx", "sentence_id")
_TRIPLE = {"head": ("head", "subject"), "relation": ("relation", "predicate", "property"), "tail": ("tail", "object")}
_HOP = {"question": ("question", "sub_question"), "answer": ("answer", "sub_answer"), "passage": ("passage",)}
_SUPPORT = "paragraph_support_idx"
"""MuSiQue's name for the passage of a hop, by the passage's own index."""


def guess_columns(rows: Sequence[Row], fixed_columns: Columns | None = None) -> Columns:
    """Return the columns of each field that the rows have, by their names; ``fixed_columns`` are not guessed.

    >>> guess_columns([{"Query": "Where is Oru?", "ground_truth": "Marn", "ctxs": ["Oru lies in Marn."]}])
    {'question': ('Query',), 'answer': ('ground_truth',), 'passages': ('ctxs',)}
    """
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, "", []))
    by_name = {re.sub(r"[ -]", "_", name.lower()): name for name in reversed(names)}
    numbered = sorted((int(match[1]), name) for name in names if (match := _NUMBERED.fullmatch(name)))
    columns = dict(fixed_columns or {})
    for field, spellings in FIELDS.items():
        usable = (by_name[s] for s in spellings if s in by_name and _fits(field, rows, by_name[s]))
        if field not in columns and (name := next(usable, None)) is not None:
            columns[field] = (name,)
        elif field == "passages" and field not in columns and numbered:
            columns[field] = tuple(name for _, name in numbered)
    return {field: columns[field] for field in FIELDS if field in columns}


def parse_columns(content: Any, place: str) -> Columns:
    """Read a field map, ``{field: column or columns}``; raise ``UserError`` with ``place`` for another form."""
    if not isinstance(content, Mapping) or not content:
        raise UserError(f"{place}: is no map of fields to columns, such as question: query")
    columns = {}
    for field, names in content.items():
        check_choice(str(field), FIELDS, f"{place}: the field")
        names = (names,) if isinstance(names, str) else names
        if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
            raise UserError(f"{place}: {field}: write the name of a column, or a list of names")
        columns[str(field)] = tuple(names)
    return columns


def check_columns(columns: Columns, rows: Sequence[Row], place: str, mend: str) -> None:
    """Raise ``UserError`` with all required fields that have no column, and all columns that no row has."""
    names = dict.fromkeys(name for row in rows for name in row)
    faults = [f"no row has the column {name!r}" for many in columns.values() for name in many if name not in names]
    if lacking := [field for field in REQUIRED if field not in columns]:
        faults.append(f"no column is known to hold {' and '.join(lacking)}")
    if faults:
        raise UserError(f"{place}: {'; '.join(faults)}. It has {printable(', '.join(names))[:300]}; {mend}")


def own_columns(row: Row, columns: Columns | None = None) -> dict[str, Any]:
    """Return a row in our columns, without those that it lacks; the columns are guessed if they are not given.

    A list of answers stands under ``references``. Where no passage is marked as gold, those are that a supporting fact
    or a hop names. Raises ``RowError`` for a fact or hop of a passage that is not there.

    >>> row = {"question": "Where is Oru?", "answers": {"text": ["Marn"]}, "title": "Oru", "context": "It is in Marn."}
    >>> own_columns(row)["references"], own_columns(row)["passages"]
    (['Marn'], [{'title': 'Oru', 'text': 'It is in Marn.'}])
    >>> own_columns({"question": "Where is Oru?", "passages": ["Vel.", "Marn."], "gold_ids": [1]})["passages"][1]
    {'text': 'Marn.', 'is_gold': True}
    """
    columns = guess_columns([row]) if columns is None else columns
    own_row = {field: _cell(row, names) for field, names in columns.items()}
    own_row = {field: value for field, value in own_row.items() if value is not None}
    if "answer" in own_row:
        answer = _answer(own_row.pop("answer"))
        own_row["references" if isinstance(answer, list) or columns["answer"] == ("references",) else "answer"] = (
            answer
        )
    if isinstance(own_row.get("id"), int):
        own_row["id"] = str(own_row["id"])
    if isinstance(hops := own_row.get("hops"), str) and hops.isdecimal():
        own_row["hops"] = int(hops)
    title = own_row.pop("title", None)
    if not isinstance(passages := _passages(own_row.get("passages"), title), list):
        return own_row
    own_row["passages"] = passages
    for field, names in (("evidence", _TRIPLE), ("decomposition", _HOP)):
        if field in own_row:
            own_row[field] = [_renamed(entry, names) for entry in _entries(own_row[field])]
    _mark_gold(own_row)
    return own_row


def with_answer(own_row: Row) -> dict[str, Any]:
    """Return a row of `own_columns` with the first of its ``references`` as answer, and the others as aliases."""
    content = dict(own_row)
    if isinstance(references := content.pop("references", None), list) and references:
        content |= {"answer": references[0], "aliases": references[1:]}
    return content


def _mark_gold(own_row: dict[str, Any]) -> None:
    """Read the supporting facts, and the hops' passages, and mark the passages that they name if none is marked."""
    pages = [page for page in own_row["passages"] if isinstance(page, dict)]
    by_index = {page.pop("idx"): number for number, page in enumerate(pages, 1) if "idx" in page}
    gold: set[int] = set()
    for hop in own_row.get("decomposition", ()):
        if isinstance(hop, dict) and _SUPPORT in hop:
            hop["passage"] = by_index.get(hop.pop(_SUPPORT))
        elif isinstance(hop, dict):
            hop.setdefault("passage", None)
        passage = hop.get("passage") if isinstance(hop, dict) else None
        gold |= {passage - 1} if isinstance(passage, int) and 0 < passage <= len(pages) else set()
    facts = []
    for number, entry in enumerate(_entries(own_row.get("supporting_facts")), 1):
        fact, index = _fact(entry, pages, f"supporting fact {number}")
        facts += [] if fact is None else [fact]
        gold |= set() if index is None else {index}
    if facts or own_row.get("supporting_facts"):
        own_row["supporting_facts"] = facts
    if not any("is_gold" in page for page in pages):
        for index in gold:
            pages[index]["is_gold"] = True


def _fact(entry: Any, pages: Sequence[Row], label: str) -> tuple[Any, int | None]:
    """Return a supporting fact as ``{title, sentence}`` (None if it names no sentence), and its passage from 0."""
    if isinstance(entry, Mapping):
        entry = [_first(entry, (*_TITLE, *_INDEX)), _first(entry, _SENTENCE)]
    reference, *sentence = entry if isinstance(entry, list | tuple) and entry else [entry]
    index = _index_of(reference, pages)
    if index is None and (not sentence or isinstance(reference, int)):
        spelling = printable(str(reference))[:60]
        raise RowError(f"{label} names {spelling!r}: no title, number (from 0) or sentence of the passages")
    if not sentence or sentence == [None]:
        return None, index
    return {"title": reference if index is None else pages[index].get("title", ""), "sentence": sentence[0]}, index


def _index_of(reference: Any, pages: Sequence[Row]) -> int | None:
    """Return the number (from 0) of the passage with a title or number, or that holds a sentence in full."""
    if isinstance(reference, int) and not isinstance(reference, bool):
        return reference if 0 <= reference < len(pages) else None
    if not isinstance(reference, str) or not (words := _words(reference)):
        return None
    titles = [_words(str(page.get("title") or "")) for page in pages]
    if words in titles:
        return titles.index(words)
    texts = (_words(f"{page.get('text') or ''} {' '.join(map(str, page.get('sentences') or ()))}") for page in pages)
    return next((index for index, text in enumerate(texts) if " " in words and words in text), None)


def _passages(value: Any, title: Any) -> Any:
    value = _parsed(value)
    if isinstance(value, str):
        texts = [text.strip() for text in re.split(r"\n\s*\n", value) if text.strip()]
        value = [{"title": title, "text": value}] if isinstance(title, str) else texts
    elif isinstance(value, Mapping) and any(isinstance(value.get(name), list) for name in _TEXT):
        value = _transposed(value)
    elif isinstance(value, Mapping) and _first(value, _TEXT) is None:
        value = [*value.items()]
    elif isinstance(value, Mapping):
        value = [value]
    return [*map(_passage, value)] if isinstance(value, list) else value


def _passage(content: Any) -> Any:
    if isinstance(content, str):
        return {"text": content}
    if isinstance(content, list | tuple) and len(content) == 2 and isinstance(content[0], str):
        content = {"title": content[0], "sentences" if isinstance(content[1], list | tuple) else "text": content[1]}
    if not isinstance(content, Mapping) or {"text", "sentences"} <= content.keys():
        return content
    text = _first(content, _TEXT)
    page = {"title": _first(content, _TITLE), "text": text, "is_gold": _first(content, _GOLD)}
    page["idx"] = _first(content, _INDEX)
    if isinstance(text, list | tuple):
        page["sentences"] = page.pop("text")
    return {name: value for name, value in page.items() if value is not None}


def _transposed(value: Row) -> list[Any]:
    """Return the objects of lists by column; lists of different lengths are no columns."""
    lists = {name: many for name, many in value.items() if isinstance(many, list)}
    if len({len(many) for many in lists.values()}) != 1:
        return [value]
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


def _entries(value: Any) -> list[Any]:
    value = _parsed(value)
    if isinstance(value, Mapping):
        return _transposed(value)
    return [] if value is None else [*value] if isinstance(value, list | tuple) else [value]


def _renamed(entry: Any, names: Mapping[str, Sequence[str]]) -> Any:
    if isinstance(entry, list | tuple) and len(entry) == len(names):
        return dict(zip(names, entry, strict=True))
    if not isinstance(entry, Mapping):
        return entry
    renamed = {name: value for name, others in names.items() if (value := _first(entry, others)) is not None}
    return renamed | {_SUPPORT: entry[_SUPPORT]} if _SUPPORT in entry else renamed


def _answer(value: Any) -> Any:
    value = _parsed(value) if str(value).lstrip()[:1] in ("[", "{") else value
    if isinstance(value, Mapping):
        value = _first(value, ("text", "answer", "value", "target"))
    if isinstance(value, list | tuple):
        return [_answer(answer) for answer in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _cell(row: Row, names: Sequence[str]) -> Any:
    """Return the value of a field's column, or the list of those of several; None for an empty one."""
    if len(names) == 1:
        return None if row.get(names[0]) == "" else row.get(names[0])
    return [row[name] for name in names if row.get(name) not in (None, "")] or None


def _parsed(value: Any) -> Any:
    """Return the value of a text that holds a JSON list or object, as in CSV; anything else stays."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return parse_json(value)
    return value


def _first(content: Row, names: Sequence[str]) -> Any:
    return next((content[name] for name in names if content.get(name) is not None), None)


def _words(text: str) -> str:
    return " ".join(text.lower().split())


def _fits(field: str, rows: Sequence[Row], name: str) -> bool:
    """Whether a column of a name that may mean several things holds what the field needs, as far as can be seen."""
    value = next((value for row in rows if (value := _parsed(row.get(name))) not in (None, "", [])), None)
    if field in ("evidence", "decomposition"):
        needed = (_TRIPLE if field == "evidence" else _HOP).values()
        entry = next(iter(_entries(value)), None)
        if isinstance(entry, Mapping):
            return any(_first(entry, names) is not None for names in needed)
        return isinstance(entry, list | tuple) and len(entry) == 3
    return not (field == "hops" and isinstance(value, list | tuple | Mapping))
