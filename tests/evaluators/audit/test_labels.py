"""The page of labels: what it holds, how it is filtered and searched, and that no text leaves its place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.audit import labels
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LABELS_PAGE, VERIFIED
from scripts import build_verified, verify, view_labels
from tests.browsing import BREAKOUTS, worst_contrast

HOSTILE = " ".join(text for text in BREAKOUTS if "half a pair" not in text)
FACTS = [["Dune Rain", "director", "Ors Velt"], ["Ors Velt", "place of birth", "Oru"]]
FILM, BORN = "Dune Rain is a film directed by Ors Velt.", "Ors Velt was born in {}."


def row(id_: str, passages: list[list[Any]], answer: str = "Oru", question: str = "") -> dict[str, Any]:
    pages = [{"title": title, "sentences": text} for title, text in passages]
    asked = question or "Where was the director of Dune Rain born?"
    return {"id": id_, "question": asked, "answer": answer, "passages": pages, "triples": FACTS}


ROWS = [
    row("sound", [["Rain", ["Rain is water."]], ["Dune Rain", [FILM]], ["Ors Velt", ["He ran.", BORN.format("Oru")]]]),
    row("wrong", [["Dune Rain", [FILM]], ["Ors Velt", ["Velt ran far.", BORN.format("Marn")]]]),
    row("silent", [["Dune Rain", [FILM]], ["Ors Velt", ["Ors Velt was tall."]]]),
    row(
        "<b>bad",
        [["Dune Rain", [FILM, HOSTILE]], ["Ors Velt", [BORN.format("Oru")]]],
        question=f"{HOSTILE} {FILM[:9]}?",
    ),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    file = folder / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    verify.main([str(file), "--output", str(folder / "out"), "--workers=1"])
    return folder / "out"


def count(page: Any) -> str:
    return str(page.locator("#count").inner_text())


# ------------------------------------------------------------------------------------ in a browser


def test_a_row_shows_its_label_path_and_the_sentences_it_rests_on(visit: Callable[..., Any], built: Path) -> None:
    page = visit(built / LABELS_PAGE, "#mine/validation/wrong")
    verdict = page.locator(".verdict").inner_text()
    assert "wrong answer" in verdict
    assert "passage 2 gives “Marn”" in verdict
    assert "confidence 0.7" in verdict
    assert page.locator("mark.quoted").all_inner_texts() == [BORN.format("Marn")]
    assert FILM in page.locator("mark").all_inner_texts()
    assert page.locator(".chain").inner_text().replace("\n", " ") == "Dune Rain — director (Passage 1) → Ors Velt"
    page.get_by_role("link", name="sound").first.click()
    assert page.locator(".chain .answer").inner_text() == "Oru"
    # The passages of the path come first and are open, with their numbers; the last is closed.
    assert [text.split(":")[0] for text in page.locator(".passage summary").all_inner_texts()] == [
        "Passage 2", "Passage 3", "Passage 1",
    ]  # fmt: skip
    assert [p.get_attribute("open") is not None for p in page.locator(".passage").all()] == [True, True, False]
    page.go_back()
    assert page.locator("#details h2").inner_text() == ROWS[1]["question"]


def test_filters_and_search_choose_rows(visit: Callable[..., Any], built: Path) -> None:
    page = visit(built / LABELS_PAGE)
    assert count(page) == "4 of 4 rows"
    assert page.locator("#part").is_hidden()
    assert page.locator("#filter-benchmark").count() == 0  # there is one
    page.locator("#filter-label").select_option(label="any noise (2)")
    assert count(page) == "2 of 4 rows"
    page.locator("#totals").get_by_role("button", name="wrong answer 1").click()
    assert count(page) == "1 of 4 rows"
    page.locator("#clear").click()
    page.locator("#filter-text").fill("MARN")
    page.locator("#count", has_text="1 of 4 rows").wait_for()
    page.locator("#filter-text").fill("no such text")
    page.locator("#count", has_text="Nothing fits").wait_for()


def test_text_of_others_is_shown_as_text(visit: Callable[..., Any], built: Path) -> None:
    page = visit(built / LABELS_PAGE, "#mine/validation/%3Cb%3Ebad")
    details = page.locator("#details")
    assert details.locator("script, img, svg, a, b b").count() == 0
    for part in BREAKOUTS[:4]:
        assert part in details.inner_text()
        assert part in page.locator("#list").inner_text()
    assert "⟨U+202E⟩" in details.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_both_colour_schemes_and_on_a_phone(
    visit: Callable[..., Any], built: Path, scheme: str
) -> None:
    page = visit(built / LABELS_PAGE, color_scheme=scheme, viewport={"width": 390, "height": 800})
    worst = worst_contrast(page)
    assert worst[0] >= 4.5, worst
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#list a").nth(2).click()  # what was chosen is brought into view
    assert page.locator("#details h2").bounding_box()["y"] < 300


def test_a_row_without_annotations_is_not_said_to_have_some(visit: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "bare.jsonl"
    bare = {name: value for name, value in ROWS[0].items() if name != "triples"}
    file.write_text(json.dumps(bare) + "\n", encoding="utf-8")
    verify.main([str(file), "--output", str(tmp_path / "out"), "--workers=1"])
    text = visit(tmp_path / "out" / LABELS_PAGE).locator("#details").inner_text()
    assert "by the passages alone" in text
    assert "own annotations" not in text


# ------------------------------------------------------------------------------- without a browser


def test_the_page_and_the_terminal_call_a_row_verified_and_name_the_column(built: Path) -> None:
    page = (built / LABELS_PAGE).read_text(encoding="utf-8")
    assert '["none", "verified", "good"]'.replace(", ", ",") in page.replace(", ", ",")
    assert "(in the column noise_type: none)" in page


def test_the_page_loads_nothing_and_is_the_same_again(built: Path, tmp_path: Path) -> None:
    view_labels.main([str(built), "--output", str(tmp_path / "again.html")])
    page = (built / LABELS_PAGE).read_text(encoding="utf-8")
    assert page == (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert page.count("<script") == page.count("</script>") == 2
    assert "http" not in page.partition('id="data"')[0].replace("http-equiv", "")


def test_rows_that_it_lacks_are_counted_and_said(
    visit: Callable[..., Any], built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "part.html"
    view_labels.main([str(built), "--output", str(output), "--rows", "1"])
    assert "labels of 1 of 4 rows" in capsys.readouterr().out
    page = visit(output)
    assert "This page holds 1 of 4 rows" in page.locator("#part").inner_text()
    assert "verified 2" in page.locator("#totals").inner_text()


def test_a_part_has_rows_of_every_label(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [*[{**ROWS[0], "id": f"s{n}"} for n in range(20)], ROWS[1]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for split in ("train", "validation"):  # with the same ids
        verify.main([str(file), f"--split={split}", "--output", str(tmp_path / "out"), "--workers=1"])
    page = labels.read_page(tmp_path / "out", 6)
    assert page.totals == {"none": 40, "wrong_answer": 2}
    assert [(row["split"], row["label"]) for row in page.rows] == [
        (split, label) for split in ("train", "validation") for label in ("none", "none", "wrong_answer")
    ]


def test_a_page_of_earlier_rows_does_not_stay(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "out")
    options = ["--benchmark=custom", f"--input={built.parent / 'mine.jsonl'}", "--split=train", "--workers=1"]
    build_verified.main([*options, "--teacher=annotations", f"--output={tmp_path / 'out'}"])
    assert not (tmp_path / "out" / LABELS_PAGE).exists()


def test_what_is_no_build_and_what_would_be_lost_are_named(built: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no safe-verified-multihop in it; give the --output of build_verified"):
        view_labels.main([str(tmp_path)])
    file = next((built / VERIFIED).glob("data/*_labeled/*.parquet"))
    with pytest.raises(UserError, match="is what the command reads, which would be lost"):
        view_labels.main([str(built), "--output", str(file)])
