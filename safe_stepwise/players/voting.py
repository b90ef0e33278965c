"""A verifier that votes: several verdicts are sampled, and the share of *Correct* among them is a step's score.

Spec: ``votes:N:SPEC``, as in ``votes:5:openai:MODEL@http://...``, for verifiers whose engine tells no probabilities.
The label is *Correct* if more than half of the verdicts say so, else the most frequent error, of equally frequent ones
the earliest; the first verdict with that label stands. Verdicts that can't be read do not vote. If none can be read,
the first reply stands as it is, with the score 0. If a vote fails, those that came are kept, and only the others are
asked again. Each verdict costs N requests, which are under way together.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from safe_stepwise.engines.base import Completion, Engine, EngineError, Relay, Request, request_key
from safe_stepwise.errors import UserError
from safe_stepwise.methods.prompting import sampled
from safe_stepwise.methods.verifier import ROLE, read_label
from safe_stepwise.records import Usage
from safe_stepwise.taxonomy import CORRECT

EXAMPLE = "votes:5:openai:MODEL@http://localhost:8000/v1"
MAX_VOTES = 64
T = TypeVar("T")


class VotingEngine(Relay):
    """The engine of a vote; the one in ``stages`` is asked ``votes`` times for each verdict."""

    def __init__(self, votes: int, voter: Engine) -> None:
        self.votes, self.stages = votes, (voter,)
        self.simulated = voter.simulated
        self.name = f"votes:{votes}:{voter.name}"
        self.identity: Mapping[str, Any] = {"engine": "votes", "votes": votes, "voter": dict(voter.identity)}
        self._received: dict[str, dict[int, Completion]] = {}
        """The votes that came for a request of which another one failed, by its key and their seeds."""

    async def answer(self, request: Request) -> Completion | EngineError:
        if request.role != ROLE:
            return EngineError(f"votes judges steps alone: it has no role {request.role!r}")
        key, unscored = request_key(self, request), replace(request, labels=())
        received = self._received.setdefault(key, {})
        missing = [seed for seed in range(self.votes) if seed not in received]
        draws = [replace(unscored, sampling=sampled(request.sampling, "greedy", seed)) for seed in missing]
        results = dict(zip(missing, await self.stages[0].generate(draws), strict=True))
        received |= {seed: reply for seed, reply in results.items() if isinstance(reply, Completion)}
        if errors := [reply for reply in results.values() if isinstance(reply, EngineError)]:
            return errors[0]
        self._received.pop(key, None)
        return _count_votes(request, [received[seed] for seed in range(self.votes)])


def _count_votes(request: Request, replies: Sequence[Completion]) -> Completion:
    usage = sum((reply.usage for reply in replies), Usage())
    labelled = [(label, reply) for reply in replies if (label := read_label(request, reply))]
    if not labelled:
        return replace(replies[0], usage=usage, score=0.0 if request.labels else None)
    counts = Counter(label for label, _ in labelled)
    passing, errors = counts.pop(CORRECT, 0), counts.most_common(1)
    winner = CORRECT if 2 * passing > len(labelled) or not errors else errors[0][0]
    verdict = next(reply for label, reply in labelled if label == winner)
    return replace(verdict, usage=usage, score=passing / len(labelled) if request.labels else None)


def read_votes(setting: str, open_voter: Callable[[str], T]) -> tuple[int, T]:
    """Read ``N:SPEC``, and open the voter by its spec; raise ``UserError`` for anything else.

    >>> read_votes("5:openai:m@http://a/v1,http://b/v1", str)
    (5, 'openai:m@http://a/v1,http://b/v1')
    """
    number, colon, spec = setting.partition(":")
    if not (colon and spec and number.strip().isascii() and number.strip().isdigit()):
        raise UserError(f"votes:{setting}: say how many verdicts vote, and whose, as in {EXAMPLE}")
    if not 2 <= int(number) <= MAX_VOTES:
        raise UserError(f"votes:{setting}: from 2 to {MAX_VOTES} verdicts vote")
    if spec.partition(":")[0] in ("votes", "cascade"):
        raise UserError(f"votes:{setting}: name one verifier; a cascade may have votes as a stage")
    return int(number), open_voter(spec.strip())
