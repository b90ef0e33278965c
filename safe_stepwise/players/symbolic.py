"""Two simulated models without weights: the symbolic player, and a verifier that judges by chance.

The symbolic player (``symbolic``, or ``symbolic:error_rate=0.1,seed=3``) replies from a question's annotations and
errs at seeded rates. The modules ``steps``, ``judging`` and ``prompting`` have its roles. Roles of prompting methods
have several kinds of mistakes, each with its rate (`Rates`): ``symbolic:format=0.3,value=0.2``. Errors depend only on
the seed and the request, so that a run can be repeated.

The chance verifier (``chance:reject=0.2``, or ``chance:reject=0.2,seed=3``) rejects that share of the steps, with a
random label of the step's kind. It never looks at annotations: it is the lower bound that shows what verdicts by
chance achieve. Everything that either makes is marked as simulated.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from random import Random
from typing import Any, TypeVar

from safe_stepwise.engines.base import Completion, Engine, EngineError, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback
from safe_stepwise.store.code import code_digest
from safe_stepwise.taxonomy import CORRECT, check_order

DEAF = 0.2
"""Maximum rate of a player's mistakes after feedback."""
NO_QUESTION = "the symbolic engine has no question to go by"
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of the symbolic player's mistakes, from 0 to 1 (``planted`` is a number).

    ``error_rate`` is the rate of wrong steps, verdicts and judgements, and of each mistake below whose rate is None.
    """

    error_rate: float = 0.0
    format: float = 0.0
    """The rate of replies that can't be parsed strictly."""
    salvageable: float = 0.5
    """The share of these replies that can be salvaged."""
    decompose: float | None = None
    """The rate of wrong first sub-questions."""
    value: float | None = None
    """The rate of wrong answers from the right passage."""
    paragraph: float = 0.0
    """The rate of wrong answers from a wrong passage."""
    lucky: float = 0.0
    """The rate of right answers with a passage that does not state them."""
    stop: float | None = None
    """The rate of going on or stopping at the wrong time."""
    summary: float | None = None
    """The rate of wrong summaries of right findings."""
    spurious: float = 0.0
    """The rate of questions whose chain has a flaw but the right answer (`players.facts`); a role gets 1 or 0."""
    planted: int = 0
    """The number of wrong relation paths that are followed before the right one."""

    def rate_of(self, name: str, *, has_feedback: bool = False) -> float:
        """Return the rate of a mistake by its name (`DEAF` at most, if it has feedback); else ``error_rate``.

        >>> Rates(0.1, value=0.2).rate_of("value"), Rates(0.1).rate_of("value"), Rates(0.1).rate_of("lucky")
        (0.2, 0.1, 0.0)
        """
        rate = getattr(self, name)
        rate = float(self.error_rate if rate is None else rate)
        return min(rate, DEAF) if has_feedback else rate

    @property
    def changed(self) -> dict[str, Any]:
        """The rates that differ from their defaults, without ``error_rate``."""
        values = ((field, getattr(self, field.name)) for field in fields(self)[1:])
        return {field.name: value for field, value in values if value != field.default}


Role = Callable[[Request, Rates, Random], str]
"""A function of a request with its scene, the rates and a source of chance, which returns the reply's text.

Raises ``EngineError`` if the scene lacks what the role needs.
"""


def scene_of(request: Request, kind: type[S], lack: str = NO_QUESTION) -> S:
    """Return a request's scene; raise ``EngineError``, whose message is ``lack``, if it is not of a kind."""
    if not isinstance(request.scene, kind):
        raise EngineError(lack)
    return request.scene


class Player(Engine):
    """A simulated model; its replies depend only on its identity, its code and the request."""

    simulated = True

    def __init__(self, engine: str, settings: Mapping[str, Any]) -> None:
        pairs = ",".join(f"{name}={value}" for name, value in settings.items())
        self.name = f"{engine}:{pairs} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": engine, **settings}

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        try:
            chance = Random(f"{self.identity['seed']} {request_key(self, request)}")
            reply = self.write_reply(request, chance)
            return Completion(reply, score=self.score(reply) if request.labels else None)
        except EngineError as error:
            return error

    def write_reply(self, request: Request, chance: Random) -> str:
        """Return the reply's text; raises ``EngineError`` if there is none."""
        raise NotImplementedError

    def score(self, reply: str) -> float | None:
        """Return the probability of *Correct* in a verdict; None if the player knows of none."""
        return None


class SymbolicEngine(Player):
    """The engine of the symbolic player (see the module's docstring)."""

    def __init__(self, roles: Mapping[str, Role], rates: Rates, seed: int = 0) -> None:
        super().__init__("symbolic", {"error_rate": rates.error_rate, "seed": seed, **rates.changed})
        self.roles, self.rates, self.seed = roles, rates, seed

    @classmethod
    def read(cls, settings: str, roles: Mapping[str, Role]) -> "SymbolicEngine":
        """Make the engine from a spec's settings; raise ``UserError`` for wrong ones.

        >>> SymbolicEngine.read("error_rate=0.1,seed=3", {}).name
        'symbolic:error_rate=0.1,seed=3 (simulated)'
        """
        values: dict[str, Any] = {}
        try:
            for setting in filter(None, settings.split(",")):
                name, _, value = setting.partition("=")
                values[name] = _setting(name, value)
            seed = values.pop("seed", 0)
            rates = Rates(**values)
            if rates.rate_of("value") + rates.paragraph + rates.lucky > 1:
                raise ValueError("value, paragraph and lucky have to be 1 at most together")
        except ValueError as error:
            names = ", ".join(field.name for field in fields(Rates)[1:])
            hint = f"write symbolic:error_rate=0.1,seed=3 (or rates: {names})"
            raise UserError(f"symbolic:{settings}: {error}; {hint}") from None
        return cls(roles, rates, seed)

    @cached_property
    def code(self) -> str:
        """The digest of the code that writes its replies, computed when the first reply is requested."""
        return code_digest(*sorted({role.__module__ for role in self.roles.values()}))

    def write_reply(self, request: Request, chance: Random) -> str:
        play = self.roles.get(request.role)
        if play is None or request.scene is None:
            raise EngineError(f"the symbolic engine does not know the role {request.role!r}")
        return play(request, self._decided(request), chance)

    def score(self, reply: str) -> float:
        """Return how often a verdict like this one is right, by the player's error rate."""
        says_correct = f'"error_type": "{CORRECT}"' in reply or f'"error_type":"{CORRECT}"' in reply
        return 1 - self.rates.error_rate if says_correct else self.rates.error_rate

    def _decided(self, request: Request) -> Rates:
        """Return the rates, with ``spurious`` as decided for the request's question: 1 or 0."""
        question = getattr(request.scene, "question", None)
        if question is None or not self.rates.spurious:
            return self.rates
        draw = Random(f"{self.seed} spurious {question.benchmark} {question.id}").random()
        return replace(self.rates, spurious=float(draw < self.rates.spurious))


def _setting(name: str, value: str) -> float:
    """Read the value of a setting; raise ``ValueError`` with the reason if it is wrong."""
    if name not in {"seed", *(field.name for field in fields(Rates))}:
        raise ValueError(f"has no setting {name!r}")
    is_whole = name in ("seed", "planted")
    try:
        number: float = int(value) if is_whole else float(value)
    except ValueError:
        raise ValueError(f"{name} has to be a number") from None
    if name != "seed" and not 0 <= number <= (math.inf if is_whole else 1):
        raise ValueError(f"{name} has to be {'0 or more' if is_whole else 'from 0 to 1'}")
    return number


Fields = Mapping[str, Any]


def in_json(fields: Fields, rates: Rates, chance: Random) -> str:
    """Write a reply's fields as JSON; at the rate ``format``, write them in another form.

    The share ``salvageable`` of these has all fields, but in prose or invalid JSON. The others are unreadable: they
    break off, give two answers, or have no object.
    """
    text = json.dumps(fields, ensure_ascii=False)
    if chance.random() >= rates.format:
        return text
    distortions = SALVAGEABLE if chance.random() < rates.salvageable else UNREADABLE
    return chance.choice(distortions)(fields, text)


def render_turn(text: str, rates: Rates, chance: Random) -> str:
    """Write a ReAct turn; at the rate ``format``, in another form."""
    if chance.random() >= rates.format:
        return text
    if chance.random() < rates.salvageable:
        return f"{text}\nObservation: That is all there is."
    return chance.choice((text.replace("Action:", "Then"), text.replace("[", "(", 1)))


def _in_prose(fields: Fields, text: str) -> str:
    return f"Here is what you asked for: {text} I hope that this is of use."


def _in_words(fields: Fields, text: str) -> str:
    """Write the answer as a last line, if the reply has an explanation and an answer."""
    if "explain" not in fields or "answer" not in fields:
        return _in_prose(fields, text)
    return f"{fields['explain']}\nAnswer: {fields['answer']}"


def _doubled(fields: Fields, text: str) -> str:
    """Write two replies in one that differ in every text."""
    return f"{text}\nOr rather:\n{json.dumps({name: _distort(value) for name, value in fields.items()})}"


def _distort(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return f"{value} the Other" if isinstance(value, str) else value


SALVAGEABLE: tuple[Callable[[Fields, str], str], ...] = (_in_prose, lambda _, text: f"{text[:-1]},}}", _in_words)
UNREADABLE: tuple[Callable[[Fields, str], str], ...] = (
    lambda _, text: text[: text.index(":") + 2],
    lambda *_: "It is hard to put this into the form that was asked for, so it is left open.",
    _doubled,
)


def is_listed(request: Request, label: str) -> bool:
    """Whether the request's schema allows a label; it excludes those of a dropped category."""
    return request.schema is None or json.dumps(label) in request.schema.text


def format_verdict(verdict: Feedback, request: Request, scene: Scene) -> str:
    """Write a verdict in the form that the request requires; raise ``FeedbackError`` if it is not valid.

    If the evidence comes first, it quotes what the step names, as a verifier's training rows do; this only needs the
    step's words, so that the chance verifier can do it too.
    """
    if request.schema is None or '"evidence"' not in request.schema.text or scene.step is None:
        return format_feedback(verdict, LABEL_FIRST)
    q = scene.question
    return format_feedback(with_evidence(verdict, q.question, q.passages, scene.previous, scene.step), EVIDENCE_FIRST)


GUIDANCE = "Write this step again, without the error."
"""The chance verifier's guidance for every rejected step."""


class ChanceEngine(Player):
    """The engine of the chance verifier (see the module's docstring)."""

    def __init__(self, reject: float, seed: int = 0) -> None:
        super().__init__("chance", {"reject": reject, "seed": seed})
        self.reject, self.seed = reject, seed

    @classmethod
    def read(cls, settings: str) -> "ChanceEngine":
        """Make the engine from a spec's settings; raise ``UserError`` for wrong ones.

        >>> ChanceEngine.read("reject=0.25,seed=3").name
        'chance:reject=0.25,seed=3 (simulated)'
        """
        values = {name: value for name, _, value in [pair.partition("=") for pair in settings.split(",")]}
        try:
            reject, seed = float(values.pop("reject")), int(values.pop("seed", "0"))
        except (KeyError, ValueError):
            reject, seed = -1.0, 0
        if values or not 0 <= reject <= 1:
            raise UserError(f"chance:{settings}: write chance:reject=0.2, a share from 0 to 1, or ...,seed=3")
        return cls(reject, seed)

    def write_reply(self, request: Request, chance: Random) -> str:
        """Draw the verdict for a request."""
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            raise EngineError(f"chance judges steps alone: it has no role {request.role!r}")
        verdict = Feedback(CORRECT, "Nothing was looked at.", "")
        if chance.random() < self.reject:
            labels = [label for label in check_order(scene.step.kind) if is_listed(request, label)]
            if labels:  # none if all errors of the step's kind are of a dropped category
                label = chance.choice(labels)
                verdict = Feedback(label, f"The step is taken for a case of {label}.", GUIDANCE)
        try:
            return format_verdict(verdict, request, scene)
        except FeedbackError as error:
            raise EngineError(f"the step breaks the grammar ({error})") from None
