"""Signals in a training, while Python itself is busy in one long call (no model here)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from trainers.interruption import REPEAT_SECONDS, STOPPED, STOPPING, Interruption

ROOT = Path(__file__).resolve().parents[2]
BUSY = """
    import hashlib, sys
    from trainers.interruption import Interruption
    with Interruption() as interruption:
        print("busy", flush=True)
        while True:
            hashlib.pbkdf2_hmac("sha256", b"", b"", {rounds})  # like a backward pass
            if interruption.stop_requested:
                break
    print("kept", flush=True)
"""
NEVER, SOON = 2_000_000_000, 1_000_000


def begun(rounds: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(BUSY).format(rounds=rounds)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "busy\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_lets_what_is_under_way_end(number: signal.Signals) -> None:
    process = begun(SOON)
    process.send_signal(number)
    process.send_signal(number)  # as `timeout` does
    output, errors = process.communicate(timeout=120)
    assert (output, process.returncode) == ("kept\n", 0)
    assert errors.splitlines() == [STOPPING]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_is_answered_at_once_and_the_second_ends_all(number: signal.Signals) -> None:
    process = begun(NEVER)
    assert process.stderr is not None
    process.send_signal(number)
    assert process.stderr.readline() == f"{STOPPING}\n"
    time.sleep(2 * REPEAT_SECONDS)
    process.send_signal(number)
    output, errors = process.communicate(timeout=120)
    assert (output, errors) == ("", f"{STOPPED}\n")
    assert process.returncode == 128 + number


def test_afterwards_signals_are_whose_they_were() -> None:
    def mine(*_: object) -> None:
        raise LookupError

    before = signal.signal(signal.SIGTERM, mine)
    try:
        open_files = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
        with Interruption() as interruption:
            pass
        assert not interruption.stop_requested
        if open_files:
            assert len(os.listdir("/proc/self/fd")) == open_files
        with pytest.raises(LookupError):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            signal.raise_signal(signal.SIGINT)
        assert not interruption.stop_requested
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_trains_as_before() -> None:
    found: list[bool] = []

    def training() -> None:
        with Interruption() as interruption:
            found.append(interruption.stop_requested)

    thread = threading.Thread(target=training)
    thread.start()
    thread.join()
    assert found == [False]
