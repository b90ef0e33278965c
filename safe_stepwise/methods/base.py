"""Defines the interface of a method that answers questions, its options and the digest of its prompts."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from safe_stepwise import prompts
from safe_stepwise.engines.client import Client
from safe_stepwise.methods.limits import AS_PUBLISHED
from safe_stepwise.records import Question, Trajectory


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a method that has none."""


def option_values(options: Any) -> dict[str, Any]:
    """Return the options that are part of a run's identity, as JSON values by name, without those that are None."""
    values = {f.name: getattr(options, f.name) for f in fields(options) if f.compare}
    defaults = {f.name: f.default for f in fields(options) if AS_PUBLISHED in f.metadata}
    set_values = {name: value for name, value in values.items() if value is not None}
    return {n: value for n, value in set_values.items() if n not in defaults or value != defaults[n]}


def published_values(kind: type[Any]) -> dict[str, Any]:
    """Return the papers' choices that differ from ours, by the names of a method's options."""
    return {f.name: f.metadata[AS_PUBLISHED] for f in fields(kind) if AS_PUBLISHED in f.metadata}


class Method(Protocol):
    """The interface of a method: one file of this package, and one line of its registry.

    A method may name the dataclass of its ``options``: hashable, plain values with defaults. An option outside a run's
    identity has ``field(compare=False)``. One with `AS_PUBLISHED` in its metadata is recorded only where it
    differs from its default. A method without options gets `NoOptions`. An option called ``search`` receives the
    search of a corpus, if there is one. A method whose options choose its prompts has ``prompts_of(options)``; one
    that adapts its options to its players has ``resolve_options(options, clients)``. A state machine has
    its `Machine` as ``machine``, for plots.
    """

    name: str
    title: str
    """Its name in tables and plots."""
    roles: tuple[str, ...]
    """The roles that it asks, such as ``("generator", "verifier")``; the first one answers."""
    prompts: tuple[str, ...]
    """Files of ``prompts/`` whose digests identify its runs."""

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Any) -> Trajectory:
        """Answer one question and return all that was done for it.

        ``clients`` has one client for each role. A request that fails for good ends the question with the stop reason
        ``failed``; any other error is raised.
        """


def options_type(method: Method) -> type[Any]:
    """Return the dataclass of a method's options."""
    kind: type[Any] = getattr(method, "options", NoOptions)
    return kind


def resolve_options(method: Method, options: Any, clients: Mapping[str, Client]) -> Any:
    """Adapt options to the players by the method's own; raise ``UserError`` if a player contradicts the options."""
    resolve = getattr(method, "resolve_options", None)
    return options if resolve is None else resolve(options, clients)


def prompts_digest(method: Method, options: Any = None) -> str:
    """Return the SHA-256 (64 hex digits) of the prompts that a method uses; with ``options``, of those they choose."""
    select_prompts = getattr(method, "prompts_of", None)
    names = method.prompts if select_prompts is None or options is None else select_prompts(options)
    return prompts.digest(*map(prompts.load, names))
