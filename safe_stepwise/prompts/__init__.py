"""Prompts as versioned files: one YAML a prompt, its instructions, its turns, the reply's schema.

What comes from a benchmark or a model is data. It enters a prompt as a JSON string, so that no
line break or quote in it can end the place it stands in, and with the marks of chat templates
broken up, so that no tokenizer takes them for the end of a turn.

Beside a file may stand ``NAME.examples.yaml``, worked examples of our own: data for its turns, and
the reply. Nobody sees them unless a user says so; a prompt's digest leaves them out.

A file also says who asks by it (``role``, its own name if not said) and how many tokens a reply may
have (``max_tokens``). Both are no words that reach a model, so a prompt's digest leaves them out:
another limit is another request, and the same prompt.
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

import yaml
from jinja2 import Environment, StrictUndefined, Template

from safe_stepwise.engines.base import GREEDY, Message, Request, Sampling, Scene, Schema

_FOLDER = resources.files(__name__)
_NOT_SENT = re.compile(rb"^(?:role|max_tokens):.*\n", re.MULTILINE)
# "<|im_end|>", "</s>", "<start_of_turn>", "<｜User｜>", "[INST]", "<<SYS>>": what templates of
# common models are made of. Engines that hold the tokenizer break up its own special tokens too.
_MARKS = re.compile(r"<(?=[|｜/<]?[\w|｜▁/]+[|｜]?>)|\[(?=/?[A-Z_]{3,}\])")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file: fixed ``system``, a template ``user``, the ``schema`` of the reply.

    ``role`` is who asks by it, ``sampling`` how: greedily, with the file's limit.
    """

    name: str
    role: str
    sampling: Sampling
    system: str
    user: str
    schema: Schema
    digest: str

    def messages(self, **data: Any) -> tuple[Message, ...]:
        """The turns for some data; raises ``jinja2.UndefinedError`` where a value is missing."""
        return (Message("system", self.system), Message("user", self.render_user(**data)))

    def render_user(self, **data: Any) -> str:
        """The user's turn alone, for a prompt that goes on with another's conversation."""
        return _template(self.user).render(**data).strip()

    def request(self, messages: tuple[Message, ...], scene: Scene | None = None) -> Request:
        """Build a request by this prompt: its turns, or a conversation that it goes on with."""
        return Request(messages, self.sampling, self.schema, self.role, scene, in_full=True)


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
        role=raw.get("role", PurePath(name).name),
        sampling=replace(GREEDY, max_tokens=raw["max_tokens"]),
        system=raw["system"].strip(),
        user=raw["user"],
        schema=Schema.from_dict(raw["reply"]["name"], raw["reply"]["schema"]),
        digest=hashlib.sha256(_NOT_SENT.sub(b"", content)).hexdigest(),
    )


@functools.cache
def load_all() -> tuple[Prompt, ...]:
    """All prompts, by name."""
    return tuple(load(name) for name in _names(".yaml") if not name.endswith(".examples"))


@functools.cache
def limits() -> Mapping[str, int]:
    """The tokens that a reply may have, by the roles of all prompt files.

    >>> limits()["judge"]
    512
    """
    return {prompt.role: prompt.sampling.max_tokens for prompt in load_all()}


def examples(roles: Iterable[str]) -> dict[str, str]:
    """Worked examples by role, texts to put behind instructions, of those roles that have any.

    A role that goes on with the conversation of another has the same.

    >>> list(examples(["extract"])), list(examples(["generate"]))
    (['extract', 'glean'], [])
    """
    by_role = _examples()
    return {recipient: by_role[role][1] for role in roles if role in by_role for recipient in by_role[role][0]}


@functools.cache
def _examples() -> Mapping[str, tuple[tuple[str, ...], str]]:
    """Load the worked examples by role: who may be shown them, and their text."""
    by_role: dict[str, tuple[tuple[str, ...], str]] = {}
    for name in _names(".examples.yaml"):
        prompt = load(name)
        raw = yaml.safe_load(_FOLDER.joinpath(f"{name}.examples.yaml").read_bytes())
        texts = [
            f"Example {n}:\n{prompt.render_user(**example['data'])}\nReply: "
            + json.dumps(example["reply"], ensure_ascii=False)
            for n, example in enumerate(raw["examples"], 1)
        ]
        text = "\n\n".join([*texts, "The examples end here; what follows is another matter."])
        by_role[prompt.role] = ((prompt.role, *raw.get("followed_by", ())), text)
    return by_role


def _names(end: str) -> list[str]:
    """The names of all files with this ending."""
    folders = [folder for folder in _FOLDER.iterdir() if folder.is_dir()]
    names = sorted(f"{folder.name}/{file.name}" for folder in folders for file in folder.iterdir())
    return [name.removesuffix(end) for name in names if name.endswith(end)]


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
    """Return the data that a request quotes: the turns of the user."""
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
