"""The card of the verifier adapter: README of ``safe-verifier-<base>``, from the run's own records.

What it tells stands in ``training.json`` and ``adapter_config.json`` (as ``scripts.train_verifier``
writes them), ``verifier_quality.json`` (``scripts.evaluate_verifier``), ``results.json`` of the
release's evaluations (``scripts.evaluate_stepwise``) and the statistics of the verifier set. A
figure that one of them lacks is an error, never a guess.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards import loop as looping
from cards.base_model import Base, License, adapter_header, check_config
from cards.cards import Record, sources_of
from cards.loop import Loop, read_loops
from cards.pages import fill, headed, hub_id, line
from cards.quality import Quality, eval_results, read_quality
from safe_stepwise.errors import UserError
from safe_stepwise.store.measures import MEASURES, title_of
from safe_stepwise.store.names import REPORT, adapter_repo, known_version

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What vLLM's ``--max-lora-rank`` can be."""
_UNFILTERED: Record = {
    "drop_category": None,
    "drop_from_prompt": False,
    "feedback": "full",
    "origins": [],
    "rows": None,
    "tasks": [],
    "twins": True,
}


@dataclass(frozen=True, slots=True)
class Data:
    """Where the rows are that were learnt; ``published`` is the dataset's id on the Hub."""

    published: str | None
    revision: str | None
    filters: Record
    """The recipe's filters that left something out."""


@dataclass(frozen=True, slots=True)
class AdapterCard:
    """All that the README says beside what stands in the records."""

    training: Record
    config: Record
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

    kind = "adapter"

    @property
    def name(self) -> str:
        """What its repo is called."""
        return adapter_repo(self.base.name)

    @property
    def type(self) -> str:
        """The sort of adapter as people write it."""
        written = self.config["peft_type"]
        return "LoRA" if written == "LORA" else str(written)

    @property
    def told(self) -> list[Loop]:
        """Those of them that give its scores."""
        return [loop for loop in self.loops if loop.is_told]

    @property
    def served_rank(self) -> int:
        """The least rank that vLLM can be told to make room for."""
        rank: int = self.config["r"]
        return next((enough for enough in _RANKS if enough >= rank), rank)

    @property
    def twelve_labels(self) -> bool:
        """Whether it learnt to say that evidence is missing."""
        return bool(self.training["recipe"].get("incomplete_evidence"))

    @property
    def unasked(self) -> str | None:
        """The category that its prompt lacks, if it lacks one."""
        filters = self.training["recipe"]["filters"]
        return filters["drop_category"] if filters.get("drop_from_prompt") else None

    @property
    def asking(self) -> str:
        """What its request is made with, beside the step and what it is about."""
        said = ["incomplete_evidence=True"] if self.twelve_labels else []
        said += [f'dropped="{self.unasked}"'] if self.unasked else []
        return f"({', '.join(['...', *said])})" if said else ""

    @property
    def synthetic(self) -> bool:
        """Whether it is known that no row comes from a real benchmark."""
        # Of the sets of plus no sources are known.
        known = bool(self.sources) and not self.training["dataset"]["plus"]
        return known and all(source["source"]["synthetic"] for source in self.sources)


def adapter(
    training: Record,
    quality: Record | None,
    *,
    config: Record,
    version: str,
    license: License | None = None,
    steps: Record | None = None,
    published: str | None = None,
    loops: Mapping[str, Record] | None = None,
    weights: str = "",
    first: str = REPORT,
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
        loops: what ``results.json`` of evaluations holds, by the folder of each in the release.
        weights: how these name the adapter, ``NAME@DIGEST``; those without it are not told.
        first: the folder of the one that was made for this adapter.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` for records of different runs
    and for results that may go on no card.
    """
    known_version(version)
    base = Base.read(training)
    check_set(training, steps)
    check_config(config, base, training["recipe"])
    measured = None if quality is None else read_quality(quality)
    builds = () if steps is None else steps["verified"]
    made = [training["dataset"], *training["dataset"]["plus"], *builds]
    played = [one["simulated"] for one in (*made, *([measured.steps] if measured else []))]
    card = AdapterCard(
        training=training,
        config=config,
        version=version,
        base=base,
        license=license,
        data=data_of(training, published),
        quality=measured,
        loops=read_loops(loops or {}, weights, first),
        sources=sources_of(builds),
        origins={} if steps is None else steps["origins"]["train"],
        simulated=any(played),
    )
    return headed(
        _metadata(card),
        fill(
            "adapter.md.jinja", card=card, measures=MEASURES, title_of=title_of, measured_by=looping.METRICS.values()
        ),
    )


def check_set(training: Record, steps: Record | None) -> None:
    """Raise ``UserError`` for the statistics of another set than was learnt."""
    learnt = training["dataset"]["version"]
    if steps is not None and steps["version"] != learnt:
        raise UserError(f"trained on {learnt} of the verifier set, but its statistics are of {steps['version']}")


def data_of(training: Record, published: str | None) -> Data:
    data = training["dataset"]
    # Each has those of its own kind, and adapters of before have not all.
    filters = {**_UNFILTERED, **training["recipe"]["filters"]}
    name, _, revision = (published or data["name"]).partition("@")
    if published is not None and (hub_id(name) is None or not revision):
        raise UserError(f"{published!r} is no dataset of the Hub: write NAMESPACE/NAME@TAG")
    left_out = {
        name: filters[name] for name in filters if name not in _UNFILTERED or filters[name] != _UNFILTERED[name]
    }
    return Data(hub_id(name), revision or data["revision"], left_out)


def _metadata(card: AdapterCard) -> Any:
    from huggingface_hub import ModelCardData

    tags = [card.type.lower(), "multi-hop-question-answering", "verification", "verifier"]
    tags += ["synthetic"] if any(s["source"]["synthetic"] for s in card.sources) else []
    tags += ["simulated"] if card.simulated else []
    quality, extra = card.quality, dict[str, Any]()
    found = looping.eval_results(card.told, card.version)
    if quality is not None:
        found += eval_results(quality, *measured_on(quality, card.training, card.data))
    if found:
        extra = {"eval_results": found, "model_name": card.name}
        extra["metrics"] = sorted({one.metric_type for one in found})
    return ModelCardData(
        **adapter_header(card.base, card.license, card.config),
        datasets=[card.data.published] if card.data.published else None,
        tags=[line(tag) for tag in tags],
        **extra,
    )


def measured_on(quality: Quality, training: Record, data: Data) -> tuple[str, str | None]:
    """Dataset and revision that the test rows are of, where they are published if that is known."""
    steps, version = quality.steps, training["dataset"]["version"]
    same = version is not None and steps["version"] == version
    if hub_id(steps["name"]) is None and data.published and same:
        return data.published, data.revision
    return line(steps["name"]), steps["revision"]
