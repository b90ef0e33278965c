"""Write the report of an experiment (`studies.experiment.experiment`): a Markdown page and its figures.

Every number on the page comes from the release's files. The page tests three claims (`check_claims`).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import Estimate
from safe_stepwise.store import files, names, tables
from safe_stepwise.store.figures import png
from safe_stepwise.store.tables import NOTHING, Column, Table, p_value, percent, signed, table_of
from safe_stepwise.taxonomy import CORRECT, EVIDENCE
from studies.experiment import experiment as study
from studies.experiment import verdicts as labelling
from studies.experiment.experiment import Arm, Experiment, Record, Section, find_arm, references
from studies.experiment.verdicts import ERROR_F1, EVIDENCE_BALANCED, Verdicts, compute_recall, estimate_gain

_COLORS = ("#4477aa", "#ee7733", "#228833", "#aa3377", "#777777", "#ccbb44")
_ARM_COLORS = dict(zip((*study.NAMES.values(), study.LEARNED, study.CHECKER, study.CHANCE), _COLORS, strict=False))
"""An arm has one color in every figure."""


def arms_figure(arms: Sequence[Arm]) -> bytes:
    """Draw exact match of each arm with its interval."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for row, arm in enumerate(arms):
            em = arm.em
            error = [[100 * (em.value - em.low)], [100 * (em.high - em.value)]]
            color = _ARM_COLORS.get(arm.name, _COLORS[-1])
            axes.barh(row, 100 * em.value, xerr=error, color=color, ecolor="#333333", capsize=3)
        axes.set_yticks(range(len(arms)), [arm.label for arm in arms])
        axes.invert_yaxis()
        axes.set_xlabel("exact match, % (95% interval)")

    return png(draw, (7.0, 0.6 * len(arms) + 1.0))


def retries_figure(arms: Sequence[Arm], plain: Arm) -> bytes:
    """Draw exact match by the most retries: a line for each verifier, and one without verification."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for name in dict.fromkeys(arm.name for arm in arms):
            line = sorted((a for a in arms if a.name == name), key=lambda arm: arm.retries)
            numbers = [arm.retries for arm in line]
            color, values = _ARM_COLORS.get(name, _COLORS[-1]), [100 * a.em.value for a in line]
            axes.plot(numbers, values, "o-", label=line[0].label, color=color)
            bounds = [[100 * getattr(a.em, end) for a in line] for end in ("low", "high")]
            axes.fill_between(numbers, *bounds, color=color, alpha=0.15)
        level = 100 * plain.em.value
        axes.axhline(level, color=_ARM_COLORS[plain.name], linestyle="--", label=plain.label)
        axes.set_xticks(sorted({arm.retries for arm in arms}))
        axes.set_xlabel("most retries, N")
        axes.set_ylabel("exact match, %")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8)

    return png(draw, (6.0, 3.6))


def curves_figure(trainings: Mapping[str, Record]) -> bytes:
    """Draw the loss of each training, step by step."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for index, (name, record) in enumerate(trainings.items()):
            points = record["curve"]
            steps, losses = [p["step"] for p in points], [p["loss"] for p in points]
            axes.plot(steps, losses, label=name, color=_COLORS[index % len(_COLORS)], linewidth=0.9)
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")  # no text here is read as mathematics
        axes.legend(fontsize=8)

    return png(draw, (7.0, 3.6))


PAGE, FIGURES = "results.md", "results"
"""The page, and the folder beside it with its figures."""
_MEASURES = ("error_f1", "error_precision", "error_recall", "accuracy", "macro_f1", "parse_rate")
_WEAK = 3
"""The number of labels with the lowest F1 that the page names."""


def write_report(experiment: Experiment, folder: Path, fresh: Experiment | None = None) -> Path:
    """Write page, figures and the release's lock, and return the page's path; same experiment, same bytes.

    ``fresh`` has the same arms on other questions. Raises ``UserError`` for a folder that can't be written.
    """
    figures = draw_figures(experiment)
    beside = {**figures, names.LOCK: files.json_bytes(experiment.lock, sort_keys=False)}
    files.write_files(folder / FIGURES, beside, beside)
    files.write_files(folder, [PAGE], {PAGE: render_page(experiment, figures, fresh).encode()})
    return folder / PAGE


def draw_figures(experiment: Experiment) -> dict[str, bytes]:
    figures = {"arms.png": arms_figure(experiment.main.arms)}
    swept = [arm for section in experiment.blocks.get("retries", ()) for arm in section.arms]
    if len({arm.retries for arm in swept}) > 1:
        figures["retries.png"] = retries_figure(swept, references(experiment.main, experiment.main)[0])
    if trainings := experiment.trainings:
        figures["curves.png"] = curves_figure(trainings)
    return figures


def render_page(experiment: Experiment, figures: Mapping[str, bytes], fresh: Experiment | None = None) -> str:
    """Render the page as Markdown; ``figures`` are those that lie beside it."""
    return tables.fill(
        Path(__file__).parent / "templates",
        "results.md.jinja",
        experiment=experiment,
        figures=figures,
        fresh=fresh,
        lock_file=names.LOCK,
        left_out=[name for name in experiment.lock.get("skipped", ()) if name != names.SPACE],
        options=references(experiment.main, experiment.main)[1].run["options"],
        fence="`" * max(3, *(1 + len(run) for run in ["", *re.findall("`+", experiment.example)])),
        claims=list(check_claims(experiment)),
        fresh_claims=list(check_claims(fresh)) if fresh else [],
        main=_section(experiment, experiment.main),
        fresh_main=_section(fresh, fresh.main) if fresh else None,
        checker=study.CHECKER,
        chance=study.CHANCE,
        evidence=EVIDENCE,
        verifier=_main_verifier(experiment),
        blocks=[
            {
                "name": name,
                "verifiers": _verifiers(experiment, [section for section in sections if section.quality is not None]),
                "places": [_section(experiment, section) for section in sections if section.results is not None],
            }
            for name, sections in experiment.blocks.items()
            if sections
        ],
        trainings=_trainings(experiment),
    )


def _section(experiment: Experiment, section: Section) -> dict[str, Any]:
    """Collect a section's scores, and each arm's gain over no verification and over the learned verifier.

    ``title`` is the section's folder, empty for the release itself; ``options`` renders those that differ from the
    release's; ``compared`` counts the pairs of arms that were compared.
    """
    values: dict[str, set[object]] = {}
    for arm in section.arms:
        if arm.name != study.PLAIN:
            for name, value in arm.run["options"].items():
                values.setdefault(name, set()).add(value)
    varied = [name for name, options in values.items() if len(options) > 1]
    main_options = references(experiment.main, experiment.main)[1].run["options"]
    fixed = {name: options.pop() for name, options in values.items() if name not in varied}
    options = "".join(f", {name}={value}" for name, value in fixed.items() if value != main_options.get(name))
    return {
        "section": section,
        "title": "" if section is experiment.main else section.place,
        "options": options,
        "arms": _arms(section, varied),
        "gains": _gains(experiment, section, varied),
        "compared": len({(d.first, d.second) for d in experiment.gains[section.place].differences}),
    }


def _subject(section: Section, varied: Sequence[str]) -> list[Column[Arm]]:
    def option(name: str) -> Column[Arm]:
        # Without verification an arm has no such option.
        return Column(name, lambda arm: NOTHING if arm.name == study.PLAIN else arm.run["options"].get(name, NOTHING))

    return [Column("arm", section.label), *map(option, varied)]


def _arms(section: Section, varied: Sequence[str]) -> Table:
    columns: list[Column[Arm]] = [
        *_subject(section, varied),
        Column("EM", lambda arm: (arm.em.value, (arm.em.low, arm.em.high)), tables.interval),
        Column("F1", lambda arm: arm.run["all"]["f1"], percent),
        Column("both", lambda arm: arm.earned_share, percent),
        Column("rejected", lambda arm: arm.rejected, percent),
        Column("unread", lambda arm: arm.unread, percent),
        Column("calls", lambda arm: arm.run["all"]["calls_per_question"], tables.decimal(1)),
        Column("steps", lambda arm: arm.run["all"]["steps_per_question"], tables.decimal(1)),
        Column("failed", lambda arm: arm.run["all"]["failed"]),
    ]
    return table_of(columns, section.arms)


def _gains(experiment: Experiment, section: Section, varied: Sequence[str]) -> Table:
    comparison, columns = experiment.gains[section.place], _subject(section, varied)

    def over(reference: Arm) -> list[Column[Arm]]:
        gain = lambda arm: study.gain(comparison, arm, reference)  # noqa: E731
        return [
            Column(f"over {reference.name}", gain, lambda gain: points(gain.estimate)),
            Column("p", gain, lambda gain: p_value(gain.p_holm)),
        ]

    return table_of([*columns, *(c for arm in references(section, experiment.main) for c in over(arm))], section.arms)


def _main_verifier(experiment: Experiment) -> dict[str, Any] | None:
    """Score the release's verifier beside a probe without passages and constant labels, then label by label."""
    main, steps = experiment.main, experiment.steps
    if main.quality is None or main.verdicts is None or experiment.probe is None:
        return None
    quality = main.quality["verifiers"][0]
    beside: Table = [
        ("who", "error F1", "balanced accuracy of evidence types"),
        ("learned verifier", *_measures(experiment, main.verdicts)),
        ("probe without passages", _share(labelling.compute_measure(steps, experiment.probe, ERROR_F1)), NOTHING),
        ("an error, always", *_measures(experiment, labelling.repeat_label(steps, "error"))),
        (f"{CORRECT}, always", *_measures(experiment, labelling.repeat_label(steps, CORRECT))),
    ]
    labels: Table = [("label", "gold", "said", "precision", "recall", "F1")]
    for label in quality["types"]:
        scores = (_share(label[name]) for name in ("precision", "recall", "f1"))
        labels.append((label["name"], label["gold"], label["said"], *scores))
    weak = sorted(quality["types"], key=lambda label: label["f1"] or 0.0)[:_WEAK]
    return {
        "quality": quality,
        "beside": beside,
        "labels": labels,
        "margin": shares(estimate_gain(steps, main.verdicts, experiment.probe, ERROR_F1)),
        "weak": [f"{label['name']} ({_share(label['f1'])})" for label in weak],
    }


def _verifiers(experiment: Experiment, sections: Sequence[Section]) -> dict[str, Any] | None:
    """Score a block's verifiers below the release's, and compare each pair on the same steps; None without any."""
    if not sections:
        return None
    steps, sections = experiment.steps, (experiment.main, *sections)
    ids, uncompared = {step.id for step in steps}, []
    measures: Table = [("verifier", "rows", *(name.replace("_", " ") for name in _MEASURES))]
    recalls: Table = [("recall of evidence types", *EVIDENCE)]
    for section in sections:
        rows = NOTHING if section.training is None else f"{section.training['dataset']['rows']:,}"
        measures.append((section.name, rows, *(_share(section.measures.get(name)) for name in _MEASURES)))
        if section.verdicts is not None:
            by_label = (compute_recall(steps, section.verdicts, label) for label in EVIDENCE)
            recalls.append((section.name, *map(_share, by_label)))
    pairs: Table = [("one", "over the other", "error F1", "evidence types, balanced accuracy")]
    for row, column in combinations(sections, 2):
        if row.verdicts is None or column.verdicts is None or not {*row.verdicts} == {*column.verdicts} == ids:
            uncompared.append(f"{row.name} and {column.name}")
        else:
            verdicts = row.verdicts, column.verdicts
            values = [shares(estimate_gain(steps, *verdicts, measure)) for measure in (ERROR_F1, EVIDENCE_BALANCED)]
            pairs.append((row.name, column.name, *values))
    return {"measures": measures, "recalls": recalls, "pairs": pairs, "uncompared": uncompared}


def _trainings(experiment: Experiment) -> Table:
    table: Table = [("what", "rows", "steps", "tokens", "minutes", "tokens/s", "first loss", "last")]
    for name, record in experiment.trainings.items():
        run, losses = record["run"], [f"{record['curve'][index]['loss']:.4f}" for index in (0, -1)]
        speed = run["tokens"] / run["seconds"] if run["seconds"] else 0.0
        counts = [f"{number:,}" for number in (record["dataset"]["rows"], run["steps"], run["tokens"])]
        table.append((name, *counts, f"{run['seconds'] / 60:.1f}", f"{speed:,.0f}", *losses))
    return table


def _measures(experiment: Experiment, verdicts: Verdicts) -> list[str]:
    measures = (ERROR_F1, EVIDENCE_BALANCED)
    return [_share(labelling.compute_measure(experiment.steps, verdicts, measure)) for measure in measures]


def _share(value: float | None) -> str:
    return NOTHING if value is None or math.isnan(value) else f"{value:.3f}"


POINTS, LEVEL, F1_MARGIN = 0.05, 0.01, 0.10
"""What the claims require: a gain in exact match, its p, a margin in F1 (shares from 0 to 1)."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that the experiment tests, and its measurement."""

    text: str
    measured: str
    holds: bool | None
    """None if it was not measured."""

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "**does not hold**", None: "not measured"}[self.holds]


def check_claims(experiment: Experiment) -> Iterator[Claim]:
    """Yield the claims, in the page's order."""
    learned = find_arm(experiment.main.arms, study.LEARNED)
    assert learned is not None
    for name, text, least, level in (
        (study.PLAIN, "at least 5 points of EM above no verification", POINTS, LEVEL),
        (study.CHANCE, "above one that rejects as often by chance", 0.0, 0.05),
    ):
        arm = find_arm(experiment.main.arms, name)
        gain = study.gain(experiment.gains[experiment.main.place], learned, arm) if arm else None
        text = f"SAFE with the learned verifier is {text} (p < {level})"
        if gain is None:
            yield Claim(text, NOTHING, None)
        else:
            holds = gain.estimate.value >= least and gain.estimate.value > 0 and gain.p < level
            yield Claim(text, f"{points(gain.estimate)}, p {p_value(gain.p)}", holds)
    text = f"its error F1 is {F1_MARGIN:.2f} or more above that of a probe without passages"
    if experiment.probe is None or experiment.main.verdicts is None:
        yield Claim(text, NOTHING, None)
    else:
        margin = estimate_gain(experiment.steps, experiment.main.verdicts, experiment.probe, ERROR_F1)
        yield Claim(text, shares(margin), margin.value >= F1_MARGIN)


def points(gain: Estimate) -> str:
    """Render a difference of shares with its interval, in points.

    >>> points(Estimate(0.083, 0.02, 0.15))
    '+8.3 [+2.0, +15.0]'
    """
    return f"{signed(gain.value)} [{signed(gain.low)}, {signed(gain.high)}]"


def shares(gain: Estimate) -> str:
    """Render a difference of shares with its interval, as shares.

    >>> shares(Estimate(0.083, -0.02, 0.15))
    '+0.083 [-0.020, +0.150]'
    """
    return NOTHING if math.isnan(gain.value) else f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
