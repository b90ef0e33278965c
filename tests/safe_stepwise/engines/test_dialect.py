"""Servers that take other fields than OpenAI's own, and the many shapes in which they say so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.engines import client as client_module
from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling, Schema
from safe_stepwise.engines.client import Client, ResponseCache
from safe_stepwise.engines.dialect import Complaint, Dialect
from safe_stepwise.engines.openai import OpenAIEngine
from safe_stepwise.errors import UserError
from tests.safe_stepwise.engines.test_openai import acted, last_turn
from tests.servers.openai_server import MockServer

SCHEMA = Schema.from_dict("verdict", {"type": "object"})
Refuses = Callable[[Mapping[str, Any]], tuple[int, Any] | None]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "FIRST_WAIT_S", 0.0)


def request(number: int, **sampling: Any) -> Request:
    turns = (Message("system", "Judge the step."), Message("user", f"Step {number}: Oru lies on the Vel."))
    return Request(turns, Sampling(**sampling), SCHEMA, role="verifier")


def openai_refuses(*fields: str) -> Refuses:
    def refusal(body: Mapping[str, Any]) -> tuple[int, Any] | None:
        for field in fields:
            if field in body:
                message = f"Unsupported value: '{field}' does not support {body[field]} with this model."
                return 400, {"error": {"message": message, "type": "invalid_request_error", "param": field}}
        return None

    return refusal


def has_system(body: Mapping[str, Any]) -> bool:
    return any(turn["role"] == "system" for turn in body["messages"])


def o1_mini(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    if has_system(body):
        message = "Unsupported value: 'messages[0].role' does not support 'system' with this model."
        return 400, {"error": {"message": message, "param": "messages[0].role", "code": "unsupported_value"}}
    return openai_refuses("temperature", "top_p")(body)


def two_at_once(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    refused = {"error": "'temperature' and 'top_p' are not supported"}
    return (400, refused) if {"temperature", "top_p"} & set(body) else None


def deepseek(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    if "response_format" in body:
        message = "This response_format type is unavailable now"
        return 400, {"error": {"message": message, "type": "invalid_request_error", "param": None}}
    return None


def gemma_on_vllm(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    error = {"object": "error", "message": "System role not supported", "type": "BadRequestError", "code": 400}
    return (400, error) if has_system(body) else None


def gemma_on_llama_cpp(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    message = "Value is not callable: null at row 3: raise_exception('System role not supported')"
    return (500, {"error": {"code": 500, "message": message, "type": "server_error"}}) if has_system(body) else None


def mistral(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    extra = [name for name in ("seed", "max_completion_tokens") if name in body]
    told = [
        {
            "type": "extra_forbidden",
            "loc": ["body", name],
            "msg": "Extra inputs are not permitted",
            "input": body[name],
        }
        for name in extra
    ]
    return (422, {"object": "error", "message": {"detail": told}, "type": "invalid_request_error"}) if told else None


def gemini(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    message = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
    return (
        (400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]) if "seed" in body else None
    )


def tgi(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    error = {"error": "Input validation error: `top_p` must be > 0.0 and < 1.0", "error_type": "validation"}
    return (422, error) if "top_p" in body else None


def through_openrouter(body: Mapping[str, Any]) -> tuple[int, Any] | None:
    raw = json.dumps({"error": {"message": "`temperature` is deprecated for this model."}})
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw, "provider_name": "A"}}
    return (400, {"error": error}) if "temperature" in body else None


SERVERS: dict[str, tuple[Refuses, str]] = {
    "gpt-5": (openai_refuses("temperature", "top_p"), "?without=temperature,top_p"),
    "o1-mini": (o1_mini, "?without=temperature,top_p&system=user"),
    "two in the same words": (two_at_once, "?without=temperature,top_p"),
    "DeepSeek": (deepseek, "?without=schema"),
    "Gemma on vLLM": (gemma_on_vllm, "?system=user"),
    "Gemma on llama.cpp": (gemma_on_llama_cpp, "?system=user"),
    "Mistral": (mistral, "?without=seed&max_tokens"),
    "Gemini": (gemini, "?without=seed"),
    "TGI": (tgi, "?without=top_p"),
    "OpenRouter": (through_openrouter, "?without=temperature"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_what_a_server_refuses_is_learned_once_and_said(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    refuses, switches = SERVERS[name]
    expected = Dialect.read(switches[1:])
    assert expected is not None

    async def twice(engine: OpenAIEngine) -> int:
        client = Client(engine)
        for start in (0, 100):
            replies = await client.complete_all([request(start + n) for n in range(12)])
            assert all(isinstance(reply, Completion) and reply.text for reply in replies)
            refused.append(server.refusals)
        assert client.total().failed == 0
        return client.total().calls

    refused: list[int] = []
    with MockServer(last_turn, owner="somebody", refuses=refuses, keep_bodies=True) as server:
        assert acted(OpenAIEngine("mock", server.url), twice) == 24  # what a refusal costs is no call of the account
        learned = server.bodies[-1]
        said = capsys.readouterr().err
        server.bodies.clear()
        server.refusals = 0
        acted(OpenAIEngine.read(f"mock@{server.url}{switches}"), twice)
        assert server.refusals == 0
    assert refused[0] == refused[1]  # no request of the second twelve was refused
    fields = [
        one for value in expected.non_default.values() for one in (value if isinstance(value, list) else [value])
    ]
    assert said.count("note: ") == len(fields), said
    assert switches in said.splitlines()[-1]  # the last one names them all
    assert server.bodies[-1] == learned  # the switches of a spec ask for the same
    assert capsys.readouterr().err == ""


def body_of(spec: str, **sampling: Any) -> dict[str, Any]:
    dialect = Dialect.read(spec) or Dialect()
    return dialect.resolve(None).make_body("m", request(1, **sampling))


def test_switches_leave_out_what_they_name_and_nothing_else() -> None:
    whole = body_of("")
    for field in ("temperature", "top_p", "seed"):
        assert body_of(f"without={field}") == {name: value for name, value in whole.items() if name != field}
    assert whole.keys() - body_of("without=schema").keys() == {"response_format"}
    renamed = body_of("max_tokens")
    assert renamed.pop("max_tokens") == whole["max_completion_tokens"]
    assert renamed.keys() == whole.keys() - {"max_completion_tokens"}
    (turn,) = body_of("system=user")["messages"]
    assert turn == {"role": "user", "content": "Judge the step.\n\nStep 1: Oru lies on the Vel."}


def test_a_system_turn_alone_becomes_one_of_the_user() -> None:
    alone = Request((Message("system", "Judge."),))
    assert Dialect(system="user").make_body("m", alone)["messages"] == [{"role": "user", "content": "Judge."}]


def test_what_a_spec_leaves_out_is_part_of_what_can_change_a_reply() -> None:
    switched = OpenAIEngine.read("a@http://h:1/v1?system=user&without=seed,schema&max_tokens&template=off")
    assert switched.name == "openai:a?template=off&without=schema,seed&system=user&max_tokens"
    assert switched.base_url == "http://h:1/v1"
    assert switched.identity == {
        "engine": "openai",
        "model": "a",
        "base_url": "http://h:1/v1",
        "template": False,
        "without": ["schema", "seed"],
        "system": "user",
        "limit": "max_tokens",
    }
    again = OpenAIEngine.read(f"a@http://h:1/v1{switched.name.removeprefix('openai:a')}")
    assert again.identity == switched.identity


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("m?without=sead", r"\?without= 'sead' is not known.*choose from"),
        ("m?without=", r"\?without= '' is not known"),
        ("m?system=assistant", r"\?system= 'assistant' is not known"),
        ("m?without=seed&sytem=user", r"switch 'sytem' is not known.*from template, without, system, max_tokens"),
        ("m?max_tokens=512", "names the field that holds the limit, not a limit"),
    ],
)
def test_a_switch_that_is_none_is_one_line(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as caught:
        OpenAIEngine.read(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"error": {"message": "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum "
                         "context length is 1024 tokens", "param": "max_tokens"}}),
        (400, {"error": {"message": "prompt is too long: 5000 tokens > 4096 maximum"}}),
        (422, {"detail": [{"loc": ["body", "stop"], "msg": "Extra inputs are not permitted"}]}),
        (400, {"error": {"message": "content policy"}}),
        (400, {"error": {"message": "The prompt was flagged: At what temperature does the seed of a plant with a "
                         "system role germinate?", "code": "content_filter"}}),
        (400, {"error": {"message": "The prompt was flagged: At what temperature does the seed sprout?"}}),
        (400, {"error": {"message": "This model's maximum context length is 128000 tokens, 75 of them in the "
                         "response_format", "param": "messages", "code": "context_length_exceeded"}}),
        (400, {"error": {"message": "The request to model A/Seed-OSS-36B is too long"}}),
        (404, {"error": {"message": "The model `seed-1.6` does not exist"}}),
        (400, {"error": {"message": "max_completion_tokens: 2048 is above the allowed limit of 1024"}}),
        (400, {"error": {"message": "Prompt is too long: system prompt 9000 tokens"}}),
        (400, {"error": {"message": "The prompt was flagged: The bomber's bank account has been suspended."}}),
        (500, {"error": {"message": "GPU temperature is not normal"}}),
        (429, {"error": {"message": "Rate limit for temperature sampling"}}),
    ],
)  # fmt: skip
def test_what_can_not_be_left_out_stays_an_error(status: int, error: Any, capsys: pytest.CaptureFixture[str]) -> None:
    async def one(engine: OpenAIEngine) -> list[Completion | EngineError]:
        return await Client(engine, tries=1).complete_all([request(1, stop=("\n",))])

    with MockServer(last_turn, owner="a", refuses=lambda body: (status, error)) as server:
        (found,) = acted(OpenAIEngine("mock", server.url), one)
        assert server.refusals == 1
    assert isinstance(found, EngineError)
    assert Complaint.read(json.dumps(error).encode()).text[:60] in str(found)
    assert capsys.readouterr().err == ""


def test_a_server_that_refuses_whatever_is_sent_is_asked_a_few_times_only() -> None:
    """Its words name every field in turn, and it is never content."""

    async def one(engine: OpenAIEngine) -> list[Completion | EngineError]:
        return await Client(engine, tries=1).complete_all([request(n) for n in range(8)])

    words = "temperature top_p seed response_format max_completion_tokens max_tokens system role chat_template_kwargs"
    with MockServer(last_turn, refuses=lambda _: (400, {"error": f"not supported: {words}"})) as server:
        found = acted(OpenAIEngine("mock", server.url), one)
        assert server.refusals <= 8 * 10
    assert all(isinstance(reply, EngineError) for reply in found)


def test_what_is_learned_changes_no_key_of_the_cache(tmp_path: Path) -> None:
    """The same command, run again, learns the same of the same server, and pays for nothing twice."""

    async def one(engine: OpenAIEngine) -> list[Completion | EngineError]:
        with closing(ResponseCache(tmp_path / "replies.sqlite")) as cache:
            return await Client(engine, cache).complete_all([request(1)])

    with MockServer(last_turn, owner="a", refuses=mistral) as server:
        first, second = (acted(OpenAIEngine("mock", server.url), one) for _ in range(2))
        assert server.answered.total() == 1
    assert first == second


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "a"}, "a"),
        ({"message": "a"}, "a"),
        ({"detail": "a"}, "a"),
        ({"msg": "a"}, "a"),
        ({"error": {"error": {"message": "a"}}}, "a"),
        ([{"error": {"message": "a", "status": "INVALID_ARGUMENT"}}], "a"),
        ({"errors": [{"message": "a"}, {"message": "b"}]}, "a; b"),
        ({"title": "t", "status": 422, "detail": "a"}, "a; t"),
        ({"detail": [{"loc": ["body", "x"], "msg": "a"}]}, "a (body.x)"),
        ({"object": "error", "message": {"detail": [{"loc": ["body", "x"], "msg": "a"}]}}, "a (body.x)"),
        ({"fault": {"faultstring": "a", "detail": {"errorcode": "x"}}}, "a"),
        ({"error": {"message": "a", "metadata": {"raw": '{"error": {"message": "b"}}'}}}, "a; b"),
        ({"error": {"message": "a", "metadata": {"raw": "b"}}}, "a; b"),
        (b"<html><head><title>413 Too Large</title></head><body>nginx</body></html>", "413 Too Large"),
        (b"<p>upstream <b>gone</b></p>", "upstream gone"),
        (b"no healthy upstream\n", "no healthy upstream"),
        (b"", ""),
        (b'{"error": {"mess', '{"error": {"mess'),
        ({"unforeseen": "a"}, ""),
    ],
)
def test_the_reason_of_a_refusal_whatever_its_shape(body: Any, told: str) -> None:
    async def one(engine: OpenAIEngine) -> list[Completion | EngineError]:
        return await Client(engine, tries=1).complete_all([request(1)])

    with MockServer(last_turn, refuses=lambda _: (422, body)) as server:
        (found,) = acted(OpenAIEngine("mock", server.url), one)
    assert str(found) == (f"HTTP 422: {told}" if told else "HTTP 422")


_JSON = st.recursive(
    st.none() | st.integers() | st.text() | st.sampled_from(["seed", "402", '{"error": "a"}']),
    lambda inner: st.lists(inner) | st.dictionaries(
        st.sampled_from("error message detail loc param code msg raw errors metadata".split()), inner
    ),
)  # fmt: skip


@given(st.binary() | _JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_body_is_its_complaint_is_read(content: bytes) -> None:
    complaint = Complaint.read(content)
    assert "\n" not in complaint.text
    Dialect().relearn(complaint, Dialect().resolve(None).make_body("m", request(1)))


_OVER = [
    (200, {"error": {"message": "Insufficient credits", "code": 402}}),
    (402, {"error": {"message": "Payment Required"}}),
    (402, b""),
    (429, {"error": {"message": "You exceeded your current quota, please check your plan and billing details.",
                     "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}}),
    (400, {"error": {"message": "Your credit balance is too low to access the API."}}),
    (402, {"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}}),
    (200, {"choices": [{"finish_reason": "error", "error": {"code": 402, "message": "No credits left"}}]}),
    (403, {"error": {"message": "The account has been deactivated", "code": "account_deactivated"}}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), _OVER)
def test_an_account_that_can_not_pay_ends_the_run_at_once(status: int, body: Any) -> None:
    async def many(engine: OpenAIEngine) -> None:
        client = Client(engine, in_flight=1)
        with pytest.raises(UserError, match=r"account is out of credit.*run the same command again") as caught:
            await client.complete_all([request(n) for n in range(5)])
        assert "\n" not in str(caught.value)

    with MockServer(last_turn, refuses=lambda _: (status, body)) as server:
        acted(OpenAIEngine("mock", server.url), many)
        assert server.refusals == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"message": "Rate limit reached: see https://platform.openai.com/account/billing",
                         "code": "rate_limit_exceeded"}}),
        (429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and "
                          "billing details. Please retry in 20s.", "status": "RESOURCE_EXHAUSTED"}}]),
        (200, {"error": {"message": "overloaded"}}),
        (200, {"error": {"message": "Upstream is down", "code": 502}}),
        (200, {"choices": [{"finish_reason": "error", "error": {"code": 502, "message": "gone"}, "message": {}}]}),
    ],
)  # fmt: skip
def test_what_passes_is_tried_again(status: int, body: Any) -> None:
    async def one(engine: OpenAIEngine) -> Completion | EngineError:
        (found,) = await Client(engine, tries=3).complete_all([request(1)])
        return found

    with MockServer(last_turn, refuses=lambda _: (status, body) if server.refusals < 2 else None) as server:
        assert isinstance(acted(OpenAIEngine("mock", server.url), one), Completion)
        assert server.refusals == 2
        server.refusals = -9
        failed = acted(OpenAIEngine("mock", server.url), one)
    assert isinstance(failed, EngineError)
    assert Complaint.read(json.dumps(body).encode()).text[:40] in str(failed) or status == 200


def test_a_refusal_within_http_200_is_not_tried_again() -> None:
    async def one(engine: OpenAIEngine) -> Completion | EngineError:
        (found,) = await Client(engine).complete_all([request(1)])
        return found

    with MockServer(last_turn, refuses=lambda _: (200, {"error": {"code": 400, "message": "too long"}})) as server:
        found = acted(OpenAIEngine("mock", server.url), one)
        assert server.refusals == 1
    assert str(found) == "HTTP 200 with an error: too long"


def test_a_list_of_models_is_advice(capsys: pytest.CaptureFixture[str]) -> None:
    """Routers, adapters and aliases are served though no list names them."""

    async def checked(engine: OpenAIEngine) -> Completion | EngineError:
        await engine.check()
        (found,) = await Client(engine).complete_all([request(1)])
        return found

    with MockServer(last_turn, unlisted=("alias",), owner="a") as server:
        assert isinstance(acted(OpenAIEngine("alias", server.url), checked), Completion)
        assert "lists mock; asked for alias all the same" in capsys.readouterr().err
        with pytest.raises(UserError, match=r"lists mock, not this model, and refuses it \(HTTP 404: no such model\)"):
            acted(OpenAIEngine("typo", server.url), checked)


def test_a_model_that_loads_for_long_is_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async def checked(engine: OpenAIEngine) -> None:
        await asyncio.wait_for(engine.check(), 30)

    monkeypatch.setattr("safe_stepwise.engines.openai.CHECK_TIMEOUT_S", 2)  # a busy machine lists its models in time
    with MockServer(last_turn, unlisted=("alias",), latency=5) as server:
        acted(OpenAIEngine("alias", server.url), checked)


def test_what_one_request_is_refused_for_is_learned_of_no_other() -> None:
    """Its words are those of a refusal of a field, but without the field it is refused as before."""

    async def both(engine: OpenAIEngine) -> list[Completion | EngineError]:
        client = Client(engine, tries=1)
        return [*await client.complete_all([request(1)]), *await client.complete_all([request(2)])]

    def refusal(body: Mapping[str, Any]) -> tuple[int, Any] | None:
        echoed = {"error": {"message": "flagged: 'seed' is not supported"}}
        return (400, echoed) if "Step 1" in last_turn(body) else None

    with MockServer(last_turn, owner="a", refuses=refusal, keep_bodies=True) as server:
        first, second = acted(OpenAIEngine("mock", server.url), both)
        assert "seed" in server.bodies[-1]
    assert isinstance(first, EngineError)
    assert isinstance(second, Completion)


@pytest.mark.parametrize("status", [400, 402])
def test_no_key_is_cut_before_it_is_taken_out(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "topsecretvalue-" + "x7" * 12
    monkeypatch.setenv("OPENAI_API_KEY", key)

    async def one(engine: OpenAIEngine) -> str:
        try:
            return str((await Client(engine, tries=1).complete_all([request(1)]))[0])
        except UserError as error:
            return str(error)

    for length in range(440, 520, 7):
        refusal = {"error": {"message": "x " * (length // 2) + key}}
        with MockServer(last_turn, refuses=lambda _, told=refusal: (status, told)) as server:  # type: ignore[misc]
            assert key[:12] not in acted(OpenAIEngine("mock", server.url), one)
