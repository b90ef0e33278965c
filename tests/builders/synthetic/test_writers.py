"""Writers: their files are complete or refused in one line, and say what their wordings say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders.synthetic import Spec, generate, parse_spec
from builders.synthetic.writers import FOLDER, Wording, names, read_writer, writer
from safe_stepwise.errors import UserError
from safe_stepwise.records import NoiseType, Question


@cache
def wordings(name: str) -> dict[str, re.Pattern[str]]:
    """The sentences that a writer can make, by wording."""
    author = writer(name)
    told = [one for kind in author.facts.values() for choice in kind.values()
            for one in choice.wordings]  # fmt: skip
    told += [one for choice in author.openings.values() for one in choice.wordings]
    told += [one for remarks in author.remarks.values() for one in remarks]
    return {one.text: re.compile(pattern(one), re.IGNORECASE) for one in told}


FEW = {
    "He": "(She|He|It)", "he": "(she|he|it)", "him": "(her|him|it)", "His": "(Her|His|Its)",
    "his": "(her|his|its)", "son": "(son|daughter)", "wife": "(wife|husband)", "was": "(is|was)",
    "dad": "(father|mother)", "bro": "(brother|sister)", "born": "born", "died": "died",
}  # fmt: skip


def pattern(wording: Wording) -> str:
    parts = re.split(r"\{([^}]*)\}", wording.text)
    parts[1::2] = [FEW.get(one, ".*" if one[-2:] == "/s" else ".+") for one in parts[1::2]]
    return "".join(part if n % 2 else re.escape(part) for n, part in enumerate(parts))


def sentences(rows: Iterable[tuple[Question, NoiseType]]) -> set[str]:
    return {s for question, _ in rows for p in question.passages for s in p.sentences}


@pytest.mark.parametrize("name", names())
def test_articles_by_one_writer_are_all_its_own(name: str) -> None:
    made = sentences(generate(Spec(400, 3, 0.5, name)))
    for sentence in made:
        assert any(one.fullmatch(sentence) or one.fullmatch(f"{sentence}.")
                   for one in wordings(name).values()), sentence  # fmt: skip


def test_without_a_name_all_writers_take_turns_over_the_same_questions() -> None:
    mixed = list(generate(Spec(200, 3, 0.0)))
    for name in names():
        alone = list(generate(Spec(200, 3, 0.0, name)))
        assert [q.question for q, _ in alone] == [q.question for q, _ in mixed]
        assert len(sentences(mixed) & sentences(alone)) > 20, name
        assert len(sentences(mixed) - sentences(alone)) > 20, name


def test_an_unknown_writer_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match=r"no synthetic writer 'nobody': choose from .*plain"):
        parse_spec("rows=10,writer=nobody")


def told(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "dense.yaml").read_text(encoding="utf-8"))
    return {**found, **changes}


def without(section: str, key: str) -> dict[str, Any]:
    return told(**{section: {k: said for k, said in told()[section].items() if k != key}})


def also(section: str, key: str, wording: Any) -> dict[str, Any]:
    return told(**{section: {**told()[section], key: [*told()[section][key], wording]}})


def only(kind: str, facts: list[str]) -> dict[str, Any]:
    return told(facts={**told()["facts"], kind: facts})


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ([], "the file is no mapping"),
        (told(style="dry"), "the file has an unknown 'style'"),
        (told(dates=["{day} {month}"]), "dates: '{day} {month}' lacks {year}"),
        (told(dates=["{year}", "{year}", "{year}"]), "dates: one way of writing a day or two"),
        (told(dates=["{year} {moon}"]), "dates: '{year} {moon}': unknown placeholder {moon}"),
        (told(place="{town}"), "place: '{town}' lacks {region}"),
        (told(parts={"name": ["he"]}), "parts: 'name' is the name of a placeholder"),
        (told(facts=["{name}."]), "facts is no mapping"),
        (without("opening", "town"), "opening lacks 'town'"),
        (without("remarks", "beside spouse"), "remarks lacks 'beside spouse' (1 missing)"),
        (also("facts", "town", 7), "facts town is no list of wordings"),
        (also("facts", "town", "{name} lies in {lake}."), "unknown placeholder {lake}"),
        (also("facts", "town", "{country/size}."), "unknown placeholder {country/size}"),
        (also("facts", "town", "{country."), "'{country.': expected '}' before end of string"),
        (also("remarks", "beside spouse", "{He} sang."), "'{He} sang.' lacks {other}"),
        (only("region", ["{country}.", "{name}."]), "facts region: 2 wordings must have {country}"),
        (told(opening={**told()["opening"], "town": ["In {country}."]}),
         "opening town: no wording does without a fact"),
    ],
)  # fmt: skip
def test_a_file_that_is_amiss_is_refused_in_one_line(tmp_path: Path, file: object, reason: str) -> None:
    path = tmp_path / "new.yaml"
    path.write_text(yaml.safe_dump(file), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        read_writer(path)
    said = str(refused.value)
    assert said.startswith(f"writer {path}: ")
    assert reason in said
    assert said.endswith("writers/README.md has the format")
    assert "\n" not in said


def test_a_file_that_is_no_yaml_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    path.write_text("opening: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"new\.yaml: not YAML: [^\n]*$"):
        read_writer(path)


def test_a_file_adds_a_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "new.yaml").write_text((FOLDER / "plain.yaml").read_text(encoding="utf-8"), "utf-8")
    monkeypatch.setattr("builders.synthetic.writers.FOLDER", tmp_path)
    assert names() == ["new"]
    assert parse_spec("rows=5,writer=new").writer == "new"


def test_a_wording_needs_what_it_says_and_a_year_alone_is_no_whole_date() -> None:
    openings = {one.text: one for one in writer("dense").openings["person"].wordings}
    nick = openings["{given} ({nick}) {surname} {was} {a trade}."]
    assert (nick.requires, nick.states) == ({"given"}, ())
    years = openings["{name} (lived {date of birth/year} to {date of death/year}) {was} {a trade}."]
    assert set(years.states) == {"date of birth/year", "date of death/year"} == years.requires
