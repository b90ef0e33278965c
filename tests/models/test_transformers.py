"""The transformers engine with a real small model on the CPU."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling
from safe_stepwise.engines.transformers import ChatRunner, TransformersEngine, _adapted
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine

pytest.importorskip("torch", reason="no torch here: `make test-vllm` runs the model tests")

Run = Callable[[Any], Any]


def ask(text: str, **sampling: Any) -> Request:
    return Request((Message("user", text),), Sampling(**{"max_tokens": 10, **sampling}))


@pytest.fixture(scope="module")
def engine(model_folder: Path, run: Run) -> Iterator[TransformersEngine]:
    engine = TransformersEngine(Model(str(model_folder)), batch=8)
    run(engine.check())
    yield engine
    run(engine.close())


@pytest.fixture
def batches(engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that are run."""
    sizes: list[int] = []
    runner = ChatRunner
    plain = runner.run

    def noted(self: Any, rows: Any) -> None:
        sizes.append(len(rows))
        plain(self, rows)

    monkeypatch.setattr(runner, "run", noted)
    return sizes


async def each(engine: TransformersEngine, requests: list[Request]) -> list[Any]:
    """As callers ask: one request a call, all at once."""
    found = await asyncio.gather(*(engine.generate([request]) for request in requests))
    return [one for (one,) in found]


def test_a_batch_answers_as_each_request_alone(engine: TransformersEngine, run: Run, batches: list[int]) -> None:
    requests = [
        ask("What is the capital of France?"),
        ask("Name three colours of the rainbow, please, one a line.", max_tokens=16),
        ask("Count from one to ten.", max_tokens=16, stop=("2.", "two")),
        ask("Tell me a joke.", temperature=1.0, top_p=0.9, seed=3),
        ask("hi " * 9000),
    ]
    together = run(each(engine, requests))
    assert batches == [4]
    alone = [run(engine.generate([request]))[0] for request in requests]
    assert together[:4] == alone[:4]

    paris, colours, counted, joke, long = together
    assert "Paris" in paris.text
    assert paris.ending == "whole"
    assert paris.usage.completion < 10
    assert (colours.ending, colours.usage.completion) == ("cut", 16)
    assert counted.ending == "whole"
    assert "2." not in counted.text
    assert counted.usage.prompt > 10
    assert isinstance(joke, Completion)
    assert isinstance(long, EngineError)
    assert not long.transient
    assert "the context holds 8,192" in str(long)


def test_batches_are_bounded_and_in_order(engine: TransformersEngine, run: Run, batches: list[int]) -> None:
    found = run(each(engine, [ask(f"Say {n}.", max_tokens=1 + n % 3) for n in range(11)]))
    assert batches == [8, 3]
    assert all(one.usage.completion <= 1 + n % 3 for n, one in enumerate(found))


def test_seeds_differ(engine: TransformersEngine, run: Run) -> None:
    said = run(each(engine, [ask("Tell me a joke.", temperature=1.0, seed=n) for n in range(4)]))
    assert len({one.transcript for one in said}) > 1


def test_closed_it_ends_amid_a_batch(model_folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a run does that is interrupted: it does not wait for what nobody wants any more."""
    engine = TransformersEngine(Model(str(model_folder)))
    under_way: list[Any] = []
    runner = ChatRunner
    plain = runner.run

    def noted(self: Any, rows: Any) -> None:
        under_way.extend(rows)
        plain(self, rows)

    monkeypatch.setattr(runner, "run", noted)
    endless = Request((Message("user", "Count up."),), Sampling(max_tokens=7000))

    async def interrupted() -> None:
        asked = asyncio.create_task(engine.generate([endless, endless]))
        while not (under_way and under_way[0].tokens):
            await asyncio.sleep(0.01)
        await engine.close()
        with pytest.raises(asyncio.CancelledError):
            await asked

    run(interrupted())
    assert 0 < len(under_way[0].tokens) < 7000
    assert not under_way[0].is_finished


def test_too_little_memory_halves_the_batch(
    engine: TransformersEngine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    requests = [ask("Hello!"), ask("Tell me a joke.", temperature=1.0), ask("Say 1.")]
    roomy = run(each(engine, requests))
    runner = ChatRunner
    plain = runner.run

    def cramped(self: Any, rows: Any) -> None:
        plain(self, rows)
        if len(rows) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(runner, "run", cramped)
    assert run(each(engine, requests)) == roomy


def test_a_fault_concerns_its_batch_alone(
    engine: TransformersEngine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Any, rows: Any) -> None:
        raise RuntimeError("device-side\nassert")

    with monkeypatch.context() as patch:
        patch.setattr(ChatRunner, "run", broken)
        (error,) = run(engine.generate([ask("Hello!")]))
    assert str(error) == "RuntimeError: device-side assert"
    (fine,) = run(engine.generate([ask("Hello!", max_tokens=1)]))
    assert isinstance(fine, Completion)


def test_a_caller_that_leaves_does_not_hold_up_the_rest(
    engine: TransformersEngine, run: Run, batches: list[int]
) -> None:
    async def leave() -> Any:
        left = asyncio.ensure_future(engine.generate([ask("Never mind.")]))
        stays = asyncio.ensure_future(engine.generate([ask("Hello!", max_tokens=2)]))
        await asyncio.sleep(0)
        left.cancel()
        return await stays

    (said,) = run(leave())
    assert said.usage.completion == 2
    assert batches == [1]


def test_an_adapter_changes_the_replies_and_the_identity(
    engine: TransformersEngine, model_folder: Path, hub_adapter: str, run: Run
) -> None:
    adapted = open_engine(f"transformers:{model_folder}+{hub_adapter}@v1.0.0")
    plain, other = run(engine.generate([ask("Hello!")])), run(adapted.generate([ask("Hello!")]))
    run(adapted.close())
    assert plain[0].transcript != other[0].transcript
    assert plain[0].usage.prompt == other[0].usage.prompt
    assert adapted.identity["adapter_revision"].startswith("0123456789")
    assert adapted.identity != engine.identity
    assert adapted.name.endswith("+somebody/adapter@0123456789ab")
    assert isinstance(adapted, TransformersEngine)
    assert adapted.adapter is not None  # what it learnt is read there
    assert (adapted.adapter.folder / "adapter_config.json").is_file()
    assert engine.adapter is None


def test_adapters_share_the_model_and_answer_as_alone(
    engine: TransformersEngine, model_folder: Path, hub_adapter: str, second_adapter: Path, run: Run
) -> None:
    adapters = (Model(hub_adapter, "v1.0.0"), Model(str(second_adapter)))

    def adapted() -> list[TransformersEngine]:
        return [TransformersEngine(Model(str(model_folder)), adapter) for adapter in adapters]

    async def alone(engine: TransformersEngine) -> Any:
        (reply,) = await engine.generate([ask("Hello!")])
        await engine.close()
        return reply

    first, second = adapted()
    replies = [run(each(one, [ask("Hello!")] * 2)) for one in (first, second, engine, second, first)]
    assert first._shared is second._shared is engine._shared
    run(first.close())
    assert run(alone(second)) == replies[1][0]
    assert replies[0] == replies[4]
    assert replies[1] == replies[3]
    # In a loop of its own an engine loads a model of its own.
    base = asyncio.run(alone(TransformersEngine(Model(str(model_folder)))))
    expected = [asyncio.run(alone(one)) for one in adapted()] + [base]
    assert [reply for reply, _ in replies[:3]] == expected
    assert len({reply.transcript for reply in expected}) == 3


def test_weights_that_are_cut_short_are_a_users_mistake(model_folder: Path, tmp_path: Path, run: Run) -> None:
    for file in model_folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[: 1 << 22])
    engine = TransformersEngine(Model(str(tmp_path)))
    with pytest.raises(UserError, match="cannot be loaded") as caught:
        run(engine.generate([ask("Hello!"), ask("Hello again!")]))
    run(engine.close())
    assert "\n" not in str(caught.value)


def test_a_label_has_the_models_own_probability(engine: TransformersEngine, run: Run) -> None:
    """Beside every path of tokens to a label, multiplied out by the model itself."""
    import torch

    labels = ("Correct", "Contradictory", "Redundancy")
    texts = [f'{{"error_type": "{label}"}}' for label in labels]
    request = replace(ask("Is it right? Reply in JSON.", max_tokens=40), choices=tuple(texts), labels=labels)
    plain, scored = run(engine.generate([replace(request, labels=()), request]))
    assert (plain.score, plain.text) == (None, scored.text)
    runner: Any = engine._shared.runner
    prompt = runner.chat.encode(request.messages, None)
    paths = [runner.chat.tokenizer.encode(text, add_special_tokens=False) for text in texts]

    def share(path: list[int]) -> float:
        total = 1.0
        for n, token in enumerate(path):
            allowed = sorted({other[n] for other in paths if other[:n] == path[:n] and len(other) > n})
            # Other tests' engines may have given the model that they share an adapter.
            with torch.inference_mode(), _adapted(runner.model, None):
                logits = runner.model(torch.tensor([prompt + path[:n]])).logits[0, -1, allowed]
            total *= float(logits.float().softmax(-1)[allowed.index(token)])
        return total

    assert scored.score == pytest.approx(share(paths[0]), abs=2e-3)


def test_only_listed_replies_are_given(engine: TransformersEngine, run: Run, batches: list[int]) -> None:
    """One that the model would never give, one that begins another, beside one that is free."""
    paths = ('{"path": ["born_in"]}', '{"path": ["born_in", "~born_in"]}')
    free = ask("What is the capital of France?")
    asked = [
        replace(ask("Name a path.", max_tokens=40), choices=paths),
        replace(ask("What is the capital of France?"), choices=("Oslo", "Oslo!")),
        *(replace(ask("Say yes or no.", temperature=2.0, seed=seed), choices=("yes", "no")) for seed in range(4)),
        free,
    ]
    *held, paris = run(each(engine, asked))
    assert batches == [7]
    assert held[0].text in paths
    assert held[1].text in ("Oslo", "Oslo!")
    assert {one.text for one in held[2:]} == {"yes", "no"}
    assert all(one.ending == "whole" for one in held)
    assert paris == run(engine.generate([free]))[0]
    (cut,) = run(engine.generate([replace(ask("?", max_tokens=2), choices=paths)]))
    assert cut.ending == "cut"
    assert paths[0].startswith(cut.fragment)
