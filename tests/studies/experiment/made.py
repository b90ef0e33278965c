"""Experiments by hand: arms whose numbers are given, verifiers whose verdicts are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.comparison.scores import Comparison, Difference
from evaluators.comparison.significance import Estimate
from evaluators.verifier.step_set import StepCase
from safe_stepwise.methods.limits import Limits
from safe_stepwise.records import Question, Step
from studies.experiment.experiment import Arm, Experiment, Section
from studies.experiment.verdicts import Verdicts

GENERATOR, ADAPTER = "vllm:generator@1", "vllm:adapter@2"
CHECKING = "symbolic:error_rate=0.0,seed=0 (simulated)"
DRAWN = "chance:reject=0.25,seed=0 (simulated)"
OPTIONS = {"max_retries": 3, "max_steps": 10, "on_exhausted": "accept", "feedback": "full"}
assert {*OPTIONS} <= {*Limits.__dataclass_fields__}


def run(em: float, verifier: str | None = None, **options: Any) -> dict[str, Any]:
    """A system of ``results.json``, with numbers that differ from each other."""
    judged = verifier is not None
    return {
        "method": "safe" if judged else "no_verification",
        "players": {"generator": GENERATOR, **({"verifier": verifier} if judged else {})},
        "options": {**OPTIONS, **options},
        "conditions": {},
        "simulated": "(simulated)" in (verifier or ""),
        "average": {"exact_match": em},
        "all": {
            "f1": em + 0.01,
            "questions": 200,
            "failed": 0,
            "calls": {"generator": 900, **({"verifier": 800} if judged else {})},
            "calls_per_question": 8.5,
            "steps_per_question": 4.5,
            "error_types": {"Contradictory": 120, "Off-topic": 40} if judged else {},
            "unread": 40 if judged else 0,
        },
    }


def results(*runs: Mapping[str, Any], questions: int = 200) -> dict[str, Any]:
    """What an evaluation wrote of some systems."""
    names = ("method", "players", "options", "conditions")
    told = [{name: one[name] for name in names} for one in runs]
    ends = [{"value": r["average"]["exact_match"], "low": 0.2, "high": 0.8} for r in runs]
    counts = {"right": {"faithful": 50, "unfaithful": 30}, "wrong": {"faithful": 7, "unfaithful": 9}}
    return {
        "runs": list(runs),
        "settings": {"questions": {"synthetic": questions}, "seed": 1},
        "comparison": {
            "systems": [{**one, "average": {"exact_match": end}} for one, end in zip(told, ends, strict=True)]
        },
        "faithfulness": {
            "systems": [{**one, "all": {"rules": {"house": {"answers": {"exact_match": counts}}}}} for one in told]
        },
    }


def home(
    found: Mapping[str, Any] | None,
    place: str = "",
    said: Verdicts | None = None,
    training: Mapping[str, Any] | None = None,
) -> Section:
    """A place with an evaluation, with verdicts, or with both."""
    types = [{"name": "Correct", "gold": 1, "said": 1, "precision": 0.5, "recall": 0.5, "f1": 0.5}]
    measured = [{"rows": 4, "unparsed": 0, "types": types, "measures": {"error_f1": 0.5}}]
    quality = None if said is None else {"verifiers": measured}
    return Section(place, training, quality, said, found)


def gains_of(*pairs: tuple[Arm, Arm, float, float]) -> Comparison:
    """By hand: of the first over the second how much, and p."""
    differences = [
        Difference(
            *(one.key, other.key, "synthetic", "exact_match", False, 200, 0),
            *(Estimate(value, value - 0.05, value + 0.05), "mcnemar", p, min(1.0, 2 * p)),
        )
        for one, other, value, p in pairs
    ]
    return Comparison(("synthetic",), (), tuple(differences), 0, 100)


def experiment(
    main: Section,
    gains: Mapping[str, Comparison],
    steps: Sequence[StepCase] = (),
    probe: Verdicts | None = None,
    **more: Any,
) -> Experiment:
    """All of it."""
    lock = {"version": "v0.1.0", "manifest": {"name": "m.yaml"}, "skipped": ["space"]}
    known = {"lock": lock, "generator": None, "blocks": {}, "example": "", **more}
    return Experiment(main=main, gains=gains, steps=steps, probe=probe, **known)


def step(number: int, gold: str, question: str = "", attribution: bool = True) -> StepCase:
    """A labelled step, each of a question of its own if none is given."""
    asked = Question(question or f"q{number}", "synthetic", "", "Where?", "")
    return StepCase(
        f"s{number}", asked, (Step(1, "So it is", "Attribution" if attribution else "Logical"),), gold, "ideal"
    )
