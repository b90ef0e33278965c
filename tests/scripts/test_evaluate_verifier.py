"""The command that measures verifiers: a built set, a real server, baselines, resumption."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from builders.benchmarks import hub
from builders.verified.lookup import add_annotations
from evaluators.verifier import command
from evaluators.verifier.quality import MEASURES
from evaluators.verifier.step_set import build_requests, read_cases
from safe_stepwise import prompts
from safe_stepwise.engines import client
from safe_stepwise.errors import UserError
from safe_stepwise.methods.verifier import instructions, prompt_digest
from safe_stepwise.store import progress as bars
from safe_stepwise.taxonomy import category
from scripts import build_verified, build_verifier_steps
from scripts.evaluate_verifier import main
from tests.evaluators.verifier.step_rows import row, step, write_set
from tests.servers.killed import asked_again, killed
from tests.servers.openai_server import Cut, MockServer

ROOT = Path(__file__).parents[2]
SET = "safe-verifier-steps"
FILES = {*("verifier_quality.json", "verifier_quality.md", "confusion.png"), *("verdicts.jsonl", "prefixes.jsonl")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small verified set and the verifier set that was made of it."""
    output = tmp_path_factory.mktemp("built")
    build_verified.main(
        "--benchmark synthetic --input rows=40,seed=3,noise=0.1 --split train "
        f"--teacher annotations --output {output} --workers 1".split()
    )
    build_verifier_steps.main(
        f"--verified {output} --teacher annotations --rows 110 --test-share 0.5 --workers 1 --output {output}".split()
    )
    return output


@pytest.fixture(scope="module")
def gold(built: Path) -> dict[str, str]:
    """The right verdict by what is asked, from the prompts as they are published."""
    (file,) = (built / "safe-verifier-steps" / "data" / "prompt_completion").glob("test-*")
    return {row["prompt"][-1]["content"]: row["completion"][0]["content"] for row in pq.read_table(file).to_pylist()}


PASS = '{"error_type": "Correct", "diagnosis": "It is so.", "guidance": "Go on."}'


def oracle(gold: Mapping[str, str]) -> Callable[[Mapping[str, Any]], str]:
    """A verifier that is always right: what is no row is a step before one, which is ideal."""
    return lambda body: gold.get(body["messages"][-1]["content"], PASS)


def careless(gold: Mapping[str, str]) -> Callable[[Mapping[str, Any]], str]:
    """Right but for some steps, which it passes, and some replies, which are no verdict."""

    def reply(body: Mapping[str, Any]) -> str:
        asked = body["messages"][-1]["content"]
        kind = sum(asked.encode()) % 7
        return {0: "I think it is fine.", 1: PASS}.get(kind) or gold.get(asked, PASS)

    return reply


def arguments(built: Path, output: Path, spec: str, **changes: str) -> list[str]:
    options = {
        "steps": str(built),
        "verifier": spec,
        "output": str(output),
        "cache": str(output.with_suffix(".sqlite")),
        **changes,
    }
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def read(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "verifier_quality.json").read_text())
    return found


def content(output: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in output.iterdir()}


def test_what_is_sent_is_what_a_verifier_is_trained_on(built: Path) -> None:
    cases = read_cases(built / "safe-verifier-steps", "test")
    (file,) = (built / "safe-verifier-steps" / "data" / "prompt_completion").glob("test-*")
    published = {row["id"]: row["prompt"] for row in pq.read_table(file).to_pylist()}
    assert set(published) == {case.id for case in cases}
    questions = add_annotations([case.question for case in cases], built)
    whole = [replace(case, question=question) for case, question in zip(cases, questions, strict=True)]
    for known in (cases, whole):
        asked = build_requests(known)
        for case in known:
            turns = asked[case.prefix].messages
            sent = [{"role": turn.role, "content": turn.content} for turn in turns]
            assert sent == published[case.id]


def test_gold_verdicts_measure_one(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    with MockServer(oracle(gold)) as server:
        main(arguments(built, tmp_path / "out", server.spec))
    found = read(tmp_path / "out")
    first = found["verifiers"][0]
    assert set(first["measures"].values()) == {1.0}
    assert set(first["measures"]) == set(MEASURES)
    assert (first["unparsed"], first["failed"], first["simulated"]) == (0, 0, False)
    assert found["simulated"] is False
    assert first["erroneous"] > 5
    assert first["correct"] > 5
    tokens = first["tokens"]
    assert tokens["requests"] == sum(server.answered.values()) > first["rows"]
    assert tokens["cached_share"] == pytest.approx(0.5, abs=0.01)
    assert set(content(tmp_path / "out")) == FILES
    assert "imulated" not in (tmp_path / "out" / "verifier_quality.md").read_text()


def test_replies_may_be_cut_and_it_is_said(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    sent: list[Any] = []

    def reply(body: Mapping[str, Any]) -> str:
        sent.append(body.get("max_completion_tokens", body.get("max_tokens")))
        return oracle(gold)(body)

    with MockServer(reply) as server:
        main(arguments(built, tmp_path / "out", server.spec, limit="3", **{"max-tokens": "77"}))
    assert set(sent) == {77}
    assert read(tmp_path / "out")["steps"]["max_tokens"] == 77


def test_examples_may_be_shown_and_it_is_said(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    sent: list[str] = []

    def reply(body: Mapping[str, Any]) -> str:
        sent.append(body["messages"][0]["content"])
        return oracle(gold)(body)

    with MockServer(reply) as server:
        main(arguments(built, tmp_path / "out", server.spec, limit="3", examples="verify"))
    assert sent
    assert all(system.endswith(prompts.examples(["verify"])["verify"]) for system in sent)
    said = read(tmp_path / "out")["steps"]["examples"]
    assert said.startswith("verify ")
    text = (tmp_path / "out" / "verifier_quality.md").read_text(encoding="utf-8")
    assert f"The prompt had worked examples ({said})" in text


def hard(body: Mapping[str, Any]) -> bool:
    return sum(body["messages"][-1]["content"].encode()) % 5 == 0


def test_verdicts_cut_before_they_say_anything_are_owed(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    with MockServer(lambda body: Cut("") if hard(body) else oracle(gold)(body)) as server:
        main(arguments(built, output, server.spec))
    first = read(output)["verifiers"][0]
    lines = [json.loads(line) for line in (output / "verdicts.jsonl").read_text().splitlines()]
    lost = [line["reason"] for line in lines if line["said"] == "failed"]
    assert first["failed"] == len(lost) > 3
    assert all(said.startswith("cut at 4,096 tokens in a thought, with nothing said") for said in lost)
    with MockServer(oracle(gold), port=server.port, keep_bodies=True) as again:
        main(arguments(built, output, again.spec))
    assert all(map(hard, again.bodies))
    assert set(again.asked) < set(server.asked)
    assert len(server.asked) == sum(server.asked.values())
    assert set(read(output)["verifiers"][0]["measures"].values()) == {1.0}


def test_what_a_verifier_said_before_it_was_cut_is_no_verdict(
    built: Path, gold: dict[str, str], tmp_path: Path
) -> None:
    """An untrained model that goes on and on is measured; it may have thought, and has twice the room once."""
    said = Cut("I think that it is fine, and")
    with MockServer(lambda body: said if hard(body) else oracle(gold)(body), keep_bodies=True) as server:
        main(arguments(built, tmp_path / "out", server.spec))
    first = read(tmp_path / "out")["verifiers"][0]
    assert first["unparsed"] > 3
    assert first["failed"] == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "verdicts.jsonl").read_text().splitlines()]
    cut = [line for line in lines if line["reason"] == "the reply was cut at its limit of tokens"]
    assert len(cut) == first["unparsed"]
    assert all(line["reply"] == said for line in cut)
    calls = Counter(json.dumps(body["messages"]) for body in server.bodies)
    assert all(calls[json.dumps(body["messages"])] == 1 + hard(body) for body in server.bodies)


def test_unreadable_replies_are_counted_and_never_right(
    built: Path, gold: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    with MockServer(careless(gold)) as server:
        main(arguments(built, output, server.spec))
    first = read(output)["verifiers"][0]
    lines = [json.loads(line) for line in (output / "verdicts.jsonl").read_text().splitlines()]
    unread = [line for line in lines if line["said"] == "unparsed"]
    assert first["unparsed"] == len(unread) > 0
    assert {line["reply"] for line in unread} == {"I think it is fine."}
    assert all(line["reason"] for line in unread)
    right = sum(line["gold"] == line["said"] for line in lines)
    assert first["measures"]["accuracy"] == right / len(lines)
    assert first["measures"]["parse_rate"] == pytest.approx(1 - len(unread) / len(lines))
    assert f"unparsed {len(unread)}" in capsys.readouterr().out
    confusion = first["confusion"]
    assert sum(counts.get("unparsed", 0) for counts in confusion.values()) == len(unread)
    assert sum(counts.get(label, 0) for label, counts in confusion.items()) == right
    assert f"- verifier: {len(unread)} rows unparsed." in (output / "verifier_quality.md").read_text()


def test_majority_and_agreement_stand_beside_it(
    built: Path, gold: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    with MockServer(oracle(gold)) as one, MockServer(careless(gold)) as other:
        main([*arguments(built, output, one.spec), "--baseline", other.spec])
        found = read(output)
        assert {"verdicts.baseline-1.jsonl", "prefixes.baseline-1.jsonl"} <= set(content(output))
        said = capsys.readouterr().out
        main(arguments(built, output, one.spec))
    assert set(content(output)) == FILES  # the other's verdicts are gone with it
    verifier, baseline, constant = found["verifiers"]
    assert [v["role"] for v in found["verifiers"][:2]] == ["verifier", "baseline 1"]
    rows = verifier["rows"]
    correct = sum(json.loads(g)["error_type"] == "Correct" for g in gold.values())
    assert (constant["role"], constant["name"]) == ("majority class of train", "always Correct")
    assert constant["measures"]["accuracy"] == correct / rows
    assert constant["measures"]["first_error_correct"] == 1
    assert constant["measures"]["error_recall"] == 0
    (pair,) = found["agreement"]
    assert (pair["a"], pair["b"]) == ("verifier", "baseline 1")
    assert pair["rows"] == rows - baseline["unparsed"]
    assert pair["left_out"] == baseline["unparsed"]
    assert 0 < pair["kappa"] < pair["share"] < 1
    assert "Cohen's kappa" in said
    assert f"{pair['share']:.3f}" in said
    for gain, other_run in zip(found["gains"], (baseline, constant), strict=True):
        assert (gain["over"], gain["rows"]) == (other_run["role"], rows)
        for name in ("accuracy", "error_f1", "macro_f1"):
            difference = verifier["measures"][name] - other_run["measures"][name]
            assert gain["measures"][name] == pytest.approx(difference)
            low, high = gain["intervals"][name]
            assert low <= difference <= high


def test_probes_learn_from_train_and_stand_beside_it(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    output = tmp_path / "out"
    with MockServer(oracle(gold)) as server:
        main([*arguments(built, output, server.spec), "--probes"])
    assert set(content(output)) == FILES
    verifier, *_, words, overlap = read(output)["verifiers"]
    assert (words["role"], overlap["role"]) == ("word probe of train", "overlap probe of train")
    for probe in (words, overlap):
        assert (probe["rows"], probe["unparsed"], probe["tokens"]["requests"]) == (verifier["rows"], 0, 0)
        assert 0 < probe["measures"]["accuracy"] < verifier["measures"]["accuracy"]
    with pytest.raises(UserError, match="--probes learn from the train rows of a set"):
        main(["chains.jsonl", "--benchmark", "processbench", "--verifier", "checker", "--probes", "--output", "x"])


def test_always_correct_is_added_where_errors_are_the_majority(tmp_path: Path) -> None:
    first, wrong = step(1, "a."), step(2, "x.")
    error = row("2", [first, wrong], "Redundancy", "injected")
    folder = write_set(tmp_path / "set", test=[row("1", [first]), error], train=[error])
    with MockServer(lambda _: PASS) as server:
        main(arguments(folder, tmp_path / "out", server.spec))
    found = read(tmp_path / "out")
    assert [(v["role"], v["name"]) for v in found["verifiers"][1:]] == [
        ("majority class of train", "always Redundancy"),
        ("no error ever", "always Correct"),
    ]
    assert found["steps"]["version"] is None
    assert found["verifiers"][1]["measures"]["first_error_correct"] == 0


def test_the_graph_checker_needs_annotations_and_is_marked_as_simulated(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with pytest.raises(UserError, match="add --verified with the folder"):
        main(arguments(built, output, "symbolic"))
    spec = "symbolic:error_rate=0.3,seed=1"
    main([*arguments(built, output, spec, verified=str(built)), "--baseline", "symbolic"])
    found = read(output)
    verifier, checker, _ = found["verifiers"]
    # The checker passed every row when the set was made; annotations may tell less than labels, and
    # tell nothing of the passages of other questions that stand in some rows.
    assert checker["measures"]["accuracy"] > 0.9
    assert checker["measures"]["first_error_f1"] > 0.9
    assert verifier["measures"]["accuracy"] < 0.9
    assert found["simulated"] is True
    assert (verifier["simulated"], checker["simulated"]) == (True, True)
    page = (output / "verifier_quality.md").read_text()
    assert "> **Simulated**" in page
    assert "is not a fair competitor" in page
    for name in ("verdicts.jsonl", "prefixes.jsonl"):
        lines = (output / name).read_text().splitlines()
        assert lines
        assert all(json.loads(line)["simulated"] for line in lines)


def twelve(built: Path) -> dict[str, str]:
    """`gold`, of the setting in which evidence may be missing."""
    (file,) = (built / SET / "data" / "missing_evidence_prompt_completion").glob("test-*")
    return {row["prompt"][-1]["content"]: row["completion"][0]["content"] for row in pq.read_table(file).to_pylist()}


def test_with_twelve_labels_rows_of_all_configs_are_asked_as_the_loop_with_a_search_asks(
    built: Path, tmp_path: Path
) -> None:
    output, sent = tmp_path / "out", list[Mapping[str, Any]]()

    def reply(body: Mapping[str, Any]) -> str:
        sent.append(body)
        return oracle(twelve(built))(body)

    with MockServer(reply) as server:
        main([*arguments(built, output, server.spec), "--incomplete-evidence"])
    (file,) = (built / SET / "data" / "missing_evidence_prompt_completion").glob("test-*")
    rendered = [row["prompt"] for row in pq.read_table(file).to_pylist()]
    asked = [body["messages"] for body in sent]
    assert all(prompt in asked for prompt in rendered)
    assert all("Missing Evidence" in json.dumps(body["response_format"]) for body in sent)
    found = read(output)
    first, *constants = found["verifiers"]
    assert first["rows"] == len(rendered)
    assert set(first["measures"].values()) == {1.0}
    lacking = {t["name"]: t["gold"] for t in first["types"]}["Missing Evidence"]
    assert first["confusion"]["Missing Evidence"] == {"Missing Evidence": lacking}
    assert lacking > 3
    majority, *never = [(verifier["role"], verifier["name"]) for verifier in constants]
    assert majority[0] == "majority class of train"
    # Either may be the commonest of the rows and twins; "no error ever" says nothing new beside the former.
    assert majority[1] in ("always Correct", "always Information Miss")
    assert never == ([] if majority[1] == "always Correct" else [("no error ever", "always Correct")])
    assert found["steps"]["incomplete_evidence"] is True
    assert found["steps"]["prompt_sha256"] == prompt_digest(incomplete_evidence=True)
    assert {name.partition("/")[0] for name in found["steps"]["sha256"] if "/" in name} == {
        *("missing_evidence", "missing_evidence_twins")
    }
    assert found["verifiers"][0]["confusion"]["Missing Evidence"] == {"Missing Evidence": lacking}
    page = (output / "verifier_quality.md").read_text()
    assert "The prompt has twelve labels" in page
    assert f"| Missing Evidence | Missing Evidence | {lacking} | {lacking} |" in page


def test_a_verifier_that_never_sees_that_evidence_is_missing_pays_for_it(built: Path, tmp_path: Path) -> None:
    gold = {asked: PASS if "Missing Evidence" in said else said for asked, said in twelve(built).items()}
    with MockServer(oracle(gold)) as server:
        main([*arguments(built, tmp_path / "out", server.spec), "--incomplete-evidence"])
    first = read(tmp_path / "out")["verifiers"][0]
    assert set(first["confusion"]["Missing Evidence"]) == {"Correct"}
    assert first["measures"]["error_precision"] == 1 > first["measures"]["error_recall"] > 0.5
    assert first["measures"]["first_error_erroneous"] < 1


def test_the_graph_checker_says_missing_evidence_only_where_it_may(built: Path, tmp_path: Path) -> None:
    said = {}
    for name, more in {"eleven": [], "twelve": ["--incomplete-evidence"]}.items():
        main([*arguments(built, tmp_path / name, "symbolic", verified=str(built)), *more])
        said[name] = read(tmp_path / name)["verifiers"][0]
    assert "Missing Evidence" not in {t["name"] for t in said["eleven"]["types"]}
    (missing,) = [t for t in said["twelve"]["types"] if t["name"] == "Missing Evidence"]
    assert missing["recall"] > 0.9
    assert missing["precision"] > 0.9
    assert said["twelve"]["measures"]["accuracy"] > 0.9


def test_a_limit_takes_rows_of_all_configs(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = read_cases(built / SET, "test", 25, incomplete_evidence=True)
    assert len(cases) == 25
    golds = {case.gold for case in cases}
    assert {"Missing Evidence", "Correct"} < golds
    whole = read_cases(built / SET, "test", incomplete_evidence=True)
    assert {case.id for case in cases} < {case.id for case in whole}
    assert not any(case.gold == "Missing Evidence" for case in read_cases(built / SET, "test"))
    folder = write_set(tmp_path / "set", test=[row("1", [step(1, "a.")])])
    with pytest.raises(UserError, match="none of its test rows lacks evidence"):
        main([*arguments(folder, tmp_path / "out", "openai:m"), "--incomplete-evidence"])


def test_other_annotations_are_refused(built: Path, tmp_path: Path) -> None:
    build_verified.main(
        "--benchmark synthetic --input rows=40,seed=4 --split train --teacher annotations "
        f"--output {tmp_path / 'other'} --workers 1".split()
    )
    for verified, said in ((tmp_path / "other", "holds no"), (tmp_path, "no synthetic rows")):
        with pytest.raises(UserError, match=said):
            main(arguments(built, tmp_path / "o", "symbolic", verified=str(verified)))


def test_two_runs_end_in_the_same_bytes(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    with MockServer(careless(gold), model="m") as server:
        main(arguments(built, tmp_path / "a", server.spec))
        asked = sum(server.asked.values())
        main(arguments(built, tmp_path / "b", server.spec, cache=str(tmp_path / "a.sqlite")))
        assert sum(server.asked.values()) == asked
        main([*arguments(built, tmp_path / "c", server.spec), "--in-flight", "2"])
    first = content(tmp_path / "a")
    assert first == content(tmp_path / "b") == content(tmp_path / "c")


def test_failed_requests_are_owed(
    built: Path,
    gold: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(client, "TRIES", 1)
    output, options = tmp_path / "out", arguments(built, tmp_path / "out", "")
    with MockServer(oracle(gold), fault_rate=0.3, faults=("500",)) as server:
        options[options.index("")] = server.spec
        main(options)
    said = capsys.readouterr().out
    failed = server.faulted["500"]
    assert f"{failed} requests failed, and count as not right; run the same command" in said
    found = read(output)
    first = found["verifiers"][0]
    assert 0 < first["failed"] <= failed
    assert first["measures"]["accuracy"] == pytest.approx(1 - first["failed"] / first["rows"])
    assert first["measures"]["parse_rate"] == 1
    with MockServer(oracle(gold), port=server.port) as again:
        main(options)
    assert sum(again.asked.values()) == failed
    assert not set(again.asked) & set(server.answered)
    assert set(read(output)["verifiers"][0]["measures"].values()) == {1.0}


def test_a_killed_run_goes_on(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    in_flight = 2
    with MockServer(careless(gold), last=20) as server:
        options = [*arguments(built, tmp_path / "out", server.spec), "--in-flight", str(in_flight)]
        killed(server, "evaluate_verifier", options)
        assert not (tmp_path / "out" / "verifier_quality.json").exists()
        main(options)
        assert asked_again(server) <= in_flight
        main(arguments(built, tmp_path / "whole", server.spec))
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_limit(built: Path, gold: dict[str, str], tmp_path: Path) -> None:
    with MockServer(oracle(gold)) as server:
        main(arguments(built, tmp_path / "out", server.spec, limit="7"))
    found = read(tmp_path / "out")
    assert found["verifiers"][0]["rows"] == found["steps"]["limit"] == 7


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"steps": "nowhere"}, "no safe-verifier-steps in it"),
        ({"steps": "ns/safe-verifier-steps"}, "must be pinned"),
        ({"split": "validation"}, "'validation' has no rows; choose --split from test, train"),
        ({"verifier": "opnai:x"}, "did you mean openai:x"),
        ({"limit": "0"}, "from 1 on"),
        ({"verifier": "openai:mock@http://127.0.0.1:1/v1"}, "no server answers"),
    ],
)
def test_mistakes_are_user_errors(built: Path, tmp_path: Path, changes: dict[str, str], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        main(arguments(built, tmp_path / "out", "openai:m@http://127.0.0.1:1/v1", **changes))
    assert not (tmp_path / "out" / "verifier_quality.json").exists()


def test_a_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", test=[])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "scripts.evaluate_verifier"),
            *arguments(folder, tmp_path / "out", "mock:x.json", steps=str(folder)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr


def test_a_set_of_the_hub_is_pulled_at_its_commit(
    built: Path, gold: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulled: dict[str, Any] = {}

    def snapshot(repo: str, **options: Any) -> str:
        pulled.update(options, repo=repo)
        return str(built / "safe-verifier-steps")

    monkeypatch.setattr(hub, "resolve_commit", lambda _: "c" * 40)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with MockServer(oracle(gold)) as server:
        options = arguments(built, tmp_path / "out", server.spec, steps="ns/steps@v1.0.0")
        main([*options, "--limit", "3"])
    assert (pulled["repo"], pulled["revision"]) == ("ns/steps", "c" * 40)
    assert pulled["allow_patterns"][:2] == ["data/steps/test-*.parquet", "data/steps/train-*.parquet"]
    steps = read(tmp_path / "out")["steps"]
    assert (steps["name"], steps["revision"]) == ("ns/steps", "c" * 40)
    assert f"`ns/steps` at `{'c' * 40}`" in (tmp_path / "out" / "verifier_quality.md").read_text()


def test_a_prompt_without_a_category(
    built: Path, gold: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with MockServer(oracle(gold), keep_bodies=True) as server:
        main(arguments(built, tmp_path / "out", server.spec, **{"drop-category": "Attribution"}))
        sent = {body["messages"][0]["content"] for body in server.bodies}
    assert sent == {instructions(dropped="Attribution")}
    assert "other code" not in capsys.readouterr().err  # the rows' own are the whole ones
    found = read(tmp_path / "out")
    assert found["steps"]["drop_category"] == "Attribution"
    assert found["steps"]["prompt_sha256"] == prompt_digest(dropped="Attribution")
    first = found["verifiers"][0]
    types = {entry["name"]: entry for entry in first["types"]}
    lost = sum(t["gold"] for name, t in types.items() if category(name) == "Attribution")
    assert lost > 10
    assert first["unparsed"] == lost  # it says the gold label, which is none here
    assert types["Contradictory"]["said"] == 0
    page = (tmp_path / "out" / "verifier_quality.md").read_text()
    assert (
        f"The prompt does not mention Attribution errors. {lost} rows have such an error and always count as" in page
    )
    with pytest.raises(UserError, match="invalid choice: 'Correct'"):
        main(arguments(built, tmp_path / "out", server.spec, **{"drop-category": "Correct"}))


def test_what_an_adapter_learnt_is_what_it_is_asked(
    built: Path, gold: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = {"drop_category": "Logical", "drop_from_prompt": True}
    (tmp_path / "training.json").write_text(json.dumps({"recipe": {"filters": filters}}))

    class Opener(command.Opener):  # type: ignore[name-defined,misc]
        def __call__(self, spec: str) -> Any:
            engine: Any = super().__call__(spec)
            if "learnt" in spec:
                engine.adapter = SimpleNamespace(folder=tmp_path)
            return engine

    monkeypatch.setattr(command, "Opener", Opener)
    reply = oracle(gold)
    with MockServer(reply, model="learnt", keep_bodies=True) as server, MockServer(reply, keep_bodies=True) as other:
        main(arguments(built, tmp_path / "out", server.spec, limit="5", baseline=other.spec))
        bodies = [(b["model"], b["messages"][0]["content"]) for b in server.bodies + other.bodies]
        told = {"limit": "5", "drop-category": "Procedural"}
        with pytest.raises(UserError, match=r"learnt: was trained with drop_category Logical, .*; leave the option"):
            main(arguments(built, tmp_path / "out", server.spec, **told))
        assert len(bodies) == len(server.bodies) + len(other.bodies)
    # A baseline without an adapter is asked alike.
    assert set(bodies) == {(model, instructions(dropped="Logical")) for model in ("learnt", "mock")}
    assert read(tmp_path / "out")["steps"]["drop_category"] == "Logical"


def test_prompts_of_other_code_are_noted(
    built: Path,
    gold: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with MockServer(oracle(gold)) as server:
        main(arguments(built, tmp_path / "out", server.spec, limit="3"))
        assert "rendered by other code" not in capsys.readouterr().err
        monkeypatch.setattr("evaluators.verifier.step_set.prompt_digest", lambda *_: "0" * 64)
        main(arguments(built, tmp_path / "out", server.spec, limit="3"))
    assert "rendered by other code" in capsys.readouterr().err


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    assert "examples:" in capsys.readouterr().out


def test_the_bar_says_how_the_requests_stand(
    built: Path,
    gold: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(bars, "AFTER_S", 0.01)
    with MockServer(oracle(gold), latency=0.1) as server:
        main(arguments(built, tmp_path / "out", server.spec, limit="6"))
        asked = sum(server.asked.values())
        assert f"done {asked} cached 0 failed 0 owed 0" in capsys.readouterr().err
        main(arguments(built, tmp_path / "out", server.spec, limit="12"))
    more = sum(server.asked.values()) - asked
    assert f"done {more} cached {asked} failed 0 owed 0" in capsys.readouterr().err
