"""How often a release's first verifier rejects, for one that does as often; no command itself."""

from collections.abc import Callable, Mapping
from typing import Any

from evaluators.run.options import Options
from releases.evaluations import MEASURED_RATE
from safe_stepwise.methods.loop import VERIFIER
from safe_stepwise.store.names import RESULTS, WORK
from trainers.checkpoints import read_json

METHOD = "safe"


def rejected(
    options: Mapping[str, Any], asking: Mapping[str, Any], evaluate: Callable[[Options], str]
) -> str:
    """The share of tries at a step that the first verifier rejects, as a spec has it.

    That of the first generator, at the most retries of an evaluation's ``options``, is measured
    beside its unfinished work; its replies are asked for once. Verdicts that could not be read
    count, as they accept nothing. Where no reply was a step, nothing was judged, nor rejected.
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
    run, *_ = read_json(folder / RESULTS)["runs"]
    told, judged = run["all"], run["all"]["calls"].get(VERIFIER, 0)
    return f"{(sum(told['error_types'].values()) + told['unread']) / max(judged, 1):.3f}"
