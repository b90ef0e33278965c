"""vLLM itself, served and in process, with a real small model."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from safe_stepwise.engines.base import Completion, Engine, EngineError, Message, Request, Sampling, Schema
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.engines.transformers import TransformersEngine
from safe_stepwise.engines.vllm import VLLMEngine
from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

pytest.importorskip("vllm", reason="no vLLM here: `make test-vllm` runs the model tests")
pytest.importorskip("openai", reason="no openai here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]
ADAPTER = "verifier@v1.0.0"
BLOCK = 32
"""Tokens in a block of the prefix cache: the least that vLLM takes on a CPU."""
START_S = 240

PASSAGES = "\n".join(
    f"Passage {n}. {town}: {town} is a town on the river Vel, founded in {1200 + n}. "
    f"Its mayor is {mayor}, who was born there and wrote a book on bridges."
    for n, (town, mayor) in enumerate(
        [("Oru", "Ada Lin"), ("Tem", "Bo Marsh"), ("Sive", "Cy Dorn"), ("Rell", "Di Voss")], 1
    )
)
VERDICT = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}, "label": {"enum": ["Correct", "Unsupported"]}},
    "required": ["sure", "label"],
    "additionalProperties": False,
}

PATHS = ('{"path": ["born_in"]}', '{"path": ["~mayor_of", "born_in"]}')


def call(role: str, end: str, **sampling: Any) -> Request:
    """One of a question's calls: what never changes first, what is asked last."""
    turns = (Message("system", "You reason over passages."), Message("user", f"{PASSAGES}\n{end}"))
    return Request(turns, Sampling(**{"max_tokens": 12, **sampling}), role=role)


def brief(text: str, schema: Schema | None = None, **sampling: Any) -> Request:
    """A short prompt, as an adapter's are slow on a CPU."""
    return Request((Message("user", text),), Sampling(**{"max_tokens": 8, **sampling}), schema)


@dataclass(frozen=True)
class Server:
    """Where a `vllm serve` listens, and what it is called there."""

    url: str

    def engine(self, model: str = "smollm2") -> OpenAIEngine:
        return OpenAIEngine(model, self.url)


@pytest.fixture(scope="module")
def server(model_folder: Path, adapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [
        *(sys.executable, "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model_folder), "--served-model-name", "smollm2"),
        *("--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048"),
        *("--enable-prefix-caching", "--block-size", str(BLOCK), "--enable-prompt-tokens-details"),
        *("--enable-lora", "--max-lora-rank", "8", "--lora-modules", f"{ADAPTER}={adapter_folder}"),
        *("--generation-config", "vllm", "--dtype", "float32", "--enforce-eager"),
    ]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process, log)
        yield Server(f"http://127.0.0.1:{port}/v1")
    finally:
        _end(process)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not start:\n{log.read_text(errors='replace')[-4000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group: the server's own children would outlive it if it were only killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(20)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def test_the_calls_of_one_question_share_their_prefix(server: Server, run: Run) -> None:
    async def question() -> dict[str, list[Usage]]:
        """By role; asked once, as a client would ask again for what is cut."""
        engine, spent = server.engine(), dict[str, list[Usage]]()

        async def ask(*requests: Request) -> None:
            replies = await engine.generate(requests)
            spent[requests[0].role] = [reply.usage for reply in replies if isinstance(reply, Completion)]

        await engine.check()
        for role, end in [
            ("extract", "List the triples."),
            ("path", "Which passages lead to the mayor of Oru?"),
            ("judge", "Is 'Ada Lin' right?"),
        ]:
            await ask(call(role, end))
        await ask(*(call("steps", f"Write step {n}.") for n in range(4)))
        await engine.close()
        return spent

    spent = run(question())
    print(spent)
    (first,), (path,), (judge,), steps = spent.values()
    assert first.cached == 0
    assert first.prompt > 5 * BLOCK
    # All blocks that the passages fill: the last words, and what is left of a block, are paid for.
    shared = (first.prompt - 2 * BLOCK) // BLOCK * BLOCK
    assert path.cached >= shared
    assert judge.cached >= shared
    assert sum(step.cached for step in steps) >= 4 * shared
    assert len(steps) == 4


def test_a_schema_is_kept_to(server: Server, run: Run) -> None:
    async def verdict() -> str:
        engine = server.engine()
        asked = brief("Is it right?", Schema.from_dict("verdict", VERDICT), max_tokens=60)
        said = await Client(engine).complete(asked)
        await engine.close()
        return said.text

    said = json.loads(run(verdict()))
    jsonschema.validate(said, VERDICT)
    assert list(said) == list(VERDICT["properties"])  # in the order that a verifier was trained on


def test_listed_replies_are_kept_to(server: Server, run: Run) -> None:
    async def said() -> str:
        engine = server.engine()
        asked = brief("Name a path.", Schema.from_dict("path", {"type": "object"}), max_tokens=60)
        completion = await Client(engine).complete(replace(asked, choices=PATHS))
        await engine.close()
        return completion.text

    assert run(said()) in PATHS


def scored(engine: Engine, first: str) -> Coroutine[Any, Any, float | None]:
    """The probability of a label in a reply that has one of three."""
    labels = (first, *(label for label in ("Correct", "Contradictory", "Redundancy") if label != first))
    schema = {"type": "object", "properties": {"error_type": {"enum": sorted(labels)}}, "required": ["error_type"]}

    async def score() -> float | None:
        asked = brief("Is Oru a river? Judge it in JSON.", Schema.from_dict("verdict", schema), max_tokens=60)
        return (await Client(engine).complete(replace(asked, labels=labels))).score

    return score()


def test_labels_share_one_probability(server: Server, engine: VLLMEngine, run: Run) -> None:
    """By the server's log-probabilities three shares of one; in process a share, where it was asked for."""
    labels = ("Correct", "Contradictory", "Redundancy")
    served = [run(scored(server.engine(), label)) for label in labels]
    assert None not in served
    assert sum(filter(None, served)) == pytest.approx(1, abs=0.02)
    alone = run(engine.generate([brief("Say yes.", max_tokens=5)]))[0]
    assert alone.score is None
    inside = run(scored(engine, "Correct"))
    assert inside is not None
    assert 0 <= inside <= 1


def test_a_model_that_is_not_served_is_a_users_mistake(server: Server, run: Run) -> None:
    with pytest.raises(UserError, match=r"lists smollm2, verifier@v1\.0\.0, not this model") as caught:
        run(server.engine("smollm3").check())
    assert "\n" not in str(caught.value)


def test_a_prompt_that_is_too_long_is_not_tried_again(server: Server, run: Run) -> None:
    async def long() -> Client:
        client = Client(server.engine())
        with pytest.raises(EngineError, match="HTTP 400"):
            await client.complete(brief("hi " * 3000))
        await client.engine.close()
        return client

    assert run(long()).total().calls == 1


LIGHT = {"max_model_len": 2048, "enforce_eager": True, "dtype": "float32"}
"""Exact enough to compare: in bfloat16 rounding decides close calls."""


@pytest.fixture(scope="module")
def engine(model_folder: Path, hub_adapter: str, run: Run) -> Iterator[VLLMEngine]:
    engine = VLLMEngine(Model(str(model_folder)), Model(hub_adapter, "v1.0.0"), **LIGHT)
    run(engine.check())
    yield engine
    run(engine.close())


def test_every_engine_says_the_same(
    server: Server, engine: VLLMEngine, model_folder: Path, hub_adapter: str, run: Run
) -> None:
    """Template, tokens, end of turn and adapter: three ways to ask a model, one greedy answer."""

    async def said(one: Engine) -> Completion:
        (completion,) = await one.generate([brief("Hello!")])
        await one.close()
        assert isinstance(completion, Completion)
        return completion

    folder, adapter = Model(str(model_folder)), Model(hub_adapter, "v1.0.0")
    (here,) = run(engine.generate([brief("Hello!")]))
    served = run(said(server.engine(ADAPTER)))
    assert here == served == run(said(TransformersEngine(folder, adapter)))
    base = run(said(server.engine()))
    assert base == run(said(TransformersEngine(folder)))
    assert base.transcript != served.transcript


def test_in_process_a_prefix_is_cached(engine: VLLMEngine, run: Run) -> None:
    town = "Passage 1. Oru: Oru is a town on the river Vel, whose mayor is Ada Lin. "
    asked = [brief(f"{town} Question {n}: who?", max_tokens=4) for n in range(3)]
    (first,) = run(engine.generate(asked[:1]))
    rest = run(engine.generate(asked[1:]))
    print([one.usage for one in (first, *rest)])
    assert first.usage.cached == 0
    assert all(one.usage.cached >= BLOCK for one in rest)


def test_in_process_schema_stop_seed_and_errors(engine: VLLMEngine, run: Run) -> None:
    said = run(
        engine.generate(
            [
                brief("Is it right?", Schema.from_dict("verdict", VERDICT), max_tokens=60),
                brief("Is it right?", Schema("bad", '{"type": 3}')),
                brief("hi " * 3000),
                brief("Joke.", temperature=1.0, seed=1),
                brief("Joke.", temperature=1.0, seed=1),
                brief("Joke.", temperature=1.0, seed=2),
                brief("Say it.", stop=("e",)),
                replace(brief("Say it.", max_tokens=40), choices=PATHS),
            ]
        )
    )
    verdict, bad, long, one, same, other, stopped, held = said
    assert held.text in PATHS
    jsonschema.validate(json.loads(verdict.text), VERDICT)
    for error in (bad, long):
        assert isinstance(error, EngineError)
        assert not error.transient
        assert "\n" not in str(error)
    assert one.transcript == same.transcript != other.transcript
    assert "e" not in stopped.transcript
    assert stopped.ending == "whole"


def test_what_changes_an_answer_is_in_the_identity(
    engine: VLLMEngine, model_folder: Path, adapter_folder: Path
) -> None:
    plain = VLLMEngine(Model(str(model_folder)))
    local = VLLMEngine(Model(str(model_folder)), Model(str(adapter_folder)))
    half = VLLMEngine(Model(str(model_folder)), dtype="float16")
    known = [json.dumps(dict(one.identity)) for one in (engine, plain, local, half)]
    assert len(set(known)) == 4
    assert engine.name.startswith("vllm:SmolLM2-135M-Instruct@")
    assert "+somebody/adapter@0123456789ab?" in engine.name


def test_an_adapter_that_does_not_fit_is_a_users_mistake(
    engine: VLLMEngine, adapter_folder: Path, tmp_path: Path, run: Run
) -> None:
    for file in adapter_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:10_000])
    process, llm, *_ = run(engine._started())
    with pytest.raises(UserError, match="can't load it") as caught:
        run(process.load_adapter(llm, find_adapter(Model(str(tmp_path)))))
    assert "\n" not in str(caught.value)
    (said,) = run(engine.generate([brief("Hello!", max_tokens=1)]))
    assert said.usage.completion == 1
