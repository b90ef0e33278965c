"""Write the moves of state machines as training rows, so that a model can learn to drive them (SG-FSM, Limitations).

Trajectories keep replies, not requests: `machine.replay` builds those anew. A row is a request to the generator and
its strictly read reply, in TRL's conversational form, of a question that was answered rightly.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from evaluators.faithfulness.command import read_pairs
from evaluators.outcomes import Outcome
from evaluators.traces.page import worth
from safe_stepwise.engines.base import conversation
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS, base, machine, prompting
from safe_stepwise.records import Question, canonical_json, identity
from safe_stepwise.store import files, page
from safe_stepwise.store.names import QUESTIONS, RESULTS, TRAJECTORIES


@dataclass(frozen=True, kw_only=True)
class Options:
    """An output of ``evaluate_stepwise``, and the file of the rows."""

    folder: Path
    output: Path


def export_transitions(options: Options) -> str:
    """Write the rows of a folder's machines, each pair of prompt and reply once; raise ``UserError`` if none is."""
    page.check_output(options.output, *(options.folder / name for name in (TRAJECTORIES, QUESTIONS, RESULTS)))
    rows, fates = dict[str, dict[str, Any]](), Counter[str]()
    for outcome, question in read_pairs(options.folder):
        if not isinstance(METHODS.get(outcome.method), machine.MachineMethod):
            continue
        fate = worth(outcome)
        try:
            rows |= {row["id"]: row for row in list_rows(outcome, question)} if fate == "right" else {}
            fates[fate] += 1
        except machine.MachineError:
            fates["not replayed"] += 1
    if not rows:
        raise UserError(f"{options.folder}: no state machine answered a question rightly; run --method sg_fsm2")
    with files.report_unwritable(options.output):
        files.write_lines(options.output, map(canonical_json, rows.values()))
    left_out = "".join(f"; left out: {n:,} {fate}" for fate, n in sorted(fates.items()) if fate != "right")
    return f"{options.output}: {len(rows):,} rows of {fates['right']:,} right answers{left_out}"


def list_rows(outcome: Outcome, question: Question) -> Iterator[dict[str, Any]]:
    """Yield the rows of a machine's outcome; raises ``MachineError`` if its trajectory can't be replayed."""
    method: Any = METHODS[outcome.method]
    kind = base.options_type(method)
    names = {field.name for field in fields(kind)} & outcome.options.keys()
    memory = method.start_memory(question, kind(**{name: outcome.options[name] for name in names}))
    context = {"benchmark": outcome.benchmark, "question_id": outcome.question_id, "simulated": outcome.simulated}
    for state, request, attempt in [*machine.replay(method.machine, memory, outcome.trajectory.attempts)]:
        if request is not None and state.player == prompting.GENERATOR and attempt.accepted:
            turns = conversation(request, attempt.text)
            yield {"id": identity(turns)[:32], **context, "method": method.name, "state": state.name, **turns}
