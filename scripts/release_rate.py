"""How often a release's first verifier rejects, for one that does as often; no command itself."""

from collections.abc import Callable, Mapping
from typing import Any

from evaluators.outcomes import read_outcomes
from evaluators.run.options import Options
from releases.evaluations import MEASURED_RATE
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.store.names import WORK
from safe_stepwise.taxonomy import CORRECT

METHOD = "safe"


def rejected(
    options: Mapping[str, Any], asking: Mapping[str, Any], evaluate: Callable[[Options], str]
) -> str:
    """The share of steps that the first verifier rejects, as a spec has it.

    That of the first generator, at the most retries of an evaluation's ``options``, is measured
    beside its unfinished work; its replies are asked for once. A step that is tried again in the
    same words counts once, as whoever draws by the request draws once for it. Verdicts that could
    not be read count, as they accept nothing. Where no reply was a step, nothing was rejected.
    """
    folder = options["output"] / WORK / "rate"
    first = next(spec for spec in options["verifier"] if MEASURED_RATE not in spec)
    alone = {
        "output": folder,
        "report": folder,
        "method": (METHOD,),
        "generator": options["generator"][:1],
        "verifier": (first,),
        "max_retries": sorted(options["max_retries"])[-1:],
        "judge": None,
        "judge_without_question": None,
    }
    one_each = {name: options[name][:1] for name in ("max_steps", "on_exhausted", "feedback")}
    evaluate(Options(**{**options, **one_each, **alone}, **asking))
    judged = {
        (outcome.benchmark, outcome.question_id, tried.number, tried.text): said.error_type
        for outcome in read_outcomes(folder)
        for tried in outcome.trajectory.attempts
        if (said := tried.feedback) is not None and said.error_type != MALFORMED
    }
    faulty = sum(label != CORRECT for label in judged.values())
    return f"{faulty / max(len(judged), 1):.3f}"
