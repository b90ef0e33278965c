"""Which requests a verifier set asks for, and the trajectories that its rows make up."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.steps.configs import config_features
from evaluators.verifier.quality import TrajectoryVerdicts
from evaluators.verifier.step_set import COLUMNS, build_requests, build_trajectories, find_majority_label, read_cases
from safe_stepwise.errors import UserError
from safe_stepwise.methods.scene import Scene
from safe_stepwise.steps import format_step
from safe_stepwise.store.names import INJECTED, ORIGINS, REFINED, SEEN, STEPS, UNSEEN
from tests.evaluators.verifier.step_rows import row, step, write_set

A, B, C = step(1, "a."), step(2, "b."), step(3, "c.", "Logical")
X, END = step(2, "x."), step(4, "####ANSWER: Oru", "Final Answer")


def test_origins_and_columns_are_those_of_the_set() -> None:
    columns = config_features(STEPS)
    assert list(ORIGINS) == columns["origin"].names
    assert set(COLUMNS) <= set(columns)


def test_prefixes_are_asked_for_once_and_shorter_ones_first(tmp_path: Path) -> None:
    folder = write_set(
        tmp_path,
        test=[
            row("1", [A, B, C]),
            row("2", [A], question="q2"),
            row("3", [A, X], "Redundancy", INJECTED),
            row("4", [A, B]),
        ],
    )
    cases = read_cases(folder, "test")
    asked = build_requests(cases)
    assert [(one.question, [s.text for s in one.steps]) for one in asked] == [
        ("q1", ["a."]),
        ("q1", ["a.", "b."]),
        ("q1", ["a.", "x."]),
        ("q1", ["a.", "b.", "c."]),
        ("q2", ["a."]),
    ]
    for one, request in asked.items():
        assert isinstance(request.scene, Scene)
        assert request.scene.step == one.steps[-1]
        assert request.scene.previous == one.steps[:-1]
        assert format_step(one.steps[-1]) in request.messages[1].content
        assert request.sampling.temperature == 0


def test_trajectories_of_single_rows(tmp_path: Path) -> None:
    folder = write_set(
        tmp_path,
        test=[
            row("1", [A]),  # a longer ideal row goes on from it
            row("2", [A, B]),
            row("3", [A, B, C]),  # the longest chain
            row("4", [A, X], "Redundancy", INJECTED),
            row("5", [A, B, C, END], "Wrong Conclusion", INJECTED),
            row("6", [A], question="q2"),  # of another question: its own trajectory
            row("7", [B.replace("2", "1"), X], "Off-topic", REFINED),
        ],
    )
    cases = read_cases(folder, "test")
    said = {one: f"{one.question} {len(one.steps)}" for one in build_requests(cases)}
    found = build_trajectories(cases, said)
    assert [(w.question, w.first_error, w.verdicts) for w in found] == [
        ("q1", None, ("q1 1", "q1 2", "q1 3")),
        ("q1", 2, ("q1 1", "q1 2")),
        ("q1", 4, ("q1 1", "q1 2", "q1 3", "q1 4")),
        ("q2", None, ("q2 1",)),
    ]
    # The refined row is asked for, what the loop accepted before it is not.
    refined = [one for one in said if one.steps[-1].text == "x." and one.steps[0].text == "b."]
    assert [len(one.steps) for one in refined] == [2]


def test_two_ideal_trajectories_of_a_question_stand_apart(tmp_path: Path) -> None:
    folder = write_set(tmp_path, test=[row("1", [A, B]), row("2", [A, X])])
    cases = read_cases(folder, "test")
    found = build_trajectories(cases, dict.fromkeys(build_requests(cases), "Correct"))
    assert found == [TrajectoryVerdicts("synthetic", "q1", None, ("Correct", "Correct"))] * 2


def test_the_majority_label_is_of_train_and_ties_go_by_the_taxonomy(tmp_path: Path) -> None:
    rows = [row("1", [A]), row("2", [A, X], "Redundancy", INJECTED)]
    folder = write_set(tmp_path, test=[row("0", [A])], train=rows)
    assert find_majority_label(folder) == "Redundancy"
    assert find_majority_label(folder, "test") == "Correct"
    assert find_majority_label(folder, "validation") is None


def test_a_limit_takes_the_first_rows(tmp_path: Path) -> None:
    folder = write_set(tmp_path, test=[row(str(n), [A], question=str(n)) for n in range(5)])
    assert [case.id for case in read_cases(folder, "test", 2)] == ["0", "1"]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no safe-verifier-steps in it; build one with"):
        read_cases(tmp_path, "test")


def test_a_split_without_rows_names_those_that_are_there(tmp_path: Path) -> None:
    folder = write_set(tmp_path, train=[row("1", [A])], test=[])
    with pytest.raises(UserError, match=r"'test' has no rows; choose --split from train$"):
        read_cases(folder, "test")


def test_rows_of_another_form(tmp_path: Path) -> None:
    folder = write_set(tmp_path, test=[row("1", ["Step one: a."])])
    with pytest.raises(UserError, match="row '1' cannot be read"):
        read_cases(folder, "test")
    file = next((folder / "data" / "steps").glob("*"))
    table = pq.read_table(file)
    pq.write_table(table.drop(["origin"]), file)
    with pytest.raises(UserError, match="no column origin"):
        read_cases(folder, "test")
    file.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot be read"):
        read_cases(folder, "test")


def test_numbers_that_stand_for_other_labels(tmp_path: Path) -> None:
    folder = write_set(tmp_path, test=[row("1", [A])])
    file = next((folder / "data" / "steps").glob("*"))
    table = pq.read_table(file)
    written = table.schema.metadata[b"huggingface"].replace(b"Overthinking", b"Underthinking")
    pq.write_table(table.replace_schema_metadata({b"huggingface": written}), file)
    with pytest.raises(UserError, match="error_type has other names"):
        read_cases(folder, "test")
    pq.write_table(pa.Table.from_pylist(table.to_pylist(), table.schema.remove_metadata()), file)
    assert len(read_cases(folder, "test")) == 1


def test_the_wording_is_read_by_its_name(tmp_path: Path) -> None:
    rows = [row("1", [A]), row("2", [A, B], question="q2", wording=UNSEEN)]
    folder = write_set(tmp_path, test=rows)
    assert [case.wording for case in read_cases(folder, "test")] == [SEEN, UNSEEN]
    file = next((folder / "data" / "steps").glob("*"))
    table = pq.read_table(file)
    written = table.schema.metadata[b"huggingface"].replace(b"unseen", b"unsaid")
    pq.write_table(table.replace_schema_metadata({b"huggingface": written}), file)
    with pytest.raises(UserError, match="wording has other names"):
        read_cases(folder, "test")
