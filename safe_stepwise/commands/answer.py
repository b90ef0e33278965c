"""Answer one question from its passages, every step verified before the next is written."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from safe_stepwise.commands.command import command
from safe_stepwise.commands.loop import ROLES, Heard, Loop
from safe_stepwise.commands.reading import question_from
from safe_stepwise.commands.telling import ascii_json, lines_of_attempt, record, verdict
from safe_stepwise.engines.client import Client, render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import unreadable
from safe_stepwise.records import FAILED, Attempt, Question
from safe_stepwise.store.event_loop import wait_for
from safe_stepwise.store.files import report_unwritable
from safe_stepwise.store.progress import show_progress


@dataclass(frozen=True, kw_only=True)
class Options(Loop):
    question: str | None = None
    file: Path
    as_json: bool = False
    output: Path | None = None


def answer_question(options: Options) -> str:
    """Print each try at a step; returns the answer with its verdict, or its record as JSON."""
    question = question_from(options.file, options.question)
    options.refuse_symbolic(
        question, "this question lacks; name a model, or give a row that has them (safe-stepwise stand-in --examples)"
    )
    if options.output is not None:
        append(options.output, "")  # before a model is asked
    if not options.as_json:
        print(f"Question: {question.question}")
    tried: list[Attempt] = []

    def hear(attempt: Attempt) -> None:
        tried.append(attempt)
        if not options.as_json:
            _print(attempt)

    answered = wait_for_answer(question, options, hear, tried)
    if options.output is not None:
        append(options.output, f"{ascii_json(answered)}\n")
    if answered["trajectory"]["stop_reason"] == FAILED:
        raise UserError(
            f"the question could not be answered: {answered['trajectory']['failure']}; once that is "
            "mended run the same command again, what was answered is kept"
        )
    if why := unreadable(tried):
        raise UserError(f"nothing could be read in any of {len(tried)} replies; {why}")
    return ascii_json(answered) if options.as_json else verdict(answered)


main = command(answer_question, roles=ROLES)


def append(file: Path, text: str) -> None:
    """Write behind what a file has; raises ``UserError`` where it can't be written."""
    with report_unwritable(file), file.open("a", encoding="utf-8") as opened_file:
        opened_file.write(text)


def wait_for_answer(question: Question, loop: Loop, hear: Heard, tried: list[Attempt]) -> dict[str, Any]:
    """The record of a question's answer, ``tried`` being what was heard; ``UserError`` where no player can work."""

    async def answered() -> dict[str, Any]:
        async with loop.opened() as clients:
            with _progress(tried, clients):
                trajectory = await loop.answer(question, clients, hear)
            return record(question, trajectory, clients, loop.stepwise)

    return wait_for(answered())


@contextmanager
def _progress(tried: list[Attempt], clients: Mapping[str, Client]) -> Iterator[None]:
    def standing() -> str:
        steps = sum(attempt.accepted for attempt in tried)
        return f"accepted {steps}; {render_requests([client.total() for client in clients.values()])}"

    with show_progress("answer", "try", None, lambda: len(tried), standing):
        yield


def _print(attempt: Attempt) -> None:
    for line in lines_of_attempt(attempt):
        tqdm.write(line)
