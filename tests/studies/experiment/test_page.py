"""What the page says: of numbers, of what is not there, and of what a row can not mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from studies.experiment.experiment import CHANCE, LEARNED, PLAIN, Experiment, list_arms
from studies.experiment.page import draw_figures, render_page, write_report
from tests.studies.experiment.made import ADAPTER, DRAWN, experiment, gains_of, home, results, run, step

MAIN = results(run(0.4), run(0.6, ADAPTER), run(0.3, DRAWN))
STEPS = [step(n, ("Correct", "Contradictory", "Unsupported", "Off-topic")[n % 4]) for n in range(16)]
TRUTH = {one.id: one.gold for one in STEPS}


def told(**more: Any) -> Experiment:
    plain, learned, chance = list_arms(MAIN)
    gains = gains_of((learned, plain, 0.2, 0.001), (learned, chance, 0.3, 0.02))
    return experiment(**{"main": home(MAIN), "gains": {"": gains, **more.pop("gains", {})}, **more})


def line(text: str, begins: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(begins))


def test_every_arm_is_told_with_what_it_is_over_the_others() -> None:
    text = render_page(told(), {})
    row = line(text, f"| {LEARNED} | 60.0")
    assert row == f"| {LEARNED} | 60.0 \\[20.0, 80.0\\] | 61.0 | 25.0 | 25.0 | 5.0 | 8.5 | 4.5 | 0 |"
    assert line(text, f"| {PLAIN} | 40.0").split(" | ")[4:6] == ["–", "–"]  # nobody judged
    assert line(text, f"| {LEARNED} | +20.0") == (f"| {LEARNED} | +20.0 \\[+15.0, +25.0\\] | 0.002 | – | – |")
    assert line(text, f"| {CHANCE} (simulated) | –").endswith("| -30.0 \\[-35.0, -25.0\\] | 0.040 |")
    assert f"`{DRAWN}`" in text
    assert "graph checker" not in text  # none was asked
    assert "Not made yet" not in text


def test_what_was_left_out_is_named() -> None:
    of = told()
    lock = {**of.lock, "skipped": ["data", "space", "verdict-order"]}
    assert "**Not made yet: data, verdict-order.**" in render_page(told(lock=lock), {})


def test_a_training_is_told_with_its_speed_and_what_was_too_long() -> None:
    record = {
        "base_model": {"name": "somebody/tiny"},
        "dataset": {"rows": 1000, "dropped_as_long": ["a", "b"]},
        "model": {"sha256": "5ddd"},
        "run": {"steps": 250, "tokens": 60_000, "seconds": 120.0},
        "curve": [{"step": 1, "loss": 2.5}, {"step": 2, "loss": 0.25}],
    }
    of = told(generator=record)
    text = render_page(of, dict.fromkeys(("curves.png",), b""))
    assert "| generator | 1,000 | 250 | 60,000 | 2.0 | 500 | 2.5000 | 0.2500 |" in text
    assert "1,000 rows (2 more were too long); SHA-256 of its weights: `5ddd`." in text
    assert "trained once" in text
    assert "![Training loss by step](results/curves.png)" in text


def test_options_that_a_block_varies_tell_its_rows_apart() -> None:
    of = results(*(run(0.5, ADAPTER, on_exhausted=one) for one in ("accept", "drop")))
    block = home(of, "blocks/exhausted")
    text = render_page(told(blocks={"exhausted": [block]}, gains={"blocks/exhausted": gains_of()}), {})
    assert "| arm | on_exhausted | EM |" in text
    assert f"| {LEARNED} | drop | 50.0 " in text
    assert "`blocks/exhausted`, 200 of synthetic:" in text


def test_a_verifier_of_a_block_is_not_the_release_s_own() -> None:
    record = {
        "base_model": {"name": "tiny"},
        "dataset": {"rows": 10},
        "model": {"sha256": "1"},
        "run": {"steps": 2, "tokens": 20, "seconds": 0.0},
        "curve": [{"step": 1, "loss": 2.5}],
    }
    block = home(results(run(0.5, "vllm:adapter@7")), "blocks/data/few", training=record)
    text = render_page(told(blocks={"data": [block]}, gains={"blocks/data/few": gains_of()}), {})
    assert "| SAFE, data/few | 50.0 " in text
    assert "| data/few | 10 | 2 | 20 | 0.0 | 0 | 2.5000 | 2.5000 |" in text


def test_a_method_without_the_loop_s_options_has_none() -> None:
    other = {**run(0.5), "method": "cot", "options": {"samples": 1}}
    one = results(other, run(0.6, ADAPTER, max_retries=1), questions=50)
    text = render_page(told(blocks={"cot": [home(one, "blocks/cot")]}, gains={"blocks/cot": gains_of()}), {})
    assert "`blocks/cot`, 50 of synthetic, samples=1, max_retries=1:" in text
    assert "| cot | 50.0 " in text


def test_who_could_not_judge_is_not_told_as_a_verifier_that_lost() -> None:
    lost = run(0.2, ADAPTER)
    lost["all"] = {**lost["all"], "unread": 800, "error_types": {}}
    block = home(results(lost), "blocks/self")
    text = render_page(told(blocks={"self": [block]}, gains={"blocks/self": gains_of()}), {})
    assert f"**{LEARNED} judged nothing**: 100.0% of its verdicts could not be read." in text


def test_verifiers_are_compared_on_the_same_steps_alone() -> None:
    own = home(MAIN, said=TRUTH)
    blind = home(None, "blocks/data/blind", dict.fromkeys(TRUTH, "Correct"))
    fewer = home(None, "blocks/data/fewer", {"s0": "Correct"})
    of = told(main=own, steps=STEPS, probe=TRUTH, blocks={"data": [blind, fewer]})
    text = render_page(of, {})
    assert "| the release's own | data/blind | +1.000 [+1.000, +1.000] | +0.750 [" in text.replace("\\", "")
    assert "| data/blind | 1.000 | 0.000 | 0.000 | 0.000 |" in text  # recall, label by label
    assert (
        "Not compared, as they did not judge the same steps: the release's own and data/fewer; "
        "data/blind and data/fewer." in text
    )
    assert "its error F1 is 0.10 or more above that of a probe without passages | +0.000" in text


def test_an_example_can_not_end_its_own_block() -> None:
    text = render_page(told(example="Passage 1: ```` <b>x</b>"), {})
    assert "`````text\nPassage 1: ```` <b>x</b>\n`````" in text


def test_figures_draw_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []

    def png(draw: Any, size: tuple[float, float]) -> bytes:
        drawn.append(Figure(size))
        draw(drawn[-1])
        return b"png"

    monkeypatch.setattr("studies.experiment.page.png", png)
    swept = [run(0.3 + n / 10, ADAPTER, max_retries=n) for n in (2, 0, 1)]
    block = home(results(*swept), "blocks/retries")
    assert {*draw_figures(told(blocks={"retries": [block]}))} == {"arms.png", "retries.png"}
    bars, lines = (figure.axes[0] for figure in drawn)
    assert [bar.get_width() for bar in bars.patches] == pytest.approx([40, 60, 30])  # type: ignore[attr-defined]
    assert [label.get_text() for label in bars.get_yticklabels()][2] == f"{CHANCE} (simulated)"
    assert [*lines.lines[0].get_xdata()] == [0, 1, 2]  # type: ignore[arg-type]
    assert [*lines.lines[0].get_ydata()] == pytest.approx([30, 40, 50])  # type: ignore[arg-type]
    assert [*lines.lines[1].get_ydata()] == [40, 40]  # type: ignore[arg-type]
    assert lines.get_ylim()[0] == 0


def test_it_is_written_with_its_lock(tmp_path: Path) -> None:
    assert write_report(told(), tmp_path / "docs") == tmp_path / "docs" / "results.md"
    names = {file.name for file in (tmp_path / "docs" / "results").iterdir()}
    assert names == {"arms.png", "release.lock.json"}
