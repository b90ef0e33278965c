"""The ablation of verification: steps of questions that could not be verified join in training."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.steps import leakage
from evaluators.verifier.step_set import RequestOptions, build_requests, read_cases
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import instructions, prompt_digest
from safe_stepwise.taxonomy import category, labels
from scripts import build_verified, build_verifier_steps
from tests.servers.openai_server import MockServer
from tests.servers.steps import Asked, careless
from trainers.config import Filters, VerifierRecipe
from trainers.data import Example, read_train_rows
from trainers.record import describe_extra_set
from trainers.rows.base import fingerprint, kind_of

SET = "safe-verifier-steps"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`verified` and `unverified`: the two sets of the same build of synthetic questions."""
    root = tmp_path_factory.mktemp("ablation")
    for split, seed in (("train", 1), ("validation", 2)):
        build_verified.main(
            f"--benchmark synthetic --input rows=60,seed={seed},noise=0.5 --split {split} "
            f"--teacher annotations --output {root} --workers 1 --evaluation-size 3".split()
        )
    build_verifier_steps.main(
        f"--verified {root} --teacher annotations --rows 60 --output {root / 'verified'} --workers 1".split()
    )
    with MockServer(careless()) as server:
        build_verifier_steps.main(
            f"--verified {root} --teacher {server.spec} --rows 50 --unverifiable --workers 1 "
            f"--output {root / 'unverified'} --cache {root / 'cache.sqlite'}".split()
        )
    return root


def column(built: Path, name: str, column: str, split: str = "*") -> list[str]:
    files = sorted((built / name / SET / "data" / "steps").glob(f"{split}-*.parquet"))
    return [value for file in files for value in pq.read_table(file)[column].to_pylist()]


def test_each_set_has_questions_of_its_kind_and_says_so(built: Path) -> None:
    unverifiable: dict[str, bool] = {}
    for file in (built / "safe-verified-multihop" / "data" / "synthetic_labeled").iterdir():
        table = pq.read_table(file, columns=["id", "unverifiable"]).to_pydict()
        unverifiable |= dict(zip(table["id"], table["unverifiable"], strict=True))
    for name, expected in (("verified", False), ("unverified", True)):
        ids = column(built, name, "question_id")
        assert {unverifiable[id_] for id_ in ids} == {expected}
        folder = built / name / SET
        told = json.loads((folder / "statistics" / "verifier_steps.json").read_text())
        assert told["unverifiable"] is expected
        readme = (folder / "README.md").read_text()
        assert ("**Unchecked, for an ablation.**" in readme) is expected
        assert ("is kept only if a checker" in readme) is not expected
        assert ("The checker that confirms the labels" in readme) is not expected
    assert len(column(built, "unverified", "id")) + told["overlap"]["steps"] == 50
    assert not list((built / "unverified" / SET / "data" / "missing_evidence").glob("train-*"))


def recipe(built: Path, *plus: str, **filters: Any) -> VerifierRecipe:
    return VerifierRecipe(
        base_model="none",
        dataset=str(built / "verified" / SET),
        output=Path("none"),
        plus=tuple(str(built / name / SET) for name in plus),
        filters=Filters(**filters),
    )


def test_they_join_in_training_under_the_same_filters(built: Path) -> None:
    _, alone, none = read_train_rows(recipe(built))
    source, rows, (joined,) = read_train_rows(recipe(built, "unverified"))
    assert none == []
    assert rows[: len(alone)] == alone
    assert len(joined.ids) == len(rows) - len(alone) > 30
    assert (source.name, joined.source.about["unverifiable"]) == (SET, True)
    assert joined.sha256 == fingerprint(rows[len(alone) :])
    dropped = [Example(str(row["id"]), (1, 2), 1) for row in rows[:-1]]  # the last one too long
    told = describe_extra_set(joined, dropped)
    assert (told["rows"], told["sha256"]) == (len(joined.ids) - 1, joined.sha256)
    assert (told["unverifiable"], told["teacher"][:7]) == (True, "openai:")
    ideal = {"origins": ("ideal",)}
    _, fewer, (part,) = read_train_rows(recipe(built, "unverified", **ideal))
    assert 0 < len(part.ids) < len(joined.ids)
    assert len(fewer) < len(rows)


def test_with_incomplete_evidence_all_twelve_labels_are_learnt(built: Path, tmp_path: Path) -> None:
    asked = replace(recipe(built), incomplete_evidence=True)
    source, rows, _ = read_train_rows(asked)
    data = built / "verified" / SET / "data"
    (file,) = (data / "missing_evidence_prompt_completion").glob("train-*")
    assert [row["id"] for row in rows] == pq.read_table(file)["id"].to_pylist()
    said = Counter(json.loads(row["completion"][0]["content"])["error_type"] for row in rows)
    assert said["Missing Evidence"] > 10
    assert set(said) == set(labels(incomplete_evidence=True))
    assert all("Missing Evidence" in row["prompt"][0]["content"] for row in rows)
    kind = kind_of(asked)
    assert kind.prompt_digest() == prompt_digest(True) == source.about[kind.rendered_by]
    assert kind_of(recipe(built)).prompt_digest() == prompt_digest()
    for row in rows:
        kind.check(row["completion"][0]["content"])
    # Filters and sets that join know the rows of all configs.
    for name in ("Missing Evidence", "Attribution"):
        dropped = replace(asked, filters=Filters(drop_category=name))  # type: ignore[arg-type]
        kept = Counter(json.loads(r["completion"][0]["content"])["error_type"] for r in read_train_rows(dropped)[1])
        assert kept == {n: c for n, c in said.items() if category(n) != name}
    more = replace(recipe(built, "unverified"), incomplete_evidence=True)
    _, joined, (part,) = read_train_rows(more)
    assert len(joined) == len(rows) + len(part.ids)
    before = shutil.copytree(built / "verified" / SET, tmp_path / "before")
    record = before / "statistics" / "verifier_steps.json"
    told = json.loads(record.read_text())
    del told["files"]["missing_evidence_prompt_completion"]
    record.write_text(json.dumps(told))
    with pytest.raises(UserError, match="holds no missing_evidence_prompt_completion; make or"):
        read_train_rows(replace(asked, dataset=str(before)))


@pytest.mark.parametrize("twelve", [False, True])
def test_a_dropped_category_leaves_the_prompt_by_choice(built: Path, tmp_path: Path, twelve: bool) -> None:
    asked = replace(recipe(built), incomplete_evidence=twelve, filters=Filters(drop_category="Procedural"))
    short = replace(asked, filters=replace(asked.filters, drop_from_prompt=True))
    usual, cut = read_train_rows(asked)[1], read_train_rows(short)[1]
    assert [row["id"] for row in usual] == [row["id"] for row in cut]
    for before, row in zip(usual, cut, strict=True):
        (system, user), (whole, same) = row["prompt"], before["prompt"]
        assert (user, row["completion"]) == (same, before["completion"])
        assert whole["content"] == instructions(twelve)
        assert system == {"role": "system", "content": instructions(twelve, "Procedural")}
    assert kind_of(asked).prompt_digest() == prompt_digest(twelve)
    assert kind_of(short).prompt_digest() == prompt_digest(twelve, "Procedural")
    # What the loop sends to the adapter is what it learnt, to the byte.
    sent = {
        tuple((turn.role, turn.content) for turn in request.messages)
        for request in build_requests(
            read_cases(built / "verified" / SET, "train", None, twelve), RequestOptions(twelve, "Procedural")
        ).values()
    }
    assert all(tuple((t["role"], t["content"]) for t in row["prompt"]) in sent for row in cut)
    # The run is another, though the recipe's keys of before are the same.
    kept = [fingerprint(rows) for rows in (usual, cut)]
    assert kept[0] != kept[1]
    strange = shutil.copytree(built / "verified" / SET, tmp_path / "strange")
    config = "missing_evidence_prompt_completion" if twelve else "prompt_completion"
    (file,) = (strange / "data" / config).glob("train-*")
    table = pq.read_table(file)
    rows = table.to_pylist()
    for row in rows:
        row["prompt"][0]["content"] += " Be kind."
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), file)
    assert len(read_train_rows(replace(asked, dataset=str(strange)))[1]) == len(usual)
    with pytest.raises(UserError, match="so that no category can be taken out of them; make or"):
        read_train_rows(replace(short, dataset=str(strange)))


def test_a_set_named_twice_and_tested_questions_are_refused(built: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="comes 2 times"):
        read_train_rows(recipe(built, "verified"))
    swapped = shutil.copytree(built / "verified", tmp_path / "swapped") / SET / "data"
    for config in ("steps", "prompt_completion"):
        (train,) = (swapped / config).glob("train-*")
        (test,) = (swapped / config).glob("test-*")
        shutil.copy(test, train)
    with pytest.raises(UserError, match=r"can't be trained on .*: is of a test question"):
        read_train_rows(replace(recipe(built), plus=(str(tmp_path / "swapped" / SET),)))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--teacher annotations", "has no path to write steps of; name a model"),
        ("--teacher symbolic", "has no path to write steps of; name a model"),
        ("--teacher openai:m@http://127.0.0.1:1/v1 --refined x.jsonl", "are of verified questions"),
    ],
)
def test_what_can_not_be_is_a_users_mistake(built: Path, options: str, expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        build_verifier_steps.main(
            f"--verified {built} --rows 9 --unverifiable --output {built / 'x'} {options}".split()
        )


def test_another_teacher_writes_of_the_same_questions(built: Path, tmp_path: Path) -> None:
    """The weaker teacher of SAFE v2, Table 6: a set of its own, by the same seed."""
    asked: list[set[str]] = []
    for name in ("strong", "weak"):
        teacher = MockServer(careless(), model=name, keep_bodies=True)
        with teacher as server:
            build_verifier_steps.main(
                f"--verified {built} --teacher {server.spec} --rows 12 "
                f"--unverifiable --workers 1 --pool 15 --output {tmp_path / name} "
                f"--cache {tmp_path / 'cache.sqlite'}".split()
            )
            asked.append({Asked(body).question for body in server.bodies})
    assert asked[0] == asked[1]
    strong, weak = (column(tmp_path, name, "teacher") for name in ("strong", "weak"))
    assert set(strong) != set(weak)


def test_a_build_without_such_questions_says_so(tmp_path: Path) -> None:
    build_verified.main(
        f"--benchmark synthetic --input rows=10,seed=3,noise=0 --split train "
        f"--teacher annotations --output {tmp_path} --workers 1".split()
    )
    with (
        MockServer(careless()) as server,
        pytest.raises(UserError, match="no row could be made of its 0 unverifiable questions"),
    ):
        build_verifier_steps.main(
            f"--verified {tmp_path} --teacher {server.spec} --rows 9 --unverifiable "
            f"--output {tmp_path / 'x'} --cache {tmp_path / 'c.sqlite'}".split()
        )


def test_a_near_duplicate_of_the_evaluation_sample_is_kept_out(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []

    def near(_: object, document: object) -> bool:
        seen.append(document)
        return len(seen) == 1

    monkeypatch.setattr(leakage.DocumentIndex, "near", near)
    with MockServer(careless()) as server:
        build_verifier_steps.main(
            f"--verified {built} --teacher {server.spec} --rows 50 --unverifiable --workers 1 "
            f"--output {tmp_path} --cache {tmp_path / 'c.sqlite'}".split()
        )
    file = tmp_path / SET / "statistics" / "verifier_steps.json"
    out = json.loads(file.read_text())["kept_out"]["synthetic"]
    assert out["questions"] == 1
    assert out["rows"] > 0
