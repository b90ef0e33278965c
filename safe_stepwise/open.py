"""Opens the engine or player that a spec string names: ``KIND``, or ``KIND:SETTING``.

The file of each kind describes its setting, as ``vllm:MODEL[@REVISION][+ADAPTER[@REVISION]]``.
"""

import difflib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from safe_stepwise.engines import entailment, mock, openai, servers, transformers, vllm
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Engine
from safe_stepwise.engines.client import Client, ResponseCache, check, default_cache
from safe_stepwise.engines.weights import Model, read_models
from safe_stepwise.errors import UserError, at_place


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engine: the function that opens it by the setting (the text after the colon), and an example spec."""

    example: str
    open: Callable[[str], Engine]
    read: Callable[[str], object] | None = None
    """The function that checks a setting as ``open`` does, without the engine's extra; None if ``open`` needs none."""


def _with_weights(example: str, engine: Callable[[Model, Model | None], Engine]) -> EngineKind:
    return EngineKind(example, lambda models: engine(*read_models(models)), read_models)


def _symbolic(settings: str) -> Engine:
    # Imported only here: checker and wordings take longer to import than everything else in this module.
    from safe_stepwise.players import judging, prompting, steps, symbolic

    roles = {role: prompting.by_facts(play, steps.facts_of) for role, play in prompting.ROLES.items()}
    roles |= {**steps.ROLES, **judging.ROLES}
    return symbolic.SymbolicEngine.read(settings, roles)


def _chance(settings: str) -> Engine:
    from safe_stepwise.players.symbolic import ChanceEngine  # as slow to import

    return ChanceEngine.read(settings)


def _checker(setting: str) -> Engine:
    from safe_stepwise.players.checker import CheckerEngine  # as slow to import

    return CheckerEngine(setting)


def _cascade(setting: str) -> Engine:
    from safe_stepwise.players.cascade import CascadeEngine, read_cascade

    return CascadeEngine(*read_cascade(setting, open_engine))


def _check_cascade(setting: str) -> None:
    from safe_stepwise.players.cascade import read_cascade

    read_cascade(setting, check_spec)


def _process_reward(model: str) -> Engine:
    from safe_stepwise.players.process_reward import ProcessRewardEngine

    return ProcessRewardEngine(Model.read(model))


KINDS: Mapping[str, EngineKind] = {
    "openai": EngineKind(openai.EXAMPLE, servers.read_servers),
    "vllm": _with_weights(vllm.EXAMPLE, vllm.VLLMEngine),
    "transformers": _with_weights(transformers.EXAMPLE, transformers.TransformersEngine),
    "nli": EngineKind(entailment.EXAMPLE, lambda model: entailment.EntailmentEngine(Model.read(model)), Model.read),
    "minicheck": EngineKind(
        entailment.MINICHECK_EXAMPLE, lambda model: entailment.MiniCheckEngine(Model.read(model)), Model.read
    ),
    "prm": EngineKind("prm:./my-reward-model", _process_reward, Model.read),
    "checker": EngineKind("checker", _checker),
    "cascade": EngineKind("cascade:checker,nli:./my-cross-encoder", _cascade, _check_cascade),
    "symbolic": EngineKind("symbolic", _symbolic),
    "chance": EngineKind("chance:reject=0.2", _chance),
    "mock": EngineKind(mock.EXAMPLE, mock.MockEngine.read),
}


def open_engine(spec: str) -> Engine:
    """Open the engine that a spec names, and import its libraries.

    Raises ``UserError`` for a spec that can't be read and for a missing extra; that of ``openai`` is
    missed only at the first request.
    """
    kind, setting = _split_spec(spec)
    return kind.open(setting)


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens engines as `open_engine` does, with a time limit in seconds for each call to a server; picklable."""

    timeout: float | None = None

    def __call__(self, spec: str) -> Engine:
        engine = open_engine(spec)
        for stage in getattr(engine, "stages", (engine,)):
            for server in getattr(stage, "servers", (stage,)):
                if self.timeout is not None and isinstance(server, openai.OpenAIEngine):
                    server.timeout = self.timeout
        return engine


def check_spec(spec: str) -> None:
    """Raise ``UserError`` for a spec that can't be read; the engine's extra need not be installed.

    >>> check_spec("vllm:Qwen/Qwen3-8B+./adapter")
    """
    kind, setting = _split_spec(spec)
    (kind.read or kind.open)(setting)


def _split_spec(spec: str) -> tuple[EngineKind, str]:
    if "\0" in spec or spec.splitlines() not in ([], [spec]):
        raise UserError(f"{spec!r} names no engine: it is more than one line of text")
    name, colon, setting = spec.partition(":")
    if (kind := KINDS.get(name)) is None:
        near = difflib.get_close_matches(name.lower(), KINDS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}{colon}{setting}? " if near else ""
        *examples, last = (kind_.example for kind_ in KINDS.values())
        raise UserError(f"{spec!r} names no engine; {hint}write {', '.join(examples)} or {last}")
    if not setting and ":" in kind.example:
        raise UserError(f"{spec!r} lacks what stands after the colon, as in {kind.example}")
    return kind, setting


@asynccontextmanager
async def open_clients(
    specs: Mapping[str, str],
    cache: str | Path | None = None,
    timeout: float | None = None,
    allowance: Allowance = AS_PROMPTED,
) -> AsyncIterator[Mapping[str, Client]]:
    """Open a client for each role of ``specs`` (engine specs by role), and close the engines after the context.

    Equal specs share an engine, and all clients share one cache: the file ``cache``, by default the user's own.
    ``timeout`` is that of `Opener`; ``allowance`` changes tokens, effort and examples by role. Raises ``UserError``
    with the role's name for a spec that can't be read, and for an engine that can't work.
    """
    engines: dict[str, Engine] = {}
    replies: ResponseCache | None = None
    try:
        for role, spec in specs.items():
            with at_place(role):
                if spec not in engines:
                    engines[spec] = Opener(timeout)(spec)
                    await check(engines[spec])
        replies = ResponseCache(Path(cache) if cache else default_cache())
        yield {role: Client(engines[spec], replies, allowance=allowance) for role, spec in specs.items()}
    finally:
        for engine in engines.values():
            await engine.close()
        if replies is not None:
            replies.close()
