"""One question from proposals to a trajectory: by the loop, or by the first path without a model.

The proposals stand first among the attempts, each with what it cost, so that a trajectory holds all
that was done for a question.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaluators.deliberation import FIRST_PATH, FOLLOW, PROPOSE
from evaluators.deliberation.proposing import LOST, PATH, PROPOSER, Proposal, Proposer
from evaluators.deliberation.questions import Case
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import Counted
from safe_stepwise.methods import deliberation
from safe_stepwise.methods.deliberation import Deliberating, Knowledge, deliberate
from safe_stepwise.records import ANSWERED, FAILED, Attempt, Candidate, Trajectory


async def answered(
    case: Case, knowledge: Knowledge, proposer: Proposer, clients: Mapping[str, Client], options: Deliberating
) -> Trajectory:
    """All that was done to answer one question.

    Without ``clients`` no model verifies. A request that fails for good, a proposal's too, ends the
    question with the stop reason ``failed``; what it cost until then is kept.
    """
    method = deliberation.NAME if clients else FIRST_PATH
    proposals = await proposer.propose(case, knowledge)
    attempts = tuple(_attempt(number, proposal, knowledge) for number, proposal in enumerate(proposals, 1))
    if lost := [proposal.reason for proposal in proposals if proposal.said == LOST]:
        return Trajectory(case.question.id, method, (), attempts, "", FAILED, lost[0])
    pool = [*dict.fromkeys(Candidate(p.topic, p.path) for p in proposals if p.said == PATH)]
    if clients:
        simulated = any(client.engine.simulated for client in clients.values())
        players = {role: Counted(client) if simulated else client for role, client in clients.items()}
        trajectory = await deliberate(case.question, pool, knowledge, players, options)
    else:
        trajectory = _followed(case.question.id, pool, knowledge)
    return replace(trajectory, attempts=(*attempts, *trajectory.attempts))


def _followed(question: str, pool: Sequence[Candidate], knowledge: Knowledge) -> Trajectory:
    """The first candidate that leads somewhere, what it leads to being ranked by the graph."""
    for candidate in pool:
        if answers := [*knowledge.ranked(candidate)]:
            read = {"topic": candidate.topic, "path": list(candidate.path), "answers": answers}
            attempt = Attempt(1, "", None, True, state=FOLLOW, read=read)
            return Trajectory(question, FIRST_PATH, (), (attempt,), answers[0], ANSWERED)
    return Trajectory(question, FIRST_PATH, (), (), "", deliberation.NO_PATHS)


def _attempt(number: int, proposal: Proposal, knowledge: Knowledge) -> Attempt:
    leads = proposal.said == PATH and bool(knowledge.ranked(Candidate(proposal.topic, proposal.path)))
    reason = {"reason": proposal.reason} if proposal.reason else {}
    read = {"topic": proposal.topic, "said": proposal.said, "path": list(proposal.path), **reason, "executable": leads}
    usage = {} if proposal.usage is None else {PROPOSER: proposal.usage}
    return Attempt(number, proposal.text, None, leads, usage, state=PROPOSE, read=read)
