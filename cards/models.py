"""Model cards: the README of a verifier, of a generator, and of a proposer of relation paths.

Their figures come from ``training.json`` and ``adapter_config.json`` (as ``scripts.train_verifier``,
``train_generator`` and ``train_paths`` write them), ``verifier_quality.json`` (``scripts.evaluate_verifier``),
``results.json`` of the release's evaluations, and the statistics of the set on which the model was trained. A figure
that one of them lacks is an error, never a guess.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.datasets import sources_of
from cards.pages import Record, add_header, fill, hub_id, line
from cards.pages import metadata as header
from cards.scores import PATH_METRICS, Quality, deliberations_of_adapter, loop_eval_results, loops_with_model
from safe_stepwise.engines.weights import PACKAGE, Model, find_model
from safe_stepwise.errors import UserError
from safe_stepwise.store import agreement, names

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_UNFILTERED: Record = {
    "drop_category": None,
    "drop_from_prompt": False,
    "feedback": "full",
    "labels": "filtered",
    "negatives": [],
    "origins": [],
    "paths": None,
    "rows": None,
    "tasks": [],
    "twins": True,
}
"""The filters of all kinds of recipes, with the values that leave nothing out."""


@dataclass(frozen=True, slots=True)
class License:
    """The base model's licence."""

    id: str
    """The Hub's id, such as ``apache-2.0``; ``other`` for a licence that the Hub does not list."""
    said_by: str
    """The card that states it, in words."""
    name: str | None = None
    """The name of a licence ``other``, None if it is not stated."""
    link: str | None = None
    """The address of the text of a licence ``other``, None if it is not stated."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UserError(f"licence {self.id!r} is no id of the Hub, such as apache-2.0")


@dataclass(frozen=True, slots=True)
class Base:
    """The base model of a tuned model or an adapter."""

    name: str
    revision: str
    on_hub: bool
    """Whether training used the Hub's files at the commit ``revision``."""
    source: str
    """The origin of files that are not the named model's on the Hub: ``folder``, another repo, or a package."""

    @classmethod
    def read(cls, training: Record) -> "Base":
        """Return the base model in the content of ``training.json``; raise ``KeyError`` for a missing field."""
        model, recipe = training["base_model"], training["recipe"]
        renamed = recipe["base_model_name"] is not None and model["on_hub"]
        source = recipe["base_model"] if renamed else model["source"]
        return cls(model["name"], model["revision"], model["on_hub"] and not renamed, source)

    @property
    def repo(self) -> str | None:
        """The base model's id on the Hub, None for a local folder."""
        return hub_id(self.name)

    @property
    def commit(self) -> str | None:
        """The Hub's commit of the files that training used, None if they came from elsewhere."""
        return self.revision if self.on_hub and _COMMIT.fullmatch(self.revision) else None


def filters_of(training: Record) -> dict[str, Any]:
    """Return by name the recipe's filters that left rows out."""
    filters = training["recipe"]["filters"].items()
    return {name: value for name, value in filters if name not in _UNFILTERED or value != _UNFILTERED[name]}


def model_card(
    training: Record,
    quality: Record | None = None,
    *,
    version: str,
    config: Record | None = None,
    license: License | None = None,
    steps: Record | None = None,
    loops: Mapping[str, Record] | None = None,
    weights_name: str | None = None,
    main_folder: str = names.REPORT,
) -> str:
    """Render and return the README of a verifying adapter, or of a wholly tuned verifier or generator.

    ``training``, ``quality``, ``config`` (None for a tuned model), ``steps`` and ``loops`` (by folder in the release)
    are the contents of ``training.json``, ``verifier_quality.json``, ``adapter_config.json``, the set's statistics and
    each ``results.json``. ``weights_name`` is the model's ``NAME@DIGEST`` in the loops; evaluations without it are
    left out. ``main_folder`` is that of the evaluation made for this model.

    Raises ``KeyError`` for a missing figure, ``UserError`` for results that no card may have.
    """
    names.check_version(version)
    base, learnt = Base.read(training), training["dataset"]
    measured = None if quality is None else Quality.read(quality)
    builds = () if steps is None else steps["verified"]
    datasets = [learnt, *learnt["plus"], *builds, *([measured.steps] if measured else [])]
    simulated = [dataset["simulated"] for dataset in datasets]
    # The training rows' dataset on the Hub (None if local), and the filters that left rows out.
    filters, sources = filters_of(training), sources_of(builds)
    data = {"published": hub_id(learnt["name"]), "revision": learnt["revision"], "filters": filters}
    made_up = [source["source"]["synthetic"] for source in sources]
    kind, prompts = "model" if config is None else "adapter", training.get("prompts", {})
    role = "generator" if config is None and prompts.get("role") == "generator" else "verifier"
    is_encoder = prompts.get("role") == "encoder"
    evaluations = loops_with_model(loops or {}, weights_name, main_folder, kind)
    inputs = {"training": training, "config": config, "version": version, "base": base, "license": license}
    derived = {"kind": kind, "prompts": prompts, "data": data, "quality": measured, "loops": evaluations}
    card = {
        **(inputs | derived),
        "scored_loops": [loop for loop in evaluations if loop.is_main],
        "is_generator": role == "generator",
        "is_encoder": is_encoder,
        "name": names.model_repo(names.GENERATOR_KIND if role == "generator" else names.VERIFIER_KIND, base.name),
        "sources": sources,
        "origins": {} if steps is None else steps["origins"]["train"],
        "simulated": any(simulated),
        "synthetic": bool(sources) and not learnt["plus"] and all(made_up),  # sources of ``plus`` are unknown
    }
    values = {"measures": agreement.MEASURES, "title_of": agreement.title_of}
    body = fill("tuned.md.jinja" if config is None else "adapter.md.jinja", card=card, **values)
    tags = [*["synthetic"] * any(made_up), *["simulated"] * any(simulated)]
    return add_header(_tuned_header(card, role, tags), body)


def _tuned_header(card: Record, role: str, made_of: Sequence[str]) -> Any:
    """Return the `ModelCardData` of a model in a role; ``made_of`` are the tags that its training rows add."""
    config, data, measured = card["config"], card["data"], card["quality"]
    results = loop_eval_results(card["scored_loops"], card["version"])
    if measured is not None:
        steps, learnt = measured.steps, card["training"]["dataset"]["version"]
        # The test rows are the published ones if they are of the same version.
        is_published = hub_id(steps["name"]) is None and learnt is not None and steps["version"] == learnt
        source = (data["published"], data["revision"]) if data["published"] and is_published else None
        results += measured.eval_results(*(source or (line(steps["name"]), steps["revision"])))
    metrics = sorted({result.metric_type for result in results})
    tags = ["step-by-step" if config is None else "verification", role]
    tags = [*([] if config is None else [config["peft_type"].lower()]), "multi-hop-question-answering", *tags]
    return _make_metadata(card, data["published"], [*tags, *made_of], results, metrics)


def proposer_card(
    stages: Sequence[Record],
    paths: Record,
    *,
    config: Record,
    version: str,
    license: License | None = None,
    results: Mapping[str, Record] | None = None,
    weights_name: str | None = None,
) -> str:
    """Render and return the README of ``dp-BENCHMARK-<base>``, an adapter that proposes relation paths.

    ``stages`` are the contents of each ``training.json``, the published adapter's last, ``paths`` the set's
    statistics, ``config`` the adapter's, and ``results`` those of its evaluations by folder, in which it is
    ``weights_name``. Raises ``KeyError`` for a missing figure, ``UserError`` for results of other adapters.
    """
    names.check_version(version)
    evaluations = deliberations_of_adapter(results or {}, weights_name)
    last = stages[-1]
    base = Base.read(last)
    learnt, name = last["dataset"]["name"], names.model_repo(last["dataset"]["name"], base.name)
    is_synthetic = all(source["synthetic"] for source in paths["sources"])
    card = {"name": name, "stages": stages, "training": last, "config": config, "version": version, "base": base}
    card |= {"license": license, "paths": paths, "evaluations": evaluations, "synthetic": is_synthetic}
    tags = [config["peft_type"].lower(), "knowledge-graph", "multi-hop-question-answering", "relation-paths", "trl"]
    tags += [str(stage["recipe"]["method"]).lower() for stage in stages]
    tags += [*["synthetic"] * is_synthetic, *["simulated"] * bool(paths["simulated"])]
    scores = [result for evaluation in evaluations for result in evaluation.eval_results(learnt)]
    body = fill("proposer.md.jinja", card=card, filters_of=filters_of)
    return add_header(_make_metadata(card, hub_id(learnt), tags, scores, list(PATH_METRICS)), body)


def _make_metadata(card: Record, dataset: str | None, tags: list[str], results: list[Any], metrics: list[str]) -> Any:
    """Return the `ModelCardData` of a card, with the base model and its licence."""
    from huggingface_hub import ModelCardData

    base, license, config = card["base"], card["license"], card["config"]
    link = f"https://huggingface.co/{base.repo}" if base.repo else None
    license = license or License("other", "nobody", "of-the-base-model", link)
    writes = config is None or config["task_type"] == "CAUSAL_LM"
    task = "text-generation" if writes and not card.get("is_encoder") else None  # a pipeline would not mark tokens
    relation = "finetune" if config is None else "adapter"
    measured: dict[str, Any] = {"eval_results": results, "model_name": card["name"], "metrics": metrics}
    return ModelCardData(
        language="en",
        base_model=base.repo,
        base_model_relation=relation if base.repo else None,
        library_name="transformers" if config is None else "peft",
        pipeline_tag=task,
        license=license.id,
        license_name=license.name,
        license_link=license.link,
        datasets=[dataset] if dataset else None,
        tags=[line(tag) for tag in tags],
        **(measured if results else {}),
    )


def license_of_base(base: str) -> License | None:
    """Return the licence that a recipe's base model (folder or Hub) states in its card; None if it states none."""
    if base.startswith(PACKAGE):
        return None
    model = Model.read(base)
    readme = find_model(model).folder / "README.md"
    return license_of(readme.read_text("utf-8"), model.name) if readme.is_file() else None


def license_of(readme: str, model: str) -> License | None:
    """Return the licence of a base model's card, None if the card names no licence id."""
    metadata = header(readme)
    license, name, link = (metadata.get(key) for key in ("license", "license_name", "license_link"))
    if not isinstance(license, str) or not _ID.fullmatch(license):
        return None
    if isinstance(link, str) and "://" not in link:  # a file beside that card
        link = f"https://huggingface.co/{model}/blob/main/{link}" if hub_id(model) else None
    details = [line(value) if value else None for value in (name, link)]
    return License(license, f"the model card of {model}", *details)
