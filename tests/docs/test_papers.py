"""Every row of docs/papers.md runs as it stands, and makes the file that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from safe_stepwise.commands.main import NAME, carry_out

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "papers.md"
MANIFEST = ROOT / "scripts" / "releases" / "paper.yaml"
TEXT = DOCUMENT.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in TEXT.splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| v1 ", "| SG-FSM ", "| Direct ", "| Deliberation "))
]
MADE = [row for row in ROWS if len(row) == 6]
OTHERS = [row for row in ROWS if len(row) == 5]
KEPT = [row for row in ROWS if len(row) == 4]
BLOCKS = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))["blocks"]
PRINTED = {
    "v1": {"Table": set(range(1, 13)), "Figure": set(range(1, 24))},
    "v2": {"Table": set(range(1, 18)) - {10}, "Figure": set(range(1, 24)) - {4}},
    "SG-FSM": {"Table": {1, 2, 3}, "Figure": {1, 2, 3, 4}},
    "Direct evaluation of reasoning": {"Table": set(range(1, 9)), "Figure": set(range(1, 13))},
    "Deliberation on Priors": {"Table": set(range(1, 8)), "Figure": set(range(1, 11))},
}
"""The numbers that each paper prints, or speaks of: the text of v2 has no Table 10 and no Figure 4."""


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def numbers(cells: list[str], kind: str) -> set[int]:
    """
    >>> sorted(numbers(["Tables 2-4, 8", "Figure 6, Table 12"], "Table"))
    [2, 3, 4, 8, 12]
    """
    found: set[int] = set()
    for cell in cells:
        for said in re.findall(rf"{kind}s? ([\d\-, ]+)", cell):
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", said):
                found |= set(range(int(first), int(last or first) + 1))
    return found


def call(command: str) -> None:
    name, *arguments = shlex.split(command)
    assert name == NAME
    carry_out(arguments)


@pytest.mark.timeout(1800)
def test_the_rows_make_what_they_name(reader: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In their order: a row may open what one above it made, and says so by its paths alone."""
    before = re.search(r"```bash\n(.*?)```", TEXT, re.DOTALL)
    assert before is not None
    for command in before[1].splitlines():
        call(command)
    assert len(MADE) >= 18
    assert len(OTHERS) >= 17
    for *_, commands, file, _ in [*MADE, *OTHERS]:
        path = reader / code(file)[0]
        if code(commands):
            path.unlink(missing_ok=True)
        for command in code(commands):
            call(command)
        assert path.stat().st_size > 0, commands
    capsys.readouterr()


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_priced_without_what_it_needs(
    block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "release"
    carry_out(["regenerate", str(MANIFEST), "--output", str(output), "--only", block, "--dry-run"])
    assert re.search(rf"^{block} +[\d,]+ ", capsys.readouterr().out, re.MULTILINE)
    assert not output.exists()


def test_each_block_has_its_row() -> None:
    named = {name for row in MADE for name in code(row[5])}
    assert named == {*BLOCKS, "(no block)"}


def cells_of(paper: str) -> list[str]:
    """What names a paper's tables and figures: a column of SAFE's tables, or the paper's section."""
    if paper in ("v1", "v2"):
        return [row[("v1", "v2").index(paper)] for row in [*MADE, *KEPT]]
    section = TEXT.partition(f"\n## {paper}\n")[2].partition("\n## ")[0]
    return section.replace(" and ", ", ").splitlines()


@pytest.mark.parametrize("kind", ["Table", "Figure"])
@pytest.mark.parametrize("paper", PRINTED)
def test_no_table_or_figure_of_a_paper_is_forgotten(paper: str, kind: str) -> None:
    assert numbers(cells_of(paper), kind) == PRINTED[paper][kind]


def test_what_the_page_links_to_is_there() -> None:
    assert len(KEPT) >= 14
    assert all(re.search(r"\]\(.+?\)", row[3]) for row in KEPT)
    for link in re.findall(r"\]\(((?!https?:|#)[^)#]+)\)", TEXT):
        assert (DOCUMENT.parent / link).exists(), link
