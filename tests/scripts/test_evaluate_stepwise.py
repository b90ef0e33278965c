"""`evaluate_stepwise`: what it writes, that it resumes, what it refuses, what the loop is worth."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.synthetic import generate, parse_spec, to_row
from builders.verified.evaluation_questions import read
from evaluators.outcomes import Outcome, read_outcomes, read_questions
from evaluators.run import command
from evaluators.run import options as options_module
from evaluators.traces.page import read_traces
from safe_stepwise import prompts
from safe_stepwise.engines import client, openai
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import instructions
from safe_stepwise.scoring import exact_match, score
from safe_stepwise.store import progress as bars
from scripts import evaluate_stepwise, join_results
from tests import sizes
from tests.scripts.test_teacher_runs import stored
from tests.servers.openai_server import MockServer
from tests.servers.stepper import Stepper

ROOT = Path(__file__).parents[2]
METHODS = ("no_verification", "self_verification", "safe")
FILES = ("results.json", "trajectories.jsonl", "questions.jsonl")


def own(path: Path, number: int) -> Path:
    rows = [
        {
            "id": f"q{n}",
            "question": f"What is the name of N{n}?",
            "answer": f"N{n}",
            "passages": [{"title": f"Thing {n}", "text": f"Thing {n} is called N{n}."}],
        }
        for n in range(number)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


MODEL = "--generator=openai:m@http://127.0.0.1:1/v1"


def arguments(questions: object, output: Path, *more: str, **changes: str) -> list[str]:
    options = {
        "questions": str(questions),
        "output": str(output),
        "cache": str(output.parent / f"{output.name}.sqlite"),
        **changes,
    }
    named = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return [*named, *more]


def asking(spec: str, *methods: str) -> list[str]:
    return [
        *(f"--method={method}" for method in methods or METHODS),
        *(f"--{role}={spec}" for role in ("generator", "verifier", "judge")),
    ]


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name[0] != ".")
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def results(output: Path) -> Any:
    return json.loads((output / "results.json").read_text(encoding="utf-8"))


def by_method(output: Path) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for outcome in read_outcomes(output):
        found.setdefault(outcome.method, []).append(outcome)
    return found


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)


# ------------------------------------------------------------------------------------ best of N


def test_one_of_several_samples_is_chosen_for_any_method(tmp_path: Path) -> None:
    """Ways to choose share the samples; a choice that asks no verifier is one system, whoever verifies."""
    file = own(tmp_path / "own.jsonl", 6)
    with MockServer(Stepper()) as server, MockServer(Stepper(), model="second") as second:
        verifiers = (f"--verifier={server.spec}", f"--verifier={second.spec}")
        options = ("--method=no_verification", f"--generator={server.spec}", *verifiers, "--samples=3")
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *options, "--choose=first,majority,verifier"))
    record = results(tmp_path / "out")
    systems = [(run["options"]["choose"], sorted(run["players"])) for run in record["runs"]]
    chosen_by = ["generator", "verifier"]
    assert systems == [("first", ["generator"]), ("majority", ["generator"]), *2 * [("verifier", chosen_by)]]
    for run in record["runs"]:
        assert set(run["all"]["samples"]) == {"first", "mean", "majority", "oracle"}
        assert run["all"]["exact_match"] <= run["all"]["samples"]["oracle"]
        assert run["options"]["best_of"] == 3
    first, _, *verified = record["runs"]
    assert first["all"]["exact_match"] == first["all"]["samples"]["first"]
    assert first["all"]["calls"]["generator"] == verified[0]["all"]["calls"]["generator"]
    assert all(run["all"]["calls"]["verifier"] for run in verified)
    drawn = [outcome.trajectory.sampled for outcome in read_outcomes(tmp_path / "out")]
    assert {len(samples) for samples in drawn} == {3}
    shown = [run["samples"] for run in read_traces(tmp_path / "out")["runs"]]
    assert [[sample["answer"] for sample in chains] for chains in shown] == [[s.answer for s in d] for d in drawn]
    assert all(sum(sample["chosen"] for sample in chains) == 1 for chains in shown)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--choose=first"], "say how many with --samples N"),
        (["--choose=verifier", "--samples=2"], "--method no_verification wants a --verifier SPEC"),
        (["--choose=best", "--samples=2"], "--choose 'best' is not known"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    file = own(tmp_path / "own.jsonl", 1)
    with pytest.raises(UserError, match=message):
        evaluate_stepwise.main(arguments(file, tmp_path / "out", "--method=no_verification", MODEL, *options))


# ------------------------------------------------------------------------------------------ results


def test_a_prompt_without_a_category_is_part_of_a_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said of a served verifier, or by an adapter: the same requests, and the same system."""
    file = own(tmp_path / "own.jsonl", 8)
    filters = {"drop_category": "Logical", "drop_from_prompt": True}
    (tmp_path / "training.json").write_text(json.dumps({"recipe": {"filters": filters}}))

    class Opener(command.Opener):  # type: ignore[name-defined,misc]
        def __call__(self, spec: str) -> Any:
            engine: Any = super().__call__(spec)
            if "learnt" in spec:
                engine.adapter = SimpleNamespace(folder=tmp_path)
            return engine

    with (
        MockServer(Stepper(), keep_bodies=True) as server,
        MockServer(Stepper(), model="learnt", keep_bodies=True) as other,
    ):

        def judged() -> set[str]:
            bodies = server.bodies + other.bodies
            turns = [body["messages"][0]["content"] for body in bodies]
            server.bodies.clear()
            other.bodies.clear()
            return {turn for turn in turns if turn.startswith(prompts.load("loop/verify").system)}

        one, option = asking(server.spec, "safe"), "--option=drop_category=Logical"
        evaluate_stepwise.main(arguments(file, tmp_path / "whole", *one))
        assert judged() == {instructions()}
        evaluate_stepwise.main(arguments(file, tmp_path / "said", *one, option))
        assert judged() == {instructions(dropped="Logical")}
        both = [f"{option},Procedural", "--method=safe"]
        evaluate_stepwise.main(arguments(file, tmp_path / "both", *one, *both))
        assert judged() == {instructions(dropped=name) for name in ("Logical", "Procedural")}
        monkeypatch.setattr(command, "Opener", Opener)
        rest = ["--method=safe", f"--generator={server.spec}", f"--verifier={other.spec}"]
        evaluate_stepwise.main(arguments(file, tmp_path / "learnt", *rest))
        assert judged() == {instructions(dropped="Logical")}
        with pytest.raises(
            UserError, match=r"learnt: was trained with drop_category Logical, .*; leave the option drop_category out"
        ):
            evaluate_stepwise.main(arguments(file, tmp_path / "no", *rest, "--option=drop_category=Procedural"))
    whole, said, its = (
        {json.dumps(outcome.options) for outcome in read_outcomes(tmp_path / name)}
        for name in ("whole", "said", "learnt")
    )
    assert not any("drop_category" in options for options in whole)
    assert said == its
    assert all('"drop_category": "Logical"' in options for options in said)
    page = (tmp_path / "both" / "report" / "comparison.md").read_text("utf-8")
    assert {"drop_category=Logical", "drop_category=Procedural"} <= set(
        re.findall(r"drop_category=\w+", page.replace("\\_", "_"))
    )


def test_what_is_written_is_what_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = own(tmp_path / "own.jsonl", 60)
    with MockServer(Stepper()) as server:
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *asking(server.spec)))
        made = results(tmp_path / "out")
        runs = {run["method"]: run for run in made["runs"]}
        assert list(runs) == list(METHODS)
        calls = Counter[str]()
        for method, outcomes in by_method(tmp_path / "out").items():
            whole = runs[method]["all"]
            assert [outcome.question_id for outcome in outcomes] == [f"q{n}" for n in range(60)]
            scores = score(
                [outcome.trajectory.answer for outcome in outcomes], [(f"N{n}",) for n in range(60)], "custom"
            )
            assert (whole["exact_match"], whole["f1"]) == (scores.exact_match, scores.f1)
            assert whole["accuracy"] == scores.exact_match
            assert {outcome.verdict for outcome in outcomes} <= {"correct", "incorrect"}
            assert whole == runs[method]["benchmarks"]["custom"]
            assert runs[method]["average"]["f1"] == whole["f1"]
            calls[method] = sum(whole["calls"].values())
            assert whole["calls_per_question"] == calls[method] / 60
            for role in ("generator", "verifier"):
                tokens = [whole[f"{kind}_tokens"][role] for kind in ("prompt", "cached")]
                assert tokens[0] - tokens[1] == whole["computed_tokens"][role]
                assert (tokens[0] > 0) == (role == "generator" or method != "no_verification")
        asked = [*read_questions(tmp_path / "out")]
        assert [(a.id, a.references) for a in asked] == [(f"q{n}", (f"N{n}",)) for n in range(60)]
    assert not made["simulated"]
    assert runs["safe"]["all"]["exact_match"] == 1.0
    assert 0.4 < runs["no_verification"]["all"]["exact_match"] < 0.8
    assert runs["safe"]["all"]["error_types"].keys() == {"Contradictory", "Wrong Conclusion"}
    assert set(runs["safe"]["all"]["error_positions"]) == {"1", "2"}
    # The judge skips what matches; steps that methods have in common are asked for once.
    assert sum(server.asked.values()) == len(server.asked) < sum(calls.values())
    printed = capsys.readouterr().out
    assert "safe" in printed
    assert "% of them cached" in printed


def test_faults_change_nothing(tmp_path: Path, quick_retries: None, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own(tmp_path / "own.jsonl", 40)
    options = ("--at-once", "16")
    with MockServer(Stepper()) as server:
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *asking(server.spec, "safe"), *options))
    monkeypatch.setattr(openai, "TIMEOUT_S", 1.0)  # so long does what hangs
    with MockServer(Stepper(), fault_rate=0.2, port=server.port) as faulty:
        evaluate_stepwise.main(arguments(file, tmp_path / "faulty", *asking(faulty.spec, "safe"), *options))
    assert len(faulty.faulted) >= 5
    assert contents(tmp_path / "faulty") == contents(tmp_path / "out")


def test_what_failed_for_good_is_reported_and_asked_again(
    tmp_path: Path, quick_retries: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(options_module, "Client", partial(client.Client, tries=1))
    file = own(tmp_path / "own.jsonl", 40)
    options = arguments(file, tmp_path / "out")
    faults: Any = ("500", "reset")
    with MockServer(Stepper(), fault_rate=0.5, faults=faults, seed=3) as server:
        evaluate_stepwise.main([*options, *asking(server.spec, "no_verification", "safe")])
    assert "trajectories that failed" in capsys.readouterr().out
    found = by_method(tmp_path / "out")
    failed = [o for outcomes in found.values() for o in outcomes if o.trajectory.answer == ""]
    assert all(o.trajectory.stop_reason == "failed" and not o.exact_match for o in failed)
    assert all(o.verdict == "incorrect" for o in failed)
    told = [run["all"]["failed"] for run in results(tmp_path / "out")["runs"]]
    assert sum(told) == len(failed) > 0
    # A connection that a busy machine drops would fail for good, too, if tried once.
    monkeypatch.setattr(options_module, "Client", client.Client)
    with MockServer(Stepper(), port=server.port) as again:
        evaluate_stepwise.main([*options, *asking(again.spec, "no_verification", "safe")])
        assert not set(again.asked) & set(server.answered)
        fresh = arguments(file, tmp_path / "fresh")
        evaluate_stepwise.main([*fresh, *asking(again.spec, "no_verification", "safe")])
    assert contents(tmp_path / "fresh") == contents(tmp_path / "out")


def test_own_questions_without_annotations_are_refused_where_they_are_needed(tmp_path: Path) -> None:
    options = arguments(own(tmp_path / "own.jsonl", 3), tmp_path / "out", "--method=safe")
    symbolic = ["--generator=symbolic", "--verifier=symbolic"]
    with pytest.raises(UserError, match="--generator symbolic goes by annotations"):
        evaluate_stepwise.main([*options, *symbolic])
    model = [MODEL, "--verifier=openai:v@http://127.0.0.1:1/v1"]
    with pytest.raises(UserError, match="--drop-gold: 3 of 3 questions mark no gold passage"):
        evaluate_stepwise.main([*options, *model, "--drop-gold"])
    assert not (tmp_path / "out").exists()


def test_a_run_in_which_all_failed_writes_nothing(tmp_path: Path, quick_retries: None) -> None:
    file = own(tmp_path / "own.jsonl", 4)
    with MockServer(Stepper(), status=404) as server:
        options = arguments(file, tmp_path / "out", *asking(server.spec, "safe"))
        with pytest.raises(UserError, match=r"all 4 trajectories failed .* 404: as you wish"):
            evaluate_stepwise.main(options)
    assert not contents(tmp_path / "out")


def test_a_sweep_runs_every_pair_of_limits_and_repeats_no_call(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", 20)
    with MockServer(Stepper(flawed=0.6, steps=3)) as server:
        evaluate_stepwise.main(
            arguments(file, tmp_path / "out", "--max-steps=1,3", "--max-retries=0,2",
                      *asking(server.spec, "safe"))
        )  # fmt: skip
        assert max(server.asked.values()) == 1
    made = results(tmp_path / "out")["runs"]
    limits = [(run["options"]["max_steps"], run["options"]["max_retries"]) for run in made]
    assert limits == [(1, 0), (1, 2), (3, 0), (3, 2)]
    assert made[-1]["all"]["exact_match"] == 1.0
    assert made[0]["all"]["stop_reasons"] == {"max_steps": 20}


def test_players_and_options_can_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every one of them runs: none takes the place of another."""
    file = own(tmp_path / "own.jsonl", 4)
    with MockServer(Stepper(), models_status=404) as server:
        other = server.spec.replace("openai:mock", "openai:other")
        evaluate_stepwise.main(
            arguments(
                file, tmp_path / "out", *asking(server.spec, "safe"), f"--verifier={other}",
                "--feedback=full,guidance", "--feedback=diagnosis", "--on-exhausted=accept",
                "--on-exhausted=drop", "--max-steps=2", "--max-steps=3",
            )
        )  # fmt: skip
    made = results(tmp_path / "out")["runs"]
    ran = {
        (run["players"]["verifier"], *(run["options"][n] for n in NAMED)) for run in made
    }  # fmt: skip
    assert len(made) == len(ran) == 2 * 3 * 2 * 2
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert table[0][:7] == ["generator", "method", "verifier", *("K", "N", "on_exhausted", "feedback")]
    assert {line[2] for line in table[2 : 2 + len(made)]} == {"openai:mock", "openai:other"}
    text = (tmp_path / "out" / "report" / "comparison.md").read_text(encoding="utf-8")
    for name in ("SAFE with openai:other", "on_exhausted=drop", "feedback=diagnosis", "K=3"):
        assert name in text
    systems = results(tmp_path / "out")["comparison"]["systems"]
    assert len(systems) == len(made)


NAMED = ("max_steps", "on_exhausted", "feedback")


def test_missing_evidence_and_the_corpus_are_part_of_a_system(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = synthetic(tmp_path / "rows.jsonl", 12)
    corpus = tmp_path / "pages.jsonl"
    corpus.write_text('{"title": "Nothing", "text": "Nothing of use."}\n', encoding="utf-8")
    sha = hashlib.sha256(corpus.read_bytes()).hexdigest()[:12]
    runs = {"whole": [], "less": ["--drop-gold", f"--corpus={corpus}"], "none": ["--drop-gold", "--drop-gold-count=9"]}
    for name, more in runs.items():
        evaluate_stepwise.main(arguments(file, tmp_path / name, "--method=safe", "--max-retries=0", *more, *PLAYERS))
    assert f"all of them with drop_gold, corpus=pages.jsonl@{sha}" in capsys.readouterr().out
    text = (tmp_path / "less" / "report" / "comparison.md").read_text(encoding="utf-8")
    assert " K=10, N=0, on_exhausted=accept, feedback=full. " in text
    assert f"SAFE, corpus=pages.jsonl@{sha}, drop_gold |" in text
    under = {"drop_gold": True, "corpus": f"pages.jsonl@{sha}"}
    assert results(tmp_path / "less")["runs"][0]["conditions"] == under
    assert {tuple(o.conditions.items()) for o in read_outcomes(tmp_path / "less")} == {tuple(sorted(under.items()))}
    assert {tuple(q.conditions) for q in read_questions(tmp_path / "less")} == {("drop_gold",)}
    assert {tuple(o.conditions) for o in read_outcomes(tmp_path / "whole")} == {()}
    assert results(tmp_path / "none")["runs"][0]["conditions"] == {"drop_gold": 9}
    assert "SAFE, drop_gold=9 |" in (tmp_path / "none" / "report" / "comparison.md").read_text(encoding="utf-8")
    # Laid side by side they stay two.
    join_results.main([*(str(tmp_path / n) for n in ("whole", "less")), f"--output={tmp_path / 'j'}"])
    assert len(results(tmp_path / "j")["comparison"]["systems"]) == 2
    shown = read_traces(tmp_path / "j")
    assert len(shown["questions"]) == 24
    sizes = {len(question["passages"]) for question in shown["questions"][:12]}
    assert {len(question["passages"]) + 1 for question in shown["questions"][12:]} == sizes


PLAYERS = ("--generator=symbolic:error_rate=0.3,seed=1", "--verifier=symbolic", "--judge=symbolic")


def synthetic(file: Path, rows: int, seed: int = 1) -> Path:
    spec = parse_spec(f"rows={rows},seed={seed},noise=0")
    made = [question for question, _ in generate(spec, split="validation")]
    file.write_text("".join(json.dumps(to_row(q, "none")) + "\n" for q in made), encoding="utf-8")
    return file


def test_what_players_would_cost_adds_up_and_comes_again(tmp_path: Path) -> None:
    """As in the demo: no model, and a cost table by role, cached and computed."""
    file = synthetic(tmp_path / "rows.jsonl", 20)
    options = arguments(file, tmp_path / "out", *(f"--method={m}" for m in METHODS), *PLAYERS)
    evaluate_stepwise.main(options)
    with (tmp_path / "out" / "report" / "cost.csv").open(encoding="utf-8") as lines:
        rows = [*csv.DictReader(lines)]
    assert {row["simulated"] for row in rows} == {"true"}
    kinds = ("prompt", "cached", "computed", "completion")
    by = {
        (row["method"], row["role"]): {k: int(row[f"{k}_tokens"]) for k in kinds} for row in rows
    }  # fmt: skip
    assert len(by) == 2 + 3 + 3
    for (method, role), found in by.items():
        assert min(found.values()) > 0
        assert found["prompt"] == found["cached"] + found["computed"]
        assert found["cached"] > 0.7 * found["prompt"]
        if role == "overall":
            parts = [by[key] for key in by if key[0] == method and key[1] != role]
            assert found == {k: sum(part[k] for part in parts) for k in kinds}
    text = (tmp_path / "out" / "report" / "cost.md").read_text(encoding="utf-8")
    assert text.startswith("# Cost (simulated)")
    assert "For them we count the words and punctuation marks" in text
    before = contents(tmp_path / "out")
    for left, more in (("results.json", []), (".trajectories.jsonl", ["--at-once=3"])):
        (tmp_path / "out" / left).unlink()  # what a kill would leave; then all from the cache
        evaluate_stepwise.main([*options, *more])
        assert contents(tmp_path / "out") == before


# --------------------------------------------------------------------------------------- resumption


def test_a_finished_run_asks_nothing_and_a_torn_line_is_owed(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", 12)
    with MockServer(Stepper()) as server:
        options = arguments(file, tmp_path / "out", *asking(server.spec, "safe"))
        evaluate_stepwise.main(options)
    before = contents(tmp_path / "out")
    journal = tmp_path / "out" / ".trajectories.jsonl"
    whole = journal.read_bytes()
    assert whole.count(b"\n") == 12
    with MockServer(Stepper(), port=server.port, status=500) as silent:
        evaluate_stepwise.main(options)
        for torn in (whole[:-20], whole + b'{"key": "x', b"{}\n" + whole, whole[:5]):
            journal.write_bytes(torn)
            (tmp_path / "out" / "results.json").unlink()
            evaluate_stepwise.main(options)  # from the response cache
            assert contents(tmp_path / "out") == before
            assert journal.read_bytes() == whole
        assert not silent.asked


def test_other_settings_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", 5)
    with MockServer(Stepper()) as server:
        base = arguments(file, tmp_path / "out", *asking(server.spec, "safe"))
        evaluate_stepwise.main(base)
        first = contents(tmp_path / "out")
        evaluate_stepwise.main(base)
        evaluate_stepwise.main([*base, "--max-retries=1", "--limit=3"])
        assert len(results(tmp_path / "out")["runs"]) == 1
        asked = sum(server.asked.values())
        evaluate_stepwise.main(base)
        assert sum(server.asked.values()) == asked
    assert contents(tmp_path / "out") == first


def test_killed_at_any_instant_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    file = own(tmp_path / "own.jsonl", sizes.size(500, 120))
    chance = random.Random(7)
    with MockServer(Stepper(), latency=0.005) as server:
        options = arguments(file, tmp_path / "out", *asking(server.spec, "safe"), in_flight="8")
        command = [sys.executable, "-m", "scripts.evaluate_stepwise", *options]
        journal, kills = tmp_path / "out.sqlite", sizes.size(4, 2)
        for _ in range(kills):
            more = chance.randint(1, sizes.size(400, 150))
            enough = stored(journal) + more
            # What a killed process asked may still take its share.
            server.last = server.calls + more + 2 * 8
            process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while stored(journal) < enough and process.poll() is None:
                time.sleep(0.005)
            time.sleep(chance.random() * 0.05)
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
        server.last = math.inf
        assert not (tmp_path / "out" / "results.json").exists()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # What was under way at a kill, 8 of each role, is asked again; nothing that was stored.
        assert sum(server.asked.values()) - len(server.asked) <= 2 * 8 * kills
    with MockServer(Stepper(), port=server.port) as fresh:
        evaluate_stepwise.main(arguments(file, tmp_path / "clean", *asking(fresh.spec, "safe")))
        assert set(fresh.asked) == set(server.asked)
    clean = contents(tmp_path / "clean")
    assert set(FILES) <= set(clean)
    assert contents(tmp_path / "out") == clean


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_does_not_wait_for_the_server(tmp_path: Path, stop: signal.Signals) -> None:
    file = own(tmp_path / "own.jsonl", 50)
    with MockServer(Stepper(), latency=300) as server:
        options = arguments(file, tmp_path / "out", *asking(server.spec, "safe"))
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.evaluate_stepwise", *options],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not server.asked:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(stop)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith("interrupted; the same command resumes")
    assert "Traceback" not in errors


# ----------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method=safe", "--generator=symbolic"], "wants a --verifier"),
        (["--method=saef", "--generator=symbolic"], "did you mean safe"),
        (["--method=no_verification", "--generator=symbolik"], "--generator: .*symbolic"),
        (["--method=no_verification", "--generator=mock:none.json"], "--generator: mock:none.json"),
        (["--method=no_verification", "--generator=symbolic", "--judge-all"], "--judge SPEC"),
        (["--method=no_verification", MODEL, "--drop-gold-count=2"], "goes with --drop-gold"),
        (["--method=few_shot_cot", MODEL, "--drop-gold", "--passages=none"], "take one of them"),
        (["--method=no_verification", MODEL, "--player=nosuch=symbolic"], "--player 'nosuch'"),
        (["--method=no_verification", "--generator=symbolic", "--max-steps=0"], "from 1 on"),
        (["--method=no_verification", "--generator=symbolic", "--max-steps=3,"], "from 1 on"),
        (["--method=no_verification", "--generator=symbolic", "--feedback=ful"], "did you mean"),
        (["--method=no_verification", MODEL, "--corpus=none"], "--corpus: none"),
        (["--method=safe", MODEL, "--feedback=full,ful"], "did you mean full"),
        (["--method=no_verification", "--generator=symbolic", "--published=v4"], "--published 'v4'"),
        (["--generator=symbolic"], "--method"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    file = own(tmp_path / "own.jsonl", 2)
    with pytest.raises(UserError, match=message) as caught:
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *options))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out" / "results.json").exists()


def test_the_bar_ends_with_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "AFTER_S", 0.02)
    file = own(tmp_path / "own.jsonl", 5)
    with MockServer(Stepper(), latency=0.05) as server:
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *asking(server.spec, "no_verification")))
        evaluate_stepwise.main(arguments(file, tmp_path / "out", *asking(server.spec)))
    last = capsys.readouterr().err.rstrip("\n").split("\r")[-1]
    assert "15/15" in last
    assert "done 10 cached 5 failed 0 owed 0; requests: done" in last
    assert "% cached)" in last


# ---------------------------------------------------------------------------------- without a model


@pytest.mark.parametrize("seed", sizes.sample([1, 2, 3], 1))
def test_verification_helps_whoever_errs(tmp_path: Path, seed: int) -> None:
    """Synthetic rows: the loop mends most of what an erring generator gets wrong."""
    check_that_safe_wins(synthetic(tmp_path / "rows.jsonl", 60, seed), tmp_path, seed, margin=0.4)


@pytest.mark.parametrize("name", sizes.sample(["hotpotqa", "2wikimultihopqa", "musique"], 1))
def test_verification_helps_on_real_rows(tmp_path: Path, real_data: Path, name: str) -> None:
    check_that_safe_wins(real_data / f"{name}_dev.jsonl", tmp_path, 5, margin=0.3)


def check_that_safe_wins(file: Path, folder: Path, seed: int, margin: float) -> None:
    evaluate_stepwise.main(
        arguments(
            file, folder / "out", *(f"--method={method}" for method in METHODS), "--limit=60",
            f"--generator=symbolic:error_rate=0.3,seed={seed}", "--verifier=symbolic",
            "--judge=symbolic",
        )
    )  # fmt: skip
    made = results(folder / "out")
    assert made["simulated"]
    scored = {run["method"]: run["all"] for run in made["runs"]}
    for measure in ("exact_match", "f1", "accuracy"):
        found = {method: scored[method][measure] for method in METHODS}
        assert found["safe"] > found["no_verification"] + margin
        assert found["safe"] >= found["self_verification"]
    assert {outcome.simulated for outcome in read_outcomes(folder / "out")} == {True}


def test_evidence_that_is_missing_is_searched_for(tmp_path: Path, real_data: Path) -> None:
    """Real 2Wiki rows without their last gold passage; a corpus of all rows' passages has it."""
    file = real_data / "2wikimultihopqa_dev.jsonl"
    asked = read(str(file), limit=40).questions
    pages = {(p.title, p.text): p for q in asked for p in q.passages}.values()
    corpus = tmp_path / "corpus.jsonl"
    lines = (json.dumps({"title": p.title, "sentences": p.sentences}) for p in pages)
    corpus.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    right, searched = {}, 0
    for name, more in {"without": [], "with": [f"--corpus={corpus}"]}.items():
        evaluate_stepwise.main(
            arguments(
                file, tmp_path / name, "--method=safe", "--limit=40", "--drop-gold", *more,
                "--generator=symbolic:error_rate=0.1", "--verifier=symbolic",
            )
        )  # fmt: skip
        outcomes = [*read_outcomes(tmp_path / name)]
        right[name] = sum(
            exact_match(o.trajectory.answer, (q.answer,), q.benchmark) for o, q in zip(outcomes, asked, strict=True)
        )
        searched = sum(bool(a.retrieved) for o in outcomes for a in o.trajectory.attempts)
        assert (searched > 0) == (name == "with")
    assert searched >= 20
    assert right["with"] >= right["without"] + 20


@pytest.mark.parametrize("word", ["keep", "skip"])
def test_rows_that_cannot_be_read_are_kept_apart_as_in_a_build(tmp_path: Path, word: str) -> None:
    file = own(tmp_path / "own.jsonl", 2)
    file.write_text(f'{{"id": 1}}\n{file.read_text("utf-8")}nonsense\n', encoding="utf-8")
    with MockServer(Stepper(flawed=0.0)) as server:
        options = arguments(file, tmp_path / "out", *asking(server.spec, "no_verification"))
        with pytest.raises(UserError, match=r"own\.jsonl:1: .*--on-error keep"):
            evaluate_stepwise.main(options)
        evaluate_stepwise.main([*options, "--on-error", word])
        lines = (tmp_path / "out" / "rejects.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["location"] for line in lines] == ["own.jsonl:1", "own.jsonl:4"]
        assert len(by_method(tmp_path / "out")["no_verification"]) == 2
        own(file, 2)
        evaluate_stepwise.main([*options, "--on-error", word])
        assert not (tmp_path / "out" / "rejects.jsonl").exists()
