"""Answer a question over a knowledge graph by Deliberation on Priors: choose a relation path, follow it, verify it.

Ma et al., arXiv 2505.15210, sections 3.2 and 3.3. The caller provides the pool (the relation paths that a proposer
suggests) and the graph (`Knowledge`); a model in the role ``generator`` answers the calls.

===========  ====================================================================================
state        what happens
===========  ====================================================================================
pool         paths without an instance in the graph leave the pool; no call
constraints  one call per question: the conditions that its answers meet, beside the path
select       a call: the path to follow; no call if only one path is left
instantiate  the graph follows the path and decides the constraints that it can; no call
verify       a call: the answers, whether they suffice, and why not; if not, back to ``select``
===========  ====================================================================================

So k wrong paths and then the right one cost 1 + 2(k + 1) calls, and one call less if the right one is the last of the
pool. Where the paper is silent, we decided:

- The last path is verified once, and its answers count whether they suffice or not. If the model wants none of the
  remaining paths (``"path": 0``), the answers of the previous verdict count.
- If a reply is unreadable, the model sees it and is asked again (``revisions`` times). Then the loop continues without
  constraints, or with the pool's first path in the proposer's order; without a verdict it ends (``unreadable``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from safe_stepwise import records
from safe_stepwise.engines.base import Completion, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.methods import path_deliberating as states
from safe_stepwise.methods.prompting import GENERATOR, MAX_REPEATED_CHARACTERS
from safe_stepwise.methods.reading import UNREADABLE, Reading, attempt_of, wait_for_end
from safe_stepwise.methods.scene import PoolScene
from safe_stepwise.records import Attempt, Candidate, Constraint, InducedKinds, KGQuestion, RelationPath, Trajectory

NAME = "deliberation"
POOL, INSTANTIATE, END = "pool", "instantiate", "end"
"""The two states without a call, and the next state of the last attempt."""
MAX_ENDS = 200
"""The default of ``most_ends``: a reply of 2,048 tokens holds about 200 names; MetaQA's longest answer has 160."""
NO_PATHS, NO_ANSWER = "no_paths", "no_answer"
"""Stop reasons beside ``answered``, ``unreadable`` and ``failed``: no candidate has an instance in the graph; no
path that was followed gave an answer."""


class Knowledge(Protocol):
    """The interface of the graph that the loop asks; the *ends* of a path are the entities that it leads to."""

    hops: int
    """The maximum number of relations of a path."""

    def list_paths(self, topic: str, path: RelationPath = ()) -> Sequence[RelationPath]:
        """List a path and its continuations, if they have an instance, shortest first; only whole hops if too many."""

    def rank_ends(self, candidate: Candidate) -> Sequence[str]:
        """Rank the ends of a path: those with most instances first, then by name."""

    def chains(self, candidate: Candidate, limit: int) -> Sequence[tuple[str, ...]]:
        """List the first ``limit`` instances of a path by name, each as its entities from topic to end."""

    def relations(self, pool: Sequence[Candidate]) -> Sequence[str]:
        """List the relations of the paths and those that leave their ends, sorted."""

    def decide(self, constraint: Constraint, candidate: Candidate, pool: Sequence[Candidate]) -> Mapping[str, bool]:
        """Map the ends for which a constraint can be decided to whether they meet it; ``pool`` has all candidates."""


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Options of the loop; Table 3 of the paper ablates the first three."""

    introspection: bool = True
    """Whether answers are verified by constraints, and another path is tried if one does not suffice.
    Without it the path that was chosen first answers, after two calls."""
    predefined: bool = True
    """Whether constraints have the paper's five kinds, extracted by a call of their own, and decided
    by the graph if it can; otherwise the model looks for conditions itself while it verifies."""
    feedback: bool = True
    """Whether the next choice sees what was wrong with the earlier paths."""
    most_chains: int = 50
    """The maximum number of a path's instances that the model sees; the prompt says if there are more."""
    most_ends: int = MAX_ENDS
    """The maximum number of a path's ends that the model sees, and so may give as answers; the prompt says how
    many there are, and the trajectory counts the rest as ``cut``."""
    revisions: int = 1
    """How often the model is asked again after an unreadable reply."""
    kinds: InducedKinds = ()
    """The kinds of constraint beside the five, which only the model decides."""

    def __post_init__(self) -> None:
        if min(self.most_chains, self.most_ends) < 1 or self.revisions < 0:
            raise ValueError("most_chains and most_ends have to be 1 or more, revisions 0 or more")


async def deliberate(
    question: KGQuestion,
    pool: Sequence[Candidate],
    knowledge: Knowledge,
    clients: Mapping[str, Client],
    options: PathOptions,
) -> Trajectory:
    """Answer by a ``pool`` of all topics' candidates, likeliest first; ``failed`` if a request fails for good."""
    ends = {candidate: tuple(knowledge.rank_ends(candidate)) for candidate in pool}
    run = _PathRun(question, knowledge, clients[GENERATOR], options, ends)
    stop, failure = await wait_for_end(run.to_the_end())
    trajectory = Trajectory(question.id, NAME, (), tuple(run.attempts), "", stop, failure)
    return replace(trajectory, answer=next(iter(answers_of(trajectory)), ""))


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """Return a trajectory's answers, the best first: the entities of the last verdict with any; none if it failed."""
    if trajectory.stop_reason == records.FAILED:
        return ()
    verdicts = [attempt.read for attempt in trajectory.attempts if attempt.state == states.VERIFY]
    answer_lists = [verdict["answers"] for verdict in verdicts if verdict.get("answers")]
    return tuple(answer_lists[-1]) if answer_lists else ()


@dataclass
class _PathRun:
    """The state of one question: ``ends`` maps candidates to ranked ends, ``pool`` has those that were not tried."""

    question: KGQuestion
    knowledge: Knowledge
    client: Client
    options: PathOptions
    ends: Mapping[Candidate, tuple[str, ...]]
    pool: list[Candidate] = field(default_factory=list)
    constraints: tuple[Constraint, ...] = ()
    tried: list[tuple[Candidate, str]] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    has_answer: bool = False

    async def to_the_end(self) -> str:
        extracts = self.options.introspection and self.options.predefined
        self.pool = [candidate for candidate in self.ends if self.ends[candidate]]
        without_ends = [states.plain_path(candidate) for candidate in self.ends if not self.ends[candidate]]
        next_state = (states.CONSTRAINTS if extracts else self._next_choice) if self.pool else END
        self._record(POOL, next_state, {"left": len(self.pool), "led_nowhere": without_ends})
        if not self.pool:
            return NO_PATHS
        if extracts:
            await self._extract_constraints()
        is_over = False
        while not is_over and (chosen := await self._choose_path()):
            followed = self._instantiate(chosen)
            reading, completion = await self._ask_verdict(followed)
            is_over = self._take_verdict(followed, reading, completion)
            if reading.is_unreadable:
                return UNREADABLE
        return records.ANSWERED if self.has_answer else NO_ANSWER

    @property
    def _next_choice(self) -> str:
        return states.SELECT if len(self.pool) > 1 else INSTANTIATE

    async def _extract_constraints(self) -> None:
        relations, kinds = self.knowledge.relations(self.pool), self.options.kinds
        build = partial(states.ask_constraints, self.question, relations, self._build_scene(), kinds)
        read = partial(states.read_constraints, question=self.question, kinds=kinds)
        reading, completion = await self._query(states.CONSTRAINTS, build, read)
        self.constraints = states.constraints_in(reading.value)
        self._record(states.CONSTRAINTS, self._next_choice, {}, reading, completion)

    async def _choose_path(self) -> Candidate | None:
        if len(self.pool) == 1:
            return self.pool[0]
        tried = self.tried if self.options.feedback else []
        build = partial(states.ask_choice, self.question, self.pool, tried, self._build_scene())
        quoted = [*self._quoted_texts, *(reason for _, reason in tried)]
        read = partial(states.read_choice, pool=self.pool, quoted=quoted)
        reading, completion = await self._query(states.SELECT, build, read)
        number = reading.value.get("path", 1)
        chosen = self.pool[number - 1] if number else None
        record = {"chosen": states.plain_path(chosen) if chosen else {}}
        self._record(states.SELECT, INSTANTIATE if chosen else END, record, reading, completion)
        return chosen

    def _instantiate(self, chosen: Candidate) -> states.Instantiated:
        limit, candidates = self.options.most_chains, [*self.ends]
        chains = self.knowledge.chains(chosen, limit + 1)
        verdicts = [self.knowledge.decide(constraint, chosen, candidates) for constraint in self.constraints]
        instances, ends, max_shown = tuple(chains[:limit]), self.ends[chosen], self.options.most_ends
        followed = states.Instantiated(chosen, instances, len(chains) > limit, ends, max_shown, tuple(verdicts))
        self._record(INSTANTIATE, states.VERIFY, followed.plain)
        return followed

    async def _ask_verdict(self, followed: states.Instantiated) -> tuple[Reading, Completion]:
        scene = self._build_scene(self.pool.index(followed.candidate) + 1)
        is_induced = self.options.introspection and not self.options.predefined
        build = partial(states.ask_verdict, self.question, followed, self.constraints, scene)
        names = [name for chain in followed.chains for name in chain]
        quoted = [*self._quoted_texts, *names, *followed.shown_ends, *(c.text for c in self.constraints)]
        read = partial(states.read_verdict, quoted=quoted)
        return await self._query(states.VERIFY, partial(build, induced=is_induced), read)

    def _take_verdict(self, followed: states.Instantiated, reading: Reading, completion: Completion) -> bool:
        """Record a verdict and return whether the loop ends; the path leaves the pool in any case."""
        checked = states.check_answers(reading.value.get("answer", ()), followed)
        why_not = _explain_rejection(reading, bool(checked["answers"]), followed)
        self.pool.remove(followed.candidate)
        self.has_answer = self.has_answer or bool(checked["answers"])
        continues = why_not and self.pool and self.options.introspection and not reading.is_unreadable
        record = {**states.plain_path(followed.candidate), **checked, "suffices": not why_not, "told": why_not}
        self._record(states.VERIFY, self._next_choice if continues else END, record, reading, completion)
        self.tried.append((followed.candidate, why_not))
        return not continues

    def _build_scene(self, chosen: int = 0) -> PoolScene:
        """Build the scene for a symbolic player; ``chosen`` is the number of a path in the pool, from 1 (0: none)."""
        ends = tuple([(candidate, self.ends[candidate]) for candidate in self.pool])
        return PoolScene(self.question, ends, len(self.tried), chosen)

    @property
    def _quoted_texts(self) -> list[str]:
        """The texts that every request quotes: the question, its topics, the relations."""
        relations = {relation for candidate in self.ends for relation in candidate.path}
        return [self.question.question, *self.question.topics, *sorted(relations)]

    async def _query(
        self, state: str, build: Callable[..., Request], read: Callable[[str], Reading]
    ) -> tuple[Reading, Completion]:
        """Send a request until its reply can be read, or until no revision is left; return the last reply."""
        refused = ""  # the last unreadable reply
        for revisions_left in range(self.options.revisions, -1, -1):
            completion = await self.client.complete(build(refused=refused))
            reading = replace(read(completion.text).with_reply(completion), revises=state if refused else "")
            if not reading.is_unreadable or not revisions_left:
                break
            self._record(state, state, {}, reading, completion)
            refused = completion.transcript[:MAX_REPEATED_CHARACTERS]
        return reading, completion

    def _record(
        self,
        state: str,
        next_state: str,
        result: Mapping[str, Any],
        reading: Reading | None = None,
        completion: Completion | None = None,
    ) -> None:
        """Record an attempt at a state with its result; its number is that of the path, from 1."""
        replies = {GENERATOR: completion} if completion else {}
        attempt = attempt_of(len(self.tried) + 1, state, next_state, reading or Reading("strict"), replies)
        self.attempts.append(replace(attempt, read={**reading.plain, **result} if reading else result))


def _explain_rejection(reading: Reading, has_answers: bool, followed: states.Instantiated) -> str:
    """Explain for the next choice why a path does not suffice; empty if it does."""
    if reading.is_unreadable:
        return "It could not be verified."
    if not reading.value["sufficient"]:
        return str(reading.value.get("reason") or "It does not suffice.")
    if not has_answers:
        return "Nothing that was named as an answer is among what it leads to."
    return "All that it leads to fails a condition, by the graph." if followed.all_fail else ""
