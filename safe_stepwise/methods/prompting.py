"""What all prompting methods share: their options, how a request is made, what an attempt keeps.

A request holds what never changes first (instructions, passages), then the record so far, then what
is asked now, so that an engine's prefix cache holds what a question's requests have in common. The
last line of the user's turn says the form of the reply. No schema goes with it: guided decoding
would write the form for the model, and whether it keeps to it is what SG-FSM's *format* counts.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import Completion, Request, Sampling, collect_thoughts
from safe_stepwise.methods.reading import FieldReader, Reading, facts_in, reason, triples, words
from safe_stepwise.methods.scene import PromptingScene
from safe_stepwise.records import Attempt, Passage, Trajectory
from safe_stepwise.scoring import normalize_answer

SamplingName = Literal["greedy", "paper"]
SAMPLING: tuple[SamplingName, ...] = get_args(SamplingName)


@dataclass(frozen=True, slots=True)
class Prompting:
    """Options of every prompting method.

    ``evidence``: also ask for supporting facts and triples (SG-FSM's Setting 2, section 4.3).
    """

    evidence: bool = False
    sampling: SamplingName = "greedy"

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLING:
            raise ValueError(f"sampling is greedy or paper, not {self.sampling!r}")


@dataclass(frozen=True, slots=True)
class Samples(Prompting):
    """``samples``: how many replies are put to the vote.

    More than one are drawn, at temperature 0.8 and top_p 0.8: greedy ones would all be alike.
    """

    samples: int = 1

    def __post_init__(self) -> None:
        super(Samples, self).__post_init__()
        if self.samples < 1:
            raise ValueError("samples has to be 1 or more")


@dataclass(frozen=True, slots=True)
class Iterating(Prompting):
    """Options of the machines (SG-FSM, sections 3.2 and 3.5).

    ``iterations``: sub-questions that may be asked for; one more ends in an early withdrawal.
    ``revisions``: tries at putting right the form of a reply. ``redo``: how often a reply that none
    of them put right is asked for once more, its end being shown, before the question is given up.
    """

    iterations: int = 6
    revisions: int = 2
    redo: int = 0

    def __post_init__(self) -> None:
        super(Iterating, self).__post_init__()
        if self.iterations < 1 or self.revisions < 0 or self.redo < 0:
            raise ValueError("iterations has to be 1 or more, revisions and redo 0 or more")


GENERATOR = "generator"
"""Who answers; SAFE's loop calls it the same."""
ANSWERING, END = "answer", "end"
"""The one state of a method that answers at once, and what comes after it."""
UNREADABLE = "unreadable"
"""The stop reason of an answer that could not be read."""
MAX_REPEATED_CHARACTERS = 4_000
"""Characters of a reply that could not be read, as it is shown again."""
FORM = "Reply with JSON alone: "

_DRAWN = Sampling(temperature=0.8, top_p=0.8)
_PAPER = replace(_DRAWN, repetition_penalty=1.1)
"""Of the scripts that SG-FSM's authors published; the paper does not say."""


def sampled(sampling: Sampling, variant: SamplingName, seed: int | None = None) -> Sampling:
    """A prompt's sampling in one of the two ways.

    With a ``seed`` a greedy one is drawn, too, but without the penalty, which few engines know.
    """
    if variant == "greedy" and seed is None:
        return sampling
    stochastic = _PAPER if variant == "paper" else _DRAWN
    return replace(stochastic, max_tokens=sampling.max_tokens, seed=seed or 0)


def request_of(name: str, options: Prompting, scene: PromptingScene, seed: int | None = None, **data: Any) -> Request:
    """The request of a prompt file, ``data`` being what its template asks for.

    With a ``seed`` the reply is drawn, whatever the options' sampling.
    """
    prompt = prompts.load(name)
    return Request(
        prompt.messages(evidence=options.evidence, **data),
        sampled(prompt.sampling, options.sampling, seed),
        role=prompt.role,
        scene=scene,
    )


def form_of(request: Request) -> str:
    """The form of the reply that a request asks for: what stands behind `FORM` in its last line."""
    return request.messages[-1].content.rpartition(FORM)[2]


def texts_of(passages: Sequence[Passage], *texts: str) -> tuple[str, ...]:
    """Collect the texts that a request quotes: passages with their titles, and others."""
    return (*(f"{page.title}\n{page.text}" for page in passages), *texts)


def answer_fields(passages: Sequence[Passage], evidence: bool, why_field: str = "explain") -> dict[str, FieldReader]:
    """Return the readers of an answer's fields; ``why_field`` names that of its reason."""
    fields: dict[str, FieldReader] = {"answer": words, why_field: reason}
    if evidence:
        fields |= {"supporting_facts": facts_in(passages), "evidences": triples}
    return fields


def attempt_of(number: int, state: str, after: str, reading: Reading, replies: Mapping[str, Completion]) -> Attempt:
    """A reply as the trajectory keeps it; it is accepted if it could be read strictly."""
    return Attempt(
        number,
        reading.text,
        reading.feedback,
        reading.is_strict,
        {role: reply.usage for role, reply in replies.items()},
        state=state,
        read=reading.plain,
        next_state=after,
        thoughts=collect_thoughts(replies),
    )


def vote(answers: Iterable[str]) -> str:
    """The answer that most agree in, by the form in which answers are compared; "" of none.

    Of several that as many agree in the one that came first, in its first wording.

    >>> vote(["Oru", "the Vel", "Vel", ""])
    'the Vel'
    """
    nonempty = [answer for answer in answers if answer]
    times = Counter(map(normalize_answer, nonempty))
    return max(nonempty, key=lambda answer: times[normalize_answer(answer)], default="")


def voted(attempts: Iterable[Attempt], salvaging: bool = False) -> Mapping[str, Any]:
    """Return the fields of the reply that the vote falls on; empty where none can be read."""
    forms = ("strict", "salvaged") if salvaging else ("strict",)
    read = [a.read["value"] for a in attempts if a.state == ANSWERING and a.read["form"] in forms]
    chosen = vote(value.get("answer", "") for value in read)
    return next((value for value in read if value.get("answer") == chosen), {})


def salvaged_answer(trajectory: Trajectory) -> str:
    """The answer with replies that only salvaging could read; machines move by strict ones alone.

    SG-FSM's tables count such an answer as wrong, or do not say (section 4.1 has *format* alone).
    """
    answering = [attempt.state == ANSWERING for attempt in trajectory.attempts]
    if answering and all(answering):
        return str(voted(trajectory.attempts, salvaging=True).get("answer", ""))
    return trajectory.answer


def readability(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """How what was asked for could be read: at first try, after revision, salvaged, or never.

    A reply and its revisions count once, as ``first``, ``revised``, ``salvaged`` (never strictly, and at least one of
    them could be salvaged) or ``never``. Replies that are no prompting method's do not count.
    """
    counts = Counter[str](first=0, revised=0, salvaged=0, never=0)
    for trajectory in trajectories:
        forms: list[str] = []
        for attempt in trajectory.attempts:
            form = str(attempt.read.get("form", "")) if isinstance(attempt.read, dict) else ""
            if not form or attempt.feedback:  # nobody was asked, or for a verdict
                continue
            revises = bool(attempt.read.get("revises"))
            if forms and not revises:
                counts[_end(forms)] += 1
                forms = []
            forms.append(form)
            if form == "strict":
                counts["revised" if revises else "first"] += 1
                forms = []
        if forms:
            counts[_end(forms)] += 1
    return dict(counts)


def _end(forms: Sequence[str]) -> str:
    return "salvaged" if "salvaged" in forms else "never"
