"""From a spec string to an engine: ``KIND:MODEL[@REVISION][+ADAPTER[@REVISION]]``.

| spec | engine |
| --- | --- |
| ``openai:MODEL@http://host:8000/v1`` | an OpenAI-compatible server; without address OpenAI's |
| ``vllm:Qwen/Qwen3-8B+ns/adapter@v1.0.0`` | vLLM in this process |
| ``transformers:PATH`` | transformers, on the CPU or one GPU |
| ``symbolic`` or ``symbolic:error_rate=0.1,seed=3`` | annotations, no model (simulated) |
| ``mock:FILE`` | scripted replies (simulated) |
"""

from __future__ import annotations

import difflib
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from safe_stepwise.engines.base import Engine
from safe_stepwise.engines.cache import ResponseCache, default_cache
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.weights import Model
from safe_stepwise.errors import UserError

KINDS = ("openai", "vllm", "transformers", "symbolic", "mock")


def open_engine(spec: str) -> Engine:
    """The engine that a spec names, its libraries imported only now.

    Raises ``UserError`` for a spec that can't be read and for a missing extra (``openai`` asks for
    its own only when it is to answer).
    """
    kind, rest = _parts(spec)
    return _OPENERS[kind](rest)


def check_spec(spec: str) -> None:
    """Raise ``UserError`` for a spec that can't be read, though its extra may be missing here.

    >>> check_spec("vllm:Qwen/Qwen3-8B+./adapter")
    """
    kind, rest = _parts(spec)
    if kind in ("vllm", "transformers"):
        _models(rest)
    else:
        _OPENERS[kind](rest)


def _parts(spec: str) -> tuple[str, str]:
    if "\0" in spec or spec.splitlines() not in ([], [spec]):
        raise UserError(f"{spec!r} names no engine: it is more than one line of text")
    kind, colon, rest = spec.partition(":")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind.lower(), KINDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}{colon}{rest}? " if near else ""
        raise UserError(
            f"{spec!r} names no engine; {hint}write openai:MODEL@URL, vllm:MODEL, "
            "transformers:PATH, symbolic or mock:FILE"
        )
    if not rest and kind != "symbolic":
        raise UserError(f"{spec!r} lacks what stands after the colon, as in {_EXAMPLES[kind]}")
    return kind, rest


_EXAMPLES = {
    "openai": "openai:gpt-oss-120b@http://localhost:8000/v1",
    "vllm": "vllm:Qwen/Qwen3-8B",
    "transformers": "transformers:./my-model",
    "mock": "mock:replies.json",
}
_ADDRESS = re.compile(r"@(https?://\S+)$", re.IGNORECASE)
_BARE_ADDRESS = re.compile(r"@((?:localhost|[^@]*:\d+|(?:\d+\.){3}\d+|[^@]*/v1)(?:/\S*)?)$", re.I)
"""A host with a port, or whatever else no revision of a model is called."""


def _openai(rest: str) -> Engine:
    from safe_stepwise.engines.openai import OpenAIEngine

    address = _ADDRESS.search(rest)
    model = rest[: address.start()] if address else rest
    if not model or "://" in model:
        raise UserError(
            f"'openai:{rest}' names no model, or its address can't be read: "
            f"write {_EXAMPLES['openai']}"
        )
    bare = None if address else _BARE_ADDRESS.search(rest)
    if bare:
        meant = f"openai:{rest[: bare.start()]}@http://{bare[1]}"
        raise UserError(f"'openai:{rest}': its address lacks http://; write {meant}")
    return OpenAIEngine(model, address[1] if address else None)


def _models(rest: str) -> tuple[Model, Model | None]:
    base, plus, adapter = rest.partition("+")
    return Model.read(base), Model.read(adapter) if plus else None


def _vllm(rest: str) -> Engine:
    from safe_stepwise.engines.vllm import VLLMEngine

    return VLLMEngine(*_models(rest))


def _transformers(rest: str) -> Engine:
    from safe_stepwise.engines.transformers import TransformersEngine

    return TransformersEngine(*_models(rest))


def _symbolic(rest: str) -> Engine:
    from safe_stepwise.players.symbolic import SymbolicEngine

    return SymbolicEngine.read(rest)


def _mock(rest: str) -> Engine:
    from safe_stepwise.engines.mock import MockEngine

    return MockEngine.read(Path(rest))


_OPENERS = {
    "openai": _openai,
    "vllm": _vllm,
    "transformers": _transformers,
    "symbolic": _symbolic,
    "mock": _mock,
}


@asynccontextmanager
async def opened(
    specs: Mapping[str, str], cache: str | Path | None = None
) -> AsyncIterator[Mapping[str, Client]]:
    """A client for each who has a spec; equal specs share an engine, all share one cache.

    ``cache`` is the file of replies, if not the user's own. Raises ``UserError``, with the name of
    who it concerns, for a spec that can't be read, and for an engine that can't work.
    """
    engines: dict[str, Engine] = {}
    replies: ResponseCache | None = None
    try:
        for who, spec in specs.items():
            try:
                if spec not in engines:
                    engines[spec] = open_engine(spec)
                    await engines[spec].check()
            except UserError as error:
                raise UserError(f"{who}: {error}") from None
        replies = ResponseCache(Path(cache) if cache else default_cache())
        yield {who: Client(engines[spec], replies) for who, spec in specs.items()}
    finally:
        for engine in engines.values():
            await engine.close()
        if replies is not None:
            replies.close()
