"""The loop by one vLLM with an adapter for each role, and by two: same replies, little more than half the memory.

A model of 135M parameters writes no steps, so it chooses among a few that are ready. Prompts are compact: on a CPU
vLLM is slow to add adapters to many tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.chat import Chat
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import PrefixCache
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model, find_model
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import run_question
from safe_stepwise.records import Passage, Question, Trajectory

pytest.importorskip("vllm", reason="no vLLM here: `make test-vllm` runs the model tests")
psutil = pytest.importorskip("psutil", reason="no psutil here: `make test-vllm` runs the model tests")

BLOCK = 32
LIGHT = {"dtype": "float32", "enforce_eager": True, "max_model_len": 4096}
CHOICES = {
    "generate": ("Step 1: Passage 1 says so. (Attribution)", "Step 1: So Oru is old. (Logical)"),
    "final_answer": ("####ANSWER: Ada Lin", "####ANSWER: Bo Marsh"),
    "verify": (
        '{"error_type": "Correct", "diagnosis": "", "guidance": ""}',
        '{"error_type": "Unsupported", "diagnosis": "", "guidance": "No."}',
    ),
}
QUESTION = Question(
    "1", "toy", "test", "Who is the mayor of Oru?", "Ada Lin",
    passages=tuple(
        Passage(name, (f"{name} is a town on the river Vel.", f"Its mayor is {mayor}."), is_gold=True)
        for name, mayor in (("Oru", "Ada Lin"), ("Tem", "Bo Marsh"))
    ),
)  # fmt: skip
Run = Callable[[Any], Any]


@dataclass
class Choosing:
    """An engine whose model chooses its replies; it keeps them with their requests."""

    engine: Any
    calls: list[tuple[Request, Completion]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        replies = await self.engine.generate([replace(r, choices=CHOICES[r.role]) for r in requests])
        self.calls += zip(requests, replies, strict=True)
        return list(replies)


async def play(players: Mapping[str, Any]) -> tuple[Trajectory, dict[str, Choosing], float]:
    """The loop's trajectory, the calls of each player, and the MiB of their processes at the end."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    sides = {role: Choosing(engine) for role, engine in players.items()}
    try:
        for engine in players.values():
            await engine.check()
        clients = [Client(side) for side in sides.values()]  # type: ignore[arg-type]
        trajectory = await run_question(QUESTION, *clients, Limits(2, 1, prompts="compact"))
        children = [p for p in psutil.Process().children(recursive=True) if p.pid not in before]
        return trajectory, sides, sum(process.memory_full_info().pss for process in children) / 2**20
    finally:
        for engine in players.values():
            await engine.close()


def said(sides: Mapping[str, Choosing]) -> dict[str, list[Completion]]:
    return {role: [reply for _, reply in side.calls] for role, side in sides.items()}


def test_one_vllm_with_two_adapters_is_as_good_as_two(
    model_folder: Path, hub_adapter: str, second_adapter: Path, run: Run
) -> None:
    def players(**memory: float) -> dict[str, VLLMEngine]:
        """Engines that share a vLLM, unless their memory differs."""
        adapters = {"generator": Model(hub_adapter, "v1.0.0"), "verifier": Model(str(second_adapter))}
        return {
            role: VLLMEngine(Model(str(model_folder)), adapter, memory=memory.get(role), **LIGHT)
            for role, adapter in adapters.items()
        }

    together, sides, memory = run(play(players()))
    apart, sides_apart, memory_apart = run(play(players(verifier=0.5)))
    calls = {role: len(side.calls) for role, side in sides.items()}
    print(calls, together.stop_reason, f"{memory:.0f} MiB in one vLLM, {memory_apart:.0f} in two")
    assert min(calls.values()) > 1
    assert together == apart
    assert said(sides) == said(sides_apart)  # with the tokens of each call, cached ones included
    assert memory <= 0.6 * memory_apart
    chat = Chat.load(find_model(Model(str(model_folder))))
    for side in sides.values():  # a cache for each adapter, as `bench_prefix` counts
        cache = PrefixCache(BLOCK, 10**6)
        expected = [cache.take([*map(str, chat.encode(request.messages))]) for request, _ in side.calls]
        assert [reply.usage.cached for _, reply in side.calls] == expected
        assert sum(expected) > 0
