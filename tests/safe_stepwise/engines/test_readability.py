"""Work of which no reply can be read ends with its first requests, whoever reads them."""

import asyncio
from pathlib import Path

import pytest

from evaluators.run.runner import collect_verdicts
from safe_stepwise.engines.base import EngineError, Message, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.engines.readability import MAX_UNREADABLE, PROBES
from safe_stepwise.errors import UserError
from safe_stepwise.store.event_loop import gather_all
from safe_stepwise.store.replies import ReplyError
from scripts import build_verified
from tests.scripts.test_teacher_runs import arguments, rows, write
from tests.servers.openai_server import MockServer
from tests.servers.truth import Truth

ALOUD = "Okay, so the user asks where Oru is.\nPassage 1 ..."


def requests(number: int) -> list[Request]:
    return [Request((Message("user", str(n)),)) for n in range(number)]


def read(client: Client, number: int) -> list[str]:
    async def one(request: Request) -> str:
        try:
            async with client.reading(request) as reply:
                return str(int(reply.text))
        except (ValueError, EngineError) as error:
            return type(error).__name__

    async def all_read() -> list[str]:
        return await gather_all(map(one, requests(number)))

    return asyncio.run(all_read())


def test_work_without_a_readable_reply_ends_after_the_first_ones() -> None:
    client = Client(MockEngine(lambda _: ALOUD))
    with pytest.raises(UserError, match=r"first 8 requests; the first reply begins 'Okay, so .* think aloud"):
        read(client, 200)
    assert MAX_UNREADABLE <= client.total().calls <= MAX_UNREADABLE + PROBES


@pytest.mark.parametrize("readable", [0, MAX_UNREADABLE - 1])
def test_one_readable_reply_and_all_are_asked(readable: int) -> None:
    client = Client(MockEngine(lambda r: "7" if int(r.messages[0].content) == readable else ALOUD))
    assert read(client, 200).count("ValueError") == 199
    assert client.total().calls == 200
    assert client.readability.first == ""


def test_the_first_reply_of_less_work_is_kept_for_the_message() -> None:
    client = Client(MockEngine(lambda r: "Hm." if int(r.messages[0].content) else ALOUD))
    assert read(client, 3) == ["ValueError"] * 3
    assert client.readability.first.startswith("the first reply begins 'Okay, so the user")


def test_requests_that_fail_are_no_replies() -> None:
    def reply(request: Request) -> str:
        if int(request.messages[0].content) < 20:
            raise EngineError("HTTP 400")
        return "7"

    assert read(Client(MockEngine(reply)), 40) == ["EngineError"] * 20 + ["7"] * 20


def test_verdicts_end_too_and_a_second_player_may_be_unreadable() -> None:
    def verdict(text: str, data: str) -> str:
        raise ReplyError("no object")

    by_number = dict(enumerate(requests(3)))
    client = Client(MockEngine(lambda _: ALOUD))
    with pytest.raises(UserError, match=r"first 3 requests; .*\(no object\); it seems to think aloud"):
        collect_verdicts(client, "verifier", "step", by_number, verdict, "unparsed")
    unread = collect_verdicts(client, "baseline", "step", by_number, verdict, "unparsed", is_first=False)
    assert [reply.verdict for reply in unread.replies.values()] == ["unparsed"] * 3


def test_a_teacher_that_thinks_aloud_is_asked_little(tmp_path: Path) -> None:
    """Over a real server, and again without a call; another model of the same address is asked for all."""
    known = rows(60)
    file = write(tmp_path / "rows.jsonl", known)
    with MockServer(lambda _: ALOUD) as server:
        for _ in range(2):
            with pytest.raises(UserError, match=r"reply to the first 8 requests; .*--reasoning-parser"):
                build_verified.main(arguments(file, server.spec, tmp_path / "out"))
            assert MAX_UNREADABLE <= server.calls <= MAX_UNREADABLE + PROBES
    assert not (tmp_path / "out" / "safe-noise-labels").exists()
    with MockServer(Truth(known), port=server.port) as fresh:
        build_verified.main(arguments(file, fresh.spec, tmp_path / "out", cache=f"{tmp_path}/other.sqlite"))
    assert (tmp_path / "out" / "safe-noise-labels").exists()
