"""``safe-stepwise serve``: the verified loop behind the OpenAI protocol."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from safe_stepwise.commands.answer import answer_of
from safe_stepwise.commands.ending import EXIT_STATUS
from safe_stepwise.commands.options import SPECS, Chosen, chosen, loop_options
from safe_stepwise.commands.serving.http import run_server
from safe_stepwise.commands.serving.http import serve as serve_at
from safe_stepwise.commands.serving.verified import MODEL, Bounds, Served, VerifiedLoop
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError
from safe_stepwise.open import opened
from safe_stepwise.records import Attempt, Question, Trajectory

HOST, PORT = "127.0.0.1", 8002
_BOUNDS = Bounds()
HELP = f"""\
Answer by the verified loop, as an OpenAI-compatible endpoint.

A request has one question as its last message and, beside the protocol's fields, "passages": a
list of texts, or of objects with title and text. Its answer says in its content when it is not
verified, and why; "verification" has the same as values. Tries at steps come as
reasoning_content, in a stream as each ends. Where a model's server fails for good, the answer is an
error. {SPECS} A symbolic player knows no question from the wire: use safe-stepwise stand-in.

\b
safe-stepwise serve --generator openai:Qwen/Qwen3-8B@http://localhost:8000/v1 \\
    --verifier openai:safe-verifier@v1.0.0@http://localhost:8000/v1
client = openai.OpenAI(base_url="http://127.0.0.1:{PORT}/v1", api_key="none")
client.chat.completions.create(
    model="{MODEL}", messages=[{{"role": "user", "content": "Where ...?"}}],
    extra_body={{"passages": ["...", "..."]}})

There is no key: whoever reaches the address may ask. The models' key is OPENAI_API_KEY; neither it
nor any header is logged.
"""


@click.command("serve", help=HELP, epilog=f"Ctrl-C ends it. {EXIT_STATUS}")
@loop_options
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True)
@click.option("--host", default=HOST, show_default=True)
@click.option(
    "--at-once", type=click.IntRange(1), default=_BOUNDS.at_once, show_default=True, help="questions under way"
)
@click.option(
    "--waiting",
    type=click.IntRange(0),
    default=_BOUNDS.waiting,
    show_default=True,
    help="more that wait; whoever comes then gets a 429",
)
@click.option(
    "--limit-s",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=_BOUNDS.seconds,
    show_default=True,
    help="for one question, its wait included; then a 504",
)
@click.option(
    "--most-bytes",
    type=click.IntRange(1),
    default=_BOUNDS.most_bytes,
    show_default=True,
    help="of a request's body; beyond it a 413",
)
def serve(port: int, host: str, at_once: int, waiting: int, seconds: float, most_bytes: int, **options: Any) -> None:
    settings = chosen(**options)
    for who, spec in settings.specs.items():
        if spec.partition(":")[0] == "symbolic":
            raise UserError(
                f"--{who}: symbolic goes by annotations, which no request brings: start "
                "`safe-stepwise stand-in`, and name the model that it serves"
            )
    served = Served()
    bounds = Bounds(at_once, waiting, seconds, most_bytes)

    async def serving() -> None:
        how = (settings.specs, settings.cache, settings.timeout, settings.allowance)
        async with opened(*how) as clients:
            loop = VerifiedLoop(answering(settings), clients, bounds, served)
            await serve_at(loop.application(), host, port, started)

    def started(at: int) -> None:
        print(f"{MODEL} answers at http://{host}:{at}/v1; Ctrl-C ends it", flush=True)

    run_server(serving, lambda: f"ended; {served}")


def answering(settings: Chosen) -> Callable[..., Any]:
    """How a question is answered, for the server."""

    async def answer(
        question: Question, clients: Mapping[str, Client], heard: Callable[[Attempt], None]
    ) -> Trajectory:
        return await answer_of(question, settings, clients, heard)

    return answer
