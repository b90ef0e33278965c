"""The console command: its own commands, those of a checkout, and what a wheel says of these."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from safe_stepwise import errors, register
from safe_stepwise.commands import main as commands
from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.main import CHECKOUT_COMMANDS, PACKAGE_COMMANDS, carry_out
from safe_stepwise.commands.reading import examples
from safe_stepwise.commands.transcript import read_traces
from safe_stepwise.errors import UserError
from safe_stepwise.store import parquet
from tests.memory.sitecustomize import PYTHONPATH

ROOT = Path(__file__).parents[3]
MODEL = "openai:MODEL@http://127.0.0.1:1/v1"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(tmp_path / "replies.sqlite"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in examples()))
    return file


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(errors, "_ROOT", tmp_path)


def scripts() -> set[str]:
    """The commands of the checkout: whatever runs as a module there."""
    found = set()
    for file in (ROOT / "scripts").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        if any(isinstance(n, ast.If) and "__main__" in ast.unparse(n.test) for n in tree.body):
            found.add(file.stem)
    return found


def test_it_is_the_console_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"safe-stepwise": "safe_stepwise.commands.main:main"}


def test_it_knows_all_commands_of_a_checkout() -> None:
    assert set(CHECKOUT_COMMANDS) == scripts()
    assert not set(CHECKOUT_COMMANDS) & {name.replace("-", "_") for name in PACKAGE_COMMANDS}


@pytest.mark.parametrize("name", sorted({*PACKAGE_COMMANDS, *scripts()}))
def test_every_help_tells_the_exit_status(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):  # argparse leaves so
        carry_out([name, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    for status in ("0 ", "2 an error you can fix", "130 interrupted", f"1 a bug in {commands.NAME}"):
        assert status in told.lower().partition("exit status")[2], told[-300:]


def test_a_command_of_the_checkout_takes_its_own_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing argument 'DIR'; see safe-stepwise view-traces --help"):
        carry_out(["view-traces"])
    with pytest.raises(UserError, match="nothing: no such folder"):
        carry_out(["view_traces", str(tmp_path / "nothing")])


def test_alone_it_says_what_to_try_first_and_each_of_it_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out([])
    text = capsys.readouterr().out
    calls = re.findall(r"^  safe-stepwise (.*)$", text, re.MULTILINE)
    assert [call.split()[0] for call in calls] == ["check", "verify", "stand-in"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for call in calls:
        carry_out(shlex.split(call.partition(" > ")[0]))
        assert capsys.readouterr().out


@pytest.mark.usefixtures("wheel")
def test_a_wheel_says_what_a_checkout_adds(capsys: pytest.CaptureFixture[str]) -> None:
    for name in CHECKOUT_COMMANDS:
        with pytest.raises(UserError) as told:
            carry_out([name, "--help"])
        assert f"{name} needs a checkout" in str(told.value)
        assert CHECKOUT_COMMANDS[name] in str(told.value)
    carry_out(["--help"])
    assert "A checkout adds:" in capsys.readouterr().out


@pytest.mark.usefixtures("wheel")
def test_what_a_wheel_advises_is_right_there(rows: Path) -> None:
    asked = ["answer", "--passages", str(rows), "--question", examples()[0]["question"]]
    with pytest.raises(UserError) as told:
        carry_out([*asked, "--generator", MODEL, "--verifier", MODEL])
    assert "`vllm serve MODEL`" in str(told.value)
    assert "safe-stepwise stand-in" in str(told.value)
    assert "scripts/serve.sh" not in str(told.value)
    assert errors.install_command("vllm") == "pip install 'safe-stepwise[vllm]'"


def test_no_advice_of_the_package_is_for_a_checkout_alone() -> None:
    """What stands in the wheel goes by `errors.checkout` where the two differ."""
    for file in sorted((ROOT / "safe_stepwise").rglob("*.py")):
        if file in (Path(errors.__file__), Path(commands.__file__)):  # which tell them apart
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise):
                said = ast.unparse(node)
                assert "pip install -e" not in said, file
                assert "serve.sh" not in said, file


def test_complaints_are_one_line() -> None:
    for wrong, says in (
        (["anser"], "did you mean answer"),
        (["answer"], r"missing options '--passages', '--generator'; see safe-stepwise answer --help"),
        (["answer", "--nope"], "no such option"),
        (["stand-in", "--port", "x"], "'x' is not a valid integer"),
    ):
        with pytest.raises(UserError, match=says) as told:
            carry_out(wrong)
        assert "\n" not in str(told.value)


def ran(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "safe_stepwise.commands.main", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def told_in(stderr: str) -> list[str]:
    """Its lines, but for those that a slow machine adds."""
    return [line for line in stderr.splitlines() if ": waiting for " not in line]


def test_a_mistake_exits_with_2_and_one_line(tmp_path: Path) -> None:
    """`symbolic` without annotations, and no server: neither shows a traceback."""
    (tmp_path / "pages.txt").write_text("Oru lies on the Vel.")
    for spec, says in (("symbolic", "goes by annotations"), (MODEL, "no server answers there")):
        asked = ("answer", "--question", "Where?", "--passages", "pages.txt")
        ended = ran(*asked, "--generator", spec, "--verifier", spec, cwd=tmp_path)
        assert ended.returncode == 2
        (line,) = told_in(ended.stderr)
        assert line.startswith("error: ")
        assert says in line


@pytest.mark.parametrize(("spec", "says"), [("symbolic", "goes by annotations"), (MODEL, "no server answers there")])
def test_the_metric_in_a_users_script_ends_in_one_line(tmp_path: Path, spec: str, says: str) -> None:
    code = (
        "from safe_stepwise.metric import answers_by_loop\n"
        f"how = dict(generator={spec!r}, verifier={spec!r})\n"
        "answers_by_loop(['Where?'], [['Oru lies on the Vel.']], [['Oru']], **how)"
    )
    env = {**os.environ, "PYTHONPATH": PYTHONPATH}
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "cwd": tmp_path}
    ended = subprocess.run([sys.executable, "-c", code], env=env, **how)
    assert ended.returncode == 1
    (line,) = told_in(ended.stderr)
    assert line.startswith("error: generator: ")
    assert says in line


def test_other_errors_keep_their_traceback(tmp_path: Path) -> None:
    code = "import safe_stepwise.metric\n1 / 0"
    env = {**os.environ, "PYTHONPATH": PYTHONPATH}
    how: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "cwd": tmp_path}
    ended = subprocess.run([sys.executable, "-c", code], env=env, **how)
    assert "Traceback" in ended.stderr
    assert UserError("a\x1b[31m\nb")._render_traceback_() == ["error: a\\x1b[31m b"]


def test_no_heavy_library_is_imported_for_help(tmp_path: Path) -> None:
    code = (
        "import sys; from safe_stepwise.commands.main import carry_out; carry_out(['answer', '-h'])"
        "; heavy = {'torch', 'datasets', 'evaluate', 'aiohttp', 'matplotlib'}"
        "; print(sorted(heavy & {*sys.modules}))"
    )
    env = {**os.environ, "PYTHONPATH": PYTHONPATH}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.endswith("[]\n")


# ------------------------------------------------------------------------------- what each one does


def test_answer_prints_steps_and_a_verdict(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["answer", "--passages", str(rows), "--question", examples()[0]["question"]]
    carry_out([*asked, "--generator", "symbolic:error_rate=0.4", "--verifier", "symbolic"])
    out = capsys.readouterr().out
    assert "    rejected, Premature Attribution: " in out
    assert out.count("\nStep ") == out.count("    verified: ") + out.count("    rejected, ")
    assert out.endswith("Answer: Tesk\nverified; 4 steps, 6 tries (simulated)\n")


def test_an_answer_of_which_nothing_can_be_read_is_no_success(tmp_path: Path) -> None:
    """A model that thinks aloud ended in 41 tries, no answer and exit status 0: now in 9, and 2."""
    (tmp_path / "pages.txt").write_text("Ana Brell wrote Dune Rain.")
    replies = {"replies": [], "default": "Let me see.\nAna Brell, I would say."}
    (tmp_path / "aloud.json").write_text(json.dumps(replies))
    asked = ["answer", "--question", "Who wrote Dune Rain?", "--passages", str(tmp_path / "pages.txt")]
    with pytest.raises(UserError, match=r"any of 9 replies; the first reply begins 'Let me see\.' ") as told:
        carry_out([*asked, "--generator", f"mock:{tmp_path / 'aloud.json'}", "--method", "no_verification"])
    assert "\n" not in str(told.value)
    thought = "<think>Step 1: ####ANSWER: Oru (Final Answer)</think>"
    replies["default"] = f"{thought}**Step 1:** ####ANSWER: Ana Brell (Final Answer)"
    (tmp_path / "thinks.json").write_text(json.dumps(replies))
    thinking = ["--generator", f"mock:{tmp_path / 'thinks.json'}", "--method", "no_verification", "--json"]
    ended = ran(*asked, *thinking, cwd=tmp_path)
    assert (ended.returncode, json.loads(ended.stdout)["trajectory"]["answer"]) == (0, "Ana Brell")


def test_answer_says_when_nobody_verified(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["answer", "--passages", str(rows), "--question", examples()[0]["question"]]
    carry_out([*asked, "--generator", "symbolic", "--method", "no_verification", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["answer"], told["verified"], told["simulated"]) == ("Tesk", False, True)
    assert told["doubts"] == ["no step was seen by a verifier"]


@pytest.mark.parametrize(
    ("name", "content", "pages"),
    [
        ("a.txt", "Oru lies\non the Vel.\n\n \nMarn.\n", ["Oru lies on the Vel.", "Marn."]),
        ("a.json", '["One.", {"title": "T", "text": "Two."}]', ["One.", "Two."]),
        ("a.jsonl", '"One."\n{"title": "T", "sentences": ["A.", "B."]}\n', ["One.", "A. B."]),
    ],
)
def test_passages_are_read_from_a_users_own_file(
    tmp_path: Path, name: str, content: str, pages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file, script = tmp_path / name, tmp_path / "script.json"
    file.write_text(content)
    rules = [{"reply": "Step 1: ####ANSWER: yes (Final Answer)"}]
    script.write_text(json.dumps({"replies": rules}))
    how = ["--generator", f"mock:{script}", "--method", "no_verification", "--json"]
    carry_out(["answer", "--question", "Is it?", "--passages", str(file), *how])
    told = json.loads(capsys.readouterr().out)
    assert [page["text"] for page in told["passages"]] == pages


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.txt", " \n", "has no passages"),
        ("a.json", "[]", "has no passages"),
        ("a.json", "{", "is no JSON"),
        ("a.jsonl", '"x"\n{"a": 1}\n', r"a\.jsonl, line 2 is \{'a': 1\}: give a string, or"),
        ("a.jsonl", '"x"\n{"passages": []}\n', r"line 2 is "),
    ],
)
def test_a_file_without_passages_is_told(tmp_path: Path, name: str, content: str, says: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    how = ["--generator", "symbolic", "--verifier", "symbolic"]
    with pytest.raises(UserError, match=says):
        carry_out(["answer", "--question", "Is it?", "--passages", str(file), *how])


def test_answers_are_read_again(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    for row in examples():
        asked = ["answer", "--passages", str(rows), "--question", row["question"]]
        how = ["--generator", "symbolic:error_rate=0.4,seed=4", "--verifier", "symbolic"]
        carry_out([*asked, *how, "--output", str(file)])
    printed = capsys.readouterr().out
    traces = [*read_traces(file)]
    assert [trace.question for trace in traces] == [row["question"] for row in examples()]
    attempts = [attempt.text for trace in traces for attempt in trace.trajectory.attempts]
    assert attempts == [line for line in printed.splitlines() if line.startswith("Step ")]


def test_a_line_that_is_no_trace_is_told(tmp_path: Path) -> None:
    for content in ("{", "[]", "{}"):
        file = tmp_path / "a.jsonl"
        file.write_text(content)
        with pytest.raises(UserError, match="line 1: is no trajectory"):
            list(read_traces(file))


def test_score_counts_as_the_metric_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    rows: list[dict[str, Any]] = [
        {"prediction": "the Vel", "references": ["Vel", "River Vel"]},
        {"prediction": None, "answer": "Oru", "aliases": []},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    carry_out(["score", str(file), "--benchmark", "musique"])
    found = json.loads(capsys.readouterr().out)
    assert found == {"exact_match": 0.5, "f1": 0.5, "accuracy": None, "unscored": 0}
    file.write_text('{"prediction": "Oru"}\n')
    with pytest.raises(UserError, match="line 1: lacks its references"):
        carry_out(["score", str(file), "--benchmark", "musique"])


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prediction": 3, "answer": "Oru"}, "line 2: prediction is neither a text nor null"),
        ({"prediction": "Oru", "answer": 3}, "line 2: answer is neither a text nor a list"),
        ({"prediction": "Oru", "answer": "Oru", "aliases": 3}, "line 2: aliases is neither"),
        ({"prediction": "Oru", "references": ["Oru", 3]}, "line 2: references is neither"),
        ({"prediction": "Oru", "references": []}, "line 2: lacks its references"),
    ],
)
def test_score_tells_where_a_row_is_wrong(tmp_path: Path, row: dict[str, Any], says: str) -> None:
    file = tmp_path / "answers.jsonl"
    rows = [{"prediction": "Oru", "answer": "Oru"}, row]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UserError, match=f"{file.name}, {says}"):
        carry_out(["score", str(file), "--benchmark", "musique"])


def test_an_alias_may_be_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text('{"prediction": "River Vel", "answer": "Vel", "aliases": "River Vel"}\n')
    carry_out(["score", str(file), "--benchmark", "musique"])
    assert json.loads(capsys.readouterr().out)["exact_match"] == 1.0


def test_whoever_asks_for_verdicts_names_a_judge(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--judge-repeats is how often a judge is asked"):
        carry_out(["score", "x.jsonl", "--benchmark", "musique", "--judge-repeats", "3"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": True}, "row.answer is not a text"),
        ({"id": [3]}, "row.id is not a text"),
        ({"kind": [1]}, "row.kind is not a text"),
        ({"aliases": "Tesk"}, "row.aliases is not a list"),
        ({"evidence": [{"head": "Oru", "relation": "r"}]}, r"row.evidence\[0\].tail is not there"),
        ({"supporting_facts": [{"title": "Oru", "sentence": -5}]}, "row.supporting_facts: a sent"),
        ({"supporting_facts": [33]}, r"supporting fact 1 names '33': no title, number"),
        ({"passages": []}, "passages is empty"),
    ],
)
@pytest.mark.parametrize("command", ["check", "answer"])
def test_a_row_of_another_form_is_told_by_its_place(
    tmp_path: Path, command: str, change: dict[str, Any], says: str
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**examples()[0], "steps": ["x"], **change}))
    players = ["--generator", "symbolic", "--verifier", "symbolic"]
    asked = {"check": ["check", str(file)], "answer": ["answer", "--passages", str(file), *players]}
    with pytest.raises(UserError, match=f"rows.jsonl, (line|number) 1: {says}"):
        carry_out(asked[command])


def test_where_the_answer_goes_is_looked_at_before_anybody_is_asked(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = ["--question", examples()[0]["question"], "--passages", str(rows)]
    nowhere = str(tmp_path / "nowhere" / "answers.jsonl")
    with pytest.raises(UserError, match="cannot be written"):
        carry_out(["answer", *question, "--generator", MODEL, "--verifier", MODEL, "--output", nowhere])
    assert capsys.readouterr().out == ""


def test_no_step_is_judged_by_a_passage_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = examples()[0]
    fewer = [page for number, page in enumerate(row["passages"], 1) if number != 2]
    step = "Step 1: According to Passage 5, The Salt Clock was directed by Maro Quill. (Attribution)"
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({**row, "passages": fewer, "steps": [step]}))
    carry_out(["check", str(file)])
    told = capsys.readouterr().out
    assert "judged by the passages alone: the passages do not state all facts of the row's annotations" in told
    assert "Unsupported there is no Passage 5" in told
    with pytest.raises(UserError, match="--benchmark"):
        carry_out(["check", str(file), "--benchmark", "musik"])


def test_without_its_answer_no_conclusion_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {name: value for name, value in examples()[0].items() if name != "answer"}
    (file := tmp_path / "rows.jsonl").write_text(json.dumps({**row, "steps": ["Step 1: x"]}))
    carry_out(["check", str(file)])
    told = capsys.readouterr().out
    assert "judged by the passages alone: the row has no answer" in told
    reason = "no claim is read in it"
    assert told.endswith(f"    undecided {reason}\n      not read: “x” - {reason}\nundecided 1\n")


def test_json_is_json_whatever_is_in_it(tmp_path: Path) -> None:
    odd = "S\u00e3o\u00adPaulo \x85 \U000e0041"
    (file := tmp_path / "rows.jsonl").write_text(json.dumps({**examples()[0], "question": odd, "steps": [odd]}))
    command = [sys.executable, "-m", "safe_stepwise.commands.main", "check", str(file), "--json"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout)["steps"][0]["step"] == odd


def test_check_judges_steps_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    early = "Step 1: According to Passage 4, Maro Quill was born in Tesk. (Attribution)"
    steps = [
        "Step 1: According to Passage 2, The Salt Clock was directed by Maro Quill. (Attribution)",
        "Maro Quill was born in Tesk.",
        "Step 2: According to Passage 4, Maro Quill was born in Ardle. (Attribution)",
    ]
    file = tmp_path / "rows.json"
    file.write_text(json.dumps([{**examples()[0], "steps": one} for one in (steps, [early])]))
    carry_out(["check", str(file), "--json"])
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    labels = [[step["label"] for step in row["steps"]] for row in told]
    assert labels == [["Correct", "no step", "Contradictory"], ["Premature Attribution"]]
    assert {row["judged_by"] for row in told} == {"annotations"}
    [claim] = told[0]["steps"][0]["claims"]
    assert steps[0][claim["start"] : claim["end"]] == "The Salt Clock was directed by Maro Quill"
    assert (claim["status"], claim["passage"], claim["sentence"]) == ("stated", 2, 0)
    bare = {key: examples()[0][key] for key in ("question", "passages")}
    file.write_text(json.dumps([{**bare, "steps": steps[:1]}]))
    carry_out(["check", str(file)])
    assert capsys.readouterr().out.endswith("sound 1\n")


def test_register_is_the_command_that_it_was() -> None:
    assert commands.group.get_command(click.Context(commands.group), "register") is register.main


def test_the_sentence_on_exit_status_is_the_one_of_the_scripts() -> None:
    assert EXIT_STATUS in (ROOT / "scripts" / "help" / "build_verified.txt").read_text("utf-8")
    assert commands.NAME == "safe-stepwise"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("register", "register needs evaluate: pip install -e '.[metric]'"),
        ("publish {file}", "publish needs what builds and reports need: pip install -e '.[metric,build,report]'"),
    ],
)
def test_what_is_missing_names_its_extra(
    call: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"question": ["Where?"]}), file := tmp_path / "rows.parquet")
    present = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name in ("evaluate", "pyarrow") else present(name))
    with pytest.raises(UserError) as raised:
        carry_out(call.format(file=file).split())
    assert message in str(raised.value)
    with pytest.raises(UserError, match=re.escape("a Parquet file needs pyarrow: pip install -e '.[build]'")):
        list(parquet.read_rows(file, dict))
