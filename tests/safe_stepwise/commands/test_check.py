"""`check`: steps over passages with or without annotations, as text, JSON and a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from safe_stepwise.checker import judge_steps
from safe_stepwise.commands.main import carry_out
from safe_stepwise.commands.reading import examples
from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage
from tests.browsing import BREAKOUTS, chromium, visits, worst_contrast
from tests.servers.openai_server import MockServer

FILM = ["Dune Rain is a 1954 film.", "It was directed by Ors Velt."]
QUESTION = "Where was the director of Dune Rain born?"
ROW: dict[str, Any] = {
    "question": QUESTION,
    "passages": [["Dune Rain", FILM], {"title": "Ors Velt", "text": "Ors Velt was born in Oru in 1912."}],
    "steps": [
        "Step 1: According to Passage 1, Dune Rain was directed by Ors Velt. (Attribution)",
        "Step 2: Passage 2 says that Ors Velt was born in Oru. (Attribution)",
        "Step 3: So the director of Dune Rain was born in Oru. (Logical)",
        "Step 4: ####ANSWER: Oru (Final Answer)",
    ],
}
CLAIM = "Ors Velt was born in Oru"
WRONG = ["Oru was born in Ors Velt.", "Ors Velt won the Golden Vel in 1960.", "Is it so? (Attribution)\nStep 2: No."]


def checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], *rows: dict[str, Any]) -> list[dict[str, Any]]:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    carry_out(["check", str(file), "--json"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def labels(row: dict[str, Any]) -> list[str]:
    return [step["label"] for step in row["steps"]]


def labels_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The labels that the checker alone gives the steps of the only row."""
    carry_out(["check", str(folder / "rows.jsonl"), "--json"])
    return [step["label"] for step in json.loads(capsys.readouterr().out)["steps"]]


def test_steps_are_judged_without_any_annotation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound, wrong = checked(tmp_path, capsys, ROW, {**ROW, "steps": WRONG})
    assert labels(sound) == ["sound"] * 4
    assert (sound["judged_by"], "note" in sound) == ("passages", False)
    assert labels(wrong) == ["Contradictory", "Unsupported", "no step"]
    claim = sound["steps"][0]["claims"][0]
    step = ROW["steps"][0]
    assert step[claim["start"] : claim["end"]] == "Dune Rain was directed by Ors Velt"
    assert {name: value for name, value in claim.items() if name not in ("start", "end")} == {
        "status": "stated", "passage": 1, "sentence": 1, "quote": FILM[1], "quote_start": 26, "quote_end": 54
    }  # fmt: skip
    assert {claim["earlier_step"] for claim in sound["steps"][2]["claims"]} <= {1, 2}
    claims = {claim["status"]: claim for claim in wrong["steps"][1]["claims"]}
    missing = claims["not found"]
    assert WRONG[1][missing["start"] : missing["end"]] in ("Golden Vel", "Golden", "1960")
    assert "no passage has" in missing["reason"]


def test_the_text_output_has_the_sentence_of_each_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    carry_out(["check", str(file)])
    told = capsys.readouterr().out
    assert f"    sound\n      stated: “Ors Velt was born in Oru” - Passage 2: “{ROW['passages'][1]['text']}”\n" in told
    assert told.endswith("\nsound 4\n")


@pytest.mark.parametrize(
    "film",
    [
        " ".join(FILM),
        {"title": "Dune Rain", "text": " ".join(FILM)},
        {"title": "Dune Rain", "sentences": FILM},
        ["Dune Rain", FILM],
        ["Dune Rain", [FILM[0], f" {FILM[1]}"]],
    ],
)
def test_every_form_of_passages_is_read_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str], film: Any) -> None:
    [row] = checked(tmp_path, capsys, {**ROW, "passages": [film, ROW["passages"][1]]})
    assert labels(row) == ["sound"] * 4
    [claim] = row["steps"][0]["claims"]
    assert (claim["passage"], claim["sentence"], claim["quote"]) == (1, 1, FILM[1])


def test_a_verifier_is_asked_about_undecided_steps_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unread = "Step 2: Passage 2 says that Ors Velt was admired by many. (Attribution)"
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW | {"steps": [ROW["steps"][0], unread]}))
    assert labels_of(tmp_path, capsys) == ["sound", "undecided"]
    verdict = json.dumps({"error_type": "Unsupported", "diagnosis": "No prize.", "guidance": "Leave it out."})
    with MockServer(lambda _: verdict, keep_bodies=True) as server:
        carry_out(["check", str(tmp_path / "rows.jsonl"), "--json", "--verifier", server.spec])
        asked = [body for body in server.bodies if "admired" in json.dumps(body["messages"])]
        assert server.bodies[-1:] == asked[-1:]
    first, second = json.loads(capsys.readouterr().out)["steps"]
    assert "verifier" not in first
    assert second["verifier"]["label"] == "Unsupported"
    with MockServer(lambda _: verdict, status=400) as server:
        carry_out(["check", str(tmp_path / "rows.jsonl"), "--verifier", server.spec])
    assert "the verifier: failed HTTP 400" in capsys.readouterr().out


def test_the_small_verifier_that_is_not_there_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_VERIFIER", str(tmp_path / "none"))
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    with pytest.raises(UserError, match=r"--verifier: small: no verifier in .*none; `make verifier`"):
        carry_out(["check", str(tmp_path / "rows.jsonl"), "--verifier", "small"])


def test_one_message_lists_all_that_a_row_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        UserError, match=r"line 1: lacks a question \(a text\), passages \(a list\), steps \(a list of"
    ):
        checked(tmp_path, capsys, {"answer": "Oru"})
    with pytest.raises(UserError, match=r"line 2: step 2 is not a text"):
        checked(tmp_path, capsys, ROW, {**ROW, "steps": ["a", 3]})
    with pytest.raises(UserError, match=r"lacks passages \(a list\) and has question, pages_of, steps; steps is not"):
        checked(tmp_path, capsys, {"question": "x", "pages_of": ["a"], "steps": "a"})
    with pytest.raises(UserError, match=r"line 1: question is empty; passages is empty; steps is empty$"):
        checked(tmp_path, capsys, {"question": " ", "passages": [], "steps": []})
    both = {"title": "Oru", "text": "Oru is a town.", "sentences": ["Oru is", "a city."]}
    with pytest.raises(UserError, match=r"line 1, passage 1 has a text and sentences that differ: give one of them"):
        checked(tmp_path, capsys, {**ROW, "passages": [both]})


def test_annotations_without_a_plan_leave_it_to_the_passages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**examples()[0], "steps": ["Step 1: According to Passage 2, The Salt Clock was directed by Maro Quill."]}
    half, whole, fewer = checked(
        tmp_path,
        capsys,
        {name: value for name, value in row.items() if name != "answer"},
        {**row, "steps": [f"{row['steps'][0]} (Attribution)"]},
        {**row, "passages": row["passages"][:3]},
    )
    assert (half["judged_by"], half["note"]) == ("passages", "the row has no answer")
    assert (whole["judged_by"], labels(whole)) == ("annotations", ["Correct"])
    assert (fewer["judged_by"], labels(fewer)) == ("passages", ["sound"])
    assert "do not state all facts" in fewer["note"]


def test_an_error_supports_no_later_step() -> None:
    pages = [Passage("Dune Rain", (FILM[1].replace("It", "Dune Rain"),))]
    wrong, *_, conclusion = judge_steps(
        QUESTION, pages, ["Dune Rain was directed by Ana Brell.", "So Ana Brell directed Dune Rain. (Logical)"]
    )
    assert wrong.label == "Contradictory"
    assert conclusion.label == "undecided"


@pytest.mark.parametrize("text", [f"{CLAIM}\ud800.", "Ors\ud800 Velt was born in Oru.", "\udfff"])
def test_half_of_a_surrogate_pair_is_read_like_any_mark(text: str) -> None:
    broken, whole = judge_steps(QUESTION, [text], [text, f"{CLAIM}."])
    assert broken.label == "no step"
    for claim in whole.claims:
        assert claim.place is None or text[slice(*claim.place)] == claim.quote
    assert whole.label == ("Unsupported" if len(text) == 1 else "sound")


@pytest.mark.parametrize("mark", [*"\0\a\x1b\x7f\x9f", *"%/-#|~=", "\u0301", "\u2011", "→", "™"])
@pytest.mark.parametrize("form", ["{name}{mark} was born in Oru.", "So {name} was born in {mark}Oru{mark}."])
def test_a_mark_beside_a_name_hides_no_name(mark: str, form: str) -> None:
    page = f"{CLAIM}."
    texts = [form.format(name=name, mark=mark) for name in ("Ors Velt", "Ana Lo")]
    right, wrong = judge_steps(QUESTION, [page], texts)
    assert right.label in ("sound", "undecided")
    assert (wrong.label, "Ana Lo" in wrong.reason) == ("Unsupported", True)


@pytest.mark.parametrize(
    "arguments",
    [
        *((QUESTION, pages, ["x"]) for pages in ("text", None, [None], [5], {"a": "b"})),
        *((QUESTION, ["text"], texts) for texts in ("text", None, [None], [b"x"])),
        (None, ["text"], ["x"]),
    ],
)
def test_arguments_of_another_type_are_one_line(arguments: Any) -> None:
    with pytest.raises(UserError, match=r"judge_steps: .* must be a (list of texts|text)$"):
        judge_steps(*arguments)


LITTER = (
    "“",
    "”",
    "’",
    "e\u0301",
    "😀",
    "👩\u200d🚀",
    "\u00ad",
    "\u200b",
    "\u202e",
    "\r\n",
    "&amp;",
    "  ",
    "**",
    "\u3000",
)
LITTERED = st.lists(st.sampled_from(LITTER), max_size=4).map("".join)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(LITTERED, LITTERED, LITTERED, st.sampled_from(["Step 1: %s (Attribution)", "%s", "<think>%s</think> %s"]))
def test_offsets_are_those_of_the_given_strings(before: str, after: str, between: str, form: str) -> None:
    page = f"{between}Oru is a town.{between} {CLAIM} in 1912.{after}"
    text = form.replace("%s", f"{before} Passage 1 says that {CLAIM}.{after}")
    [verdict] = judge_steps(QUESTION, [page], [text])
    for claim in verdict.claims:
        start, end = claim.span
        assert 0 <= start <= end <= len(text)
        assert claim.place is None or page[slice(*claim.place)] == claim.quote
    if verdict.label == "sound":
        assert any(CLAIM in text[slice(*claim.span)] and CLAIM in claim.quote for claim in verdict.claims)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"Step 1: **{CLAIM}**, as “Passage 1” says. (Attribution)", CLAIM),
        ("**Step 1:** Passage 1 says that **Ors Velt** was born in Oru. (Attribution)", "Ors Velt** was born in Oru"),
        (f"<think>{CLAIM}?</think>😀 {CLAIM}.", CLAIM),
        ("Ors\u00ad Velt was born in Oru\u200b.", "Ors\u00ad Velt was born in Oru"),
        ("Ors Velt was born in Oru on 1912-03-04.", "1912-03-04"),
    ],
)
def test_a_claim_is_found_in_what_the_model_wrote(text: str, words: str) -> None:
    page = Passage("Ors Velt", ("Ors Velt was born in Oru on 4 March 1912.",))
    [verdict] = judge_steps(QUESTION, [page], [text])
    assert any(words in text[slice(*claim.span)] for claim in verdict.claims)
    assert text.rfind(words) == max(text.find(words, claim.span[0]) for claim in verdict.claims)


# ------------------------------------------------------------------------------------------ the page


@pytest.fixture(scope="module")
def visit() -> Iterator[Callable[..., Any]]:
    with chromium() as browser, visits(browser) as opened:
        yield opened


def paged(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    (file := tmp_path / "rows.json").write_text(json.dumps(rows))
    carry_out(["check", str(file), "--html", str(tmp_path / "page.html")])
    return tmp_path / "page.html"


def test_a_claim_leads_to_its_sentence_by_the_keyboard(visit: Callable[..., Any], tmp_path: Path) -> None:
    page = visit(paged(tmp_path, ROW, {**ROW, "steps": WRONG}))
    assert page.locator("h2").all_inner_texts() == [QUESTION] * 2
    assert page.locator(".step .badge").all_inner_texts() == ["sound"] * 4 + [
        "Contradictory",
        "Unsupported",
        "no step",
    ]
    assert page.locator(".step mark.stated").first.inner_text() == "Dune Rain was directed by Ors Velt"
    link = page.locator(".claims a").first
    link.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == FILM[1]
    assert page.locator(".passage mark:target").inner_text() == FILM[1]
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_no_text_of_a_model_becomes_markup(visit: Callable[..., Any], tmp_path: Path) -> None:
    hostile = {
        "id": BREAKOUTS[0],
        "question": " ".join(BREAKOUTS[:8]),
        "passages": [[text, [text, f"{text} Ors Velt was born in Oru."]] for text in BREAKOUTS[:8]],
        "steps": [*BREAKOUTS[:8], *(f"{text} Ors Velt was born in Oru. {text}" for text in BREAKOUTS[:8])],
    }
    page = visit(paged(tmp_path, hostile))
    assert page.locator("main :is(script, img, svg, iframe)").count() == 0
    links = page.evaluate("[...document.links].map((link) => link.getAttribute('href'))")
    assert all(link.startswith("#row-") for link in links if link != "#rows")
    shown = page.locator("main").inner_text()
    assert all(text in shown for text in (BREAKOUTS[0], BREAKOUTS[1], BREAKOUTS[3], "{{ 7*7 }}", "⟨U+202E⟩"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_legible_on_a_phone(visit: Callable[..., Any], tmp_path: Path, scheme: str) -> None:
    long = {**ROW, "question": "Oru" * 200, "steps": [*ROW["steps"], *WRONG, "x" * 2000]}
    page = visit(paged(tmp_path, long), viewport={"width": 390, "height": 800}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert worst_contrast(page)[0] >= 4.5


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (file := tmp_path / "rows.json").write_text(json.dumps([ROW]))
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        carry_out(["check", str(file), "--html", str(tmp_path / "taken" / "page.html")])


@pytest.mark.parametrize("link", [None, "symlink_to", "hardlink_to"])
def test_a_page_never_replaces_the_rows_that_it_shows(tmp_path: Path, link: str | None) -> None:
    file = output = tmp_path / "rows.jsonl"
    file.write_text(content := json.dumps(ROW))
    if link:
        getattr(output := tmp_path / "page.html", link)(file)
    with pytest.raises(UserError, match=r"is what the command reads, which would be lost; choose another name"):
        carry_out(["check", str(file), "--html", str(output)])
    assert file.read_text() == content


def test_a_folder_is_no_page_and_that_is_said_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "rows.json").write_text(json.dumps([ROW]))
    with pytest.raises(UserError, match=r"it is a folder\); give the name of a file in it"):
        carry_out(["check", str(file), "--html", str(tmp_path)])
    assert not capsys.readouterr().out


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl", "rows", "-"])
@pytest.mark.parametrize("as_list", [True, False])
def test_rows_are_read_whatever_the_files_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, indent: Any, name: str,
    as_list: bool,
) -> None:  # fmt: skip
    text = json.dumps([ROW, ROW] if as_list else ROW, indent=indent)
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with piped(text):
        carry_out(["check", name])
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.endswith(f"sound {8 if as_list else 4}\n")


@contextmanager
def piped(text: str) -> Iterator[None]:
    """Standard input is a pipe that holds a text, as a shell opens it."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reading)


def test_a_page_never_replaces_the_rows_on_standard_input(tmp_path: Path) -> None:
    (file := tmp_path / "rows.jsonl").write_text(content := json.dumps(ROW))
    line = [sys.executable, "-m", "safe_stepwise.commands.main", "check", "-", "--html", str(file)]
    with file.open() as stdin:
        ran = subprocess.run(line, stdin=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, file.read_text()) == (2, content)
    assert "would be lost" in ran.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"steps": [], "question": "x", "steps": ["a"]}', "line 1: is no JSON .the key 'steps' stands twice"),
        (b'{"question": %s}' % (b"5" * 5000), "a whole number has too many digits.$"),
        (json.dumps(ROW).encode("utf-16"), "save it as UTF-8"),
        ('{"question": "\u00e9"}'.encode("latin-1"), "save it as UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_says_how_to_mend_it(tmp_path: Path, content: bytes, says: str) -> None:
    (file := tmp_path / "rows.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=says):
        carry_out(["check", str(file)])
