"""How often a release's first verifier rejects, for one that does as often; no command itself."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from evaluators.outcomes import read_outcomes
from evaluators.run.options import Options
from releases.evaluations import MEASURED_RATE, OPTIONS
from safe_stepwise.methods.limits import Limits
from safe_stepwise.methods.loop import MALFORMED
from safe_stepwise.store.names import WORK
from safe_stepwise.taxonomy import CORRECT

METHOD = "safe"
_LOOP = {field.name for field in fields(Limits)}


def rejected(options: Mapping[str, Any], asking: Mapping[str, Any], evaluate: Callable[[Options], str]) -> str:
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
        "max_retries": tuple(sorted(options["max_retries"])[-1:]),
        "judge": None,
        "judge_without_question": None,
    }
    # The first of each option of the loop; those of other methods are none of this one's.
    one_each = {name: options[name][:1] if name in _LOOP else () for name in OPTIONS}
    evaluate(Options(**{**options, **one_each, **alone}, **asking))
    judged = {
        (outcome.benchmark, outcome.question_id, tried.number, tried.text): said.error_type
        for outcome in read_outcomes(folder)
        for tried in outcome.trajectory.attempts
        if (said := tried.feedback) is not None and said.error_type != MALFORMED
    }
    faulty = sum(label != CORRECT for label in judged.values())
    return f"{faulty / max(len(judged), 1):.3f}"
