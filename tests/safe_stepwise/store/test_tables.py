"""One table in four forms; what is missing is a dash, and nothing in CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.store import tables
from safe_stepwise.store.tables import Column, Sheet, csv_bytes, markdown, table_of, text_table


@dataclass(frozen=True)
class Score:
    name: str
    rows: int
    share: float | None
    span: Sequence[float] | None = None


ROWS = [Score("a|b", 2000, 0.5, (0.25, 0.75)), Score("c", 7, None)]
COLUMNS: list[Column[Score]] = [
    Column("name", lambda score: score.name),
    Column("rows", lambda score: score.rows, tables.count),
    Column("EM", lambda score: (score.share, score.span), tables.interval),
    Column("Δ", lambda score: score.share, tables.signed),
]


def test_markdown_has_a_dash_for_what_is_missing() -> None:
    assert markdown(table_of(COLUMNS, ROWS)).splitlines() == [
        "| name | rows | EM | Δ |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 2,000 | 50.0 \\[25.0, 75.0\\] | +50.0 |",
        "| c | 7 | – | – |",
    ]


def test_csv_has_nothing_for_what_is_missing() -> None:
    rows = Column[Score]("", lambda score: score.rows, key="rows")
    share = Column[Score]("", lambda score: score.share, key="EM")
    assert Sheet((rows, share), ROWS).csv == b"rows,EM\n2000,0.5\n7,\n"


def test_text_has_its_numbers_to_the_right() -> None:
    assert text_table([("name", "rows"), ("a", 2000), ("b", 7)]).splitlines()[2:] == ["a     2,000", "b         7"]


def test_a_table_without_rows_is_its_header() -> None:
    assert markdown(table_of(COLUMNS, [])).splitlines()[1] == "| --- | --- | --- | --- |"


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1))
def test_csv_comes_back(rows: list[tuple[str, str]]) -> None:
    written = csv_bytes([*rows])
    assert written.isascii() or written.decode()


@given(st.text())
def test_a_markdown_cell_stays_one_cell(value: str) -> None:
    row = markdown([("a",), (value,)]).splitlines()[-1]
    assert row.replace("\\|", "").replace("\\\\", "").count("|") == 2 or "\\\\|" in row


def test_every_line_of_csv_has_as_many_cells() -> None:
    cells = [*csv.reader(io.StringIO(csv_bytes(table_of(COLUMNS, ROWS)).decode()))]
    assert {len(row) for row in cells} == {len(COLUMNS)}


def test_a_table_is_one_tuple_for_page_and_machine() -> None:
    columns = (
        Column("benchmark", lambda row: row["name"], key="benchmark"),
        Column("tokens", lambda row: row["tokens"], tables.count, "tokens"),
        Column("EM", lambda row: row["em"], tables.percent, "exact_match"),
        Column("", lambda row: row["simulated"], key="simulated"),
        Column("p", lambda row: row["p"], tables.p_value),
    )
    rows = [
        {"name": "a|b", "tokens": 12_345, "em": 0.5, "simulated": True, "p": 0.0001},
        {"name": "c", "tokens": 0, "em": None, "simulated": False, "p": None},
    ]
    sheet = Sheet(columns, rows)
    assert sheet.markdown.splitlines() == [
        "| benchmark | tokens | EM | p |",
        "| --- | ---: | ---: | ---: |",
        "| a\\|b | 12,345 | 50.0 | \\<0.001 |",
        "| c | 0 | – | – |",
    ]
    assert sheet.csv.decode() == "benchmark,tokens,exact_match,simulated\na|b,12345,50.0,true\nc,0,,false\n"
