"""A verifier's measured quality as its card tells it, from what ``verifier_quality.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.measures import MEASURES
from safe_stepwise.store.names import STEPS, VERIFIER_STEPS

_COMPARED = ("accuracy", "macro_f1", "error_f1", "first_error_f1")
"""Measures on which a baseline that is as good gets a line of its own."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """One column of the table: the adapter, or a baseline."""

    role: str
    name: str
    simulated: bool
    rows: int
    questions: int
    erroneous: int
    correct: int
    unparsed: int
    failed: int
    measures: Mapping[str, float | None]
    intervals: Mapping[str, Sequence[float] | None]

    @property
    def title(self) -> str:
        """Its name, marked if it only plays a model."""
        marked = not self.simulated or "simulated" in self.name
        return self.name if marked else f"{self.name} (simulated)"


@dataclass(frozen=True, slots=True)
class Agreement:
    """Equal labels of the adapter and a baseline on ``rows``."""

    name: str
    rows: int
    left_out: int
    share: float | None
    kappa: float | None


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured, on which rows, beside which baselines."""

    dataset: str
    revision: str | None
    version: str | None
    split: str
    limit: int | None
    max_tokens: int
    """Of a reply; a longer one was cut, and could not be read."""
    simulated: bool
    """Whether the rows were made without a model in a model's place."""
    prompt: str
    level: float
    resamples: int
    adapter: Verifier
    baselines: tuple[Verifier, ...]
    types: tuple[Mapping[str, Any], ...]
    benchmarks: Mapping[str, Mapping[str, float | None]]
    agreement: tuple[Agreement, ...]

    @property
    def checker(self) -> bool:
        """Whether the graph checker, which chose the rows, is among the baselines."""
        return any(one.name.startswith("symbolic") for one in self.baselines)

    @property
    def spoilt(self) -> list[Verifier]:
        """Those that gave no verdict on some row."""
        return [one for one in (self.adapter, *self.baselines) if one.unparsed or one.failed]

    @property
    def not_better(self) -> list[tuple[str, str, float]]:
        """Each baseline and measure on which the adapter is not better: name, title, margin."""
        return [
            (one.title, MEASURES[name][1], margin)
            for one in self.baselines
            for name in _COMPARED
            if (margin := self.margin(one, name)) is not None and margin <= 0
        ]

    def margin(self, baseline: Verifier, measure: str) -> float | None:
        """How much the adapter has more than a baseline, None where one was not measured."""
        ours, theirs = self.adapter.measures[measure], baseline.measures[measure]
        return None if ours is None or theirs is None else ours - theirs


def read_quality(found: Mapping[str, Any]) -> Quality:
    """The quality that ``verifier_quality.json`` tells of.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for figures that may not stand
    on a card: of a verifier that is no model, or with requests that failed.
    """
    adapter, *baselines = (_verifier(entry) for entry in found["verifiers"])
    if adapter.simulated:
        raise UserError(f"{adapter.name}: simulated results go on no model card")
    if adapter.failed:
        raise UserError(
            f"{adapter.name}: {adapter.failed:,} requests failed; run evaluate_verifier again first"
        )
    steps, first = found["steps"], found["verifiers"][0]
    names = {one.role: one.title for one in baselines}
    return Quality(
        dataset=steps["name"],
        revision=steps["revision"],
        version=steps["version"],
        split=steps["split"],
        limit=steps["limit"],
        max_tokens=steps["max_tokens"],
        simulated=steps["simulated"],
        prompt=steps["prompt_sha256"],
        level=found["bootstrap"]["level"],
        resamples=found["bootstrap"]["resamples"],
        adapter=adapter,
        baselines=tuple(baselines),
        types=tuple(first["types"]),
        benchmarks=first["benchmarks"],
        agreement=tuple(
            Agreement(names[one["b"]], *(one[k] for k in ("rows", "left_out", "share", "kappa")))
            for one in found["agreement"]
            if one["a"] == adapter.role
        ),
    )


def eval_results(quality: Quality, dataset: str, revision: str | None) -> list[Any]:
    """The adapter's measures as `huggingface_hub.EvalResult`, one each; only what was measured."""
    from huggingface_hub import EvalResult

    return [
        EvalResult(
            task_type="text-classification",
            task_name="Step verification",
            dataset_type=dataset,
            dataset_name=VERIFIER_STEPS,
            dataset_config=STEPS,
            dataset_split=quality.split,
            dataset_revision=revision,
            dataset_args={"rows": quality.adapter.rows, "questions": quality.adapter.questions},
            metric_type=type_,
            metric_name=title,
            metric_value=round(value, 4),
        )
        for name, (type_, title) in MEASURES.items()
        if (value := quality.adapter.measures[name]) is not None
    ]


def _verifier(entry: Mapping[str, Any]) -> Verifier:
    return Verifier(
        role=entry["role"],
        name=entry["name"],
        simulated=entry["simulated"],
        rows=entry["rows"],
        questions=entry["questions"],
        erroneous=entry["erroneous"],
        correct=entry["correct"],
        unparsed=entry["unparsed"],
        failed=entry["failed"],
        measures={name: entry["measures"][name] for name in MEASURES},
        intervals={name: entry["intervals"][name] for name in MEASURES},
    )
