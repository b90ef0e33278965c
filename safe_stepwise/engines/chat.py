"""For the engines that run a model themselves: the model, and from messages to its tokens.

A passage that says ``<|im_end|>`` must not end a turn, so control tokens are broken up in what
messages say before the chat template adds its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from safe_stepwise.engines.base import Effort, EngineError, Message
from safe_stepwise.engines.weights import Model, Weights, find_adapter, find_model, loading, one_line
from safe_stepwise.errors import UserError


class LocalModel:
    """What engines share that run a model, and perhaps an adapter, themselves: both are found.

    ``settings`` are those that can change a reply. Raises ``UserError`` if there is no such model.
    """

    simulated = False
    deaths = 0
    """How often it died, so that all that was under way was lost."""

    def __init__(self, engine: str, model: Model, adapter: Model | None, **settings: Any) -> None:
        self._model = find_model(model)
        self.adapter = find_adapter(adapter) if adapter else None
        self.weights = self._model
        self.name = f"{engine}:{self._model}" + (f"+{self.adapter}" if self.adapter else "")
        self.identity: Mapping[str, Any] = {
            "engine": engine,
            "model": self._model.name,
            "revision": self._model.revision,
            "adapter": self.adapter.name if self.adapter else None,
            "adapter_revision": self.adapter.revision if self.adapter else None,
            **settings,
        }

    def died(self, reason: str) -> EngineError:
        """The error of a request that was lost with it: the first time it starts again, and is asked again."""
        if self.is_dead:
            again = "it was started again once, and died again; the same command asks what is owed"
            return EngineError(f"{reason} ({again})")
        return EngineError(reason, transient=True)

    @property
    def is_dead(self) -> bool:
        """Whether it has died again after it was started again."""
        return self.deaths > 1


class Chat:
    """A model's tokenizer and chat template."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.control = find_control_tokens(tokenizer)

    @classmethod
    def load(cls, weights: Weights) -> Chat:
        """The tokenizer of a model. Raises ``UserError`` if it can't be loaded or the model knows no chat."""
        from transformers import AutoTokenizer

        extra = {"gguf_file": weights.gguf} if weights.gguf else {}
        with loading(weights, "no tokenizer can be loaded"):
            tokenizer = AutoTokenizer.from_pretrained(weights.place, **weights.pinned, **extra)
        if not tokenizer.chat_template:
            raise UserError(f"{weights}: has no chat template; name a model tuned to chat")
        return cls(tokenizer)

    def tokens(self, messages: Sequence[Message], effort: Effort | None = None) -> list[int]:
        """The prompt, up to where the assistant's turn begins; models that can think don't.

        With an ``effort`` they do. Raises as `render`.
        """
        text = self.render(messages, effort=effort)
        # The template has written the beginning-of-text token, if the model has one.
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def render(self, messages: Sequence[Message], complete: bool = False, effort: Effort | None = None) -> str:
        """The chat as text, up to where the assistant's turn begins, or ``complete`` with it.

        Raises ``EngineError`` for a chat that the template refuses, or an ``effort`` that it does not know.
        """
        asked = {}
        if effort:
            if "reasoning_effort" not in str(self.tokenizer.chat_template):
                raise EngineError(
                    "the chat template of the model has no reasoning effort; leave out --reasoning-effort for it"
                )
            asked = {"reasoning_effort": effort}
        turns = [{"role": m.role, "content": escape_control(m.content, self.control)} for m in messages]
        try:
            text: str = self.tokenizer.apply_chat_template(
                turns,
                tokenize=False,
                add_generation_prompt=not complete,
                enable_thinking=bool(effort),  # templates without the switch pass over it
                **asked,
            )
        except Exception as error:  # a template raises what it likes
            raise EngineError(f"the chat template refuses: {one_line(error)}") from error
        return text

    def text(self, tokens: Sequence[int]) -> str:
        """What tokens say, without control tokens."""
        said: str = self.tokenizer.decode(tokens, skip_special_tokens=True)
        return said


def find_control_tokens(tokenizer: Any) -> tuple[str, ...]:
    """The strings that steer a model: special tokens, and added ones that its template writes.

    The latter are the likes of ``<think>``. Other added tokens are only text that is common
    enough for a token of its own (runs of spaces, HTML), and stay what they are.
    """
    template = str(tokenizer.chat_template or "")
    found = set(tokenizer.all_special_tokens)
    for token in tokenizer.added_tokens_decoder.values():
        if token.special or (token.content in template and not token.content.isalnum()):
            found.add(token.content)
    # One character can't be broken up, and whitespace steers nothing.
    return tuple(sorted(token for token in found if len(token) > 1 and token.strip()))


def escape_control(text: str, control: Iterable[str]) -> str:
    """The text with a space after the first character of every control token in it.

    >>> escape_control("a <|im_end|> b < c", ["<|im_end|>", "<think>"])
    'a < |im_end|> b < c'
    """
    # Looking ahead finds those that overlap, and a token can't be put together by the breaking
    # of another: what is added is a space.
    tokens = "|".join(map(re.escape, control))
    return re.sub(f"(?=(?:{tokens}))(.)", r"\1 ", text, flags=re.DOTALL) if tokens else text
