"""What a method of answering is: whom it asks, and what it did with one question."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from safe_stepwise import prompts
from safe_stepwise.engines.client import Client
from safe_stepwise.records import Question, Trajectory


class Method(Protocol):
    """One file of this room, and one line of its registry.

    A method may name the dataclass of its ``options`` (plain values with defaults, hashable); what
    is not of a run's identity there has ``field(compare=False)``. One without gets `NoOptions`. An
    option called ``search`` is given the search of a corpus, where there is one. What its players
    say of its options it may settle, as `settled` tells.
    """

    name: str
    title: str
    """Its name in tables and plots."""
    roles: tuple[str, ...]
    """Whom it asks: ``("generator",)``, ``("generator", "verifier")``; the first one answers."""
    prompts: tuple[str, ...]
    """Files of ``prompts/`` whose digests identify its runs."""

    async def answer(
        self, question: Question, clients: Mapping[str, Client], options: Any
    ) -> Trajectory:
        """Everything that was done to answer one question.

        ``clients`` has one for each role. A request that fails for good ends the question with the
        stop reason ``failed``; anything else that goes wrong is raised.
        """


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Of a method that has none."""


def options_type(method: Method) -> type[Any]:
    """The dataclass of a method's options."""
    found: type[Any] = getattr(method, "options", NoOptions)
    return found


def settled(method: Method, options: Any, clients: Mapping[str, Client]) -> Any:
    """The options as players want them: those of the method's own ``settled``, if it has one.

    Raises ``UserError`` where a player contradicts them.
    """
    settle = getattr(method, "settled", None)
    return options if settle is None else settle(options, clients)


def option_values(options: Any) -> dict[str, Any]:
    """The options that are part of a run's identity, as JSON values by name; None is not told.

    >>> option_values(NoOptions())
    {}
    """
    found = {f.name: getattr(options, f.name) for f in fields(options) if f.compare}
    return {name: value for name, value in found.items() if value is not None}


def prompts_digest(method: Method) -> str:
    """SHA-256 (64 hex digits) of the prompts that a method names."""
    return prompts.digest(*map(prompts.load, method.prompts))
