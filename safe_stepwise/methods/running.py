"""Run a method on many questions at once, and compute statistics of their trajectories.

Each question waits only for its own replies, never for another question (no lock-step rounds). Questions start in
order, the next one when one ends, so that an engine's prefix cache can hold the passages of those under way. A *try*
is an attempt at a step; a *round* has all tries at one step: the first one and its retries.
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
from safe_stepwise.methods.loop import FINAL_ANSWER, MALFORMED, SCORED, UNREAD, UNSURE, tries_at_steps, unverified
from safe_stepwise.records import Attempt, Feedback, Question, Trajectory, all_attempts, as_object
from safe_stepwise.steps import is_salvaged
from safe_stepwise.store.event_loop import for_each
from safe_stepwise.taxonomy import CORRECT

AT_ONCE = 64
"""Default number of questions under way: the prefix cache of a 48 GB GPU holds as many for two roles of an 8B model
(1,700 tokens per question and role). If it can't hold them, prompts are computed five times as often
(``tests/benchmarks/bench_prefix.py --caches``)."""
_PASSED = Feedback(CORRECT, "", "")  # the verdict on an attempt that nobody judged


def make_answerer(
    method: Method, players: Mapping[str, Client], options: Any
) -> Callable[[Question], Awaitable[Trajectory]]:
    """Return a function that answers a question with players; raises ``UserError`` if they contradict the options."""
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
    """Answer questions, at most ``at_once`` at a time, and return their trajectories in the order of the questions.

    ``answer`` is a function as `make_answerer` returns it. ``on_done`` is called with the index of a question and its
    trajectory as soon as it ends. If an engine fails for good, the trajectory's stop reason is ``failed``; any other
    error (above all ``UserError``) and a cancellation end all questions and are raised.
    """
    ended: dict[int, Trajectory] = {}

    async def work(item: tuple[int, Question]) -> None:
        index, question = item
        ended[index] = await answer(question)
        if on_done is not None:
            on_done(index, ended[index])

    await for_each(list(enumerate(questions)), work, at_once)
    return [ended[index] for index in range(len(questions))]


@dataclass(frozen=True, slots=True)
class LoopStatistics:
    """Statistics of the trajectories of one method; calls and tokens are by role."""

    questions: int
    calls: dict[str, int]
    """Number of replies, including those from a cache."""
    calls_per_question: float
    steps_per_question: float
    """Mean number of accepted steps."""
    error_types: dict[str, int]
    """Number of tries by the error that the verifier saw in them, most frequent first."""
    error_positions: dict[int, int]
    """Number of tries with such an error by the number of their step, from 1."""
    prompt_tokens: dict[str, int]
    cached_tokens: dict[str, int]
    """The part of ``prompt_tokens`` that a prefix cache held, as the engine reported it."""
    computed_tokens: dict[str, int]
    """The part of ``prompt_tokens`` that no cache held."""
    completion_tokens: dict[str, int]
    malformed: int
    """Number of the generator's replies that are not a step."""
    salvaged: int
    """Number of the generator's replies whose step had to be taken out of Markdown or other marks."""
    unread: int
    """Number of tries with an unreadable verdict."""
    unverified: int
    """Number of steps that were accepted although no verdict on them could be read."""
    exhausted: int
    """Number of rounds that used up all retries without a try that passed."""
    stop_reasons: dict[str, int]
    transitions: dict[str, int]
    """How often machines took each edge (``q4 → q0``), most frequent first."""
    unsure: int = 0
    """Number of tries that the verifier called Correct with too low a score."""
    thought_tokens: dict[str, int] = field(default_factory=dict)
    """The part of ``completion_tokens`` that reasoning models spent on thoughts; only roles that have some."""

    def as_json(self) -> dict[str, Any]:
        """Return the statistics as a JSON object: keys are texts, so that they keep their order when read again."""
        return {**as_object(self), "error_positions": {str(n): tries for n, tries in self.error_positions.items()}}


def statistics(
    trajectories: Sequence[Trajectory], max_retries: int = DEFAULT.max_retries, roles: Sequence[str] = ()
) -> LoopStatistics:
    """Compute statistics; ``max_retries`` ends a round (`limits.retries_of`), ``roles`` always get a count."""
    tries = [attempt for trajectory in trajectories for attempt in trajectory.attempts]
    errors = Counter(attempt.feedback.error_type for attempt in tries if attempt.feedback)
    set_aside = {label: errors.pop(label, 0) for label in (CORRECT, MALFORMED, UNREAD, UNSURE)}
    faulty = (a.number for a in tries if a.feedback and a.feedback.error_type in errors)
    calls = Counter[str](dict.fromkeys(roles, 0))
    tokens = {kind: Counter[str](calls) for kind in ("prompt", "cached", "computed", "completion")}
    tokens["thought"] = Counter()
    requests = (attempt for trajectory in trajectories for attempt in all_attempts(trajectory))
    for role, used in (spent for attempt in requests for spent in attempt.usage.items()):
        calls[role] += 1
        tokens["prompt"][role] += used.prompt
        tokens["cached"][role] += used.cached
        tokens["computed"][role] += used.prompt - used.cached
        tokens["completion"][role] += used.completion
        if used.thought:
            tokens["thought"][role] += used.thought
    count = len(trajectories) or 1
    ends = (tries[-1] for t in trajectories for tries in rounds(t, max_retries))
    at_steps = (attempt for trajectory in trajectories for attempt in tries_at_steps(trajectory))
    well_formed = (a for a in at_steps if not a.feedback or a.feedback.error_type != MALFORMED)
    scored = (a for t in trajectories for a in all_attempts(t) if a.state == SCORED)
    return LoopStatistics(
        questions=len(trajectories),
        calls=dict(calls),
        calls_per_question=calls.total() / count,
        steps_per_question=sum(len(t.steps) for t in trajectories) / count,
        error_types=dict(sorted(errors.items(), key=lambda item: (-item[1], item[0]))),
        error_positions=dict(sorted(Counter(faulty).items())),
        **{f"{kind}_tokens": dict(sums) for kind, sums in tokens.items()},
        malformed=set_aside[MALFORMED],
        salvaged=sum(is_salvaged(attempt.text, attempt.number) for attempt in well_formed),
        unread=set_aside[UNREAD] + sum(a.feedback is not None and a.feedback.error_type == UNREAD for a in scored),
        unsure=set_aside[UNSURE],
        unverified=sum(map(unverified, trajectories)),
        exhausted=sum(not end.accepted or (end.feedback or _PASSED).error_type != CORRECT for end in ends),
        stop_reasons=dict(sorted(Counter(t.stop_reason for t in trajectories).items())),
        transitions=transitions(trajectories),
    )


def unreadable(attempts: Iterable[Attempt]) -> str:
    """Explain why no reply of some attempts could be read: the first reply's beginning, its problem and likely cause.

    Returns "" if any reply could be read, or if there is none.
    """
    replies = [attempt for attempt in attempts if attempt.usage]
    if not replies or any(map(_was_read, replies)):
        return ""
    first = replies[0]
    read = first.read if isinstance(first.read, dict) else {}
    problem = first.feedback.diagnosis if first.feedback else str(read.get("why", ""))
    return unreadable_because(first.text, problem)


def _was_read(attempt: Attempt) -> bool:
    """Whether an attempt's reply could be read, by its feedback, its reading, or its state."""
    if attempt.feedback is not None:
        return attempt.feedback.error_type != MALFORMED
    if isinstance(attempt.read, dict) and "form" in attempt.read:
        return bool(attempt.read["form"] != "unreadable")
    return attempt.accepted or attempt.state != FINAL_ANSWER


def transitions(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """Count how often each edge between states was taken, most frequent first; none for methods without states."""
    moves = (a for trajectory in trajectories for a in trajectory.attempts if a.state and a.next_state)
    counts = Counter(f"{attempt.state} → {attempt.next_state}" for attempt in moves)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def rounds(trajectory: Trajectory, max_retries: int = DEFAULT.max_retries) -> Iterator[tuple[Attempt, ...]]:
    """Yield the tries of each round; an unfinished last round is left out."""
    tries: list[Attempt] = []
    for attempt in tries_at_steps(trajectory):
        tries.append(attempt)
        if attempt.accepted or len(tries) > max_retries:
            yield tuple(tries)
            tries.clear()
