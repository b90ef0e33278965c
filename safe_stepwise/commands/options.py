"""Options of the commands that let the loop answer, and what they come to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from safe_stepwise.engines.allowance import Allowance
from safe_stepwise.engines.client import LIMIT
from safe_stepwise.engines.openai import TIMEOUT_S
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import GENERATOR, VERIFIER, Stepwise
from safe_stepwise.open import check_spec
from safe_stepwise.records import Question

SPECS = """SPEC is openai:MODEL@http://HOST:PORT/v1 (any such server),
vllm:MODEL[+ADAPTER[@REVISION]], transformers:MODEL_OR_FOLDER, mock:FILE (a script) or, for rows
with annotations, symbolic; what the last two say is marked simulated."""
LOOPS = tuple(name for name, method in METHODS.items() if isinstance(method, Stepwise))
_ROLES = ("generate", "final_answer", "verify")
_DEFAULT = Limits()
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Chosen:
    """A method of the loop, its players' specs by role, and how they are asked."""

    method: Stepwise
    specs: Mapping[str, str]
    limits: Limits
    cache: Path | None
    timeout: float
    allowance: Allowance

    def refuse_symbolic(self, question: Question) -> None:
        """Raise ``UserError`` if a player goes by annotations that a question lacks."""
        for who, spec in self.specs.items():
            if not question.is_annotated and spec.partition(":")[0] == "symbolic":
                raise UserError(
                    f"--{who}: symbolic goes by annotations, which this question lacks; name a "
                    "model, or give a row that has them (safe-stepwise stand-in --examples)"
                )


def loop_options(command: Command) -> Command:
    """Add the options of `chosen` to a command."""
    seconds = click.FloatRange(min=0, min_open=True)
    for option in reversed(
        (
            click.option("--generator", required=True, metavar="SPEC", help="writes the steps"),
            click.option("--verifier", metavar="SPEC", help="judges each of them"),
            click.option("--method", default="safe", metavar="M", help=f"{', '.join(LOOPS)} (default safe)"),
            click.option(
                "--max-steps",
                type=click.IntRange(1),
                default=_DEFAULT.max_steps,
                show_default=True,
                help="K: steps before the answer is asked for",
            ),
            click.option(
                "--max-retries",
                type=click.IntRange(0),
                default=_DEFAULT.max_retries,
                show_default=True,
                help="N: further tries at a step that was rejected",
            ),
            click.option(
                "--on-exhausted",
                type=click.Choice(["accept", "drop"]),
                default=_DEFAULT.on_exhausted,
                show_default=True,
                help="what becomes of a step after them",
            ),
            click.option(
                LIMIT,
                multiple=True,
                metavar="ROLE=N",
                help=f"tokens that a reply may have; a role is {', '.join(_ROLES)}; repeatable",
            ),
            click.option(
                "--cache",
                type=click.Path(dir_okay=False, path_type=Path),
                help="replies (default $SAFE_STEPWISE_CACHE or ~/.cache/safe_stepwise/replies.sqlite)",
            ),
            click.option(
                "--timeout",
                type=seconds,
                default=TIMEOUT_S,
                show_default=True,
                metavar="SECONDS",
                help="for one call to a model's server",
            ),
        )
    ):
        command = option(command)
    return command


def chosen(
    generator: str,
    verifier: str | None,
    method: str,
    max_steps: int,
    max_retries: int,
    on_exhausted: Any,
    max_tokens: tuple[str, ...],
    cache: Path | None,
    timeout: float,
) -> Chosen:
    """What the options say; raises ``UserError`` for what contradicts itself."""
    found = METHODS[one_of(method, LOOPS, "--method")]
    assert isinstance(found, Stepwise)
    if VERIFIER in found.roles and verifier is None:
        raise UserError(
            f"the method {method} needs a verifier: give --verifier SPEC, or choose --method self_verification"
        )
    if VERIFIER not in found.roles and verifier is not None:
        raise UserError(f"the method {method} asks no verifier: leave --verifier out")
    named = {GENERATOR: generator, VERIFIER: verifier}
    specs = {role: spec for role in found.roles if (spec := named[role]) is not None}
    for role, spec in specs.items():
        try:
            check_spec(spec)
        except UserError as error:
            raise UserError(f"--{role}: {error}") from None
    limits = Limits(max_steps, max_retries, on_exhausted)
    return Chosen(found, specs, limits, cache, timeout, Allowance.of(dict(map(_limit, max_tokens))))


def _limit(text: str) -> tuple[str, int]:
    role, _, number = text.partition("=")
    if not (number.isascii() and number.isdigit() and int(number)):
        raise UserError(f"{LIMIT} {text!r}: write ROLE=N, as in verify=4096")
    return one_of(role, _ROLES, LIMIT), int(number)
