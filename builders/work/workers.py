"""Runs chunks of work in processes or threads, and yields their results in order."""

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


def run_in_order(
    process: Callable[[J], R], jobs: Iterable[J], *, workers: int, is_cpu_bound: bool
) -> Generator[tuple[J, R], None, None]:
    """Run ``process`` on all jobs and yield (job, result) in the order of the jobs, for any ``workers`` >= 1.

    CPU-bound work runs in processes, other work in threads; jobs are read only a few ahead. Raises ``UserError`` when
    a worker process was killed, and whatever ``process`` raises.
    """
    if workers == 1:
        for job in jobs:
            yield job, process(job)
        return
    pending: deque[tuple[J, Future[R]]] = deque()
    pool: Executor | None = None
    try:
        for job in jobs:
            pool = pool or _pool(workers, is_cpu_bound)
            with _blocking_ctrl_c():
                pending.append((job, pool.submit(process, job)))
            if len(pending) >= 2 * workers + 2:
                yield _next_result(pending)
        while pending:
            yield _next_result(pending)
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


def _pool(workers: int, is_cpu_bound: bool) -> Executor:
    if not is_cpu_bound:
        return ThreadPoolExecutor(workers)
    # Spawned, because this process has threads (progress bar, Arrow), which a fork may deadlock.
    return ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=end_with_parent, initargs=(_exit,)
    )


@contextmanager
def _blocking_ctrl_c() -> Iterator[None]:
    """Delay Ctrl-C while a worker starts, so that the worker never gets it.

    A worker that got it during its imports would print a traceback and break the pool; so would a worker whose parent
    is interrupted while it sends the job. The worker inherits the signal mask; the handler is for this process, where
    another thread may get the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda signum, frame: received.append((signum, frame)))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if received and callable(handler):
            handler(*received[0])


def _next_result(pending: deque[tuple[J, Future[R]]]) -> tuple[J, R]:
    job, future = pending[0]
    result = future.result()
    pending.popleft()
    return job, result


def _abandon(running: list[Future[Any]]) -> None:
    """End threads that wait for a server; they would go on waiting after an interrupt."""
    for future in running:
        future.cancel()
    while wait_for_futures(running, timeout=0.05).not_done:
        event_loop.cancel_all()


def end_with_parent(end: Callable[[], object]) -> None:
    """Call ``end`` when the parent is gone, so that this process does not outlive it."""
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_call_after, args=(parent.sentinel, end), daemon=True).start()


def _call_after(sentinel: int, end: Callable[[], object]) -> None:
    wait([sentinel])
    end()


def _exit() -> None:
    os._exit(1)
