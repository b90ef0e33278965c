"""Dataset cards: a frozen dataclass for what a card needs, a template for how it is said.

Every number and name comes from the statistics that a build wrote; a card that lacks one fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cards.pages import fill, headed
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, VERIFIED

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MEANINGS = {
    "none": "a path from the question to the answer was found in the gold passages",
    "missing_evidence": "a fact that the answer needs is in no gold passage",
    "entity_confusion": "two entities that share a name are taken for one",
    "external_knowledge": "a step needs knowledge that no passage states",
    "wrong_answer": "the passages lead to another answer than the one given",
    "ambiguous_question": "the question fits more than one answer",
    "unparsed": "not judged: the teacher failed or its output could not be read",
}


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a dataset: (split, rows) for each split that has rows."""

    name: str
    splits: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class BuildCard:
    """One build (a benchmark's split) as a card tells it."""

    benchmark: str
    split: str
    source: str
    digest: str
    synthetic: bool
    limit: int | None
    teacher: str
    simulated: bool
    """Whether a script or annotations stood in for a model."""
    replies: Mapping[str, int]
    """A model's replies by how they could be read."""
    seed: int
    rows: int
    verified: int
    unverifiable: Mapping[str, int]
    unparsed: int
    rejected: int
    kinds: Mapping[str, tuple[int, int]]
    """Rows and unverifiable rows of each kind of question."""
    evaluation_rows: int | None
    evaluation_left_out: int | None
    caveat: str
    """What labels of its benchmark can't tell, beyond what all can't; "" if nothing."""


@dataclass(frozen=True, slots=True)
class SourceCard:
    """A benchmark that the data comes from; ``license`` is a Hub licence id."""

    name: str
    license: str
    homepage: str
    citation: str
    synthetic: bool


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """All that a dataset's README says."""

    dataset: str
    version: str
    builds: tuple[BuildCard, ...]
    sources: tuple[SourceCard, ...]
    configs: tuple[Config, ...]
    libraries: Mapping[str, str]
    dataset_info: Sequence[Mapping[str, Any]]

    @property
    def license(self) -> str:
        """The sources' licence where they agree, else ``other``."""
        return common_license(self.sources)

    @property
    def limits(self) -> list[str]:
        """What to know about the labels of the benchmarks it comes from."""
        return list(dict.fromkeys(build.caveat for build in self.builds if build.caveat))

    @property
    def simulated(self) -> bool:
        """Whether any label comes from a teacher that only plays a model."""
        return any(build.simulated for build in self.builds)

    @property
    def teachers(self) -> set[str]:
        """The sorts of its teachers: ``annotations``, ``simulated``, ``model``."""
        sort = {True: "simulated", False: "model"}
        return {b.teacher if b.teacher == "annotations" else sort[b.simulated] for b in self.builds}

    @property
    def endings(self) -> set[str]:
        """What its configs append to a benchmark's name: nothing, ``_labeled``, ``_eval``."""
        names = {config.name for config in self.configs}
        benchmarks = {build.benchmark for build in self.builds}
        return {ending for ending in ("", LABELED, EVAL) for b in benchmarks if b + ending in names}

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return all(source.synthetic for source in self.sources)

    @property
    def rows(self) -> int:
        """Rows with a label, over all builds."""
        return sum(build.rows - build.rejected for build in self.builds)


def verified_multihop(
    statistics: Sequence[Mapping[str, Any]], dataset_info: Sequence[Mapping[str, Any]]
) -> str:
    """README of ``safe-verified-multihop``.

    ``statistics`` are the builds' records as ``statistics/*.json`` hold them, ``dataset_info`` the
    Hub's entries of that name, one a config. Raises ``KeyError`` for a figure that is missing.
    """
    card = dataset_card(VERIFIED, statistics, dataset_info)
    return render(card, "verified_multihop.md.jinja", ["question-answering"])


def noise_labels(
    statistics: Sequence[Mapping[str, Any]], dataset_info: Sequence[Mapping[str, Any]]
) -> str:
    """README of ``safe-noise-labels``; arguments and errors as for `verified_multihop`."""
    card = dataset_card(NOISE_LABELS, statistics, dataset_info)
    return render(card, "noise_labels.md.jinja", ["question-answering", "text-classification"])


def dataset_card(
    dataset: str,
    statistics: Sequence[Mapping[str, Any]],
    dataset_info: Sequence[Mapping[str, Any]],
) -> DatasetCard:
    """The card of a dataset that the given builds make up, all of one version."""
    (version,) = {entry["version"] for entry in statistics}
    return DatasetCard(
        dataset=dataset,
        version=version,
        builds=tuple(_build(dataset, entry) for entry in statistics),
        sources=sources_of(statistics),
        configs=configs_of(dataset, statistics),
        libraries=_libraries(statistics),
        dataset_info=dataset_info,
    )


def common_license(sources: Sequence[SourceCard]) -> str:
    """The sources' licence where they agree, else ``other``."""
    licenses = {source.license for source in sources}
    return licenses.pop() if len(licenses) == 1 else "other"


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows.

    >>> size_category(2_000)
    '1K<n<10K'
    """
    return next((name for limit, name in _SIZES if rows < limit), "n>1M")


def _build(dataset: str, entry: Mapping[str, Any]) -> BuildCard:
    has_sample = entry["benchmark"] + EVAL in entry["files"][dataset]
    evaluation = entry["evaluation"] if has_sample else None
    return BuildCard(
        benchmark=entry["benchmark"],
        split=entry["split"],
        source=entry["source"]["name"],
        digest=entry["source"]["digest"],
        synthetic=entry["source"]["synthetic"],
        limit=entry["limit"],
        teacher=entry["teacher"],
        simulated=entry["simulated"],
        replies=entry["replies"],
        seed=entry["seed"],
        rows=entry["rows"],
        verified=entry["verified"],
        unverifiable=entry["unverifiable"],
        unparsed=entry["unparsed"],
        rejected=entry["rejected"],
        kinds={name: (k["rows"], k["unverifiable"]) for name, k in entry["kinds"].items()},
        evaluation_rows=None if evaluation is None else evaluation["rows"],
        evaluation_left_out=None if evaluation is None else evaluation["left_out"],
        caveat=entry["caveat"],
    )


def sources_of(builds: Sequence[Mapping[str, Any]]) -> tuple[SourceCard, ...]:
    """The benchmarks of the given builds, each once."""
    sources = {
        entry["benchmark"]: SourceCard(
            name=entry["benchmark"],
            license=entry["license"],
            homepage=entry["homepage"],
            citation=entry["citation"].strip(),
            synthetic=entry["source"]["synthetic"],
        )
        for entry in builds
    }
    return tuple(sources.values())


def configs_of(dataset: str, statistics: Sequence[Mapping[str, Any]]) -> tuple[Config, ...]:
    """Every config of a dataset that has rows, by name, with the splits that have them."""
    splits: dict[str, list[tuple[str, int]]] = {}
    for entry in statistics:
        for name, files in entry["files"][dataset].items():
            if files["rows"]:
                splits.setdefault(name, []).append((files["split"], files["rows"]))
    return tuple(Config(name, tuple(parts)) for name, parts in sorted(splits.items()))


def _libraries(statistics: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Versions by name; of a library that changed between builds, each of them."""
    versions: dict[str, set[str]] = {}
    for entry in statistics:
        for name, version in entry["libraries"].items():
            versions.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(found)) for name, found in sorted(versions.items())}


class Headed(Protocol):
    """What the YAML header of a README tells, whatever the dataset."""

    @property
    def dataset(self) -> str: ...
    @property
    def license(self) -> str: ...
    @property
    def sources(self) -> tuple[SourceCard, ...]: ...
    @property
    def configs(self) -> tuple[Config, ...]: ...
    @property
    def rows(self) -> int: ...
    @property
    def dataset_info(self) -> Sequence[Mapping[str, Any]]: ...


def render(card: Headed, template: str, tasks: list[str], default: str | None = None) -> str:
    """A README: the YAML header, then the template with ``card``.

    ``default`` names the config that `load_dataset` opens when it is told none.
    """
    body = fill(template, card=card, noise_types=NOISE_TYPES, meanings=_MEANINGS)
    return headed(_metadata(card, tasks, default), body)


def _metadata(card: Headed, tasks: list[str], default: str | None) -> Any:
    from huggingface_hub import DatasetCardData

    tags = ["multi-hop-question-answering", "verification", "knowledge-graph"]
    if any(source.synthetic for source in card.sources):
        tags.append("synthetic")
    several = card.license == "other"
    extra: dict[str, Any] = {"dataset_info": [dict(entry) for entry in card.dataset_info]}
    return DatasetCardData(
        language="en",
        # As a list the Hub takes several; its "other" would need a text of our own to link to.
        license=sorted({s.license for s in card.sources}) if several else card.license,
        pretty_name=card.dataset,
        task_categories=tasks,
        size_categories=[size_category(card.rows)],
        tags=tags,
        configs=[
            {
                "config_name": config.name,
                **({"default": True} if config.name == default else {}),
                "data_files": [
                    {"split": split, "path": f"data/{config.name}/{split}-*.parquet"}
                    for split, _ in config.splits
                ],
            }
            for config in card.configs
        ],
        **extra,
    )


CARDS = {VERIFIED: verified_multihop, NOISE_LABELS: noise_labels}
"""What makes the card of each dataset of verified questions."""
