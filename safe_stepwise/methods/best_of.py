"""Samples several trajectories of a question by any method, and chooses one (best of N).

The generator's requests are sampled at random, each trajectory with its own seed. The verifier then judges every step
of every chain (`chains`). A chain's score is the least or the product of its steps' scores (Lightman et al., 2023,
appendix F, compare both). A trajectory without an answer is chosen only if none has one.

The trajectories of a question run one after another, so that an engine's prefix cache holds the passages for all but
the first.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import loop, prompting, searching, verifier
from safe_stepwise.methods.base import Method, resolve_options
from safe_stepwise.methods.chains import chain_of, judge_chain, score_of
from safe_stepwise.records import FAILED, Question, Sample, Trajectory
from safe_stepwise.scoring import normalize_answer

Choose = Literal["verifier", "majority", "weighted", "first"]
CHOICES: tuple[Choose, ...] = get_args(Choose)
ChainScore = Literal["least", "product"]
_JUDGED = ("verifier", "weighted")
MAX_SAMPLES = 64
_SEEDS = 1_000
"""The seeds that a method may use for its own samples."""


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
        return (loop.VERIFIER,) if self.choose in _JUDGED else ()

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
        >>> drawn = [Sample(answer, (), "answered", score=score) for answer, score in scores.items()]
        >>> [BestOf(3, choose).choose_index(drawn) for choose in CHOICES]
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
        shown = searching.add_retrieved(question, trajectory.attempts)
        verdicts = await judge_chain(shown, chain_of(trajectory), clients[loop.VERIFIER], options)
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
        drawn = request.sampling
        if drawn.temperature:  # the method draws several replies, each with a seed
            drawn = replace(drawn, seed=self._seed * _SEEDS + (drawn.seed or 0))
        else:
            drawn = prompting.sampled(drawn, "greedy", self._seed)
        return await self._client.complete(replace(request, sampling=drawn))


def _unscored(trajectory: Trajectory) -> Sample:
    return Sample(trajectory.answer, trajectory.attempts, trajectory.stop_reason, trajectory.failure)


def _key(sample: Sample) -> str:
    return normalize_answer(sample.answer)
