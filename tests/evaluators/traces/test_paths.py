"""Whether answers were earned, on the page of traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders.synthetic import generate, parse_spec, to_row
from evaluators.traces.page import read_traces, write
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import CHAINS, FAITHFULNESS
from scripts import evaluate_stepwise
from tests.browsing import BREAKOUTS, chromium, visits, worst_contrast

HOSTILE = " ".join(BREAKOUTS)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two methods and a vote, simulated and measured."""
    root = tmp_path_factory.mktemp("measured")
    made = generate(parse_spec("rows=12,seed=5,noise=0"), split="validation")
    rows = "".join(json.dumps(to_row(q, "none")) + "\n" for q, _ in made)
    (root / "rows.jsonl").write_text(rows, "utf-8")
    evaluate_stepwise.main(
        [
            f"--questions={root / 'rows.jsonl'}", f"--output={root / 'out'}", "--passages=all",
            f"--cache={root / 'cache.sqlite'}", "--method=no_verification", "--method=direct",
            "--method=cot", "--samples=1,3",
            "--generator=symbolic:error_rate=0.2,spurious=0.5,seed=1",
        ]
    )  # fmt: skip
    return root / "out"


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(measured, tmp_path / "out"))


@pytest.fixture(scope="module")
def browser(measured: Path) -> Iterator[Any]:
    with chromium() as launched:
        yield launched


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / CHAINS).read_text("utf-8").splitlines()]


def right_by_a_wrong_path(folder: Path, rule: str) -> int:
    systems = json.loads((folder / FAITHFULNESS).read_text("utf-8"))["systems"]
    return sum(
        row["exact_match"]
        and systems[row["system"]]["taken"] != "best_of_n"
        and row["response"] == "chain"
        and row["rules"][rule]["path"] == "unfaithful"
        for row in lines(folder)
    )


def test_each_run_has_the_verdicts_of_its_own_chain(measured: Path) -> None:
    found = read_traces(measured)
    loop = next(n for n, one in enumerate(found["systems"]) if one["method"] == "no_verification")
    for run in found["runs"]:
        if run["system"] != loop:
            continue
        assert [one["rule"] for one in run["paths"]] == ["house", "paper"]
        said = [one["text"] for one in run["attempts"]][:-1]
        for one in run["paths"]:
            assert len(one["steps"]) == len(said)
            pairs = zip(one["steps"], said, strict=True)
            assert all(step["text"] in text for step, text in pairs)
    told = [one for run in found["runs"] for one in run["paths"]]
    assert {one["fault"] for one in told if one["path"] == "no chain"} == {"unstructured"}


def test_without_a_measurement_the_page_has_no_paths(folder: Path) -> None:
    (folder / FAITHFULNESS).unlink()
    assert not any(run["paths"] for run in read_traces(folder)["runs"])


@pytest.mark.parametrize(
    "damaged",
    [
        "{", "[]", '{"system": 0}',
        '{"system": 0, "benchmark": "b", "question_id": "q", "response": "chain", "steps": [],'
        ' "rules": {"house": {"path": "faithful", "fault": "", "first": null,'
        ' "missing": [["a", "b"]], "steps": []}}}',
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(folder: Path, damaged: str) -> None:
    kept = (folder / CHAINS).read_text("utf-8").splitlines()
    (folder / CHAINS).write_text("\n".join([*kept[:3], damaged, *kept[3:]]), "utf-8")
    with pytest.raises(UserError, match=rf"{CHAINS}, line 4: "):
        read_traces(folder)


@pytest.mark.parametrize("damaged", ["{", "[]", '{"systems": [{"taken": "only"}]}'])
def test_a_damaged_record_is_named(folder: Path, damaged: str) -> None:
    (folder / FAITHFULNESS).write_text(damaged, "utf-8")
    with pytest.raises(UserError, match=f"{FAITHFULNESS}: .*measure it anew"):
        read_traces(folder)


@pytest.mark.parametrize("rule", ["house", "paper"])
def test_right_answers_by_a_wrong_path_can_be_chosen(browser: Any, folder: Path, rule: str) -> None:
    expected = right_by_a_wrong_path(folder, rule)
    assert expected > 0
    write(folder, folder / "traces.html")
    with visits(browser) as visit:
        page = visit(folder / "traces.html")
        select = page.locator(f"#filter-path-{rule}")
        assert select.locator("option").nth(1).inner_text() == (f"right answer, wrong path ({expected})")
        select.select_option(index=1)
        assert page.locator("#count").inner_text().startswith(f"{expected} of ")
        page.locator("#list li a").first.click()
        shown = page.locator(".path").first
        assert shown.locator("thead th").all_inner_texts()[:4] == [
            "Step", "What it says", "Triples", "Verdict",
        ]  # fmt: skip
        assert page.locator(".fate.unfaithful").count() > 0
        assert worst_contrast(page)[0] >= 4.5


def test_what_was_measured_is_shown_as_text(browser: Any, folder: Path) -> None:
    rows = lines(folder)
    for row in rows:
        for judged in row["rules"].values():
            judged["fault"] = HOSTILE
            judged["missing"] = [[HOSTILE] * 3]
            for step in judged["steps"]:
                step["fault"], step["triples"] = HOSTILE, [[HOSTILE] * 3]
        for step in row["steps"]:
            step["text"] = HOSTILE
        row["rules"] = {f"{rule}{HOSTILE}": judged for rule, judged in row["rules"].items()}
        for judged in [*row["rules"].values()][:1]:
            row["rules"]["__proto__"] = judged
    (folder / CHAINS).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write(folder, folder / "traces.html")
    with visits(browser) as visit:
        page = visit(folder / "traces.html")
        assert "7*7" in page.locator(".path").first.inner_text()
        assert page.locator("#details img, #details script").count() == 0
