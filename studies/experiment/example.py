"""One question that the learned verifier's remarks have turned: read by a person, it tells most."""

from collections.abc import Iterator, Sequence

from evaluators.comparison.systems import System, system_of
from evaluators.outcomes import Outcome, QuestionRecord
from safe_stepwise.commands.telling import lines_of_attempt
from safe_stepwise.methods.verified import doubts, step_of
from safe_stepwise.records import Trajectory
from safe_stepwise.store.terminal import printable


def example(questions: Sequence[QuestionRecord], outcomes: Sequence[Outcome], plain: System, learned: System) -> str:
    """The first question that is wrong alone and right with remarks, in few tries; "" if none is.

    Of those in which a step was rejected the one with the fewest tries, by their order in the run.
    """
    by_system: dict[System, dict[str, Outcome]] = {plain: {}, learned: {}}
    for o in outcomes:
        by_system.get(system_of(o), {})[o.question_id] = o
    alone, helped = by_system[plain], by_system[learned]
    fitting = [
        asked
        for asked in questions
        if asked.id in alone and not alone[asked.id].exact_match
        if asked.id in helped and helped[asked.id].exact_match
        if _mended(helped[asked.id].trajectory)
    ]
    if not fitting:
        return ""
    asked = min(fitting, key=lambda one: len(helped[one.id].trajectory.attempts))
    return "\n".join(_lines(asked, alone[asked.id].trajectory, helped[asked.id].trajectory))


def _mended(trajectory: Trajectory) -> bool:
    """Whether something was rejected, and a verdict passed all that was accepted."""
    rejected = any(not attempt.accepted for attempt in trajectory.attempts)
    return rejected and not doubts(trajectory)


def _lines(asked: QuestionRecord, plain: Trajectory, learned: Trajectory) -> Iterator[str]:
    for number, passage in enumerate(asked.passages, 1):
        yield printable(f"Passage {number} ({passage.title}): {passage.text}")
    yield printable(f"Question: {asked.question}")
    yield printable(f"Right: {asked.references[0]}")
    yield from ("", "No verification:")
    yield from (printable(step_of(attempt)) for attempt in plain.attempts)
    yield from ("", "SAFE, learned verifier:")
    for attempt in learned.attempts:
        yield from lines_of_attempt(attempt)
