"""Many questions through a method at once, and what their trajectories came to.

Each question advances on its own: it waits for its own replies and for no other question (no
lock-step rounds). Questions are taken in their order, a new one when one ends, so that those under
way are few enough for an engine's prefix cache to hold their passages.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import CountingClient
from safe_stepwise.engines.readability import unreadable_because
from safe_stepwise.methods.base import Method, resolve_options
from safe_stepwise.methods.limits import DEFAULT
from safe_stepwise.methods.loop import FINAL_ANSWER, MALFORMED, UNREAD, tries_at_steps, unverified
from safe_stepwise.records import Attempt, Feedback, Question, Trajectory
from safe_stepwise.steps import is_salvaged
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.taxonomy import CORRECT

AT_ONCE = 64
"""Questions under way at a time, if not said: as many as a GPU of 48 GB keeps warm for two roles of
an 8B model. Per question and role the cache holds 1,700 tokens; with too little room for them
prompts are computed five times as often (``tests/benchmarks/bench_prefix.py --caches``)."""
_PASSED = Feedback(CORRECT, "", "")  # what nobody judged counts as


def answering(
    method: Method, players: Mapping[str, Client], options: Any
) -> Callable[[Question], Awaitable[Trajectory]]:
    """Return a function from a question to its trajectory; it counts tokens for players that count none.

    Raises ``UserError`` where players contradict the options.
    """
    options = resolve_options(method, options, players)
    simulated = any(client.engine.simulated for client in players.values())

    async def answer(question: Question) -> Trajectory:
        # One client may play two roles, whose prompts then share its cache.
        counters = {id(client): CountingClient(client) for client in players.values()} if simulated else {}
        clients = {role: counters.get(id(client), client) for role, client in players.items()}
        return await method.answer(question, clients, options)

    return answer


async def run_questions(
    questions: Sequence[Question],
    answer: Callable[[Question], Awaitable[Trajectory]],
    *,
    on_done: Callable[[int, Trajectory], None] | None = None,
    at_once: int = AT_ONCE,
) -> list[Trajectory]:
    """One trajectory a question, in the order of the questions.

    ``answer`` is a method's, with its clients and options. ``on_done`` hears of each trajectory as it ends, with the
    index of its question. At most ``at_once`` questions are under way.

    A question whose engine fails for good has a trajectory with stop reason ``failed``; anything else that goes wrong
    (``UserError`` above all) or a cancellation ends all questions and is raised.
    """
    ended: dict[int, Trajectory] = {}

    async def work(place: tuple[int, Question]) -> None:
        index, question = place
        ended[index] = await answer(question)
        if on_done is not None:
            on_done(index, ended[index])

    await for_each(list(enumerate(questions)), work, at_once)
    return [ended[index] for index in range(len(questions))]


@dataclass(frozen=True, slots=True)
class LoopStatistics:
    """The statistics of trajectories; tokens and calls by role."""

    questions: int
    calls: dict[str, int]
    """Replies by role, those from a cache included."""
    calls_per_question: float
    steps_per_question: float
    """Accepted steps."""
    error_types: dict[str, int]
    """Tries at a step by the error that the verifier found, most frequent first."""
    error_positions: dict[int, int]
    """Those tries by the number of their step, from 1."""
    prompt_tokens: dict[str, int]
    cached_tokens: dict[str, int]
    """The part of ``prompt_tokens`` that a prefix cache held, as the engine reported it."""
    computed_tokens: dict[str, int]
    """The rest of them."""
    completion_tokens: dict[str, int]
    malformed: int
    """Replies of the generator that are no step."""
    salvaged: int
    """Replies of the generator whose step had to be taken out of Markdown."""
    unread: int
    """Tries on which the verifier's verdict could not be read."""
    unverified: int
    """Steps that were accepted in the end though no verdict on them could be read."""
    exhausted: int
    """Rounds that used up all retries without a try that passed."""
    stop_reasons: dict[str, int]
    transitions: dict[str, int]
    """Edges that machines took, ``q4 → q0``, most frequent first."""
    thought_tokens: dict[str, int] = field(default_factory=dict)
    """The part of ``completion_tokens`` that reasoning models spent before they replied, of the roles that did."""


def statistics(
    trajectories: Sequence[Trajectory], max_retries: int = DEFAULT.max_retries, roles: Sequence[str] = ()
) -> LoopStatistics:
    """The statistics of trajectories of one method.

    ``max_retries`` is the loop's N (`limits.retries_of`), by which its rounds are told apart.
    ``roles`` are counted even where nobody played them.
    """
    tries = [attempt for trajectory in trajectories for attempt in trajectory.attempts]
    errors = Counter(attempt.feedback.error_type for attempt in tries if attempt.feedback)
    set_aside = {label: errors.pop(label, 0) for label in (CORRECT, MALFORMED, UNREAD)}
    faulty = (a.number for a in tries if a.feedback and a.feedback.error_type in errors)
    calls = Counter[str](dict.fromkeys(roles, 0))
    tokens = {kind: Counter[str](calls) for kind in ("prompt", "cached", "computed", "completion")}
    tokens["thought"] = Counter()
    for role, used in (spent for attempt in tries for spent in attempt.usage.items()):
        calls[role] += 1
        tokens["prompt"][role] += used.prompt
        tokens["cached"][role] += used.cached
        tokens["computed"][role] += used.prompt - used.cached
        tokens["completion"][role] += used.completion
        if used.thought:
            tokens["thought"][role] += used.thought
    count = len(trajectories) or 1
    ends = (tries[-1] for t in trajectories for tries in rounds(t, max_retries))
    return LoopStatistics(
        questions=len(trajectories),
        calls=dict(calls),
        calls_per_question=calls.total() / count,
        steps_per_question=sum(len(t.steps) for t in trajectories) / count,
        error_types=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        error_positions=dict(sorted(Counter(faulty).items())),
        **{f"{kind}_tokens": dict(sums) for kind, sums in tokens.items()},
        malformed=set_aside[MALFORMED],
        salvaged=sum(
            is_salvaged(attempt.text)
            for trajectory in trajectories
            for attempt in tries_at_steps(trajectory)
            if not attempt.feedback or attempt.feedback.error_type != MALFORMED
        ),
        unread=set_aside[UNREAD],
        unverified=sum(map(unverified, trajectories)),
        exhausted=sum(not end.accepted or (end.feedback or _PASSED).error_type != CORRECT for end in ends),
        stop_reasons=dict(sorted(Counter(t.stop_reason for t in trajectories).items())),
        transitions=transitions(trajectories),
    )


def unreadable(attempts: Iterable[Attempt]) -> str:
    """How the first reply of some attempts begins, why it is none, and the likely cause; empty if anything was read.

    >>> from safe_stepwise.records import Usage
    >>> said = {"form": "unreadable", "why": "no JSON"}
    >>> aloud = Attempt(1, "Well, Oru.", None, False, {"generator": Usage()}, read=said)
    >>> unreadable([aloud]).partition(";")[0]
    "the first reply begins 'Well, Oru.' (no JSON)"
    """
    replies = [attempt for attempt in attempts if attempt.usage]
    if not replies or any(map(_was_read, replies)):
        return ""
    first = replies[0]
    read = first.read if isinstance(first.read, dict) else {}
    problem = first.feedback.diagnosis if first.feedback else str(read.get("why", ""))
    return unreadable_because(first.text, problem)


def _was_read(attempt: Attempt) -> bool:
    if attempt.feedback is not None:
        return attempt.feedback.error_type != MALFORMED
    if isinstance(attempt.read, dict) and "form" in attempt.read:
        return bool(attempt.read["form"] != "unreadable")
    return attempt.accepted or attempt.state != FINAL_ANSWER


def transitions(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """How often each edge was taken, most frequent first; methods without states take none.

    >>> one = Attempt(1, "", None, True, state="q4", next_state="q0")
    >>> transitions([Trajectory("q", "sg_fsm1", (), (one, one), "", "withdrawn")])
    {'q4 → q0': 2}
    """
    counts = Counter(
        f"{attempt.state} → {attempt.next_state}"
        for trajectory in trajectories
        for attempt in trajectory.attempts
        if attempt.state and attempt.next_state
    )
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rounds(trajectory: Trajectory, max_retries: int = DEFAULT.max_retries) -> Iterator[tuple[Attempt, ...]]:
    """The tries at steps, those of one round together; a round that broke off is left out."""
    tries: list[Attempt] = []
    for attempt in tries_at_steps(trajectory):
        tries.append(attempt)
        if attempt.accepted or len(tries) > max_retries:
            yield tuple(tries)
            tries.clear()
