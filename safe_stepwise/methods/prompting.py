"""Shared parts of the prompting methods (direct, CoT, ReAct, SG-FSM): options, requests, attempts, votes.

A request begins with what never changes (instructions, passages), then the record so far, then the current task, so
that an engine's prefix cache can reuse what a question's requests share. The last line of the user's turn describes
the form of the reply. Requests have no schema: guided decoding would write the form for the model, and SG-FSM's
*format* measures whether the model keeps to it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from safe_stepwise import prompts
from safe_stepwise.engines.base import Request, Sampling
from safe_stepwise.methods.reading import FieldReader, facts_in, reason, triples, words
from safe_stepwise.methods.scene import PromptingScene, Scene, TripleScene
from safe_stepwise.records import Attempt, Passage, Trajectory
from safe_stepwise.scoring import normalize_answer

SamplingName = Literal["greedy", "paper"]
SAMPLING: tuple[SamplingName, ...] = get_args(SamplingName)


@dataclass(frozen=True, slots=True)
class PromptingOptions:
    """Options of every prompting method.

    ``evidence``: also ask for supporting facts and triples (SG-FSM's Setting 2, section 4.3). ``sampling``: greedy, or
    as in the scripts of SG-FSM's authors (``paper``).
    """

    evidence: bool = False
    sampling: SamplingName = "greedy"


@dataclass(frozen=True, slots=True)
class VotingOptions(PromptingOptions):
    """Options of a method with self-consistency: the most frequent answer of ``samples`` replies counts.

    Several replies are sampled at temperature 0.8 and top_p 0.8, as greedy ones would all be the same.
    """

    samples: int = 1

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError("samples has to be 1 or more")


@dataclass(frozen=True, slots=True)
class MachineOptions(PromptingOptions):
    """Options of the machines (SG-FSM, sections 3.2 and 3.5).

    ``iterations``: maximum number of sub-questions; one more withdraws the question. ``revisions``: how often the
    model may correct the form of a reply. ``redo``: how often, when the revisions have failed, the original request is
    sent again with the last bad reply, before the question is withdrawn.
    """

    iterations: int = 6
    revisions: int = 2
    redo: int = 0

    def __post_init__(self) -> None:
        if self.iterations < 1 or self.revisions < 0 or self.redo < 0:
            raise ValueError("iterations has to be 1 or more, revisions and redo 0 or more")


GENERATOR = "generator"
"""The role of the model that answers, as in SAFE's loop."""
ANSWERING = "answer"
"""The only state of a method with one request."""
MAX_REPEATED_CHARACTERS = 4_000
"""Length to which an unreadable reply is cut when the model sees it again."""
FORM = "Reply with JSON alone: "

_STOCHASTIC = Sampling(temperature=0.8, top_p=0.8)
_PAPER = replace(_STOCHASTIC, repetition_penalty=1.1)
"""The sampling in the scripts that SG-FSM's authors published; the paper gives none."""


def sampled(sampling: Sampling, variant: SamplingName, seed: int | None = None) -> Sampling:
    """Return a prompt's sampling in a variant; a ``seed`` makes ``greedy`` random, without repetition penalty."""
    if variant == "greedy" and seed is None:
        return sampling
    stochastic = _PAPER if variant == "paper" else _STOCHASTIC
    return replace(stochastic, max_tokens=sampling.max_tokens, seed=seed or 0)


def request_of(
    name: str, options: PromptingOptions, scene: PromptingScene, seed: int | None = None, **data: Any
) -> Request:
    """Build the request of the prompt file ``name`` with its template's ``data``; a ``seed`` makes it sampled."""
    request = filled_request(name, scene, evidence=options.evidence, **data)
    return replace(request, sampling=sampled(request.sampling, options.sampling, seed))


def filled_request(name: str, scene: Scene | PromptingScene | TripleScene, **data: Any) -> Request:
    """Build the request of the prompt file ``name`` with its template's ``data``, sampled as the file says."""
    prompt = prompts.load(name)
    return Request(prompt.messages(**data), prompt.sampling, role=prompt.role, scene=scene)


def form_of(request: Request) -> str:
    """Return the form of reply that a request asks for: the text after `FORM` in its last line."""
    return request.messages[-1].content.rpartition(FORM)[2]


def texts_of(passages: Sequence[Passage], *texts: str) -> tuple[str, ...]:
    """Collect the texts that a request quotes: passages with their titles, and further ``texts``."""
    return (*(f"{page.title}\n{page.text}" for page in passages), *texts)


def answer_fields(passages: Sequence[Passage], evidence: bool, why_field: str = "explain") -> dict[str, FieldReader]:
    """Return the readers of an answer's fields; ``why_field`` names the field with its reason."""
    fields: dict[str, FieldReader] = {"answer": words, why_field: reason}
    if evidence:
        fields |= {"supporting_facts": facts_in(passages), "evidences": triples}
    return fields


def vote(answers: Iterable[str]) -> str:
    """Return the most frequent normalised answer in its first wording, of equals the first; "" without any."""
    nonempty = [answer for answer in answers if answer]
    times = Counter(map(normalize_answer, nonempty))
    return max(nonempty, key=lambda answer: times[normalize_answer(answer)], default="")


def winning_fields(attempts: Iterable[Attempt], salvaging: bool = False) -> Mapping[str, Any]:
    """Return the first strict (or ``salvaging``) reply's fields with the most frequent answer; {} without one."""
    forms = ("strict", "salvaged") if salvaging else ("strict",)
    read = [a.read["value"] for a in attempts if a.state == ANSWERING and a.read["form"] in forms]
    chosen = vote(value.get("answer", "") for value in read)
    return next((value for value in read if value.get("answer") == chosen), {})


def salvaged_answer(trajectory: Trajectory) -> str:
    """Return a trajectory's answer if salvaged replies count, too, of which SG-FSM (section 4.1) says nothing."""
    answering = [attempt.state == ANSWERING for attempt in trajectory.attempts]
    if answering and all(answering):
        return str(winning_fields(trajectory.attempts, salvaging=True).get("answer", ""))
    return trajectory.answer


def readability(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """Count how replies could be read: strictly at first, strictly after a revision, only salvaged, or never.

    A reply and its revisions count once, as ``first``, ``revised``, ``salvaged`` (none strict, at least one salvaged)
    or ``never``. Replies of other methods and verdicts do not count.
    """
    counts = Counter[str](first=0, revised=0, salvaged=0, never=0)
    for trajectory in trajectories:
        forms: list[str] = []
        for attempt in trajectory.attempts:
            form = str(attempt.read.get("form", "")) if isinstance(attempt.read, dict) else ""
            if not form or attempt.feedback:  # no reply, or a verdict
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
