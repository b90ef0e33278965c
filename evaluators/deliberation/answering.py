"""One question from proposals to a trajectory: by the loop, or by the first path without a model.

The proposals stand first among the attempts, each with what it cost, so that a trajectory holds all
that was done for a question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.deliberation.asked import Asked
from evaluators.deliberation.proposing import LOST, PATH, PROPOSER, Proposal, Proposer, plain
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.counting import Counted
from safe_stepwise.methods import deliberation
from safe_stepwise.methods.deliberation import Deliberating, Knowledge, deliberate
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Candidate, Trajectory

PROPOSE, FOLLOW = "propose", "follow"
"""States: a path is proposed; one is carried out, nobody being asked."""
FIRST_PATH = "first_path"
"""The method without a generator: the first candidate that leads somewhere answers."""


async def answered(
    asked: Asked, knowledge: Knowledge, proposer: Proposer, clients: Mapping[str, Client], options: Deliberating
) -> Trajectory:
    """All that was done to answer a question.

    Without ``clients`` no model verifies. A request that fails for good, a proposal's too, ends the
    question with the stop reason ``failed``; what it cost until then is kept.
    """
    method = deliberation.NAME if clients else FIRST_PATH
    proposals = await proposer.propose(asked, knowledge)
    made = _attempts(proposals, knowledge)
    if lost := [one.reason for one in proposals if one.said == LOST]:
        return Trajectory(asked.question.id, method, (), tuple(made), "", FAILED, lost[0])
    pool = [*dict.fromkeys(Candidate(p.topic, p.path) for p in proposals if p.said == PATH)]
    if clients:
        simulated = any(client.engine.simulated for client in clients.values())
        asks = {role: Counted(client) if simulated else client for role, client in clients.items()}
        found = await deliberate(asked.question, pool, knowledge, asks, options)
    else:
        found = _followed(asked.question.id, pool, knowledge)
    return replace(found, attempts=(*made, *found.attempts))


def answers_of(trajectory: Trajectory) -> tuple[str, ...]:
    """The answers, the best first; none of a question that failed."""
    if trajectory.method != FIRST_PATH:
        return deliberation.answers_of(trajectory)
    told = [a.read["answers"] for a in trajectory.attempts if a.state == FOLLOW and a.accepted]
    return tuple(told[0]) if told else ()


def _followed(question: str, pool: Sequence[Candidate], knowledge: Knowledge) -> Trajectory:
    """The first candidate that leads somewhere, what it leads to being ranked by the graph."""
    for candidate in pool:
        if answers := [*knowledge.ranked(candidate)]:
            read = {"topic": candidate.topic, "path": list(candidate.path), "answers": answers}
            attempt = Attempt(1, "", None, True, state=FOLLOW, read=read)
            return Trajectory(question, FIRST_PATH, (), (attempt,), answers[0], ANSWERED)
    return Trajectory(question, FIRST_PATH, (), (), "", deliberation.NO_PATHS)


def _attempts(proposals: Sequence[Proposal], knowledge: Knowledge) -> list[Attempt]:
    found = []
    for number, one in enumerate(proposals, 1):
        leads = one.said == PATH and bool(knowledge.ranked(Candidate(one.topic, one.path)))
        usage = {} if one.usage is None else {PROPOSER: one.usage}
        read = {**plain(one), "executable": leads}
        found.append(Attempt(number, one.text, None, leads, usage, state=PROPOSE, read=read))
    return found
