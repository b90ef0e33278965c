"""Finds out which fields of a request a server accepts: by its spec, its list of models, or its refusals.

The API is OpenAI's, but servers accept different fields: gpt-5 and the o-series refuse a temperature, Mistral and
Gemini a seed, Gemma a system turn, DeepSeek a JSON schema. After a refusal that names such a field the request is sent
again without the field, and so are all later ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl

from safe_stepwise.engines.base import Message, Request
from safe_stepwise.engines.probability import TOP
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.store.boundary import parse_json
from safe_stepwise.store.packaged import read_yaml

TEMPLATE_OWNERS = ("vllm", "sglang", "llamacpp")
"""The ``owned_by`` of servers that pass ``chat_template_kwargs`` to a template."""
CHOICE_OWNERS = ("vllm",)
"""The ``owned_by`` of servers that accept a list of replies to choose from."""
OPTIONAL = ("logprobs", "top_p", "seed", "temperature", "schema")
"""Fields that a spec may omit by ``?without=``."""
_SWITCHES = ("template", "without", "system", "max_tokens")
_SWITCH_VALUES = {"on": True, "off": False}
_WORDS: Mapping[str, Any] = read_yaml(Path(__file__).with_suffix(".yaml"))
_ACCOUNT_WORDS, _TOO_LARGE, _UNKNOWN_FIELD = (
    re.compile(_WORDS[name], re.I) for name in ("account_words", "too_large", "unknown_field")
)
_FIELD_PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(_WORDS["subject"].replace("WORDS", form["subject"]) if isinstance(form, dict) else form, re.I)
    for name, form in _WORDS["fields"].items()
}
"""The pattern by which a refusal names each field. If one names several, the first of them is omitted."""
FIELD_NAMES: Mapping[str, str] = _WORDS["names"]
"""The names of fields in messages, if the key says too little."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The fields of a request that one server accepts; a field that is None is not known yet.

    ``template``: whether ``chat_template_kwargs`` are sent; ``choices``: whether a list of allowed replies is sent;
    ``omitted``: the `OPTIONAL` fields that are not sent (``without`` in specs and identities). If ``system`` is
    *user*, the text of a system turn opens the next turn. ``limit``: the name of the field with the limit of tokens.
    """

    template: bool | None = None
    omitted: frozenset[str] = frozenset()
    system: Literal["system", "user"] = "system"
    limit: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    choices: bool | None = None

    @classmethod
    def read(cls, query: str) -> Dialect | None:
        """Read the switches after a spec's ``?``; return None if it has none of these switches.

        >>> Dialect.read("without=seed,schema&max_tokens").query
        '?without=schema,seed&max_tokens'
        >>> Dialect.read("api-version=1") is None
        True

        Raises ``UserError`` for an unknown switch or value.
        """
        switches = parse_qsl(query, keep_blank_values=True)
        if not any(name in _SWITCHES for name, _ in switches):
            return None
        values = {check_choice(name, _SWITCHES, "openai: the switch"): value for name, value in switches}
        dialect = cls()
        if "template" in values:
            template = check_choice(values["template"], _SWITCH_VALUES, "openai: ?template=")
            dialect = replace(dialect, template=_SWITCH_VALUES[template])
        if "system" in values:
            check_choice(values["system"], ("user",), "openai: ?system=")
            dialect = replace(dialect, system="user")
        if values.get("max_tokens"):
            raise UserError("openai: ?max_tokens names the field that holds the limit, not a limit: write it alone")
        if "max_tokens" in values:
            dialect = replace(dialect, limit="max_tokens")
        names = values["without"].split(",") if "without" in values else ()
        return replace(dialect, omitted=frozenset(check_choice(name, OPTIONAL, "openai: ?without=") for name in names))

    @property
    def query(self) -> str:
        """The switches as the end of a spec ("?without=seed"); "" if there are none.

        ``template=on`` is left out, so that replies from before this switch existed, which had it on, keep their keys.
        """
        omitted = f"without={','.join(sorted(self.omitted))}"
        switches = {"template": "template=off", "without": omitted, "system": "system=user", "limit": "max_tokens"}
        names = self.non_default
        return f"?{'&'.join(switches[name] for name in names)}" if names else ""

    @property
    def non_default(self) -> dict[str, Any]:
        """The fields that are not at their default, by their names in an engine's identity."""
        defaults = {"template": True, "without": [], "system": "system", "limit": "max_completion_tokens"}
        template, omitted = self.template is not False, sorted(self.omitted)
        fields = {"template": template, "without": omitted, "system": self.system, "limit": self.limit}
        return {name: value for name, value in fields.items() if value != defaults[name]}

    def resolve(self, owner: str | None) -> Dialect:
        """Return this dialect with the unknown fields derived from the model's ``owned_by`` (None if not listed)."""
        return replace(
            self,
            template=owner in TEMPLATE_OWNERS if self.template is None else self.template,
            choices=owner in CHOICE_OWNERS if self.choices is None else self.choices,
        )

    def make_body(self, model: str, request: Request) -> dict[str, Any]:
        """Make the JSON body of a request in this dialect."""
        sampling, turns = request.sampling, self._turns(request.messages)
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": turn.role, "content": replace_surrogates(turn.content)} for turn in turns],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self.limit: sampling.max_tokens,
            "seed": sampling.seed,
        }
        body |= {"logprobs": True, "top_logprobs": TOP} if request.labels else {}
        body = {name: value for name, value in body.items() if name not in self.omitted}
        if "logprobs" not in body:
            body.pop("top_logprobs", None)
        if sampling.repetition_penalty != 1:  # vLLM's own; other servers refuse it
            body["repetition_penalty"] = sampling.repetition_penalty
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if request.choices and self.choices:
            body["structured_outputs"] = {"choice": list(map(replace_surrogates, request.choices))}
        elif request.schema and "schema" not in self.omitted:
            schema = {"name": request.schema.name, "schema": json.loads(request.schema.text)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if sampling.effort:
            body["reasoning_effort"] = sampling.effort
        elif self.template:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return body

    def _turns(self, messages: tuple[Message, ...]) -> Iterator[Message]:
        """Yield the messages, with a system turn merged into the next one if ``system`` is *user*."""
        system = ""
        for message in messages:
            if message.role == "system" and self.system == "user":
                system += f"{message.content}\n\n"
            else:
                yield replace(message, content=system + message.content) if system else message
                system = ""
        if system:
            yield Message("user", system.rstrip())

    def relearn(self, complaint: Complaint, body: Mapping[str, Any]) -> tuple[str, Dialect] | None:
        """Return the field of ``body`` that a refusal names, and the dialect without it; None if it names none.

        >>> complaint = Complaint("Unsupported value: 'temperature' does not support 0.0 with this model.")
        >>> field, dialect = Dialect().relearn(complaint, {"temperature": 0.0, "seed": 0})
        >>> field, dialect.query
        ('temperature', '?without=temperature')
        """
        sent = {
            "template": "chat_template_kwargs" in body,
            "schema": bool({"response_format", "structured_outputs"} & set(body)),
            "limit": self.limit == "max_completion_tokens" and bool(_UNKNOWN_FIELD.search(complaint.text)),
            "system": any(turn["role"] == "system" for turn in body.get("messages", ())),
        }
        is_about_scores = "logprobs" in body and _FIELD_PATTERNS["logprobs"].search(complaint.text)
        if not is_about_scores and (
            complaint.codes.intersection(_WORDS["content_codes"]) or _TOO_LARGE.search(complaint.text)
        ):
            return None
        for field, pattern in _FIELD_PATTERNS.items():
            if sent.get(field, field in body) and pattern.search(complaint.field or complaint.text):
                return field, self.without_field(field)
        return None

    def without_field(self, field: str) -> Dialect:
        """Return the dialect that omits a field (a key of `_FIELD_PATTERNS`) or writes it in the other way."""
        match field:
            case "template":
                return replace(self, template=False)
            case "system":
                return replace(self, system="user")
            case "limit":
                return replace(self, limit="max_tokens")
            case "schema" if self.choices:
                return replace(self, choices=False)
        return replace(self, omitted=self.omitted | {field})


def replace_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, which UTF-8 can't encode, by U+FFFD.

    >>> replace_surrogates("a\\ud800 b")
    'a� b'
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_TEXT_KEYS = ("message", "msg", "detail", "error", "errors", "title", "reason", "description", "faultstring", "raw")
_NESTED_KEYS = ("fault", "metadata", "response", "body")
_CODE_KEYS = ("code", "type", "status", "error_type", "error_code")
"""Keys of an error's body with its texts, with further objects, and with its codes."""
_MAX_DEPTH, _MAX_ITEMS = 10, 8


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error message of a server: its text, the field that it names, and its codes in lower case."""

    text: str
    field: str = ""
    codes: frozenset[str] = frozenset()

    @classmethod
    def read(cls, content: bytes) -> Complaint:
        """Read the body of an HTTP error in any form; the text is empty if the body has no words.

        >>> Complaint.read(b'[{"error": {"code": 400, "message": "Unknown name \\\\"seed\\\\"", "status": "X"}}]').text
        'Unknown name "seed"'
        >>> Complaint.read(b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}')
        Complaint(text='Extra inputs are not permitted (body.seed)', field='body.seed', codes=frozenset())
        >>> Complaint.read(b"<html><title>502 Bad Gateway</title><p>nginx</p></html>").text
        '502 Bad Gateway'
        """
        texts: dict[str, dict[str, None]] = {"words": {}, "field": {}, "code": {}}
        for kind, text in _walk_error(content.decode("utf-8", "replace"), 0):
            texts[kind][text] = None
        return cls("; ".join(filter(None, texts["words"])), "; ".join(texts["field"]), frozenset(texts["code"]))

    @property
    def is_about_account(self) -> bool:
        """Whether the account is out of credit or closed, so that no other request succeeds either."""
        return bool(self.codes & set(_WORDS["account_codes"]) or _ACCOUNT_WORDS.match(self.text))

    @property
    def status(self) -> int:
        """The HTTP status among the codes, or 0."""
        return next((int(code) for code in self.codes if re.fullmatch("[45][0-9]{2}", code)), 0)


def _walk_error(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the kind (words, code or field) and the text of each part of an error's body, outermost first."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield from _walk_error_text(value.strip(), depth)
    elif isinstance(value, list):
        for item in value[:_MAX_ITEMS]:
            yield from _walk_error(item, depth + 1)
    elif isinstance(value, dict):
        place = value.get("loc") or value.get("param") or ""
        field = " ".join((".".join(map(str, place)) if isinstance(place, list) else str(place)).split())
        if field:
            yield "field", field
        for name in _CODE_KEYS:
            if isinstance(value.get(name), str | int):
                yield "code", str(value[name]).lower()
        for name in (*_TEXT_KEYS, *_NESTED_KEYS):
            for kind, text in _walk_error(value.get(name), depth + 1):
                is_placed = kind == "words" and name == "msg" and bool(field)
                yield kind, f"{text} ({field})" if is_placed else text


def _walk_error_text(text: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield what the JSON in a text says, or else the text's words, or the title of an HTML page."""
    if text[:1] in ("{", "["):
        with suppress(ValueError):
            yield from _walk_error(parse_json(text.encode("utf-8", "replace")), depth + 1)
            return
    title = re.search("<(title|h1)[^<>]{0,200}>([^<]{1,500})<", text, re.I)
    words = title[2] if title else re.sub("<[^<>]{0,500}>", " ", text)
    yield "words", " ".join(words.split())
