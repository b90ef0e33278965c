"""Answer one question from its passages, every step verified before the next is written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from safe_stepwise.commands import reading, transcript
from safe_stepwise.commands.command import command
from safe_stepwise.commands.loop import ROLES, Loop, OnAttempt
from safe_stepwise.engines.client import render_requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import unreadable
from safe_stepwise.records import FAILED, Attempt, Question
from safe_stepwise.store import event_loop, files, progress


@dataclass(frozen=True, kw_only=True)
class Options(Loop):
    question: str | None = None
    file: Path
    as_json: bool = False
    output: Path | None = None


def answer_question(options: Options) -> str:
    """Answer the options' question and print each attempt; return the answer, or its record as JSON."""
    question = reading.read_question(options.file, options.question)
    options.refuse_symbolic(
        question, "this question lacks; name a model, or give a row that has them (safe-stepwise stand-in --examples)"
    )
    if options.output is not None:
        append(options.output, "")  # before a model is asked
    if not options.as_json:
        print(f"Question: {question.question}")
    attempts: list[Attempt] = []

    def on_attempt(attempt: Attempt) -> None:
        attempts.append(attempt)
        for line in () if options.as_json else transcript.render_attempt(attempt):
            tqdm.write(line)

    record = wait_for_answer(question, options, on_attempt, attempts)
    if options.output is not None:
        append(options.output, f"{transcript.ascii_json(record)}\n")
    if record["trajectory"]["stop_reason"] == FAILED:
        raise UserError(
            f"the question could not be answered: {record['trajectory']['failure']}; once that is "
            "mended run the same command again, what was answered is kept"
        )
    if reason := unreadable(attempts):
        raise UserError(f"nothing could be read in any of {len(attempts)} replies; {reason}")
    return transcript.ascii_json(record) if options.as_json else transcript.render_answer(record)


main = command(answer_question, roles=ROLES)


def append(file: Path, text: str) -> None:
    """Append text to a file; raises ``UserError`` if it can't be written."""
    with files.report_unwritable(file), file.open("a", encoding="utf-8") as opened_file:
        opened_file.write(text)


def wait_for_answer(question: Question, loop: Loop, on_attempt: OnAttempt, attempts: list[Attempt]) -> dict[str, Any]:
    """Answer a question under a progress bar; ``on_attempt`` has to append to ``attempts``. Raises ``UserError``."""

    async def answer() -> dict[str, Any]:
        async with loop.opened() as clients:

            def standing() -> str:
                steps = sum(attempt.accepted for attempt in attempts)
                return f"accepted {steps}; {render_requests([client.total() for client in clients.values()])}"

            with progress.show_progress("answer", "try", None, lambda: len(attempts), standing):
                trajectory = await loop.answer(question, clients, on_attempt)
            return transcript.answer_record(question, trajectory, clients, loop.stepwise)

    return event_loop.wait_for(answer())
