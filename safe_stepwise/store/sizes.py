"""Bounds on the size of a row: a row far larger than any benchmark's is refused, as reading it could take hours.

Real rows (of HotpotQA, 2WikiMultihopQA and MuSiQue) have up to 20 passages of 7,543 characters, names of 163,
questions of 519, five hops. The time to read a row grows with each of these, and with their product where each name
is searched for in each passage.
"""

from collections.abc import Iterator, Sequence

from safe_stepwise.errors import RowError
from safe_stepwise.records import Question

MAX_ROW = 1_000_000
"""Characters of all passages together."""
MAX_PASSAGE = 50_000
MAX_QUESTION = 10_000
MAX_NAME = 1_000
"""Characters of a title, an answer, an alias, a hop's question, an end of a triple."""
MAX_PASSAGES = 200
MAX_HOPS = 50
"""Triples of the evidence, and hops of a decomposition."""
MAX_STEPS = 500
"""Steps of a chain. The time to read a step grows with the steps before it; models write up to a hundred."""
MAX_STEP = 10_000
"""Characters of a step."""


def check_steps(steps: Sequence[str]) -> None:
    """Raise ``RowError`` for a chain with more than `MAX_STEPS` steps, or a step longer than `MAX_STEP`.

    >>> check_steps(["Step 1: Oru lies on the Vel. (Attribution)"] * 100_000)
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: steps has 100000 entries, at most 500 are read
    """
    if len(steps) > MAX_STEPS:
        raise RowError(f"steps has {len(steps)} entries, at most {MAX_STEPS} are read")
    for number, step in enumerate(steps, 1):
        if len(step) > MAX_STEP:
            raise RowError(f"step {number} has {len(step)} characters, at most {MAX_STEP} are read")


def check_size(question: Question) -> None:
    """Raise ``RowError`` for a row that is larger than any real one; the message says which part is too large.

    >>> check_size(Question("q", "b", "train", "Who? " * 2_001, "Ana"))
    Traceback (most recent call last):
    safe_stepwise.errors.RowError: question has 10005 characters, at most 10000 are read
    """
    for name, size, limit in _sizes(question):
        if size > limit:
            unit = "entries" if name in ("passages", "evidence", "decomposition") else "characters"
            raise RowError(f"{name} has {size} {unit}, at most {limit} are read")


def _sizes(question: Question) -> Iterator[tuple[str, int, int]]:
    yield "passages", len(question.passages), MAX_PASSAGES
    yield "evidence", len(question.evidence), MAX_HOPS
    yield "decomposition", len(question.decomposition), MAX_HOPS
    yield "question", len(question.question), MAX_QUESTION
    for alias in question.accepted:
        yield "an answer", len(alias), MAX_NAME
    for number, triple in enumerate(question.evidence, 1):
        yield f"evidence {number}", max(len(triple.head), len(triple.relation), len(triple.tail)), MAX_NAME
    for number, hop in enumerate(question.decomposition, 1):
        yield f"hop {number}", max(len(hop.question), len(hop.answer)), MAX_NAME
    sizes = [sum(map(len, page.sentences)) for page in question.passages]
    for number, (page, size) in enumerate(zip(question.passages, sizes, strict=True), 1):
        yield f"title of passage {number}", len(page.title), MAX_NAME
        yield f"passage {number}", size, MAX_PASSAGE
    yield "all passages together", sum(sizes), MAX_ROW
