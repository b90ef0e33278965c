"""The engine that runs Transformers on the CPU or one GPU, for machines without a server and for comparisons.

Spec: ``transformers:MODEL[@REVISION][+ADAPTER[@REVISION]][?dtype=bfloat16]``, models as Hub ids or local folders.
Requests at the same time form a batch. Engines that differ only in their adapters share the model: each batch runs
with the adapter of its engine. There is no prefix cache, so ``Usage.cached`` is always 0, and no enforced JSON schema:
the prompt has to demand JSON. Choices of a request are enforced: only tokens that lead to one of them are generated.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, cast

from safe_stepwise.engines.base import Completion, EngineError, Request, completion
from safe_stepwise.engines.chat import Chat, LocalModel, SharedModel, escape_control
from safe_stepwise.engines.probability import TOP, label_probability
from safe_stepwise.engines.weights import Model, Option, Weights, error_line, loading
from safe_stepwise.errors import UserError, require_modules
from safe_stepwise.records import Usage

if TYPE_CHECKING:
    import torch

EXAMPLE = "transformers:./my-model"
OPTIONS = {"dtype": Option(str, "bfloat16")}
BATCH = 16
"""Requests of a batch; halved as often as the accelerator's memory requires."""


class TransformersEngine(LocalModel):
    """An engine of Transformers; the constructor looks for the model, and the first call loads it."""

    kind = "transformers"

    def __init__(
        self, model: Model, adapter: Model | None = None, *, batch: int = BATCH, dtype: str | None = None
    ) -> None:
        modules = ("torch", "transformers", *(("peft",) if adapter else ()))
        require_modules(f"the {self.kind} engine", "torch and transformers", "train", *modules)
        import torch

        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        # On a CPU float32 was twice as fast as bfloat16, and it is so exact that a greedy reply hardly ever depends on
        # the other rows of its batch.
        usual = "auto" if self._device == "cuda" else "float32"
        super().__init__(self.kind, model, adapter, {"dtype": dtype} if dtype else {}, dtype=dtype or usual)
        self._batch = batch
        self._shared: LoadedModel | None = None
        self._waiting: list[tuple[Request, asyncio.Future[Completion | EngineError]]] = []
        self._answering: asyncio.Task[None] | None = None
        self._closed = threading.Event()

    async def check(self) -> None:
        """Load the model and adapter; raise ``UserError`` if that fails."""
        shared = self._join()
        await asyncio.get_running_loop().run_in_executor(shared.thread, self._loaded, shared)

    def _join(self) -> LoadedModel:
        """Return the model, which the engines of the same base share."""
        if self._shared is None:
            base = (self.kind, self._model, self.identity["dtype"])
            self._shared = next(LoadedModel.of_base(base), None) or LoadedModel(base)
            self._shared.users.add(self)
        return self._shared

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        """Queue the requests, which are answered in batches, first come first served."""
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Completion | EngineError]] = [loop.create_future() for _ in requests]
        self._waiting += zip(requests, futures, strict=True)
        if self._answering is None or self._answering.done():
            self._answering = loop.create_task(self._answer_waiting())
        return await asyncio.gather(*futures)

    async def close(self) -> None:
        """Stop the running batch, cancel the waiting requests, and free the memory if no other engine uses it."""
        self._closed.set()
        if self._answering is not None and not self._answering.done():
            self._answering.cancel()
            await asyncio.wait([self._answering])
        for _, future in self._waiting:
            future.cancel()
        shared, self._shared = self._shared, None
        if shared is not None and shared.leave(self):
            shared.thread.shutdown(cancel_futures=True)
            shared.runner = None

    async def _answer_waiting(self) -> None:
        loop, shared = asyncio.get_running_loop(), self._join()
        while self._waiting:
            await asyncio.sleep(0)  # so that requests of the same turn of the loop join the batch
            rows, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            rows = [(request, future) for request, future in rows if not future.done()]
            requests = [request for request, _ in rows]
            results: Sequence[Completion | EngineError | UserError]
            try:
                results = await loop.run_in_executor(shared.thread, self._answers, shared, requests)
            except asyncio.CancelledError:  # the engine was closed
                for _, future in rows:
                    future.cancel()
                raise
            except UserError as error:  # the model can't be loaded
                results = [error] * len(rows)
            except Exception as error:  # a fault in one batch does not affect the next
                results = [shared.report_fault(error)] * len(rows)
            for (_, future), result in zip(rows, results, strict=True):
                if future.done():  # its caller was cancelled
                    continue
                if isinstance(result, UserError):
                    future.set_exception(result)
                else:
                    future.set_result(result)

    def _answers(self, shared: LoadedModel, requests: Sequence[Request]) -> list[Completion | EngineError]:
        """Answer the requests as one batch, without those that can't be answered; runs in the worker thread."""
        runner = self._loaded(shared)
        rows = [runner.row(request) for request in requests]
        shared.is_closed = self._closed.is_set
        with _adapted(runner.model, self.adapter):
            _run_in_memory(runner, [row for row in rows if isinstance(row, Row)])
        return [runner.completion(row) if isinstance(row, Row) else row for row in rows]

    def _loaded(self, shared: LoadedModel) -> Runner:
        runner, shared.runner = shared.runner, None  # until all is loaded: a failure may leave half an adapter in it
        if runner is None:
            runner = self._load(self._model, self._device, self.identity["dtype"])
            stop_when(lambda: shared.is_closed(), runner.model)
        if self.adapter and isinstance(runner, ChatRunner):
            runner = runner.with_adapter(self.adapter)
        shared.runner = runner
        return runner

    def _load(self, weights: Weights, device: str, dtype: str) -> Runner:
        return ChatRunner.load(weights, device, dtype)


class LoadedModel(SharedModel):
    """A model, loaded by the first batch, with the adapters of its engines; batches take turns in its ``thread``."""

    def __init__(self, base: object) -> None:
        super().__init__(base)
        self.runner: Runner | None = None
        self.thread = ThreadPoolExecutor(1, "transformers")
        self.is_closed: Callable[[], bool] = lambda: False
        """Whether the engine of the batch that runs is closed, which ends the batch."""

    def report_fault(self, error: Exception) -> EngineError:
        """Return the error of a batch; after a first one that is not for lack of memory the model is loaded again."""
        reason = f"{type(error).__name__}: {error_line(error)}"
        if "OutOfMemory" in reason or self.is_dead:
            return EngineError(reason)
        self.deaths += 1
        if not self.is_dead:
            self.runner = None
        return self.loss_error(reason)


def _adapters(model: Any) -> Collection[str]:
    """Return the revisions of a model's adapters."""
    return getattr(model, "peft_config", ())


def _adapted(model: Any, adapter: Weights | None) -> AbstractContextManager[Any]:
    """Use one of a model's adapters in the returned context, or none of them."""
    if adapter:
        model.set_adapter(adapter.revision, inference_mode=True)
    is_disabled = not adapter and _adapters(model)
    return cast(AbstractContextManager[Any], model.disable_adapter()) if is_disabled else nullcontext()


@dataclass(slots=True)
class Row:
    """One request of a batch; ``tokens`` are those generated so far."""

    request: Request
    prompt: list[int]
    limit: int
    tokens: list[int] = field(default_factory=list)
    is_finished: bool = False
    stopped: bool = False
    chance: torch.Generator | None = None
    choices: Trie | None = None
    likely: list[list[tuple[int, float]]] = field(default_factory=list)
    """The likeliest tokens at each place with their log-probabilities, if the request has labels."""


class Runner(Protocol):
    """A loaded model, which answers batches."""

    @property
    def model(self) -> Any: ...
    def row(self, request: Request) -> Row | EngineError:
        """Make the row of a request, or the error of one that can't be answered."""

    def run(self, rows: Sequence[Any]) -> None:
        """Finish every row; the rows are those that `row` made."""

    def completion(self, row: Any) -> Completion:
        """Return the reply of a finished row of the batch."""


@dataclass(frozen=True, slots=True)
class ChatRunner:
    """A loaded chat model, which generates batches."""

    chat: Chat
    model: Any
    context: int
    ends: frozenset[int]
    """The tokens that end a turn."""

    @classmethod
    def load(cls, weights: Weights, device: str, dtype: str) -> ChatRunner:
        from transformers import AutoModelForCausalLM

        chat = Chat.load(weights)
        silence_loading()
        with loading(weights):
            model = AutoModelForCausalLM.from_pretrained(weights.place, **weights.pinned, dtype=dtype)
        ends = _ends(model, chat)
        context = model.config.get_text_config().max_position_embeddings
        return cls(chat, model.to(device).eval(), context, ends)

    def with_adapter(self, adapter: Weights) -> ChatRunner:
        """Return the runner of the same model with one more adapter; raise ``UserError`` if that can't be loaded."""
        from peft import PeftModel

        if adapter.revision in _adapters(self.model):
            return self
        arguments = str(adapter.folder), adapter.revision
        with loading(adapter):
            if _adapters(self.model):
                self.model.load_adapter(*arguments)
                return self
            return replace(self, model=PeftModel.from_pretrained(self.model, *arguments).eval())

    def row(self, request: Request) -> Row | EngineError:
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
        row = Row(request, prompt, min(room, request.sampling.max_tokens))
        if request.sampling.temperature > 0:
            row.chance = torch.Generator().manual_seed(request.sampling.seed)
        if request.choices:
            row.choices = self.trie(request.choices)
        return row

    def trie(self, choices: Sequence[str]) -> Trie:
        """Make a trie of the choices' tokens, whose control tokens are broken up as in a prompt."""
        texts = (escape_control(choice, self.chat.control) for choice in choices)
        return Trie(self.chat.tokenizer.encode(text, add_special_tokens=False) for text in texts)

    def run(self, rows: Sequence[Row]) -> None:
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
                    do_sample=False,  # _sampled has sampled already
                    max_new_tokens=max(row.limit for row in rows),
                    eos_token_id=sorted(self.ends),
                    pad_token_id=pad,
                ),
                logits_processor=[lambda _, scores: _sampled(rows, _noted(rows, self._masked(rows, scores)))],
                stopping_criteria=[lambda ids, _, **__: self._ended(rows, ids)],
            )

    def _masked(self, rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
        for number, row in enumerate(rows):
            if row.choices is not None and not row.is_finished:
                following, is_complete = row.choices.after(row.tokens)
                allowed = [*following, *(self.ends if is_complete else ())]
                allowed_scores = scores[number, allowed]
                scores[number] = -float("inf")
                scores[number, allowed] = allowed_scores
        return scores

    def _ended(self, rows: Sequence[Row], ids: torch.Tensor) -> torch.Tensor:
        """Add each row's new token, and return which rows are finished: by end of turn, stop string or limit."""
        import torch

        for row, token in zip(rows, ids[:, -1].tolist(), strict=True):
            if not row.is_finished:
                row.tokens.append(token)
                row.stopped = token in self.ends or self._has_stop(row)
                row.is_finished = row.stopped or len(row.tokens) >= row.limit
        return torch.tensor([row.is_finished for row in rows], device=ids.device)

    def _has_stop(self, row: Row) -> bool:
        stops = row.request.sampling.stop
        if not stops:
            return False
        # A token has one byte or more, so a stop string that ends here began within these tokens.
        reach = max(len(stop.encode()) for stop in stops) + 4
        tail = self.chat.decode(row.tokens[-reach:])
        return any(stop in tail for stop in stops)

    def completion(self, row: Row) -> Completion:
        text = self.chat.decode(row.tokens)
        cuts = [start for stop in row.request.sampling.stop if (start := text.find(stop)) >= 0]
        usage = Usage(prompt=len(row.prompt), completion=len(row.tokens))
        reply = completion(text[: min(cuts, default=None)], usage, "stop" if row.stopped else "length")
        return replace(reply, score=self._score(row)) if row.likely and reply.ending == "whole" else reply

    def _score(self, row: Row) -> float | None:
        """Return the probability of the first label; a token's text is what it adds to those before it."""
        texts = [self.chat.decode(row.tokens[:n]) for n in range(len(row.tokens) + 1)]

        def alternatives_at(index: int) -> list[tuple[str, float]]:
            before, start = row.tokens[:index], len(texts[index])
            return [(self.chat.decode([*before, token])[start:], score) for token, score in row.likely[index]]

        added = [text[len(before) :] for before, text in pairwise(texts)]
        return label_probability(added, alternatives_at, row.request.labels)


class _CutError(Exception):
    """The engine was closed while a batch was running."""


def stop_when(is_closed: Callable[[], bool], model: Any) -> None:
    """Let the model raise `_CutError` before its next layer as soon as it ``is_closed``: a prompt may take minutes."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    def raise_if_closed(*_: Any) -> None:
        if is_closed():
            raise _CutError

    layers = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    for module in (model.get_input_embeddings(), *layers):
        module.register_forward_pre_hook(raise_if_closed)


def _run_in_memory(runner: Runner, rows: Sequence[Row]) -> None:
    import torch

    try:
        runner.run(rows)
        return
    except torch.OutOfMemoryError:
        if len(rows) == 1:
            raise
    # Outside of the handler, which holds the failed batch's memory.
    torch.cuda.empty_cache()
    half = len(rows) // 2
    for batch in (rows[:half], rows[half:]):
        for row in batch:
            row.tokens.clear()
            row.likely.clear()
            row.is_finished = row.stopped = False
            if row.chance is not None:
                row.chance.manual_seed(row.request.sampling.seed)
        _run_in_memory(runner, batch)


def _noted(rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
    """Note the likeliest tokens of each row whose request has labels."""
    import torch

    for number, row in enumerate(rows):
        if row.request.labels and not row.is_finished:
            values, tokens = torch.log_softmax(scores[number].float(), dim=-1).topk(min(TOP, scores.shape[-1]))
            row.likely.append(list(zip(tokens.tolist(), values.tolist(), strict=True)))
    return scores


def _sampled(rows: Sequence[Row], scores: torch.Tensor) -> torch.Tensor:
    """Sample each row's next token by its own temperature and seed, whatever the other rows; mask all others."""
    for number, row in enumerate(rows):
        if row.chance is not None and not row.is_finished:
            sampling = row.request.sampling
            token = _draw(scores[number], sampling.temperature, sampling.top_p, row.chance)
            scores[number] = -float("inf")
            scores[number, token] = 0
    return scores


def _draw(scores: torch.Tensor, temperature: float, top_p: float, chance: torch.Generator) -> torch.Tensor:
    """Sample one of the most probable tokens that together have the probability ``top_p``."""
    import torch

    likely = torch.softmax(scores.float().cpu() / temperature, dim=-1)
    ordered, tokens = likely.sort(descending=True, stable=True)
    ordered[ordered.cumsum(0) - ordered >= top_p] = 0  # the most probable token always stays
    return tokens[torch.multinomial(ordered, 1, generator=chance)]


def silence_loading() -> None:
    """Switch off the libraries' own bars and hints, which would break our progress bar."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    logging.set_verbosity_error()


def load_classifier(weights: Weights, auto_class: str, dtype: str) -> tuple[Any, Any]:
    """Load a tokenizer, and a model by the name of its class in Transformers; raise ``UserError`` if that fails."""
    import transformers

    silence_loading()
    with loading(weights):
        tokenizer = transformers.AutoTokenizer.from_pretrained(weights.place, **weights.pinned)
        model = getattr(transformers, auto_class).from_pretrained(weights.place, **weights.pinned, dtype=dtype)
    return tokenizer, model


def _ends(model: Any, chat: Chat) -> frozenset[int]:
    """Return a model's end tokens, and reset its settings, which ``generate`` would use for all that we leave open."""
    from transformers import GenerationConfig

    ends = model.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    model.generation_config = GenerationConfig()
    return frozenset(end for end in (*ends, chat.tokenizer.eos_token_id) if end is not None)


_END = -1
"""Marks where a reply may end; no token has this number."""


class Trie:
    """A prefix tree of token sequences.

    >>> replies = Trie([[5, 7], [5, 8, 9], [5]])
    >>> [(sorted(following), is_complete) for following, is_complete in map(replies.after, ([], [5], [5, 8]))]
    [([5], False), ([7, 8], True), ([9], False)]
    """

    def __init__(self, sequences: Iterable[Sequence[int]]) -> None:
        """Make a tree; raise ``ValueError`` for an empty sequence, which is no reply."""
        self._root: dict[int, Any] = {}
        for sequence in sequences:
            if not sequence:
                raise ValueError("a reply to choose has no token")
            node = self._root
            for token in sequence:
                node = node.setdefault(token, {})
            node[_END] = {}

    def after(self, prefix: Iterable[int]) -> tuple[Collection[int], bool]:
        """Return the tokens that may follow a prefix, and whether it is complete; raise ``KeyError`` for no prefix."""
        node = self._root
        for token in prefix:
            node = node[token]
        return [token for token in node if token != _END], _END in node
