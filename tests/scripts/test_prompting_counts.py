"""What results.json counts of machines: each edge and each end, as their trajectories have them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from evaluators.outcomes import read_outcomes
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import react, sg_fsm, sg_fsm_safe
from safe_stepwise.methods.machine import Machine
from safe_stepwise.open import KINDS, EngineKind
from safe_stepwise.taxonomy import CORRECT, labels
from tests.safe_stepwise.methods.machines import SIMPLE, compound, find, go_on, stop, summary, verdict
from tests.scripts.test_prompting_methods import evaluate

MACHINES: dict[str, Machine[object]] = {
    "react": react.MACHINE, "sg_fsm1": sg_fsm.SINGLE_TURN, "sg_fsm2": sg_fsm.TWO,
    "sg_fsm_safe": sg_fsm_safe.MACHINE,
}  # type: ignore[dict-item]  # fmt: skip
FAULTS = [verdict(label) for label in labels() if label != CORRECT]
BAD = "Not JSON: %"
REPLIES = {
    "decompose": [SIMPLE, compound("Who directed %?"), BAD],
    "search": [find(1), BAD],
    "terminate": [stop(), go_on("Where was % born?"), BAD, BAD],
    "summarize": [summary(), BAD],
    "react": [f"Thought: So.\nAction: {said}" for said in ("Search[Thing]", "Finish[Oru]", BAD)],
    "verify": [verdict(CORRECT)] * 6 + [verdict("Wrong Conclusion")] * 6 + FAULTS + [BAD],
}


def anything(request: Request) -> str:
    """One of a role's replies, by chance of what it is asked.

    None is told twice, or questions would meet in one request, and go the same way from there.
    """
    role, chance = (getattr(request.scene, "mends", "") or request.role, Random(repr(request.messages)))
    return chance.choice(REPLIES[role]).replace("%", f"{chance.random()}")


def test_every_edge_and_every_end_is_reached_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "mock", EngineKind("mock:any", lambda _: MockEngine(anything, "any")))  # type: ignore[misc]
    found = evaluate(
        tmp_path, "mock:any", "--iterations=2", "--max-steps=3", "--revisions=0,2",
        "--option=redo=0,1", methods=[*MACHINES], number=150,
    )  # fmt: skip
    gone: dict[str, Counter[str]] = {name: Counter() for name in MACHINES}
    ended: dict[str, Counter[str]] = {name: Counter() for name in MACHINES}
    for run in found["runs"]:
        assert run["all"]["failed"] == 0
        gone[run["method"]].update(run["all"]["transitions"])
        ended[run["method"]].update(run["all"]["stop_reasons"])
    for name, machine in MACHINES.items():
        assert set(gone[name]) == {f"{one} → {other}" for one, other in machine.edges}, name

        ends = Counter[str]()
        for edge, times in gone[name].items():
            ends[machine.ends.get(edge.rpartition(" ")[2], "")] += times
        assert set(machine.ends.values()) == set(ended[name]), name
        assert {end: ends[end] for end in ended[name]} == ended[name]
    counted = {name: Counter[str]() for name in MACHINES}
    for one in read_outcomes(tmp_path / "out"):
        moves = one.trajectory.attempts
        counted[one.method].update(f"{move.state} → {move.next_state}" for move in moves)
    assert counted == gone
