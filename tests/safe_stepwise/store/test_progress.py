"""What a bar is in a log, and on a terminal."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from safe_stepwise.store import progress

ROOT = Path(__file__).parents[3]


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__(newline="")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, moves: int = 500) -> str:
    """A bar that is drawn anew at each move."""
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.bar(total=moves, unit="row", desc="work", mininterval=0, miniters=1) as bar:
        for _ in range(moves):
            bar.update()
            bar.refresh()
    return stream.getvalue()


def test_in_a_log_it_is_its_begin_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, terminal=False)
    assert not {"\r", "\x1b"} & {*said}
    begin, end = said.splitlines()
    assert "0/500" in begin
    assert "500/500" in end


def test_in_a_log_a_long_one_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10_000))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))  # each look a second later
    lines = shown(monkeypatch, terminal=False, moves=100).splitlines()
    # Drawn twice a move; a line of these takes a second look.
    assert len(lines) == pytest.approx(2 * 100 / progress.LINE_S + 2, abs=1)
    assert "100/100" in lines[-1]
    assert len({*lines}) == len(lines)


def test_on_a_terminal_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    said = shown(monkeypatch, terminal=True)
    assert said.count("\r") > 100
    assert "500/500" in said


def test_what_takes_no_time_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal=False)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.bar(range(3), delay=60) as bar:
        assert list(bar) == [0, 1, 2]
    with progress.show_progress("work", "row", 3, lambda: 3, lambda: "done 3"):
        pass
    assert stream.getvalue() == ""


def test_telling_ends_with_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal=False)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "AFTER_S", 0.01)
    done = [0]
    with progress.show_progress("work", "row", 7, lambda: done[0], lambda: f"done {done[0]}"):
        while not stream.getvalue():
            time.sleep(0.01)
        done[0] = 7
    begin, end = stream.getvalue().splitlines()
    assert "0/7" in begin
    assert "7/7" in end
    assert end.endswith("done 7]")


def test_it_is_drawn_though_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TICK_S", 0.01)
    stream = Stream(terminal=True)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.bar(total=7, unit="row", desc="work"):
        while stream.getvalue().count("0/7") < 5:
            time.sleep(0.01)


def test_on_a_terminal_of_80_columns_it_fits() -> None:
    code = (
        "from safe_stepwise.store import progress\n"
        "with progress.bar(total=4000, desc='verified 2wikimultihopqa', unit='row') as bar:\n"
        "    bar.set_postfix_str('done 1234 cached 2345 failed 12 owed 421; requests: done 99999 "
        "cached 12345 failed 0 under way 256; tokens 12.3M in', refresh=False)\n"
        "    bar.update(3579)\n"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    subprocess.run([sys.executable, "-c", code], stderr=theirs, cwd=ROOT, check=True, timeout=120)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    lines = re.split(r"[\r\n]+", said.decode())
    assert max(map(len, lines)) <= 80
    last = [line for line in lines if line.strip()][-1]
    assert "failed 12 owed 421" in last
