"""What can be evaluated on: verified folders, benchmark files, anyone's own rows."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from builders.synthetic import generate, parse_spec, to_row
from builders.verified.evaluation_questions import read
from evaluators.run.command import remove_random_gold
from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage
from safe_stepwise.store import codec
from scripts import build_verified

OWN = {
    "id": "a",
    "question": "Where is Oru?",
    "answer": "Marn",
    "aliases": ["Republic of Marn"],
    "passages": [{"title": "Oru", "text": "Oru is a town. It lies in Marn.", "is_gold": True}],
}


def lines(path: Path, *rows: object) -> str:
    text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows)
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    for split in ("train", "validation"):
        spec = f"rows=60,seed=3,noise=0.1 --split {split} --output {output} --evaluation-size 20"
        build_verified.main(f"--benchmark synthetic --teacher annotations --input {spec}".split())
    return output


def test_a_verified_folder_gives_its_sample(verified: Path) -> None:
    found = read(str(verified))
    (file,) = (verified / "safe-verified-multihop" / "data" / "synthetic_eval").iterdir()
    rows = pq.read_table(file).to_pylist()
    expected = tuple(codec.question_of(row, benchmark="synthetic", split="validation") for row in rows)
    assert found.questions == expected
    assert len(expected) == 20
    inner = read(str(verified / "safe-verified-multihop"), ["synthetic"], limit=5)
    assert inner.questions == expected[:5]
    assert inner.digest == found.digest


def test_another_split_gives_its_verified_rows_with_passages(verified: Path) -> None:
    found = read(str(verified), split="train", seed=4)
    assert all(len(q.passages) <= 10 and q.split == "train" for q in found.questions)
    assert 40 < len(found.questions) < 60
    assert read(str(verified), split="train", seed=4) == found
    assert read(str(verified), split="train", seed=5) != found


def test_what_a_folder_lacks_is_said(verified: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no evaluation sample of musique"):
        read(str(verified), ["musique"])
    with pytest.raises(UserError, match="no safe-verified-multihop in it"):
        read(str(tmp_path))


def test_own_rows_need_little(tmp_path: Path) -> None:
    short = {"question": "Where?", "references": ["Marn", "M."], "passages": ["Oru lies in Marn."]}
    found = read(lines(tmp_path / "own.jsonl", OWN, short)).questions
    assert found[0].passages == (Passage("Oru", ("Oru is a town.", "It lies in Marn."), True),)
    assert (found[0].answer, found[0].aliases) == ("Marn", ("Republic of Marn",))
    assert (found[1].answer, found[1].aliases, found[1].benchmark) == ("Marn", ("M.",), "custom")
    assert len(found[1].id) == 64
    assert read(str(tmp_path / "own.jsonl"), ["musique"]).questions[0].benchmark == "musique"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("{", "bad JSON"),
        ("[1]", "not a JSON object"),
        ({"question": "Where?"}, "no passages; a row is"),
        ({**OWN, "id": "b", "question": " "}, "question is empty"),
        ({**OWN, "id": "b", "answer": None}, "it has no answer"),
        ({**OWN, "id": "b", "answer": True}, "answer is no text: write it in quotation marks"),
        ({**OWN, "id": "b", "answer": None, "references": []}, "it has no answer"),
        ({**OWN, "id": "b", "references": "Marn"}, "references is a string"),
        ({**OWN, "id": "b", "passages": []}, "no passages; a row is"),
        ({**OWN, "id": "b", "passages": [3]}, "passage 1 is neither"),
        ({**OWN, "id": "b", "passages": [{"title": "x"}]}, "missing field 'text'"),
        ({**OWN, "id": "b", "evidence": [{"head": "x"}]}, "evidence 1 has no"),
        *(
            ({**OWN, "id": "b", **fields}, reason)
            for fields, reason in [
                ({"decomposition": [[-1, "Oru", 1]]}, "decomposition 1 question is a number"),
                ({"decomposition": [["x", None, 1]]}, "decomposition 1 answer is null"),
                ({"decomposition": [["x", "y", 2]]}, "decomposition 1 passage is 2, expected 1 to"),
                ({"decomposition": [["x", "y", 0]]}, "decomposition 1 passage is 0, expected 1 to"),
                ({"evidence": [["x", ["y"], "z"]]}, "evidence 1 relation is a list of 1"),
                ({"evidence": [["x", "\ud800", "z"]]}, "evidence 1 relation holds half a char"),
                ({"evidence": [["x", "y", "z"]] * 51}, "evidence has 51 entries, at most 50"),
                ({"supporting_facts": [["Oru", "0"]]}, "supporting_facts 1 sentence is a string"),
                ({"supporting_facts": [["Oru", 2**62]]}, "sentence is 461168601842738790"),
                ({"passages": [{"text": "a"}] * 201}, "passages has 201 entries, at most 200"),
                ({"answer": "a" * 1_001}, "an answer has 1001 characters, at most 1000"),
            ]
        ),
        (OWN, "its id 'a' is that of an earlier row"),
    ],
)
def test_a_bad_row_is_named_or_skipped(tmp_path: Path, row: object, reason: str) -> None:
    file = lines(tmp_path / "own.jsonl", OWN, "", row, {**OWN, "id": "c"})
    with pytest.raises(UserError, match=rf"own\.jsonl:3: .*{reason}") as caught:
        read(file)
    assert "\n" not in str(caught.value)
    found = read(file, skip=True)
    assert [q.id for q in found.questions] == ["a", "c"]
    assert reason in found.skipped[0]
    (line,) = found.rejects
    told = json.loads(line)
    assert told["location"] == "own.jsonl:3"
    assert re.search(reason, told["reason"])


def test_what_the_annotations_may_lack_is_read(tmp_path: Path) -> None:
    """Facts of passages that are gone, as in the setting of incomplete evidence."""
    gone = {"supporting_facts": [["Vel", 3]], "decomposition": [["Where?", "Marn", None]]}
    (found,) = read(lines(tmp_path / "own.jsonl", {**OWN, **gone})).questions
    assert found.supporting_facts[0].sentence == 3
    assert found.decomposition[0].passage is None


def test_what_cannot_be_planned_for_is_named_or_skipped(tmp_path: Path) -> None:
    many = {**OWN, "id": "b", "passages": OWN["passages"] * 11}  # type: ignore[operator]
    file = lines(tmp_path / "own.jsonl", OWN, many)
    assert len(read(file).questions) == 2  # models need no plan
    with pytest.raises(UserError, match=r"own\.jsonl:2: 11 gold passages, at most 10 can be plan"):
        read(file, planned=True)
    found = read(file, planned=True, skip=True)
    assert [q.id for q in found.questions] == ["a"]
    assert found.skipped == ("own.jsonl:2: 11 gold passages, at most 10 can be planned for",)


def test_a_file_of_which_nothing_can_be_read_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of its rows"):
        read(lines(tmp_path / "own.jsonl", {"a": 1}), skip=True)
    with pytest.raises(UserError, match="one benchmark"):
        read(lines(tmp_path / "own.jsonl", OWN), ["musique", "hotpotqa"])
    with pytest.raises(UserError, match="no such file"):
        read(str(tmp_path / "missing.jsonl"))


def test_our_own_rows_keep_their_annotations(tmp_path: Path) -> None:
    made = [q for q, _ in generate(parse_spec("rows=8,seed=2,noise=0"), split="validation")]
    file = lines(tmp_path / "rows.jsonl", *(to_row(q, "none") for q in made))
    assert read(file).questions == tuple(made)


@pytest.mark.parametrize("name", ["hotpotqa", "2wikimultihopqa", "musique"])
def test_real_rows_are_read_by_their_shape(real_data: Path, name: str) -> None:
    found = read(str(real_data / f"{name}_dev.jsonl"), limit=40)
    assert {q.benchmark for q in found.questions} == {name}
    assert len(found.questions) == 40
    assert all(len(q.passages) <= 10 and q.gold for q in found.questions)


def test_without_a_drawn_gold_passage(tmp_path: Path) -> None:
    (asked,) = read(lines(tmp_path / "own.jsonl", OWN)).questions
    pages = (Passage("A", ("a",), True), Passage("B", ("b",)), Passage("C", ("c",), True))
    asked = replace(asked, passages=(*pages, Passage("D", ("d",))))
    left = Counter(
        "".join(page.title for page in remove_random_gold(replace(asked, id=str(n))).passages) for n in range(100)
    )
    assert set(left) == {"ABD", "BCD"}
    assert min(left.values()) > 30
    assert remove_random_gold(asked, 3) == remove_random_gold(asked, 3)
    assert len({remove_random_gold(asked, seed).passages for seed in range(20)}) == 2
    assert remove_random_gold(replace(asked, passages=pages[1:2])).passages == pages[1:2]
    several = replace(asked, passages=(*pages, Passage("E", ("e",), True)))
    two = remove_random_gold(several, 3, 2)
    assert len(two.gold) == 1
    assert {page.title for page in two.passages} < {page.title for page in remove_random_gold(several, 3).passages}
    assert remove_random_gold(several, 3, 9).passages == pages[1:2]
