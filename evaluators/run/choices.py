"""The systems that a command line asks for: methods, who plays their roles, their options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any, get_type_hints

from evaluators.run.evaluation import Setting
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import Method, options_type

SHORT = ("generator", "verifier")
"""Roles with an option of their own; others are named with ``--player ROLE=SPEC``."""


@dataclass(frozen=True, slots=True)
class Choices:
    """Names of methods; specs by role; values to be tried by option, texts where a user wrote them.

    Every method runs with every combination of the players and options that it has.
    """

    methods: Sequence[str]
    players: Mapping[str, Sequence[str]]
    options: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def settings(self, opened: Callable[[str, str], Client]) -> tuple[Setting, ...]:
        """What runs, player by player of the role that answers, method by method.

        ``opened`` makes a client of a role and its spec. Raises ``UserError`` for an unknown
        method or option, a role that nobody plays, and two players of one name.
        """
        methods = self.check()
        roles = dict.fromkeys(role for method in methods for role in method.roles)
        clients = {
            role: [opened(role, spec) for spec in dict.fromkeys(self.players[role])]
            for role in roles
        }
        for role, named in clients.items():
            _refuse_twice(role, named)
        places = {id(client): n for named in clients.values() for n, client in enumerate(named)}
        found = (
            Setting(method, players, options)
            for method in methods
            for players in _casts(method, clients)
            for options in self._options(method)
        )
        return tuple(sorted(found, key=lambda s: places[id(s.players[s.method.roles[0]])]))

    def refuse_symbolic(self) -> None:
        """Raise ``UserError`` if a role is to be played by annotations, which are not there."""
        for role, specs in self.players.items():
            if any(spec.partition(":")[0] == "symbolic" for spec in specs):
                raise UserError(
                    f"{_option(role, 'symbolic')} goes by annotations, which these questions lack; "
                    "name a model, or take questions of a benchmark"
                )

    def check(self) -> list[Method]:
        """The methods, each once; raises as `settings` does, as far as nothing need be opened."""
        methods = [
            METHODS[one_of(name, METHODS, "--method")] for name in dict.fromkeys(self.methods)
        ]
        for method in methods:
            for role in method.roles:
                if not self.players.get(role):
                    raise UserError(
                        f"--method {method.name} wants a {_option(role, 'SPEC')}; see --help"
                    )
        known = {f.name for method in methods for f in fields(options_type(method)) if f.compare}
        for name in self.options:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                raise UserError(f"no method here has an option {name!r}; they have: {names}")
        return methods

    def _options(self, method: Method) -> Iterator[Any]:
        kind = options_type(method)
        types = get_type_hints(kind)
        names = [f.name for f in fields(kind) if f.name in self.options]
        tried = [
            dict.fromkeys(_value(types[name], name, value) for value in self.options[name])
            for name in names
        ]
        for values in product(*tried):
            try:
                yield kind(**dict(zip(names, values, strict=True)))
            except ValueError as error:
                raise UserError(f"--method {method.name}: {error}") from None


def _casts(
    method: Method, clients: Mapping[str, Sequence[Client]]
) -> Iterator[Mapping[str, Client]]:
    for players in product(*(clients[role] for role in method.roles)):
        yield dict(zip(method.roles, players, strict=True))


def _option(role: str, spec: str) -> str:
    return f"--{role} {spec}" if role in SHORT else f"--player {role}={spec}"


def _refuse_twice(role: str, clients: Sequence[Client]) -> None:
    named = Counter(client.engine.name for client in clients)
    if twice := [name for name, times in named.items() if times > 1]:
        raise UserError(f"two {role}s are both called {twice[0]}; evaluate one at a time")


def _value(kind: Any, name: str, value: Any) -> Any:
    """A text as the option's type has it; what is no text is taken as it is."""
    if not isinstance(value, str) or kind not in (int, float, bool):
        return value
    try:
        return {"true": True, "false": False}[value] if kind is bool else kind(value)
    except (ValueError, KeyError):
        raise UserError(f"option {name}: {value!r} is no {kind.__name__}") from None
