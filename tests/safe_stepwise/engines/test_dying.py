"""An engine in this process whose model dies is started again once; what is owed then, the same command asks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import safe_stepwise.open as opening
from safe_stepwise.engines import client as asking_client
from safe_stepwise.engines import vllm
from safe_stepwise.engines.base import Completion, EngineError, Message, Request
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.transformers import LoadedModel
from safe_stepwise.engines.vllm import VLLMEngine
from scripts import evaluate_stepwise
from tests.scripts.test_evaluate_stepwise import arguments, by_method, contents, own
from tests.servers.stepper import Stepper

SPEC = "vllm:mortal"


class EngineDeadError(Exception):
    """As vLLM names it."""


class Mortal(VLLMEngine):
    """vLLM's engine with a stand-in for vLLM: a child process, killed with -9 at some of its calls."""

    def __init__(self, reply: Callable[[Mapping[str, Any]], str], kills: Sequence[int] = ()) -> None:
        self.name, self.identity = SPEC, {"engine": "vllm", "model": "mortal"}
        self.adapter, self._process, self._base = None, None, (self,)  # type: ignore[assignment]
        self.reply, self.kills, self.calls, self.children = reply, [*kills], 0, list[Any]()
        self.answered: Counter[str] = Counter()

    def _start(self, _: Any) -> Any:
        self.children.append(Child(self))
        return self.children[-1]


class Child:
    """What runs the model: a process of its own."""

    def __init__(self, engine: Mortal) -> None:
        self.engine = engine
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    async def generate(self, prompt: Sequence[Message], *_: Any, **__: Any) -> AsyncIterator[Any]:
        self.engine.calls += 1
        kills = self.engine.kills
        if kills and self.engine.calls >= kills[0] and self.process.poll() is None:
            del kills[0]
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        await asyncio.sleep(0.002)  # what is under way then is lost, too
        if self.process.poll() is not None:
            raise EngineDeadError
        text = self.engine.reply({"messages": [{"content": turn.content} for turn in prompt]})
        self.engine.answered[repr(prompt)] += 1
        output = SimpleNamespace(text=text, token_ids=range(9), finish_reason="stop")
        yield SimpleNamespace(outputs=[output], prompt_token_ids=range(30), num_cached_tokens=0)

    def shutdown(self) -> None:
        if self.process.poll() is not None:
            raise RuntimeError("there is nobody to shut down")
        self.process.kill()
        self.process.wait()


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {
        "vllm": {},
        "vllm.exceptions": {"VLLMClientError": KeyError},
        "vllm.inputs": {"tokens_input": lambda tokens: tokens},
        "vllm.v1": {},
        "vllm.v1.engine": {},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
    }
    for name, attributes in modules.items():
        module = ModuleType(name)
        module.__dict__.update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    chat = SimpleNamespace(encode=lambda messages, _: messages)
    monkeypatch.setattr(vllm, "Chat", SimpleNamespace(load=lambda _: chat))
    monkeypatch.setattr(vllm, "_sampling", lambda _: None)
    monkeypatch.setattr(asking_client, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(Mortal, "_model", None, raising=False)


def asked(number: int) -> list[Request]:
    return [Request((Message("user", f"Where is {n}?"),), role="path") for n in range(number)]


def ask(engine: Mortal, number: int, cache: ResponseCache | None = None) -> list[Completion | EngineError]:
    async def whole() -> list[Completion | EngineError]:
        try:
            return await Client(engine, cache).complete_all(asked(number))
        finally:
            await engine.close()

    return asyncio.run(whole())


def echo(body: Mapping[str, Any]) -> str:
    return f"Here: {body['messages'][0]['content']}"


@pytest.mark.parametrize("killed_at", [1, 2, 9, 30])
def test_one_that_dies_is_started_again_and_loses_nothing(killed_at: int) -> None:
    engine = Mortal(echo, [killed_at])
    replies = ask(engine, 30)
    assert [reply.text for reply in replies if isinstance(reply, Completion)] == [
        f"Here: Where is {n}?" for n in range(30)
    ]
    assert len(engine.children) == 2
    assert max(engine.answered.values()) == 1
    assert all(child.process.poll() is not None for child in engine.children)


def test_one_that_dies_again_stays_dead_and_what_is_owed_is_asked_by_the_next_run(tmp_path: Path) -> None:
    engine = Mortal(echo, [20, 25])
    replies = ask(engine, 60, ResponseCache(tmp_path / "replies.sqlite"))
    lost = [reply for reply in replies if isinstance(reply, EngineError)]
    assert 0 < len(lost) < 60
    assert len(engine.children) == 2
    (said,) = {str(error) for error in lost}
    assert said.startswith("vLLM's process has died; its last words are above (it was started again once, and died")
    again = Mortal(echo)
    replies = ask(again, 60, ResponseCache(tmp_path / "replies.sqlite"))
    assert all(isinstance(reply, Completion) for reply in replies)
    assert again.answered.total() == len(lost)
    assert not engine.answered.keys() & again.answered.keys()


@pytest.mark.parametrize("kills", [[7], [40], [30, 50]])
def test_an_evaluation_amid_which_it_dies_ends_as_one_amid_which_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: list[int]
) -> None:
    file, engines = own(tmp_path / "own.jsonl", 14), list[Mortal]()

    def evaluate(output: str, *kills: int) -> Mortal:
        engine = Mortal(Stepper(), kills)
        monkeypatch.setitem(opening.KINDS, "vllm", opening.EngineKind(SPEC, lambda _: engine))  # type: ignore[arg-type]
        players = [f"--{role}={SPEC}" for role in ("generator", "verifier", "judge")]
        evaluate_stepwise.main(arguments(file, tmp_path / output, "--method=safe", *players))
        engines.append(engine)
        return engine

    first = evaluate("out", *kills)
    stops = Counter(one.trajectory.stop_reason for one in by_method(tmp_path / "out")["safe"])
    assert (stops["failed"] > 0) == (len(kills) > 1)
    assert len(first.children) == 2
    second = evaluate("out")
    assert not first.answered.keys() & second.answered.keys()  # what was answered is not asked again
    assert bool(second.answered) == (len(kills) > 1)
    evaluate("clean")
    assert contents(tmp_path / "out") == contents(tmp_path / "clean")
    assert all(child.process.poll() is not None for engine in engines for child in engine.children)


def test_transformers_loads_its_model_anew_after_a_fault_but_not_for_want_of_memory() -> None:
    async def model() -> LoadedModel:
        return LoadedModel("a base")

    shared = asyncio.run(model())
    shared.runner = loaded = object()  # type: ignore[assignment]
    assert not shared.report_fault(MemoryError("OutOfMemoryError: CUDA")).transient
    assert shared.runner is loaded
    first = shared.report_fault(RuntimeError("CUDA error: device-side assert"))
    assert (first.transient, shared.runner, str(first)) == (True, None, "RuntimeError: CUDA error: device-side assert")
    shared.runner = loaded  # type: ignore[assignment]
    second = shared.report_fault(RuntimeError("CUDA error: again"))
    assert (second.transient, "started again once" in str(second)) == (False, True)
    assert not shared.report_fault(RuntimeError("once more")).transient
