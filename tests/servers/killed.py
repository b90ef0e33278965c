"""A command that is killed while it waits for a server, and what its next run asks again."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.servers.openai_server import MockServer

ROOT = Path(__file__).parents[2]


def killed(server: MockServer, command: str, options: Sequence[str]) -> None:
    """Run ``safe-stepwise COMMAND`` until the server's ``last`` reply, then kill it.

    From then on the server answers all.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", f"scripts.{command}", *options], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    while sum(server.answered.values()) < server.last:
        assert process.poll() is None
        time.sleep(0.005)
    process.kill()
    process.wait()
    server.last = math.inf


def asked_again(server: MockServer) -> int:
    """Calls that the server had before: those whose replies were on their way."""
    return sum(number - 1 for number in server.asked.values())
