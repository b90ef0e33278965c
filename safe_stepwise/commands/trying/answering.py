"""Answers one question that a visitor of the Space types, by the loop; the Space's owner sets the players."""

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

from safe_stepwise.commands import check, ending, transcript
from safe_stepwise.commands.loop import Loop
from safe_stepwise.engines.base import EngineError
from safe_stepwise.errors import UserError
from safe_stepwise.methods.loop import read_reply
from safe_stepwise.players.steps import strict_checker_of
from safe_stepwise.records import FAILED, Attempt, Passage, Question, Step, Triple, identity

LIMITS: Mapping[str, int] = {"question": 500, "passages": 20_000, "facts": 4_000, "answer": 200}
"""The most characters of each field."""
MOST_PASSAGES, MOST_FACTS = 20, 12
TITLE = "# "
"""The mark before a passage's title, on a line of its own."""


def typed_question(question: str, passages: str, facts: str = "", answer: str = "") -> Question:
    """Make a question of four typed fields; raises ``UserError`` for a field that is too long or not valid.

    A blank line ends a passage; a fact is a line ``head | relation | tail``. Facts and answer may
    be left out; only the checker, and players without a model, need them.

    >>> pages = "# Low Tide\\nA film by Ana Brell.\\n\\nAna Brell was born in Oru."
    >>> facts = "Low Tide | director | Ana Brell\\nAna Brell | place of birth | Oru"
    >>> typed = typed_question("Where was the director of Low Tide born?", pages, facts)
    >>> typed.passages[0].title, typed.hops, typed.answer
    ('Low Tide', 2, 'Oru')
    """
    fields = {"question": question, "passages": passages, "facts": facts, "answer": answer}
    texts = {name: _check_length(name, text) for name, text in fields.items()}
    question_text, evidence = " ".join(texts["question"].split()), tuple(_parse_facts(texts["facts"]))
    if not question_text:
        raise UserError("there is no question: type one")
    pages = [*_parse_passages(texts["passages"], evidence)]
    if not pages:
        raise UserError("there are no passages: the loop answers from them, type at least one")
    if len(pages) > MOST_PASSAGES:
        raise UserError(f"there are {len(pages)} passages: {MOST_PASSAGES} at most")
    for number, fact in enumerate(evidence, 1):
        if not any(_names_both(page, fact) for page in pages):
            raise UserError(
                f"fact {number}: no passage names both “{fact.head}” and “{fact.tail}”; a fact has to stand in one"
            )
    answer_text = " ".join(texts["answer"].split()) or (evidence[-1].tail if evidence else "")
    ends = {end.casefold() for fact in evidence for end in (fact.head, fact.tail)}
    if evidence and answer_text.casefold() not in {"yes", "no", *ends}:
        raise UserError("the answer has to be yes, no, or one end of a fact")
    return Question(
        id=identity([question_text, [[page.title, page.text] for page in pages]]),
        benchmark="2wikimultihopqa",  # whose annotations are facts
        split="",
        question=question_text,
        answer=answer_text,
        kind="",
        hops=min(len(evidence), sum(page.is_gold for page in pages)),  # one may state several
        passages=tuple(pages),
        evidence=evidence,
    )


def typed_fields(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return the texts to type for an annotated row: question, passages, facts and answer."""
    pages = (f"{TITLE}{page['title']}\n{' '.join(page['sentences'])}" for page in row["passages"])
    facts = (f"{fact['head']} | {fact['relation']} | {fact['tail']}" for fact in row["evidence"])
    return row["question"], "\n\n".join(pages), "\n".join(facts), row["answer"]


def _check_length(name: str, text: Any) -> str:
    if not isinstance(text, str | None):
        raise UserError(f"the {name} has to be text")
    content, limit = text or "", LIMITS[name]
    if len(content) > limit:
        raise UserError(f"the field {name} has {len(content):,} characters: {limit:,} at most")
    # Half a surrogate pair is in no encoding, and NUL is in no file of replies.
    return content.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _parse_facts(text: str) -> Iterator[Triple]:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 or len(lines) > MOST_FACTS:
        raise UserError(f"facts: {len(lines)}; give none, or from 2 (one is no hop) to {MOST_FACTS}")
    for number, line in enumerate(lines, 1):
        fields = [" ".join(item.split()) for item in line.split("|")]
        if len(fields) != 3 or not all(fields):
            raise UserError(f"fact {number}: write head | relation | tail")
        head, relation, tail = fields
        yield Triple(head, relation, tail)


def _parse_passages(text: str, facts: tuple[Triple, ...]) -> Iterator[Passage]:
    """Yield the passages; those that name both ends of a fact are gold."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.strip():
            block.append(" ".join(line.split()))
            continue
        is_titled = bool(block) and block[0].startswith(TITLE)
        title = block[0].removeprefix(TITLE) if is_titled else ""
        if content := " ".join(block[is_titled:]):
            page = Passage(title, (content,), False)
            yield replace(page, is_gold=any(_names_both(page, fact) for fact in facts))
        block = []


def _names_both(page: Passage, fact: Triple) -> bool:
    content = f"{page.title} {page.text}".casefold()
    return fact.head.casefold() in content and fact.tail.casefold() in content


GENERATOR, VERIFIER = "SAFE_STEPWISE_GENERATOR", "SAFE_STEPWISE_VERIFIER"
"""Environment variables of the Space, which its owner may set."""
SIMULATED = {"generator": "symbolic:error_rate=0.4,seed=3", "verifier": "symbolic"}
"""The players where the owner has set none."""
KINDS = ("openai", "symbolic", "mock")
"""The kinds of engine that a Space may have: each question opens its players anew, so none that loads weights."""
SECONDS, CALL_S = 180.0, 60.0
"""Time limits of a question, and of one call to a model's server."""
NO_MODEL = (
    "this Space has no model: its players go by facts, so type some, as head | relation | tail "
    f"(its owner may set {GENERATOR} and {VERIFIER})"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """The attempts so far, the checker's label of each, and at the end the answer's record."""

    attempts: tuple[Attempt, ...]
    labels: tuple[str, ...]
    """Empty if the question has no facts for the checker."""
    record: Mapping[str, Any] | None = None


def players(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return the owner's specs by role, or `SIMULATED`; raises ``UserError`` where only one of them is valid.

    >>> players({})["verifier"]
    'symbolic'
    """
    specs = {"generator": settings.get(GENERATOR, ""), "verifier": settings.get(VERIFIER, "")}
    if not any(specs.values()):
        return SIMULATED
    for name, spec in zip((GENERATOR, VERIFIER), specs.values(), strict=True):
        if spec.partition(":")[0] not in KINDS:
            raise UserError(f"the Space's owner has to set {name} to a spec of {', '.join(KINDS)}")
    return specs


async def answer_progress(question: Question, specs: Mapping[str, str]) -> AsyncIterator[Progress]:
    """Answer a question and yield the progress after each attempt and at the end; raises ``UserError`` if that fails.

    Neither question nor replies are kept: the cache of replies is in a folder that is removed at the end.
    """
    with TemporaryDirectory(prefix="safe-stepwise-") as folder:
        loop = _loop(specs, Path(folder) / "replies.sqlite")
        if not question.is_annotated and any(spec.startswith("symbolic") for spec in specs.values()):
            raise UserError(NO_MODEL)
        queue: asyncio.Queue[Attempt | None] = asyncio.Queue()
        answering = asyncio.create_task(_answer(question, loop, queue))
        attempts: list[Attempt] = []
        try:
            while (attempt := await queue.get()) is not None:
                attempts.append(attempt)
                yield Progress(tuple(attempts), label_attempts(question, attempts))
            yield Progress(tuple(attempts), label_attempts(question, attempts), await answering)
        finally:
            answering.cancel()  # where the visitor has left
            with suppress(asyncio.CancelledError, UserError):
                await answering


def label_attempts(question: Question, attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """Label each attempt by the checker, after the steps accepted before it."""
    if not question.is_annotated:
        return ()
    try:
        checker = strict_checker_of(question)
    except EngineError:  # the facts make no plan
        return ()
    labels, previous = [], list[Step]()
    for attempt in attempts:
        step, label, _ = check.label_step(checker.check, previous, partial(read_reply, attempt.text, attempt.number))
        labels.append(label)
        previous += [step] if step and attempt.accepted else []
    return tuple(labels)


async def _answer(question: Question, loop: Loop, queue: asyncio.Queue[Attempt | None]) -> dict[str, Any]:
    try:
        async with asyncio.timeout(SECONDS), loop.opened() as clients:
            trajectory = await loop.answer(question, clients, queue.put_nowait)
            if trajectory.stop_reason == FAILED:
                raise UserError(trajectory.failure)
            return transcript.answer_record(question, trajectory, clients, loop.stepwise)
    except TimeoutError:
        raise UserError(f"the question took longer than {SECONDS:g} s and was ended") from None
    except UserError as error:
        raise UserError(_reason(str(error), loop.specs)) from None
    except Exception:  # ends one question, not the server; the log says why
        _log(format_exc())
        raise UserError("this ended by a fault of ours; other words may do") from None
    finally:
        queue.put_nowait(None)


def _reason(failure: str, specs: Mapping[str, str]) -> str:
    """Return why a question failed, without details of the owner's server."""
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
    print(ending.strip_keys(reason), file=sys.stderr, flush=True)
