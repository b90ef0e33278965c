"""Prompts: a YAML file each, with the instructions, the user turn and the reply's schema; `load` reads one.

Text from a benchmark or a model is data. It enters a prompt as a JSON string (the filter ``quoted``), so that no line
break or quote can end it, and with the marks of chat templates broken up, so that no tokenizer sees the end of a turn.

``NAME.examples.yaml`` beside a file has worked examples: data for the user turn, and a reply. Requests contain them
only if the user asks for them (``--examples``).

A file also has the ``role`` that sends the prompt (default: the file's name) and the most tokens of a reply
(``max_tokens``). A prompt's digest leaves out these two and the examples, as they are not the prompt's text.
"""

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import PurePath
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from safe_stepwise.engines.base import GREEDY, Message, Request, Sampling, Scene, Schema
from safe_stepwise.store.packaged import read_yaml

_FOLDER = resources.files(__name__)
_NOT_SENT = re.compile(rb"^(?:role|max_tokens):.*\n", re.MULTILINE)
# Marks in the chat templates of common models: "<|im_end|>", "</s>", "<start_of_turn>", "<｜User｜>", "[INST]",
# "<<SYS>>". Engines that have the tokenizer also break up its special tokens.
_MARKS = re.compile(r"<(?=[|｜/<]?[\w|｜▁/]+[|｜]?>)|\[(?=/?[A-Z_]{3,}\])")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: ``system`` turn, Jinja template ``user``, reply's ``schema``, sender's ``role``, ``sampling``."""

    name: str
    role: str
    sampling: Sampling
    system: str
    user: str
    schema: Schema
    digest: str

    def messages(self, **data: Any) -> tuple[Message, ...]:
        """Render the turns with the template's data; raises ``jinja2.UndefinedError`` if a value is missing."""
        return (Message("system", self.system), Message("user", self.render_user(**data)))

    def render_user(self, **data: Any) -> str:
        """Render only the user's turn, for a prompt that continues the conversation of another."""
        return _template(self.user).render(**data).strip()

    def request(
        self, messages: tuple[Message, ...], scene: Scene | None = None, schema: Schema | None = None
    ) -> Request:
        """Build a request of this prompt from its turns, or from a conversation that it continues."""
        return Request(messages, self.sampling, schema or self.schema, self.role, scene, in_full=True)


@functools.cache
def load(name: str) -> Prompt:
    """Load the prompt ``FOLDER/NAME``, as in ``load("verification/extract")``.

    >>> load("verification/extract").schema.name
    'triples'
    """
    file = _FOLDER.joinpath(f"{name}.yaml")
    raw = read_yaml(file)
    return Prompt(
        name=name,
        role=raw.get("role", PurePath(name).name),
        sampling=replace(GREEDY, max_tokens=raw["max_tokens"]),
        system=raw["system"].strip(),
        user=raw["user"],
        schema=Schema.from_dict(raw["reply"]["name"], raw["reply"]["schema"]),
        digest=hashlib.sha256(_NOT_SENT.sub(b"", file.read_bytes())).hexdigest(),
    )


@functools.cache
def load_all() -> tuple[Prompt, ...]:
    return tuple(load(name) for name in _names(".yaml") if not name.endswith(".examples"))


@functools.cache
def limits() -> Mapping[str, int]:
    """Return the most tokens of a reply by role, from all prompt files.

    >>> limits()["judge"]
    512
    """
    return {prompt.role: prompt.sampling.max_tokens for prompt in load_all()}


def roles_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the roles of prompts, without repetition."""
    return tuple(dict.fromkeys(load(name).role for name in names))


def examples(roles: Iterable[str]) -> dict[str, str]:
    """Return the worked examples of the roles that have any, as texts that follow the instructions.

    A role that continues the conversation of another role gets its examples too. ``ROLE=N`` stands for the first N
    examples of a role.

    >>> list(examples(["extract"])), list(examples(["generate"]))
    (['extract', 'glean'], [])
    >>> examples(["extract=1"])["extract"].count("Example ")
    1
    """
    texts_by_role: dict[str, str] = {}
    for role, _, number in (name.partition("=") for name in roles):
        recipients, texts = _examples().get(role, ((), ()))
        if chosen := texts[: int(number)] if number else texts:
            text = "\n\n".join([*chosen, "The examples end here; what follows is another matter."])
            texts_by_role |= dict.fromkeys(recipients, text)
    return texts_by_role


@functools.cache
def _examples() -> Mapping[str, tuple[tuple[str, ...], list[str]]]:
    """Load the worked examples by role: all roles that may get them, and their texts."""
    by_role: dict[str, tuple[tuple[str, ...], list[str]]] = {}
    for name in _names(".examples.yaml"):
        prompt = load(name)
        raw = read_yaml(_FOLDER.joinpath(f"{name}.examples.yaml"))
        texts = [
            f"Example {n}:\n{prompt.render_user(**example['data'])}\nReply: "
            + json.dumps(example["reply"], ensure_ascii=False)
            for n, example in enumerate(raw["examples"], 1)
        ]
        by_role[prompt.role] = ((prompt.role, *raw.get("followed_by", ())), texts)
    return by_role


def _names(end: str) -> list[str]:
    folders = [folder for folder in _FOLDER.iterdir() if folder.is_dir()]
    names = sorted(f"{folder.name}/{file.name}" for folder in folders for file in folder.iterdir())
    return [name.removesuffix(end) for name in names if name.endswith(end)]


def digest(*prompts: Prompt) -> str:
    """Return one SHA-256 for several prompts; it changes if any of them changes."""
    return hashlib.sha256("".join(prompt.digest for prompt in prompts).encode()).hexdigest()


def defuse(text: str) -> str:
    """Break up every mark of a chat template in a text with a blank.

    >>> defuse("Hi <|im_end|> </s> [INST] 1 < 2 <b>")
    'Hi < |im_end|> < /s> [ INST] 1 < 2 < b>'
    """
    return _MARKS.sub(lambda match: f"{match[0]} ", text)


def data_of(request: Request) -> str:
    """Return the text of a request's user turns, which quote its data."""
    return "\n".join(turn.content for turn in request.messages if turn.role == "user")


def quoted(text: str) -> str:
    r"""Return a text as a JSON string, with the marks of chat templates broken up.

    >>> print(quoted('a "b"\n<|im_start|>'))
    "a \"b\"\n< |im_start|>"
    """
    return json.dumps(defuse(text.encode("utf-8", "replace").decode("utf-8")), ensure_ascii=False)


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
