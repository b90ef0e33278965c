"""Much work at once: in its order, never too much of it, and the first error ends all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from safe_stepwise.store.event_loop import for_each


async def turns(number: int) -> None:
    """Let the others go on, so many times."""
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("at_once", [1, 3, 20])
def test_every_item_is_worked_on_once_and_few_at_a_time(at_once: int) -> None:
    begun: list[int] = []
    ended: list[int] = []
    most = 0

    async def work(item: int) -> None:
        nonlocal most
        begun.append(item)
        most = max(most, len(begun) - len(ended))
        await turns(1 + item * 7 % 5)
        ended.append(item)

    asyncio.run(for_each(iter(range(10)), work, at_once))
    assert begun == list(range(10))
    assert sorted(ended) == begun
    assert most == min(at_once, 10)


def test_whoever_is_free_takes_the_next_item() -> None:
    """One that never ends holds up its own place only."""
    ended: list[int] = []

    async def all_but_the_first() -> None:
        gate = asyncio.Event()

        async def work(item: int) -> None:
            if item == 0:
                await gate.wait()
            ended.append(item)
            if item == 9:
                gate.set()

        await for_each(range(10), work, 2)

    asyncio.run(all_but_the_first())
    assert ended == [*range(1, 10), 0]


def test_no_item_is_taken_before_there_is_room_for_it() -> None:
    taken: list[int] = []
    ended: list[int] = []

    def items() -> Iterator[int]:
        for item in range(9):
            assert len(taken) - len(ended) < 3
            taken.append(item)
            yield item

    async def work(item: int) -> None:
        await turns(2)
        ended.append(item)

    asyncio.run(for_each(items(), work, 3))
    assert sorted(ended) == list(range(9))


def test_the_first_error_ends_the_others_and_is_raised() -> None:
    ended: list[str] = []

    async def work(item: int) -> None:
        try:
            await turns(3) if item == 4 else await asyncio.Event().wait()
            raise ValueError(f"item {item}")
        except asyncio.CancelledError:
            ended.append(f"cancelled {item}")
            raise

    with pytest.raises(ValueError, match="item 4"):
        asyncio.run(for_each(range(50), work, 8))
    assert sorted(ended) == [f"cancelled {item}" for item in range(8) if item != 4]


def test_an_error_of_the_items_ends_all_as_well() -> None:
    cancelled: list[int] = []

    def items() -> Iterator[int]:
        yield from range(3)
        raise ValueError("no more of them")

    async def work(item: int) -> None:
        try:
            if item:  # the first one's worker asks for more, while the others are under way
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(item)
            raise

    with pytest.raises(ValueError, match="no more of them"):
        asyncio.run(for_each(items(), work, 3))
    assert cancelled == [1, 2]


def test_a_cancellation_ends_all() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def work(item: int) -> None:
        begun.append(item)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(item)

    async def cancelled() -> None:
        running = asyncio.create_task(for_each(range(9), work, 4))
        await turns(3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert sorted(ended) == begun == [0, 1, 2, 3]


def test_nothing_to_do_and_no_room() -> None:
    async def work(item: int) -> None:
        raise AssertionError

    asyncio.run(for_each([], work, 3))
    with pytest.raises(ValueError, match="at_once has to be 1 or more"):
        asyncio.run(for_each([1], work, 0))
