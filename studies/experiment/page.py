"""The report of an experiment: a page whose every number stands in the run's files."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from evaluators.comparison.significance import Estimate
from safe_stepwise.store import tables
from safe_stepwise.store.files import json_bytes, write_files
from safe_stepwise.store.names import LOCK, SPACE
from safe_stepwise.store.tables import NOTHING, Column, Table, p_value, percent, signed, table_of
from safe_stepwise.taxonomy import CORRECT, EVIDENCE
from studies.experiment.experiment import CHANCE, CHECKER, LEARNED, PLAIN, Arm, Experiment, Home, one_of, references
from studies.experiment.figures import arms_figure, curves_figure, retries_figure
from studies.experiment.verdicts import ERROR_F1, EVIDENCE_BALANCED, Said, always, difference, measured, recall

PAGE, FIGURES = "results.md", "results"
"""The page, and the folder beside it with its figures."""
_SHOWN = ("error_f1", "error_precision", "error_recall", "accuracy", "macro_f1", "parse_rate")
_WEAK = 3
"""How many of the labels that a verifier knows least are named."""


def write(experiment: Experiment, folder: Path, fresh: Experiment | None = None) -> Path:
    """Write page, figures and the release's lock, same experiment same bytes; the page's path.

    ``fresh`` is the same arms on other questions. Raises ``UserError`` for a folder that can't be
    written.
    """
    figures = files(experiment)
    beside = {**figures, LOCK: json_bytes(experiment.lock, sort_keys=False)}
    write_files(folder / FIGURES, beside, beside)
    write_files(folder, [PAGE], {PAGE: page(experiment, figures, fresh).encode()})
    return folder / PAGE


def files(experiment: Experiment) -> dict[str, bytes]:
    """The figures by name."""
    figures = {"arms.png": arms_figure(experiment.own.arms)}
    swept = [arm for home in experiment.blocks.get("retries", ()) for arm in home.arms]
    if len({arm.retries for arm in swept}) > 1:
        figures["retries.png"] = retries_figure(swept, references(experiment.own, experiment.own)[0])
    if trainings := experiment.trainings:
        figures["curves.png"] = curves_figure(trainings)
    return figures


def page(experiment: Experiment, figures: Mapping[str, bytes], fresh: Experiment | None = None) -> str:
    """The page as Markdown; ``figures`` are those that lie beside it."""
    ticks = re.findall("`+", experiment.example)
    return tables.fill(
        Path(__file__).parent / "templates",
        "results.md.jinja",
        experiment=experiment,
        figures=figures,
        fresh=fresh,
        lock_file=LOCK,
        left_out=[name for name in experiment.lock.get("skipped", ()) if name != SPACE],
        options=references(experiment.own, experiment.own)[1].run["options"],
        fence="`" * max(3, *(1 + len(run) for run in ["", *ticks])),
        claims=list(claims(experiment)),
        fresh_claims=list(claims(fresh)) if fresh else [],
        own=_place(experiment, experiment.own),
        fresh_own=_place(fresh, fresh.own) if fresh else None,
        checker=CHECKER,
        chance=CHANCE,
        evidence=EVIDENCE,
        verifier=_own_verifier(experiment),
        blocks=[_block(experiment, name, homes) for name, homes in experiment.blocks.items() if homes],
        trainings=_trainings(experiment),
    )


def _place(experiment: Experiment, home: Home) -> dict[str, Any]:
    """Scores of a place, and what each is over no verification and the learned verifier.

    ``title`` is its folder, empty of the release's own; ``options`` are in words those that are other than the
    release's; ``compared`` counts the pairs of arms that were compared.
    """
    values: dict[str, set[object]] = {}
    for arm in home.arms:
        if arm.name != PLAIN:
            for name, value in arm.run["options"].items():
                values.setdefault(name, set()).add(value)
    varied = [name for name, several in values.items() if len(several) > 1]
    own = references(experiment.own, experiment.own)[1].run["options"]
    fixed = {name: several.pop() for name, several in values.items() if name not in varied}
    options = "".join(f", {name}={value}" for name, value in fixed.items() if value != own.get(name))
    return {
        "home": home,
        "title": "" if home is experiment.own else home.place,
        "options": options,
        "arms": _arms(home, varied),
        "gains": _gains(experiment, home, varied),
        "compared": len(experiment.gains[home.place]) // 2,
    }


def _subject(home: Home, varied: Sequence[str]) -> list[Column[Arm]]:
    def option(name: str) -> Column[Arm]:
        # Those that make no difference to an arm are no value of it.
        return Column(name, lambda arm: NOTHING if arm.name == PLAIN else arm.run["options"].get(name, NOTHING))

    return [Column("arm", home.label), *map(option, varied)]


def _arms(home: Home, varied: Sequence[str]) -> Table:
    columns: list[Column[Arm]] = [
        *_subject(home, varied),
        Column("EM", lambda arm: (arm.em.value, (arm.em.low, arm.em.high)), tables.interval),
        Column("F1", lambda arm: arm.run["all"]["f1"], percent),
        Column("both", lambda arm: arm.both, percent),
        Column("rejected", lambda arm: arm.rejected, percent),
        Column("unread", lambda arm: arm.unread, percent),
        Column("calls", lambda arm: arm.run["all"]["calls_per_question"], tables.decimal(1)),
        Column("steps", lambda arm: arm.run["all"]["steps_per_question"], tables.decimal(1)),
        Column("failed", lambda arm: arm.run["all"]["failed"]),
    ]
    return table_of(columns, home.arms)


def _gains(experiment: Experiment, home: Home, varied: Sequence[str]) -> Table:
    """Every arm over no verification, and over the release's own learned verifier."""
    gains, columns = experiment.gains[home.place], _subject(home, varied)

    def over(reference: Arm) -> list[Column[Arm]]:
        gain = lambda arm: gains.get((arm.key, reference.key))  # noqa: E731
        return [
            Column(f"over {reference.name}", gain, lambda gain: points(gain.estimate)),
            Column("p", gain, lambda gain: p_value(gain.p_holm)),
        ]

    return table_of([*columns, *(c for arm in references(home, experiment.own) for c in over(arm))], home.arms)


def _own_verifier(experiment: Experiment) -> dict[str, Any] | None:
    """The release's own: beside who sees no passage or knows one answer, then label by label."""
    own, steps = experiment.own, experiment.steps
    if own.quality is None or own.said is None or experiment.probe is None:
        return None
    quality = own.quality["verifiers"][0]
    beside: Table = [
        ("who", "error F1", "balanced accuracy of evidence types"),
        ("learned verifier", *_measures(experiment, own.said)),
        ("probe without passages", _share(measured(steps, experiment.probe, ERROR_F1)), NOTHING),
        ("an error, always", *_measures(experiment, always(steps, "error"))),
        (f"{CORRECT}, always", *_measures(experiment, always(steps, CORRECT))),
    ]
    labels: Table = [("label", "gold", "said", "precision", "recall", "F1")]
    for label in quality["types"]:
        labels.append((label["name"], label["gold"], label["said"], *map(_share, map(label.get, _LABEL_SHARES))))
    weak = sorted(quality["types"], key=lambda label: label["f1"] or 0.0)[:_WEAK]
    return {
        "quality": quality,
        "beside": beside,
        "labels": labels,
        "margin": shares(difference(steps, own.said, experiment.probe, ERROR_F1)),
        "weak": [f"{label['name']} ({_share(label['f1'])})" for label in weak],
    }


_LABEL_SHARES = ("precision", "recall", "f1")


def _block(experiment: Experiment, name: str, homes: Sequence[Home]) -> dict[str, Any]:
    trained = [home for home in homes if home.quality is not None]
    return {
        "name": name,
        "verifiers": _verifiers(experiment, trained) if trained else None,
        "places": [_place(experiment, home) for home in homes if home.results is not None],
    }


def _verifiers(experiment: Experiment, homes: Sequence[Home]) -> dict[str, Any]:
    """Those of a block below the release's own, and each two of them on the same steps."""
    steps, homes = experiment.steps, (experiment.own, *homes)
    ids, apart = {step.id for step in steps}, []
    measures: Table = [("verifier", "rows", *(name.replace("_", " ") for name in _SHOWN))]
    recalls: Table = [("recall of evidence types", *EVIDENCE)]
    for home in homes:
        rows = NOTHING if home.training is None else f"{home.training['dataset']['rows']:,}"
        measures.append((home.name, rows, *(_share(home.measures.get(name)) for name in _SHOWN)))
        if home.said is not None:
            recalls.append((home.name, *(_share(recall(steps, home.said, label)) for label in EVIDENCE)))
    pairs: Table = [("one", "over the other", "error F1", "evidence types, balanced accuracy")]
    for first, second in combinations(homes, 2):
        if first.said is None or second.said is None or not {*first.said} == {*second.said} == ids:
            apart.append(f"{first.name} and {second.name}")
        else:
            both = first.said, second.said
            values = [shares(difference(steps, *both, measure)) for measure in (ERROR_F1, EVIDENCE_BALANCED)]
            pairs.append((first.name, second.name, *values))
    return {"measures": measures, "recalls": recalls, "pairs": pairs, "apart": apart}


def _trainings(experiment: Experiment) -> Table:
    table: Table = [("what", "rows", "steps", "tokens", "minutes", "tokens/s", "first loss", "last")]
    for name, record in experiment.trainings.items():
        run, losses = record["run"], [f"{record['curve'][at]['loss']:.4f}" for at in (0, -1)]
        speed = run["tokens"] / run["seconds"] if run["seconds"] else 0.0
        counts = [f"{number:,}" for number in (record["dataset"]["rows"], run["steps"], run["tokens"])]
        table.append((name, *counts, f"{run['seconds'] / 60:.1f}", f"{speed:,.0f}", *losses))
    return table


def _measures(experiment: Experiment, said: Said) -> list[str]:
    return [_share(measured(experiment.steps, said, measure)) for measure in (ERROR_F1, EVIDENCE_BALANCED)]


def _share(value: float | None) -> str:
    return NOTHING if value is None or math.isnan(value) else f"{value:.3f}"


POINTS, LEVEL, F1_MARGIN = 0.05, 0.01, 0.10


@dataclass(frozen=True, slots=True)
class Claim:
    """What was to be shown, and what was measured."""

    text: str
    measured: str
    holds: bool | None
    """None where it was not measured."""

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "**does not hold**", None: "not measured"}[self.holds]


def claims(experiment: Experiment) -> Iterator[Claim]:
    """All of them, in their order."""
    learned = one_of(experiment.own.arms, LEARNED)
    assert learned is not None
    for name, text, least, level in (
        (PLAIN, "at least 5 points of EM above no verification", POINTS, LEVEL),
        (CHANCE, "above one that rejects as often by chance", 0.0, 0.05),
    ):
        arm = one_of(experiment.own.arms, name)
        gain = experiment.gains[experiment.own.place].get((learned.key, arm.key)) if arm else None
        text = f"SAFE with the learned verifier is {text} (p < {level})"
        if gain is None:
            yield Claim(text, NOTHING, None)
        else:
            holds = gain.estimate.value >= least and gain.estimate.value > 0 and gain.p < level
            yield Claim(text, f"{points(gain.estimate)}, p {p_value(gain.p)}", holds)
    text = f"its error F1 is {F1_MARGIN:.2f} or more above that of a probe without passages"
    if experiment.probe is None or experiment.own.said is None:
        yield Claim(text, NOTHING, None)
    else:
        margin = difference(experiment.steps, experiment.own.said, experiment.probe, ERROR_F1)
        yield Claim(text, shares(margin), margin.value >= F1_MARGIN)


def points(gain: Estimate) -> str:
    """A difference of shares with its interval, in points.

    >>> points(Estimate(0.083, 0.02, 0.15))
    '+8.3 [+2.0, +15.0]'
    """
    return f"{signed(gain.value)} [{signed(gain.low)}, {signed(gain.high)}]"


def shares(gain: Estimate) -> str:
    """A difference of shares with its interval, as they are.

    >>> shares(Estimate(0.083, -0.02, 0.15))
    '+0.083 [-0.020, +0.150]'
    """
    return NOTHING if math.isnan(gain.value) else f"{gain.value:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]"
