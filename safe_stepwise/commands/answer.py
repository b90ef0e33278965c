"""``safe-stepwise answer``: one question, answered from its passages and verified step by step."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from tqdm import tqdm

from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.options import SPECS, Chosen, chosen, loop_options
from safe_stepwise.commands.reading import question_from
from safe_stepwise.commands.telling import ascii_json, lines_of_attempt, record, verdict
from safe_stepwise.engines.client import Account, Client, requests
from safe_stepwise.errors import UserError
from safe_stepwise.methods.running import answering
from safe_stepwise.open import opened
from safe_stepwise.records import FAILED, Attempt, Question, Trajectory
from safe_stepwise.store.event_loop import wait_for
from safe_stepwise.store.progress import telling

EXAMPLE = """\b
safe-stepwise stand-in --examples > examples.jsonl
safe-stepwise answer --question "Where was the director of The Salt Clock born?" \\
    --passages examples.jsonl --generator symbolic:error_rate=0.4 --verifier symbolic
"""


@click.command(
    "answer",
    epilog=EXIT_STATUS,
    help=f"""Answer one question from its passages, every step verified before the next is written.

Prints each try at a step with its verdict, and the answer: verified, or NOT VERIFIED with the
reasons. {SPECS}

{EXAMPLE}
""",
)
@click.option("--question", metavar="TEXT", help="may be left out where FILE is one row")
@click.option(
    "--passages",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON or JSONL of texts, of objects with title and text, or of rows with question and "
    "passages; any other file is text, with a blank line between passages",
)
@loop_options
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="append that object to FILE, which `safe-stepwise traces FILE` shows",
)
def answer(question: str | None, file: Path, as_json: bool, output: Path | None, **options: Any) -> None:
    settings = chosen(**options)
    asked = question_from(file, question)
    settings.refuse_symbolic(asked)
    if output is not None:
        append(output, "")  # before a model is asked
    if not as_json:
        print(f"Question: {asked.question}")
    heard = _silent if as_json else _print
    told = wait_for_answer(asked, settings, heard)
    if output is not None:
        append(output, f"{ascii_json(told)}\n")
    if told["trajectory"]["stop_reason"] == FAILED:
        raise UserError(
            f"the question could not be answered: {told['trajectory']['failure']}; once that is "
            "mended run the same command again, what was answered is kept"
        )
    print(ascii_json(told) if as_json else verdict(told))


def append(file: Path, text: str) -> None:
    """Write behind what a file has; raises ``UserError`` where it can't be written."""
    try:
        with file.open("a", encoding="utf-8") as opened_file:
            opened_file.write(text)
    except OSError as error:
        raise UserError(f"{file}: cannot be written ({error.strerror})") from None


def wait_for_answer(question: Question, settings: Chosen, heard: Callable[[Attempt], None]) -> dict[str, Any]:
    """The record of a question's answer; raises ``UserError`` where no player can work."""
    tried: list[Attempt] = []

    def hear(attempt: Attempt) -> None:
        tried.append(attempt)
        heard(attempt)

    async def answered() -> dict[str, Any]:
        how = (settings.specs, settings.cache, settings.timeout, settings.allowance)
        async with opened(*how) as clients:
            with _progress(tried, clients):
                trajectory = await answer_of(question, settings, clients, hear)
            return record(question, trajectory, clients, settings.method)

    return wait_for(answered())


async def answer_of(
    question: Question, settings: Chosen, clients: Mapping[str, Client], heard: Callable[[Attempt], None]
) -> Trajectory:
    """What the loop does with a question; each attempt is ``heard`` as it ends."""
    players = {role: clients[role] for role in settings.method.roles}
    return await answering(settings.method, players, replace(settings.limits, heard=heard))(question)


@contextmanager
def _progress(tried: list[Attempt], clients: Mapping[str, Client]) -> Iterator[None]:
    def standing() -> str:
        accounts: list[Account] = [client.total() for client in clients.values()]
        steps = sum(attempt.accepted for attempt in tried)
        return f"accepted {steps}; {requests(accounts)}"

    with telling("answer", "try", None, lambda: len(tried), standing):
        yield


def _print(attempt: Attempt) -> None:
    for line in lines_of_attempt(attempt):
        tqdm.write(line)


def _silent(attempt: Attempt) -> None:
    """Nothing is printed but the end."""
