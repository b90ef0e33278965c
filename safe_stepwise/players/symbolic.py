"""No model: reasons over a question's annotations, wrong at a seeded rate; hence simulated.

Spec: ``symbolic``, or ``symbolic:error_rate=0.1,seed=3``. What it says in a role stands in the file of that role
(``steps``, ``judging``, ``prompting``, ``deliberating``). Roles of prompting methods know mistakes apart, each with a
rate of its own (`Rates`): ``symbolic:format=0.3,value=0.2``. Errors depend on the seed and the request alone, so that
a run can be repeated.

A verifier may also draw its verdicts: what guidance by chance is worth, hence a lower bound (``chance:reject=0.2``, or
``chance:reject=0.2,seed=3``). It rejects that share of the steps with a label drawn from those of the step's kind, in
the form that the request asks for, and knows nothing of any annotation. All that either makes is simulated.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from safe_stepwise.engines.base import Completion, EngineError, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.feedback import FeedbackError, format_feedback
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.verifier import ROLE
from safe_stepwise.records import EVIDENCE_FIRST, LABEL_FIRST, Feedback
from safe_stepwise.taxonomy import CORRECT, check_order

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
    """The rate of replies that can't be parsed strictly."""
    salvageable: float = 0.5
    """The share of those replies that can be salvaged."""
    decompose: float | None = None
    """The rate of wrong first sub-questions."""
    value: float | None = None
    """The rate of wrong answers from the right passage."""
    paragraph: float = 0.0
    """The rate of wrong answers from a wrong passage."""
    lucky: float = 0.0
    """The rate of right answers with a passage that does not state them."""
    stop: float | str | None = None
    """Going on or stopping at the wrong time; ``never`` and ``at_once`` stop whatever was found."""
    summary: float | None = None
    """A wrong answer where it could have been put right."""
    spurious: float = 0.0
    """Of a chain's steps: the right answer, though a fact that it needs is false or missing. It is
    decided once a question (1 or 0, for a role) and leaves other mistakes as they are."""
    planted: int = 0
    """Not a rate but a number: wrong relation paths that are followed before the right one."""

    def rate_of(self, name: str) -> float:
        """Return the rate of a mistake by its name; the rate of errors where it has none of its own.

        >>> Rates(0.1, value=0.2).rate_of("value"), Rates(0.1).rate_of("value"), Rates(0.1).rate_of("lucky")
        (0.2, 0.1, 0.0)
        """
        rate = getattr(self, name)
        return float(self.error_rate if rate is None or isinstance(rate, str) else rate)

    @property
    def changed(self) -> dict[str, Any]:
        """The rates that differ from their defaults, without the rate of errors."""
        values = ((field, getattr(self, field.name)) for field in fields(self)[1:])
        return {field.name: value for field, value in values if value != field.default}


Role = Callable[[Request, Rates, Random], str]
"""From a request with its scene, the rates and the chance of errors to the reply's text.

Raises EngineError where the scene gives nothing to go by.
"""


class Player:
    """A simulated model; its replies depend on its identity and the request alone."""

    simulated = True

    def __init__(self, engine: str, settings: Mapping[str, Any]) -> None:
        pairs = ",".join(f"{name}={value}" for name, value in settings.items())
        self.name = f"{engine}:{pairs} (simulated)"
        self.identity: Mapping[str, Any] = {"engine": engine, **settings}

    async def check(self) -> None:
        """Check nothing: the engine needs no files."""

    async def close(self) -> None:
        """Do nothing: there is nothing to free."""

    async def generate(self, requests: Sequence[Request]) -> Sequence[Completion | EngineError]:
        return [self.answer(request) for request in requests]

    def answer(self, request: Request) -> Completion | EngineError:
        """Reply to one request."""
        try:
            chance = Random(f"{self.identity['seed']} {request_key(self, request)}")
            return Completion(self.write_reply(request, chance))
        except EngineError as error:
            return error

    def write_reply(self, request: Request, chance: Random) -> str:
        """Return the reply's text; raises ``EngineError`` if there is none."""
        raise NotImplementedError


class SymbolicEngine(Player):
    """An engine that reasons over annotations and errs at seeded rates (see the module docstring)."""

    def __init__(self, roles: Mapping[str, Role], rates: Rates, seed: int = 0) -> None:
        super().__init__("symbolic", {"error_rate": rates.error_rate, "seed": seed, **rates.changed})
        self.roles, self.rates, self.seed = roles, rates, seed

    @classmethod
    def read(cls, settings: str, roles: Mapping[str, Role]) -> "SymbolicEngine":
        """The engine of a spec's settings; ``UserError`` for others.

        >>> SymbolicEngine.read("error_rate=0.1,seed=3", {}).name
        'symbolic:error_rate=0.1,seed=3 (simulated)'
        >>> SymbolicEngine.read("stop=never", {}).name
        'symbolic:error_rate=0.0,seed=0,stop=never (simulated)'
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

    def write_reply(self, request: Request, chance: Random) -> str:
        play = self.roles.get(request.role)
        if play is None or request.scene is None:
            raise EngineError(f"the symbolic engine does not know the role {request.role!r}")
        return play(request, self._decided(request), chance)

    def _decided(self, request: Request) -> Rates:
        """The rates with what is decided once a question."""
        question = getattr(request.scene, "question", None)
        if question is None or not self.rates.spurious:
            return self.rates
        draw = Random(f"{self.seed} spurious {question.benchmark} {question.id}").random()
        return replace(self.rates, spurious=float(draw < self.rates.spurious))


def _setting(name: str, value: str) -> float | str:
    """The value of a setting; raises ``ValueError`` with the reason for what is none."""
    if name not in {"seed", *(field.name for field in fields(Rates))}:
        raise ValueError(f"has no setting {name!r}")
    if name == "stop" and value in (NEVER, AT_ONCE):
        return value
    try:
        number: float = int(value) if name in ("seed", "planted") else float(value)
        is_below = name == "planted" and number < 0
    except ValueError:
        is_below = True
    if is_below:
        raise ValueError(f"{name} has to be a number{f', {NEVER} or {AT_ONCE}' if name == 'stop' else ''}")
    if isinstance(number, float) and not 0 <= number <= 1:
        raise ValueError(f"{name} has to be from 0 to 1")
    return number


Fields = Mapping[str, Any]


def in_json(fields: Fields, rates: Rates, chance: Random) -> str:
    """A reply's fields as JSON, at the rate ``format`` not in the form that is asked for.

    Some such replies can be salvaged: all that they should say stands there, but not as valid JSON
    alone. Of others nothing can be read: they break off, give two answers, or no object at all.
    """
    text = json.dumps(fields, ensure_ascii=False)
    if chance.random() >= rates.format:
        return text
    distortions = SALVAGEABLE if chance.random() < rates.salvageable else UNREADABLE
    return chance.choice(distortions)(fields, text)


def render_turn(text: str, rates: Rates, chance: Random) -> str:
    """A turn of ReAct, which is no JSON, in the right form or not."""
    if chance.random() >= rates.format:
        return text
    if chance.random() < rates.salvageable:
        return f"{text}\nObservation: That is all there is."
    return chance.choice((text.replace("Action:", "Then"), text.replace("[", "(", 1)))


def _in_prose(fields: Fields, text: str) -> str:
    return f"Here is what you asked for: {text} I hope that this is of use."


def _in_words(fields: Fields, text: str) -> str:
    """The answer as a last line, where there is one that stands for itself."""
    if "explain" not in fields or "answer" not in fields:
        return _in_prose(fields, text)
    return f"{fields['explain']}\nAnswer: {fields['answer']}"


def _doubled(fields: Fields, text: str) -> str:
    """Two replies in one, which differ in every text that counts."""
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
    """Whether a label is one to choose from, as all are but those of a dropped category."""
    return request.schema is None or json.dumps(label) in request.schema.text


def format_verdict(verdict: Feedback, request: Request, scene: Scene) -> str:
    """The reply that gives a verdict in the form that the request asks for.

    Who is asked for the evidence first quotes what the step names, as a verifier's training rows do: by words alone,
    so that those who know nothing can do it, too. Raises FeedbackError for a verdict that is not valid.
    """
    if request.schema is None or '"evidence"' not in request.schema.text or scene.step is None:
        return format_feedback(verdict, LABEL_FIRST)
    q = scene.question
    return format_feedback(with_evidence(verdict, q.question, q.passages, scene.previous, scene.step), EVIDENCE_FIRST)


EXAMPLE = "chance:reject=0.2"
GUIDANCE = "Write this step again, without the error."
"""The guidance of every rejection: a better one would have to look."""


class ChanceEngine(Player):
    """A verifier that draws its verdicts; see the module docstring."""

    def __init__(self, reject: float, seed: int = 0) -> None:
        super().__init__("chance", {"reject": reject, "seed": seed})
        self.reject, self.seed = reject, seed

    @classmethod
    def read(cls, settings: str) -> "ChanceEngine":
        """The engine of a spec's settings; ``UserError`` for others.

        >>> ChanceEngine.read("reject=0.25,seed=3").name
        'chance:reject=0.25,seed=3 (simulated)'
        """
        values = {name: value for name, _, value in [pair.partition("=") for pair in settings.split(",")]}
        try:
            reject, seed = float(values.pop("reject")), int(values.pop("seed", "0"))
        except (KeyError, ValueError):
            reject, seed = -1.0, 0
        if values or not 0 <= reject <= 1:
            raise UserError(f"chance:{settings}: write {EXAMPLE}, a share from 0 to 1, or ...,seed=3")
        return cls(reject, seed)

    def write_reply(self, request: Request, chance: Random) -> str:
        """The verdict that is drawn for a request."""
        scene = request.scene
        if request.role != ROLE or not isinstance(scene, Scene) or scene.step is None:
            raise EngineError(f"chance judges steps alone: it has no role {request.role!r}")
        verdict = Feedback(CORRECT, "Nothing was looked at.", "")
        if chance.random() < self.reject:
            labels = [label for label in check_order(scene.step.kind) if is_listed(request, label)]
            if labels:  # else all that the step could have is of a dropped category
                label = chance.choice(labels)
                verdict = Feedback(label, f"The step is taken for a case of {label}.", GUIDANCE)
        try:
            return format_verdict(verdict, request, scene)
        except FeedbackError as error:
            raise EngineError(f"the step breaks the grammar ({error})") from None
