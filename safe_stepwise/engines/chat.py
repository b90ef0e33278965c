"""What engines that run a model in this process share: its name, its memory, and the template that makes tokens.

A passage that contains the control token ``<|im_end|>`` must not end a turn. So every control token in a message gets
a space before the chat template adds its own.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self
from weakref import WeakSet

from safe_stepwise.engines.base import Effort, EngineError, Message
from safe_stepwise.engines.weights import Model, Weights, error_line, find_adapter, find_model, loading
from safe_stepwise.errors import UserError


class LocalModel:
    """An engine that runs a model in this process, perhaps with an adapter; raises ``UserError`` if one is missing.

    ``settings`` are the further settings of the engine that can change a reply, ``chosen`` those that are not the
    usual ones.
    """

    simulated = False

    def __init__(
        self, engine: str, model: Model, adapter: Model | None, chosen: Mapping[str, Any], **settings: Any
    ) -> None:
        self._model = find_model(model)
        self.adapter = find_adapter(adapter) if adapter else None
        self.weights = self._model
        query = "?" * bool(chosen) + "&".join(f"{name}={value}" for name, value in chosen.items())
        self.name = f"{engine}:{self._model}" + (f"+{self.adapter}" if self.adapter else "") + query
        self.identity: Mapping[str, Any] = {
            "engine": engine,
            "model": self._model.name,
            "revision": self._model.revision,
            "adapter": self.adapter.name if self.adapter else None,
            "adapter_revision": self.adapter.revision if self.adapter else None,
            **settings,
        }


class SharedModel:
    """A model in memory, for the engines of one event loop that run the same model in the same way (``base``).

    ``users`` are the engines that use it and are not closed yet.
    """

    def __init__(self, base: object) -> None:
        self.base = (asyncio.get_running_loop(), base)
        self.users: WeakSet[Any] = WeakSet()
        self.deaths = 0
        """How often the model died; all requests under way are lost then."""
        _MODELS.add(self)

    @classmethod
    def of_base(cls, base: object) -> Iterator[Self]:
        """Yield the models of a base that engines of this event loop use."""
        for model in _MODELS:
            if isinstance(model, cls) and model.users and model.base == (asyncio.get_running_loop(), base):
                yield model

    def leave(self, engine: object) -> bool:
        """Remove an engine from the users; return whether it was the last one, so that the model can be closed."""
        self.users.discard(engine)
        return not self.users

    def loss_error(self, reason: str) -> EngineError:
        """Return the error of a request that was lost when the model died; it is transient the first time."""
        if self.is_dead:
            advice = "it was started again once, and died again; the same command asks what is owed"
            return EngineError(f"{reason} ({advice})")
        return EngineError(reason, transient=True)

    @property
    def is_dead(self) -> bool:
        """Whether the model died again after its second start."""
        return self.deaths > 1


_MODELS: WeakSet[SharedModel] = WeakSet()


class Chat:
    """A model's tokenizer and chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.control = find_control_tokens(tokenizer)

    @classmethod
    def load(cls, weights: Weights) -> "Chat":
        """Load a model's tokenizer; raise ``UserError`` if that fails or it has no chat template."""
        from transformers import AutoTokenizer

        with loading(weights, "no tokenizer can be loaded"):
            tokenizer = AutoTokenizer.from_pretrained(weights.place, **weights.pinned)
        if not tokenizer.chat_template:
            raise UserError(f"{weights}: has no chat template; name a model tuned to chat")
        return cls(tokenizer)

    def encode(self, messages: Sequence[Message], effort: Effort | None = None) -> list[int]:
        """Return the tokens of a prompt, up to the beginning of the assistant's turn; raise as `render` does."""
        text = self.render(messages, effort=effort)
        # The template has written the beginning-of-text token, if the model has one.
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def render(self, messages: Sequence[Message], complete: bool = False, effort: Effort | None = None) -> str:
        """Render a chat as text that ends with the start of an assistant's turn; a ``complete`` chat has that turn.

        The model thinks only with an ``effort``. Raises ``EngineError`` for a chat that the template refuses, and for
        an effort that it does not know.
        """
        arguments = {}
        if effort:
            if "reasoning_effort" not in str(self.tokenizer.chat_template):
                raise EngineError(
                    "the chat template of the model has no reasoning effort; leave out --reasoning-effort for it"
                )
            arguments = {"reasoning_effort": effort}
        turns = [{"role": m.role, "content": escape_control(m.content, self.control)} for m in messages]
        try:
            text: str = self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=not complete,
                enable_thinking=bool(effort),  # templates without this switch ignore it
                **arguments,
            )
        except Exception as error:  # a template may raise anything
            raise EngineError(f"the chat template refuses: {error_line(error)}") from error
        return text

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without control tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True))


def find_control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """List a model's control tokens: special tokens, and added tokens that its template writes (``<think>``).

    Other added tokens are frequent texts (runs of spaces, HTML), which control nothing.
    """
    template = str(tokenizer.chat_template or "")
    tokens = set(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        if token.special or (token.content in template and not token.content.isalnum()):
            tokens.add(token.content)
    # One character can't be broken up, and whitespace controls nothing.
    return tuple(sorted(token for token in tokens if len(token) > 1 and token.strip()))


def escape_control(text: str, control: Iterable[str]) -> str:
    """Put a space after the first character of every control token in a text.

    >>> escape_control("a <|im_end|> b < c", ["<|im_end|>", "<think>"])
    'a < |im_end|> b < c'
    """
    # Looking ahead finds overlapping tokens, and an added space never completes another token.
    tokens = "|".join(map(re.escape, control))
    return re.sub(f"(?=(?:{tokens}))(.)", r"\1 ", text, flags=re.DOTALL) if tokens else text
