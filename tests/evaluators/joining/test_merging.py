"""Which systems of several runs are one, what they are called, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evaluators.comparison.systems import System, name_systems
from evaluators.joining.command import Joined, join_runs, read_run
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.errors import UserError
from safe_stepwise.records import Passage
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES
from tests.makers.outcomes import outcomes

NO, SAFE = "no_verification", "safe"
PAGE = Passage("Oru", ("Oru lies on the Vel.",), True)


def system_of(outcome: Outcome) -> System:
    return System.make(outcome.method, outcome.players, outcome.options, outcome.conditions)


def wrote(folder: Path, found: Sequence[Outcome], **settings: Any) -> Path:
    """A folder as an evaluation leaves it; ``asked`` changes what was asked, by id."""
    asked = settings.pop("asked", {})
    keys = [(o.benchmark, o.question_id) for o in found if system_of(o) == system_of(found[0])]
    under = {"drop_gold": True} if settings.get("drop_gold") else {}
    questions = [
        asked.get(id_) or QuestionRecord(name, id_, f"What is {id_}?", ("x",), (PAGE,), under) for name, id_ in keys
    ]
    folder.mkdir()
    (folder / TRAJECTORIES).write_text("".join(f"{o.to_json()}\n" for o in found))
    (folder / QUESTIONS).write_text("".join(f"{q.to_json()}\n" for q in questions))
    (folder / RESULTS).write_text(json.dumps({"settings": {"judge": "j", **settings}}))
    return folder


def join(*texts: object) -> Joined:
    return join_runs([read_run(str(text)) for text in texts])


def told(found: Joined) -> list[str]:
    systems = dict.fromkeys(
        (o.method, *o.players.values(), *(str(v) for v in o.conditions.values())) for o in found.outcomes
    )
    return [" ".join(parts) for parts in systems]


def test_variants_stand_side_by_side_and_a_baseline_counts_once(tmp_path: Path) -> None:
    no = outcomes([0, 1, 0], NO)
    a = wrote(tmp_path / "a", no + outcomes([1, 1, 1]))
    b = wrote(tmp_path / "b", no + outcomes([1, 0, 1], verifier="noisy"))
    found = join(a, b)
    assert told(found) == ["no_verification model", "safe model checker", "safe model noisy"]
    assert len(found.outcomes) == 9
    assert [q.id for q in found.questions] == ["q0", "q1", "q2"]
    assert found.left_out == {}


def test_names_part_what_is_alike_but_not_what_is_the_same(tmp_path: Path) -> None:
    """Two adapters behind one server's name; the baseline came from the same cache."""
    no = outcomes([0, 1, 0], NO)
    a = wrote(tmp_path / "a", no + outcomes([1, 1, 1]))
    b = wrote(tmp_path / "b", no + outcomes([1, 0, 1]))
    with pytest.raises(UserError, match=r"both hold model, SAFE, with other outcomes") as caught:
        join(a, b)
    assert "the first on musique q1" in str(caught.value)
    assert f"{a}=NAME {b}=NAME" in str(caught.value)
    with pytest.raises(UserError, match="both hold"):
        join(f"{a}=same", f"{b}=same")
    found = join(f"{a}=verified", f"{b}=+ noise")
    assert told(found) == [
        "no_verification model", "safe model checker verified", "safe model checker + noise",
    ]  # fmt: skip
    # One of them may stay without a name.
    assert told(join(a, f"{b}=noise"))[1:] == ["safe model checker", "safe model checker noise"]


def test_one_name_for_the_runs_of_several_benchmarks(tmp_path: Path) -> None:
    for name, scores in (("full", [1, 1]), ("noise", [1, 0])):
        for benchmark in ("musique", "hotpotqa"):
            wrote(tmp_path / f"{name}-{benchmark}", outcomes(scores, benchmark=benchmark))
    texts = [f"{path}={path.name.split('-')[0]}" for path in sorted(tmp_path.iterdir())]
    found = join(*texts)
    assert told(found) == ["safe model checker full", "safe model checker noise"]
    assert {(o.conditions["variant"], o.benchmark) for o in found.outcomes} == {
        (name, benchmark) for name in ("full", "noise") for benchmark in ("musique", "hotpotqa")
    }


def test_questions_that_not_all_have_are_left_out_and_told(tmp_path: Path) -> None:
    a = wrote(tmp_path / "a", outcomes([1, 1, 1]) + outcomes([1, 1], benchmark="hotpotqa"))
    b = wrote(tmp_path / "b", outcomes([1, 0], verifier="other"))
    found = join(a, b)
    assert found.left_out == {"musique": 1}
    assert sorted({(o.benchmark, o.question_id) for o in found.outcomes}) == [
        ("hotpotqa", "q0"), ("hotpotqa", "q1"), ("musique", "q0"), ("musique", "q1"),
    ]  # fmt: skip
    c = wrote(tmp_path / "c", [replace(o, question_id="other") for o in outcomes([1])])
    with pytest.raises(UserError, match="no question of musique in common"):
        join(a, c)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": "Who is q1?"}, "another question, or other answers"),
        ({"references": ("y",)}, "another question, or other answers"),
        ({"passages": (PAGE, PAGE)}, "other passages"),
    ],
)
def test_other_questions_under_one_id_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    own = QuestionRecord("musique", "q1", "What is q1?", ("x",), (PAGE,))
    a = wrote(tmp_path / "a", outcomes([1, 1]))
    b = wrote(tmp_path / "b", outcomes([1, 1], NO), asked={"q1": replace(own, **change)})
    with pytest.raises(UserError, match=f"under musique q1 each asked {message}") as caught:
        join(a, b)
    assert "\n" not in str(caught.value)


def test_without_a_gold_passage_the_passages_are_others(tmp_path: Path) -> None:
    less = QuestionRecord("musique", "q0", "What is q0?", ("x",), (), {"drop_gold": True})
    under = {"drop_gold": True}, {"drop_gold": True, "corpus": "pages.jsonl@abababababab"}
    b, c = ([replace(o, conditions=u) for o in outcomes([n])] for n, u in enumerate(under))
    found = join(
        wrote(tmp_path / "a", outcomes([1])),
        wrote(tmp_path / "b", b, drop_gold=True, asked={"q0": less}),
        wrote(tmp_path / "c", c, drop_gold=True, asked={"q0": less}),
    )
    assert [o.conditions for o in found.outcomes] == [{}, *under]
    assert [(q.conditions, len(q.passages)) for q in found.questions] == [
        ({}, 1), ({"drop_gold": True}, 0),
    ]  # fmt: skip
    assert len(set(name_systems([*map(system_of, found.outcomes)]).values())) == 3


def test_questions_that_share_an_id_stay_apart(tmp_path: Path) -> None:
    twice = [replace(o, question_id="q") for o in outcomes([1, 0])]
    other = [replace(o, question_id="q") for o in outcomes([1, 0], NO)]
    found = join(wrote(tmp_path / "a", twice), wrote(tmp_path / "b", other))
    assert [(o.method, o.exact_match) for o in found.outcomes] == [
        (SAFE, 1), (SAFE, 0), (NO, 1), (NO, 0),
    ]  # fmt: skip


def test_what_is_no_evaluation_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no results.json of an evaluation in it; give"):
        read_run("nowhere")
    a = wrote(tmp_path / "a", outcomes([1]))
    (a / RESULTS).unlink()
    (a / f".{TRAJECTORIES}").write_text("")
    with pytest.raises(UserError, match="it has not ended: run the same command again"):
        read_run(str(a))
    (a / RESULTS).write_text("[]")
    with pytest.raises(UserError, match="not the record of an evaluation"):
        read_run(str(a))
    with pytest.raises(UserError, match="write DIR, or DIR=NAME"):
        read_run(f"{a}= ")
    b = wrote(tmp_path / "b", outcomes([1]))
    (b / QUESTIONS).write_text("")
    with pytest.raises(UserError, match="musique q0 was answered, and is not among its questions"):
        read_run(str(b))


def test_a_folder_with_an_equals_sign_is_a_folder(tmp_path: Path) -> None:
    a = wrote(tmp_path / "k=10", outcomes([1]))
    assert (read_run(str(a)).folder, read_run(str(a)).name) == (a, "")
    assert read_run(f"{a}=ten").name == "ten"
