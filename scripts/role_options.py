"""Options by role: how long a reply may be, how hard a model thinks, what examples it sees."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.allowance import AS_PROMPTED, Allowance
from safe_stepwise.engines.base import EFFORTS
from safe_stepwise.engines.client import EFFORT, LIMIT
from safe_stepwise.errors import one_of
from scripts.cli import positive


def roles_of(names: Iterable[str]) -> tuple[str, ...]:
    """The roles of some prompts, each once."""
    return tuple(dict.fromkeys(prompts.load(name).role for name in names))


def add_role_options(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup, roles: Sequence[str], shown: Sequence[str] = ()
) -> None:
    """Add ``--max-tokens`` and ``--reasoning-effort`` for some roles, ``--examples`` for those
    ``shown``; all go to ``allowance``."""
    known = ", ".join(f"{role} ({prompts.limits()[role]:,})" for role in roles)
    said = f"that a reply may have, for one of {known}; without ROLE= for all"
    how: dict[str, Any] = {"action": _ByRole, "dest": "allowance", "default": AS_PROMPTED}
    parser.add_argument(LIMIT, **how, roles=roles, metavar="ROLE=N", help=f"tokens {said}")
    efforts = f"{', '.join(EFFORTS)}: how hard a reasoning model thinks (default: as it is served)"
    parser.add_argument(EFFORT, **how, roles=roles, metavar="ROLE=E", help=efforts)
    if shown:
        told = f"worked examples, of our own making, for {', '.join(shown)}, all or none (default)"
        how |= {"action": _Shown, "metavar": "ROLE[,ROLE]"}
        parser.add_argument("--examples", **how, roles=shown, help=told)


class _ByRole(argparse.Action):
    """Keeps what is said of a role, or of all of them; what is said later counts."""

    def __init__(self, *args: Any, roles: Sequence[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._roles = roles

    def __call__(self, parser: argparse.ArgumentParser, space: argparse.Namespace, given: Any, *_: object) -> None:
        (option,) = self.option_strings
        role, named, value = str(given).rpartition("=")
        roles = [one_of(role, self._roles, option)] if named else self._roles
        known: Allowance = getattr(space, self.dest)
        tokens: dict[str, int] = dict(known.max_tokens)
        efforts: dict[str, Any] = dict(known.effort)
        if option == EFFORT:
            efforts |= dict.fromkeys(roles, one_of(value, EFFORTS, option))
        else:
            try:
                tokens |= dict.fromkeys(roles, positive(value))
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, str(error)) from None
        found = Allowance.of(tokens, efforts)
        setattr(space, self.dest, replace(found, examples=known.examples))


class _Shown(_ByRole):
    """Keeps the examples of some roles, or that there are to be none."""

    def __call__(self, parser: argparse.ArgumentParser, space: argparse.Namespace, given: Any, *_: object) -> None:
        (option,) = self.option_strings
        known: Allowance = getattr(space, self.dest)
        named = [one_of(r.strip(), (*self._roles, "all", "none"), option) for r in given.split(",")]
        if "none" in named and len(named) > 1:
            raise argparse.ArgumentError(self, "none goes with no other")
        roles = self._roles if "all" in named else [role for role in named if role != "none"]
        setattr(space, self.dest, known.showing(prompts.examples(roles)))
