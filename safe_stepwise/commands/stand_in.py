"""``safe-stepwise stand-in``: a server to try things out by, before there is a model."""

from functools import partial
from pathlib import Path

import click

from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.reading import examples, question_in, rows_of
from safe_stepwise.commands.serving.http import MOST_BYTES, run_server, serve
from safe_stepwise.commands.serving.stand_in import StandIn
from safe_stepwise.commands.telling import ascii_json
from safe_stepwise.store.terminal import printable

HOST, PORT = "127.0.0.1", 8001


@click.command("stand-in", epilog=f"Ctrl-C ends it. {EXIT_STATUS}")
@click.argument("spec", default="symbolic")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True)
@click.option("--host", default=HOST, show_default=True)
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSONL of rows with annotations, as the verified configs have them, not the examples",
)
@click.option("--benchmark", metavar="B", help="of all these rows, where they do not say it")
@click.option("--examples", "show", is_flag=True, help="print the examples as such rows, and end")
def stand_in(spec: str, port: int, host: str, questions: Path | None, benchmark: str | None, show: bool) -> None:
    """Serve replies that no model made, in the OpenAI protocol; all are marked simulated.

    SPEC is symbolic (the default), symbolic:error_rate=0.2,seed=1, or mock:FILE, a script. The
    symbolic player reads in each prompt of the loop what is asked, and goes by the annotations of
    questions that it knows: two examples of our own, or your rows. A script answers anything.

    \b
    safe-stepwise stand-in &
    safe-stepwise stand-in --examples > examples.jsonl
    safe-stepwise answer --question "Where was the director of The Salt Clock born?" \\
        --passages examples.jsonl --generator openai:simulated@http://127.0.0.1:8001/v1 \\
        --verifier openai:simulated@http://127.0.0.1:8001/v1
    """
    rows = rows_of(questions) if questions else ((f"example {r['id']}", r) for r in examples())
    if show:
        for _, row in rows:
            print(ascii_json(row))
        return
    known = [question_in(where, row, benchmark) for where, row in rows]
    player = StandIn(spec, known)

    def started(at: int) -> None:
        print(f"simulated replies, no model: openai:{player.model}@http://{host}:{at}/v1")
        for one in known[:2] if not spec.startswith("mock") else ():
            print(f"  knows: {printable(one.question)}")
        print("Ctrl-C ends it", flush=True)

    app = player.application(MOST_BYTES)
    run_server(partial(serve, app, host, port, started), lambda: "stand-in ended")
