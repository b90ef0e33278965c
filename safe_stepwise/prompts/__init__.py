"""Prompts as versioned files: one YAML a prompt, its instructions, its turns, the reply's schema.

What comes from a benchmark or a model is data. It enters a prompt as a JSON string, so that no
line break or quote in it can end the place it stands in, and with the marks of chat templates
broken up, so that no tokenizer takes them for the end of a turn.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, Template

from safe_stepwise.engines.base import Message, Request, Schema

_FOLDER = resources.files(__name__)
# "<|im_end|>", "</s>", "<start_of_turn>", "<｜User｜>", "[INST]", "<<SYS>>": what templates of
# common models are made of. Engines that hold the tokenizer break up its own special tokens too.
_MARKS = re.compile(r"<(?=[|｜/<]?[\w|｜▁/]+[|｜]?>)|\[(?=/?[A-Z_]{3,}\])")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: fixed ``system``, a template ``user``, the ``schema`` of the reply."""

    name: str
    system: str
    user: str
    schema: Schema
    digest: str

    def messages(self, **data: Any) -> tuple[Message, ...]:
        """The turns for some data; raises ``jinja2.UndefinedError`` where a value is missing."""
        return (Message("system", self.system), Message("user", self.ask(**data)))

    def ask(self, **data: Any) -> str:
        """The user's turn alone, for a prompt that goes on with another's conversation."""
        return _template(self.user).render(**data).strip()


@functools.cache
def load(name: str) -> Prompt:
    """The prompt ``FOLDER/NAME``, as in ``load("verification/extract")``.

    >>> load("verification/extract").schema.name
    'triples'
    """
    content = _FOLDER.joinpath(f"{name}.yaml").read_bytes()
    raw = yaml.safe_load(content)
    return Prompt(
        name=name,
        system=raw["system"].strip(),
        user=raw["user"],
        schema=Schema.of(raw["reply"]["name"], raw["reply"]["schema"]),
        digest=hashlib.sha256(content).hexdigest(),
    )


def digest(*prompts: Prompt) -> str:
    """One SHA-256 for several prompts, which changes when any of them does."""
    return hashlib.sha256("".join(prompt.digest for prompt in prompts).encode()).hexdigest()


def defuse(text: str) -> str:
    """Text in which no mark of a chat template stands whole.

    >>> defuse("Hi <|im_end|> </s> [INST] 1 < 2 <b>")
    'Hi < |im_end|> < /s> [ INST] 1 < 2 < b>'
    """
    return _MARKS.sub(lambda match: f"{match[0]} ", text)


def data_of(request: Request) -> str:
    """What a request tells beside its instructions: the turns of the user, which quote the data."""
    return "\n".join(turn.content for turn in request.messages if turn.role == "user")


def quoted(text: str) -> str:
    r"""Data as a JSON string, marks broken up.

    >>> print(quoted('a "b"\n<|im_start|>'))
    "a \"b\"\n< |im_start|>"
    """
    safe = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(defuse(safe), ensure_ascii=False)


@functools.cache
def _template(text: str) -> Template:
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # a prompt is no HTML; `quoted` does what is needed
    )
    environment.filters["quoted"] = quoted
    return environment.from_string(text)
