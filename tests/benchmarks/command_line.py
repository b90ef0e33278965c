"""The command lines of the benchmarks."""

from __future__ import annotations

import argparse
from typing import NoReturn

from safe_stepwise.errors import UserError


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see {self.prog} --help")


def positive(text: str) -> int:
    """An option's whole number from 1 on (for argparse)."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number
