"""Reads *own rows*, those of a user: guesses the column of each field, and converts a row to our columns.

Our columns are those of a verified row (`codec.question_row`). A *field* is one of `FIELDS`, a *column* the row's name
for it. Several columns may hold one field (``context_1``, ``context_2``). A value of unknown form is left unchanged,
so that the reader of the row reports what is wrong with it.

Known forms: an answer as a text, a list, or SQuAD's ``{"text": [...]}``; passages as texts, pairs of title and text or
sentences, objects, lists by column, a mapping of titles to texts, or one text; supporting facts as pairs of title (or
passage number) and sentence number, titles, passage numbers, or sentences in full; triples and hops as lists or
objects. A text that holds JSON is read, as in CSV.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from safe_stepwise.errors import RowError, UserError, check_choice
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.packaged import read_yaml
from safe_stepwise.store.terminal import printable

Row = Mapping[str, Any]
Columns = Mapping[str, tuple[str, ...]]
"""The columns that hold each field."""
FIELDS: Mapping[str, Sequence[str]] = read_yaml(Path(__file__).with_name("columns.yaml"))
"""The names that each field's column may have; the first one that a file has is used."""
REQUIRED = ("question", "answer", "passages")
_NUMBERED_COLUMN = re.compile(r"(?:context|passage|paragraph|document|doc)[ _-]?(\d{1,3})", re.IGNORECASE)
_TITLES, _TEXTS = ("title", "name", "heading"), ("sentences", "text", "paragraph_text", "content", "passage", "body")
_GOLDS, _INDICES = ("is_gold", "is_supporting", "is_relevant"), ("idx", "index")
_SENTENCES = ("sentence", "sent_id", "sent_idx", "sentence_id")
_TRIPLES = {"head": ("head", "subject"), "relation": ("relation", "predicate", "property"), "tail": ("tail", "object")}
_HOPS = {"question": ("question", "sub_question"), "answer": ("answer", "sub_answer"), "passage": ("passage",)}
_MUSIQUE_PASSAGE = "paragraph_support_idx"
"""MuSiQue's key for a hop's passage; its value is the ``idx`` of that passage."""


def guess_columns(rows: Sequence[Row], fixed_columns: Columns | None = None) -> Columns:
    """Return the columns of each field that the rows have, by their names; ``fixed_columns`` are not guessed.

    >>> guess_columns([{"Query": "Where is Oru?", "ground_truth": "Marn", "ctxs": ["Oru lies in Marn."]}])
    {'question': ('Query',), 'answer': ('ground_truth',), 'passages': ('ctxs',)}
    """
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, "", []))
    by_name = {re.sub(r"[ -]", "_", name.lower()): name for name in reversed(names)}
    numbered = sorted((int(match[1]), name) for name in names if (match := _NUMBERED_COLUMN.fullmatch(name)))
    columns = dict(fixed_columns or {})
    for field, spellings in FIELDS.items():
        usable = (by_name[s] for s in spellings if s in by_name and _fits_field(field, rows, by_name[s]))
        if field not in columns and (name := next(usable, None)) is not None:
            columns[field] = (name,)
        elif field == "passages" and field not in columns and numbered:
            columns[field] = tuple(name for _, name in numbered)
    return {field: columns[field] for field in FIELDS if field in columns}


def parse_columns(content: Any, place: str) -> Columns:
    """Read a field map, ``{field: column or columns}``; raise ``UserError`` with ``place`` for anything else."""
    if not isinstance(content, Mapping) or not content:
        raise UserError(f"{place}: is not a map of fields to columns, such as question: query")
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
    absent = [name for chosen in columns.values() for name in chosen if name not in names]
    faults = [f"no row has the column {name!r}" for name in absent]
    lacking = [field for field in REQUIRED if field not in columns]
    by_field = {field: [n for n in names if re.sub(r"[ -]", "_", n.lower()) in FIELDS[field]] for field in lacking}
    empty = [repr(name)[:60] for columns_of_field in by_field.values() for name in columns_of_field[:1]]
    if lacking := [field for field in lacking if not by_field[field]]:
        faults.append(f"no column is known to hold {' and '.join(lacking)}")
    if faults:
        faults[-1] += f". It has {', '.join(names)[:300]}; {mend}"
    faults += [f"the column {name} is empty in all rows that were read" for name in empty]
    if faults:
        raise UserError(f"{place}: {printable('; '.join(faults))}")


def own_columns(row: Row, columns: Columns | None = None) -> dict[str, Any]:
    """Return a row in our columns, without those that it lacks; ``columns`` are guessed if they are not given.

    A list of answers gets the key ``references``. If no passage is marked as gold, those that a supporting fact or hop
    names are marked. Raises ``RowError`` for a fact or hop whose passage is missing.

    >>> row = {"question": "Where is Oru?", "answers": {"text": ["Marn"]}, "title": "Oru", "context": "It is in Marn."}
    >>> own_columns(row)["references"], own_columns(row)["passages"]
    (['Marn'], [{'title': 'Oru', 'text': 'It is in Marn.'}])
    """
    columns = guess_columns([row]) if columns is None else columns
    own_row = {field: _read_cell(row, names) for field, names in columns.items()}
    own_row = {field: value for field, value in own_row.items() if value is not None}
    if "answer" in own_row:
        answer = _read_answer(own_row.pop("answer"))
        is_list = isinstance(answer, list) or columns["answer"] == ("references",)
        own_row["references" if is_list else "answer"] = answer
    if isinstance(own_row.get("id"), int):
        own_row["id"] = str(own_row["id"])
    if isinstance(hops := own_row.get("hops"), str) and hops.isdecimal():
        own_row["hops"] = int(hops)
    title = own_row.pop("title", None)
    if not isinstance(passages := _read_passages(own_row.get("passages"), title), list):
        return own_row
    own_row["passages"] = passages
    for field, names in (("evidence", _TRIPLES), ("decomposition", _HOPS)):
        if field in own_row:
            own_row[field] = [_rename_keys(entry, names) for entry in entries(own_row[field])]
    _mark_gold(own_row)
    return own_row


def with_answer(own_row: Row) -> dict[str, Any]:
    """Return a row of `own_columns` with the first of its ``references`` as its answer, and the others as aliases."""
    content = dict(own_row)
    if isinstance(references := content.pop("references", None), list) and references:
        content |= {"answer": references[0], "aliases": references[1:]}
    return content


def _mark_gold(own_row: dict[str, Any]) -> None:
    """Read the supporting facts and the hops' passages; if no passage is marked as gold, mark those that they name."""
    pages = [page for page in own_row["passages"] if isinstance(page, dict)]
    by_index = {page.pop("idx"): number for number, page in enumerate(pages, 1) if "idx" in page}
    gold: set[int] = set()
    for hop in own_row.get("decomposition", ()):
        if isinstance(hop, dict) and _MUSIQUE_PASSAGE in hop:
            hop["passage"] = by_index.get(hop.pop(_MUSIQUE_PASSAGE))
        elif isinstance(hop, dict):
            hop.setdefault("passage", None)
        passage = hop.get("passage") if isinstance(hop, dict) else None
        gold |= {passage - 1} if isinstance(passage, int) and 0 < passage <= len(pages) else set()
    facts = []
    for number, entry in enumerate(entries(own_row.get("supporting_facts")), 1):
        fact, index = _read_fact(entry, pages, f"supporting fact {number}")
        facts += [] if fact is None else [fact]
        gold |= set() if index is None else {index}
    if facts or own_row.get("supporting_facts"):
        own_row["supporting_facts"] = facts
    if not any("is_gold" in page for page in pages):
        for index in gold:
            pages[index]["is_gold"] = True


def _read_fact(entry: Any, pages: Sequence[Row], label: str) -> tuple[Any, int | None]:
    """Return a supporting fact as ``{title, sentence}`` (None without a sentence), and its passage's index."""
    if isinstance(entry, Mapping):
        entry = [_first_value(entry, (*_TITLES, *_INDICES)), _first_value(entry, _SENTENCES)]
    reference, *sentence = entry if isinstance(entry, list | tuple) and entry else [entry]
    index = _find_passage(reference, pages)
    if index is None and (not sentence or isinstance(reference, int)):
        spelling = printable(str(reference))[:60]
        raise RowError(f"{label} names {spelling!r}: no title, number (from 0) or sentence of the passages")
    if not sentence or sentence == [None]:
        return None, index
    return {"title": reference if index is None else pages[index].get("title", ""), "sentence": sentence[0]}, index


def _find_passage(reference: Any, pages: Sequence[Row]) -> int | None:
    """Return the index (from 0) of the passage with a title, a number or a full sentence; None if there is none."""
    if isinstance(reference, int) and not isinstance(reference, bool):
        return reference if 0 <= reference < len(pages) else None
    if not isinstance(reference, str) or not (words := _normalise(reference)):
        return None
    titles = [_normalise(str(page.get("title") or "")) for page in pages]
    if words in titles:
        return titles.index(words)
    sentences = ((page.get("text") or "", *(page.get("sentences") or ())) for page in pages)
    texts = (_normalise(" ".join(map(str, page_sentences))) for page_sentences in sentences)
    return next((index for index, text in enumerate(texts) if " " in words and words in text), None)


def _read_passages(value: Any, title: Any) -> Any:
    value = _parse_if_json(value)
    if isinstance(value, str):
        texts = [text.strip() for text in re.split(r"\n\s*\n", value) if text.strip()]
        value = [{"title": title, "text": value}] if isinstance(title, str) else texts
    elif isinstance(value, Mapping):
        is_by_column = any(isinstance(value.get(name), list) for name in _TEXTS)
        is_by_title = _first_value(value, _TEXTS) is None
        value = _transpose(value) if is_by_column else [*value.items()] if is_by_title else [value]
    return [*map(_read_passage, value)] if isinstance(value, list) else value


def _read_passage(content: Any) -> Any:
    if isinstance(content, str):
        return {"text": content}
    if isinstance(content, list | tuple) and len(content) == 2 and isinstance(content[0], str):
        content = {"title": content[0], "sentences" if isinstance(content[1], list | tuple) else "text": content[1]}
    if not isinstance(content, Mapping) or {"text", "sentences"} <= content.keys():
        return content
    text = _first_value(content, _TEXTS)
    page = {"title": _first_value(content, _TITLES), "text": text, "is_gold": _first_value(content, _GOLDS)}
    page["idx"] = _first_value(content, _INDICES)
    if isinstance(text, list | tuple):
        page["sentences"] = page.pop("text")
    return {name: value for name, value in page.items() if value is not None}


def _transpose(value: Row) -> list[Any]:
    """Turn lists by column into objects; a value whose lists have different lengths is kept as it is."""
    lists = {name: cells for name, cells in value.items() if isinstance(cells, list)}
    if len({len(cells) for cells in lists.values()}) != 1:
        return [value]
    return [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]


def entries(value: Any) -> list[Any]:
    """Return the entries of a list (perhaps in JSON) or of lists by column; any other value is the only entry."""
    value = _parse_if_json(value)
    if isinstance(value, Mapping):
        return _transpose(value)
    return [] if value is None else [*value] if isinstance(value, list | tuple) else [value]


def _rename_keys(entry: Any, names: Mapping[str, Sequence[str]]) -> Any:
    if isinstance(entry, list | tuple) and len(entry) == len(names):
        return dict(zip(names, entry, strict=True))
    if not isinstance(entry, Mapping):
        return entry
    renamed = {name: value for name, keys in names.items() if (value := _first_value(entry, keys)) is not None}
    return renamed | {_MUSIQUE_PASSAGE: entry[_MUSIQUE_PASSAGE]} if _MUSIQUE_PASSAGE in entry else renamed


def _read_answer(value: Any) -> Any:
    value = _parse_if_json(value) if str(value).lstrip()[:1] in ("[", "{") else value
    if isinstance(value, Mapping):
        value = _first_value(value, ("text", "answer", "value", "target"))
    if isinstance(value, list | tuple):
        return [_read_answer(answer) for answer in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _read_cell(row: Row, names: Sequence[str]) -> Any:
    """Return the value of a field's column, or the list of several columns' values; None if they are empty."""
    if len(names) == 1:
        return None if row.get(names[0]) == "" else row.get(names[0])
    return [row[name] for name in names if row.get(name) not in (None, "")] or None


def _parse_if_json(value: Any) -> Any:
    """Parse a text that is a JSON list or object, as in CSV; return anything else unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        with suppress(ValueError):
            return parse_json(value)
    return value


def _first_value(content: Row, names: Sequence[str]) -> Any:
    return next((content[name] for name in names if content.get(name) is not None), None)


def _normalise(text: str) -> str:
    return " ".join(text.lower().split())


def _fits_field(field: str, rows: Sequence[Row], name: str) -> bool:
    """Whether a column, whose name may have several meanings, seems to hold what a field needs."""
    value = next((value for row in rows if (value := _parse_if_json(row.get(name))) not in (None, "", [])), None)
    if field in ("evidence", "decomposition"):
        needed = (_TRIPLES if field == "evidence" else _HOPS).values()
        entry = next(iter(entries(value)), None)
        if isinstance(entry, Mapping):
            return any(_first_value(entry, names) is not None for names in needed)
        return isinstance(entry, list | tuple) and len(entry) == 3
    return not (field == "hops" and isinstance(value, list | tuple | Mapping))
