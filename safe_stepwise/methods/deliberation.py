"""Deliberation on Priors: relation paths are chosen, carried out, verified and thought over.

Ma et al., arXiv 2505.15210, sections 3.2 and 3.3. What the loop has to know of the graph it asks a
`Knowledge` that its caller hands in.

===========  ====================================================================================
state        what is done there
===========  ====================================================================================
pool         paths that lead nowhere leave the pool, nobody being asked
constraints  a call, once: what the question asks of its answers beside the path
select       a call: the path to follow, unless but one is left
instantiate  the graph carries the path out, and decides the constraints that it can
verify       a call: the answers, whether they suffice, and why not; then select again
===========  ====================================================================================

So k wrong paths and the right one cost 1 + 2(k + 1) calls as long as a path is left beside, and the
last of a pool one call less. Ours, where the paper is silent:

- A path that is the last is verified once, and what it leads to answers, sufficient or not. Where
  none of the paths left can do (``"path": 0``) what was answered last stands.
- A reply that can't be read is asked for anew, being shown (``revisions``). Without constraints
  then the loop goes on with none, without a choice with the first of the pool, in the order of who
  proposed it; without a verdict it ends, ``unreadable``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from safe_stepwise.engines.base import Completion, EngineError, Request
from safe_stepwise.methods import path_deliberating as states
from safe_stepwise.methods.machine import Replier
from safe_stepwise.methods.prompting import GENERATOR, MAX_REPEATED_CHARACTERS, UNREADABLE, attempt_of
from safe_stepwise.methods.reading import Reading
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import (
    ANSWERED,
    FAILED,
    Attempt,
    Candidate,
    Constraint,
    KGQuestion,
    RelationPath,
    Trajectory,
)

NAME = "deliberation"
POOL, INSTANTIATE, END = "pool", "instantiate", "end"
"""Those of its states that ask nobody, and what comes after the last."""
MAX_ENDS = 200
"""MetaQA's longest answer has 160 names of 3,000 questions, and a reply's 2,048 tokens hold about as many as these."""
NO_PATHS, NO_ANSWER = "no_paths", "no_answer"
"""Stop reasons beside ``answered``, ``unreadable`` and ``failed``: no candidate leads anywhere; no
path that was followed gave an answer."""


class Knowledge(Protocol):
    """The graph interface that the loop needs."""

    def executable(self, topic: str) -> Sequence[RelationPath]:
        """All paths that lead somewhere from a topic, shortest first, then by name."""

    def ranked(self, candidate: Candidate) -> Sequence[str]:
        """Rank what a path leads to by the number of its instantiations, then by name."""

    def chains(self, candidate: Candidate, limit: int) -> Sequence[tuple[str, ...]]:
        """Its instantiations entity by entity, the first ``limit`` of them by name."""

    def relations(self, pool: Sequence[Candidate]) -> Sequence[str]:
        """The relations of some paths, and those that lead on from what they lead to; sorted."""

    def decided(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> Mapping[str, bool]:
        """Tell for each end of a path whether it meets a constraint; ends that the graph can't decide are left out.

        ``pool`` are all candidates, those of other topics among them.
        """


@dataclass(frozen=True, slots=True)
class Deliberating:
    """Options of the loop; the first three are ablated in the paper's Table 3."""

    introspection: bool = True
    """Whether answers are verified: by constraints, and by another path where one does not do.
    Without it the path that was chosen first answers, by two calls."""
    predefined: bool = True
    """Whether constraints are those of five kinds, extracted by a call of their own, and decided
    by the graph where it can; else the model finds conditions of its own as it verifies."""
    feedback: bool = True
    """Whether the next choice is told what was wrong with the paths before."""
    most_chains: int = 50
    """Instances of a path that are shown; the model is told that there are more."""
    most_ends: int = MAX_ENDS
    """Entities that a path leads to that are shown, and so can be answers; the model is told how
    many there are, and what is not shown is counted, as ``cut``."""
    revisions: int = 1
    """How often a reply that can't be read is asked for anew."""

    def __post_init__(self) -> None:
        if min(self.most_chains, self.most_ends) < 1 or self.revisions < 0:
            raise ValueError("most_chains and most_ends have to be 1 or more, revisions 0 or more")


async def deliberate(
    question: KGQuestion,
    pool: Sequence[Candidate],
    knowledge: Knowledge,
    clients: Mapping[str, Replier],
    options: Deliberating,
) -> Trajectory:
    """Everything that was done to answer one question, ``clients`` having one for ``generator``.

    ``pool`` holds the candidates of all topics, the likeliest first. A request that fails for good
    ends the question with the stop reason ``failed``.
    """
    reached = {candidate: tuple(knowledge.ranked(candidate)) for candidate in pool}
    run, failure = _Run(question, knowledge, clients[GENERATOR], options, reached), ""
    try:
        stop = await run.to_the_end()
    except EngineError as error:
        stop, failure = FAILED, str(error)
    trajectory = Trajectory(question.id, NAME, (), tuple(run.attempts), "", stop, failure)
    return replace(trajectory, answer=next(iter(answers_of(trajectory)), ""))


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """The answers of a trajectory, the best first; none of one that failed.

    They are those of the last verdict that held any, and entities of the graph, each of them.
    """
    if trajectory.stop_reason == FAILED:
        return ()
    verdicts = [attempt.read for attempt in trajectory.attempts if attempt.state == states.VERIFY]
    answer_lists = [verdict["answers"] for verdict in verdicts if verdict.get("answers")]
    return tuple(answer_lists[-1]) if answer_lists else ()


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply as it was read."""

    reading: Reading
    replies: Mapping[str, Completion]

    @property
    def is_unread(self) -> bool:
        """Whether nothing could be read in it."""
        return self.reading.form == "unreadable"


@dataclass
class _Run:
    """One question on its way: what is left of the pool, and what was done so far."""

    question: KGQuestion
    knowledge: Knowledge
    client: Replier
    options: Deliberating
    reached: Mapping[Candidate, tuple[str, ...]]
    pool: list[Candidate] = field(default_factory=list)
    constraints: tuple[Constraint, ...] = ()
    tried: list[states.TriedPath] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    has_answer: bool = False

    async def to_the_end(self) -> str:
        """Why it stopped."""
        extracts = self.options.introspection and self.options.predefined
        self.pool = [candidate for candidate in self.reached if self.reached[candidate]]
        astray = [states.plain_path(candidate) for candidate in self.reached if not self.reached[candidate]]
        after = (states.CONSTRAINTS if extracts else self._next_choice) if self.pool else END
        self._keep(POOL, after, {"left": len(self.pool), "led_nowhere": astray})
        if not self.pool:
            return NO_PATHS
        if extracts:
            await self._constrain()
        is_over = False
        while not is_over and (chosen := await self._choose()):
            followed = self._instantiate(chosen)
            reply = await self._ask_verdict(followed)
            is_over = self._take_verdict(followed, reply)
            if reply.is_unread:
                return UNREADABLE
        return ANSWERED if self.has_answer else NO_ANSWER

    @property
    def _next_choice(self) -> str:
        return states.SELECT if len(self.pool) > 1 else INSTANTIATE

    async def _constrain(self) -> None:
        relations = self.knowledge.relations(self.pool)
        build = partial(states.ask_constraints, self.question, relations, self._scene())
        read = partial(states.read_constraints, question=self.question)
        reply = await self._query(states.CONSTRAINTS, build, read)
        self.constraints = states.constraints_in(reply.reading.value)
        self._keep(states.CONSTRAINTS, self._next_choice, {}, reply)

    async def _choose(self) -> Candidate | None:
        """The path to follow next; None where the model takes none of them."""
        if len(self.pool) == 1:
            return self.pool[0]
        tried = self.tried if self.options.feedback else []
        build = partial(states.ask_choice, self.question, self.pool, tried, self._scene())
        quoted = [*self._quoted, *(path.reason for path in tried)]
        reply = await self._query(states.SELECT, build, partial(states.read_choice, pool=self.pool, quoted=quoted))
        number = reply.reading.value.get("path", 1)
        chosen = self.pool[number - 1] if number else None
        after = INSTANTIATE if chosen else END
        self._keep(states.SELECT, after, {"chosen": states.plain_path(chosen) if chosen else {}}, reply)
        return chosen

    def _instantiate(self, chosen: Candidate) -> states.Instantiated:
        """The path carried out, and what the graph decides of where it leads to."""
        limit, candidates = self.options.most_chains, [*self.reached]
        chains = self.knowledge.chains(chosen, limit + 1)
        verdicts = [self.knowledge.decided(constraint, chosen, candidates) for constraint in self.constraints]
        instances, ends, max_shown = tuple(chains[:limit]), self.reached[chosen], self.options.most_ends
        followed = states.Instantiated(chosen, instances, len(chains) > limit, ends, max_shown, tuple(verdicts))
        self._keep(INSTANTIATE, states.VERIFY, followed.plain)
        return followed

    async def _ask_verdict(self, followed: states.Instantiated) -> _Reply:
        """Ask for a verdict on what a path leads to."""
        scene = self._scene(self.pool.index(followed.candidate) + 1)
        is_induced = self.options.introspection and not self.options.predefined
        build = partial(states.ask_verdict, self.question, followed, self.constraints, scene)
        names = [name for chain in followed.chains for name in chain]
        quoted = [*self._quoted, *names, *followed.first, *(c.text for c in self.constraints)]
        read = partial(states.read_verdict, quoted=quoted)
        return await self._query(states.VERIFY, partial(build, induced=is_induced), read)

    def _take_verdict(self, followed: states.Instantiated, reply: _Reply) -> bool:
        """Whether the loop is over by it; the path leaves the pool in any case."""
        checked = states.check_answers(reply.reading.value.get("answer", ()), followed)
        why_not = _explain_rejection(reply, checked, followed)
        self.pool.remove(followed.candidate)
        self.has_answer = self.has_answer or bool(checked.answers)
        goes_on = why_not and self.pool and self.options.introspection and not reply.is_unread
        outcome = {"suffices": not why_not, "told": why_not}
        read = {**states.plain_path(followed.candidate), **checked.plain, **outcome}
        self._keep(states.VERIFY, self._next_choice if goes_on else END, read, reply)
        self.tried.append(states.TriedPath(followed.candidate, why_not))
        return not goes_on

    def _scene(self, chosen: int = 0) -> PoolScene:
        """Build the scene for a simulating player; ``chosen`` (from 1) is a path of the pool."""
        reached = tuple([(candidate, self.reached[candidate]) for candidate in self.pool])
        return PoolScene(self.question, reached, len(self.tried), chosen)

    @property
    def _quoted(self) -> list[str]:
        relations = {relation for candidate in self.reached for relation in candidate.path}
        return [self.question.question, *self.question.topics, *sorted(relations)]

    async def _query(self, state: str, build: Callable[..., Request], read: Callable[[str], Reading]) -> _Reply:
        """A reply, after as many revisions as it takes or as there may be."""
        refused = ""
        for revisions_left in range(self.options.revisions, -1, -1):
            completion = await self.client.complete(replace(build(refused=refused), in_full=True))
            revises = state if refused else ""
            reading = read(completion.text).with_reply(completion)
            reply = _Reply(replace(reading, revises=revises), {GENERATOR: completion})
            if not reply.is_unread or not revisions_left:
                break
            self._keep(state, state, {}, reply)
            refused = completion.transcript[:MAX_REPEATED_CHARACTERS]
        return reply

    def _keep(self, state: str, after: str, read: Mapping[str, Any], reply: _Reply | None = None) -> None:
        """An attempt, with what was read in a reply; its number is that of the path, from 1."""
        reading, replies = (reply.reading, reply.replies) if reply else (Reading("strict"), {})
        attempt = attempt_of(len(self.tried) + 1, state, after, reading, replies)
        self.attempts.append(replace(attempt, read={**reading.plain, **read} if reply else read))


def _explain_rejection(reply: _Reply, checked: states.CheckedAnswers, followed: states.Instantiated) -> str:
    """Why a path does not do, as the next choice is told; empty where it does."""
    if reply.is_unread:
        return "It could not be verified."
    verdict = reply.reading.value
    if not verdict["sufficient"]:
        return str(verdict.get("reason") or "It does not suffice.")
    if not checked.answers:
        return "Nothing that was named as an answer is among what it leads to."
    return "All that it leads to fails a condition, by the graph." if followed.all_fail else ""
