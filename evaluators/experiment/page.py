"""The report of an experiment: a page whose every number stands in the run's files."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from evaluators.comparison.tables import NOTHING, Table, mark, markdown, p_text, percent
from evaluators.experiment.arms import LEARNED, Arm, Record, gain, one_of
from evaluators.experiment.claims import claims, shares, span
from evaluators.experiment.experiment import Experiment, Home
from evaluators.experiment.figures import arms_figure, curves, curves_figure, retries_figure
from evaluators.experiment.verdicts import (
    ERROR_F1,
    EVIDENCE,
    EVIDENCE_BALANCED,
    always,
    difference,
    measured,
)
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.locks import cannot_write
from safe_stepwise.store.names import LOCK

PAGE, FIGURES = "results.md", "results"
"""The page, and the folder beside it with its figures."""
_SHOWN = ("error_f1", "error_precision", "error_recall", "accuracy", "macro_f1", "parse_rate")
_VARIED = ("max_retries", "feedback")


def write(experiment: Experiment, folder: Path) -> Path:
    """Write page, figures and the release's lock, same experiment same bytes; the page's path.

    Raises ``UserError`` for a folder that can't be written.
    """
    figures = files(experiment)
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        lock = json.dumps(experiment.lock, ensure_ascii=False, indent=2) + "\n"
        for name, content in {**figures, LOCK: lock.encode()}.items():
            write_atomically(folder / FIGURES / name, content)
        write_atomically(folder / PAGE, page(experiment, figures).encode())
    except OSError as error:
        raise cannot_write(folder, error) from None
    return folder / PAGE


def files(experiment: Experiment) -> dict[str, bytes]:
    """The figures by name."""
    made = {"arms.png": arms_figure(experiment.own.arms)}
    swept = _swept(experiment)
    if len({arm.retries for arm in swept}) > 1:
        made["retries.png"] = retries_figure(swept)
    if learnt := curves(experiment):
        made["curves.png"] = curves_figure(learnt)
    return made


def page(experiment: Experiment, figures: Mapping[str, bytes]) -> str:
    """The page as Markdown; ``figures`` are those that lie beside it."""
    marked = mark(experiment.simulated)
    told = [(one.said, one.found, one.verdict) for one in claims(experiment)]
    lines = "\n".join(f"| {' | '.join(one)} |" for one in told)
    parts = [
        f"# The papers' claim, in small{marked}",
        "Written by `python -m scripts.report_experiment` from the files of one release; no number "
        "was put in by hand.",
        *_simulated(experiment),
        _about(experiment),
        f"## What it was to show{marked}",
        f"| claim | found | |\n| --- | --- | --- |\n{lines}",
        f"## Who verifies{marked}",
        markdown(_arms(experiment.own.arms)),
        "EM and F1 in percent, EM with its 95% interval; both: answered rightly by a faithful "
        "chain (our checker's rule); rejected: of the tries at a step that were judged; unread: of "
        "the same, those whose verdict could not be read, which rejects. The graph checker sees "
        "the annotations, so it is an upper bound; chance rejects the share of steps that the "
        "learned verifier rejects (a step that is tried again in the same words counts once), with "
        "labels that are drawn: a lower bound. Both are simulated.",
        *_figure(figures, "arms.png", "Exact match by who verifies"),
        f"## Gains of the learned verifier{marked}",
        *_gains(experiment.own, {}),
        *_quality(experiment),
        *_blocks(experiment, figures),
        *_training(experiment, figures),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _simulated(experiment: Experiment) -> Iterator[str]:
    if experiment.simulated:
        yield (
            "> **Simulated**: no model wrote or judged; the figures show the machinery alone, and "
            "say nothing of any model."
        )


def _about(experiment: Experiment) -> str:
    lock = experiment.lock
    said = [
        f"Release {lock['version']} of `{lock['manifest']['name']}`, [locked]({FIGURES}/{LOCK}); "
        f"questions: {_sizes(experiment.results)}."
    ]
    for who, record in (("generator", experiment.generator), ("verifier", experiment.own.training)):
        if record is not None:
            kept = record.get("model") or record["adapter"]
            said.append(
                f"The {who}: {record['base_model']['name']}, {record['dataset']['rows']:,} rows "
                f"(SHA-256 of the weights: `{kept['sha256']}`)."
            )
    return " ".join(said)


def _sizes(results: Record) -> str:
    asked = results["settings"]["questions"].items()
    return ", ".join(f"{number:,} of {name}" for name, number in asked)


def _arms(arms: Sequence[Arm], varied: Sequence[str] = ()) -> Table:
    counted = ("rejected", "unread", "calls", "steps", "failed")
    header = ("arm", *varied, "EM", "F1", "both", *counted)
    rows: Table = [header]
    for arm in arms:
        em, found = arm.em, arm.run["all"]
        rows.append(
            (
                f"{arm.name}{mark(arm.run['simulated'])}",
                *(arm.run["options"].get(name, NOTHING) for name in varied),
                f"{percent(em.value)} [{percent(em.low)}, {percent(em.high)}]",
                percent(found["f1"]),
                *(_percent(value) for value in (arm.both, arm.rejected, arm.unread)),
                f"{found['calls_per_question']:.1f}",
                f"{found['steps_per_question']:.1f}",
                found["failed"],
            )
        )
    return rows


def _percent(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _gains(home: Home, whole: Record, varied: Sequence[str] = ()) -> Iterator[str]:
    """The learned verifier's over all others, with the ``whole`` experiment's options."""
    learned = one_of(home.arms, LEARNED, **{name: whole[name] for name in varied})
    if home.results is None or learned is None:
        return
    rows: Table = [("than", *varied, "EM, points", "p", "p by Holm")]
    for other in home.arms:
        if other.run != learned.run and (tested := gain(home.results, learned, other)):
            estimate, p, adjusted = tested
            options = (other.run["options"].get(name, NOTHING) for name in varied)
            rows.append((other.name, *options, span(estimate), p_text(p), p_text(adjusted)))
    if len(rows) > 1:
        yield markdown(rows)
        yield "Paired by question: McNemar's exact test, intervals by bootstrap."


def _quality(experiment: Experiment) -> Iterator[str]:
    own, steps = experiment.own, experiment.steps
    if own.quality is None or own.said is None or experiment.probe is None:
        return
    constant = always(steps)
    rows: Table = [("who", "error F1", "balanced accuracy of evidence types")]
    rows.append(("learned verifier", *_measured(experiment, own.said)))
    probe, every = (measured(steps, said, ERROR_F1) for said in (experiment.probe, constant))
    rows += [("probe without passages", f"{probe:.3f}", NOTHING)]
    rows += [("an error, always", f"{every:.3f}", NOTHING)]
    margin = difference(steps, own.said, experiment.probe, ERROR_F1)
    first = own.quality["verifiers"][0]
    types: Table = [("label", "gold", "said", "precision", "recall", "F1")]
    for one in first["types"]:
        values = [one[name] for name in ("precision", "recall", "f1")]
        shown = [NOTHING if value is None else f"{value:.3f}" for value in values]
        types.append((one["name"], one["gold"], one["said"], *shown))
    yield f"## The verifier on {first['rows']:,} held-out steps"
    yield markdown(rows)
    yield (
        f"The learned verifier's error F1 against the probe's: {shares(margin)}. The probe is a "
        "logistic regression over the words of a step and those before it, trained on the same "
        "set's train rows. Evidence types: attribution steps labelled "
        f"{', '.join(EVIDENCE)}; the mean of the labels' recall. Unparsed replies "
        f"({first['unparsed']:,}) are never right."
    )
    yield markdown(types)


def _measured(experiment: Experiment, said: Mapping[str, str]) -> list[str]:
    values = (measured(experiment.steps, said, one) for one in (ERROR_F1, EVIDENCE_BALANCED))
    return [NOTHING if math.isnan(value) else f"{value:.3f}" for value in values]


def _blocks(experiment: Experiment, figures: Mapping[str, bytes]) -> Iterator[str]:
    learned = one_of(experiment.own.arms, LEARNED)
    whole = learned.run["options"] if learned else {}
    for name, homes in experiment.blocks.items():
        if not homes:
            continue
        yield f"## Ablation: {name}{mark(experiment.simulated)}"
        trained = [home for home in homes if home.quality is not None]
        if trained:
            yield markdown(_verifiers(experiment, trained))
            yield from _pairs(experiment, trained)
        for home in homes:
            yield from _evaluated(home, whole)
        if name == "retries":
            yield from _figure(figures, "retries.png", "Exact match by the most retries")


def _evaluated(home: Home, whole: Record) -> Iterator[str]:
    if home.results is None:
        return
    values = {name: {arm.run["options"][name] for arm in home.arms} for name in _VARIED}
    varied = [name for name, found in values.items() if len(found) > 1]
    fixed = [f", {name}={found.pop()}" for name, found in values.items() if name not in varied]
    yield f"`{home.place}`, {_sizes(home.results)}{''.join(fixed)}:"
    yield markdown(_arms(home.arms, varied))
    yield from _gains(home, whole, varied)


def _verifiers(experiment: Experiment, homes: Sequence[Home]) -> Table:
    """The verifiers of a block below the release's own."""
    header = ("verifier", "rows", *(name.replace("_", " ") for name in _SHOWN))
    rows: Table = [header]
    for home in (experiment.own, *homes):
        learnt = NOTHING if home.training is None else f"{home.training['dataset']['rows']:,}"
        values = [home.measures.get(name) for name in _SHOWN]
        shown = [NOTHING if value is None else f"{value:.3f}" for value in values]
        rows.append((_short(home), learnt, *shown))
    return rows


def _pairs(experiment: Experiment, homes: Sequence[Home]) -> Iterator[str]:
    """Each two verifiers on the rows of test, by both measures."""
    rows: Table = [("one", "less the other", "error F1", "evidence types, balanced accuracy")]
    known = {step.id for step in experiment.steps}
    for one, other in combinations((experiment.own, *homes), 2):
        if one.said is None or other.said is None or not {*one.said} == {*other.said} == known:
            continue
        steps, pair = experiment.steps, (one.said, other.said)
        values = [shares(difference(steps, *pair, of)) for of in (ERROR_F1, EVIDENCE_BALANCED)]
        rows.append((_short(one), _short(other), *values))
    if len(rows) > 1:
        yield markdown(rows)
        yield "95% intervals by bootstrap over questions, the same draws for both."


def _short(home: Home) -> str:
    return home.place.partition("/")[2] or "the release's own"


def _training(experiment: Experiment, figures: Mapping[str, bytes]) -> Iterator[str]:
    named = {"generator": experiment.generator, "verifier": experiment.own.training}
    for homes in experiment.blocks.values():
        named |= {_short(home): home.training for home in homes if home.training is not None}
    rows: Table = [("what", "rows", "steps", "tokens", "minutes", "tokens/s", "first loss", "last")]
    for name, record in named.items():
        if record is not None:
            run, curve = record["run"], record["curve"]
            speed = run["tokens"] / run["seconds"] if run["seconds"] else 0.0
            rows.append(
                (
                    *(name, f"{record['dataset']['rows']:,}", f"{run['steps']:,}"),
                    *(f"{run['tokens']:,}", f"{run['seconds'] / 60:.1f}", f"{speed:,.0f}"),
                    *(f"{curve[at]['loss']:.4f}" for at in (0, -1)),
                )
            )
    if len(rows) > 1:
        yield "## Training"
        yield markdown(rows)
        yield from _figure(figures, "curves.png", "Training loss by step")


def _figure(figures: Mapping[str, bytes], name: str, title: str) -> Iterator[str]:
    if name in figures:
        yield f"![{title}]({FIGURES}/{name})"


def _swept(experiment: Experiment) -> list[Arm]:
    """The arms of the block that varies N."""
    return [arm for home in experiment.blocks.get("retries", ()) for arm in home.arms]
