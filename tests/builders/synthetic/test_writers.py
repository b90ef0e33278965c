"""Writers: their files are complete, and say what their wordings say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from builders.synthetic import Spec, generate, parse_spec
from builders.synthetic.world import load
from builders.synthetic.writers import (
    FACTS,
    FOLDER,
    FORMAT,
    MIN_WORDINGS,
    REMARKS,
    REMARKS_MARK,
    Wording,
    names,
    writer,
)
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


def placeholders(text: str) -> list[str]:
    """What stands in braces, without an article before it."""
    return [re.sub(r"^[Aa] ", "", field) for _, field, _, _ in Formatter().parse(text) if field is not None]


@pytest.mark.parametrize("name", names())
def test_a_file_has_the_format(name: str) -> None:
    """Nothing lacks, nothing is unknown, and every fact can be stated in two ways and by itself."""
    content = load(FOLDER / f"{name}.yaml")
    parts = content.pop("parts", {})
    assert content.keys() == {"dates", "place", "opening", "facts", "remarks"}
    assert content["opening"].keys() == content["facts"].keys() == FACTS.keys()
    assert content["remarks"].keys() == REMARKS.keys()
    assert 1 <= len(content["dates"]) <= 2
    assert all("year" in placeholders(text) for text in content["dates"])
    assert set(placeholders(content["place"])) == {"town", "region"}
    subjects = {subject for about in REMARKS.values() for subject in about}
    words = {*FORMAT["words"].split(), *FORMAT["some"], *subjects}
    assert parts.keys().isdisjoint(words | {key for keys in FACTS.values() for key in keys})

    def known(text: str, about: Iterable[str]) -> bool:
        topics = {key.partition("/")[0] for key in about}
        return all(
            field in words | parts.keys()
            or (field.partition("/")[0] in topics and field.partition("/")[2] in FORMAT["forms"])
            for field in placeholders(text.replace("(n) {", " {").replace("a {", "{").replace("A {", "{"))
        )

    for kind, keys in FACTS.items():
        for text in (*content["opening"][kind], *content["facts"][kind]):
            assert text == REMARKS_MARK or known(text, keys), text
        assert any(not wording.requires for wording in writer(name).openings[kind].wordings), kind
        for key in keys:
            alone = [w for w in writer(name).facts[kind][key].wordings if w.requires == {key}]
            assert len(alone) >= MIN_WORDINGS, (kind, key)
    for key, about in REMARKS.items():
        for wording in writer(name).remarks[key]:
            topics = {topic for _, _, topic, _ in wording.fields}
            assert not key.startswith(("beside", "works")) or not topics.isdisjoint(subjects), wording.text
        assert all(known(text, about) for text in content["remarks"][key]), key


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
