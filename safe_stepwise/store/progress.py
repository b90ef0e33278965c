"""A progress bar that says in words how the work stands, and ends with what came of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

AFTER_S = 1.0


def counts(done: int, cached: int, owed: int | str, **others: int) -> str:
    """How work stands: what this run did, what an earlier one had, ``others``, what is to come.

    >>> counts(3, 1, 9, failed=2)
    'done 3 cached 1 failed 2 owed 9'
    """
    said = {"done": done, "cached": cached, **others, "owed": owed}
    return " ".join(f"{name} {number}" for name, number in said.items())


@contextmanager
def telling(
    title: str, unit: str, total: int | None, done: Callable[[], int], standing: Callable[[], str]
) -> Iterator[None]:
    """Show how many are ``done`` and what ``standing`` says, twice a second and at the end.

    It begins late, so that a mistake which shows at once prints its one line and nothing else.
    """
    over = threading.Event()

    def tell() -> None:
        if over.wait(AFTER_S):
            return
        with tqdm(total=total, unit=unit, desc=title) as bar:
            bar.start_t -= AFTER_S
            is_over = False
            while not is_over:
                is_over = over.wait(0.5)
                bar.set_postfix_str(standing(), refresh=False)
                if not bar.update(done() - bar.n):
                    bar.refresh()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
