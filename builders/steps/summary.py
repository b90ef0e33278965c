"""What the making of steps is to say of itself: to the one who ran it, and to a release's lock."""

from collections.abc import Iterator, Mapping
from typing import Any

from builders.steps.collect import StepsBuild
from builders.steps.mining import Refinement, RefinementStatistics
from builders.steps.probes import Probe
from builders.steps.refined import REFINED, STATISTICS
from builders.steps.statistics import Rewording, StepStatistics
from safe_stepwise.records import FAILED
from safe_stepwise.store.names import REFUSED, REQUEST_FAILED, STEPS, UNSEEN, VERIFIER_STEPS
from safe_stepwise.store.tables import table
from safe_stepwise.taxonomy import ERROR_TYPES

SHOWN = 15
"""Patterns of errors in the summary of a refinement; all of them are in its record."""


def summary(plan: StepsBuild, made: StepStatistics) -> str:
    """What was made, where it is, how to open it."""
    header = ("benchmark", "rows", "questions", "ideal", "injected", "refined", "tried", "passing")
    rows = [
        (name, *(b[column] for column in header[1:6]), *made.trajectories[name].values())
        for name, b in made.benchmarks.items()
    ]
    names = list(made.benchmarks)
    types = [(entry.name, *(sum(made.types[n].get(entry.name, {}).values()) for n in names)) for entry in ERROR_TYPES]
    splits = ", ".join(f"{name} {s['rows']:,} rows" for name, s in made.splits.items())
    out = sum(k["questions"] for k in made.kept_out.values())
    refused = sum(number for reasons in made.refused.values() for number in reasons.values())
    lines = [
        table([header, *rows]),
        "",
        table([("error type", *names), *types]),
        f"\n{splits}; {sum(made.missing_evidence.values()):,} rows of missing evidence, "
        f"{sum(made.missing_evidence_twins.values()):,} twins of them where it is there",
        f"kept out for the evaluation sample: {out:,} questions",
        _per_question(made),
        *_overlap(made),
        "",
        table(
            [
                ("without passages", "rows", "reached", "majority", "aim"),
                *map(_probe, (*made.probes, made.missing_evidence_probe)),
            ]
        ),
        *_wordings(made),
    ]
    for name, short in made.shortfalls.items():
        missing = ", ".join(f"{what} {number:,}" for what, number in short.items())
        lines.append(f"{name} has fewer than wanted, others stand in: {missing}")
    if made.rows_of is not None:
        lines += _rows_of(made.rows_of)
    if made.refined is not None:
        given = made.refined["rows"]
        chosen = sum(b["refined"] for b in made.benchmarks.values())
        lines.append(f"refined rows: {chosen:,} of the {given:,} in {made.refined['file']}")
        shown = [f"{f['name']} {f['rows']:,}" for f in made.refined["families"] if f["rows"]]
        lines += [f"of weaknesses: {', '.join(shown)}"] if shown else []
    if made.rewording is not None:
        lines += rewording(made.rewording)
    if made.unverifiable:
        lines.append("of unverifiable questions: nothing checked these rows (for an ablation only)")
    if refused:
        lines.append(f"refused, with reasons: {refused:,} in {plan.output / REFUSED}")
    if failed := sum(reasons.get(REQUEST_FAILED, 0) for reasons in made.refused.values()):
        lines.append(f"{failed:,} requests failed; run the same command again: only they are asked")
    folder = plan.output / VERIFIER_STEPS
    return "\n".join([*lines, f"\n{folder}", f'\nload_dataset("{folder}")'])


def _rows_of(found: Mapping[str, Any]) -> Iterator[str]:
    """How many rows of a first build there are by another teacher, and which are not."""
    matched, lost = found["matched"], found["lost"]
    yield (
        f"rows of {found['name']} ({found['teacher']}) that this teacher made: "
        f"{sum(matched.values()):,} of {found['rows']:,} ({matched['id']:,} the same, "
        f"{matched['position']:,} of the same type at the same position, {matched['type']:,} at "
        "another)"
    )
    if lost:
        shown = ", ".join(f"{name} {number:,}" for name, number in lost.items())
        yield f"not made, each with its id in {REFUSED}: {shown}"
    if found["moved"]:
        yield (
            f"questions of its test split that are in train here, with others of their passages: "
            f"{found['moved']:,}; don't measure what this set trains on the other's test rows"
        )


def _per_question(made: StepStatistics) -> str:
    found, most = made.per_question, made.composition.rows_per_question
    return f"rows a question: {found['mean']:.1f} on average, {found['most']} at most (of {most})"


def _overlap(made: StepStatistics) -> Iterator[str]:
    if number := made.overlap[STEPS]:
        yield (
            f"taken out of test, as their step stands in train: {number:,} rows, so that there are "
            f"{made.rows:,} instead of {made.composition.rows:,}"
        )


def _probe(found: Probe) -> tuple[object, ...]:
    reached = "too few rows" if found.score is None else f"{found.score:.3f}"
    name = f"{found.name} ({found.measure})"
    return name, found.rows, reached, f"{found.majority or 0:.3f}", f"{found.aim:.2f}"


def _wordings(made: StepStatistics) -> Iterator[str]:
    counted = made.wordings[STEPS]
    yield f"\ntest rows worded as no row of train: {counted[UNSEEN]:,} of {sum(counted.values()):,}"
    common = made.common_diagnoses
    if common["share"] is not None:
        yield f"diagnoses of the {common['skeletons']} commonest wordings: {common['share']:.1%}"


def rewording(found: Rewording) -> list[str]:
    """How many rows were reworded, and why others were not."""
    lines = [f"reworded: {found.reworded:,} of {found.rows:,} rows; teacher: {found.teacher}"]
    lines += [f"kept as they were, {reason}: {number:,}" for reason, number in found.kept.items()]
    if REQUEST_FAILED in found.kept:
        lines.append("some requests failed; run the same command again: only they are asked")
    return lines


def counts(made: StepStatistics) -> dict[str, Any]:
    """What a release's lock says of the set."""
    return {name: getattr(made, name) for name in ("rows", "questions", "splits", "origins")}


def _weaknesses(found: RefinementStatistics) -> list[str]:
    """The weaknesses that the verifier has, most frequent first, and those it was not seen with."""
    header = ("weakness", "differ", "doubted", "rows")
    seen = sorted((f for f in found.families if f["disagreements"]), key=_by_number)
    rows = [(f["name"], f["disagreements"], f["doubted"], f["rows"]) for f in seen]
    absent = ", ".join(f["name"] for f in found.families if not f["disagreements"])
    return [table([header, *rows]), *([f"never: {absent}"] if absent else []), ""]


def _by_number(family: Mapping[str, Any]) -> tuple[int, str]:
    return -family["disagreements"], family["name"]


def mining(plan: Refinement, found: RefinementStatistics) -> str:
    """What a refinement found, where it is."""
    header = (*("verifier says", "checker says", "step", "plan"), *("differ", "of", "rate", "doubted", "rows"))
    clusters = [tuple({**c, "mining_rate": f"{c['mining_rate']:.1%}"}.values()) for c in found.clusters]
    counts = ", ".join(f"{number:,} {what}" for what, number in [*found.questions.items(), *found.tries.items()])
    lines = [*_weaknesses(found), table([header, *clusters[:SHOWN]]), ""] if clusters else []
    if len(clusters) > SHOWN:
        lines.insert(-1, f"... and {len(clusters) - SHOWN:,} patterns more")
    lines.append(
        f"mining rate: {found.mining_rate:.1%} ({found.disagreements:,} of {found.checked:,} steps "
        f"that the checker could judge)"
    )
    lines.append(f"questions and tries: {counts}")
    if found.last_failure:
        failed = f"failed questions: {found.questions[FAILED]:,}, the last: {found.last_failure}"
        lines.append(f"{failed}; run the same command again: only what failed is asked")
    lines += [f"refused, {reason}: {number:,}" for reason, number in found.refused.items()]
    if found.rows < found.wanted:
        lines.append(f"{found.rows:,} rows instead of {found.wanted:,}: there are no more cases")
    if found.simulated:
        lines.append("simulated: an engine without a model took part, so no number here is a result")
    lines.append(f"\n{plan.output / REFINED}: {found.rows:,} rows by {found.teacher}")
    lines.append(f"{plan.output / STATISTICS}: all numbers")
    return "\n".join(lines)
