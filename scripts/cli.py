"""What every command shares: its exit status, and errors of one line."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from safe_stepwise.commands.ending import run as run
from safe_stepwise.commands.ending import warn as warn
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.engines.openai import TIMEOUT_S
from safe_stepwise.errors import UserError, one_of

HELP = Path(__file__).with_name("help")
"""What stands below a command's options: ``NAME.txt``."""
_DAY_S = 86_400


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def command(name: str, description: str) -> Parser:
    """The parser of ``safe-stepwise NAME``."""
    return Parser(
        prog=f"python -m scripts.{name}",
        description=description,
        epilog=(HELP / f"{name}.txt").read_text(encoding="utf-8"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_model_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, in_flight: int = IN_FLIGHT) -> None:
    """How models are asked: where replies are kept, how many requests wait, and for how long."""
    kept = "replies (default $SAFE_STEPWISE_CACHE or ~/.cache/safe_stepwise/replies.sqlite)"
    parser.add_argument("--cache", **FILE, help=kept)
    asked = f"requests under way at a time (default {in_flight})"
    parser.add_argument("--in-flight", **COUNT, default=in_flight, help=asked)
    limit = f"for one call to a server, from first to last byte (default {TIMEOUT_S:g})"
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help=limit)


def add_teacher(parser: argparse.ArgumentParser, simulated: str) -> None:
    """Add ``--teacher``; ``simulated`` says how to try it out."""
    asked = (
        "annotations (no model), openai:MODEL[@http://HOST:PORT/v1], or vllm: or transformers: and "
        f"MODEL[@REVISION][+ADAPTER[@REVISION]]; {simulated}"
    )
    parser.add_argument("--teacher", required=True, metavar="SPEC", help=asked)


def add_teacher_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options of a model as teacher; returns their group, for more of them."""
    model = parser.add_argument_group("a model as teacher")
    add_model_options(model)
    return model


def add_published(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--published``."""
    shown = "the papers' rows beside ours: v1, v2 and sg_fsm are main tables, v2:5 another; repeatable"
    parser.add_argument("--published", **NAMES, metavar="PAPER[:TABLE]", help=shown)


def positive(text: str) -> int:
    """An option's whole number from 1 on (for argparse)."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def whole(text: str) -> int:
    """An option's whole number from 0 on (for argparse)."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def share(text: str) -> float:
    """An option's share, from 0 to 1 (for argparse)."""
    return _number(text, 1, "a share from 0 to 1, like 0.34")


def price(text: str) -> float:
    """An option's amount of money (for argparse)."""
    return _number(text, sys.float_info.max, "an amount from 0 on")


def seconds(text: str) -> float:
    """An option's time, above 0 and of a day at most (for argparse)."""
    what = f"a number of seconds, above 0 and up to {_DAY_S:,}"
    number = _number(text, _DAY_S, what)
    if not number:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


def numbers(least: int) -> Callable[[str], list[int]]:
    """An option's whole numbers, with commas between them (for argparse)."""

    def parse(text: str) -> list[int]:
        parts = [part.strip() for part in text.split(",")]
        found = [int(part) for part in parts if part.isascii() and part.isdigit()]
        if len(found) < len(parts) or min(found) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers from {least} on")
        return sorted(set(found))

    return parse


def words(known: Sequence[str], what: str) -> Callable[[str], list[str]]:
    """An option's words, of those known, with commas between them (for argparse)."""
    return lambda text: [one_of(word.strip(), known, what) for word in text.split(",")]


def _number(text: str, most: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
    return number


COUNT: Mapping[str, Any] = {"type": positive, "metavar": "N"}
"""What options of a number have in common; so `FILE`, `FOLDER`, `NAMES` and `SEED`."""
FILE: Mapping[str, Any] = {"type": Path, "metavar": "FILE"}
FOLDER: Mapping[str, Any] = {"type": Path, "metavar": "DIR"}
NAMES: Mapping[str, Any] = {"action": "append", "default": []}
SEED: Mapping[str, Any] = {"type": int, "default": 0, "metavar": "N"}


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
