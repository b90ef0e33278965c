"""Dataset cards: a frozen dataclass for what a card needs, a template for how it is said.

Every number and name comes from the statistics that a build wrote; a card that lacks one fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cards.audit import Audit
from cards.noise import examples, ratios
from cards.pages import fill, headed
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.documents import parse_yaml
from safe_stepwise.store.names import EVAL, LABELED, NOISE_LABELS, VERIFIED
from safe_stepwise.store.published import PUBLISHED

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
ANNOTATIONS = "annotations"
MEANINGS = {
    "none": "a path from the question to the answer was found in the gold passages",
    "missing_evidence": "a fact that the answer needs is in no gold passage",
    "entity_confusion": "two entities that share a name are taken for one",
    "external_knowledge": "a step needs knowledge that no passage states",
    "wrong_answer": "the passages lead to another answer than the one given",
    "ambiguous_question": "the question fits more than one answer",
    "unparsed": "not judged: the teacher failed or its output could not be read",
    "unspecified": "noise by a published list, which names no type, and the annotations see none",
}
"""What noise types say of a row."""

Record = Mapping[str, Any]
"""What a JSON file of a build says."""


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a dataset: (split, rows) for each split that has rows."""

    name: str
    splits: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """A dataset as its README tells it, whatever it holds."""

    dataset: str
    version: str
    rows: int
    builds: Sequence[Record]
    """The records of the builds (each a benchmark's split) of verified questions in it."""
    configs: tuple[Config, ...]
    dataset_info: Sequence[Record]

    @property
    def sources(self) -> tuple[Record, ...]:
        """The benchmarks it comes from."""
        return sources_of(self.builds)

    @property
    def licenses(self) -> list[str]:
        """The licences of the sources."""
        return licenses_of(self.builds)

    @property
    def simulated(self) -> bool:
        """Whether any label comes from a teacher that only plays a model."""
        return any(build["simulated"] for build in self.builds)

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return all(build["source"]["synthetic"] for build in self.builds)


def of_builds(
    dataset: str,
    tasks: list[str],
    statistics: Sequence[Record],
    dataset_info: Sequence[Record],
    audit: Audit | None = None,
) -> str:
    """README of a dataset that the given builds make up, all of one version.

    ``statistics`` are the builds' records as ``statistics/*.json`` hold them, ``dataset_info`` the
    Hub's entries of that name, one a config; ``audit`` is what people found who judged labels, if
    any did. Raises ``KeyError`` for a figure that is missing.
    """
    (version,) = {build["version"] for build in statistics}
    rows = sum(build["rows"] - build["rejected"] for build in statistics)
    configs = configs_of(dataset, statistics)
    names = {config.name for config in configs}
    annotated = {build["benchmark"] for build in statistics if build["teacher"] == ANNOTATIONS}
    listed = [build for build in statistics if build.get("listed")]
    return render(
        DatasetCard(dataset, version, rows, statistics, configs, dataset_info),
        f"{dataset.removeprefix('safe-').replace('-', '_')}.md.jinja",
        tasks,
        noise_types=NOISE_TYPES,
        meanings=MEANINGS,
        teachers={_sort_of_teacher(build) for build in statistics},
        known=[build for build in statistics if build.get("known")],
        unknown=[b for b in statistics if not b.get("known") and not b.get("listed")],
        listed=listed,
        ratios=ratios(statistics),
        examples=examples(statistics),
        measured={name: of for name, of in measured().items() if name in annotated},
        limits=list(dict.fromkeys(filter(None, (build.get("caveat") for build in statistics)))),
        endings={e for e in ("", LABELED, EVAL) for b in statistics if b["benchmark"] + e in names},
        sampled=[b for b in statistics if b["benchmark"] + EVAL in b["files"][dataset]],
        libraries=_libraries(statistics),
        audit=audit,
    )


def measured() -> dict[str, Record]:
    """How labels by annotations agree with published ones, by benchmark (``measured.yaml``)."""
    every = parse_yaml(Path(__file__).with_name("measured.yaml").read_bytes())
    return {name: {"weak": "", **of} for name, of in every.items()}


def _sort_of_teacher(build: Record) -> str:
    if build["teacher"] == ANNOTATIONS:
        return ANNOTATIONS
    if build.get("listed"):
        return PUBLISHED
    return "simulated" if build["simulated"] else "model"


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows.

    >>> size_category(2_000)
    '1K<n<10K'
    """
    return next((name for limit, name in _SIZES if rows < limit), "n>1M")


def sources_of(builds: Sequence[Record]) -> tuple[Record, ...]:
    """A build of each benchmark: it tells the licence, home page and citation of its source."""
    return tuple({build["benchmark"]: build for build in builds}.values())


def licenses_of(builds: Sequence[Record]) -> list[str]:
    """The licences of the builds' sources, as Hub licence ids, each once."""
    return sorted({build["license"] for build in builds})


def configs_of(dataset: str, statistics: Sequence[Record]) -> tuple[Config, ...]:
    """Every config of a dataset that has rows, by name, with the splits that have them."""
    splits: dict[str, list[tuple[str, int]]] = {}
    for entry in statistics:
        for name, files in entry["files"][dataset].items():
            if files["rows"]:
                splits.setdefault(name, []).append((files["split"], files["rows"]))
    return tuple(Config(name, tuple(parts)) for name, parts in sorted(splits.items()))


def _libraries(statistics: Sequence[Record]) -> dict[str, str]:
    """Versions by name; of a library that changed between builds, each of them."""
    versions: dict[str, set[str]] = {}
    for entry in statistics:
        for name, version in entry["libraries"].items():
            versions.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(found)) for name, found in sorted(versions.items())}


def render(card: DatasetCard, template: str, tasks: list[str], default: str | None = None, **values: Any) -> str:
    """A README: the YAML header, then the template with ``card`` and the further values.

    ``default`` names the config that `load_dataset` opens when it is told none.
    """
    return headed(_metadata(card, tasks, default), fill(template, card=card, **values))


def _metadata(card: DatasetCard, tasks: list[str], default: str | None) -> Any:
    from huggingface_hub import DatasetCardData

    tags = ["multi-hop-question-answering", "verification", "knowledge-graph"]
    if any(build["source"]["synthetic"] for build in card.builds):
        tags.append("synthetic")
    extra: dict[str, Any] = {"dataset_info": [dict(entry) for entry in card.dataset_info]}
    return DatasetCardData(
        language="en",
        # As a list the Hub takes several; its "other" would need a text of our own to link to.
        license=card.licenses if len(card.licenses) > 1 else card.licenses[0],
        pretty_name=card.dataset,
        task_categories=tasks,
        size_categories=[size_category(card.rows)],
        tags=tags,
        configs=[
            {
                "config_name": config.name,
                **({"default": True} if config.name == default else {}),
                "data_files": [
                    {"split": split, "path": f"data/{config.name}/{split}-*.parquet"} for split, _ in config.splits
                ],
            }
            for config in card.configs
        ],
        **extra,
    )


verified_multihop = partial(of_builds, VERIFIED, ["question-answering"])
noise_labels = partial(of_builds, NOISE_LABELS, ["question-answering", "text-classification"])
CARDS = {VERIFIED: verified_multihop, NOISE_LABELS: noise_labels}
"""What makes the card of each dataset of verified questions."""
