"""Model cards: README of a verifier, of what writes steps, and of a proposer of relation paths.

What they tell stands in ``training.json`` and ``adapter_config.json`` (as ``scripts.train_verifier``,
``train_generator`` and ``train_paths`` write them), ``verifier_quality.json``
(``scripts.evaluate_verifier``), ``results.json`` of the release's evaluations and the statistics of
the set that was learnt. A figure that one of them lacks is an error, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cards.datasets import sources_of
from cards.pages import Record, fill, headed, hub_id, line
from cards.pages import metadata as header
from cards.scores import (
    METRICS,
    PATH_METRICS,
    Deliberation,
    Loop,
    Quality,
    loop_eval_results,
    read_deliberations,
    read_loops,
)
from safe_stepwise.engines.weights import PACKAGE, Model, find_model
from safe_stepwise.errors import UserError
from safe_stepwise.store import names
from safe_stepwise.store.agreement import MEASURES, title_of

_SPDX = frozenset(("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0"))
"""Identifiers that packages use and the Hub has, but for capitals."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_UNFILTERED: Record = {
    "drop_category": None,
    "drop_from_prompt": False,
    "feedback": "full",
    "origins": [],
    "rows": None,
    "tasks": [],
    "twins": True,
}
"""Filters of a verifier's recipe that leave nothing out."""
_ALL_PATHS: Record = {"negatives": [], "paths": None, "rows": None}  # likewise of a proposer's


@dataclass(frozen=True, slots=True)
class License:
    """The base model's licence: a Hub licence id, and who says so.

    ``name`` and ``link`` are those of a licence that the Hub calls ``other``.
    """

    id: str
    said_by: str
    name: str | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UserError(f"licence {self.id!r} is no id of the Hub, such as apache-2.0")


@dataclass(frozen=True, slots=True)
class Base:
    """The model that was tuned, or that an adapter is for."""

    name: str
    revision: str
    on_hub: bool
    """Whether it was trained on as the Hub has it, at the commit ``revision``."""
    source: str
    """Where else it came from: ``folder``, another repo of the Hub, or in words."""

    @classmethod
    def read(cls, training: Record) -> Base:
        """The one that ``training.json`` names; raises ``KeyError`` for what it does not say."""
        model, recipe = training["base_model"], training["recipe"]
        renamed = recipe["base_model_name"] is not None and model["on_hub"]
        source = recipe["base_model"] if renamed else model["source"]
        return cls(model["name"], model["revision"], model["on_hub"] and not renamed, source)

    @property
    def repo(self) -> str | None:
        """Its id on the Hub, None of one that is known by a folder's name only."""
        return hub_id(self.name)

    @property
    def commit(self) -> str | None:
        """The commit that it was trained on, if it came from the Hub; else there is a digest."""
        return self.revision if self.on_hub and _COMMIT.fullmatch(self.revision) else None


@dataclass(frozen=True, slots=True)
class Data:
    """Where the rows are that were learnt; ``published`` is the dataset's id on the Hub."""

    published: str | None
    revision: str | None
    filters: Record
    """The recipe's filters that left something out."""

    @classmethod
    def read(cls, training: Record, published: str | None) -> Data:
        """Those of ``training.json``; raises ``UserError`` where ``published`` is no dataset's place."""
        data = training["dataset"]
        name, _, revision = (published or data["name"]).partition("@")
        if published is not None and (hub_id(name) is None or not revision):
            raise UserError(f"{published!r} is no dataset of the Hub: write NAMESPACE/NAME@TAG")
        return cls(hub_id(name), revision or data["revision"], filters_of(training, _UNFILTERED))


def filters_of(training: Record, neutral: Record) -> dict[str, Any]:
    """The recipe's filters that left something out, in the order of the neutral ones."""
    # Each has those of its own kind, and adapters of before have not all.
    filters = {**neutral, **training["recipe"]["filters"]}
    return {name: value for name, value in filters.items() if name not in neutral or value != neutral[name]}


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the README of a verifier or a generator says beside what stands in the records."""

    training: Record
    config: Record | None
    """``adapter_config.json``; None of a model of which all weights were tuned."""
    version: str
    base: Base
    license: License | None
    data: Data
    quality: Quality | None
    loops: Sequence[Loop]
    """Evaluations in which it took part."""
    sources: tuple[Record, ...]
    origins: Mapping[str, int]
    """Rows of the set's train split by origin, empty where its statistics are not known."""
    simulated: bool
    """Whether any label, step or verdict came from something that only plays a model."""

    @property
    def kind(self) -> str:
        """What the card calls it."""
        return "model" if self.config is None else "adapter"

    @property
    def prompts(self) -> Mapping[str, str]:
        """What it is asked by, as far as that is not the paper's."""
        prompts: Mapping[str, str] = self.training.get("prompts", {})
        return prompts

    @property
    def is_generator(self) -> bool:
        """Whether it writes steps, and does not judge them."""
        return self.config is None and self.prompts.get("role") == "generator"

    @property
    def name(self) -> str:
        """What its repo is called."""
        return (names.generator_repo if self.is_generator else names.adapter_repo)(self.base.name)

    @property
    def told(self) -> list[Loop]:
        """Those evaluations that give its scores."""
        return [loop for loop in self.loops if loop.is_told]

    @property
    def synthetic(self) -> bool:
        """Whether it is known that no row comes from a real benchmark."""
        # Of the sets of plus no sources are known.
        known = bool(self.sources) and not self.training["dataset"]["plus"]
        return known and all(source["source"]["synthetic"] for source in self.sources)

    @property
    def tags(self) -> list[str]:
        """Those of the header."""
        if self.config is None:
            tags = ["multi-hop-question-answering", "step-by-step", "generator" if self.is_generator else "verifier"]
        else:
            tags = [self.config["peft_type"].lower(), "multi-hop-question-answering", "verification", "verifier"]
        tags += ["synthetic"] if any(source["source"]["synthetic"] for source in self.sources) else []
        return [*tags, "simulated"] if self.simulated else tags

    def eval_results(self) -> list[Any]:
        """Its scores as `huggingface_hub.EvalResult`."""
        results = loop_eval_results(self.told, self.version)
        return results if self.quality is None else results + self.quality.eval_results(*self._measured_on())

    def _measured_on(self) -> tuple[str, str | None]:
        """Dataset and revision that the test rows are of, where they are published if that is known."""
        assert self.quality is not None
        steps, version = self.quality.steps, self.training["dataset"]["version"]
        same = version is not None and steps["version"] == version
        if hub_id(steps["name"]) is None and self.data.published and same:
            return self.data.published, self.data.revision
        return line(steps["name"]), steps["revision"]


def model_card(
    training: Record,
    quality: Record | None = None,
    *,
    version: str,
    config: Record | None = None,
    license: License | None = None,
    steps: Record | None = None,
    published: str | None = None,
    loops: Mapping[str, Record] | None = None,
    weights: str = "",
    first: str = names.REPORT,
) -> str:
    """README of an adapter that verifies, or of a model that was tuned as a whole.

    Args:
        training: what ``training.json`` holds.
        quality: what ``verifier_quality.json`` holds, None if quality was not measured.
        version: of the release, ``vMAJOR.MINOR.PATCH``.
        config: what ``adapter_config.json`` holds; None of a model that was tuned as a whole.
        license: the base model's; None where it is not known, and the header says ``other``.
        steps: ``statistics/verifier_steps.json`` of the set it was trained on, for the licences and
            citations of its sources.
        published: where that set is on the Hub, ``NAMESPACE/NAME@TAG``, if not where it was read.
        loops: what ``results.json`` of evaluations holds, by the folder of each in the release.
        weights: how these name the model, ``NAME@DIGEST``; those without it are not told.
        first: the folder of the one that was made for this model.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for records of different runs
    and for results that may go on no card.
    """
    names.known_version(version)
    base = Base.read(training)
    if config is not None:
        _check_config(config, base, training["recipe"])
    elif "model" not in training:
        raise UserError("training.json is that of an adapter, which has a card of its own")
    learnt = training["dataset"]["version"]
    if steps is not None and steps["version"] != learnt:
        raise UserError(f"trained on {learnt} of the verifier set, but its statistics are of {steps['version']}")
    measured = None if quality is None else Quality.read(quality)
    builds = () if steps is None else steps["verified"]
    parts = [training["dataset"], *training["dataset"]["plus"], *builds, *([measured.steps] if measured else [])]
    simulated = [part["simulated"] for part in parts]
    card = ModelCard(
        training=training,
        config=config,
        version=version,
        base=base,
        license=license,
        data=Data.read(training, published),
        quality=measured,
        loops=read_loops(loops or {}, weights, first, "model" if config is None else "adapter"),
        sources=sources_of(builds),
        origins={} if steps is None else steps["origins"]["train"],
        simulated=any(simulated),
    )
    values = {"measures": MEASURES, "title_of": title_of, "measured_by": METRICS.values()}
    body = fill("tuned.md.jinja" if config is None else "adapter.md.jinja", card=card, **values)
    results = card.eval_results()
    metrics = sorted({result.metric_type for result in results})
    return headed(_metadata(card, card.data.published, card.tags, results, metrics), body)


@dataclass(frozen=True, slots=True)
class ProposerCard:
    """What a proposer's README says beside what stands in the records."""

    stages: Sequence[Record]
    """What ``training.json`` of each says, in their order; the last one made what is published."""
    config: Record
    version: str
    base: Base
    license: License | None
    paths: Record
    evaluations: Sequence[Deliberation]

    @property
    def name(self) -> str:
        """What its repo is called."""
        return names.proposer_repo(self.training["dataset"]["name"], self.base.name)

    @property
    def training(self) -> Record:
        """Of what is published."""
        return self.stages[-1]

    @property
    def synthetic(self) -> bool:
        """Whether no question comes from a real benchmark."""
        return all(source["synthetic"] for source in self.paths["sources"])

    @property
    def tags(self) -> list[str]:
        """Those of the header."""
        tags = [self.config["peft_type"].lower(), "knowledge-graph", "multi-hop-question-answering", "relation-paths"]
        tags += ["trl", *(str(stage["recipe"]["method"]).lower() for stage in self.stages)]
        tags += ["synthetic"] if self.synthetic else []
        return [*tags, "simulated"] if self.paths["simulated"] else tags


def proposer_card(
    stages: Sequence[Record],
    paths: Record,
    *,
    config: Record,
    version: str,
    license: License | None = None,
    results: Mapping[str, Record] | None = None,
    weights: str = "",
) -> str:
    """README of ``dp-BENCHMARK-<base>``, an adapter that proposes relation paths.

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
    names.known_version(version)
    evaluations = read_deliberations(results or {}, weights)
    last = stages[-1]
    base = Base.read(last)
    _check_config(config, base, last["recipe"])
    for training in stages:
        _check_stage(training, last, paths)
    card = ProposerCard(stages, config, version, base, license, paths, evaluations)
    learnt = last["dataset"]["name"]
    scores = [result for evaluation in evaluations for result in evaluation.eval_results(learnt)]
    body = fill("proposer.md.jinja", card=card, filters_of=partial(filters_of, neutral=_ALL_PATHS))
    return headed(_metadata(card, hub_id(learnt), card.tags, scores, list(PATH_METRICS)), body)


def _check_stage(training: Record, last: Record, paths: Record) -> None:
    """Raise ``UserError`` for records of different runs."""
    for what, stated, expected in (
        ("base_model", training["base_model"]["revision"], last["base_model"]["revision"]),
        ("splits", training["recipe"]["splits"], last["recipe"]["splits"]),
        ("version of the set", training["dataset"]["version"], paths["version"]),
    ):
        if stated != expected:
            raise UserError(
                f"training.json of {training['recipe']['method']} says {what} {stated!r}, but it is "
                f"{expected!r}: they are of different runs"
            )


def _check_config(config: Record, base: Base, recipe: Record) -> None:
    """Raise ``UserError`` for an ``adapter_config.json`` of another run than the recipe's."""
    for key, trained in (
        ("base_model_name_or_path", base.name),
        ("r", recipe["lora_rank"]),
        ("lora_alpha", recipe["lora_alpha"]),
        ("lora_dropout", recipe["lora_dropout"]),
    ):
        if config[key] != trained:
            raise UserError(
                f"adapter_config.json says {key} {config[key]!r}, training.json {trained!r}: "
                "they are of different runs"
            )


def _metadata(
    card: ModelCard | ProposerCard, dataset: str | None, tags: list[str], results: list[Any], metrics: list[str]
) -> Any:
    """The header of a card; what it says of the base model, and so of its licence, with it."""
    from huggingface_hub import ModelCardData

    base, license = card.base, card.license
    link = f"https://huggingface.co/{base.repo}" if base.repo else None
    license = license or License("other", "nobody", "of-the-base-model", link)
    text_generation = card.config is None or card.config["task_type"] == "CAUSAL_LM"
    relation = "finetune" if card.config is None else "adapter"
    measured: dict[str, Any] = {}
    if results:
        measured = {"eval_results": results, "model_name": card.name, "metrics": metrics}
    return ModelCardData(
        language="en",
        base_model=base.repo,
        base_model_relation=relation if base.repo else None,
        library_name="transformers" if card.config is None else "peft",
        pipeline_tag="text-generation" if text_generation else None,
        license=license.id,
        license_name=license.name,
        license_link=license.link,
        datasets=[dataset] if dataset else None,
        tags=[line(tag) for tag in tags],
        **measured,
    )


def license_of_base(base: str) -> License | None:
    """The base model's licence as the base model says it; None if it does not.

    ``base`` is what a recipe names: ``package:NAME``, a folder, or a model of the Hub.
    """
    if base.startswith(PACKAGE):
        return license_of_package(base.removeprefix(PACKAGE))
    model = Model.read(base)
    readme = find_model(model).folder / "README.md"
    return license_of(readme.read_text("utf-8"), model.name) if readme.is_file() else None


def license_of(readme: str, model: str) -> License | None:
    """The licence that a base model's own card names, None if it names none that is an id.

    >>> license_of("---\\nlicense: apache-2.0\\n---\\n# Qwen3", "Qwen/Qwen3-8B")
    License(id='apache-2.0', said_by='the model card of Qwen/Qwen3-8B', name=None, link=None)
    """
    stated = header(readme)
    license, name, link = (stated.get(key) for key in ("license", "license_name", "license_link"))
    if not isinstance(license, str) or not _ID.fullmatch(license):
        return None
    if isinstance(link, str) and "://" not in link:  # a file beside that card
        link = f"https://huggingface.co/{model}/blob/main/{link}" if hub_id(model) else None
    shown = [line(value) if value else None for value in (name, link)]
    return License(license, f"the model card of {model}", *shown)


def license_of_package(package: str) -> License | None:
    """The licence that an installed package with a base model in it names, None if it is no id."""
    from importlib.metadata import PackageNotFoundError, metadata, version

    try:
        stated: Any = metadata(package)
    except PackageNotFoundError:
        return None
    license = str(stated.get("License-Expression") or stated.get("License") or "").strip().lower()
    if license not in _SPDX:
        return None
    return License(license, f"the metadata of {package} {version(package)} on PyPI")
