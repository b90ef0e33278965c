"""A set made anew by another teacher: the first one's rows, as far as it can (SAFE v2, Table 6)."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.steps.composition import Candidate
from builders.steps.contexts import StepSource
from builders.steps.earlier_build import NO_MATCH, EarlierBuild, read_earlier_build
from builders.steps.questions import open_verified
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from scripts import build_verified, build_verifier_steps
from tests.servers.openai_server import MockServer
from tests.servers.steps import Asked, Pair, Truth, said

SET = "safe-verifier-steps"
SEED = 3


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("verified")
    for split, seed in (("train", "1"), ("validation", "2")):
        build_verified.main(
            [*("--benchmark", "synthetic", "--input", f"rows=30,seed={seed},noise=0.1"),
             *("--split", split, "--teacher", "annotations", "--output", str(output)),
             *("--workers", "1", "--evaluation-size", "3")]
        )  # fmt: skip
    return output


def asked_of(verified: Path) -> tuple[Pair, ...]:
    opened = open_verified(verified, "v0.1.0")
    return tuple(
        pair.sample(SEED) for split in ("train", "validation") for pair in opened.questions("synthetic", split)
    )


def weaker(pairs: tuple[Pair, ...]) -> Truth:
    """In other words, without an idea of some questions and of Redundancy."""
    made = Truth(pairs)
    known = {question.question: StepSource.build(question, label) for question, label in pairs}
    lost = {question for question in known if sum(question.encode()) % 3 == 0}
    for question, source in known.items():
        made.steps[question] = write_trajectory(source.checker, 5)
    right = (made.ideal, made.error)
    made.trajectory = lambda asked: "?" if asked.question in lost else right[0](asked)
    made.injected = lambda asked: said(asked.target) if asked.error_type == "Redundancy" else right[1](asked)
    return made


def build(verified: Path, output: Path, spec: str, **changes: str) -> None:
    options = {
        "verified": str(verified),
        "teacher": spec,
        "output": str(output),
        "workers": "1",
        "cache": f"{output}.sqlite",
        **changes,
    }
    build_verifier_steps.main([p for n, value in options.items() for p in (f"--{n}", value)])


@pytest.fixture(scope="module")
def first(verified: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("first")
    with MockServer(Truth(asked_of(verified)), model="strong") as server:
        build(verified, output, server.spec, rows="70", seed=str(SEED), **{"test-share": "0.3"})
    return output


def rows_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((folder / SET / "data" / "steps").glob("*.parquet")):
        found.setdefault(file.name.partition("-")[0], []).extend(pq.read_table(file).to_pylist())
    return found


def place(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (row["question_id"], row["error_type"], row["position"])


def record(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / SET / "statistics/verifier_steps.json").read_text())
    return told


def test_the_same_teacher_makes_the_same_set(verified: Path, first: Path, tmp_path: Path) -> None:
    with MockServer(Truth(asked_of(verified)), model="strong") as server:
        build(verified, tmp_path / "again", server.spec, **{"rows-of": str(first)})
    before, again = rows_in(first), rows_in(tmp_path / "again")
    assert {split: [r["id"] for r in part] for split, part in again.items()} == {
        split: [r["id"] for r in part] for split, part in before.items()
    }
    told, number = record(tmp_path / "again")["rows_of"], sum(map(len, before.values()))
    assert told["matched"] == {"id": number, "position": 0, "type": 0}
    assert (told["rows"], told["lost"], told["moved"]) == (number, {}, 0)
    assert record(first)["rows_of"] is None


def test_what_a_weaker_teacher_can_not_make_is_told(
    verified: Path, first: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows_in(first)
    with MockServer(weaker(asked_of(verified)), model="weak", keep_bodies=True) as server:
        build(verified, tmp_path / "weak", server.spec, **{"rows-of": str(first)})
        asked = {Asked(body).question for body in server.bodies}
    output, made = capsys.readouterr().out, rows_in(tmp_path / "weak")
    # Asked of those questions alone, in their splits.
    assert asked == {row["question"] for part in before.values() for row in part}
    for split in ("train", "test"):
        ours, theirs = ({r["question_id"] for r in of[split]} for of in (made, before))
        assert ours <= theirs
    every = [row for part in before.values() for row in part]
    ours = [row for part in made.values() for row in part]
    assert all("weak" in row["teacher"] for row in ours)
    wanted, had = Counter(map(place, every)), Counter(map(place, ours))
    told = record(tmp_path / "weak")["rows_of"]
    assert told["matched"]["id"] + told["matched"]["position"] == (wanted & had).total()
    assert sum(told["matched"].values()) + sum(told["lost"].values()) == len(every) == told["rows"]
    assert len(ours) == sum(told["matched"].values()) - sum(record(tmp_path / "weak")["overlap"].values())
    assert told["lost"]["Redundancy"] > 0
    assert len(told["lost"]) > 1  # of the questions that it can't read, too
    assert told["matched"]["position"] > 20  # in other words, under other ids
    assert told["moved"] == 0
    assert "strong" in told["teacher"]
    lines = map(json.loads, (tmp_path / "weak" / "refused.jsonl").read_text().splitlines())
    lost = [line["reason"].removeprefix(f"{NO_MATCH}: ") for line in lines
            if line["reason"].startswith(NO_MATCH)]  # fmt: skip
    assert len(set(lost)) == len(lost) == sum(told["lost"].values())
    assert set(lost) <= {row["id"] for row in every}
    number = sum(told["matched"].values())
    assert f"that this teacher made: {number} of {len(every)} (" in output
    assert "not made (ids are in refused.jsonl): " in output
    assert f"Redundancy {told['lost']['Redundancy']}" in output
    readme = (tmp_path / "weak" / SET / "README.md").read_text()
    assert f", with {len(every)} rows by" in readme
    assert f"could make {number} of them (" in readme
    assert "for an ablation" in readme
    # Killed or not, the same command ends in the same bytes.
    bytes_ = {f.name: f.read_bytes() for f in (tmp_path / "weak").rglob("*.parquet")}
    with MockServer(weaker(asked_of(verified)), model="weak", port=server.port) as server:
        build(verified, tmp_path / "weak", server.spec, **{"rows-of": str(first)})
        assert not server.asked
    assert bytes_ == {f.name: f.read_bytes() for f in (tmp_path / "weak").rglob("*.parquet")}


def test_mistakes_are_one_line(verified: Path, first: Path, tmp_path: Path) -> None:
    def refused(told: str, **changes: str) -> None:
        with pytest.raises(UserError, match=told):
            build(verified, tmp_path / "out", "annotations", **changes)

    of = {"rows-of": str(first)}
    refused("not allowed with argument", rows="9", **of)
    refused("one of the arguments --rows --rows-of is required")
    taken = "all but the teacher from the first build; leave out --"
    for name, value in (("questions", "9"), ("ideal", "0"), ("seed", "0"), ("pool", "9")):
        refused(f"{taken}{name}", **of, **{name: value})
    refused("no verifier set with its record", **{"rows-of": str(tmp_path)})
    strange = shutil.copytree(first, tmp_path / "strange") / SET
    about = record(first)
    file = strange / "statistics" / "verifier_steps.json"
    file.write_text(json.dumps({**about, "seed": "x"}))
    refused("cannot be read .*seed", **{"rows-of": str(strange)})
    file.write_text(json.dumps(about))
    shutil.rmtree(strange / "data")
    refused("its set has no rows", **{"rows-of": str(strange)})


def candidate(id_: str, question: str, error: str, position: int, origin: Any) -> Candidate:
    return Candidate(id_, "musique", question, error, position, origin)


def test_ids_come_first_then_positions_then_types() -> None:
    wanted = [
        candidate("a", "q", "Redundancy", 2, "injected"),
        candidate("b", "q", "Redundancy", 3, "injected"),
        candidate("c", "q", "Correct", 1, "ideal"),
        candidate("d", "q", "Redundancy", 2, "refined"),
        candidate("e", "r", "Correct", 1, "ideal"),
    ]
    first = EarlierBuild("f", None, "0" * 64, {}, {"train": wanted, "test": []})
    there = [
        candidate("b", "q", "Redundancy", 3, "injected"),  # its very self, not near to "a"
        candidate("x", "q", "Redundancy", 5, "injected"),
        candidate("y", "q", "Correct", 1, "ideal"),
        candidate("z", "q", "Correct", 2, "ideal"),
        candidate("w", "q", "Redundancy", 2, "refined"),  # another's step
        candidate("v", "s", "Correct", 1, "ideal"),
    ]
    for order in (there, there[::-1]):
        taken = first.match(order, 0)
        assert taken.ids == {"b", "x", "y"}
        assert taken.matched == {"id": 1, "position": 1, "type": 1}
        assert [row.id for row in taken.lost] == ["d", "e"]


def test_it_is_read_as_it_was_written(first: Path) -> None:
    found = read_earlier_build(str(first))
    assert found.name == SET
    parts = rows_in(first)
    assert {s: [r.id for r in part] for s, part in found.rows.items()} == {
        s: [r["id"] for r in parts[s]] for s in ("train", "test")
    }
    assert found.plan_options["seed"] == SEED
    assert found.plan_options["composition"].rows == sum(map(len, parts.values()))
