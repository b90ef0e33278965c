"""The engine that runs vLLM in this process: continuous batching, prefix caching, LoRA adapters, schemas, choices.

Spec: ``vllm:MODEL[@REVISION][+ADAPTER[@REVISION]]``, each a Hub id or a local folder. vLLM computes only the part of a
prompt that is not in its prefix cache (``Usage.cached``), whose blocks have 16 tokens, on a CPU 32. If it dies, the
engine starts it again, once.

vLLM runs the model in a child process, so a script that opens this engine guards its main with ``if __name__ ==
"__main__"``. It takes nearly all of the accelerator's memory: to use two models at once, serve them (``vllm serve``)
and name them by ``openai:``. On a CPU set ``VLLM_CPU_KVCACHE_SPACE`` (GiB), which is 16 by default.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from safe_stepwise.engines.base import Completion, EngineError, Request, completion, require_modules
from safe_stepwise.engines.chat import Chat, LocalModel
from safe_stepwise.engines.probability import TOP, label_probability
from safe_stepwise.engines.weights import Model, Weights, error_line, loading
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

if TYPE_CHECKING:
    from vllm import RequestOutput, SamplingParams
    from vllm.lora.request import LoRARequest
    from vllm.v1.engine.async_llm import AsyncLLM

EXAMPLE = "vllm:Qwen/Qwen3-8B"
_DEAD = "vLLM's process has died; its last words are above"


class VLLMEngine(LocalModel):
    """vLLM in this process; ``options`` are further arguments of its ``AsyncEngineArgs``.

    The constructor looks for the model, and the first call loads it, so that a run whose replies are all in the
    response cache never starts vLLM.
    """

    def __init__(self, model: Model, adapter: Model | None = None, **options: Any) -> None:
        require_modules("vllm", "vLLM", "vllm", "vllm")
        self._options = {"dtype": "auto", "max_model_len": None, **options}
        super().__init__("vllm", model, adapter, **self._options)
        self._llm: AsyncLLM | None = None
        self._chat: Chat | None = None
        self._lora: LoRARequest | None = None
        self._starting = asyncio.Lock()
        self._numbers = itertools.count()

    async def check(self) -> None:
        """Load the model and adapter; raise ``UserError`` if that fails."""
        await self._started()

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Send all requests at once: vLLM batches them with those under way."""
        try:
            llm, chat = await self._started()
        except EngineError as error:  # it died twice
            return [error] * len(requests)
        return await asyncio.gather(*(self._complete(llm, chat, request) for request in requests))

    async def close(self) -> None:
        """End vLLM's process."""
        if self._llm is not None:
            self._llm.shutdown()
            self._llm = None

    async def _complete(self, llm: AsyncLLM, chat: Chat, request: Request) -> Completion | EngineError:
        from vllm.exceptions import VLLMClientError
        from vllm.inputs import tokens_input
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            prompt = tokens_input(chat.encode(request.messages, request.sampling.effort))
            replies = llm.generate(prompt, _sampling(request), f"{next(self._numbers)}", lora_request=self._lora)
            (reply,) = [reply async for reply in replies]  # FINAL_ONLY: there is one
            return _completion(reply, request.labels)
        except EngineError as error:
            return error
        except EngineDeadError:
            return await self._bury(llm)
        except (VLLMClientError, ValueError) as error:  # too long a prompt, an unusable schema
            return EngineError(error_line(error))
        except Exception as error:  # vLLM says that these may be recoverable
            cause = error.__cause__ or error
            return EngineError(f"{type(cause).__name__}: {error_line(cause)}", transient=True)

    async def _bury(self, llm: AsyncLLM) -> EngineError:
        """Close a vLLM whose process has died, so that the next request starts another; return the error."""
        async with self._starting:
            if self._llm is llm:  # for the first of the lost requests
                self.deaths += 1
                with suppress(Exception):  # a dead process may fail to close
                    await self.close()
                self._llm = None
        return self.loss_error(_DEAD)

    async def _started(self) -> tuple[AsyncLLM, Chat]:
        async with self._starting:
            if self.is_dead:
                raise self.loss_error(_DEAD)
            if self._llm is None or self._chat is None:
                self._chat = Chat.load(self._model)
                self._llm = self._start()
                try:
                    if self.adapter:
                        self._lora = await _load_adapter(self._llm, self.adapter)
                except BaseException:
                    await self.close()  # or another request would be answered without the adapter
                    raise
            return self._llm, self._chat

    def _start(self) -> AsyncLLM:
        # Its hundred lines of log would break the progress bar; set the variable to read them.
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("PYTHONWARNINGS", "ignore::FutureWarning")  # of its child process
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.platforms import current_platform
        from vllm.v1.engine.async_llm import AsyncLLM

        options = {**(_for_cpu() if current_platform.is_cpu() else {}), **self._options}
        lora = {}
        if self.adapter:
            lora = {"enable_lora": True, "max_lora_rank": _served_rank(self.adapter)}
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


def _for_cpu() -> dict[str, Any]:
    """Return the options that differ from vLLM's defaults on a CPU.

    Blocks have 32 tokens, not 128, as tokens that do not fill a block are computed again. The scheduler and the model
    share a process: two would spin while they wait for each other (one question of ``bench_replay`` on one thread took
    78 s of CPU time in one process, 99 s in two).
    """
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    return {"block_size": 32}


async def _load_adapter(llm: AsyncLLM, adapter: Weights) -> LoRARequest:
    """Load the adapter, so that one that doesn't fit fails before any work is done."""
    from vllm.lora.request import LoRARequest

    # This name is part of the prefix cache's keys: with the revision in it, a retrained adapter never reuses the keys
    # and values of its predecessor. The number must be unique to the adapter; commits and digests are hexadecimal.
    number = 1 + int(adapter.revision[:7], 16)
    lora = LoRARequest(f"{adapter.name}@{adapter.revision}", number, str(adapter.folder))
    with loading(adapter, "vLLM can't load it"):
        await llm.add_lora(lora)
    return lora


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
    usage = Usage(
        prompt=len(reply.prompt_token_ids or ()), cached=reply.num_cached_tokens or 0, completion=len(output.token_ids)
    )
    read = completion(output.text, usage, output.finish_reason)
    if not labels or not output.logprobs or read.ending != "whole":
        return read
    likely_tokens = [{t: (p.decoded_token or "", p.logprob) for t, p in likely.items()} for likely in output.logprobs]
    texts = [likely[token][0] for token, likely in zip(output.token_ids, likely_tokens, strict=True)]
    return replace(read, score=label_probability(texts, lambda index: likely_tokens[index].values(), labels))
