"""Serve replies that no model made, in the OpenAI protocol; all are marked simulated."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from safe_stepwise.commands.command import command
from safe_stepwise.commands.reading import examples, parse_question, read_rows
from safe_stepwise.commands.serving.http import MOST_BYTES, run_server, serve
from safe_stepwise.commands.serving.stand_in import StandIn
from safe_stepwise.commands.transcript import ascii_json
from safe_stepwise.commands.values import Port
from safe_stepwise.store.terminal import printable


@dataclass(frozen=True, kw_only=True)
class Options:
    spec: str = "symbolic"
    port: Port = 8001
    host: str = "127.0.0.1"
    questions: Path | None = None
    benchmark: str | None = None
    show: bool = False


def stand_in_for_a_model(options: Options) -> None:
    """Serve until Ctrl-C, or print the rows of the questions (``--examples``)."""
    file = options.questions
    rows = read_rows(file) if file else ((f"example {row['id']}", row) for row in examples())
    if options.show:
        for _, row in rows:
            print(ascii_json(row))
        return
    questions = [parse_question(place, row, options.benchmark) for place, row in rows]
    player = StandIn(options.spec, questions)

    def started(port: int) -> None:
        print(f"simulated replies, no model: openai:{player.model}@http://{options.host}:{port}/v1")
        for question in questions[:2] if not options.spec.startswith("mock") else ():
            print(f"  knows: {printable(question.question)}")
        print("Ctrl-C ends it", flush=True)

    app = player.application(MOST_BYTES, options.host)
    run_server(partial(serve, app, options.host, options.port, started), lambda: "stand-in ended")


main = command(stand_in_for_a_model, "stand-in")
