"""What a server takes of a request: said in a spec, read off its list of models, or learned from its refusals.

The API is OpenAI's, but no two servers take the same fields: gpt-5 and the o-series refuse a temperature, Mistral and
Gemini a seed, Gemma a system turn, DeepSeek a JSON schema. A refusal that names such a field is learned from: the same
request goes out without it, and so do all that follow.
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
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.boundary import parse_json

TEMPLATE_OWNERS = ("vllm", "sglang", "llamacpp")
"""What servers with a template for ``chat_template_kwargs`` write in ``owned_by``."""
CHOICE_OWNERS = ("vllm",)
"""What servers that take a list of replies write there."""
OPTIONAL = ("top_p", "seed", "temperature", "schema")
"""Fields that a request can do without, the least of them first."""
_SWITCHES = ("template", "without", "system", "max_tokens")
_SWITCH = {"on": True, "off": False}
_IS_UNKNOWN = re.compile(
    "support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|cannot find|unavailable|enabled|instead", re.I
)
_OF_SIZE = re.compile(r"too (?:large|long|high|many)|maximum|exceed|context|above|at most|limit of|\d tokens", re.I)
_OF_CONTENT = frozenset("content_filter content_policy_violation context_length_exceeded model_not_found".split())


def _named(words: str) -> re.Pattern[str]:
    """Matches where a refusal names a field: in quotes, or as what is told of; a prompt may hold the bare word."""
    told = r"(?:is (?:not|deprecated|unsupported)|isn't|are not|does not|cannot|can't|must|not|parameter|field)\b"
    kinds = r"(?:argument|parameter|field|property|input|name)s?(?: supplied)?"
    return re.compile(
        rf"[\"'`](?:{words})[\"'`]|\b(?:{words})(?: {told}|:)|\b{kinds}[: ]{{1,3}}(?:{words})\b"
        rf"|(?:\A|; )(?:body\.)?(?:{words})(?=;|\Z)",
        re.IGNORECASE,
    )


_NAMES: Mapping[str, re.Pattern[str]] = {
    "template": re.compile(r"chat_template_kwargs|enable_thinking"),
    "top_p": _named("top[_-]?p"),
    "seed": _named("seed"),
    "temperature": _named("temperature"),
    "schema": re.compile(r"response_format|json_schema|structured_outputs|guided_json", re.I),
    "limit": _named("max_(?:completion_)?tokens"),
    "system": re.compile(
        r"\bsystem['\"`]?[ _](?:role|prompts?|messages?|instructions?)['\"`]? (?:is |are )?(?:not|un)"
        r"|developer instruction|messages\S{0,9}\.role\b|\brole\b.{0,20}['\"`]system['\"`]",
        re.I,
    ),
}
"""How a refusal names what it refuses, in the order in which it is given up."""
PLAINLY = {
    "template": "chat_template_kwargs",
    "schema": "a JSON schema",
    "limit": "max_completion_tokens (max_tokens in its place)",
    "system": "a system turn (its text opens the user's)",
}
"""What is given up, in a message, where its name alone says too little."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The fields of a request as one server takes them; None is not known yet.

    ``template`` is whether ``chat_template_kwargs`` are sent, ``choices`` whether a list of replies is. With
    ``system`` *user* a system turn opens the turn behind it instead.
    """

    template: bool | None = None
    without: frozenset[str] = frozenset()
    system: Literal["system", "user"] = "system"
    limit: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    choices: bool | None = None

    @classmethod
    def read(cls, query: str) -> Dialect | None:
        """The dialect that the switches behind a spec's ``?`` say; None where none of ours stands there.

        >>> Dialect.read("without=seed,schema&max_tokens").query
        '?without=schema,seed&max_tokens'
        >>> Dialect.read("api-version=1") is None
        True

        Raises ``UserError`` for a switch or a value that is not known.
        """
        given = parse_qsl(query, keep_blank_values=True)
        if not any(name in _SWITCHES for name, _ in given):
            return None
        values = {one_of(name, _SWITCHES, "openai: the switch"): value for name, value in given}
        dialect = cls()
        if "template" in values:
            dialect = replace(dialect, template=_SWITCH[one_of(values["template"], _SWITCH, "openai: ?template=")])
        if "system" in values:
            one_of(values["system"], ("user",), "openai: ?system=")
            dialect = replace(dialect, system="user")
        if values.get("max_tokens"):
            raise UserError("openai: ?max_tokens names the field that holds the limit, not a limit: write it alone")
        if "max_tokens" in values:
            dialect = replace(dialect, limit="max_tokens")
        names = values["without"].split(",") if "without" in values else ()
        return replace(dialect, without=frozenset(one_of(name, OPTIONAL, "openai: ?without=") for name in names))

    @property
    def query(self) -> str:
        """The switches that say it, as a spec ends in them; a template that is sent says nothing of a reply."""
        switches = [
            *(["template=off"] if self.template is False else []),
            *([f"without={','.join(sorted(self.without))}"] if self.without else []),
            *(["system=user"] if self.system == "user" else []),
            *(["max_tokens"] if self.limit == "max_tokens" else []),
        ]
        return f"?{'&'.join(switches)}" if switches else ""

    @property
    def plain(self) -> dict[str, Any]:
        """What of it can change a reply, for an engine's identity."""
        return {
            **({"template": False} if self.template is False else {}),
            **({"without": sorted(self.without)} if self.without else {}),
            **({"system": self.system} if self.system == "user" else {}),
            **({"limit": self.limit} if self.limit == "max_tokens" else {}),
        }

    def resolve(self, owner: str | None) -> Dialect:
        """The dialect once it is known who serves the model; what is known already stays."""
        return replace(
            self,
            template=owner in TEMPLATE_OWNERS if self.template is None else self.template,
            choices=owner in CHOICE_OWNERS if self.choices is None else self.choices,
        )

    def body(self, model: str, request: Request) -> dict[str, Any]:
        """The JSON body of a request."""
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": m.role, "content": sendable(m.content)} for m in self._turns(request.messages)],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self.limit: sampling.max_tokens,
            "seed": sampling.seed,
        }
        body = {name: value for name, value in body.items() if name not in self.without}
        if sampling.repetition_penalty != 1:  # vLLM's own; a server without it says so
            body["repetition_penalty"] = sampling.repetition_penalty
        if sampling.stop:
            body["stop"] = list(sampling.stop)
        if request.choices and self.choices:
            body["structured_outputs"] = {"choice": list(map(sendable, request.choices))}
        elif request.schema and "schema" not in self.without:
            schema = {"name": request.schema.name, "schema": json.loads(request.schema.text)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if sampling.effort:
            body["reasoning_effort"] = sampling.effort
        elif self.template:
            body["chat_template_kwargs"] = {"enable_thinking": False}
        return body

    def _turns(self, messages: tuple[Message, ...]) -> Iterator[Message]:
        """The turns of a chat; where no system turn may be, its text opens the turn behind it."""
        before = ""
        for message in messages:
            if message.role == "system" and self.system == "user":
                before += f"{message.content}\n\n"
            else:
                yield replace(message, content=before + message.content) if before else message
                before = ""
        if before:
            yield Message("user", before.rstrip())

    def relearn(self, complaint: Complaint, body: Mapping[str, Any]) -> tuple[str, Dialect] | None:
        """What a refusal complains of, and the dialect without it; None where it names nothing that was sent.

        >>> complaint = Complaint("Unsupported value: 'temperature' does not support 0.0 with this model.")
        >>> field, dialect = Dialect().relearn(complaint, {"temperature": 0.0, "seed": 0})
        >>> field, dialect.query
        ('temperature', '?without=temperature')
        """
        sent = {
            "template": "chat_template_kwargs" in body,
            "schema": bool({"response_format", "structured_outputs"} & set(body)),
            "limit": self.limit == "max_completion_tokens" and bool(_IS_UNKNOWN.search(complaint.text)),
            "system": any(turn["role"] == "system" for turn in body.get("messages", ())),
        }
        told = complaint.field or complaint.text
        if complaint.codes & _OF_CONTENT or _OF_SIZE.search(complaint.text):
            return None
        for field, name in _NAMES.items():
            if sent.get(field, field in body) and name.search(told):
                return field, self.drop(field)
        return None

    def drop(self, field: str) -> Dialect:
        """The dialect without a field."""
        match field:
            case "template":
                return replace(self, template=False)
            case "system":
                return replace(self, system="user")
            case "limit":
                return replace(self, limit="max_tokens")
            case "schema" if self.choices:
                return replace(self, choices=False)
        return replace(self, without=self.without | {field})


def sendable(text: str) -> str:
    """Text with half surrogates, which UTF-8 doesn't have, replaced by U+FFFD.

    >>> sendable("a\\ud800 b")
    'a� b'
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why a server gives no reply: its words, the field that it names, and its codes, in lower case."""

    text: str
    field: str = ""
    codes: frozenset[str] = frozenset()

    @classmethod
    def read(cls, content: bytes) -> Complaint:
        """The complaint in the body of an error, whatever its shape; without words where it has none.

        >>> Complaint.read(b'[{"error": {"code": 400, "message": "Unknown name \\\\"seed\\\\"", "status": "X"}}]').text
        'Unknown name "seed"'
        >>> Complaint.read(b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}')
        Complaint(text='Extra inputs are not permitted (body.seed)', field='body.seed', codes=frozenset())
        >>> Complaint.read(b"<html><title>502 Bad Gateway</title><p>nginx</p></html>").text
        '502 Bad Gateway'
        """
        parts = list(_parts_of(content.decode("utf-8", "replace"), 0))
        words = dict.fromkeys(text for kind, text in parts if kind == "words" and text)
        fields = [text for kind, text in parts if kind == "field"]
        return cls("; ".join(words), "; ".join(fields), frozenset(text for kind, text in parts if kind == "code"))

    @property
    def is_of_account(self) -> bool:
        """Whether it is the account that has run dry or was closed, which no other try will mend."""
        return bool(self.codes & _ACCOUNT_CODES or _ACCOUNT_WORDS.match(self.text))

    @property
    def status(self) -> int:
        """The HTTP status among its codes; 0 where there is none."""
        return next((int(code) for code in self.codes if re.fullmatch("[45][0-9]{2}", code)), 0)


_WORDS = ("message", "msg", "detail", "error", "errors", "title", "reason", "description", "faultstring", "raw")
_INSIDE = ("fault", "metadata", "response", "body")
_CODES = ("code", "type", "status", "error_type", "error_code")
_DEEPEST, _MOST = 10, 8
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
# At the beginning, as a prompt may be repeated behind. Gemini says "exceeded your current quota" of a minute's.


def _parts_of(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """The words, codes and fields of an error's body, by kind, outermost first."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        yield from _parts_of_text(value.strip(), depth)
    elif isinstance(value, list):
        for one in value[:_MOST]:
            yield from _parts_of(one, depth + 1)
    elif isinstance(value, dict):
        place = value.get("loc") or value.get("param")
        named = ".".join(map(str, place)) if isinstance(place, list) else str(place or "")
        field = " ".join(named.split())
        if field:
            yield "field", field
        for name in _CODES:
            if isinstance(value.get(name), str | int):
                yield "code", str(value[name]).lower()
        for name in (*_WORDS, *_INSIDE):
            for kind, text in _parts_of(value.get(name), depth + 1):
                is_placed = kind == "words" and name == "msg" and bool(field)
                yield kind, f"{text} ({field})" if is_placed else text


def _parts_of_text(text: str, depth: int) -> Iterator[tuple[str, str]]:
    """The parts of a body, or of one in a body; words alone where it is no JSON, a page's title where it is HTML."""
    if text[:1] in ("{", "["):
        with suppress(ValueError):
            yield from _parts_of(parse_json(text.encode("utf-8", "replace")), depth + 1)
            return
    title = re.search("<(title|h1)[^<>]{0,200}>([^<]{1,500})<", text, re.I)
    words = title[2] if title else re.sub("<[^<>]{0,500}>", " ", text)
    yield "words", " ".join(words.split())
