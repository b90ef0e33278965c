"""Read REVEAL (arXiv 2402.00559): chains of thought whose steps people held against evidence from Wikipedia.

Its table has a row for each step and each piece of evidence. The columns read are ``answer_id``, ``step_idx``,
``question``, ``step``, ``evidence`` and ``correctness_label``. The Hub's copy is gated, and a test set only: it may be
neither trained on nor spread.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from safe_stepwise.errors import RowError, UserError, at_place
from safe_stepwise.formats.chains import RIGHT, WRONG, Chain, ChainStep, StepLabel, check_chain
from safe_stepwise.records import Passage
from safe_stepwise.store.grouping import grouped
from safe_stepwise.store.terminal import printable

NAME = "reveal"
TABLE = "eval/reveal_eval.csv"
"""The file of the Hub's dataset with the steps on which annotators agree."""
_COLUMNS = ("answer_id", "step_idx", "question", "step", "evidence", "correctness_label")
_LABELS: Mapping[str, StepLabel | None] = {"correct": RIGHT, "incorrect": WRONG, "": None}

_TableRow = Mapping[str, str]


def read_table(file: Path) -> Iterator[tuple[str, Chain]]:
    """Yield the chains of a table, each after its place; raise ``UserError`` for a table or row that is not REVEAL's.

    A step without a label says nothing. All evidence of an answer are its passages, which every step knows.
    """
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{file}: can't be read as a CSV table in UTF-8 ({error})") from None
    if missing := [name for name in _COLUMNS if name not in (reader.fieldnames or ())]:
        raise UserError(f"{file}: lacks the columns {', '.join(missing)}; give REVEAL's {TABLE}")
    for answer, answer_rows in grouped(rows, lambda row: row[1]["answer_id"]).items():
        place = f"{file}, line {answer_rows[0][0]}"
        with at_place(place, ValueError):
            chain = check_chain(_make_chain(answer, [row for _, row in answer_rows]))
        yield place, chain


def _make_chain(answer: str, rows: list[_TableRow]) -> Chain:
    if cut := [name for name in _COLUMNS if any(row[name] is None for row in rows)]:
        raise RowError(f"a row of this answer ends before {cut[0]}")
    steps = [_make_step(number, step_rows) for number, step_rows in grouped(rows, _step_number).items()]
    texts = dict.fromkeys(row["evidence"].strip() for row in rows)
    passages = tuple(Passage("", (text,)) for text in texts if text)
    return Chain(rows[0]["question"], tuple(step for _, step in sorted(steps)), answer, passages)


def _step_number(row: _TableRow) -> int:
    if not row["step_idx"].strip().isdecimal():
        raise RowError(f"step_idx is {printable(row['step_idx'])!r}, expected a number")
    return int(row["step_idx"])


def _make_step(number: int, rows: list[_TableRow]) -> tuple[int, ChainStep]:
    """Make a step of the rows of its pieces of evidence, which agree in text and label."""
    labels = {row["correctness_label"].strip().lower() for row in rows}
    texts = {row["step"].strip() for row in rows}
    if unknown := labels - _LABELS.keys():
        raise RowError(f"correctness_label is {printable(min(unknown))!r}; expected Correct, Incorrect or nothing")
    if len(labels) > 1 or len(texts) > 1:
        raise RowError(f"step {number} has two texts or labels")
    return number, ChainStep(texts.pop(), label=_LABELS[labels.pop()])
