"""Transformers, on the CPU or one GPU: for a machine without a server, and to compare with.

Spec: ``transformers:MODEL[@REVISION][+ADAPTER[@REVISION]]``, each a Hub id or a local folder; a
folder whose only weights are one ``*.gguf`` works too. Calls that are made at the same time are
answered as one batch. Nothing is kept from one batch to the next, so ``Usage.cached`` is always 0,
and a JSON schema is not enforced: the prompt has to ask for JSON, and the caller to read with care.
Replies that a request lists are: only tokens that lead to one of them can be generated.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from safe_stepwise.engines.base import Completion, EngineError, Request, completion, require_modules
from safe_stepwise.engines.chat import Chat, LocalModel, escape_control
from safe_stepwise.engines.weights import Model, Weights, error_line, loading
from safe_stepwise.errors import UserError
from safe_stepwise.records import Usage

if TYPE_CHECKING:
    import torch

EXAMPLE = "transformers:./my-model"
BATCH = 16
"""Requests at a time; halved as often as the accelerator's memory asks for it."""


class TransformersEngine(LocalModel):
    """See the module docstring; the model is found at once and loaded with the first call."""

    def __init__(self, model: Model, adapter: Model | None = None, *, batch: int = BATCH) -> None:
        modules = ("torch", "transformers", *(("peft",) if adapter else ()))
        require_modules("transformers", "torch and transformers", "train", *modules)
        import torch

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        # On a CPU float32 was twice as fast as bfloat16, and it is exact enough that a greedy reply
        # hardly ever depends on what else is in its batch.
        dtype = "auto" if self._device == "cuda" else "float32"
        super().__init__("transformers", model, adapter, dtype=dtype)
        self._batch = batch
        self._runner: _Runner | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Completion | EngineError]]] = []
        self._answering: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "transformers")
        self._closed = threading.Event()

    async def check(self) -> None:
        """Load the model and adapter; raise ``UserError`` if that fails."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._loaded)

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Queued with whatever else waits, and answered in batches, first come first served."""
        loop = asyncio.get_running_loop()
        mine: list[tuple[Request, asyncio.Future[Completion | EngineError]]]
        mine = [(request, loop.create_future()) for request in requests]
        self._waiting += mine
        if self._answering is None or self._answering.done():
            self._answering = loop.create_task(self._answer_waiting())
        return await asyncio.gather(*(future for _, future in mine))

    async def close(self) -> None:
        """Cut the running batch short, and free the memory; whoever still waits is cancelled."""
        self._closed.set()
        self._thread.shutdown(cancel_futures=True)
        self._runner = None

    async def _answer_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            await asyncio.sleep(0)  # those that ask in the same turn of the loop come along
            rows, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            rows = [(request, future) for request, future in rows if not future.done()]
            asked = [request for request, _ in rows]
            found: Sequence[Completion | EngineError | UserError]
            try:
                found = await loop.run_in_executor(self._thread, self._answers, asked)
            except _CutError:
                for _, future in (*rows, *self._waiting):
                    future.cancel()
                return
            except UserError as error:  # nothing could be loaded
                found = [error] * len(rows)
            except Exception as error:  # a fault in one batch leaves the next one alone
                found = [self._fault(error)] * len(rows)
            for (_, future), one in zip(rows, found, strict=True):
                if future.done():  # its caller was cancelled
                    continue
                if isinstance(one, UserError):
                    future.set_exception(one)
                else:
                    future.set_result(one)

    def _fault(self, error: Exception) -> EngineError:
        """The error of a batch; after the first one that memory is not the reason of the model is loaded anew."""
        reason = f"{type(error).__name__}: {error_line(error)}"
        if "OutOfMemory" in reason or self.is_dead:
            return EngineError(reason)
        self.deaths += 1
        if not self.is_dead:
            self._runner = None
        return self.loss_error(reason)

    def _answers(self, requests: Sequence[Request]) -> list[Completion | EngineError]:
        """In the worker thread: what can't be asked is sorted out, the rest is one batch."""
        runner = self._loaded()
        rows = [runner.row(request) for request in requests]
        _in_memory(runner, [row for row in rows if isinstance(row, _Row)])
        return [runner.completion(row) if isinstance(row, _Row) else row for row in rows]

    def _loaded(self) -> _Runner:
        if self._runner is None:
            dtype = self.identity["dtype"]
            self._runner = _Runner.load(self._model, self.adapter, self._device, dtype)
            _cut_at(self._closed, self._runner.model)
        return self._runner


@dataclass(slots=True)
class _Row:
    """One request in a batch. ``tokens`` is what was generated so far."""

    request: Request
    prompt: list[int]
    limit: int
    tokens: list[int] = field(default_factory=list)
    done: bool = False
    stopped: bool = False
    chance: torch.Generator | None = None
    choices: Trie | None = None


@dataclass(frozen=True, slots=True)
class _Runner:
    """A loaded model and how to generate a batch with it."""

    chat: Chat
    model: Any
    context: int
    ends: frozenset[int]
    """The tokens that end a turn."""

    @classmethod
    def load(cls, weights: Weights, adapter: Weights | None, device: str, dtype: str) -> _Runner:
        chat = Chat.load(weights)
        with loading(weights):
            model = _load(weights, dtype)
        ends = _ends(model, chat)
        context = model.config.get_text_config().max_position_embeddings
        if adapter:
            from peft import PeftModel

            with loading(adapter):
                model = PeftModel.from_pretrained(model, str(adapter.folder))
        return cls(chat, model.to(device).eval(), context, ends)

    def row(self, request: Request) -> _Row | EngineError:
        """The row, or why there is none: a chat refused, or no room for an answer."""
        import torch

        if request.sampling.repetition_penalty != 1:
            return EngineError("transformers: knows no repetition penalty; leave out --sampling paper")
        try:
            prompt = self.chat.encode(request.messages, request.sampling.effort)
        except EngineError as error:
            return error
        room = self.context - len(prompt)
        if room < 1:
            return EngineError(f"the prompt has {len(prompt):,} tokens, the context holds {self.context:,}")
        sampling = request.sampling
        row = _Row(request, prompt, min(room, sampling.max_tokens))
        if sampling.temperature > 0:
            row.chance = torch.Generator().manual_seed(sampling.seed)
        if request.choices:
            row.choices = self.trie(request.choices)
        return row

    def trie(self, choices: Sequence[str]) -> Trie:
        """The replies as tokens, each to its end; in a prompt's place they would be so, too."""
        encode = self.chat.tokenizer.encode
        said = [escape_control(choice, self.chat.control) for choice in choices]
        return Trie(encode(text, add_special_tokens=False) for text in said)

    def run(self, rows: Sequence[_Row]) -> None:
        """Generate until every row is done."""
        import torch
        from transformers import GenerationConfig

        if not rows:
            return
        pad = min(self.ends)  # masked, so any token will do
        width = max(len(row.prompt) for row in rows)
        ids = [[pad] * (width - len(row.prompt)) + row.prompt for row in rows]
        mask = [[0] * (width - len(row.prompt)) + [1] * len(row.prompt) for row in rows]
        with torch.inference_mode():
            self.model.generate(
                input_ids=torch.tensor(ids, device=self.model.device),
                attention_mask=torch.tensor(mask, device=self.model.device),
                generation_config=GenerationConfig(
                    do_sample=False,  # _sampled has drawn already
                    max_new_tokens=max(row.limit for row in rows),
                    eos_token_id=sorted(self.ends),
                    pad_token_id=pad,
                ),
                logits_processor=[lambda _, scores: _sampled(rows, self._held(rows, scores))],
                stopping_criteria=[lambda ids, _, **__: self._ended(rows, ids)],
            )

    def _held(self, rows: Sequence[_Row], scores: torch.Tensor) -> torch.Tensor:
        """Leaves possible only what leads to a listed reply, where there is a list."""
        for number, row in enumerate(rows):
            if row.choices is not None and not row.done:
                following, whole = row.choices.after(row.tokens)
                allowed = [*following, *(self.ends if whole else ())]
                kept = scores[number, allowed]
                scores[number] = -float("inf")
                scores[number, allowed] = kept
        return scores

    def _ended(self, rows: Sequence[_Row], ids: torch.Tensor) -> torch.Tensor:
        """Notes each row's new token, and says which are done: end of turn, stop string, limit."""
        import torch

        for row, token in zip(rows, ids[:, -1].tolist(), strict=True):
            if not row.done:
                row.tokens.append(token)
                row.stopped = token in self.ends or self._said_stop(row)
                row.done = row.stopped or len(row.tokens) >= row.limit
        return torch.tensor([row.done for row in rows], device=ids.device)

    def _said_stop(self, row: _Row) -> bool:
        stops = row.request.sampling.stop
        if not stops:
            return False
        # A token holds a byte at least, so a stop string that ends now began within these.
        reach = max(len(stop.encode()) for stop in stops) + 4
        tail = self.chat.decode(row.tokens[-reach:])
        return any(stop in tail for stop in stops)

    def completion(self, row: _Row) -> Completion:
        text = self.chat.decode(row.tokens)
        cuts = [at for stop in row.request.sampling.stop if (at := text.find(stop)) >= 0]
        usage = Usage(prompt=len(row.prompt), completion=len(row.tokens))
        return completion(text[: min(cuts, default=None)], usage, "stop" if row.stopped else "length")


class _CutError(Exception):
    """The engine was closed while a batch was running."""


def _cut_at(closed: threading.Event, model: Any) -> None:
    """Once it is ``closed`` let the model do no further layer: a prompt alone may take minutes."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    def look(*_: Any) -> None:
        if closed.is_set():
            raise _CutError

    layers = [one for one in model.modules() if isinstance(one, GradientCheckpointingLayer)]
    for module in (model.get_input_embeddings(), *layers):
        module.register_forward_pre_hook(look)


def _in_memory(runner: _Runner, rows: Sequence[_Row]) -> None:
    """Run a batch, in halves if the accelerator's memory doesn't hold it."""
    import torch

    try:
        runner.run(rows)
        return
    except torch.OutOfMemoryError:
        if len(rows) == 1:
            raise
    # Outside of the handler, which keeps what the failed batch had allocated.
    torch.cuda.empty_cache()
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        for row in part:
            row.tokens.clear()
            row.done = row.stopped = False
            if row.chance is not None:
                row.chance.manual_seed(row.request.sampling.seed)
        _in_memory(runner, part)


def _sampled(rows: Sequence[_Row], scores: torch.Tensor) -> torch.Tensor:
    """Draws each row's next token with its own temperature and seed, and leaves no other possible.

    So greedy and sampled rows share a batch, and what a seed gives does not depend on the company.
    """
    for number, row in enumerate(rows):
        if row.chance is not None and not row.done:
            sampling = row.request.sampling
            token = _draw(scores[number], sampling.temperature, sampling.top_p, row.chance)
            scores[number] = -float("inf")
            scores[number, token] = 0
    return scores


def _draw(scores: torch.Tensor, temperature: float, top_p: float, chance: torch.Generator) -> torch.Tensor:
    """One token of the smallest set of likeliest ones that hold ``top_p`` of the probability."""
    import torch

    likely = torch.softmax(scores.float().cpu() / temperature, dim=-1)
    ordered, tokens = likely.sort(descending=True, stable=True)
    ordered[ordered.cumsum(0) - ordered >= top_p] = 0  # the likeliest always stays
    return tokens[torch.multinomial(ordered, 1, generator=chance)]


def _load(weights: Weights, dtype: str) -> Any:
    from transformers import AutoModelForCausalLM, GgufConfig
    from transformers.utils import logging

    # The libraries' own bars and hints would tear our progress bar.
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    extra: dict[str, Any] = {}
    if weights.gguf:
        # Without `dequantize` the linear layers keep the file's 4-bit blocks.
        config = GgufConfig(gguf_file=weights.gguf, dequantize=True)
        extra = {"gguf_file": weights.gguf, "quantization_config": config}
    return AutoModelForCausalLM.from_pretrained(weights.place, **weights.pinned, dtype=dtype, **extra)


def _ends(model: Any, chat: Chat) -> frozenset[int]:
    """A model's end tokens, its generation settings being set to nothing else.

    ``generate`` would fill in what we leave open (a repetition penalty, say), so that "greedy"
    meant something else here than under the other engines.
    """
    from transformers import GenerationConfig

    named = model.generation_config.eos_token_id
    named = named if isinstance(named, list) else [named]
    model.generation_config = GenerationConfig()
    return frozenset(end for end in (*named, chat.tokenizer.eos_token_id) if end is not None)


_END = -1
"""Stands where a reply may end; no token has this number."""


class Trie:
    """Token sequences by their beginnings.

    >>> replies = Trie([[5, 7], [5, 8, 9], [5]])
    >>> [(sorted(following), whole) for following, whole in map(replies.after, ([], [5], [5, 8]))]
    [([5], False), ([7, 8], True), ([9], False)]
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        """Raises ``ValueError`` for a sequence without a token, which is no reply."""
        self._root: dict[int, Any] = {}
        for sequence in sequences:
            if not sequence:
                raise ValueError("a reply to choose has no token")
            node = self._root
            for token in sequence:
                node = node.setdefault(token, {})
            node[_END] = {}

    def after(self, said: Iterable[int]) -> tuple[Collection[int], bool]:
        """The tokens that may follow, and whether what was said is a whole sequence.

        Raises ``KeyError`` for what is the beginning of none.
        """
        node = self._root
        for token in said:
            node = node[token]
        return [token for token in node if token != _END], _END in node
