"""Opens the engine or player that a spec string names: ``KIND``, or ``KIND:SETTING``.

The file of each kind describes its setting, as ``vllm:MODEL[@REVISION][+ADAPTER[@REVISION]][?OPTION=VALUE]``.
"""

import difflib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from safe_stepwise.engines import entailment, mock, openai, servers, transformers, vllm
from safe_stepwise.engines.base import AS_PROMPTED, Allowance, Engine, models_of
from safe_stepwise.engines.client import Client, ResponseCache, check, default_cache
from safe_stepwise.engines.weights import Model, Option, read_models
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.store import files


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engine: the function that opens it by the setting (the text after the colon), and an example spec."""

    example: str
    open: Callable[[str], Engine]
    read: Callable[[str], object] | None = None
    """The function that checks a setting as ``open`` does, without the engine's extra; None if ``open`` needs none."""


def _with_weights(example: str, engine: Callable[..., Engine], options: Mapping[str, Option]) -> EngineKind:
    def open_local(setting: str) -> Engine:
        model, adapter, values = read_models(setting, options)
        return engine(model, adapter, **values)

    return EngineKind(example, open_local, partial(read_models, options=options))


def _symbolic(settings: str) -> Engine:
    # Imported only here: checker and wordings take longer to import than everything else in this module.
    from safe_stepwise.players import judging, prompting, steps, symbolic

    roles = {role: prompting.role_from_play(play, steps.facts_of) for role, play in prompting.ROLES.items()}
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


def _votes(setting: str) -> Engine:
    from safe_stepwise.players.voting import VotingEngine, read_votes

    return VotingEngine(*read_votes(setting, open_engine))


def _check_votes(setting: str) -> None:
    from safe_stepwise.players.voting import read_votes

    read_votes(setting, check_spec)


def _process_reward(model: str) -> Engine:
    from safe_stepwise.players.process_reward import ProcessRewardEngine

    return ProcessRewardEngine(Model.read(model))


def _encoder(model: str) -> Engine:
    from safe_stepwise.players.encoder import EncoderEngine

    return EncoderEngine(Model.read(model))


def small_verifier() -> Path:
    """Return the folder of what ``make verifier`` trained: ``$SAFE_STEPWISE_VERIFIER``, or one in the user's cache."""
    return Path(os.environ.get("SAFE_STEPWISE_VERIFIER") or default_cache().with_name("verifier")).expanduser()


def install_small_verifier(model: str) -> None:
    """Copy a model's folder to where ``small`` finds it, in place of an earlier one, and print that place."""
    place = small_verifier()
    with files.write_folder(place) as folder:
        shutil.copytree(model, folder, dirs_exist_ok=True)
        files.remove_folder(place)
    print(place)


def _small(setting: str) -> Engine:
    from safe_stepwise.players.encoder import EncoderEngine

    _check_small(setting)
    folder = small_verifier()
    if not folder.is_dir():
        raise UserError(
            f"small: no verifier in {folder}; `make verifier` in a checkout trains one on two cores, or name a model "
            "with encoder:FOLDER"
        )
    return EncoderEngine(Model(str(folder)))


def _check_small(setting: str) -> None:
    if setting:
        raise UserError(f"small:{setting}: write small, or encoder:{setting}")


KINDS: Mapping[str, EngineKind] = {
    "openai": EngineKind(openai.EXAMPLE, servers.read_servers),
    "vllm": _with_weights(vllm.EXAMPLE, vllm.VLLMEngine, vllm.OPTIONS),
    "transformers": _with_weights(transformers.EXAMPLE, transformers.TransformersEngine, transformers.OPTIONS),
    "nli": EngineKind(entailment.EXAMPLE, lambda model: entailment.EntailmentEngine(Model.read(model)), Model.read),
    "minicheck": EngineKind(
        entailment.MINICHECK_EXAMPLE, lambda model: entailment.MiniCheckEngine(Model.read(model)), Model.read
    ),
    "prm": EngineKind("prm:./my-reward-model", _process_reward, Model.read),
    "encoder": EngineKind("encoder:./build/verifier/model", _encoder, Model.read),
    "small": EngineKind("small", _small, _check_small),
    "checker": EngineKind("checker", _checker),
    "cascade": EngineKind("cascade:checker,nli:./my-cross-encoder", _cascade, _check_cascade),
    "votes": EngineKind("votes:5:openai:MODEL@http://localhost:8000/v1", _votes, _check_votes),
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
        for model in models_of(engine):
            if self.timeout is not None and isinstance(model, openai.OpenAIEngine):
                model.timeout = self.timeout
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

    Equal specs share an engine, specs that differ in their adapters share its model in memory, and all clients share
    one cache: the file ``cache``, by default the user's own.
    ``timeout`` is that of `Opener`; ``allowance`` changes tokens, effort and examples by role. Raises ``UserError``
    with the role's name for a spec that can't be read, and for an engine that can't work.
    """
    engines: dict[str, Engine] = {}
    roles: dict[str, str] = {}
    replies: ResponseCache | None = None
    try:
        for role, spec in specs.items():
            with at_place(role):
                if spec not in engines:
                    engines[spec], roles[spec] = Opener(timeout)(spec), role
        for spec, engine in engines.items():  # all are open by now: a shared model has room for every adapter
            with at_place(roles[spec]):
                await check(engine)
        replies = ResponseCache(Path(cache) if cache else default_cache())
        yield {role: Client(engines[spec], replies, allowance=allowance) for role, spec in specs.items()}
    finally:
        for engine in engines.values():
            await engine.close()
        if replies is not None:
            replies.close()
