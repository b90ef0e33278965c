"""The card of a proposer of relation paths: README of ``dp-BENCHMARK-<base>``, from its records.

What it tells stands in ``training.json`` of each stage of its training and ``adapter_config.json``
(as ``scripts.train_paths`` writes them), the statistics of the set that it learnt, and
``results.json`` of the release's evaluations (``scripts.evaluate_deliberation``). A figure that one
of them lacks is an error, never a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.base_model import Base, License, adapter_header, check_config
from cards.cards import Record
from cards.deliberation import METRICS, Deliberation, eval_results, read_deliberations
from cards.pages import fill, headed, hub_id, line
from cards.paths import MEANINGS
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import known_version, proposer_repo

_NEITHER: Mapping[str, Any] = {"negatives": [], "paths": None, "rows": None}
"""Filters of a recipe that leave nothing out."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the training: what its ``training.json`` says."""

    training: Record

    @property
    def name(self) -> str:
        """Its method as people write it."""
        return str(self.training["recipe"]["method"]).upper()

    @property
    def minutes(self) -> float:
        """How long it took."""
        return float(self.training["run"]["seconds"]) / 60

    @property
    def filters(self) -> dict[str, Any]:
        """Filters that left something out."""
        said = {**_NEITHER, **self.training["recipe"]["filters"]}
        return {name: value for name, value in said.items() if value != _NEITHER.get(name)}

    @property
    def measured(self) -> list[tuple[str, float, float]]:
        """What was measured of held-out rows, before and after: the loss, a margin, and so on."""
        held = self.training["held_out"]
        names = [name.removesuffix("_before") for name in held if name.endswith("_before")]
        found = [(name, held[f"{name}_before"], held[f"{name}_after"]) for name in names]
        return [one for one in found if None not in one]


@dataclass(frozen=True, slots=True)
class ProposerCard:
    """All that the README says beside what stands in the records."""

    stages: Sequence[Stage]
    """In their order; the last one made what is published."""
    config: Record
    version: str
    base: Base
    license: License | None
    paths: Record
    evaluations: Sequence[Deliberation]

    @property
    def name(self) -> str:
        """What its repo is called."""
        return proposer_repo(self.training["dataset"]["name"], self.base.name)

    @property
    def training(self) -> Record:
        """Of what is published."""
        return self.stages[-1].training

    @property
    def type(self) -> str:
        """The sort of adapter as people write it."""
        written = self.config["peft_type"]
        return "LoRA" if written == "LORA" else str(written)

    @property
    def by_template(self) -> bool:
        """Whether what was held out shares no template with what was learnt."""
        return bool(self.training["recipe"]["splits"] == "template")

    @property
    def synthetic(self) -> bool:
        """Whether no question comes from a real benchmark."""
        return all(source["synthetic"] for source in self.paths["sources"])

    @property
    def minutes(self) -> float:
        """Of all stages."""
        return sum(stage.minutes for stage in self.stages)


def proposer(
    stages: Sequence[Record],
    paths: Record,
    *,
    config: Record,
    version: str,
    license: License | None = None,
    results: Mapping[str, Record] | None = None,
    weights: str = "",
) -> str:
    """README of the adapter.

    Args:
        stages: what ``training.json`` of each stage holds, that of the published adapter last.
        paths: what ``statistics/paths.json`` of the set that was learnt holds.
        config: what ``adapter_config.json`` of the published adapter holds.
        version: of the release, ``vMAJOR.MINOR.PATCH``.
        license: the base model's; None where it is not known, and the header says ``other``.
        results: what ``results.json`` of its evaluations holds, by the folder of each.
        weights: how these name the adapter, ``NAME@DIGEST``.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for records of different runs.
    """
    known_version(version)
    evaluations = read_deliberations(results or {}, weights)
    found = [Stage(one) for one in stages]
    last = found[-1].training
    base = Base.read(last)
    check_config(config, base, last["recipe"])
    for stage in found:
        _check(stage.training, last, paths)
    card = ProposerCard(found, config, version, base, license, paths, evaluations)
    return headed(_metadata(card), fill("proposer.md.jinja", card=card, meanings=MEANINGS))


def _check(training: Record, last: Record, paths: Record) -> None:
    """Raises ``UserError`` for records of different runs."""
    told = (
        ("base_model", training["base_model"]["revision"], last["base_model"]["revision"]),
        ("splits", training["recipe"]["splits"], last["recipe"]["splits"]),
        ("version of the set", training["dataset"]["version"], paths["version"]),
    )
    for what, one, other in told:
        if one != other:
            raise UserError(
                f"training.json of {training['recipe']['method']} says {what} {one!r}, but it is "
                f"{other!r}: they are of different runs"
            )


def _metadata(card: ProposerCard) -> Any:
    from huggingface_hub import ModelCardData

    tags = [card.type.lower(), "knowledge-graph", "multi-hop-question-answering", "relation-paths"]
    tags += ["trl", *(stage.name.lower() for stage in card.stages)]
    tags += ["synthetic"] if card.synthetic else []
    tags += ["simulated"] if card.paths["simulated"] else []
    named = hub_id(card.training["dataset"]["name"])
    extra, scores = (dict[str, Any](), eval_results(card.evaluations, card.training["dataset"]["name"]))
    if scores:
        extra = {"eval_results": scores, "model_name": card.name, "metrics": list(METRICS)}
    return ModelCardData(
        **adapter_header(card.base, card.license, card.config),
        datasets=[named] if named else None,
        tags=[line(tag) for tag in tags],
        **extra,
    )
