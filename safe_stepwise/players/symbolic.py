"""No model: reasons over a question's annotations, wrong at a seeded rate; hence simulated.

Spec: ``symbolic``, or ``symbolic:error_rate=0.1,seed=3``. What it says in a role stands in the file
of that role (``steps``, ``judging``, ``answers``, ``hops``, ``deliberating``). Roles of prompting
methods know mistakes apart, each with a rate of its own (`Rates`):
``symbolic:format=0.3,value=0.2``. Errors depend on the seed and the request alone, so that a run
can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError

NEVER, AT_ONCE = "never", "at_once"
"""Of a Terminator, in the place of a rate."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often what is said is wrong, and how; each from 0 to 1, but for ``planted``.

    ``error_rate`` is that of steps, verdicts and judgements, and of each mistake without a rate of
    its own but ``format``, ``paragraph``, ``lucky`` and ``spurious``, which have to be asked for.
    """

    error_rate: float = 0.0
    format: float = 0.0
    """A reply that can't be read strictly."""
    salvageable: float = 0.5
    """Of those the share that says all the same what it should."""
    decompose: float | None = None
    """A first question that is not the one to ask."""
    value: float | None = None
    """A wrong answer from the right passage."""
    paragraph: float = 0.0
    """A wrong answer from a wrong passage."""
    lucky: float = 0.0
    """The right answer, but a passage that does not say so."""
    stop: float | str | None = None
    """Going on or stopping at the wrong time; ``never`` and ``at_once`` stop whatever was found."""
    summary: float | None = None
    """A wrong answer where it could have been put right."""
    spurious: float = 0.0
    """Of a chain's steps: the right answer, though a fact that it needs is false or missing. It is
    decided once a question (1 or 0, for a role) and leaves other mistakes as they are."""
    planted: int = 0
    """Not a rate but a number: wrong relation paths that are followed before the right one."""

    def of(self, name: str) -> float:
        """The rate of a mistake by its name; where none was said that of errors.

        >>> Rates(0.1, value=0.2).of("value"), Rates(0.1).of("value"), Rates(0.1).of("lucky")
        (0.2, 0.1, 0.0)
        """
        rate = getattr(self, name)
        return float(self.error_rate if rate is None or isinstance(rate, str) else rate)

    @property
    def said(self) -> dict[str, Any]:
        """Those that are not as they are unless said, but for the rate of errors."""
        values = asdict(self)
        return {
            one.name: values[one.name]
            for one in fields(self)
            if one.name != "error_rate" and values[one.name] != one.default
        }


Role = Callable[[Request, Rates, Random], str]
"""From a request with its scene, the rates and the chance of errors to the reply's text.

Raises EngineError where the scene gives nothing to go by.
"""


class SymbolicEngine:
    """See the module docstring."""

    simulated = True

    def __init__(self, roles: Mapping[str, Role], rates: Rates, seed: int = 0) -> None:
        self.roles, self.rates, self.seed = roles, rates, seed
        said = {"error_rate": rates.error_rate, "seed": seed, **rates.said}
        told = ",".join(f"{name}={value}" for name, value in said.items())
        self.name = f"symbolic:{told} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": "symbolic", **said}

    @classmethod
    def read(cls, settings: str, roles: Mapping[str, Role]) -> SymbolicEngine:
        """The engine of a spec's settings; ``UserError`` for others.

        >>> SymbolicEngine.read("error_rate=0.1,seed=3", {}).name
        'symbolic:error_rate=0.1,seed=3 (simulated)'
        >>> SymbolicEngine.read("stop=never", {}).name
        'symbolic:error_rate=0.0,seed=0,stop=never (simulated)'
        """
        names = [one.name for one in fields(Rates)]
        values: dict[str, Any] = {}
        seed = 0
        for part in filter(None, settings.split(",")):
            name, _, value = part.partition("=")
            if name not in (*names, "seed"):
                raise _bad(settings, f"has no setting {name!r}")
            try:
                if name == "seed":
                    seed = int(value)
                elif name == "planted":
                    values[name] = _whole(value)
                else:
                    is_word = name == "stop" and value in (NEVER, AT_ONCE)
                    values[name] = value if is_word else float(value)
            except ValueError:
                words = f", {NEVER} or {AT_ONCE}" if name == "stop" else ""
                raise _bad(settings, f"{name} has to be a number{words}") from None
            if isinstance(values.get(name), float) and not 0 <= values[name] <= 1:
                raise _bad(settings, f"{name} has to be from 0 to 1")
        rates = Rates(**values)
        if rates.of("value") + rates.paragraph + rates.lucky > 1:
            raise _bad(settings, "value, paragraph and lucky have to be 1 at most together")
        return cls(roles, rates, seed)

    async def check(self) -> None:
        """Nothing that could be missing."""

    async def close(self) -> None:
        """Nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        play = self.roles.get(request.role)
        if play is None or request.scene is None:
            return EngineError(f"the symbolic engine does not know the role {request.role!r}")
        chance = Random(f"{self.seed} {request_key(self, request)}")
        try:
            return Completion(play(request, self._decided(request), chance))
        except EngineError as error:
            return error

    def _decided(self, request: Request) -> Rates:
        """The rates with what is decided once a question."""
        question = getattr(request.scene, "question", None)
        if question is None or not self.rates.spurious:
            return self.rates
        drawn = Random(f"{self.seed} spurious {question.benchmark} {question.id}").random()
        return replace(self.rates, spurious=float(drawn < self.rates.spurious))


def _whole(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError("it is below 0")
    return number


def _bad(settings: str, reason: str) -> UserError:
    names = ", ".join(one.name for one in fields(Rates)[1:])
    return UserError(f"symbolic:{settings}: {reason}; write symbolic:error_rate=0.1,seed=3 (or rates: {names})")
