"""Limits of the size of a row and of a chain of steps, beyond which `check_size` and `check_steps` refuse them.

A row far larger than any benchmark's could take hours to read.

Real rows (of HotpotQA, 2WikiMultihopQA and MuSiQue) have up to 20 passages of 7,543 characters, names of 163,
questions of 519, five hops. The time to read a row grows with each of these, and with the product of names and
passages, as each name is searched for in each passage.
"""

from collections.abc import Iterator, Sequence

from safe_stepwise.errors import RowError
from safe_stepwise.records import Question

MAX_ROW_CHARS = 1_000_000
"""The most characters of all passages of a row together."""
MAX_PASSAGE_CHARS = 50_000
MAX_QUESTION_CHARS = 10_000
MAX_NAME_CHARS = 1_000
"""The most characters of a title, an answer, an alias, a hop's question, an end of a triple."""
MAX_PASSAGES = 200
MAX_HOPS = 50
"""The most triples of the evidence, and the most hops of a decomposition."""
MAX_STEPS = 500
"""The most steps of a chain. Each step takes longer to read than the one before; models write up to a hundred."""
MAX_STEP_CHARS = 10_000


def check_steps(steps: Sequence[str]) -> None:
    """Raise ``RowError`` for a chain with more than `MAX_STEPS` steps, or a step longer than `MAX_STEP_CHARS`.

    >>> check_steps(["Step 1: Oru lies on the Vel. (Attribution)"] * 100_000)
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: steps has 100000 entries, at most 500 are read
    """
    if len(steps) > MAX_STEPS:
        raise RowError(f"steps has {len(steps)} entries, at most {MAX_STEPS} are read")
    for number, step in enumerate(steps, 1):
        if len(step) > MAX_STEP_CHARS:
            raise RowError(f"step {number} has {len(step)} characters, at most {MAX_STEP_CHARS} are read")


def check_size(question: Question) -> None:
    """Raise ``RowError`` for a row that is larger than any real one; the message says which part is too large.

    >>> check_size(Question("q", "b", "train", "Who? " * 2_001, "Ana"))
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: question has 10005 characters, at most 10000 are read
    """
    for name, size, limit in _measure_parts(question):
        if size > limit:
            unit = "entries" if name in ("passages", "evidence", "decomposition") else "characters"
            raise RowError(f"{name} has {size} {unit}, at most {limit} are read")


def _measure_parts(question: Question) -> Iterator[tuple[str, int, int]]:
    """Yield the name, the size and the limit of each part of a row."""
    yield "passages", len(question.passages), MAX_PASSAGES
    yield "evidence", len(question.evidence), MAX_HOPS
    yield "decomposition", len(question.decomposition), MAX_HOPS
    yield "question", len(question.question), MAX_QUESTION_CHARS
    for alias in question.accepted:
        yield "an answer", len(alias), MAX_NAME_CHARS
    for number, triple in enumerate(question.evidence, 1):
        yield f"evidence {number}", max(len(triple.head), len(triple.relation), len(triple.tail)), MAX_NAME_CHARS
    for number, hop in enumerate(question.decomposition, 1):
        yield f"hop {number}", max(len(hop.question), len(hop.answer)), MAX_NAME_CHARS
    sizes = [sum(map(len, page.sentences)) for page in question.passages]
    for number, (page, size) in enumerate(zip(question.passages, sizes, strict=True), 1):
        yield f"title of passage {number}", len(page.title), MAX_NAME_CHARS
        yield f"passage {number}", size, MAX_PASSAGE_CHARS
    yield "all passages together", sum(sizes), MAX_ROW_CHARS
