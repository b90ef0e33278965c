"""The command that evaluates answers over a graph: a built set, a real server, kills."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluators.deliberation.command import FILES
from evaluators.outcomes import read_outcomes, read_questions
from evaluators.traces.page import read_traces
from safe_stepwise.errors import UserError
from safe_stepwise.methods.path_proposing import completion_of
from safe_stepwise.store.names import JOURNAL
from scripts import build_paths
from scripts.evaluate_deliberation import main
from tests import sizes
from tests.makers import films
from tests.servers.openai_server import MockServer

ROOT = Path(__file__).parents[2]
Reply = Callable[[Mapping[str, Any]], str]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, 30 questions of it, and a set that was built of 450 others."""
    folder = tmp_path_factory.mktemp("films")
    kb, learnt = films.written(folder / "set", 450)
    build_paths.main(
        ["--benchmark", "metaqa", "--kb", str(kb), "--input", str(learnt), "--split", "train",
         "--output", str(folder), "--workers", "1"]
    )  # fmt: skip
    films.written(folder, 30, seed=9)
    return folder


def arguments(made: Path, output: Path, *more: str) -> list[str]:
    return [
        *("--questions", str(made / "questions.jsonl"), "--kb", str(made / "kb.txt")),
        *("--output", str(output), "--cache", str(output.with_suffix(".sqlite")), *more),
    ]


def read(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "results.json").read_bytes())
    return found


def content(output: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in output.iterdir()}


def gold_path(words: str) -> str:
    """The reply that names the path of a question's template."""
    (path,) = (path for template, path in films.ASKED.items() if all(part in words for part in template.split("{}")))
    return completion_of(path)


def right(body: Mapping[str, Any]) -> str:
    """A proposer and a generator in one that take the first path for right, and all it leads to."""
    said = body["messages"][-1]["content"]
    if "structured_outputs" in body:  # the paths that there are
        return gold_path(json.loads(said.splitlines()[0].removeprefix("Question: ")))
    schema = body["response_format"]["json_schema"]
    if schema["name"] == "constraints":
        return '{"constraints": []}'
    if schema["name"] == "choice":
        return '{"reason": "It fits.", "path": 1}'
    names = schema["schema"]["properties"]["answer"]["items"]["enum"]
    return json.dumps({"answer": names, "sufficient": True, "reason": "It fits."})


def test_the_oracle_and_what_is_written(made: Path, tmp_path: Path) -> None:
    main(arguments(made, tmp_path / "out", "--paths", "oracle"))
    found = read(tmp_path / "out")
    assert (found["hit"], found["hits_at_1"], found["f1"], found["scorer"]) == (1, 1, 1, "dp")
    assert found["simulated"] is False
    assert set(found["by_hop"]) <= {"1", "2", "3"}
    assert sum(of["questions"] for of in found["by_hop"].values()) == found["questions"] == 30
    assert set(found["runs"][0]["scorers"]) == {"dp", "rog", "gcr", "tog"}
    assert found["runs"][0]["scorers"]["tog"]["f1"] is None
    assert found["runs"][0]["paths"]["gold"] == found["runs"][0]["paths"]["executable"] == 1
    assert found["settings"]["gold"].startswith("derived")
    assert set(content(tmp_path / "out")) == set(FILES)
    outcomes = list(read_outcomes(tmp_path / "out"))
    assert [o.question_id for o in outcomes] == [q.id for q in read_questions(tmp_path / "out")]
    page = (tmp_path / "out" / "deliberation.md").read_text()
    assert "75.1 / 82.7 / 72.3" in page
    assert "Misprint" in page
    assert "imulated" not in page


def test_questions_are_drawn_by_the_seed(made: Path, tmp_path: Path) -> None:
    drawn = list[list[str]]()
    for name, how in (("first", ()), ("one", ("--draw",)), ("again", ("--draw",)), ("two", ("--draw", "--seed", "2"))):
        limits = ("--per-hop", "4", "--limit", "9")
        main(arguments(made, tmp_path / name, "--paths", "oracle", *limits, *how))
        drawn.append([question.id for question in read_questions(tmp_path / name)])
        assert read(tmp_path / name)["settings"]["draw"] is ("--draw" in how)
        assert max(hop["questions"] for hop in read(tmp_path / name)["by_hop"].values()) <= 4
        assert read(tmp_path / name)["hits_at_1"] == 1  # each with its own gold paths
    assert drawn[1] == drawn[2]
    assert len({tuple(ids) for ids in drawn}) == 3
    assert all(len(set(ids)) == 9 for ids in drawn)


def test_a_run_beside_others(made: Path, tmp_path: Path) -> None:
    paths = ("--paths", "nearest", "--paths", "most=majority", "--paths", "oracle")
    main(arguments(made, tmp_path / "out", *paths, "--train", str(made)))
    found = read(tmp_path / "out")
    assert [run["name"] for run in found["runs"]] == ["nearest", "most", "oracle"]
    near, most, oracle = (run["hits_at_1"] for run in found["runs"])
    assert most < near <= oracle == 1
    assert found["hits_at_1"] == near
    assert len(found["differences"]) == 6
    assert found["settings"]["gold"].startswith("those of their templates")
    variants = {o.conditions["variant"] for o in read_outcomes(tmp_path / "out")}
    assert variants == {"nearest", "most", "oracle"}


def test_records_of_runs_that_share_a_proposer_are_told_apart(made: Path, tmp_path: Path) -> None:
    ways: dict[str, list[str]] = {
        "usual": [],
        "free": ["--free"],
        "more": ["--candidates", "2"],
        "short": ["--max-hops", "2"],
        "weak": ["--train", str(made), "--labels", "weak"],
    }
    for name, how in ways.items():
        main(arguments(made, tmp_path / name, "--paths", "nearest", *how, "--limit", "6"))
    labels = {
        name: {json.dumps(dict(o.conditions), sort_keys=True) for o in read_outcomes(folder)}
        for name in ways
        for folder in [tmp_path / name]
    }
    assert all(len(own) == 1 for own in labels.values())
    assert len(set.union(*labels.values())) == len(ways)
    assert labels["usual"] == {'{"variant": "nearest"}'}
    assert labels["free"] == {'{"free": true, "variant": "nearest"}'}
    (run,) = read(tmp_path / "weak")["runs"]
    assert run["conditions"]["train"].startswith("dp-metaqa-paths by question@")
    # Beside others a run has the label that it has alone.
    beside = ("--paths", "oracle", "--paths", "nearest", "--limit", "6")
    main(arguments(made, tmp_path / "both", *beside))
    told = [dict(o.conditions) for o in read_outcomes(tmp_path / "both")]
    assert told == [{"variant": "oracle"}] * 6 + [{"variant": "nearest"}] * 6


def test_a_model_is_not_labelled_by_a_set_that_others_learn_from(made: Path, tmp_path: Path) -> None:
    with MockServer(right) as server:
        paths = ("--paths", f"m={server.spec}", "--paths", "nearest", "--train", str(made))
        main(arguments(made, tmp_path / "out", *paths, "--limit", "2"))
    model, learner = (run["conditions"] for run in read(tmp_path / "out")["runs"])
    assert (model, set(learner)) == ({"variant": "m"}, {"variant", "train"})


def test_files_are_read_before_an_engine_is_opened(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose extra may be missing: that is the second thing to mend."""

    def opened(*_: Any) -> None:
        raise UserError("needs an extra")

    monkeypatch.setattr("evaluators.deliberation.command.Opener", lambda _: opened)
    (tmp_path / "bad").write_text('{"id": "x", "hop": "one", "question": "who [Oru]", "answers": ["a"]}\n')
    model = ("--paths", "vllm:somebody/model")
    for how, said in (
        (("--kb", "nowhere"), "nowhere: can't be read"),
        (("--questions", "nowhere"), "nowhere: no such file"),
        (("--questions", str(tmp_path / "bad")), r"bad:1 \(id x\): hop is .* --on-error keep"),
        (("--train", "nowhere"), "no dp-metaqa-paths in it"),
        (("--paths", "orcale"), "did you mean oracle"),
        ((), "needs an extra"),
    ):
        with pytest.raises(UserError, match=said):
            main(arguments(made, tmp_path / "out", *model, *how))


def test_the_viewer_shows_what_was_proposed_and_followed(made: Path, tmp_path: Path) -> None:
    main(arguments(made, tmp_path / "out", "--paths", "oracle", "--limit", "2"))
    (run, _) = read_traces(tmp_path / "out")["runs"]
    told = [json.dumps(attempt) for attempt in run["attempts"]]
    assert ["Read: executable" in told[0], "Read: answers" in told[1]] == [True, True]
    assert run["worth"] == "right"


def test_weak_labels_teach_too(made: Path, tmp_path: Path) -> None:
    more = ("--paths", "nearest", "--train", str(made), "--labels", "weak")
    main(arguments(made, tmp_path / "out", *more))
    assert read(tmp_path / "out")["hits_at_1"] > 0.8


def test_what_is_held_out_is_of_no_template_that_was_learnt(made: Path, tmp_path: Path) -> None:
    learn = ("--train", str(made), "--splits", "template")
    main(arguments(made, tmp_path / "out", "--paths", "nearest", *learn, "--held-out"))
    found = read(tmp_path / "out")
    assert 0 < found["questions"] < 30
    assert found["settings"]["of_splits"]["test"] == found["questions"]
    main(arguments(made, tmp_path / "one", "--paths", "oracle", *learn, "--held-out",
                   "--per-hop", "1"))  # fmt: skip
    few = read(tmp_path / "one")
    assert {of["questions"] for of in few["by_hop"].values()} == {1}


def test_the_loop_over_a_served_model(made: Path, tmp_path: Path) -> None:
    with MockServer(right) as server:
        more = ("--paths", server.spec, "--generator", server.spec, "--train", str(made))
        main(arguments(made, tmp_path / "out", *more))
        words = {q.question for q in read_questions(tmp_path / "out")}
        # Three proposals, constraints and a verdict for each question that is not asked twice.
        assert set(server.answered.values()) == {1}
        assert len(server.answered) == 5 * len(words) < 5 * 30
        again = arguments(made, tmp_path / "again", *more)
        again[again.index("--cache") + 1] = str(tmp_path / "out.sqlite")
        main(again)
        assert len(server.answered) == sum(server.answered.values()) == 5 * len(words)
    assert content(tmp_path / "again") == content(tmp_path / "out")
    found = read(tmp_path / "out")
    assert (found["hit"], found["hits_at_1"], found["failed"]) == (1, 1, 0)
    (run,) = found["runs"]
    # 3 candidates of a topic are one and the same path: constraints and a verdict a question.
    cost = run["cost"]["by_role"]
    assert (cost["proposer"]["calls"], cost["generator"]["calls"]) == (3, 2)
    assert run["cost"]["without_proposer"]["calls"] == 2
    assert run["paths"]["first_gold"] == run["paths"]["executable"] == 1
    assert run["paths"]["candidates_per_topic"] == 1


def test_entities_that_are_cut_are_counted_and_another_run(made: Path, tmp_path: Path) -> None:
    """Fewer that can be answers: other answers, of which no run that shows more takes any."""
    with MockServer(right) as server:
        more = arguments(made, tmp_path / "out", "--paths", "oracle", "--generator", server.spec)
        main([*more, "--most-ends", "1"])
        few, (run,) = [*read_outcomes(tmp_path / "out")], read(tmp_path / "out")["runs"]
        assert run["f1"] < 1
        assert run["hits_at_1"] == 1
        main(more)
    for cut, whole in zip(few, read_outcomes(tmp_path / "out"), strict=True):
        (one,), (other,) = ([a.read for a in o.trajectory.attempts if a.state == "instantiate"] for o in (cut, whole))
        assert (len(one["entities"]), one["cut"]) == (1, one["reached"] - 1)
        assert (len(other["entities"]), other["cut"]) == (one["reached"], 0)
    assert read(tmp_path / "out")["runs"][0]["f1"] == 1


def test_questions_of_which_not_all_entities_are_shown_are_counted(made: Path, tmp_path: Path) -> None:
    how = ("--paths", "oracle", "--generator", "symbolic")
    for most in (1, 10_000):
        output = tmp_path / str(most)
        main(arguments(made, output, *how, "--most-ends", str(most)))
        found = read(output)
        (run,) = found["runs"]
        reached = {o.question_id: [a.read["reached"] for a in o.trajectory.attempts
                                   if a.state == "instantiate"]
                   for o in read_outcomes(output)}  # fmt: skip
        cut = {id_ for id_, sizes in reached.items() if max(sizes) > most}
        assert run["cut"] == len(cut) == sum(of["cut"] for of in run["by_hop"].values())
        assert bool(cut) is (most == 1)
        assert f"| {run['failed']} | {len(cut)} |" in (output / "deliberation.md").read_text()


@pytest.mark.parametrize("planted", [0, 1, 2])
def test_planted_paths_cost_two_calls_each(made: Path, tmp_path: Path, planted: int) -> None:
    more = ("--paths", "nearest", "--candidates", "9", "--generator", f"symbolic:planted={planted}")
    main(arguments(made, tmp_path / "out", *more, "--train", str(made)))
    found = read(tmp_path / "out")
    assert (found["hit"], found["hits_at_1"], found["simulated"]) == (1, 1, True)
    exact = 0
    for outcome in read_outcomes(tmp_path / "out"):
        pool = sum(a.accepted for a in outcome.trajectory.attempts if a.state == "propose")
        calls = sum(len(a.usage) for a in outcome.trajectory.attempts)
        if pool > planted + 1:  # a spare path remains
            exact += 1
            assert calls == 1 + 2 * (planted + 1)
    assert exact > 10


@pytest.mark.parametrize(("part", "calls"), [("introspection", 1), ("predefined-constraints", 1), ("feedback", 2)])
def test_the_loop_less_a_part(made: Path, tmp_path: Path, part: str, calls: int) -> None:
    with MockServer(right) as server:
        more = ("--paths", server.spec, "--generator", server.spec, f"--no-{part}")
        main(arguments(made, tmp_path / "out", *more, "--limit", "6"))
    (run,) = read(tmp_path / "out")["runs"]
    assert run["cost"]["without_proposer"]["calls"] == calls
    assert run["questions"] == 6
    assert f"Without {part.split('-')[0]}." in (tmp_path / "out" / "deliberation.md").read_text()


def test_the_generator_alone_sees_no_graph(made: Path, tmp_path: Path) -> None:
    with MockServer(lambda _: '{"reason": "?", "answer": ["Person 1", "Drama"]}', keep_bodies=True) as server:
        main(arguments(made, tmp_path / "out", "--paths", "no_graph", "--generator", server.spec, "--limit", "6"))
        bodies = [body for body in server.bodies if len(body["messages"]) > 1]
    questions = {q.question for q in read_questions(tmp_path / "out")}
    assert {body["messages"][-1]["content"] for body in bodies} == {f"Question: {json.dumps(q)}" for q in questions}
    found = read(tmp_path / "out")
    (run,) = found["runs"]
    assert (run["cost"]["without_proposer"]["calls"], run["paths"]["proposals"], run["failed"]) == (1, 0, 0)
    outcomes = [*read_outcomes(tmp_path / "out")]
    assert {(o.method, o.trajectory.answer) for o in outcomes} == {("no_graph", "Person 1")}
    answers = {q.id: {*q.references} for q in read_questions(tmp_path / "out")}
    right = [bool({"Person 1", "Drama"} & answers[o.question_id]) for o in outcomes]
    assert found["hit"] == sum(right) / 6
    assert run["analyses"]["errors"]["by_kind"]["reasoning"] <= run["analyses"]["errors"]["wrong"]
    with MockServer(lambda _: "I do not know.") as server, pytest.raises(UserError, match="nothing could be read"):
        main(arguments(made, tmp_path / "no", "--paths", "no_graph", "--generator", server.spec, "--limit", "2"))
    with MockServer(lambda _: "", status=400) as server, pytest.raises(UserError, match="failed"):
        main(arguments(made, tmp_path / "no", "--paths", "no_graph", "--generator", server.spec, "--limit", "2"))


def test_independent_runs_ask_again_with_seeds_of_their_own(made: Path, tmp_path: Path) -> None:
    how = (
        "--paths",
        "oracle",
        "--paths",
        "no_graph",
        "--generator",
        "symbolic:error_rate=0.5,seed=4",
        "--repeats",
        "3",
    )
    main(arguments(made, tmp_path / "out", *how))
    found = read(tmp_path / "out")
    assert [run["name"] for run in found["runs"]] == [
        f"{name}{n}" for n in ("", " #2", " #3") for name in ("oracle", "no_graph")
    ]
    oracle, alone = found["repeated"]
    hits = [run["hits_at_1"] for run in found["runs"][1::2]]
    assert len({*hits}) > 1
    assert alone["hits_at_1"]["mean"] == pytest.approx(sum(hits) / 3)
    assert oracle["runs"] == 3
    assert {row["second"] for row in found["differences"]} == {"no_graph"}
    page = (tmp_path / "out" / "deliberation.md").read_text()
    assert f"{alone['f1']['mean']:.1%}".rstrip("%") + " ± " in page
    assert read(tmp_path / "out")["runs"][0]["hit"] == found["hit"]
    with MockServer(right, keep_bodies=True) as server:
        more = ("--paths", "oracle", "--generator", server.spec, "--limit", "3", "--repeats", "2")
        main(arguments(made, tmp_path / "served", *more))
        bodies = [
            json.dumps({**body, "seed": 0}, sort_keys=True) for body in server.bodies if len(body["messages"]) > 1
        ]
        assert {body["seed"] for body in server.bodies if len(body["messages"]) > 1} == {0, 1000}
    assert {bodies.count(body) for body in bodies} == {2}


def test_extracted_constraints_are_compared_with_annotated_ones(tmp_path: Path) -> None:
    examples = ROOT / "examples"
    how = ("--questions", str(examples / "films_questions.jsonl"), "--kb", str(examples / "films_graph.txt"))
    cache = ("--cache", str(tmp_path / "replies.sqlite"))
    for rate, low, high in (("0", 1, 1), ("0.5", 0.01, 0.99)):
        generator = ("--generator", f"symbolic:error_rate={rate}")
        main([*how, *cache, *generator, "--paths", "nearest", "--output", str(tmp_path / rate)])
        (run,) = read(tmp_path / rate)["runs"]
        part = run["analyses"]["constraints"]
        assert 0 < part["questions"] < part["asked"] == run["questions"]
        assert low <= part["hit"] <= high
        assert low <= part["f1"] <= high
        assert min(kind["gold"] for kind in part["by_kind"].values()) > 0  # each of the five is there
    bad = {"id": "x", "hop": 1, "question": "who made [Oru]", "answers": ["a"], "constraints": [{"kind": "mood"}]}
    (tmp_path / "bad").write_text(json.dumps(bad))
    with pytest.raises(UserError, match=r"bad:1 \(id x\): constraints\[0\]"):
        main([*cache, "--questions", str(tmp_path / "bad"), *how[2:], "--paths", "oracle", "--output", str(tmp_path)])


def test_worked_examples_are_as_many_as_are_named(made: Path, tmp_path: Path) -> None:
    counts = dict[str, set[int]]()
    for how in ("none", "all=0", "verify_path=1", "verify_path=1,constraints=2", "all"):
        with MockServer(right, keep_bodies=True) as server:
            more = ("--paths", "oracle", "--generator", server.spec, "--limit", "2", "--examples", how)
            main(arguments(made, tmp_path / how.replace(",", "-"), *more))
            systems = [body["messages"][0]["content"] for body in server.bodies if len(body["messages"]) > 1]
        counts[how] = {len([*re.finditer(r"^Example \d+:", text, re.MULTILINE)]) for text in systems}
    assert counts == {
        "none": {0}, "all=0": {0}, "verify_path=1": {0, 1}, "verify_path=1,constraints=2": {1, 2}, "all": {2, 5},
    }  # fmt: skip


def test_replies_are_held_to_what_there_is_unless_they_are_free(made: Path, tmp_path: Path) -> None:
    def wrong(body: Mapping[str, Any]) -> str:
        return completion_of(("~release_year", "no_such"))

    ways: dict[str, tuple[list[str], bool]] = {
        "default": ([], True),
        "constrained": (["--constrained"], True),
        "free": (["--free"], False),
    }
    for name, (how, held) in ways.items():
        with MockServer(wrong, keep_bodies=True) as server:
            output = tmp_path / name
            main(arguments(made, output, "--paths", server.spec, *how))
            asked = [b for b in server.bodies if len(b["messages"]) > 1]
        # One that vLLM serves is told the replies, and not their schema.
        assert {"structured_outputs" in body for body in asked} == {held}
        found = read(output)
        assert (found["hit"], found["questions"], found["failed"]) == (0, 30, 0)
        assert found["settings"]["constrained"] is held
        told = found["runs"][0]["paths"]
        assert (told["executable"], told["gold"], told["unreadable"]) == (0, 0, 0)


@pytest.mark.parametrize("said", ["", "no JSON", '{"path": []}', '{"path": "by"}', "\ud800{", "{}"])
def test_of_garbage_every_question_is_accounted_for(made: Path, tmp_path: Path, said: str) -> None:
    with MockServer(lambda _: said) as server:
        more = ("--paths", server.spec, "--generator", server.spec, "--candidates", "2")
        main(arguments(made, tmp_path / "out", *more))
    found = read(tmp_path / "out")
    assert (found["questions"], found["hit"], found["hits_at_1"], found["f1"]) == (30, 0, 0, 0)
    (run,) = found["runs"]
    assert run["unanswered"] == 30
    assert run["paths"]["unreadable"] == run["paths"]["proposals"] == 60
    assert all(o.trajectory.answer == "" for o in read_outcomes(tmp_path / "out"))


def test_a_generator_of_garbage_invents_no_answer(made: Path, tmp_path: Path) -> None:
    with MockServer(lambda _: '{"answer": ["Nobody"], "sufficient": true, "path": 7}') as server:
        main(arguments(made, tmp_path / "out", "--paths", "oracle", "--generator", server.spec))
    found = read(tmp_path / "out")
    assert (found["questions"], found["hit"]) == (30, 0)
    assert found["runs"][0]["unanswered"] == 30


def test_a_server_that_fails_now_and_then_changes_nothing(made: Path, tmp_path: Path) -> None:
    for rate, name in ((0.0, "well"), (0.2, "ill")):
        with MockServer(right, fault_rate=rate, faults=("500", "cut", "garbage")) as server:
            more = ("--paths", f"m={server.spec}", "--generator", server.spec, "--limit", "8")
            main(arguments(made, tmp_path / name, *more))
    well, ill = (content(tmp_path / name) for name in ("well", "ill"))
    assert {k: v for k, v in well.items() if k != JOURNAL} == {k: v for k, v in ill.items() if k != JOURNAL}


def test_questions_that_failed_are_asked_again(made: Path, tmp_path: Path) -> None:
    with MockServer(right) as server:
        more = arguments(made, tmp_path / "out", "--paths", server.spec)
        server.status = 400
        with pytest.raises(UserError, match="failed"):
            main(more)
        assert not (tmp_path / "out" / "results.json").exists()
        server.status = 0
        main(more)
    assert read(tmp_path / "out")["hits_at_1"] == 1


def test_killed_again_and_again_it_ends_in_the_same_bytes(made: Path, tmp_path: Path) -> None:
    kills = sizes.size(4, 2)
    with MockServer(right, last=0) as server:
        more = ("--paths", server.spec, "--generator", server.spec, "--in-flight", "2")
        options = arguments(made, tmp_path / "out", *more, "--limit", "12")
        command = [sys.executable, "-m", "scripts.evaluate_deliberation", *options]
        for kill in range(1, kills + 1):
            server.last = 14 * kill
            killed = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            while server.calls < server.last:
                assert killed.poll() is None
                time.sleep(0.005)
            os.killpg(killed.pid, signal.SIGKILL)
            killed.wait()
            assert not (tmp_path / "out" / "results.json").exists()
            server.calls = int(server.last)
        server.last = math.inf
        main(options)
        again = sum(number - 1 for number in server.answered.values())
        # Those whose replies were on their way when it was killed: two clients have two each.
        assert again <= 2 * 2 * kills
        main(arguments(made, tmp_path / "whole", *more, "--limit", "12"))
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_rows_that_bring_their_graph(tmp_path: Path) -> None:
    rows = [
        {"id": f"w{n}", "question": f"who made film {n}", "answer": [f"Ana {n}"],
         "q_entity": [f"Film {n}"], "a_entity": [f"Ana {n}"],
         "graph": [[f"Film {n}", "film.by", f"Ana {n}"], [f"Film {n}", "film.of", f"Edo {n}"]]}
        for n in range(5)
    ]  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    more = ["--benchmark", "webqsp", "--questions", str(file), "--output", str(tmp_path / "out")]
    main([*more, "--paths", "oracle", "--paths", "nearest"])
    found = read(tmp_path / "out")
    assert (found["questions"], found["hits_at_1"], found["by_hop"]) == (5, 1, {})
    assert found["settings"]["gold"].startswith("none is known")
    assert found["runs"][1]["hits_at_1"] == 1
    whole = found["runs"][0]["f1"]
    rows[0]["graph"] = [["Film 0", "film.by", "Ana 0"], ["Film 0", "film.by", "Pell"]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main([*more, "--paths", "oracle"])
    assert read(tmp_path / "out")["runs"][0]["f1"] < whole  # another graph, the same questions
    rows[1]["answer"], rows[2]["q_entity"] = [], ["Film 9"]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main([*more, "--paths", "oracle"])
    found = read(tmp_path / "out")["runs"][0]
    assert (found["without_gold"], found["unanswered"], found["hit"]) == (1, 2, 0.8)
    with pytest.raises(UserError, match="each row brings its own graph"):
        main([*more, "--paths", "oracle", "--kb", str(file)])
    rows[3]["graph"] = [["Film 3", "film.by"]]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=r"rows\.jsonl:4 \(id w3\): triple 1 of graph is not"):
        main([*more, "--paths", "oracle"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--paths", "opnai:x"], "did you mean openai:x"),
        (["--paths", "orcale"], "did you mean oracle"),
        (["--paths", "oracle", "--paths", "oracle"], "two are called 'oracle'; name them"),
        (["--paths", "majority", "--labels", "weak"], "name the set that holds them with --train"),
        (["--paths", "oracle", "--held-out"], "name the set whose test split is meant"),
        (["--paths", "oracle", "--train", "nowhere"], "no dp-metaqa-paths in it; build it with"),
        (["--paths", "oracle", "--benchmark", "metqa"], "did you mean metaqa"),
        (["--paths", "oracle", "--benchmark", "hotpotqa"], "choose from metaqa, webqsp, cwq"),
        (["--paths", "oracle", "--questions", "nowhere"], "nowhere"),
        (["--paths", "oracle", "--kb", "nowhere"], "nowhere: can't be read"),
        (["--paths", "oracle", "--limit", "0"], "from 1 on"),
        (["--paths", "no_graph"], "name the model that answers alone with --generator"),
        (["--paths", "oracle", "--examples", "all=few"], "write all=N"),
        (["--paths", "oracle", "--examples", "none=1"], "write none=N"),
        (["--paths", "oracle", "--examples", "verify_path=1,none"], "none goes with no other"),
        (["--paths", "oracle", "--generator", "vlm:x"], "names no engine"),
    ],
)
def test_mistakes_are_one_line(made: Path, tmp_path: Path, options: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        main(arguments(made, tmp_path / "out", *options))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "q1"', "questions.jsonl:2"),
        ('{"id": "x", "question": "who made it", "answers": ["a"]}', "no .topic entity. in brack"),
        ('{"id": "q1", "hop": 1, "question": "who [Oru]", "answers": ["a"]}', "was there before"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, line: str, said: str) -> None:
    kb, asked = films.written(tmp_path, 1)
    asked.write_text(asked.read_text() + line + "\n")
    with pytest.raises(UserError, match=said):
        main(arguments(tmp_path, tmp_path / "out", "--paths", "oracle"))
    kb.write_text("a|b\n")
    asked.write_text(asked.read_text().splitlines()[0] + "\n")
    with pytest.raises(UserError, match=r"kb\.txt, line 1: is no triple \('a\|b'\)"):
        main(arguments(tmp_path, tmp_path / "out", "--paths", "oracle"))


def test_the_measured_baselines_come_out(real_data: Path, tmp_path: Path) -> None:
    """Of DELIBERATION.md: each of 3,000 real questions learns from all others."""
    paths = [f"--paths={name}" for name in ("oracle", "nearest", "majority")]
    asked, kb = real_data / "metaqa_questions.jsonl", real_data / "metaqa_kb.txt.gz"
    if not asked.is_file():
        pytest.skip(f"no {asked}")
    main(["--questions", str(asked), "--kb", str(kb), "--output", str(tmp_path), "--free", *paths])
    found = {run["name"]: [of["hits_at_1"] for of in run["by_hop"].values()] for run in read(tmp_path)["runs"]}
    assert found["oracle"] == pytest.approx([0.975, 1, 1], abs=0.005)
    assert found["nearest"] == pytest.approx([0.971, 0.968, 1], abs=0.025)
    assert found["majority"] == pytest.approx([0.164, 0.130, 0.165], abs=0.02)  # ours, of all
