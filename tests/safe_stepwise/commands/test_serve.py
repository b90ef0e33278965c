"""The verified loop behind the OpenAI protocol, asked by the `openai` client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import openai
import pytest

from safe_stepwise.commands.serve import Bounds, render_content
from safe_stepwise.commands.transcript import Trace, render_answer, render_trace
from safe_stepwise.methods.verified import doubts
from safe_stepwise.records import Attempt, Trajectory
from tests.memory.sitecustomize import PYTHONPATH
from tests.servers.openai_server import Cut, MockServer
from tests.servers.serving import verified_loop
from tests.servers.stepper import Stepper, found

PASSAGES = ["Oru lies on the Vel.", {"title": "Marn", "text": "Marn lies by the sea."}]


class Doubtful(Stepper):
    """A stepper whose verdicts on some answers can't be read, and who breaks off at others."""

    def __call__(self, body: Mapping[str, Any]) -> str:
        asked = found(r"^Question: (.*)$", body["messages"][1]["content"])
        if "of Z" in asked:
            return Cut("")
        said = super().__call__(body)
        return "no verdict" if "of X" in asked and said.startswith("{") else said


def asked(name: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "safe-stepwise",
        "messages": [{"role": "user", "content": f"What is the code of {name}?"}],
        "extra_body": {"passages": PASSAGES},
        **more,
    }


def client_of(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0)


def test_a_verified_answer_and_its_steps(tmp_path: Path) -> None:
    with MockServer(Stepper(flawed=1.0)) as model, verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url:
        reply = client_of(url).chat.completions.create(**asked("AB12"))
    (choice,) = reply.choices
    assert choice.message.content == "AB12"
    assert choice.finish_reason == "stop"
    told = reply.model_extra or {}
    assert told["verification"]["verified"] is True
    assert told["verification"]["tries"] == 4
    assert "simulated" not in told
    reasons = (choice.message.model_extra or {})["reasoning_content"].split("\n")
    assert [line for line in reasons if line.startswith("Step")] == [
        "Step 1: According to Passage 1, AB12 is a wrong thing. (Attribution)",
        "Step 1: According to Passage 1, AB12 is one more thing. (Attribution)",
        "Step 2: ####ANSWER: Wrong (Final Answer)",
        "Step 2: ####ANSWER: AB12 (Final Answer)",
    ]
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == sum(by["prompt"] for by in told["verification"]["tokens"].values())


def test_several_samples_come_as_choices_and_the_best_is_the_first(tmp_path: Path) -> None:
    class Guessing(Stepper):
        """A model that answers rightly with the seed 2 alone, and passes no other answer."""

        def __call__(self, body: Mapping[str, Any]) -> str:
            reply = super().__call__(body)
            return reply.replace("AB12", "Wrong") if "####ANSWER" in reply and body.get("seed") != 2 else reply

    with (
        MockServer(Guessing(flawed=0.0, steps=1)) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
    ):
        reply = client_of(url).chat.completions.create(**asked("AB12", n=3))
    first, *rest = [choice.message.content for choice in reply.choices]
    assert first == "AB12"
    assert all("not verified" in content and content.endswith("Wrong") for content in rest)
    verification = (reply.model_extra or {})["verification"]
    assert (verification["verified"], verification["scores"]) == (True, [1.0, 0.0, 0.0])
    assert [choice.index for choice in reply.choices] == [0, 1, 2]


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_passages_say_of_each_step_comes_if_it_is_wanted(tmp_path: Path, stream: bool) -> None:
    page = "Oru is one more thing."
    body = asked("Oru", stream=stream, extra_body={"passages": [page], "check": True})
    with MockServer(Stepper(flawed=0.0)) as model, verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url:
        reply = client_of(url).chat.completions.create(**body)
        *_, last = reply if stream else [reply]
        with pytest.raises(openai.BadRequestError, match='"check" is true or false'):
            client_of(url).chat.completions.create(**asked("Oru", extra_body={"passages": [page], "check": 1}))
    report = (last.model_extra or {})["verification"]["check"]
    step, answer = report["steps"]
    assert (report["judged_by"], step["label"], answer["label"]) == ("passages", "sound", "undecided")
    assert step["step"] == "Step 1: According to Passage 1, Oru is one more thing. (Attribution)"
    assert [claim["quote"] for claim in step["claims"]] == [page]


def test_a_stream_brings_each_try_and_then_the_answer(tmp_path: Path) -> None:
    with MockServer(Stepper(flawed=0.0)) as model, verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url:
        how = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(client_of(url).chat.completions.create(**asked("AB12", **how)))
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    steps = [text for d in deltas if (text := (d.model_extra or {}).get("reasoning_content"))]
    assert [step.split(":")[0] for step in steps] == ["Step 1", "Step 2"]
    assert "".join(delta.content or "" for delta in deltas) == "AB12"
    last = next(chunk for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason)
    assert (last.model_extra or {})["verification"]["verified"] is True
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens > 0


def test_the_first_step_is_there_before_the_last_is_asked_for(tmp_path: Path) -> None:
    """Calls beyond the first two hang: what the client sees by then was streamed."""
    with (
        MockServer(Stepper(flawed=0.0), last=2) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
    ):
        stream = client_of(url).chat.completions.create(**asked("AB12", stream=True))
        seen = next(
            text for chunk in stream if (text := (chunk.choices[0].delta.model_extra or {}).get("reasoning_content"))
        )
        stream.close()
    assert seen.startswith("Step 1: According to Passage 1, AB12 is one more thing.")


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_verified_says_so(tmp_path: Path, stream: bool) -> None:
    with (
        MockServer(Doubtful(flawed=0.0)) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
    ):
        content, told = whole(client_of(url), asked("X1", stream=stream))
    assert content.startswith("[not verified: step 1: accepted though no verdict on it")
    assert content.endswith("]\n\nX1")
    assert told["verified"] is False
    assert told["answer"] == "X1"
    assert len(told["doubts"]) == 2


def test_nobody_verifies_is_said_too(tmp_path: Path) -> None:
    with (
        MockServer(Stepper(flawed=0.0)) as model,
        verified_loop(model.spec, None, tmp_path / "c.sqlite", method="no_verification") as url,
    ):
        content, told = whole(client_of(url), asked("AB12"))
    assert content == "[not verified: no step was seen by a verifier]\n\nAB12"
    assert told["verified"] is False


def whole(client: openai.OpenAI, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The content of a reply and its verification, in one piece or as a stream."""
    if not body.get("stream"):
        reply = client.chat.completions.create(**body)
        return reply.choices[0].message.content, (reply.model_extra or {})["verification"]
    content, told = "", {}
    for chunk in client.chat.completions.create(**body):
        content += chunk.choices[0].delta.content or ""
        told = (chunk.model_extra or {}).get("verification", told)
    return content, told


@pytest.mark.parametrize("stream", [False, True])
def test_a_failed_request_is_an_error_and_no_answer(tmp_path: Path, stream: bool) -> None:
    with (
        MockServer(Doubtful(flawed=0.0)) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
        pytest.raises(openai.APIError, match="a request to the model failed"),
    ):
        whole(client_of(url), asked("Z1", stream=stream))


def test_none_of_200_is_lost_and_none_unverified_in_silence(tmp_path: Path) -> None:
    """32 at once, a fifth of the model's calls go wrong in every way that may pass, and some for
    good; some verdicts can't be read."""
    names = [f"{'XZ'[n % 2] if n % 10 < 2 else 'A'}{n}" for n in range(200)]

    async def ask_all(url: str) -> list[Any]:
        # 600 s also to connect, which by default may take five: the machine may stand still.
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=600.0) as client:
            places = asyncio.Semaphore(32)

            async def one(number: int, name: str) -> tuple[str, dict[str, Any]]:
                async with places:
                    if number % 3:
                        reply = await client.chat.completions.create(**asked(name))
                        told = (reply.model_extra or {})["verification"]
                        return reply.choices[0].message.content or "", told
                    content, told = "", {}
                    stream = await client.chat.completions.create(**asked(name, stream=True))
                    async for chunk in stream:
                        content += chunk.choices[0].delta.content or ""
                        told = (chunk.model_extra or {}).get("verification", told)
                    return content, told

            work = (one(number, name) for number, name in enumerate(names))
            return await asyncio.gather(*work, return_exceptions=True)

    with MockServer(Doubtful(), fault_rate=0.2, latency=0.002) as model:
        cache = tmp_path / "c.sqlite"
        # Eight at once of two roles: a call that hangs is given up after two seconds.
        with verified_loop(model.spec, model.spec, cache, timeout=2.0, log=False) as url:
            ended = asyncio.run(ask_all(url))
    assert len(ended) == 200
    assert sum(model.faulted.values()) > 50
    kinds = Counter[str]()
    for name, end in zip(names, ended, strict=True):
        if isinstance(end, BaseException):
            assert isinstance(end, openai.APIError), repr(end)
            assert "a request to the model failed" in str(end), (name, end, end.__cause__)
            kinds["failed"] += 1
            assert name.startswith("Z")
            continue
        content, told = end
        assert told["answer"] == name
        assert told["verified"] is (content == name)
        assert told["verified"] is (name.startswith("A"))
        assert told["verified"] or (content.startswith("[not verified: ") and content.endswith(f"]\n\n{name}"))
        kinds["verified" if told["verified"] else "unverified"] += 1
    assert kinds == {"verified": 160, "unverified": 20, "failed": 20}


# ------------------------------------------------------------------------------------------- limits


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[tuple[MockServer, str]]:
    """A model, and where the loop of it alone is served."""
    with MockServer(Stepper()) as model, verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url:
        yield model, url


@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"extra_body": {}}, 400, "give the passages"),
        ({"extra_body": {"passages": []}}, 400, "give the passages"),
        ({"extra_body": {"passages": [3]}}, 400, r"passages\[0\] is 3"),
        ({"extra_body": {"passages": [{"title": "Oru"}]}}, 400, r"passages\[0\]"),
        ({"model": "gpt-4o"}, 404, "this server serves only safe-stepwise"),
        ({"n": 17}, 400, "n is from 1 to 16 here"),
        ({"n": 2, "stream": True}, 400, "several choices can't be streamed"),
        ({"messages": [{"role": "system", "content": "Hi"}]}, 400, "the user's question"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "the question is empty"),
        ({"messages": []}, 400, "at least one"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, 400, "tools"),
    ],
)
def test_what_is_no_question_is_refused(
    plain: tuple[MockServer, str], change: dict[str, Any], status: int, says: str
) -> None:
    model, url = plain
    with pytest.raises(openai.APIStatusError, match=says) as refused:
        client_of(url).chat.completions.create(**{**asked("AB12"), **change})
    assert model.calls == 0
    assert refused.value.status_code == status


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"Content-Type": "text/plain"}, 415, "send Content-Type: application/json"),
        ({"Content-Encoding": "gzip"}, 415, "send the body as it is, without Content-Encoding"),
        ({"Content-Encoding": "deflate, br"}, 415, "without Content-Encoding"),
        ({"Host": "evil.example"}, 403, "this server answers to 127.0.0.1, ::1, localhost alone"),
        ({"Host": "127.0.0.1.evil.example:80"}, 403, "this server answers to"),
        ({"Host": "["}, 403, "this server answers to"),
        ({"Origin": "https://evil.example"}, 403, "requests from pages of another site are refused"),
        ({"Origin": "null"}, 403, "requests from pages of another site are refused"),
    ],
)
def test_what_a_page_or_a_broken_client_sends_is_refused(
    plain: tuple[MockServer, str], headers: dict[str, str], status: int, says: str
) -> None:
    model, url = plain
    sent = {"Content-Type": "application/json", **headers}
    body = b"\x1f\x8b\x08\x00 no gzip at all" if "Content-Encoding" in headers else b"{}"
    request = urllib.request.Request(f"{url}/chat/completions", body, sent)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert (refused.value.code, model.calls) == (status, 0)
    assert says in refused.value.read().decode()


def test_a_fault_of_ours_ends_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> tuple[str, ...]:
        raise RuntimeError("database is locked")

    monkeypatch.setattr("safe_stepwise.commands.serve.doubts", broken)
    with (
        MockServer(Stepper(flawed=0.0)) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
        pytest.raises(openai.APIError, match="internal error"),
    ):
        list(client_of(url).chat.completions.create(**asked("AB12", stream=True), timeout=60))


def test_a_long_body_is_refused(tmp_path: Path) -> None:
    bounds = Bounds(most_bytes=2_000)
    with (
        MockServer(Stepper()) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite", bounds=bounds) as url,
    ):
        body = asked("AB12", extra_body={"passages": ["x" * 3_000]})
        with pytest.raises(openai.APIStatusError, match="longer than 2,000 bytes") as refused:
            client_of(url).chat.completions.create(**body)
    assert refused.value.status_code == 413


@pytest.mark.parametrize("stream", [False, True])
def test_time_is_limited(tmp_path: Path, stream: bool) -> None:
    bounds = Bounds(seconds=0.3)
    with (
        MockServer(Stepper(), last=1) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite", bounds=bounds) as url,
        pytest.raises(openai.APIError, match=r"no answer within 0\.3 s"),
    ):
        whole(client_of(url), asked("AB12", stream=stream))


def test_whoever_comes_when_it_is_full_is_told_to_come_again(tmp_path: Path) -> None:
    bounds = Bounds(at_once=1, waiting=1, seconds=20)

    async def three(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            first = [asyncio.ensure_future(client.chat.completions.create(**asked(name))) for name in ("A1", "A2")]
            while json.loads(await client.get("/../health", cast_to=bytes))["under_way"] < 2:
                await asyncio.sleep(0.01)
            third = await asyncio.gather(client.chat.completions.create(**asked("A3")), return_exceptions=True)
            for one in first:
                one.cancel()
            await asyncio.gather(*first, return_exceptions=True)
            # Who is gone leaves room for others.
            while json.loads(await client.get("/../health", cast_to=bytes))["under_way"]:
                await asyncio.sleep(0.01)
            return third

    with (
        MockServer(Stepper(), last=0) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite", bounds=bounds) as url,
    ):
        (refused,) = asyncio.run(three(url))
    assert isinstance(refused, openai.RateLimitError)
    assert refused.response.headers["retry-after"] == "5"


def test_clients_that_left_keep_no_place_and_no_call(tmp_path: Path) -> None:
    """A model that hangs is asked for those alone who wait; when it is back, the next question is answered."""
    bounds = Bounds(at_once=4, waiting=100)

    async def leave(url: str) -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            for _ in range(3):
                those = [asyncio.ensure_future(client.chat.completions.create(**asked(f"A{n}"))) for n in range(60)]
                while json.loads(await client.get("/../health", cast_to=bytes))["under_way"] < 60:
                    await asyncio.sleep(0.01)
                for one in those:
                    one.cancel()
                await asyncio.gather(*those, return_exceptions=True)
                while json.loads(await client.get("/../health", cast_to=bytes))["under_way"]:
                    await asyncio.sleep(0.01)

    with (
        MockServer(Stepper(flawed=0.0), last=0) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite", bounds=bounds) as url,
    ):
        asyncio.run(leave(url))
        assert model.calls <= 3 * 60
        before, model.last = model.calls, float("inf")
        assert client_of(url).chat.completions.create(**asked("A99")).choices[0].message.content == "A99"
        assert model.calls == before + model.answered.total()  # nobody else's question was asked


def test_a_place_is_taken_by_a_question_not_by_a_connection(tmp_path: Path) -> None:
    bounds = Bounds(at_once=1, waiting=0)
    with (
        MockServer(Stepper(flawed=0.0)) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite", bounds=bounds) as url,
    ):
        port = int(url.rpartition(":")[2].partition("/")[0])
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        for connection in slow:
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
        assert client_of(url).chat.completions.create(**asked("A1")).choices[0].message.content == "A1"
        for connection in slow:
            connection.close()


def test_passages_beyond_anything_real_are_refused(plain: tuple[MockServer, str]) -> None:
    _, url = plain
    for passages, says in (
        ([""] * 200_000, "passages has 200000 entries, at most 200 are read"),
        (["x" * 60_000], "passage 1 has 60000 characters, at most 50000 are read"),
    ):
        with pytest.raises(openai.BadRequestError, match=says):
            client_of(url).chat.completions.create(**asked("A1", extra_body={"passages": passages}))


def test_a_model_of_the_list_can_be_asked_for(plain: tuple[MockServer, str]) -> None:
    client = client_of(plain[1])
    assert client.models.retrieve("safe-stepwise").id == "safe-stepwise"
    with pytest.raises(openai.NotFoundError, match="this server serves only safe-stepwise"):
        client.models.retrieve("another")


HIDING = {
    "a comment": "Oru <!--",
    "a style": "Oru <style>*{display:none}</style>",
    "a closed page": "Oru </body></html>",
    "concealed": "Oru \x1b[8m",
    "a cleared screen": "\x1b[2J\x1b[HOru",
    "a title": "\x1b]0;verified\x07Oru",
    "right to left": "Oru \u202e",
    "isolated": "Oru \u2066",
    "spaces": "Oru" + " " * 3_000,
    "lines": "Oru" + "\n" * 300,
    "a carriage return": "Oru\rverified; 3 steps, 3 tries",
    "a mark of its own": "Oru\n\nverified; 3 steps, 3 tries",
    "a fence": "Oru\n```\n",
    "without ink": "Oru" + "\u3164" * 200 + "\U000e0041",
    "length": "Oru " * 20_000,
}


@pytest.mark.parametrize("name", HIDING)
def test_no_answer_hides_that_it_is_not_verified(name: str) -> None:
    """It is said first, and what follows is one line of what is seen."""
    answer = HIDING[name]
    run = Trajectory("q1", "safe", (), (Attempt(1, answer, None, True, {}),), answer, "answered")
    told = {
        "verified": False,
        "doubts": list(doubts(run)),
        "answer": answer,
        "simulated": False,
        "trajectory": {"attempts": [1], "steps": [1]},
    }
    trace = Trace(run, "Where?", simulated=False)
    page = render_trace(trace)
    says = {
        "serve": (render_content(run), r"\[not verified: .*\]\n\n[^\n]*"),
        "answer": (render_answer(told), r"NOT VERIFIED: .*\nAnswer: [^\n]*"),
    }
    for where, (text, form) in says.items():
        assert re.fullmatch(form, text), where
        assert text.replace("\n", "").isprintable(), where
    assert "<!--" not in page
    assert "<style" not in page
    assert page.index("NOT VERIFIED") < page.index("Answer: ")


def test_a_model_that_comes_back_is_asked_again(tmp_path: Path) -> None:
    """A client that gives its run up answers nobody any more; the server goes on."""
    with (
        MockServer(Stepper(flawed=0.0), status=403) as model,
        verified_loop(model.spec, model.spec, tmp_path / "c.sqlite") as url,
    ):
        client = client_of(url)
        for number in range(5):
            with pytest.raises(openai.APIStatusError) as refused:
                client.chat.completions.create(**asked(f"A{number}"))
            assert refused.value.status_code in (502, 503)
        model.status = 0
        assert client.chat.completions.create(**asked("A9")).choices[0].message.content == "A9"


# -------------------------------------------------------------------------------------- the command


def command(*arguments: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    code = "import sys; from safe_stepwise.commands.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_no_key_is_logged(tmp_path: Path) -> None:
    """Neither the models' key, which their server repeats, nor one that a client sends us."""
    ours, theirs = "sk-" + "o" * 40, "sk-" + "t" * 40
    with MockServer(Stepper(flawed=0.0), key=ours, echo=True, status=400) as model:
        server = command(
            *("serve", "--generator", model.spec, "--verifier", model.spec, "--port", "0"),
            *("--cache", str(tmp_path / "c.sqlite")),
            cwd=tmp_path,
            OPENAI_API_KEY=ours,
        )
        assert server.stdout is not None
        line = server.stdout.readline()
        url = re.findall(r"http://\S+/v1", line)[0]
        client = openai.OpenAI(base_url=url, api_key=theirs, max_retries=0)
        with pytest.raises(openai.APIStatusError) as refused:
            client.chat.completions.create(**asked("AB12"))
        port = int(url.rpartition(":")[2].removesuffix("/v1"))
        with socket.create_connection(("127.0.0.1", port)) as wire:
            wire.sendall(f"POST / HTTP/1.1\r\nAuthorization: Bearer\0{theirs}\r\n\r\n".encode())
            assert wire.recv(4096)
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    assert server.returncode == 0, err
    for said in (line + out, err, str(refused.value)):
        assert ours not in said
        assert theirs not in said
    assert "refused with 502 in" in err
