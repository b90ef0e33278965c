"""The report of an experiment: a page whose every number stands in the run's files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from safe_stepwise.store.files import cannot_write, write_atomically
from safe_stepwise.store.names import LOCK, SPACE
from safe_stepwise.store.tables import NOTHING, Table, mark, markdown, p_value, percent
from studies.experiment.arms import CHANCE, CHECKER, PLAIN, Arm, Record
from studies.experiment.claims import claims
from studies.experiment.experiment import Experiment, Home, references
from studies.experiment.figures import arms_figure, curves_figure, retries_figure
from studies.experiment.spans import span
from studies.experiment.verifiers import own_verifier, verifiers

PAGE, FIGURES = "results.md", "results"
"""The page, and the folder beside it with its figures."""


def write(experiment: Experiment, folder: Path, fresh: Experiment | None = None) -> Path:
    """Write page, figures and the release's lock, same experiment same bytes; the page's path.

    ``fresh`` is the same arms on other questions. Raises ``UserError`` for a folder that can't be
    written.
    """
    figures = files(experiment)
    try:
        (folder / FIGURES).mkdir(parents=True, exist_ok=True)
        lock = json.dumps(experiment.lock, ensure_ascii=False, indent=2) + "\n"
        for name, content in {**figures, LOCK: lock.encode()}.items():
            write_atomically(folder / FIGURES / name, content)
        write_atomically(folder / PAGE, page(experiment, figures, fresh).encode())
    except OSError as error:
        raise cannot_write(folder, error) from None
    return folder / PAGE


def files(experiment: Experiment) -> dict[str, bytes]:
    """The figures by name."""
    made = {"arms.png": arms_figure(experiment.own.arms)}
    swept = [arm for home in experiment.blocks.get("retries", ()) for arm in home.arms]
    if len({arm.retries for arm in swept}) > 1:
        plain, _ = references(experiment.own, experiment.own)
        made["retries.png"] = retries_figure(swept, plain)
    if learnt := experiment.trainings:
        made["curves.png"] = curves_figure(learnt)
    return made


def page(experiment: Experiment, figures: Mapping[str, bytes], fresh: Experiment | None = None) -> str:
    """The page as Markdown; ``figures`` are those that lie beside it."""
    marked = mark(experiment.simulated)
    parts = [
        f"# What {experiment.lock['manifest']['name']} shows{marked}",
        "Written by `safe-stepwise report_experiment` from the files of one release; no number was put in by hand.",
        *_simulated(experiment),
        _about(experiment),
        _asked(experiment),
        *_example(experiment),
        f"## What it was to show{marked}",
        *_claims(experiment, fresh),
        f"## Who verifies{marked}",
        *_evaluated(experiment, experiment.own),
        *_read(experiment.own),
        *_figure(figures, "arms.png", "Exact match by who verifies"),
        *_fresh(fresh),
        *own_verifier(experiment),
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
            of, kept = record["dataset"], record.get("model") or record["adapter"]
            long = len(of.get("dropped_as_long") or ())
            more = f" ({long:,} more were too long)" if long else ""
            said.append(
                f"The {who}: {record['base_model']['name']}, {of['rows']:,} rows{more}; SHA-256 of "
                f"its weights: `{kept['sha256']}`."
            )
    if experiment.generator is not None:
        said.append("Each was trained once: intervals are of questions, not of trainings.")
    if left := [name for name in lock.get("skipped", ()) if name != SPACE]:
        said.append(f"**Not made yet: {', '.join(left)}.**")
    return " ".join(said)


def _asked(experiment: Experiment) -> str:
    options = references(experiment.own, experiment.own)[1].run["options"]
    exhausted = {"accept": "stands as it is", "drop": "is dropped"}[options["on_exhausted"]]
    return (
        "Made-up questions of two or three facts each, over short passages; no name in these facts "
        "stands in a training row. A generator writes a step at a time, its likeliest words, "
        f"{options['max_steps']} steps at most before it is asked for its answer. A verifier gives "
        "a label (Correct, or one of ten errors), a diagnosis (what the evidence says, what the "
        "step says) and guidance (what to do next). A step that it rejects is written again with "
        f"these before the writer's eyes, N = {options['max_retries']} times at most; then it "
        f"{exhausted}. What it says of an accepted step is told to the writer of the next one."
    )


def _example(experiment: Experiment) -> Iterator[str]:
    if experiment.example:
        ticks = "`" * max(3, *(1 + len(run) for run in _runs(experiment.example, "`")))
        yield "A question that was answered wrongly alone, and rightly with the verifier's remarks:"
        yield f"{ticks}text\n{experiment.example}\n{ticks}"


def _runs(text: str, of: str) -> Iterator[str]:
    yield ""
    yield from ("".join(run) for one, run in groupby(text) if one == of)


def _claims(experiment: Experiment, fresh: Experiment | None) -> Iterator[str]:
    rows: Table = [("claim", "found", "")]
    rows += [(one.said, one.found, one.verdict) for one in claims(experiment)]
    if fresh is not None:
        of = f"{_sizes(fresh.results)} and {len(fresh.steps):,} steps"
        again = [("on fresh questions", ""), *((c.found, c.verdict) for c in claims(fresh))]
        rows = [(*row, *more) for row, more in zip(rows, again, strict=True)]
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    lines.insert(1, "| --- " * len(rows[0]) + "|")
    yield "\n".join(lines)
    yield (
        "What was to be shown was written down before anything was trained. EM is exact match, in "
        "points; p is against no difference at all (McNemar's exact test, paired by question), and "
        "the points are those found, with their 95% interval."
    )
    if fresh is not None:
        yield (
            f"Fresh: {of} of another world of the same kind, measured once, with nothing changed "
            "afterwards; the release's own were looked at while the models were developed."
        )


def _fresh(fresh: Experiment | None) -> Iterator[str]:
    if fresh is not None:
        yield f"## Who verifies, on fresh questions{mark(fresh.simulated)}"
        yield from _evaluated(fresh, fresh.own)


def _sizes(results: Record) -> str:
    asked = results["settings"]["questions"].items()
    return ", ".join(f"{number:,} of {name}" for name, number in asked)


def _evaluated(experiment: Experiment, home: Home) -> Iterator[str]:
    """Scores of a place, and what each is over no verification and the learned verifier."""
    if home.results is None:
        return
    values: dict[str, set[object]] = {}
    for arm in home.arms:
        if arm.name != PLAIN:
            for name, value in arm.run["options"].items():
                values.setdefault(name, set()).add(value)
    varied = [name for name, found in values.items() if len(found) > 1]
    if home is not experiment.own:
        whole = references(experiment.own, experiment.own)[1].run["options"]
        fixed = {n: found.pop() for n, found in values.items() if n not in varied}
        told = [f", {n}={value}" for n, value in fixed.items() if value != whole.get(n)]
        yield f"`{home.place}`, {_sizes(home.results)}{''.join(told)}:"
    yield markdown(_arms(home, varied))
    yield from _gains(experiment, home, varied)
    for arm in home.arms:
        if (arm.unread or 0.0) > 0.5:
            yield (
                f"**{arm.name} judged nothing**: {percent(arm.unread or 0.0)}% of its verdicts "
                "could not be read. Its row shows what rejecting whatever is written comes to."
            )


def _arms(home: Home, varied: Sequence[str]) -> Table:
    counted = ("rejected", "unread", "calls", "steps", "failed")
    rows: Table = [("arm", *varied, "EM", "F1", "both", *counted)]
    for arm in home.arms:
        em, found = arm.em, arm.run["all"]
        rows.append(
            (
                home.label(arm),
                *_options(arm, varied),
                f"{percent(em.value)} [{percent(em.low)}, {percent(em.high)}]",
                percent(found["f1"]),
                *(_percent(value) for value in (arm.both, arm.rejected, arm.unread)),
                f"{found['calls_per_question']:.1f}",
                f"{found['steps_per_question']:.1f}",
                found["failed"],
            )
        )
    return rows


def _options(arm: Arm, names: Sequence[str]) -> Iterator[object]:
    """Values that an arm has of options; nothing of those that make no difference to it."""
    options = {} if arm.name == PLAIN else arm.run["options"]
    return (options.get(name, NOTHING) for name in names)


def _percent(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _gains(experiment: Experiment, home: Home, varied: Sequence[str]) -> Iterator[str]:
    """Every arm over no verification, and over the release's own learned verifier."""
    known, against = experiment.gains[home.place], references(home, experiment.own)
    rows: Table = [("arm", *varied, *(x for one in against for x in (f"over {one.name}", "p")))]
    for arm in home.arms:
        cells: list[str] = []
        for one in against:
            gain = known.get((arm.key, one.key))
            cells += (span(gain.estimate), p_value(gain.p_holm)) if gain else (NOTHING, NOTHING)
        rows.append((home.label(arm), *_options(arm, varied), *cells))
    if known:
        yield markdown(rows)
        yield (f"EM in points, paired by question; p by Holm for the {len(known) // 2} differences of this table.")


def _read(home: Home) -> Iterator[str]:
    """What the columns are, and what the players are that stand in for bounds."""
    yield (
        "EM and F1: of the answer, as the benchmark's own scorer has them, in percent, EM with its "
        "95% interval; both: answered rightly by a faithful chain (our checker's rule); rejected: "
        "of the tries at a step that were judged; unread: of the same, those whose verdict could "
        "not be read, which rejects; calls: of both models, a question; steps: accepted, a "
        "question; failed: questions that an engine lost."
    )
    names = {arm.name: arm for arm in home.arms}
    if CHECKER in names:
        yield "The graph checker sees the question's annotations: an upper bound, and simulated."
    if chance := names.get(CHANCE):
        yield (
            f"By chance (simulated): `{chance.run['players']['verifier']}`. It rejects the share "
            "of steps that the learned verifier rejects at the most retries (a step that is tried "
            "again in the same words counts once), with labels that are drawn; it has no guidance "
            "but to write a rejected step again. So it is a control for rejecting and rewriting, "
            "and none for guidance."
        )


def _blocks(experiment: Experiment, figures: Mapping[str, bytes]) -> Iterator[str]:
    for name, homes in experiment.blocks.items():
        if not homes:
            continue
        yield f"## Ablation: {name}{mark(experiment.simulated)}"
        if trained := [home for home in homes if home.quality is not None]:
            yield from verifiers(experiment, trained)
        for home in homes:
            yield from _evaluated(experiment, home)
        if name == "retries":
            yield from _figure(figures, "retries.png", "Exact match by the most retries")


def _training(experiment: Experiment, figures: Mapping[str, bytes]) -> Iterator[str]:
    rows: Table = [("what", "rows", "steps", "tokens", "minutes", "tokens/s", "first loss", "last")]
    for name, record in experiment.trainings.items():
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
