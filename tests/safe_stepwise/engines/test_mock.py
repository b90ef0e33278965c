from __future__ import annotations

import asyncio
import json
import tempfile
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from safe_stepwise.engines import mock
from safe_stepwise.engines.base import Completion, EngineError, Message, Request, Sampling
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import Latency, MockEngine, PrefixCache, Tokenizers, prompt_tokens
from safe_stepwise.errors import UserError
from safe_stepwise.open import open_engine
from safe_stepwise.records import Usage


def request(text: str, **sampling: int) -> Request:
    return Request((Message("user", text),), Sampling(**sampling))


def ask(engine: MockEngine, *requests: Request) -> list[Completion | EngineError]:
    return list(asyncio.run(engine.generate(requests)))  # type: ignore[arg-type]


def script(tmp_path: Path, **content: object) -> Path:
    file = tmp_path / "script.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def test_the_first_rule_that_matches_wins(tmp_path: Path) -> None:
    rules = [{"match": "Oru$", "reply": "a town"}, {"match": "Or", "reply": "gold"}]
    file = script(tmp_path, replies=[*rules, {"reply": "what?"}])
    engine = open_engine(f"mock:{file}")
    assert isinstance(engine, MockEngine)
    found = ask(engine, request("Oru"), request("Or else"), request("Vel"))
    assert [c.text for c in found if isinstance(c, Completion)] == ["a town", "gold", "what?"]
    assert engine.simulated
    assert "simulated" in engine.name


def test_a_changed_script_is_another_engine(tmp_path: Path) -> None:
    one = MockEngine.read(script(tmp_path, replies=[{"reply": "a"}])).identity
    other = MockEngine.read(script(tmp_path, replies=[{"reply": "b"}])).identity
    assert one != other


@pytest.mark.parametrize(
    "content",
    [
        "replies: [", "[]", "3", "{}", "replies: 3", "replies: [{}]",
        "replies: [{match: '(', reply: a}]",
        "replies: []\nlatency: {slow: 1}", "replies: []\nlatency: {base: soon}",
        "replies: []\nnonsense: 1", "replies: []\ncache: {size: 1}",
        "replies: []\ncache: {block: 0}", "replies: []\nlatency: {prefill: 0}",
        "replies: []\nlatency: {base: .nan}", "replies: []\ndefault: 3",
        "replies: [{reply: []}]", "replies: [{reply: yes}]", "replies: [{reply: a, when: b}]",
        "replies: [{match: 'a{99999999999}', reply: a}]", "replies: 2001-99-99",
        "replies: [{reply: 2001-01-01}]", "a: &a [*a]\nreplies: *a", "[" * 1500, "\0", "",
    ],
)  # fmt: skip
def test_a_bad_script_is_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=r"script\.yaml") as caught:
        MockEngine.read(file)
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.binary(max_size=30) | st.text(max_size=30).map(str.encode))
def test_any_file_is_a_script_or_one_line(content: bytes) -> None:
    for suffix in (".json", ".yaml"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"script{suffix}"
            file.write_bytes(content)
            with pytest.raises(UserError) as caught:
                MockEngine.read(file)
            assert str(caught.value).splitlines() == [str(caught.value)]


def test_a_bad_script_says_where(tmp_path: Path) -> None:
    rules = [{"reply": "a"}, {"match": 3, "reply": "b"}]
    with pytest.raises(UserError, match=r"replies\[1\]\.match is not a text"):
        MockEngine.read(script(tmp_path, replies=rules))
    with pytest.raises(UserError, match=r"replies\[0\]\.match: missing \)"):
        MockEngine.read(script(tmp_path, replies=[{"match": "(", "reply": "b"}]))
    with pytest.raises(UserError, match=r"latency\.base is not a number"):
        MockEngine.read(script(tmp_path, replies=[], latency={"base": "soon"}))


def test_the_script_of_the_docstring_is_one(tmp_path: Path) -> None:
    assert mock.__doc__ is not None
    _, _, rest = mock.__doc__.partition("::\n")
    text, _, _ = rest.partition("\nOnly ``replies``")
    file = tmp_path / "script.yaml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    engine = MockEngine.read(file)
    assert engine.latency == Latency(base=0.05, prefill=5000, decode=80)
    assert (engine.cache.block, engine.cache.blocks) == (16, 4096)


def test_rules_go_by_role_plain_text_and_the_last_user_turn(tmp_path: Path) -> None:
    rules = [{"contains": "(1)", "role": "judge", "reply": "yes"}, {"contains": "(1)", "reply": "other"}]
    engine = MockEngine.read(script(tmp_path, replies=rules, default="none"))
    turns = (Message("user", "no"), Message("user", "is it (1)?"), Message("assistant", "no"))
    earlier = (Message("user", "is it (1)?"), Message("assistant", "(1)"), Message("user", "or 1"))
    found = ask(engine, *(Request(turns, role=role) for role in ("judge", "")), Request(earlier))
    assert [c.text for c in found if isinstance(c, Completion)] == ["yes", "other", "none"]


def test_replies_are_given_in_turn_and_the_last_from_then_on(tmp_path: Path) -> None:
    rules = [{"match": "^a", "reply": ["one", "two"]}, {"reply": ["b one", "b two", "b three"]}]
    engine = MockEngine.read(script(tmp_path, replies=rules))
    found = ask(engine, *map(request, ["a1", "b1", "a2", "a3", "b2"]))
    assert [c.text for c in found if isinstance(c, Completion)] == [
        "one", "b one", "two", "two", "b two",
    ]  # fmt: skip


def test_what_no_rule_fits_is_an_error(tmp_path: Path) -> None:
    engine = MockEngine.read(script(tmp_path, replies=[{"match": "a", "reply": "b"}]))
    (error,) = ask(engine, request("x"))
    assert isinstance(error, EngineError)
    assert not error.transient


def test_a_missing_script_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none"):
        MockEngine.read(tmp_path / "none.json")


def test_a_reply_is_cut_at_the_limit() -> None:
    engine = MockEngine(lambda _: "one two three four")
    (whole,) = ask(engine, request("x", max_tokens=4))
    (cut,) = ask(engine, request("x", max_tokens=3))
    assert isinstance(whole, Completion)
    assert isinstance(cut, Completion)
    assert (whole.ending, cut.ending) == ("whole", "cut")
    assert cut.usage.completion == 3
    assert (cut.text, cut.fragment) == ("", "one two three")
    (nothing,) = ask(engine, request("x", max_tokens=0))
    assert isinstance(nothing, Completion)
    assert (nothing.transcript, nothing.ending) == ("", "cut")


def test_a_reply_ends_before_a_stop_string() -> None:
    engine = MockEngine(lambda _: "one two\nthree; four")
    (said,) = ask(engine, replace(request("x"), sampling=Sampling(stop=(";", "\n"))))
    assert isinstance(said, Completion)
    assert (said.text, said.ending, said.usage.completion) == ("one two", "whole", 2)


def test_time_is_slept_to_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def noted(seconds: float) -> None:
        slept.append(seconds)

    # Only the engine's own name: a server of another test may still sleep on another thread.
    monkeypatch.setattr(mock, "asyncio", SimpleNamespace(sleep=noted, gather=asyncio.gather))
    engine = MockEngine(lambda _: "yes", latency=Latency(base=4, scale=0.5))
    ask(engine, request("a"), request("b"))
    assert slept == [2, 2]
    assert engine.seconds == 8
    engine.latency = replace(engine.latency, scale=0)
    ask(engine, request("a"))
    assert slept == [2, 2]


def test_latency_adds_up() -> None:
    latency = Latency(base=1, prefill=10, decode=2, scale=0)
    assert latency.seconds(Usage(prompt=30, cached=10, completion=4)) == 1 + 2 + 2
    engine = MockEngine(lambda _: "one two", latency=latency)
    ask(engine, request("a b c d e"))
    # Seven tokens of prompt: the words, and one before each of the two turns.
    assert engine.seconds == pytest.approx(1 + 0.7 + 1)


def test_the_prefix_cache_serves_whole_blocks() -> None:
    cache = PrefixCache(block=4)
    tokens = [str(n) for n in range(10)]
    assert cache.take(tokens) == 0
    assert cache.take(tokens) == 8
    assert cache.take([*tokens[:7], "other", *tokens[8:]]) == 4
    assert cache.take(["other", *tokens[1:]]) == 0
    assert cache.take(tokens[:8]) == 4  # its last token is computed


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache = PrefixCache(block=1, blocks=3)
    cache.take(["a", "b"])
    cache.take(["x", "y"])
    assert cache.take(["x", "y", "z"]) == 2
    assert cache.take(["a", "b", "c"]) == 0


class NaiveCache:
    """A tree of blocks, as prefix to when it was last used; leaves go, the oldest first."""

    def __init__(self, block: int, blocks: int) -> None:
        self.block, self.blocks, self.now = block, blocks, 0
        self.used: dict[tuple[str, ...], tuple[int, int]] = {}

    def take(self, prompt: list[str], reply: list[str]) -> int:
        self.now += 1
        tokens = tuple(prompt + reply)
        ends = range(self.block, len(tokens) + 1, self.block)
        known = [tokens[:end] in self.used for end in ends]
        found = [*known, False].index(False) * self.block
        for end in ends:
            self.used[tokens[:end]] = (self.now, -end)
        while len(self.used) > self.blocks:
            inner = {prefix[: -self.block] for prefix in self.used}
            leaves = [prefix for prefix in self.used if prefix not in inner]
            del self.used[min(leaves, key=self.used.__getitem__)]
        while found and found >= len(prompt):
            found -= self.block
        return found


TOKENS = st.lists(st.sampled_from("ab"), max_size=9)


@settings(deadline=None)
@given(st.lists(st.tuples(TOKENS, TOKENS), max_size=15), st.integers(1, 4), st.integers(1, 12))
def test_the_prefix_cache_against_a_naive_one(
    calls: list[tuple[list[str], list[str]]], block: int, blocks: int
) -> None:
    cache, naive = PrefixCache(block, blocks), NaiveCache(block, blocks)
    for prompt, reply in calls:
        assert cache.take(prompt, reply) == naive.take(prompt, reply)
        assert len(cache) == len(naive.used) <= blocks


def test_the_calls_of_one_question_share_their_prefix() -> None:
    engine = MockEngine(lambda _: "yes")
    client = Client(engine)
    passages = " ".join(f"word{n}" for n in range(400))

    async def steps() -> list[Completion]:
        return [await client.complete(request(f"{passages} step {n}")) for n in range(3)]

    cached = [completion.usage.cached for completion in asyncio.run(steps())]
    assert cached == [0, 400, 400]


def test_a_conversation_goes_on_from_what_was_said() -> None:
    said = " ".join(f"step{n}" for n in range(50))
    engine = MockEngine(lambda _: said)
    first = request("What now?")
    turns = (*first.messages, Message("assistant", said), Message("user", "And then?"))
    _, second = ask(engine, first), ask(engine, replace(first, messages=turns))[0]
    assert isinstance(second, Completion)
    whole = len(prompt_tokens(first)) + 50
    assert second.usage.cached == whole // 16 * 16 > len(prompt_tokens(first))


def test_tokens_may_be_those_of_a_tokenizer() -> None:
    whole: Tokenizers = (lambda request: list(request.messages[0].content), list)
    engine = MockEngine(lambda _: "yes", cache=PrefixCache(block=2), tokens=whole)
    first, second = ask(engine, request("abcde"), request("abcdX"))
    assert isinstance(first, Completion)
    assert isinstance(second, Completion)
    assert (first.usage, second.usage) == (Usage(5, 0, 3), Usage(5, 4, 3))
