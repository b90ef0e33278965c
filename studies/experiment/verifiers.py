"""Of a report: how well verifiers label the steps of test, alone and against each other."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from safe_stepwise.store.tables import NOTHING, Table, markdown
from safe_stepwise.taxonomy import CORRECT, EVIDENCE
from studies.experiment.experiment import Experiment, Home
from studies.experiment.spans import shares
from studies.experiment.verdicts import ERROR_F1, EVIDENCE_BALANCED, always, difference, measured, recall

_SHOWN = ("error_f1", "error_precision", "error_recall", "accuracy", "macro_f1", "parse_rate")
_WEAK = 3
"""How many of the labels that it knows least are named."""


def own_verifier(experiment: Experiment) -> Iterator[str]:
    """The release's own: beside who sees no passage or knows one answer, then label by label."""
    own, steps = experiment.own, experiment.steps
    if own.quality is None or own.said is None or experiment.probe is None:
        return
    rows: Table = [("who", "error F1", "balanced accuracy of evidence types")]
    rows.append(("learned verifier", *_measures(experiment, own.said)))
    probe = measured(steps, experiment.probe, ERROR_F1)
    rows.append(("probe without passages", f"{probe:.3f}", NOTHING))
    for who, label in (("an error, always", "error"), (f"{CORRECT}, always", CORRECT)):
        rows.append((who, *_measures(experiment, always(steps, label))))
    margin = difference(steps, own.said, experiment.probe, ERROR_F1)
    first = own.quality["verifiers"][0]
    types: Table = [("label", "gold", "said", "precision", "recall", "F1")]
    for one in first["types"]:
        values = [one[name] for name in ("precision", "recall", "f1")]
        types.append((one["name"], one["gold"], one["said"], *map(_share, values)))
    weak = sorted(first["types"], key=lambda one: one["f1"] or 0.0)[:_WEAK]
    yield f"## The verifier on {first['rows']:,} steps of test"
    yield markdown(rows)
    yield (
        "Error F1: of finding steps that are wrong in any way. The learned verifier's against the "
        f"probe's: {shares(margin)}. The probe is a logistic regression over the words of a step "
        "and those before it, trained on the same set's train rows. Evidence types: attribution "
        f"steps labelled {', '.join(EVIDENCE)}; the mean of the labels' recall. Unparsed replies "
        f"({first['unparsed']:,}) are no label, and raise no alarm."
    )
    yield markdown(types)
    named = ", ".join(f"{one['name']} ({_share(one['f1'])})" for one in weak)
    yield f"The labels that it knows least, by F1: {named}."


def verifiers(experiment: Experiment, homes: Sequence[Home]) -> Iterator[str]:
    """Those of a block below the release's own, and each two of them on the same steps."""
    every = (experiment.own, *homes)
    names = [name.replace("_", " ") for name in _SHOWN]
    rows: Table = [("verifier", "rows", *names)]
    recalls: Table = [("recall of evidence types", *EVIDENCE)]
    for home in every:
        learnt = NOTHING if home.training is None else f"{home.training['dataset']['rows']:,}"
        rows.append((home.name, learnt, *(_share(home.measures.get(name)) for name in _SHOWN)))
        if home.said is not None:
            found = (recall(experiment.steps, home.said, label) for label in EVIDENCE)
            recalls.append((home.name, *map(_share, found)))
    yield markdown(rows)
    yield markdown(recalls)
    yield from _pairs(experiment, every)


def _pairs(experiment: Experiment, homes: Sequence[Home]) -> Iterator[str]:
    """Each two verifiers on the steps of test, by both measures."""
    rows: Table = [("one", "over the other", "error F1", "evidence types, balanced accuracy")]
    steps, apart = experiment.steps, []
    known = {step.id for step in steps}
    for one, other in combinations(homes, 2):
        if one.said is None or other.said is None or not {*one.said} == {*other.said} == known:
            apart.append(f"{one.name} and {other.name}")
            continue
        pair = (one.said, other.said)
        values = [shares(difference(steps, *pair, of)) for of in (ERROR_F1, EVIDENCE_BALANCED)]
        rows.append((one.name, other.name, *values))
    if len(rows) > 1:
        yield markdown(rows)
        yield "95% intervals by bootstrap over questions, the same draws for both."
    if apart:
        yield f"Not compared, as they did not judge the same steps: {'; '.join(apart)}."


def _measures(experiment: Experiment, said: Mapping[str, str]) -> list[str]:
    return [_share(measured(experiment.steps, said, of)) for of in (ERROR_F1, EVIDENCE_BALANCED)]


def _share(value: float | None) -> str:
    return NOTHING if value is None or math.isnan(value) else f"{value:.3f}"
