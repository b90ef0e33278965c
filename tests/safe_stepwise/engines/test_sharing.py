"""Engines that differ only in their adapters share one model in memory, and none is answered by another's adapter."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from safe_stepwise import errors
from safe_stepwise.engines import transformers, vllm
from safe_stepwise.engines.base import Completion, Message, Request, request_key
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.transformers import ChatRunner, Row, TransformersEngine
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_clients, open_engine

QUESTION = Request((Message("user", "Where is Oru?"),))
RANKS = {"low": 4, "high": 12, "same": 4, "bad": 8}
"""The adapters; ``bad`` can't be loaded."""


class EngineDeadError(Exception):
    """As vLLM names it."""


class StandIn:
    """vLLM, whose replies say which adapter they were made with, by the number that a request has."""

    started: list[StandIn]

    def __init__(self, options: dict[str, Any]) -> None:
        self.options, self.is_alive, self.is_closed = options, True, False
        self.adapters: dict[int, str] = {}
        self.requests: set[str] = set()
        self.started.append(self)

    async def add_lora(self, lora: Any) -> None:
        await asyncio.sleep(0)
        assert self.options["enable_lora"]
        assert lora.number not in self.adapters
        self.adapters[lora.number] = Path(lora.path).name
        if "bad" in lora.name:
            raise ValueError("it does not fit")

    async def generate(self, _: Any, __: Any, number: str, lora_request: Any) -> AsyncIterator[Any]:
        assert number not in self.requests
        self.requests.add(number)
        await asyncio.sleep(0)
        if not self.is_alive:
            raise EngineDeadError
        assert not self.is_closed
        text = self.adapters[lora_request.number] if lora_request else "none"
        output = SimpleNamespace(text=text, token_ids=range(3), finish_reason="stop")
        yield SimpleNamespace(outputs=[output], prompt_token_ids=range(9), num_cached_tokens=0)

    def shutdown(self) -> None:
        self.is_closed = True


class PeftModel(SimpleNamespace):
    """PEFT's, as far as it is used: named adapters, of which one is active or none."""

    @classmethod
    def from_pretrained(cls, model: Any, folder: str, name: str) -> PeftModel:
        wrapped = cls(base=model, peft_config={}, active="", eval=lambda: wrapped)
        wrapped.load_adapter(folder, name)
        return wrapped

    def load_adapter(self, folder: str, name: str) -> None:
        self.peft_config[name] = self.active = Path(folder).name
        if "bad" in folder:
            raise ValueError("it does not fit")

    def set_adapter(self, name: str, inference_mode: bool) -> None:
        assert inference_mode
        self.active = self.peft_config[name]

    def disable_adapter(self) -> Any:
        self.active = "none"
        return nullcontext()


class Runner(ChatRunner):
    """Replies with the adapter that is active in its model."""

    def row(self, request: Request) -> Row:
        return Row(request, [], 0)

    def run(self, rows: Any) -> None:
        for row in rows:
            row.tokens[:] = [getattr(self.model, "active", "none")]

    def completion(self, row: Row) -> Completion:
        return Completion(str(row.tokens[0]))


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    StandIn.started = []
    lora = {"LoRARequest": lambda name, number, path: SimpleNamespace(name=name, number=number, path=path)}
    modules = {
        "vllm.exceptions": {"VLLMClientError": KeyError},
        "vllm.inputs": {"tokens_input": lambda tokens: tokens},
        "vllm.v1.engine.exceptions": {"EngineDeadError": EngineDeadError},
        "vllm.lora.request": lora,
        "vllm.config.lora": {"MaxLoRARanks": Literal[8, 16, 32]},
        "torch": {"cuda": SimpleNamespace(is_available=lambda: False), "OutOfMemoryError": MemoryError},
        "peft": {"PeftModel": PeftModel},
    }
    parents = ("vllm", "vllm.v1", "vllm.v1.engine", "vllm.lora", "vllm.config")
    for name, attributes in {**{parent: {} for parent in parents}, **modules}.items():
        module = ModuleType(name)
        module.__dict__.update(attributes)  # type: ignore[arg-type]
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(errors, "find_spec", lambda _: True)
    chat = SimpleNamespace(encode=lambda messages, _: messages)
    monkeypatch.setattr(vllm, "Chat", SimpleNamespace(load=lambda _: chat))
    monkeypatch.setattr(vllm, "_sampling", lambda _: None)
    monkeypatch.setattr(VLLMEngine, "_start", lambda self, lora: StandIn({**self._options, **lora}))
    monkeypatch.setattr(transformers, "stop_when", lambda *_: None)
    monkeypatch.setattr(TransformersEngine, "_load", load)


def load(engine: TransformersEngine, *_: Any) -> Runner:
    LOADED.append(engine.name)
    return Runner(None, SimpleNamespace(), 99, frozenset())  # type: ignore[arg-type]


LOADED: list[str] = []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and the adapters of `RANKS`; two of the same rank differ in their weights."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}")
    for name, rank in RANKS.items():
        (folder / name).mkdir()
        (folder / name / "adapter_config.json").write_text(json.dumps({"r": rank}))
        (folder / name / "adapter_model.safetensors").write_text(name)
    return folder


def adapted(folder: Path, adapter: str, kind: type = VLLMEngine, **options: Any) -> Any:
    return kind(Model(str(folder / "model")), None if adapter == "none" else Model(str(folder / adapter)), **options)


async def reply_of(engine: Any) -> str:
    (reply,) = await engine.generate([QUESTION])
    return str(reply.text)


KINDS = pytest.mark.parametrize("kind", [VLLMEngine, TransformersEngine])


@KINDS
def test_one_model_answers_for_all_adapters_each_by_its_own(folder: Path, kind: type) -> None:
    async def work() -> list[Any]:
        engines = [adapted(folder, name, kind) for name in ("none", "low", "high")]
        replies = await asyncio.gather(*map(reply_of, engines * 3))
        for number, engine in enumerate(engines):
            await engine.close()
            assert all(llm.is_closed == (number == 2) for llm in StandIn.started)
            replies += [await reply_of(engine) for engine in engines[number + 1 :]]
        return replies

    LOADED.clear()
    assert asyncio.run(work()) == ["none", "low", "high"] * 3 + ["low", "high", "high"]
    assert len(LOADED) + len(StandIn.started) == 1
    for llm in StandIn.started:
        assert (llm.options["max_loras"], llm.options["max_lora_rank"]) == (2, 16)


@KINDS
def test_no_key_of_one_adapter_is_a_key_of_another(folder: Path, kind: type) -> None:
    engines = [adapted(folder, name, kind) for name in ("none", *RANKS)]
    engines.append(adapted(folder, "low", kind, dtype="float16"))
    assert len({request_key(engine, QUESTION) for engine in engines}) == 6
    assert len({engine.name for engine in engines}) == 6


def test_without_adapters_vllm_starts_without_them(folder: Path) -> None:
    asyncio.run(adapted(folder, "none").check())
    assert "enable_lora" not in StandIn.started[0].options


def test_memory_is_vllms_and_no_part_of_the_identity(folder: Path) -> None:
    async def work() -> None:
        for engine in engines:
            await engine.check()

    engines = [
        open_engine(f"vllm:{folder / 'model'}+{folder / 'low'}{query}")
        for query in ("", "?memory=0.45", "?memory=0.45&max_model_len=8192")
    ]
    asyncio.run(work())
    assert [llm.options.get("gpu_memory_utilization") for llm in StandIn.started] == [None, 0.45, 0.45]
    plain, sparing, short = engines
    assert (plain.identity, plain.name) == (sparing.identity, sparing.name)
    assert (short.identity["max_model_len"], short.name) == (8192, f"{plain.name}?max_model_len=8192")


def test_the_clients_of_roles_share_a_model(folder: Path, tmp_path: Path) -> None:
    async def work() -> dict[str, str]:
        base = f"vllm:{folder / 'model'}"
        specs = {"generator": base, "verifier": f"{base}+{folder / 'low'}", "judge": f"{base}+{folder / 'high'}"}
        async with open_clients(specs, tmp_path / "replies.sqlite") as clients:
            replies = {role: (await client.complete(QUESTION)).text for role, client in clients.items()}
            assert all(client.total().calls == 1 for client in clients.values())  # no reply of another from the cache
            return replies

    assert asyncio.run(work()) == {"generator": "none", "verifier": "low", "judge": "high"}
    (llm,) = StandIn.started
    assert llm.is_closed
    assert llm.options["max_loras"] == 2


def test_an_adapter_without_room_has_a_vllm_of_its_own(folder: Path) -> None:
    async def work() -> list[str]:
        early = adapted(folder, "low")
        replies = [await reply_of(early)]
        late = [adapted(folder, name) for name in ("same", "high")]
        return replies + [await reply_of(engine) for engine in (*late, early)]

    assert asyncio.run(work()) == ["low", "same", "high", "low"]
    assert [sorted(llm.adapters.values()) for llm in StandIn.started] == [["low", "same"], ["high"]]


def test_engines_with_other_options_take_no_room(folder: Path) -> None:
    other = adapted(folder, "high", dtype="float16")
    asyncio.run(adapted(folder, "low").check())
    assert [(llm.options["max_loras"], llm.options["max_lora_rank"]) for llm in StandIn.started] == [(1, 8)]
    assert other._process is None


@KINDS
def test_a_closed_model_is_loaded_anew(folder: Path, kind: type) -> None:
    async def work() -> None:
        models = []
        for _ in range(2):
            engine = adapted(folder, "low", kind)
            assert await reply_of(engine) == "low"
            models.append(engine._process if kind is VLLMEngine else engine._shared)
            await engine.close()
        assert models[0] is not models[1]

    asyncio.run(work())


@KINDS
def test_loops_do_not_share(folder: Path, kind: type) -> None:
    LOADED.clear()
    engines = [adapted(folder, name, kind) for name in ("low", "high")]
    assert [asyncio.run(reply_of(engine)) for engine in engines] == ["low", "high"]
    assert len(LOADED) + len(StandIn.started) == 2


@KINDS
def test_an_adapter_that_does_not_fit_is_the_fault_of_its_engine_alone(folder: Path, kind: type) -> None:
    async def work() -> list[str]:
        engines = {name: adapted(folder, name, kind) for name in ("none", "low", "bad", "high")}
        replies = []
        for _ in range(3):
            with pytest.raises(UserError, match=r"bad@.*does not fit"):
                await engines["bad"].check()
            replies += [await reply_of(engines[name]) for name in ("low", "none", "high")]
        return replies

    assert asyncio.run(work()) == ["low", "none", "high"] * 3
    assert len(StandIn.started) <= 1


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["none", "low", "high", "same"]), st.sampled_from(["ask", "ask", "close", "kill"]))
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS)
@example([("low", "ask"), ("high", "ask"), ("high", "kill"), ("low", "ask")])
def test_whatever_is_opened_closed_or_dies_a_reply_is_made_with_the_engines_own_adapter(
    folder: Path, actions: list[tuple[str, str]]
) -> None:
    async def work() -> None:
        engines: dict[str, VLLMEngine] = {}
        for name, action in actions:
            engine = engines.setdefault(name, adapted(folder, name))
            if action == "kill" and engine._process and engine._process.llm and not engine._process.deaths:
                engine._process.llm.is_alive = False  # type: ignore[attr-defined]
            if action == "close":
                await engines.pop(name).close()
            else:
                asked = [Client(engine, tries=2).complete(QUESTION) for engine in engines.values()]
                replies = await asyncio.gather(*asked)
                assert [reply.text for reply in replies] == list(engines)
        for engine in engines.values():
            await engine.close()

    StandIn.started = []
    asyncio.run(work())
    assert all(llm.is_closed for llm in StandIn.started)


def test_an_engine_that_is_closed_does_not_hold_up_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going_on, began = threading.Event(), threading.Event()
    plain = Runner.run

    def slow(runner: Runner, rows: Any) -> None:
        began.set()
        going_on.wait(20)
        plain(runner, rows)

    monkeypatch.setattr(Runner, "run", slow)

    async def work() -> str:
        first, second = (adapted(folder, name, TransformersEngine) for name in ("low", "high"))
        running = asyncio.create_task(reply_of(first))
        await asyncio.to_thread(began.wait, 20)
        waiting = asyncio.create_task(reply_of(second))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await second.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        going_on.set()
        reply = await running
        await first.close()
        return reply

    assert asyncio.run(work()) == "low"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("memory=2", "'2' is not a value of memory; write ?memory=0.45"),
        ("memory=", "'' is not a value of memory"),
        ("memory=nan", "'nan' is not a value"),
        ("max_model_len=0", "write ?max_model_len=8192"),
        ("dtype=", "'' is not a value of dtype"),
        ("memry=0.4", "the option 'memry' is not known; did you mean memory?"),
    ],
)
def test_a_wrong_option_says_how_to_write_it(folder: Path, query: str, expected: str) -> None:
    with pytest.raises(UserError) as caught:
        open_engine(f"vllm:{folder / 'model'}?{query}")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)
