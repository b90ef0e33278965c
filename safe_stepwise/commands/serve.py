"""Answer by the verified loop, as an OpenAI-compatible endpoint."""

from dataclasses import dataclass

from safe_stepwise.commands.command import command
from safe_stepwise.commands.loop import ROLES, Loop
from safe_stepwise.commands.options import copy_into
from safe_stepwise.commands.serving.http import run_server
from safe_stepwise.commands.serving.http import serve as serve_at
from safe_stepwise.commands.serving.verified import MODEL, Bounds, Tally, VerifiedLoop
from safe_stepwise.commands.values import Count, Natural, Port, Seconds

_BOUNDS = Bounds()


@dataclass(frozen=True, kw_only=True)
class Options(Loop):
    port: Port = 8002
    host: str = "127.0.0.1"
    at_once: Count = _BOUNDS.at_once
    waiting: Natural = _BOUNDS.waiting
    seconds: Seconds = _BOUNDS.seconds
    most_bytes: Count = _BOUNDS.most_bytes


def serve_loop(options: Options) -> None:
    """Serve until Ctrl-C; raises ``UserError`` for symbolic players, as requests bring no annotations."""
    options.refuse_symbolic(
        None, "no request brings: start `safe-stepwise stand-in`, and name the model that it serves"
    )
    tally = Tally()

    async def serving() -> None:
        async with options.opened() as clients:
            loop = VerifiedLoop(options.answer, clients, copy_into(Bounds, options), tally)
            await serve_at(loop.application(options.host), options.host, options.port, started)

    def started(port: int) -> None:
        print(f"{MODEL} answers at http://{options.host}:{port}/v1; Ctrl-C ends it", flush=True)

    run_server(serving, lambda: f"ended; {tally}")


main = command(serve_loop, roles=ROLES)
