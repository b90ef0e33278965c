"""The report's files: layout, marks, figures, and the same bytes twice."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.comparison.report import FILES, Report, render_report, write
from evaluators.comparison.score_tables import choose_tables
from evaluators.outcomes import Outcome
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.records import Attempt, Trajectory, Usage
from safe_stepwise.store.names import REPORT_PAGE
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


PARTS = {*FILES} - {REPORT_PAGE}
"""What a report is made of; its page is put together of these."""


@pytest.fixture(scope="module")
def made() -> Report:
    return render_report(run())


@pytest.fixture(scope="module")
def swept() -> Report:
    return render_report(sweep(simulated=True, generator="symbolic|$a$<b>"))


def table(made: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(made.files[name].decode())))


def markdown_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_main_table_has_the_papers_layout(made: Report) -> None:
    header, _, no, self_, safe, delta, *_ = markdown_rows(made.text)
    places = ("hotpotqa", "musique", "average")
    assert header == ["generator", "method", *(f"{p} {m}" for p in places for m in ("EM", "F1", "Acc"))]
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
    types = [r for r in table(made, "failures.csv") if r["method"] == "SAFE"]
    assert len(types) == 10
    assert {r["error_type"]: (r["category"], r["steps"], r["percent"]) for r in types if r["steps"] != "0"} == {
        "Off-topic": ("Procedural", "2", "33.3"),
        "Redundancy": ("Procedural", "2", "33.3"),
        "Wrong Conclusion": ("Final Answer", "2", "33.3"),
    }
    text, _, uptake = made.files["failures.md"].decode().partition("## What became")
    *_, header, _, _, safe = markdown_rows(text)
    assert (header, safe) == (["method", "step 1, %", "step 4, %"], ["SAFE", "66.7", "33.3"])
    header, _, *rows = markdown_rows(uptake)
    assert header[1:6] == ["method", "verifier", "rejected as", "retries", "mended, %"]
    # Of each benchmark's first question: Off-topic, then Redundancy in the same words, then Correct.
    assert [row[1:] for row in rows if row[1] == "SAFE"] == [
        ["SAFE", "checker", *cells, "0.0", "0.0", "0.0", "0", "–"]
        for cells in (
            ["all", "4", "50.0", "0.0", "50.0"],
            ["Off-topic", "2", "0.0", "0.0", "100.0"],
            ["Redundancy", "2", "100.0", "0.0", "0.0"],
        )
    ]
    csv_rows = [(r["method"], r["verifier"], r["error_type"], r["mended"]) for r in table(made, "uptake.csv")]
    assert (SAFE, "checker", "Redundancy", "100.0") in csv_rows


def test_a_sweep_is_told(swept: Report) -> None:
    rows = table(swept, "sweep.csv")
    assert len(rows) == 4 * 3
    assert {(r["max_steps"], r["max_retries"]) for r in rows} == {
        ("7", "1"), ("7", "3"), ("10", "1"), ("10", "3"),
    }  # fmt: skip
    assert {r["accuracy"] for r in rows if r["method"] == SAFE} == {"75.0"}
    assert set(swept.files) == PARTS - {"machines.svg", "transitions.csv"}
    assert "K=7, N=3" in swept.text


def test_one_setting_is_no_sweep(made: Report) -> None:
    machines = {"machines.svg", "transitions.csv"}
    assert PARTS - set(made.files) == {"sweep.csv"} | machines


def test_without_a_verifier_there_are_no_errors_to_show() -> None:
    names = set(render_report(outcomes([1, 0], NO)).files)
    tables = {f"{name}.{kind}" for name in ("comparison", "cost", "methods") for kind in ("md", "csv")}
    assert names == {*tables, "tests.csv", "comparison.png"}


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


@pytest.mark.usefixtures("rendered")
def test_figures_say_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    titles: list[str] = []
    draw = Axes.set_title
    monkeypatch.setattr(Axes, "set_title", lambda self, text, **k: titles.append(text) or draw(self, text, **k))
    render_report(sweep(simulated=True))
    assert len(titles) == 1
    assert all("(simulated)" in title for title in titles)
    titles.clear()
    render_report(sweep())
    assert titles
    assert not any("simulated" in title for title in titles)


def test_only_what_is_simulated_is_marked() -> None:
    made = render_report(run() + run(generator="symbolic", simulated=True))
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
    text = render_report(found).text
    assert "model, SAFE: of 8 questions 1 unscored by the judge (in no Acc); 1 failed" in text
    assert "never judged" not in text
    assert "–" in render_report([replace(o, verdict=None) for o in found]).text


Drawn = dict[str, list[Any]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The axes of each figure that is drawn from here on, in the order of their panels."""
    from safe_stepwise.store import figures

    found: Drawn = {}
    saved = figures._save

    def kept(draw: Any, *rest: Any) -> bytes:
        def noted(figure: Any) -> None:
            draw(figure)
            found[f"{len(found)}"] = figure.axes

        return saved(noted, *rest)

    monkeypatch.setattr(figures, "_save", kept)
    return found


def test_panels_of_one_figure_share_their_axes(drawn: Drawn) -> None:
    many = generators("a")
    few = [replace(o, exact_match=0.0, verdict="incorrect") for o in generators("b")[:6]]
    render_report([*many, *few])
    several = [axes for axes in drawn.values() if len(axes) > 1]
    assert len(several) == 1
    for axes in several:
        assert len({one.get_ylim() for one in axes}) == 1
        assert len({one.get_xlim() for one in axes}) == 1


def test_the_chart_of_scores_has_each_with_its_margins(drawn: Drawn, made: Report) -> None:
    render_report(run())
    (axes,) = drawn["0"]
    bars, spans = axes.containers[0::2], axes.containers[1::2]
    assert [bar.get_height() for bar in bars[-1]] == [75.0, 75.0, 75.0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "hotpotqa", "musique", "average",
    ]  # fmt: skip
    whole = made.results["systems"][-1]["average"]["accuracy"]
    (lines,) = spans[-1].lines[2]
    low, high = sorted(y for _, y in lines.get_segments()[-1])
    assert (low, high) == pytest.approx((100 * whole["low"], 100 * whole["high"]))


def test_results_hold_all_numbers(made: Report) -> None:
    found = json.loads(json.dumps(made.results, allow_nan=False))
    assert found == made.results
    assert found == render_report(run()).results
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


def test_a_name_that_says_simulated_says_it_once() -> None:
    names = [f"symbolic:error_rate={rate} (simulated)" for rate in (0.1, 0.2)]
    found = run(simulated=True)
    found += [replace(o, players={**o.players, "verifier": n}) for o in found[8:12] for n in names]
    found = [o for o in found if o.players.get("verifier") != "checker"]
    made = render_report(found)
    text = made.text + made.files["cost.md"].decode() + made.files["failures.md"].decode()
    assert f"SAFE with {names[0]} |" in text
    assert "No verification (simulated) |" in text
    named = render_report(run(simulated=True, generator=names[0]))
    rows = [line for line in named.text.splitlines() if line.startswith("| symbolic")]
    assert {row.count("(simulated)") for row in rows} == {1}
    assert "(simulated) (simulated)" not in text


def test_one_benchmark_is_not_called_several(made: Report) -> None:
    assert "The average is the mean of the 2 benchmarks." in made.text
    one = render_report(outcomes([1, 0], NO)).text
    assert "average" not in one.lower().partition("em and acc on one benchmark")[0]
    assert "(s)" not in one


def generators(*names: str, **changes: object) -> list[Outcome]:
    return [o for name in names for o in run(generator=name, **changes)]


def test_generators_are_blocks_and_their_total_has_the_headline() -> None:
    made = render_report(generators("a", "b"))
    header, _, *rows = markdown_rows(made.text.split("##")[0])
    block = ["No verification", "Self-verification", "SAFE", "Δ SAFE over Self-verification"]
    assert [row[:2] for row in rows] == [[who, method] for who in ("a", "b", "Total average") for method in block]
    assert [row[-1].split(" ±")[0] for row in rows[-4:]] == ["25.0", "50.0", "75.0", "+25.0"]
    assert header[-1] == "average Acc"
    assert "The total average is the mean over all 2 models that answer" in made.text
    csv_rows = table(made, "comparison.csv")
    totals = [r for r in csv_rows if r["generator"] == "Total average"]
    assert [r["row"] for r in totals] == [
        "total score", "total score", "total score", "total delta over Self-verification",
    ]  # fmt: skip
    assert totals[-1]["average_accuracy"] == "25.0"
    (headline,) = [
        t
        for t in table(made, "tests.csv")
        if (t["generator"], t["method"], t["than_method"], t["benchmark"], t["metric"])
        == ("Total average", SAFE, SELF, "average", "accuracy")
    ]
    assert (headline["delta"], headline["test"], headline["pairs"]) == ("25.0", "sign_flip", "8")
    assert [row["players"]["generator"] for row in made.results["totals"]] == ["Total average"] * 3


def test_what_ran_with_one_generator_alone_is_in_no_total() -> None:
    found = [*generators("a", "b"), *outcomes([1, 1], verifier="other", generator="a")]
    text = render_report(found).text
    assert "Not included: a, SAFE with other." in text
    assert len([row for row in markdown_rows(text.split("##")[0]) if row[0] == "Total average"]) == 4


def test_published_rows_stand_beside_ours_and_are_never_tested() -> None:
    found = [replace(o, benchmark=b) for b in ("2wikimultihopqa",) for o in run()[:12]] + run()
    plain, shown = render_report(found), render_report(found, published=choose_tables(["v2"]))
    assert shown.results == plain.results
    assert shown.files["tests.csv"] == plain.files["tests.csv"]
    rows = [r for r in markdown_rows(shown.text.split("##")[0]) if "published" in r[1]]
    assert len(rows) == 20 + 6  # six have a Δ
    assert all("(published: SAFE v2, Table 2)" in row[1] for row in rows)
    safe = next(r for r in rows if r[:2] == ["Qwen 3 8B", "SAFE (published: SAFE v2, Table 2)"])
    assert safe[2:] == "71.5 81.3 91.3 61.2 78.3 90.9 53.8 66.7 76.6 62.2 75.4 86.3".split()
    assert rows[-1][0] == "Total average"
    assert rows[-1][-1] == "+8.8"
    trace = next(r for r in rows if r[1].startswith("TRACE"))
    assert (trace[0], trace[2], trace[4]) == ("Llama 3 8B", "45.5", "–")
    in_csv = [r for r in table(shown, "comparison.csv") if "published" in r["row"]]
    assert len(in_csv) == len(rows)
    assert {r["simulated"] for r in in_csv} == {"false"}
    assert "| SAFE v2, Table 13 (published) | overall | 144.2M |" in shown.files["cost.md"].decode()
    assert "| 64.1 | – | – | – | 59.0 |" in shown.files["failures.md"].decode()


def test_published_rows_follow_our_own() -> None:
    found = generators("vllm:Qwen/Qwen3-8B", "other")
    rows = markdown_rows(render_report(found, published=choose_tables(["v1"])).text.split("##")[0])[2:]
    are_published = ["published" in row[1] for row in rows]
    assert are_published == sorted(are_published)
    mine = [row for row in rows if row[0] == "Qwen 3 8B"]
    # Of two of the three benchmarks the papers' average is not ours.
    assert mine[-1][2:] == "61.6 77.4 89.4 50.7 62.2 72.9 – – –".split()
    nothing = render_report([replace(o, benchmark="synthetic") for o in found], published=choose_tables(["v1"]))
    assert "The papers print no results on these benchmarks" in nothing.text


def test_printed_form_and_facts_stand_in_the_page_of_methods() -> None:
    page = render_report(run(), published=choose_tables(["sg_fsm:3"])).files["methods.md"].decode()
    rows = {tuple(row[:3]): row[3:] for row in markdown_rows(page.split("as the paper prints them")[1])}
    assert rows["Qwen 72B (SG-FSM, Table 3)", "SG-FSM2", "hotpotqa"] == ["100.0", "1.8", "28.8", "1.0", "15.7"]
    assert rows["GPT-3.5 Turbo (SG-FSM, Table 3)", "CoT", "musique"] == ["14.7", "–", "–", "–", "–"]
    assert (
        "as the paper prints them"
        not in render_report(run(), published=choose_tables(["sg_fsm"])).files["methods.md"].decode()
    )


def test_a_table_that_is_not_published_is_named() -> None:
    with pytest.raises(UserError, match="--published 'v3' is not known; did you mean v"):
        choose_tables(["v3"])


def test_failures_are_pooled_over_who_answers() -> None:
    made = render_report(generators("a", "b"))
    text = made.files["failures.md"].decode()
    rows = {row[0]: row for row in markdown_rows(text.split("The next table")[0])}
    # Twice what one has: of six steps four are procedural and two conclude wrongly.
    assert rows["SAFE"][1:] == ["a, b", "12", "66.7", "0.0", "0.0", "33.3", "66.7"]
    assert "Missing Evidence" not in text
    found = {(r["method"], r["error_type"]): r for r in table(made, "failures.csv")}
    assert found["SAFE", "Off-topic"]["steps"] == "4"
    assert found["SAFE", "Off-topic"]["category"] == "Procedural"
    mixed = render_report(generators("a") + run(generator="symbolic", simulated=True))
    names = [row[:2] for row in markdown_rows(mixed.files["failures.md"].decode())[2:]]
    assert ["SAFE", "a"] in names
    assert ["SAFE (simulated)", "symbolic"] in names


def test_conditions_stand_in_every_table() -> None:
    under = {"drop_gold": True, "corpus": "pages.jsonl@0123456789ab"}
    made = render_report(run() + [replace(o, conditions=under) for o in run()])
    assert "| SAFE, corpus=pages.jsonl@0123456789ab, drop_gold |" in made.text
    for name in ("comparison.csv", "tests.csv", "cost.csv"):
        found = {(r["corpus"], r["drop_gold"]) for r in table(made, name) if r["method"] == SAFE}
        assert found == {("", ""), ("pages.jsonl@0123456789ab", "true")}, name
    tests = table(made, "tests.csv")
    assert {(t["drop_gold"], t["than_drop_gold"]) for t in tests if t["method"] == SAFE} == {
        ("", ""), ("true", "true"), ("true", ""),
    }  # fmt: skip
    assert made.results["systems"][-1]["conditions"] == under


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


def test_a_method_with_roles_options_and_ends_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    assert PARTS - set(made.files) == {
        *("failures.md", "failures.csv", "uptake.csv", "machines.svg", "transitions.csv")
    }
    third = made.results["systems"][2]
    assert (third["players"]["scout"], third["options"]) == ("reader", {"looks": 2})
