"""A verifier's measured quality as its card tells it, from what ``verifier_quality.json`` holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store.measures import MEASURES, title_of
from safe_stepwise.store.names import STEPS, VERIFIER_STEPS

_COMPARED = ("accuracy", "macro_f1", "error_f1", "first_error_f1")
"""Measures on which a baseline that is as good gets a line of its own."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What was measured, on which rows, beside which baselines: parts of the file as they stand."""

    steps: Mapping[str, Any]
    """The rows: of which dataset, asked and answered how."""
    bootstrap: Mapping[str, Any]
    adapter: Mapping[str, Any]
    baselines: Sequence[Mapping[str, Any]]
    agreement: Sequence[tuple[str, Mapping[str, Any]]]
    """Titles of baselines, and how far their labels are equal to the adapter's."""

    @property
    def checker(self) -> bool:
        """Whether the graph checker, which chose the rows, is among the baselines."""
        return any(one["name"].startswith("symbolic") for one in self.baselines)

    @property
    def spoilt(self) -> list[Mapping[str, Any]]:
        """Those that gave no verdict on some row."""
        return [one for one in (self.adapter, *self.baselines) if one["unparsed"] or one["failed"]]

    @property
    def not_better(self) -> list[tuple[str, str, float]]:
        """Each baseline and measure on which the adapter is not better: name, title, margin."""
        return [
            (title_of(one), MEASURES[name][1], margin)
            for one in self.baselines
            for name in _COMPARED
            if (margin := self.margin(one, name)) is not None and margin <= 0
        ]

    def margin(self, baseline: Mapping[str, Any], measure: str) -> float | None:
        """How much the adapter has more than a baseline, None where one was not measured."""
        ours, theirs = self.adapter["measures"][measure], baseline["measures"][measure]
        return None if ours is None or theirs is None else ours - theirs


def read_quality(found: Mapping[str, Any]) -> Quality:
    """The quality that ``verifier_quality.json`` tells of.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for figures that may not stand
    on a card: of a verifier that is no model, or with requests that failed.
    """
    adapter, *baselines = found["verifiers"]
    if adapter["simulated"]:
        raise UserError(f"{adapter['name']}: simulated results go on no model card")
    if adapter["failed"]:
        raise UserError(f"{adapter['name']}: {adapter['failed']:,} requests failed; run evaluate_verifier again first")
    names = {one["role"]: title_of(one) for one in baselines}
    pairs = [(names[one["b"]], one) for one in found["agreement"] if one["a"] == adapter["role"]]
    return Quality(found["steps"], found["bootstrap"], adapter, baselines, pairs)


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
            dataset_split=quality.steps["split"],
            dataset_revision=revision,
            dataset_args={name: quality.adapter[name] for name in ("rows", "questions")},
            metric_type=type_,
            metric_name=name,
            metric_value=round(value, 4),
        )
        for measure, (type_, name) in MEASURES.items()
        if (value := quality.adapter["measures"][measure]) is not None
    ]
