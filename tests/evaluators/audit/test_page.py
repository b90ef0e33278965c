"""The page to judge on: what it holds, and what a reviewer can do on it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.audit.report import page_data, render_sample
from evaluators.audit.rows import AuditSample
from evaluators.audit.score import read
from safe_stepwise.errors import UserError
from safe_stepwise.store.page import write_page
from tests.browsing import BREAKOUTS, worst_contrast
from tests.evaluators.audit.made import SOUND, label_row, said, sample, step_row

HOSTILE = " ".join(BREAKOUTS)
MEANINGS = {"wrong_answer": "another answer", "Contradictory": HOSTILE}
THREE = sample(label_row("q1"), label_row("q2", stratum=SOUND), label_row("q3"))
STEPS = sample(step_row("s1"), step_row("s2"))


def written(folder: Path, made: AuditSample) -> Path:
    write_page(folder / "audit.html", render_sample(made, MEANINGS))
    return folder / "audit.html"


def press(page: Any, keys: str) -> None:
    for key in keys.split():
        page.keyboard.press(key)


def export(page: Any, folder: Path) -> Path:
    with page.expect_download() as started:
        page.keyboard.press("e")
    file = folder / started.value.suggested_filename
    started.value.save_as(file)
    return file


def count(page: Any) -> str:
    return str(page.locator("#count").inner_text())


# ------------------------------------------------------------------------------------ in a browser


def test_keys_judge_and_the_export_is_what_score_reads(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(tmp_path, THREE))
    assert count(page) == "row 1 of 3 · 0 judged"
    press(page, "2 5 6 9 m")
    page.keyboard.type("5 n: 'Oru' ünd \U0001f600")
    press(page, "Escape n")
    assert count(page) == "row 2 of 3 · 1 judged"
    assert page.locator("fieldset").count() == 4  # the type of noise is not asked of a sound row
    press(page, "1 4 6 8 ArrowRight 3 3 p u")
    assert count(page) == "row 3 of 3 · 2 judged"
    press(page, "e")
    assert "Give your name first" in page.locator("#said").inner_text()
    page.keyboard.type("Ann n. 1")
    press(page, "Escape")
    file = export(page, tmp_path)
    assert file.name == f"audit-labels-{THREE.sha256[:8]}-Ann-n.-1.jsonl"
    first, second = read([file])
    assert first.answers == {"label": "wrong", "type": "wrong", "explanation": "true", "lacks_evidence": "no"}
    assert (first.reviewer, first.note) == ("Ann n. 1", "5 n: 'Oru' ünd \U0001f600")
    assert (first.sample, first.sha256) == (THREE.sha256, THREE.rows[0].sha256)
    assert (second.key, second.stratum) == (("musique", "q2"), SOUND)
    assert second.answers == {"label": "right", "explanation": "true", "lacks_evidence": "yes"}
    keys = [*json.loads(file.read_text(encoding="utf-8").splitlines()[0])]
    assert keys == [*said("q1")]


def test_steps_have_questions_and_a_list_of_their_own(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(tmp_path, STEPS))
    page.locator("#reviewer").fill("bob")
    press(page, "Escape 2 5 8 i")
    assert page.locator("#instead").evaluate("e => e === document.activeElement")
    page.locator("#instead").select_option("Unsupported")
    assert page.locator("#instead").evaluate("e => e === document.activeElement")
    press(page, "Escape n 1 4 7")
    assert count(page) == "row 2 of 2 · 2 judged"
    press(page, "u")
    assert "Every row is judged" in page.locator("#said").inner_text()
    one, other = read([export(page, tmp_path)])
    assert one.answers == {"label": "wrong", "diagnosis": "false", "guidance": "reveals", "instead": "Unsupported"}
    assert other.answers == {"label": "right", "diagnosis": "true", "guidance": "good"}


def test_an_export_can_be_gone_on_with(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(tmp_path, THREE))
    lines = [{**said("q1"), "label": "right", "note": "so"}, {**said("q3"), "type": "wrong"}]
    ours = [{**line, "sample": THREE.sha256} for line in lines]
    file = tmp_path / "earlier.jsonl"

    def imports(content: list[dict[str, Any]]) -> str:
        file.write_text("".join(json.dumps(line) + "\n" for line in content), encoding="utf-8")
        page.locator("#said").evaluate("e => { e.textContent = ''; }")
        page.locator("#import").set_input_files(file)
        page.locator("#said", has_text=re.compile(".")).wait_for()
        return str(page.locator("#said").inner_text())

    assert imports([ours[0], lines[1]]) == "Line 2: it is of another sample. Nothing was imported."
    assert "Line 1: its row is not on this page" in imports([{**ours[0], "id": HOSTILE}])
    assert "Line 1: label has no such answer" in imports([{**ours[0], "label": HOSTILE}])
    assert "several reviewers" in imports([ours[0], {**ours[1], "reviewer": "bob"}])
    assert imports(ours) == "Imported 2 rows."
    assert page.locator("#reviewer").input_value() == "ann"
    assert "The file is bob's, and the name here ann" in imports([{**ours[0], "reviewer": "bob"}])
    press(page, "4 6 8")
    assert count(page) == "row 1 of 3 · 1 judged"
    one, other = read([export(page, tmp_path)])
    assert (one.note, one.answers["label"], one.answers["lacks_evidence"]) == ("so", "right", "yes")
    assert other.answers == {"type": "wrong"}


def test_progress_is_kept_where_the_browser_lets_it(browser: Any, tmp_path: Path) -> None:
    address = written(tmp_path, THREE).as_uri()
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.locator("#reviewer").fill("ann")
    press(page, "Escape 1 4 6 9")
    again = context.new_page()
    again.goto(address)
    assert count(again) == "row 2 of 3 · 1 judged"
    assert again.locator("#reviewer").input_value() == "ann"
    refused = context.new_page()
    refused.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    refused.goto(address)
    press(refused, "1 4 6 9")
    assert count(refused).startswith("row 1 of 3 · 1 judged · this browser keeps nothing")
    context.close()


@pytest.mark.parametrize("made", [label_row, step_row])
def test_hostile_text_is_shown_as_text(visit: Callable[..., Any], tmp_path: Path, made: Callable[..., Any]) -> None:
    page = visit(written(tmp_path, sample(made(HOSTILE, HOSTILE), made("__proto__", HOSTILE))))
    row = page.locator("#row")
    assert row.locator("script, img, svg, a").count() == 0
    text = row.inner_text()
    for part in BREAKOUTS[:4]:
        assert text.count(part) > 5
    assert "⟨U+202E⟩" in text
    assert "\u202e" not in text
    row.get_by_role("button", name="Passage 1").first.click()
    assert page.locator("#passage-1 summary").evaluate("e => e === document.activeElement")
    page.locator("#reviewer").fill("</script>")
    press(page, "Escape 1 n 2")
    found = read([export(page, tmp_path)])
    assert [judgement.id for judgement in found] == [HOSTILE, "__proto__"]


def test_gold_passages_and_supporting_sentences_are_marked(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(tmp_path, THREE))
    assert page.locator(".tag.gold").count() == 1
    assert page.locator("#passage-1").get_attribute("open") is not None
    assert page.locator("#passage-2").get_attribute("open") is None
    assert page.locator("mark").all_inner_texts() == ["Oru"]
    assert "wrong_answer another answer (confidence 0.9)" in page.locator(".verdict").inner_text()
    page.get_by_role("button", name="passage 2").click()
    assert page.locator("#passage-2").get_attribute("open") is not None
    help_ = page.locator("#help")
    help_.locator("summary").click()
    assert "1 right, 2 wrong, 3 debatable" in help_.inner_text()
    assert "u first row that is not judged" in help_.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("made", [THREE, STEPS], ids=["labels", "steps"])
def test_text_can_be_read_in_both_colour_schemes(
    visit: Callable[..., Any], tmp_path: Path, made: AuditSample, scheme: str
) -> None:
    page = visit(written(tmp_path, made), color_scheme=scheme)
    page.locator("#help summary").click()
    press(page, "e Escape 1")
    worst = worst_contrast(page)
    assert worst[0] >= 4.5, worst


def test_the_page_fits_a_narrow_screen(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(written(tmp_path, THREE), viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


# ------------------------------------------------------------------------------- without a browser


@pytest.mark.parametrize("text", BREAKOUTS)
@pytest.mark.parametrize("made", [label_row, step_row])
def test_no_text_leaves_the_element_that_carries_it(made: Callable[..., Any], text: str) -> None:
    drawn = sample(made(text, text))
    page = render_sample(drawn, {text: text})
    assert page.count("<script") == page.count("</script>") == 2
    data = page.partition('id="data">')[2].partition("</script>")[0]
    assert not set(data) & set("<>&\u2028\u2029")
    assert json.loads(data) == json.loads(json.dumps(page_data(drawn, {text: text})))


def test_the_page_loads_nothing_and_is_the_same_again(tmp_path: Path) -> None:
    one = written(tmp_path / "a", THREE).read_bytes()
    assert one == written(tmp_path / "b", THREE).read_bytes()
    page = one.decode()
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert not re.search(r"""\b(src|href)=(?!"#)""", page.partition('id="data"')[0])


def test_a_sample_is_known_by_what_is_shown() -> None:
    same = sample(label_row("q1"), label_row("q2", stratum=SOUND), label_row("q3"))
    other = sample(label_row("q1"), label_row("q2", "Marn", SOUND), label_row("q3"))
    assert same.sha256 == THREE.sha256 != other.sha256


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot be written .*choose another place"):
        write_page(tmp_path, render_sample(THREE, MEANINGS))
