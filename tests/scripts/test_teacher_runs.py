"""`build_verified` with a model as teacher, against a real HTTP server that plays the model."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import load_dataset

from builders.synthetic import generate, parse_spec, to_row
from safe_stepwise import prompts
from safe_stepwise.engines import client, openai
from safe_stepwise.errors import UserError
from safe_stepwise.records import NO_NOISE, NoiseType, Question
from safe_stepwise.store import progress as bars
from scripts import build_verified
from tests import sizes
from tests.servers.openai_server import MockServer
from tests.servers.truth import Rulings, Truth

ROOT = Path(__file__).parents[2]
KILLS = sizes.size(8, 4)


def rows(number: int, seed: int = 21) -> list[tuple[Question, NoiseType]]:
    """Synthetic rows with question and answer of their own: a model is told no more of them."""
    found: dict[tuple[str, str], tuple[Question, NoiseType]] = {}
    for question, truth in generate(parse_spec(f"rows={2 * number},seed={seed},noise=0.3"), split="train"):
        found.setdefault((question.question, question.answer), (question, truth))
    return list(found.values())[:number]


def write(path: Path, rows: list[tuple[Question, NoiseType]]) -> Path:
    path.write_text("".join(json.dumps(to_row(*row)) + "\n" for row in rows), encoding="utf-8")
    return path


def arguments(file: Path, spec: str, output: Path, **changes: str) -> list[str]:
    options = {
        "benchmark": "synthetic",
        "input": str(file),
        "split": "train",
        "teacher": spec,
        "output": str(output),
        "cache": f"{output}.sqlite",
        "workers": "2",
        **changes,
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def noise_types(output: Path) -> dict[str, str]:
    labels = load_dataset(
        str(output / "safe-noise-labels"), "synthetic", split="train",
        cache_dir=f"{output}.hf",
    )  # fmt: skip
    name = labels.features["noise_type"].int2str
    return dict(zip(labels["id"], map(name, labels["noise_type"]), strict=True))


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.001)


def test_the_truth_comes_back_and_faults_change_nothing(
    tmp_path: Path, quick_retries: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """500 questions, a fifth of the calls at fault: nothing lost, the same labels."""
    known = rows(500)
    file = write(tmp_path / "rows.jsonl", known)
    truth = Truth(known)
    with MockServer(truth) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "clean"))
    found = noise_types(tmp_path / "clean")
    true = {question.id: noise for question, noise in known}
    assert set(found) == set(true)
    sound = ("none", "unparsed")
    hits = sum(t not in sound and found[i] not in sound for i, t in true.items())
    assert hits >= 0.99 * sum(t not in sound for t in true.values())
    assert hits >= 0.99 * sum(t not in sound for t in found.values())
    capsys.readouterr()
    monkeypatch.setattr(openai, "TIMEOUT_S", 3.0)  # so long does what hangs
    few = {"in-flight": "32"}  # calls that wait for each other would look as if they hung
    with MockServer(truth, fault_rate=0.2, port=server.port) as faulty:
        build_verified.main(arguments(file, faulty.spec, tmp_path / "faulty", **few))
    assert len(faulty.faulted) == 6
    assert sum(faulty.faulted.values()) > 0.15 * sum(faulty.asked.values())
    assert contents(tmp_path / "faulty") == contents(tmp_path / "clean")
    printed = capsys.readouterr().out
    assert "failed" in printed


def test_what_fails_for_good_is_not_judged_and_is_owed(
    tmp_path: Path, quick_retries: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = rows(60)
    file = write(tmp_path / "rows.jsonl", known)
    truth = Truth(known)
    with MockServer(truth, fault_rate=0.3, faults=("500", "reset")) as server, monkeypatch.context() as impatient:
        impatient.setattr(client, "TRIES", 2)
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    lost = [i for i, noise in noise_types(tmp_path / "out").items() if noise == "unparsed"]
    assert len(lost) > sum(noise == "unparsed" for _, noise in known)
    with MockServer(truth, port=server.port) as again:
        build_verified.main(arguments(file, again.spec, tmp_path / "out"))
    assert not set(again.asked) & set(server.answered)
    with MockServer(truth, port=server.port) as fresh:
        build_verified.main(arguments(file, fresh.spec, tmp_path / "clean"))
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


@pytest.mark.parametrize("status", [404, 500])
def test_a_run_in_which_nothing_is_judged_is_a_mistake_that_resumes(
    tmp_path: Path, quick_retries: None, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    known = rows(4)
    options = arguments(write(tmp_path / "rows.jsonl", known), "", tmp_path / "out")
    with MockServer(Truth(known), status=status) as server:
        options[options.index("")] = server.spec
        with pytest.raises(UserError, match=rf"none of the 4 .*\(HTTP {status}: as you wish\)"):
            build_verified.main(options)
    assert not (tmp_path / "out" / "safe-verified-multihop").exists()
    with MockServer(Truth(known), port=server.port):
        build_verified.main(options)
    assert set(noise_types(tmp_path / "out").values()) != {"unparsed"}


def test_replies_of_which_none_can_be_read_are_asked_for_again_with_another_cache(tmp_path: Path) -> None:
    known = rows(3)
    options = arguments(write(tmp_path / "rows.jsonl", known), "", tmp_path / "out")
    with MockServer(lambda _: "I would rather not.") as server:
        options[options.index("")] = server.spec
        for _ in range(2):
            with pytest.raises(UserError, match=r"holds no JSON; .* another --cache") as caught:
                build_verified.main(options)
            assert "; the first reply begins 'I would rather not.' (" in str(caught.value)
            assert "; does the model keep to the form that is asked for? " in str(caught.value)
        assert max(server.asked.values()) == 1
    assert not (tmp_path / "out" / "safe-verified-multihop").exists()
    with MockServer(Truth(known), port=server.port):
        build_verified.main([*options, "--cache", str(tmp_path / "other.sqlite")])
    assert set(noise_types(tmp_path / "out").values()) != {"unparsed"}


def test_the_bar_ends_with_what_was_done_on_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "AFTER_S", 0.05)
    known = rows(3)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(Truth(known), latency=0.1) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
    bar = capsys.readouterr().err
    assert bar.endswith("\n")
    last = bar.rstrip("\n").split("\r")[-1]
    assert "3/3" in last
    assert "done 3 cached 0 failed 0 owed 0; paths 3; requests: done " in last
    with MockServer(lambda _: "no", latency=0.1, model="other") as server, pytest.raises(UserError):
        build_verified.main(arguments(file, server.spec, tmp_path / "out2"))
    assert capsys.readouterr().err.endswith("\n")


def test_an_estimate_needs_no_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    file = write(tmp_path / "rows.jsonl", rows(3))
    options = [*arguments(file, "openai:m@http://host/v1", tmp_path / "out"), "--estimate"]
    build_verified.main(options)
    assert "prompt tokens" in capsys.readouterr().out
    with pytest.raises(UserError, match="go together"):
        build_verified.main([*options, "--price-prompt", "0.1"])


def test_shared_passages_are_asked_about_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = rows(120)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(Truth(known)) as server:
        build_verified.main(arguments(file, server.spec, tmp_path / "out"))
        assert max(server.asked.values()) == 1
        made = sum(server.asked.values())
        capsys.readouterr()
        build_verified.main([*arguments(file, server.spec, tmp_path / "out2"), "--estimate"])
        assert sum(server.asked.values()) == made
    printed = capsys.readouterr().out
    assert "prompt tokens" in printed
    assert not (tmp_path / "out2").exists()


def test_examples_are_shown_where_they_are_asked_for_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gleaning goes on with the conversation that has them; other roles stay as they are."""
    known = rows(6)
    file = write(tmp_path / "rows.jsonl", known)
    sent: list[list[str]] = []

    def model(body: Mapping[str, Any]) -> str:
        sent.append([message["content"] for message in body["messages"]])
        return truth(body)

    truth = Truth(known)
    names, systems = {}, {}
    options = {"plain": [], "shown": ["--examples=extract"], "none": ["--examples=none"]}
    with MockServer(model) as server:
        for name, more in options.items():
            sent.clear()
            output = tmp_path / name
            build_verified.main([*arguments(file, server.spec, output), *more])
            systems[name] = {contents[0]: len(contents) for contents in sent}
            row = load_dataset(
                str(output / "safe-noise-labels"), "synthetic", split="train",
                cache_dir=f"{output}.hf",
            )[0]  # fmt: skip
            names[name] = row["teacher"]
    assert systems["none"] == systems["plain"]
    text = prompts.examples(["extract"])["extract"]
    extract = prompts.load("verification/extract").system
    assert set(systems["shown"]) - set(systems["plain"]) == {f"{extract}\n\n{text}"}
    assert set(systems["plain"]) - set(systems["shown"]) == {extract}
    assert systems["shown"][f"{extract}\n\n{text}"] == 4  # the last was a gleaning
    assert names["none"] == names["plain"]
    assert names["shown"].startswith(f"{names['plain']}, examples extract ")
    capsys.readouterr()
    prices = []
    for more in options.values():
        shown = [*arguments(file, "openai:m@http://host/v1", tmp_path / "e"), *more, "--estimate"]
        build_verified.main(shown)
        prices.append(capsys.readouterr().out)
    assert prices[0] == prices[2] != prices[1]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("openai:mock@http://127.0.0.1:1/v1", "no server answers"),
        ("openai:other@{url}", "lists mock, not this model, and refuses it"),
    ],
)
def test_a_server_that_cannot_work_is_one_line(tmp_path: Path, spec: str, expected: str) -> None:
    known = rows(3)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(Truth(known), unlisted=()) as server, pytest.raises(UserError, match=expected) as caught:
        build_verified.main(arguments(file, spec.format(url=server.url), tmp_path / "out"))
    assert "\n" not in str(caught.value)
    assert not server.answered


def test_a_refused_key_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong-secret")
    with MockServer(Truth([]), key="right") as server, pytest.raises(UserError, match="OPENAI_API_KEY") as caught:
        build_verified.main(arguments(tmp_path / "rows", server.spec, tmp_path / "out"))
    assert "wrong-secret" not in str(caught.value)


@pytest.mark.parametrize("asks", ["teacher", "adjudicate"])
def test_killed_at_any_instant_it_repeats_no_completed_call(tmp_path: Path, asks: str) -> None:
    known = rows(sizes.size(150, 75) * (1 if asks == "teacher" else 8))
    file = write(tmp_path / "rows.jsonl", known)
    truth = Truth(known) if asks == "teacher" else Rulings([(q, noise not in NO_NOISE) for q, noise in known])
    chance = random.Random(4)
    with MockServer(truth, latency=0.02) as server:
        options = {"in-flight": "8", "teacher": "annotations", asks: server.spec}
        command = [
            *(sys.executable, "-m", "scripts.build_verified"),
            *arguments(file, server.spec, tmp_path / "out", **options),
        ]
        journal = tmp_path / "out.sqlite"
        for _ in range(KILLS):
            more = chance.randint(0, 45)
            enough = stored(journal) + more
            # What a killed process asked may still take its share.
            server.last = server.calls + more + 8
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
            wait_for_more(process, journal, enough)
            time.sleep(chance.random() * 0.05)
            assert process.poll() is None, process.communicate()
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        server.last = math.inf
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # What was under way at a kill is asked again; nothing that the journal had.
        assert sum(server.asked.values()) - len(server.asked) <= 8 * KILLS
        assert max(server.asked.values()) <= max(3, KILLS // 2)  # nothing anew with every start
    with MockServer(truth, port=server.port) as fresh:
        options = {"teacher": "annotations", asks: fresh.spec}
        build_verified.main(arguments(file, fresh.spec, tmp_path / "clean", **options))
        assert set(fresh.asked) == set(server.asked)
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")


def test_adjudication_costs_what_was_estimated_and_the_card_says_what_it_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = [(question, noise) for question, noise in rows(120) if question.gold]
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(Rulings([(question, noise not in NO_NOISE) for question, noise in known], 0.5)) as server:
        options = {"teacher": "annotations", "adjudicate": server.spec}
        build_verified.main([*arguments(file, "", tmp_path / "out", **options), "--estimate"])
        estimated = int(capsys.readouterr().out.splitlines()[2].split()[2])
        assert server.calls == 0
        build_verified.main(arguments(file, "", tmp_path / "out", **options))
        assert len(server.asked) == server.calls == estimated > 10
        out = capsys.readouterr().out
        build_verified.main(arguments(file, "", tmp_path / "again", **options, cache=f"{tmp_path / 'out'}.sqlite"))
        assert server.calls == estimated
    assert "agreement before: precision" in out
    changed = int(out.partition("labels that the model changed: ")[2].split()[0])
    assert changed > 0
    card = (tmp_path / "out" / "safe-verified-multihop" / "README.md").read_text()
    assert f"It changed the labels of {changed} rows of synthetic train: " in card
    assert "Before a model ruled on what the annotations doubt, the labels of synthetic train had precision" in card
    labels = load_dataset(str(tmp_path / "out" / "safe-noise-labels"), "synthetic", split="train")
    decided = [row for row in labels if row["confidence"] is None]
    assert len(decided) >= changed
    assert all("openai:mock" in row["explanation"] for row in decided)
    assert all(row["teacher"].startswith("adjudicating: annotations, doubts ruled by openai:mock") for row in labels)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"adjudicate": "symbolic"},
            "--adjudicate: symbolic reads no passage; to try it out without a model, use mock:",
        ),
        ({"adjudicate": "nope:x"}, "--adjudicate: 'nope:x' names no engine"),
        ({"adjudicate": "mock:x", "teacher": "symbolic"}, "--adjudicate: only annotations have doubts to ask about"),
    ],
)
def test_a_wrong_adjudicator_is_one_line(tmp_path: Path, options: dict[str, str], expected: str) -> None:
    file = write(tmp_path / "rows.jsonl", rows(3))
    with pytest.raises(UserError, match=expected):
        build_verified.main(arguments(file, "", tmp_path / "out", **{"teacher": "annotations", **options}))


@pytest.mark.parametrize("stops", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGTERM)], ids=["Ctrl-C", "timeout"])
def test_interrupted_it_does_not_wait_for_the_server(tmp_path: Path, stops: tuple[signal.Signals, ...]) -> None:
    known = rows(300)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(Truth(known), latency=300) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.build_verified",
             *arguments(file, server.spec, tmp_path / "out")],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not server.asked:
            assert process.poll() is None
            time.sleep(0.05)
        for stop in stops:
            process.send_signal(stop)
            time.sleep(0.05)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors.splitlines()[-1].endswith("interrupted; the same command resumes")
    assert "Traceback" not in errors


def stored(journal: Path) -> int:
    """Replies in the journal, as another process sees it."""
    if not journal.exists():
        return 0
    with sqlite3.connect(f"file:{journal}?mode=ro", uri=True) as db:
        try:
            return int(db.execute("select count(*) from completions").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def wait_for_more(process: subprocess.Popen[bytes], journal: Path, number: int) -> None:
    while stored(journal) < number and process.poll() is None:
        time.sleep(0.01)
