"""The engine that runs vLLM in this process: continuous batching, prefix caching, LoRA adapters, schemas, choices.

Spec: ``vllm:MODEL[@REVISION][+ADAPTER[@REVISION]][?OPTION=VALUE&...]``, each model a Hub id or a local folder, with
the options of `OPTIONS`. vLLM computes only the part of a prompt that is not in its prefix cache (``Usage.cached``),
whose blocks have 16 tokens, on a CPU 32. What was computed with one adapter is a hit for the same adapter only. If
vLLM dies, the engine starts it again, once.

Engines that differ only in their adapters share one vLLM: open them all before the first is used, so that it has room
for every adapter. vLLM runs the model in a child process, so a script that opens this engine guards its main with
``if __name__ == "__main__"``. It takes nearly all of the accelerator's memory: for two models at once give each a
share (``?memory=0.45``). On a CPU set ``VLLM_CPU_KVCACHE_SPACE`` (GiB), which is 16 by default.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from weakref import WeakSet

from safe_stepwise.engines.base import Completion, EngineError, Request, completion
from safe_stepwise.engines.chat import Chat, LocalModel, SharedModel
from safe_stepwise.engines.probability import TOP, label_probability
from safe_stepwise.engines.weights import Model, Option, Weights, error_line, loading, read_count, read_share
from safe_stepwise.errors import UserError, require_modules
from safe_stepwise.records import Usage

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest
    from vllm.v1.engine.async_llm import AsyncLLM

EXAMPLE = "vllm:Qwen/Qwen3-8B"
OPTIONS = {
    "memory": Option(read_share, "0.45"),
    "max_model_len": Option(read_count, "8192"),
    "tensor_parallel_size": Option(read_count, "2"),
    "dtype": Option(str, "bfloat16"),
    "quantization": Option(str, "fp8"),
}
"""The options of a spec: the share of the accelerator's memory, which changes no reply, and arguments of vLLM."""
_DEAD = "vLLM's process has died; its last words are above"


class _Process(SharedModel):
    """A vLLM with room for adapters (their ranks in ``ranks``); it runs (``llm``) from the first call on."""

    def __init__(self, base: object, ranks: Mapping[Weights, int]) -> None:
        super().__init__(base)
        self.rank = max(ranks.values(), default=0)
        self.options = {"enable_lora": True, "max_loras": len(ranks), "max_lora_rank": self.rank} if ranks else {}
        self.llm: AsyncLLM | None = None
        self.chat: Chat | None = None
        self.starting = asyncio.Lock()
        self.adapters: dict[Weights, LoRARequest] = {}

    def stop(self) -> None:
        """End vLLM's process, which can be started again."""
        llm, self.llm = self.llm, None
        self.adapters.clear()
        if llm is not None:
            llm.shutdown()

    async def load_adapter(self, llm: AsyncLLM, adapter: Weights) -> LoRARequest:
        """Load an adapter if it isn't loaded yet, so that one that doesn't fit fails before any work is done."""
        from vllm.lora.request import LoRARequest

        if adapter not in self.adapters:
            # Name and path are part of the prefix cache's keys: with the revision in the name, a retrained adapter
            # never reuses the keys and values of its predecessor. vLLM tells adapters apart by their numbers.
            name = f"{adapter.name}@{adapter.revision}"
            lora = LoRARequest(name, next(_NUMBERS), str(adapter.folder))
            with loading(adapter, "vLLM can't load it"):
                await llm.add_lora(lora)
            self.adapters[adapter] = lora
        return self.adapters[adapter]

    async def bury(self, llm: AsyncLLM) -> EngineError:
        """Close a vLLM whose process has died, so that the next request starts another; return the error."""
        async with self.starting:
            if self.llm is llm:  # for the first of the lost requests
                self.deaths += 1
                with suppress(Exception):  # a dead process may fail to close
                    self.stop()
        return self.loss_error(_DEAD)


class _Session(NamedTuple):
    """What an engine's requests need of a vLLM that runs."""

    process: _Process
    llm: AsyncLLM
    chat: Chat
    lora: LoRARequest | None


class VLLMEngine(LocalModel):
    """vLLM in this process; ``memory`` is its share of the accelerator's, ``options`` are further arguments of vLLM.

    The constructor looks for the model, and the first call loads it, so that a run whose replies are all in the
    response cache never starts vLLM.
    """

    def __init__(
        self, model: Model, adapter: Model | None = None, *, memory: float | None = None, **options: Any
    ) -> None:
        require_modules("the vllm engine", "vLLM", "vllm", "vllm")
        settings = {"dtype": "auto", "max_model_len": None, **options}
        super().__init__("vllm", model, adapter, options, **settings)
        self._options = settings | ({"gpu_memory_utilization": memory} if memory else {})
        self._base = (self._model, self._options)
        self._process: _Process | None = None
        _ENGINES.add(self)

    async def check(self) -> None:
        """Load the model and adapter; raise ``UserError`` if that fails."""
        await self._started()

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Send all requests at once: vLLM batches them with those under way."""
        try:
            session = await self._started()
        except EngineError as error:  # it died twice
            return [error] * len(requests)
        return await asyncio.gather(*(_complete(session, request) for request in requests))

    async def close(self) -> None:
        """End vLLM's process, unless another engine uses it."""
        _ENGINES.discard(self)
        process, self._process = self._process, None
        if process is not None and process.leave(self):
            process.stop()

    async def _started(self) -> _Session:
        process = self._process = self._process or self._find_process()
        process.users.add(self)
        async with process.starting:
            if process.is_dead:
                raise process.loss_error(_DEAD)
            chat = process.chat = process.chat or Chat.load(self._model)
            llm = process.llm = process.llm or self._start(process.options)
            lora = await process.load_adapter(llm, self.adapter) if self.adapter else None
            return _Session(process, llm, chat, lora)

    def _find_process(self) -> _Process:
        """Return the vLLM that engines of the same base use, or a new one with room for the adapters of them all."""
        ranks = {self.adapter: _served_rank(self.adapter)} if self.adapter else {}
        for process in _Process.of_base(self._base):
            if process.rank >= max(ranks.values(), default=0):
                return process
        for engine in _ENGINES:
            if engine.adapter and engine._base == self._base:
                with suppress(UserError):  # which that engine's own first call raises
                    ranks[engine.adapter] = _served_rank(engine.adapter)
        return _Process(self._base, ranks)

    def _start(self, lora: Mapping[str, Any]) -> AsyncLLM:
        # Its hundred lines of log would break the progress bar; set the variable to read them.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # of its child process
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.async_llm import AsyncLLM

        options = {**(_for_cpu() if current_platform.is_cpu() else {}), **self._options}
        with loading(self.name, "vLLM can't load it"):
            return AsyncLLM.from_engine_args(
                AsyncEngineArgs(
                    model=self._model.place,
                    revision=self._model.commit,
                    tokenizer_revision=self._model.commit,
                    trust_remote_code=False,
                    enable_prefix_caching=True,
                    disable_log_stats=True,
                    **lora,
                    **options,
                )
            )


_ENGINES: WeakSet[VLLMEngine] = WeakSet()
"""The engines that are not closed yet, whether they were used or not."""
_NUMBERS = itertools.count(1)
"""The numbers of requests and adapters: those of the same vLLM must differ."""


def _for_cpu() -> dict[str, Any]:
    """Return the options that differ from vLLM's defaults on a CPU.

    Blocks have 32 tokens, not 128, as tokens that do not fill a block are computed again. The scheduler and the model
    share a process: two would spin while they wait for each other (one question of ``bench_replay`` on one thread took
    78 s of CPU time in one process, 99 s in two).
    """
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    return {"block_size": 32}


async def _complete(session: _Session, request: Request) -> Completion | EngineError:
    from vllm.exceptions import VLLMClientError
    from vllm.inputs import tokens_input
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        prompt = tokens_input(session.chat.encode(request.messages, request.sampling.effort))
        replies = session.llm.generate(prompt, _sampling(request), f"{next(_NUMBERS)}", lora_request=session.lora)
        (reply,) = [reply async for reply in replies]  # FINAL_ONLY: there is one
        return _completion(reply, request.labels)
    except EngineError as error:
        return error
    except EngineDeadError:
        return await session.process.bury(session.llm)
    except (VLLMClientError, ValueError) as error:  # too long a prompt, an unusable schema
        return EngineError(error_line(error))
    except Exception as error:  # vLLM says that these may be recoverable
        cause = error.__cause__ or error
        return EngineError(f"{type(cause).__name__}: {error_line(cause)}", transient=True)


def _served_rank(adapter: Weights) -> int:
    """Return the smallest ``max_lora_rank`` of vLLM that holds the adapter; raise ``UserError`` if there is none."""
    from vllm.config.lora import MaxLoRARanks

    try:
        config = json.loads((adapter.folder / "adapter_config.json").read_text("utf-8"))
        rank = max([int(config["r"]), *map(int, (config.get("rank_pattern") or {}).values())])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{adapter}: its adapter_config.json names no LoRA rank") from None
    if (served_rank := min((r for r in get_args(MaxLoRARanks) if r >= rank), default=None)) is None:
        raise UserError(f"{adapter}: rank {rank} is more than vLLM serves; merge it into the model")
    return int(served_rank)


def _sampling(request: Request) -> SamplingParams:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    sampling, structured = request.sampling, None
    if request.choices:
        structured = StructuredOutputsParams(choice=list(request.choices))
    elif request.schema:
        structured = StructuredOutputsParams(json=request.schema.text)
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        max_tokens=sampling.max_tokens,
        seed=sampling.seed,
        stop=list(sampling.stop),
        repetition_penalty=sampling.repetition_penalty,
        structured_outputs=structured,
        logprobs=TOP if request.labels else None,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _completion(reply: RequestOutput, labels: Sequence[str]) -> Completion:
    output = reply.outputs[0]
    usage = Usage(len(reply.prompt_token_ids or ()), reply.num_cached_tokens or 0, len(output.token_ids))
    read = completion(output.text, usage, output.finish_reason)
    if not labels or not output.logprobs or read.ending != "whole":
        return read
    likely_tokens = [{t: (p.decoded_token or "", p.logprob) for t, p in likely.items()} for likely in output.logprobs]
    texts = [likely[token][0] for token, likely in zip(output.token_ids, likely_tokens, strict=True)]
    return replace(read, score=label_probability(texts, lambda index: likely_tokens[index].values(), labels))
