"""The loop over one question that a stranger types (data, of a limited size), by players that the Space has set."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from traceback import format_exc
from typing import Any

from safe_stepwise.commands.check import verdict
from safe_stepwise.commands.ending import told
from safe_stepwise.commands.loop import Loop
from safe_stepwise.commands.telling import record
from safe_stepwise.engines.base import EngineError
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import read_reply
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.records import FAILED, Attempt, Passage, Question, Step, Triple, identity

LIMITS: Mapping[str, int] = {"question": 500, "passages": 20_000, "facts": 4_000, "answer": 200}
"""Characters of each field."""
MOST_PASSAGES, MOST_FACTS = 20, 12
TITLE = "# "
"""What a passage's title stands behind, on a line of its own."""


def typed_question(question: str, passages: str, facts: str = "", answer: str = "") -> Question:
    """The question that four fields make; ``UserError`` for what is too much, or none.

    A blank line ends a passage; a fact is a line ``head | relation | tail``. Facts and answer may
    be left out: players without a model go by them, and so does the checker.

    >>> pages = "# Low Tide\\nA film by Ana Brell.\\n\\nAna Brell was born in Oru."
    >>> facts = "Low Tide | director | Ana Brell\\nAna Brell | place of birth | Oru"
    >>> found = typed_question("Where was the director of Low Tide born?", pages, facts)
    >>> found.passages[0].title, found.hops, found.answer
    ('Low Tide', 2, 'Oru')
    """
    fields = {"question": question, "passages": passages, "facts": facts, "answer": answer}
    texts = {name: _limited(name, text) for name, text in fields.items()}
    asked, known = " ".join(texts["question"].split()), tuple(_facts(texts["facts"]))
    if not asked:
        raise UserError("there is no question: type one")
    pages = [*_pages(texts["passages"], known)]
    if not pages:
        raise UserError("there are no passages: the loop answers from them, type at least one")
    if len(pages) > MOST_PASSAGES:
        raise UserError(f"there are {len(pages)} passages: {MOST_PASSAGES} at most")
    for number, fact in enumerate(known, 1):
        if not any(_names(page, fact) for page in pages):
            raise UserError(
                f"fact {number}: no passage names both “{fact.head}” and “{fact.tail}”; a fact has to stand in one"
            )
    told = " ".join(texts["answer"].split()) or (known[-1].tail if known else "")
    ends = {end.casefold() for fact in known for end in (fact.head, fact.tail)}
    if known and told.casefold() not in {"yes", "no", *ends}:
        raise UserError("the answer has to be yes, no, or one end of a fact")
    named = identity([asked, [[page.title, page.text] for page in pages]])
    return Question(
        id=named,
        benchmark="2wikimultihopqa",  # whose annotations are facts
        split="",
        question=asked,
        answer=told,
        kind="",
        hops=min(len(known), sum(page.is_gold for page in pages)),  # one may state several
        passages=tuple(pages),
        evidence=known,
    )


def typed_fields(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What to type for a row with annotations: question, passages, facts and answer."""
    pages = (f"{TITLE}{page['title']}\n{' '.join(page['sentences'])}" for page in row["passages"])
    facts = (f"{one['head']} | {one['relation']} | {one['tail']}" for one in row["evidence"])
    return row["question"], "\n\n".join(pages), "\n".join(facts), row["answer"]


def _limited(name: str, text: Any) -> str:
    if not isinstance(text, str | None):
        raise UserError(f"the {name} has to be text")
    found, most = text or "", LIMITS[name]
    if len(found) > most:
        raise UserError(f"the field {name} has {len(found):,} characters: {most:,} at most")
    # Half a surrogate pair is in no encoding, and NUL is in no file of replies.
    return found.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _facts(text: str) -> Iterator[Triple]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 or len(lines) > MOST_FACTS:
        raise UserError(f"facts: {len(lines)}; give none, or from 2 (one is no hop) to {MOST_FACTS}")
    for number, line in enumerate(lines, 1):
        parts = [" ".join(part.split()) for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise UserError(f"fact {number}: write head | relation | tail")
        head, relation, tail = parts
        yield Triple(head, relation, tail)


def _pages(text: str, facts: tuple[Triple, ...]) -> Iterator[Passage]:
    """The passages; gold are those that name both ends of a fact."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            block.append(" ".join(line.split()))
            continue
        titled = bool(block) and block[0].startswith(TITLE)
        title = block[0].removeprefix(TITLE) if titled else ""
        told = " ".join(block[titled:])
        if told:
            page = Passage(title, (told,), False)
            yield replace(page, is_gold=any(_names(page, fact) for fact in facts))
        block = []


def _names(page: Passage, fact: Triple) -> bool:
    """Whether a passage names both ends of a fact."""
    whole = f"{page.title} {page.text}".casefold()
    return fact.head.casefold() in whole and fact.tail.casefold() in whole


GENERATOR, VERIFIER = "SAFE_STEPWISE_GENERATOR", "SAFE_STEPWISE_VERIFIER"
"""Variables of the Space; nobody but its owner sets them."""
SIMULATED = {"generator": "symbolic:error_rate=0.4,seed=3", "verifier": "symbolic"}
"""Players where the owner has set none."""
KINDS = ("openai", "symbolic", "mock")
"""A page opens its players anew for each question: nothing with weights."""
SECONDS, CALL_S = 180.0, 60.0
"""For a question, and for one call to a model's server."""
NO_MODEL = (
    "this Space has no model: its players go by facts, so type some, as head | relation | tail "
    f"(its owner may set {GENERATOR} and {VERIFIER})"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What was tried so far, the checker's label of each try, and at the end what it came to."""

    attempts: tuple[Attempt, ...]
    labels: tuple[str, ...]
    """Empty where the question has no facts that the checker could go by."""
    record: Mapping[str, Any] | None = None


def players(settings: Mapping[str, str]) -> Mapping[str, str]:
    """The specs that the owner's settings name, by role; ``UserError`` for half of them.

    >>> players({})["verifier"]
    'symbolic'
    """
    found = {"generator": settings.get(GENERATOR, ""), "verifier": settings.get(VERIFIER, "")}
    if not any(found.values()):
        return SIMULATED
    for name, spec in zip((GENERATOR, VERIFIER), found.values(), strict=True):
        if spec.partition(":")[0] not in KINDS:
            raise UserError(f"the Space's owner has to set {name} to a spec of {', '.join(KINDS)}")
    return found


async def standings(question: Question, specs: Mapping[str, str]) -> AsyncIterator[Standing]:
    """Where the loop stands after each try, and at the end; ``UserError`` if it can't answer.

    What was typed, and what was said to it, is kept by nobody: replies go to a folder that is gone
    with the answer.
    """
    with TemporaryDirectory(prefix="safe-stepwise-") as kept:
        loop = _loop(specs, Path(kept) / "replies.sqlite")
        if not question.is_annotated and any(one.startswith("symbolic") for one in specs.values()):
            raise UserError(NO_MODEL)
        said: asyncio.Queue[Attempt | None] = asyncio.Queue()
        answering = asyncio.create_task(_answered(question, loop, said))
        tried: list[Attempt] = []
        try:
            while (attempt := await said.get()) is not None:
                tried.append(attempt)
                yield Standing(tuple(tried), checked(question, tried))
            yield Standing(tuple(tried), checked(question, tried), await answering)
        finally:
            answering.cancel()  # where whoever asked has left
            with suppress(asyncio.CancelledError, UserError):
                await answering


def checked(question: Question, attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """What the checker says of each try after the steps accepted before it."""
    if not question.is_annotated:
        return ()
    try:
        checker = strict_checker_of(question)
    except EngineError:  # the facts make no plan
        return ()
    labels, previous = [], list[Step]()
    for attempt in attempts:
        step, label, _ = verdict(checker.check, previous, partial(read_reply, attempt.text, attempt.number))
        labels.append(label)
        previous += [step] if step and attempt.accepted else []
    return tuple(labels)


async def _answered(question: Question, loop: Loop, said: asyncio.Queue[Attempt | None]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SECONDS), loop.opened() as clients:
            trajectory = await loop.answer(question, clients, said.put_nowait)
            if trajectory.stop_reason == FAILED:
                raise UserError(trajectory.failure)
            return record(question, trajectory, clients, loop.stepwise)
    except TimeoutError:
        raise UserError(f"the question took longer than {SECONDS:g} s and was ended") from None
    except UserError as error:
        raise UserError(_reason(str(error), loop.specs)) from None
    except Exception:  # of the server, one question ends, and its log says why
        print(told(format_exc()), file=sys.stderr, flush=True)
        raise UserError("this ended by a fault of ours; other words may do") from None
    finally:
        said.put_nowait(None)


def _reason(failure: str, specs: Mapping[str, str]) -> str:
    """Why a question failed, but for what tells of the owner's server."""
    if specs == SIMULATED:
        return f"the simulated players can't answer this: {failure}"
    _log(failure)
    return "a player failed to reply; its reason is in the Space's log"


def _loop(specs: Mapping[str, str], cache: Path) -> Loop:
    try:
        return Loop(generator=specs["generator"], verifier=specs["verifier"], cache=cache, timeout=CALL_S)
    except UserError as error:
        _log(str(error))
        raise UserError("the players that the owner has set can't be read; see the log") from None


def _log(reason: str) -> None:
    print(told(reason), file=sys.stderr, flush=True)
