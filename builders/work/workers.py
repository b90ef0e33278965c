"""Chunks of work over processes or threads: results in order, drawn a few ahead of the results."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, TypeVar

from safe_stepwise.errors import UserError
from safe_stepwise.store import event_loop

J = TypeVar("J")
R = TypeVar("R")


def in_order(
    process: Callable[[J], R], jobs: Iterable[J], *, workers: int, own_processes: bool
) -> Generator[tuple[J, R], None, None]:
    """``process`` over all jobs, results in the order of the jobs, for any ``workers`` >= 1.

    ``own_processes`` says whether the work is ours, to be spread over processes, and not a server's
    to wait for. Jobs are drawn only a few ahead, which bounds the memory. What is finished stays
    when the consumer stops or an error ends the run.

    Raises ``UserError`` when a worker process was killed, and whatever ``process`` raises.
    """
    if workers == 1:
        for job in jobs:
            yield job, process(job)
        return
    pending: deque[tuple[J, Future[R]]] = deque()
    pool: Executor | None = None
    try:
        for job in jobs:
            pool = pool or _pool(workers, own_processes)
            with _without_ctrl_c():
                pending.append((job, pool.submit(process, job)))
            if len(pending) >= 2 * workers + 2:
                yield _first(pending)
        while pending:
            yield _first(pending)
    except BrokenProcessPool:
        raise UserError(
            "a worker process was killed, most likely for want of memory; run the same command "
            "again, with fewer --workers: it resumes"
        ) from None
    finally:
        if pool is not None:
            if isinstance(pool, ThreadPoolExecutor):
                _abandon([future for _, future in pending])
            pool.shutdown(wait=True, cancel_futures=True)


def _pool(workers: int, own_processes: bool) -> Executor:
    if not own_processes:
        return ThreadPoolExecutor(workers)
    # Spawned, because this process has threads (progress bar, Arrow), which a fork may deadlock.
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent, initargs=(_exit,)
    )


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Hold Ctrl-C back for a moment: a worker that is started now never sees it.

    One that got it while it still imports would print a traceback and break the pool; so would one
    whose parent is interrupted half-way through telling it what to do. The mask is what the worker
    inherits; the handler is for this process, another thread of which may take the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if held and callable(handler):
            handler(*held[0])


def _first(pending: deque[tuple[J, Future[R]]]) -> tuple[J, R]:
    job, future = pending[0]
    result = future.result()
    pending.popleft()
    return job, result


def _abandon(running: list[Future[Any]]) -> None:
    """End threads that wait for a server, which would wait on after an interrupt."""
    for future in running:
        future.cancel()
    while wait_for_futures(running, timeout=0.05).not_done:
        event_loop.cancel_all()


def end_with_parent(end: Callable[[], object]) -> None:
    """Call ``end`` when the parent is gone, so that this process does not outlive it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_after, args=(parent.sentinel, end), daemon=True).start()


def _after(sentinel: int, end: Callable[[], object]) -> None:
    wait([sentinel])
    end()


def _exit() -> None:
    os._exit(1)
