"""The report's files: layout, marks, figures, and the same bytes twice."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.comparison.report import FILES, Report, report, write
from evaluators.outcomes import Outcome
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.records import Attempt, Trajectory, Usage
from tests.makers.outcomes import outcomes, trajectory
from tests.scripts.test_toy_method import Scouting

NO, SELF, SAFE = "no_verification", "self_verification", "safe"
ERRORS = [(1, "Off-topic"), (1, "Redundancy"), (4, "Wrong Conclusion")]


def run(**changes: object) -> list[Outcome]:
    """Three methods on two benchmarks; the verifiers find errors."""
    found: list[Outcome] = []
    for benchmark in ("hotpotqa", "musique"):
        for method, scores in ((NO, [1, 0, 0, 0]), (SELF, [1, 1, 0, 0]), (SAFE, [1, 1, 1, 0])):
            for o in outcomes(scores, method, benchmark=benchmark, **changes):
                errors = ERRORS if o.question_id == "q0" else []
                found.append(replace(o, trajectory=trajectory(o.question_id, method, errors)))
    return found


def sweep(**changes: object) -> list[Outcome]:
    """`run` under two K and two N."""
    return [o for k in (7, 10) for n in (1, 3) for o in run(max_steps=k, max_retries=n, **changes)]


@pytest.fixture(scope="module")
def made() -> Report:
    return report(run())


@pytest.fixture(scope="module")
def swept() -> Report:
    return report(sweep(simulated=True, generator="symbolic|$a$<b>"))


def table(made: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(made.files[name].decode())))


def markdown_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_main_table_has_the_papers_layout(made: Report) -> None:
    header, _, no, self_, safe, delta, *_ = markdown_rows(made.text)
    places = ("hotpotqa", "musique", "average")
    assert header == [
        "generator",
        "method",
        *(f"{p} {m}" for p in places for m in ("EM", "F1", "Acc")),
    ]
    assert [r[1] for r in (no, self_, safe)] == ["No verification", "Self-verification", "SAFE"]
    assert delta[1] == "Δ SAFE over Self-verification"
    assert [row[-1].split(" ±")[0] for row in (no, self_, safe, delta)] == [
        "25.0", "50.0", "75.0", "+25.0",
    ]  # fmt: skip
    assert all("±" in cell for row in (no, self_, safe, delta) for cell in row[2:])
    assert "McNemar" in made.text
    assert "simulated" not in made.text.lower()


def test_the_csv_says_the_same(made: Report) -> None:
    rows = table(made, "comparison.csv")
    assert [(r["method"], r["row"], r["average_accuracy"], r["simulated"]) for r in rows] == [
        (NO, "score", "25.0", "false"),
        (SELF, "score", "50.0", "false"),
        (SAFE, "score", "75.0", "false"),
        (SAFE, "delta over Self-verification", "25.0", "false"),
    ]
    safe = rows[2]
    assert float(safe["musique_f1_low"]) <= 75.0 <= float(safe["musique_f1_high"])
    assert (safe["musique_questions"], safe["musique_scored"], safe["musique_unscored"]) == (
        "4", "4", "0",
    )  # fmt: skip
    tests = table(made, "tests.csv")
    assert len(tests) == 3 * 3 * 3  # pairs of methods, columns, measures
    assert {t["test"] for t in tests} == {"mcnemar", "sign_flip"}


def test_cost_is_told_by_role_as_in_the_paper(made: Report) -> None:
    rows = {(r["method"], r["role"]): r for r in table(made, "cost.csv")}
    assert set(rows) == {
        (NO, "generator"), (NO, "overall"),
        *((m, role) for m in (SELF, SAFE) for role in ("generator", "verifier", "overall")),
    }  # fmt: skip
    calls = 8 * 2 + 2 * len(ERRORS)
    whole = rows[SAFE, "overall"]
    assert int(whole["calls"]) == 2 * calls
    assert int(whole["prompt_tokens"]) == calls * (100 + 200)
    assert int(whole["cached_tokens"]) == calls * (60 + 180)
    assert int(whole["computed_tokens"]) == calls * (40 + 20)
    assert int(whole["completion_tokens"]) == calls * (10 + 20)
    assert whole["cached_percent"] == "80.0"
    assert rows[SAFE, "verifier"]["cached_percent"] == "90.0"
    assert whole["prompt_tokens_per_question"] == f"{calls * 300 / 8:.1f}"
    assert whole["calls_per_question"] == f"{2 * calls / 8:.2f}"
    assert "Self-verification" in made.files["cost.md"].decode()


def test_errors_are_told_by_type_and_position(made: Report) -> None:
    types = [r for r in table(made, "error_types.csv") if r["method"] == SAFE]
    assert len(types) == 10
    assert {
        r["error_type"]: (r["category"], r["steps"], r["percent"])
        for r in types
        if r["steps"] != "0"
    } == {
        "Off-topic": ("Procedural", "2", "33.3"),
        "Redundancy": ("Procedural", "2", "33.3"),
        "Wrong Conclusion": ("Final Answer", "2", "33.3"),
    }
    positions = [r for r in table(made, "error_positions.csv") if r["method"] == SAFE]
    assert [(r["position"], r["steps"], r["cumulative_percent"]) for r in positions] == [
        ("1", "4", "66.7"),
        ("4", "2", "100.0"),
    ]


def test_a_sweep_is_told_and_drawn(swept: Report) -> None:
    rows = table(swept, "sweep.csv")
    assert len(rows) == 4 * 3
    assert {(r["max_steps"], r["max_retries"]) for r in rows} == {
        ("7", "1"), ("7", "3"), ("10", "1"), ("10", "3"),
    }  # fmt: skip
    assert {r["accuracy"] for r in rows if r["method"] == SAFE} == {"75.0"}
    assert set(swept.files) == set(FILES)
    assert "K=7, N=3" in swept.text


def test_one_setting_is_no_sweep(made: Report) -> None:
    assert set(FILES) - set(made.files) == {"sweep.csv", "sweep.png"}


def test_without_a_verifier_there_are_no_errors_to_show() -> None:
    names = set(report(outcomes([1, 0], NO)).files)
    assert names == {"comparison.md", "comparison.csv", "tests.csv", "cost.md", "cost.csv"}


def test_simulated_is_said_everywhere(swept: Report) -> None:
    for name in ("comparison.md", "cost.md"):
        text = swept.files[name].decode()
        titles = [line for line in text.splitlines() if line.startswith("#")]
        assert all("(simulated)" in title for title in titles)
        rows = [r for r in markdown_rows(text) if r[0].startswith("symbolic")]
        assert rows
        assert all("(simulated)" in row[1] for row in rows)
    for name in swept.files:
        if name.endswith(".csv"):
            assert {row["simulated"] for row in table(swept, name)} == {"true"}, name
    assert swept.results["simulated"] is True
    assert all(system["simulated"] for system in swept.results["systems"])


def test_figures_say_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    titles: list[str] = []
    draw = Axes.set_title
    monkeypatch.setattr(
        Axes, "set_title", lambda self, text, **k: titles.append(text) or draw(self, text, **k)
    )
    report(sweep(simulated=True))
    assert len(titles) == 2 + 2 + 1  # SAFE and self-verification twice, the sweep
    assert all("(simulated)" in title for title in titles)
    titles.clear()
    report(sweep())
    assert titles
    assert not any("simulated" in title for title in titles)


def test_only_what_is_simulated_is_marked() -> None:
    made = report(run() + run(generator="symbolic", simulated=True))
    rows = {(r["generator"], r["simulated"]) for r in table(made, "comparison.csv")}
    assert rows == {("model", "false"), ("symbolic", "true")}
    assert made.text.startswith("# Comparison (simulated)")
    names = {(r[0], "(simulated)" in r[1]) for r in markdown_rows(made.text)[2:10]}
    assert names == {("model", False), ("symbolic", True)}


def test_names_of_models_break_no_table(swept: Report) -> None:
    assert r"symbolic\|$a$\<b>" in swept.text
    widths = {len(row) for row in markdown_rows(swept.text.split("## Paired")[0])}
    assert len(widths) == 1
    assert {r["generator"] for r in table(swept, "cost.csv")} == {"symbolic|$a$<b>"}


def test_unscored_and_failed_questions_are_pointed_out() -> None:
    found = run()
    found[-1] = replace(found[-1], verdict="unscored")
    lost = replace(found[-2].trajectory, stop_reason="failed")
    found[-2] = replace(found[-2], trajectory=lost)
    text = report(found).text
    assert "model, SAFE: of 8 questions 1 unscored by the judge (in no Acc); 1 failed" in text
    assert "never judged" not in text
    assert "–" in report([replace(o, verdict=None) for o in found]).text


def test_results_hold_all_numbers(made: Report) -> None:
    found = json.loads(json.dumps(made.results, allow_nan=False))
    assert found == made.results
    assert found == report(run()).results
    safe = found["systems"][-1]
    assert safe["players"] == {"generator": "model", "verifier": "checker"}
    assert safe["options"] == {"max_steps": 10, "max_retries": 3}
    assert safe["average"]["accuracy"]["value"] == 0.75
    assert safe["benchmarks"]["musique"]["unscored"] == 0
    assert safe["benchmarks"]["musique"]["exact_match"]["value"] == 0.75
    assert safe["loop"]["error_types"]["Off-topic"] == 2
    assert safe["loop"]["error_positions"] == {"1": 4, "4": 2}
    assert (found["seed"], found["resamples"], found["confidence"]) == (0, 10_000, 0.95)
    assert len(found["differences"]) == 27


def test_same_outcomes_same_bytes(swept: Report, tmp_path: Path) -> None:
    found = sweep(simulated=True, generator="symbolic|$a$<b>")
    written = write(reversed(found), tmp_path / "report")
    assert written == swept
    on_disk = {path.name: path.read_bytes() for path in (tmp_path / "report").iterdir()}
    assert on_disk == swept.files
    assert all(on_disk[n].startswith(b"\x89PNG") for n in on_disk if n.endswith(".png"))


def test_files_of_an_earlier_report_go(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    write(sweep(), tmp_path)
    made = write(run(), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*made.files, "mine.txt"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        write(outcomes([1], NO), tmp_path / "file" / "report")


def scouted(looks: int, scores: list[float]) -> list[Outcome]:
    """What a method that no table was made for did: a scout reads, a writer answers."""
    usage = {"scout": Usage(100, 60, 10), "writer": Usage(50, 0, 5)}
    tries = (
        *(Attempt(n, "x", None, n > 1, {"scout": usage["scout"]}, state="Look", read=[n],
                  next_state="Write") for n in range(1, looks + 1)),
        Attempt(looks + 1, "y", None, True, {"writer": usage["writer"]}, state="Write"),
    )  # fmt: skip
    stops = ["answered", *["gave_up"] * (len(scores) - 1)]
    return [
        replace(
            o,
            players={"scout": "reader", "writer": "model"},
            options={"looks": looks},
            trajectory=Trajectory(o.question_id, "scouting", (), tries, "x", stop),
        )
        for o, stop in zip(outcomes(scores, "scouting"), stops, strict=True)
    ]


def test_a_method_with_roles_options_and_ends_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(METHODS, "scouting", Scouting())
    made = write([*scouted(1, [1, 0, 0]), *scouted(2, [1, 1, 0]), *outcomes([0, 1, 0], NO)],
                 tmp_path)  # fmt: skip
    header, _, *rows = markdown_rows(made.text.split("##")[0])
    assert header[:2] == ["generator / writer", "method"]
    assert [row[:2] for row in rows] == [
        ["model", "No verification"],
        ["model", "Scouting, looks=1"],
        ["model", "Δ Scouting, looks=1 over No verification"],
        ["model", "Scouting, looks=2"],
        ["model", "Δ Scouting, looks=2 over No verification"],
    ]
    assert "Scouting's scout: reader. K=10, N=3." in made.text
    tests = table(made, "tests.csv")
    assert {(t["method"], t["looks"], t["than_method"], t["than_looks"]) for t in tests} == {
        ("scouting", "1", NO, ""), ("scouting", "2", NO, ""), ("scouting", "2", "scouting", "1"),
    }  # fmt: skip
    assert {(t["pairs"], t["than_scout"]) for t in tests if t["than_looks"]} == {("3", "reader")}
    costs = {(c["looks"], c["role"]): c for c in table(made, "cost.csv") if c["scout"]}
    assert {key: int(cost["prompt_tokens"]) for key, cost in costs.items()} == {
        ("1", "writer"): 150, ("1", "scout"): 300, ("1", "overall"): 450,
        ("2", "writer"): 150, ("2", "scout"): 600, ("2", "overall"): 750,
    }  # fmt: skip
    assert costs["2", "scout"]["cached_percent"] == "60.0"
    ended = markdown_rows(made.files["cost.md"].decode().split("## How")[1])
    assert ended[0][4:8] == ["answered", "out of steps", "gave_up", "failed"]
    assert [row[4:8] for row in ended[2:]] == [
        ["3", "0", "0", "0"], ["1", "0", "2", "0"], ["1", "0", "2", "0"],
    ]  # fmt: skip
    assert [row[9] for row in ended[2:]] == ["0", "–", "–"]
    assert [(r["method"], r["looks"]) for r in table(made, "sweep.csv")] == [
        (NO, ""), ("scouting", "1"), ("scouting", "2"),
    ]  # fmt: skip
    assert set(FILES) - set(made.files) == {
        f"error_{what}.{kind}" for what in ("types", "positions") for kind in ("csv", "png")
    }
    third = made.results["systems"][2]
    assert (third["players"]["scout"], third["options"]) == ("reader", {"looks": 2})


def test_a_sweep_is_drawn_along_the_option_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn: list[tuple[str, int]] = []
    titles: list[str] = []
    line, title = Axes.plot, Axes.set_title
    monkeypatch.setattr(
        Axes,
        "plot",
        lambda self, x, y, **k: drawn.append((k["label"], len(x))) or line(self, x, y, **k),
    )
    monkeypatch.setattr(
        Axes, "set_title", lambda self, text, **k: titles.append(text) or title(self, text)
    )
    report([*scouted(1, [1, 0]), *scouted(2, [1, 1]), *outcomes([0, 1], NO)])
    assert drawn == [("No verification", 1), ("scouting", 2)]
    assert "at each point looks" in titles[-1]
    drawn.clear()
    report(sweep())
    assert drawn == [(f"{name}, K={k}", 2) for k in (7, 10)
                     for name in ("No verification", "Self-verification", "SAFE")]  # fmt: skip
    assert "at each point N," in titles[-1]
