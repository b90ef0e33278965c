"""Many clients of `serve` at once: none is lost, and the server's memory stays flat.

python -m tests.benchmarks.bench_serve [--clients 64] [--requests 300] [--distinct 4000] [--gone 600] [--hang 60]

The server is a process of its own, the model a mock of one step, so that the time is the server's. Of the questions so
many are distinct; the others are answered from the cache. Aims: none lost, and no more than 40 MB more memory after
the last request than after a quarter of them.

Then the model hangs for ``--hang`` seconds, while ``--gone`` clients ask and leave. Once it is back, the time of a new
question is measured. Aim: 2 seconds.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from scripts.cli import run
from tests.benchmarks.command_line import Parser
from tests.servers.openai_server import MockServer
from tests.servers.stepper import Stepper

_MB = 1 << 20


def resident(pid: int) -> float:
    """Megabytes that a process holds in memory."""
    (pages,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(pages) * 1024 / _MB


async def ask(url: str, pid: int, clients: int, requests: int, distinct: int) -> tuple[int, list[float], list[float]]:
    """How many were answered rightly, seconds of each, and the server's memory at each tenth."""
    right, seconds, memory, ended = 0, list[float](), list[float](), 0
    total = clients * requests
    limit = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=clients), timeout=limit) as session:

        async def client(number: int) -> None:
            nonlocal right, ended
            for place in range(requests):
                name = f"A{(number * requests + place) % distinct}"
                question = {"role": "user", "content": f"What is the code of {name}?"}
                passages = [{"title": "Codes", "text": f"The code is {name}."}]
                begun = time.monotonic()
                body = {"model": "safe-stepwise", "messages": [question], "passages": passages}
                async with session.post(f"{url}/chat/completions", json=body) as reply:
                    content = (await reply.json())["choices"][0]["message"]["content"] if reply.status == 200 else ""
                seconds.append(time.monotonic() - begun)
                right += content == name
                ended += 1
                if not ended % (total // 10):
                    memory.append(resident(pid))

        await asyncio.gather(*map(client, range(clients)))
    return right, sorted(seconds), memory


async def leave(url: str, model: MockServer, clients: int, seconds: float) -> float:
    """Have clients leave a model that hangs; return the seconds of a new question after it is back."""
    until = time.monotonic() + seconds
    model.last = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        def question(name: str) -> asyncio.Task[int]:
            body = {
                "model": "safe-stepwise",
                "messages": [{"role": "user", "content": f"What is the code of {name}?"}],
            }
            body["passages"] = [{"title": "Codes", "text": f"The code is {name}."}]

            async def post() -> int:
                async with session.post(f"{url}/chat/completions", json=body) as reply:
                    await reply.read()
                    return reply.status

            return asyncio.ensure_future(post())

        for wave in range(0, clients, 60):
            tasks = [question(f"B{number}") for number in range(wave, min(wave + 60, clients))]
            await asyncio.sleep(1)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        model.last = float("inf")
        begun = time.monotonic()
        status = await question("C1")
        assert status == 200, status
        return time.monotonic() - begun


def main(argv: list[str] | None = None) -> None:
    parser = Parser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--requests", type=int, default=300, help="of each client")
    parser.add_argument("--distinct", type=int, default=4_000, help="questions that are distinct")
    parser.add_argument("--gone", type=int, default=600, help="clients that leave a model that hangs")
    parser.add_argument("--hang", type=float, default=60, help="seconds that it hangs")
    options = parser.parse_args(argv)
    code = "from safe_stepwise.commands.main import main; main()"
    with tempfile.TemporaryDirectory() as folder, MockServer(Stepper(flawed=0.0, steps=1)) as model:
        command = [sys.executable, "-c", code, "serve", "--generator", model.spec, "--verifier", model.spec]
        command += ["--port", "0", "--cache", f"{folder}/c.sqlite"]
        with Path(folder, "log").open("w") as log:
            server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
            assert server.stdout is not None
            url = re.findall(r"http://\S+/v1", server.stdout.readline())[0]
            begun = time.monotonic()
            right, seconds, memory = asyncio.run(
                ask(url, server.pid, options.clients, options.requests, options.distinct)
            )
            took = time.monotonic() - begun
            calls = model.calls
            back = asyncio.run(leave(url, model, options.gone, options.hang))
            calls = model.calls - calls
            server.send_signal(signal.SIGTERM)
            server.wait(60)
        last = Path(folder, "log").read_text().splitlines()[-1]
    total = options.clients * options.requests
    print(f"{total:,} requests of {options.clients} clients in {took:.0f} s ({total / took:.0f} a second)")
    print(f"lost: {total - right}; median {seconds[total // 2]:.2f} s, longest {seconds[-1]:.2f} s")
    print("memory at each tenth, MB:", " ".join(f"{size:.0f}" for size in memory))
    print(f"{options.gone} clients left a model that hung for {options.hang:.0f} s: {calls} calls; then {back:.2f} s")
    print(last)
    if right < total or memory[-1] - memory[2] > 40:
        sys.exit("some were lost, or memory grew")


if __name__ == "__main__":
    run(main)
