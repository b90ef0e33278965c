"""Samples several trajectories of a question by any method, and chooses one (best of N).

The generator's requests are sampled at random, each trajectory with its own seed. The verifier then judges every step
of every chain, with all valid steps before it. A step's score is the verifier's probability of *Correct*; without log-
probabilities it is 1 for Correct and 0 for anything else. An unreadable verdict, a text that is no step and a chain of
more than `MAX_STEPS` steps score 0: nothing vouches for them. A chain's score is the least or the product of its
steps' scores (Lightman et al., 2023, appendix F, compare both). A trajectory without an answer is chosen only if none
has one.

The trajectories of a question run one after another, so that an engine's prefix cache holds the passages for all but
the first.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import sentencex

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import prompting, searching, verifier
from safe_stepwise.methods.base import Method, resolve_options
from safe_stepwise.methods.learnt_prompts import adopt_learnt_prompts
from safe_stepwise.methods.limits import DEFAULT, Limits
from safe_stepwise.methods.loop import SCORED, UNREAD, VERIFIER, ask_verdict, malformed
from safe_stepwise.methods.sg_fsm_safe import step_of, sub_answers
from safe_stepwise.records import FAILED, Attempt, Feedback, Question, Sample, Step, Trajectory
from safe_stepwise.scoring import normalize_answer
from safe_stepwise.steps import ANSWER_MARKER, StepError, format_step, unwrap_answer
from safe_stepwise.taxonomy import CORRECT, STEP_KINDS

Choose = Literal["verifier", "majority", "weighted", "first"]
CHOICES: tuple[Choose, ...] = get_args(Choose)
ChainScore = Literal["least", "product"]
_JUDGED = ("verifier", "weighted")
MAX_SAMPLES = 64
_SEEDS = 1_000
"""The seeds that a method may use for its own samples."""
MAX_STEPS = 40
_GRAMMAR = re.compile(
    rf"#+ ?ANSWER:?\s*|^[\s*_>#•-]++|[*_]*+\bstep\s*\d+[*_]*+\s*:[*_]*+\s*|\s*\((?:{'|'.join(STEP_KINDS)})\)\.?",
    re.IGNORECASE,
)
"""Marks of the grammar of steps, which other methods' sentences and answers may hold."""


@dataclass(frozen=True, slots=True)
class BestOf:
    """How many trajectories of a question are sampled, and which of them counts.

    ``choose``: the best chain by the verifier, the most frequent answer, the answer with the most score in sum
    (``weighted``), or the first trajectory. Answers are compared after normalisation; of equals the first counts.
    """

    samples: int
    choose: Choose = "verifier"
    chain_score: ChainScore = "least"

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that choosing asks, beside those of the method."""
        return (VERIFIER,) if self.choose in _JUDGED else ()

    @property
    def record(self) -> dict[str, Any]:
        """The options as a run's records have them, without the default of ``chain_score``."""
        product = {"chain_score": self.chain_score} if self.roles and self.chain_score != "least" else {}
        return {"best_of": self.samples, "choose": self.choose, **product}

    def applied_to(self, method: Method) -> "SampledMethod":
        """Return the method that samples trajectories by another one, and answers with one of them."""
        return SampledMethod(method, self)

    def choose_index(self, samples: Sequence[Sample]) -> int:
        """Return the index of the chosen sample.

        >>> scores = {"Oru": 0.2, "Vel": 0.5, "oru": 0.4}
        >>> samples = [Sample(answer, (), "answered", score=score) for answer, score in scores.items()]
        >>> [BestOf(3, choose).choose_index(samples) for choose in CHOICES]
        [1, 0, 0, 0]
        """
        answered = [n for n, sample in enumerate(samples) if sample.answer] or [0]
        if self.choose == "first":
            return answered[0]
        if self.choose == "verifier":
            return max(answered, key=lambda n: samples[n].score or 0.0)
        weights: defaultdict[str, float] = defaultdict(float)
        for n in answered:
            weights[_key(samples[n])] += (samples[n].score or 0.0) if self.choose == "weighted" else 1.0
        return max(answered, key=lambda n: weights[_key(samples[n])])


class SampledMethod:
    """A method whose trajectory is one of several by another method, with all of them in it."""

    def __init__(self, method: Method, best_of: BestOf) -> None:
        self.method, self.best_of = method, best_of
        self.name, self.title, self.prompts = method.name, method.title, method.prompts
        self.roles = tuple(dict.fromkeys((*method.roles, *best_of.roles)))

    def resolve_options(self, options: Any, clients: Mapping[str, Client]) -> Any:
        """Adapt options to the players as the method does."""
        return resolve_options(self.method, options, {role: clients[role] for role in self.method.roles})

    async def answer(self, question: Question, clients: Mapping[str, Client], options: Any) -> Trajectory:
        """Answer one question; if a request of any sample fails for good, its stop reason is ``failed``."""
        trajectories: list[Trajectory] = []
        for seed in range(self.best_of.samples):
            players = {role: _SamplingClient(clients[role], seed) for role in self.method.roles}
            trajectories.append(await self.method.answer(question, players, options))
            if trajectories[-1].stop_reason == FAILED:
                return replace(trajectories[-1], sampled=tuple(map(_unscored, trajectories)))
        samples: list[Sample] = []
        try:
            for trajectory in trajectories:
                samples.append(await self._score(question, trajectory, clients, options))
        except EngineError as error:
            unscored = map(_unscored, trajectories[len(samples) :])
            failed = replace(trajectories[0], answer="", stop_reason=FAILED, failure=str(error))
            return replace(failed, sampled=(*samples, *unscored))
        return replace(trajectories[self.best_of.choose_index(samples)], sampled=tuple(samples))

    async def _score(
        self, question: Question, trajectory: Trajectory, clients: Mapping[str, Client], options: Any
    ) -> Sample:
        sample = _unscored(trajectory)
        if not self.best_of.roles or not trajectory.answer:
            return sample
        extended = searching.add_retrieved(question, trajectory.attempts)
        verdicts = await judge_chain(extended, chain_of(trajectory), clients[VERIFIER], options)
        scores = [score_of(verdict) for verdict in verdicts]
        score = min(scores) if self.best_of.chain_score == "least" else math.prod(scores)
        return replace(sample, score=score, attempts=(*sample.attempts, *verdicts))


class _SamplingClient(Client):
    """A client for one sampled trajectory: replies are drawn at random with a seed, except verdicts."""

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(client.engine, allowance=client.allowance)
        self._client, self._seed = client, seed

    async def complete(self, request: Request) -> Completion:
        """Complete one request; raise as the client does."""
        if request.role == verifier.ROLE:
            return await self._client.complete(request)
        sampling = request.sampling
        if sampling.temperature:  # the method draws several replies, each with a seed
            sampling = replace(sampling, seed=self._seed * _SEEDS + (sampling.seed or 0))
        else:
            sampling = prompting.sampled(sampling, "greedy", self._seed)
        return await self._client.complete(replace(request, sampling=sampling))


def _unscored(trajectory: Trajectory) -> Sample:
    return Sample(trajectory.answer, trajectory.attempts, trajectory.stop_reason, trajectory.failure)


def _key(sample: Sample) -> str:
    return normalize_answer(sample.answer)


def chain_of(trajectory: Trajectory) -> tuple[Step, ...]:
    """Return a trajectory's chain as steps for a verifier, the answer last.

    Methods without steps have their sub-answers, or the sentences of their reasons (``explain``, ``thought``): one
    that names a passage is an attribution, any other a logical step.
    """
    steps = trajectory.steps or tuple(_steps_of(trajectory.attempts))
    if steps and steps[-1].kind == "Final Answer":
        return steps
    answer = unwrap_answer(" ".join(_GRAMMAR.sub(" ", trajectory.answer).split()))
    return (*steps, Step(len(steps) + 1, f"{ANSWER_MARKER} {answer}", "Final Answer"))


def _steps_of(attempts: Sequence[Attempt]) -> Iterator[Step]:
    if answers := sub_answers(attempts):
        yield from (step_of(answer, number) for number, answer in enumerate(answers, 1))
        return
    sentences = (text for attempt in attempts for text in _reasons(attempt))
    for number, text in enumerate(sentences, 1):
        yield Step(number, text, "Attribution" if "Passage " in text else "Logical")


def _reasons(attempt: Attempt) -> Iterator[str]:
    """Yield the sentences of a reply's reasons, without marks of the grammar of steps."""
    value = attempt.read.get("value") if isinstance(attempt.read, dict) else None
    fields = value if isinstance(value, dict) else {}
    for text in (text for name in ("explain", "thought") if isinstance(text := fields.get(name), str)):
        for piece in sentencex.segment("en", text):
            if sentence := _GRAMMAR.sub("", " ".join(piece.split())).strip():
                yield sentence


async def judge_chain(question: Question, steps: Sequence[Step], judge: Client, options: Any) -> tuple[Attempt, ...]:
    """Return an attempt with the feedback for each step; raises ``EngineError`` for a request that fails for good."""
    if len(steps) > MAX_STEPS:
        too_long = Feedback(UNREAD, f"The chain has {len(steps)} steps; {MAX_STEPS} are judged.", "")
        return (Attempt(1, "", too_long, True, state=SCORED),)
    limits = options if isinstance(options, Limits) else DEFAULT
    limits = adopt_learnt_prompts(limits, [judge.engine], judge)
    verdicts, valid = list[Attempt](), list[Step]()
    for step in steps:
        try:
            text = format_step(step)
        except StepError as error:
            verdicts.append(Attempt(step.number, step.text, malformed(error, step.number), True, state=SCORED))
            continue
        feedback, reply = await ask_verdict(judge, question, valid, step, limits, scored=True)
        unread = reply.transcript if feedback.error_type == UNREAD else ""
        usage = {VERIFIER: reply.usage}
        verdicts.append(Attempt(step.number, text, feedback, True, usage, verdict=unread, state=SCORED))
        valid.append(step)
    return tuple(verdicts)


def score_of(verdict: Attempt) -> float:
    """Return the score (0-1) of a judged step."""
    feedback = verdict.feedback
    if feedback is None or feedback.score is None:
        return float(feedback is not None and feedback.error_type == CORRECT)
    return feedback.score
