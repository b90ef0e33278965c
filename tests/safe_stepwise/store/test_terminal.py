"""What reaches a terminal steers nothing there, whoever prints it."""

from __future__ import annotations

import io
import json
import logging
import re
import signal
import sys
import unicodedata
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

from safe_stepwise.store import terminal
from safe_stepwise.store.terminal import guard_output, printable
from scripts import cli

HOSTILE = "q\x1b[31m\x1b]0;t\x07\u202e\u2066\r\n\x9b2J\u200b\x00\x08"
STEERS = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def steering(text: str) -> set[str]:
    return {one for one in text if unicodedata.category(one) in STEERS} - {"\n"}


@given(st.text(st.characters(codec=None)))
def test_a_printable_text_is_one_line(text: str) -> None:
    assert not steering(printable(text))
    assert "\n" not in printable(text)
    assert len(printable(text * 100)) <= 10 * terminal.MAX_LINE_CHARS + 1


def test_plain_text_stays_as_it_is() -> None:
    assert printable("Où est Zürich? 北京 — “so”") == "Où est Zürich? 北京 — “so”"


def guarded(monkeypatch: pytest.MonkeyPatch) -> tuple[io.StringIO, io.StringIO]:
    """Output and error of this process from now on, behind the guard."""
    streams = io.StringIO(newline=""), io.StringIO(newline="")
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    terminal.guard_output()
    return streams


def test_a_bar_moves_and_its_words_do_not_steer(monkeypatch: pytest.MonkeyPatch) -> None:
    output, errors = guarded(monkeypatch)
    with tqdm(total=3, desc=HOSTILE, mininterval=0) as bar, tqdm(total=2, position=1) as lower:
        for _ in range(3):
            bar.update()
        lower.update()
        bar.set_postfix_str(HOSTILE)
        tqdm.write(f"row {HOSTILE}")
    shown = errors.getvalue()
    assert "\r" in shown
    assert "\x1b[A" in shown
    assert not steering(re.sub(r"\r|\x1b\[A", "", shown))
    assert shown.count("\x1b") == shown.count("\x1b[A")
    assert not steering(output.getvalue())
    assert "\\x1b[31m" in output.getvalue()


def test_a_stream_of_few_characters_gets_the_others_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "ascii"))
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    terminal.guard_output()
    print("Zürich \udc80")
    sys.stdout.flush()
    assert raw.getvalue() == b"Z\\xfcrich \\udc80\n"


ROW = {"id": HOSTILE, "question": f"{HOSTILE}?", "answer": "Marn", HOSTILE: 1}
OWN = {**ROW, "passages": [{"title": HOSTILE, "text": "Oru is in Marn."}]}


@pytest.mark.parametrize(
    "command",
    [
        "build_verified --benchmark {h} --input x --split train --teacher annotations --output o",
        "build_verified --benchmark musique --input {row} --split {h} --teacher x --output o",
        "build_verified --benchmark musique --input {row} --split train --teacher annotations --output {out}",
        "build_verified --benchmark synthetic --input rows=4 --split train --teacher {h} --output {out}",
        "build_verified --benchmark synthetic --input rows=4 --split train --teacher annotations --output {out}{h}",
        "build_verified --benchmark {b} --input {dup} --split train --teacher annotations "
        "--output {out} --on-error keep --workers 1",
        "build_corpus --benchmark {h} --input x --split train --output o.jsonl",
        "build_corpus --benchmark musique --input {row} --split train --output {out}{h}",
        "build_corpus --benchmark musique --input {row} --split {h} --output {out}.jsonl",
        "build_paths --benchmark metaqa --kb {h} --input {row} --split train --output {out}",
        "build_paths --benchmark metaqa --kb {row} --input {h} --split train --output {out}",
        "build_paths --benchmark webqsp --input {row} --split train --output {out} --workers 1",
        "build_verifier_steps --verified {h} --teacher annotations --rows 3 --output o",
        "compare_labels --data {h}",
        "compare_labels --verified {h} --published {h}",
        "evaluate_stepwise --questions {own} --method safe --generator {h} --verifier x --output o",
        "evaluate_stepwise --questions {own} --method no_verification --generator mock:{mock} "
        "--output {out}{h} --cache {out}/c",
        "evaluate_stepwise --questions {own} --method no_verification --generator mock:{h} "
        "--output {out} --corpus {h}",
        "evaluate_deliberation --questions {row} --kb {h} --paths {h} --output {out}",
        "evaluate_deliberation --questions {row} --kb {row} --paths {h}=oracle --output {out}",
        "evaluate_deliberation --questions {dup} --benchmark cwq --paths oracle --output {out}{h}",
        "evaluate_verifier --steps {h} --verifier {h} --output o",
        "view_traces {h}",
        "audit_labels sample --of labels --input {h} --output o",
        "audit_labels score {row} {h}",
        "publish {h} --namespace {h}",
        "regenerate {h} --output o",
        "measure_checker --verified {h}",
        "train_verifier --config {h}",
        "train_paths --config {h}",
        "refine_verifier_steps --verified {h} --generator {h} --verifier x --teacher x --rows 1 --output o",
    ],
)
def test_no_command_lets_through_what_steers(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = HOSTILE.replace("\x00", "")
    files = {"row": [ROW], "own": [OWN], "dup": [{"id": HOSTILE}, {"id": HOSTILE, "question": 1}]}
    for name, rows in files.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mock").write_text('{"replies": [], "default": "Step 1: So. (Final Answer)"}')
    known = {name: str(tmp_path / name) for name in (*files, "mock", "out")}
    words = [part.format(h=hostile, b="musique", **known) for part in command.split()]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    output, errors = guarded(monkeypatch)
    with pytest.raises(SystemExit) as end:
        cli.run(import_module(f"scripts.{words[0]}").main)
    said = output.getvalue() + errors.getvalue()
    assert not steering(said.replace("\r", "")), repr(said)
    assert end.value.code in (0, 2), said


def test_every_command_runs_behind_the_guard() -> None:
    """Whatever prints: `cli.run` guards both streams before it calls a command."""
    commands = [f.read_text(encoding="utf-8") for f in Path(cli.__file__).parent.glob("*.py")]
    started = [text for text in commands if '__name__ == "__main__"' in text]
    assert len(started) > 10
    assert all(text.rstrip().endswith("    run(main)") for text in started)


def test_no_log_of_a_library_shows_a_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "q7-Zx-9Lm2-Tt4Wv8Kp3")
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    guard_output()
    logging.StreamHandler(sys.stderr).emit(
        logging.makeLogRecord({"msg": "your key is q7-Zx-9Lm2-Tt4Wv8Kp3, \u3164\ufe0f"})
    )
    assert err.getvalue() == "your key is [redacted], \\u3164\\ufe0f\n"
