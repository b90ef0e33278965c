"""The card of the verifier adapter: README of ``safe-verifier-<base>``, from the run's own records.

What it tells stands in ``training.json`` and ``adapter_config.json`` (as ``scripts.train_verifier``
writes them), ``verifier_quality.json`` (``scripts.evaluate_verifier``) and the statistics of the
verifier set. A figure that one of them lacks is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cards.base_model import Base, License
from cards.cards import SourceCard, sources_of
from cards.pages import fill, headed, hub_id, line
from cards.quality import Quality, eval_results, read_quality
from safe_stepwise.errors import UserError
from safe_stepwise.store.measures import MEASURES
from safe_stepwise.store.names import adapter_repo, known_version

_TASKS = {"CAUSAL_LM": "text-generation"}
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM's ``--max-lora-rank`` can be."""
_UNFILTERED: Mapping[str, Any] = {
    "drop_category": None,
    "feedback": "full",
    "origins": [],
    "rows": None,
}


@dataclass(frozen=True, slots=True)
class Lora:
    """What ``adapter_config.json`` says; ``type`` in capitals, as peft has it."""

    type: str
    task: str
    rank: int
    alpha: float
    dropout: float
    modules: tuple[str, ...]

    @property
    def title(self) -> str:
        """The type as people write it."""
        return "LoRA" if self.type == "LORA" else self.type

    @property
    def served_rank(self) -> int:
        """The least rank that vLLM can be told to make room for."""
        return next((rank for rank in _RANKS if rank >= self.rank), self.rank)


@dataclass(frozen=True, slots=True)
class Data:
    """The rows that were learnt; ``published`` is the dataset's id on the Hub."""

    name: str
    published: str | None
    revision: str | None
    version: str | None
    teacher: str | None
    simulated: bool | None
    sha256: str
    rows: int
    dropped: int
    plus: tuple[Mapping[str, Any], ...]
    """Further sets: name, revision, rows, whether simulated, whether of unverifiable questions."""
    filters: Mapping[str, Any]
    """The recipe's filters that left something out."""


@dataclass(frozen=True, slots=True)
class Run:
    """What training did and took. Losses are means over learnt tokens."""

    first: tuple[int, float]
    """Step and loss."""
    last: tuple[int, float]
    held_out: int
    loss_before: float | None
    loss_after: float | None
    tokens: int
    learnt: int
    longest: int
    limit: int
    steps: int
    device: str
    devices: int
    dtype: str
    accumulation: int
    seconds: float
    seconds_per_step: float
    memory: int
    """Bytes at most."""
    resumed_from: int | None


@dataclass(frozen=True, slots=True)
class Optimizer:
    """What steps were made with; ``clipping`` is of the gradient's norm."""

    name: str
    betas: tuple[float, ...]
    epsilon: float
    clipping: float
    schedule: str


@dataclass(frozen=True, slots=True)
class AdapterCard:
    """All that the README says."""

    name: str
    version: str
    base: Base
    license: License | None
    lora: Lora
    recipe: Mapping[str, Any]
    optimizer: Optimizer
    data: Data
    run: Run
    prompt: str
    weights: str
    weights_dtype: str
    libraries: Mapping[str, str]
    quality: Quality | None
    sources: tuple[SourceCard, ...]
    origins: Mapping[str, int]
    """Rows of the set's train split by origin, empty where its statistics are not known."""
    makes_believe: bool
    """Whether any label, step or verdict came from something that only plays a model."""

    @property
    def synthetic(self) -> bool:
        """Whether it is known that no row comes from a real benchmark."""
        # Of the sets of plus no sources are known.
        known = bool(self.sources) and not self.data.plus
        return known and all(source.synthetic for source in self.sources)


def adapter(
    training: Mapping[str, Any],
    quality: Mapping[str, Any] | None,
    *,
    config: Mapping[str, Any],
    version: str,
    license: License | None = None,
    steps: Mapping[str, Any] | None = None,
    published: str | None = None,
) -> str:
    """README of the adapter.

    Args:
        training: what ``training.json`` holds.
        quality: what ``verifier_quality.json`` holds, None if quality was not measured.
        config: what ``adapter_config.json`` holds.
        version: of the release, ``vMAJOR.MINOR.PATCH``.
        license: the base model's; None where it is not known, and the header says ``other``.
        steps: ``statistics/verifier_steps.json`` of the set it was trained on, for the licences and
            citations of its sources.
        published: where that set is on the Hub, ``NAMESPACE/NAME@TAG``, if not where it was read.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for records of different runs
    and for results that may go on no card.
    """
    card = adapter_card(training, quality, config, version, license, steps, published)
    return headed(_metadata(card), fill("adapter.md.jinja", card=card, measures=MEASURES))


def adapter_card(
    training: Mapping[str, Any],
    quality: Mapping[str, Any] | None,
    config: Mapping[str, Any],
    version: str,
    license: License | None,
    steps: Mapping[str, Any] | None,
    published: str | None,
) -> AdapterCard:
    """The card of one training; arguments and errors as for `adapter`."""
    known_version(version)
    if steps is not None and steps["version"] != training["dataset"]["version"]:
        raise UserError(
            f"trained on {training['dataset']['version']} of the verifier set, but its statistics "
            f"are of {steps['version']}"
        )
    recipe, base = training["recipe"], Base.read(training)
    data = _data(training, published)
    measured = None if quality is None else read_quality(quality)
    builds = () if steps is None else steps["verified"]
    played = [data.simulated, *(build["simulated"] for build in builds)]
    played += [one["simulated"] for one in data.plus]
    played += [] if measured is None else [measured.simulated]
    return AdapterCard(
        name=adapter_repo(base.name),
        version=version,
        base=base,
        license=license,
        lora=_lora(config, recipe, base),
        recipe=recipe,
        optimizer=_optimizer(training["optimizer"]),
        data=data,
        run=_run(training),
        prompt=training["prompt_sha256"],
        weights=training["adapter"]["sha256"],
        weights_dtype=training["adapter"]["dtype"],
        libraries=training["libraries"],
        quality=measured,
        sources=sources_of(builds),
        origins={} if steps is None else steps["origins"]["train"],
        makes_believe=any(played),
    )


def _lora(config: Mapping[str, Any], recipe: Mapping[str, Any], base: Base) -> Lora:
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
    return Lora(
        type=config["peft_type"],
        task=config["task_type"],
        rank=config["r"],
        alpha=config["lora_alpha"],
        dropout=config["lora_dropout"],
        modules=tuple(sorted(config["target_modules"])),
    )


def _optimizer(told: Mapping[str, Any]) -> Optimizer:
    return Optimizer(
        name=told["name"],
        betas=tuple(told["betas"]),
        epsilon=told["epsilon"],
        clipping=told["clipping"],
        schedule=told["schedule"],
    )


def _data(training: Mapping[str, Any], published: str | None) -> Data:
    data, filters = training["dataset"], training["recipe"]["filters"]
    name, _, revision = (published or data["name"]).partition("@")
    if published is not None and (hub_id(name) is None or not revision):
        raise UserError(f"{published!r} is no dataset of the Hub: write NAMESPACE/NAME@TAG")
    return Data(
        name=data["name"],
        published=hub_id(name),
        revision=revision or data["revision"],
        version=data["version"],
        teacher=data["teacher"],
        simulated=data["simulated"],
        sha256=data["sha256"],
        rows=data["rows"],
        dropped=len(data["dropped_as_long"]),
        plus=tuple(data["plus"]),
        filters={
            name: filters[name]
            for name in {**_UNFILTERED, **filters}
            if name not in _UNFILTERED or filters[name] != _UNFILTERED[name]
        },
    )


def _run(training: Mapping[str, Any]) -> Run:
    run, tokens, held, curve = (training[k] for k in ("run", "tokens", "held_out", "curve"))
    if not curve:
        raise KeyError("curve")
    return Run(
        first=(curve[0]["step"], curve[0]["loss"]),
        last=(curve[-1]["step"], curve[-1]["loss"]),
        held_out=held["rows"],
        loss_before=held["loss_before"],
        loss_after=held["loss_after"],
        tokens=run["tokens"],
        learnt=tokens["completion"],
        longest=tokens["longest"],
        limit=tokens["limit"],
        steps=run["steps"],
        device=run["device"],
        devices=run["devices"],
        dtype=run["dtype"],
        accumulation=run["accumulation"],
        seconds=run["seconds"],
        seconds_per_step=run["seconds_per_step"],
        memory=run["peak_memory_bytes"],
        resumed_from=run["resumed_from_step"],
    )


def _metadata(card: AdapterCard) -> Any:
    from huggingface_hub import ModelCardData

    tags = [card.lora.type.lower(), "multi-hop-question-answering", "verification", "verifier"]
    tags += ["synthetic"] if any(source.synthetic for source in card.sources) else []
    tags += ["simulated"] if card.makes_believe else []
    quality, base, extra = card.quality, card.base.repo, dict[str, Any]()
    if quality is not None:
        extra["eval_results"] = eval_results(quality, *_measured_on(quality, card.data))
        extra["model_name"] = card.name
        extra["metrics"] = sorted({one.metric_type for one in extra["eval_results"]})
    if card.license is None:
        extra |= {"license": "other", "license_name": "of-the-base-model"}
        extra["license_link"] = f"https://huggingface.co/{base}" if base else None
    else:
        extra["license"] = card.license.id
        extra |= {"license_name": card.license.name, "license_link": card.license.link}
    return ModelCardData(
        language="en",
        base_model=base,
        base_model_relation="adapter" if base else None,
        library_name="peft",
        pipeline_tag=_TASKS.get(card.lora.task),
        datasets=[card.data.published] if card.data.published else None,
        tags=[line(tag) for tag in tags],
        **extra,
    )


def _measured_on(quality: Quality, data: Data) -> tuple[str, str | None]:
    """Dataset and revision that the test rows are of, where they are published if that is known."""
    same = data.version is not None and quality.version == data.version
    if hub_id(quality.dataset) is None and data.published and same:
        return data.published, data.revision
    return line(quality.dataset), quality.revision
