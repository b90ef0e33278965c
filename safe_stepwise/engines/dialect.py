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
from typing import Any, Literal
from urllib.parse import parse_qsl

from safe_stepwise.engines.base import Message, Request
from safe_stepwise.engines.probability import TOP
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.store.boundary import parse_json

TEMPLATE_OWNERS = ("vllm", "sglang", "llamacpp")
"""The ``owned_by`` of servers that pass ``chat_template_kwargs`` to a template."""
CHOICE_OWNERS = ("vllm",)
"""The ``owned_by`` of servers that accept a list of replies to choose from."""
OPTIONAL = ("logprobs", "top_p", "seed", "temperature", "schema")
"""Fields that a request can do without, the least important first."""
_SWITCHES = ("template", "without", "system", "max_tokens")
_SWITCH_VALUES = {"on": True, "off": False}
_UNKNOWN_FIELD = re.compile(
    "support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot find|unavailable|enabled|instead", re.I
)
_TOO_LARGE = re.compile(r"too (?:large|long|high|many)|maximum|exceed|context|above|at most|limit of|\d tokens", re.I)
_CONTENT_CODES = frozenset("content_filter content_policy_violation context_length_exceeded model_not_found".split())


def _field_pattern(words: str) -> re.Pattern[str]:
    """Make the pattern of a refusal that names a field, in quotes or as a subject: a prompt may hold the bare word."""
    verbs = r"(?:is (?:not|deprecated|unsupported)|isn't|are not|does not|cannot|can't|must|not|parameter|field)\b"
    kinds = r"(?:argument|parameter|field|property|input|name)s?(?: supplied)?"
    return re.compile(
        rf"[\"'`](?:{words})[\"'`]|\b(?:{words})(?: {verbs}|:)|\b{kinds}[: ]{{1,3}}(?:{words})\b"
        rf"|(?:\A|; )(?:body\.)?(?:{words})(?=;|\Z)",
        re.IGNORECASE,
    )


_FIELD_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "logprobs": re.compile(r"log_?prob", re.I),
    "template": re.compile(r"chat_template_kwargs|enable_thinking"),
    "top_p": _field_pattern("top[_-]?p"),
    "seed": _field_pattern("seed"),
    "temperature": _field_pattern("temperature"),
    "schema": re.compile(r"response_format|json_schema|structured_outputs|guided_json", re.I),
    "limit": _field_pattern("max_(?:completion_)?tokens"),
    "system": re.compile(
        r"\bsystem['\"`]?[ _](?:role|prompts?|messages?|instructions?)['\"`]? (?:is |are )?(?:not|un)"
        r"|developer instruction|messages\S{0,9}\.role\b|\brole\b.{0,20}['\"`]system['\"`]",
        re.I,
    ),
}
"""The pattern by which a refusal names each field, in the order in which fields are omitted."""
FIELD_NAMES = {
    "template": "chat_template_kwargs",
    "schema": "a JSON schema",
    "logprobs": "logprobs (verdicts have no score)",
    "limit": "max_completion_tokens (max_tokens in its place)",
    "system": "a system turn (its text opens the user's)",
}
"""The names of fields in messages, if the key alone says too little."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The fields of a request that one server accepts; a field that is None is not known yet.

    ``template``: whether ``chat_template_kwargs`` are sent; ``choices``: whether a list of allowed replies is sent;
    ``omitted``: the optional fields that are not sent. If ``system`` is *user*, the text of a system turn opens the
    next turn. ``limit``: the name of the field with the limit of tokens.
    """

    template: bool | None = None
    omitted: frozenset[str] = frozenset()
    system: Literal["system", "user"] = "system"
    limit: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    choices: bool | None = None

    @classmethod
    def read(cls, query: str) -> Dialect | None:
        """Read the switches after a spec's ``?``; return None if it has no switch of ours.

        >>> Dialect.read("without=seed,schema&max_tokens").query
        '?without=schema,seed&max_tokens'
        >>> Dialect.read("api-version=1") is None
        True

        Raises ``UserError`` for a switch or a value that is not known.
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
        """The switches as the end of a spec ("?without=seed"), "" if there are none.

        ``template=on`` is left out: replies from before that switch was known had it on, and keep their keys.
        """
        omitted = f"without={','.join(sorted(self.omitted))}"
        switches = {"template": "template=off", "without": omitted, "system": "system=user", "limit": "max_tokens"}
        return "?" * bool(self.plain) + "&".join(switches[name] for name in self.plain)

    @property
    def plain(self) -> dict[str, Any]:
        """The fields that can change a reply, for an engine's identity."""
        usual = {"template": True, "without": [], "system": "system", "limit": "max_completion_tokens"}
        template, omitted = self.template is not False, sorted(self.omitted)
        fields = {"template": template, "without": omitted, "system": self.system, "limit": self.limit}
        return {name: value for name, value in fields.items() if value != usual[name]}

    def resolve(self, owner: str | None) -> Dialect:
        """Return this dialect with the unknown fields derived from the model's ``owned_by`` (None if not listed)."""
        return replace(
            self,
            template=owner in TEMPLATE_OWNERS if self.template is None else self.template,
            choices=owner in CHOICE_OWNERS if self.choices is None else self.choices,
        )

    def body(self, model: str, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": model,
            "messages": [
                {"role": m.role, "content": replace_surrogates(m.content)} for m in self._turns(request.messages)
            ],
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
        is_of_scores = "logprobs" in body and _FIELD_PATTERNS["logprobs"].search(complaint.text)
        if not is_of_scores and (complaint.codes & _CONTENT_CODES or _TOO_LARGE.search(complaint.text)):
            return None
        for field, pattern in _FIELD_PATTERNS.items():
            if sent.get(field, field in body) and pattern.search(complaint.field or complaint.text):
                return field, self.drop(field)
        return None

    def drop(self, field: str) -> Dialect:
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
    """Replace half surrogates, which UTF-8 can't encode, by U+FFFD.

    >>> replace_surrogates("a\\ud800 b")
    'a� b'
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Complaint:
    """An error message of a server: its text, the field that it names, and its codes in lower case."""

    text: str
    field: str = ""
    codes: frozenset[str] = frozenset()

    @classmethod
    def read(cls, content: bytes) -> Complaint:
        """Read the body of an HTTP error, whatever its form; the text is empty if the body has no words.

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
        return bool(self.codes & _ACCOUNT_CODES or _ACCOUNT_WORDS.match(self.text))

    @property
    def status(self) -> int:
        """The HTTP status among the codes, or 0."""
        return next((int(code) for code in self.codes if re.fullmatch("[45][0-9]{2}", code)), 0)


_WORDS = ("message", "msg", "detail", "error", "errors", "title", "reason", "description", "faultstring", "raw")
_INSIDE = ("fault", "metadata", "response", "body")
_CODES = ("code", "type", "status", "error_type", "error_code")
_MAX_DEPTH, _MAX_ITEMS = 10, 8
_ACCOUNT_CODES = frozenset(
    "402 insufficient_quota insufficient_credits insufficient_balance billing_hard_limit_reached billing_not_active "
    "account_deactivated payment_required".split()
)
_ACCOUNT_WORDS = re.compile(
    r"(?:error: |your |the |this |you are |you have )*(?:insufficient (?:account )?(?:quota|credits?|balance|funds)\b"
    r"|out of credits?\b|credit balance is too low|account (?:is|has been) (?:deactivated|suspended|disabled)"
    r"|payment required\b)",
    re.I,
)
# Matched at the beginning, as a server may repeat the prompt. Gemini says "exceeded your current quota" for a minute.


def _walk_error(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Yield kind (words, code or field) and text of everything in an error's body, outermost first."""
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
        for name in _CODES:
            if isinstance(value.get(name), str | int):
                yield "code", str(value[name]).lower()
        for name in (*_WORDS, *_INSIDE):
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
