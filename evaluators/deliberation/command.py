"""An evaluation from its plan to what is said of it."""

import asyncio
from functools import partial
from typing import Any

from evaluators.deliberation.page import summary
from evaluators.deliberation.results import PAGE, write
from evaluators.deliberation.running import Plan, carried_out
from evaluators.run.journal import Progress
from safe_stepwise.errors import UserError
from safe_stepwise.records import FAILED
from safe_stepwise.store.names import RESULTS
from safe_stepwise.store.progress import telling


def carry_out(plan: Plan) -> str:
    """Run everything, write it down, and say what came of it.

    Raises ``UserError`` if not one question could be answered for want of replies.
    """
    progress = Progress(len(plan.source.asked) * len(plan.contenders))
    stands = partial(progress.standing, plan.clients)
    with telling("deliberation", "question", progress.total, lambda: progress.done, stands):
        runs = asyncio.run(carried_out(plan, progress))
    ended = [trajectory for run in runs for trajectory in run.trajectories]
    if all(trajectory.stop_reason == FAILED for trajectory in ended):
        raise UserError(
            f"all {len(ended)} questions failed and nothing was written; the last: "
            f"{ended[-1].failure}; mend that and run the same command again"
        )
    return said(plan, write(plan, runs))


def said(plan: Plan, found: dict[str, Any]) -> str:
    """What was scored, what it took, where it is."""
    lines = [summary(found)]
    if failed := sum(run["failed"] for run in found["runs"]):
        lines.append(
            f"questions that failed: {failed:,}; they count as wrong. Run the same command again: only they are asked"
        )
        lines += [f"the last that failed: {c.last_error}" for c in plan.clients if c.last_error][:1]
    if found["simulated"]:
        lines.append("simulated: an engine without a model took part, so no number is a result")
    return "\n".join([*lines, "", *(str(plan.output / name) for name in (RESULTS, PAGE))])
