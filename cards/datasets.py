"""Dataset cards: README (and figures) of a dataset, from nothing but its build's statistics.

A card that lacks a figure raises ``KeyError``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from cards.pages import Record, add_header, fill
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store import names
from safe_stepwise.store.agreement import PUBLISHED
from safe_stepwise.store.boundary import parse_yaml
from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.store.names import IDEAL, INJECTED, REFINED
from safe_stepwise.store.published_tables import PAPERS, published
from safe_stepwise.taxonomy import CATEGORIES, TAXONOMY, category

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
ANNOTATIONS = "annotations"
FULL = {("hotpotqa", "validation"): 7_405, ("musique", "train"): 19_938, ("musique", "validation"): 2_417}
"""The questions of a split, by benchmark and split, where the papers' tables have fewer."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The scores of people who judged a sample, as `audit_labels score` writes them, and their file."""

    file: str
    sha256: str
    scores: Record


@dataclass(frozen=True, slots=True)
class Config:
    """One config of a dataset: (split, rows) for each split that has rows."""

    name: str
    splits: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """The fields of any dataset's README."""

    dataset: str
    version: str
    rows: int
    builds: Sequence[Record]
    """The records of the builds (each a benchmark's split) of verified questions in it."""
    configs: tuple[Config, ...]
    dataset_info: Sequence[Record]

    @property
    def sources(self) -> tuple[Record, ...]:
        """The builds that describe its source benchmarks."""
        return sources_of(self.builds)

    @property
    def licenses(self) -> list[str]:
        """The licences of the sources."""
        return licenses_of(self.builds)

    @property
    def simulated(self) -> bool:
        """Whether any label comes from a simulated teacher."""
        return any(build["simulated"] for build in self.builds)

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return all(build["source"]["synthetic"] for build in self.builds)

    def readme(self, template: str, tasks: list[str], default: str | None = None, **values: Any) -> str:
        """Return the YAML header, then the template with this ``card`` and the further values.

        ``default`` is the config that `load_dataset` opens by default.
        """
        return add_header(self._metadata(tasks, default), fill(template, card=self, **values))

    def _metadata(self, tasks: list[str], default: str | None) -> Any:
        from huggingface_hub import DatasetCardData

        tags = ["multi-hop-question-answering", "verification", "knowledge-graph"]
        if any(build["source"]["synthetic"] for build in self.builds):
            tags.append("synthetic")
        extra: dict[str, Any] = {"dataset_info": [dict(entry) for entry in self.dataset_info]}
        return DatasetCardData(
            language="en",
            # As a list the Hub takes several; its "other" would need a text of our own to link to.
            license=self.licenses if len(self.licenses) > 1 else self.licenses[0],
            pretty_name=self.dataset,
            task_categories=tasks,
            size_categories=[size_category(self.rows)],
            tags=tags,
            configs=[
                {
                    "config_name": config.name,
                    **({"default": True} if config.name == default else {}),
                    "data_files": [
                        {"split": split, "path": f"data/{config.name}/{split}-*.parquet"} for split, _ in config.splits
                    ],
                }
                for config in self.configs
            ],
            **extra,
        )


def size_category(rows: int) -> str:
    """Return the Hub's size category of a number of rows.

    >>> size_category(2_000)
    '1K<n<10K'
    """
    return next((name for limit, name in _SIZES if rows < limit), "n>1M")


def sources_of(builds: Sequence[Record]) -> tuple[Record, ...]:
    """Return one build of each benchmark, which has licence, home page and citation of its source."""
    return tuple({build["benchmark"]: build for build in builds}.values())


def licenses_of(builds: Sequence[Record]) -> list[str]:
    """Return the licences of the builds' sources, as Hub licence ids, each once."""
    return sorted({build["license"] for build in builds})


def configs_of_builds(dataset: str, statistics: Sequence[Record]) -> tuple[Config, ...]:
    """Return every config of a dataset of verified questions that has rows, with its non-empty splits."""
    splits: dict[str, list[tuple[str, int]]] = {}
    for build in statistics:
        for name, files in build["files"][dataset].items():
            if files["rows"]:
                splits.setdefault(name, []).append((files["split"], files["rows"]))
    return tuple(Config(name, tuple(split_rows)) for name, split_rows in sorted(splits.items()))


def configs_of(files: Mapping[str, Mapping[str, Record]], default: str = "") -> tuple[Config, ...]:
    """Return every config of another dataset that has rows, the default first; ``files`` is from its statistics."""
    configs = []
    for name in sorted(files, key=lambda name: (name != default, name.startswith(names.MISSING), name)):
        rows = {split: file["rows"] for split, file in files[name].items()}
        counts = ((split, rows.get(split)) for split in (names.TRAIN, names.VALIDATION, names.TEST))
        configs.append(Config(name, tuple((split, count) for split, count in counts if count)))
    return tuple(config for config in configs if config.splits)


# Verified questions and their labels


def card_of_builds(
    dataset: str,
    tasks: list[str],
    statistics: Sequence[Record],
    dataset_info: Sequence[Record],
    audit: Audit | None = None,
) -> str:
    """Write the README of a dataset that consists of these builds, all of one version.

    ``statistics`` are the builds' records as ``statistics/*.json`` hold them, ``dataset_info`` the
    Hub's entries of that name, one a config; ``audit`` has the scores of people who judged labels,
    if any. Raises ``KeyError`` for a figure that is missing.
    """
    (version,) = {build["version"] for build in statistics}
    rows = sum(build["rows"] - build["rejected"] for build in statistics)
    configs = configs_of_builds(dataset, statistics)
    config_names = {config.name for config in configs}
    annotated = {build["benchmark"] for build in statistics if build["teacher"] == ANNOTATIONS}
    return DatasetCard(dataset, version, rows, statistics, configs, dataset_info).readme(
        f"{dataset.removeprefix('safe-').replace('-', '_')}.md.jinja",
        tasks,
        noise_types=NOISE_TYPES,
        teachers={_sort_of_teacher(build) for build in statistics},
        known=[build for build in statistics if build.get("known")],
        unknown=[b for b in statistics if not b.get("known") and not b.get("listed")],
        listed=[build for build in statistics if build.get("listed")],
        ratios=noise_ratios(statistics),
        examples=example_rows(statistics),
        measured={name: figures for name, figures in read_measured().items() if name in annotated},
        limits=list(dict.fromkeys(filter(None, (build.get("caveat") for build in statistics)))),
        endings={e for e in ("", names.LABELED, names.EVAL) for b in statistics if b["benchmark"] + e in config_names},
        sampled=[b for b in statistics if b["benchmark"] + names.EVAL in b["files"][dataset]],
        libraries=_libraries(statistics),
        audit=audit,
    )


verified_multihop = partial(card_of_builds, names.VERIFIED, ["question-answering"])
noise_labels = partial(card_of_builds, names.NOISE_LABELS, ["question-answering", "text-classification"])
CARDS = {names.VERIFIED: verified_multihop, names.NOISE_LABELS: noise_labels}
"""The function that writes the card of each dataset of verified questions."""


def read_measured() -> dict[str, Record]:
    """Read how labels by annotations agree with published ones, by benchmark (``measured.yaml``)."""
    by_benchmark = parse_yaml(Path(__file__).with_name("measured.yaml").read_bytes())
    return {name: {"weak": "", **figures} for name, figures in by_benchmark.items()}


def _sort_of_teacher(build: Record) -> str:
    if build["teacher"] == ANNOTATIONS:
        return ANNOTATIONS
    if build.get("listed"):
        return PUBLISHED
    return "simulated" if build["simulated"] else "model"


def _libraries(statistics: Sequence[Record]) -> dict[str, str]:
    """Return the libraries' versions by name; all versions of a library that changed between builds."""
    by_library: dict[str, set[str]] = {}
    for build in statistics:
        for name, version in build["libraries"].items():
            by_library.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(versions)) for name, versions in sorted(by_library.items())}


def noise_ratios(builds: Sequence[Record]) -> list[Record]:
    """Compute the noise among the judged rows of each build, beside the papers' figures of its split.

    ``percent`` is None without judged rows, ``full`` the questions of the split, if the tables have fewer.
    """
    rows: list[Record] = []
    for build in builds:
        split = build["benchmark"], build["split"]
        judged = build["rows"] - build["rejected"] - build["unparsed"]
        noise = sum(build["unverifiable"].values())
        published_rows = [row for row in published().noise_ratios if (row.benchmark, row.split) == split]
        ratio = {"judged": judged, "noise": noise, "percent": 100 * noise / judged if judged else None}
        tables = " and ".join(f"{PAPERS[row.paper]}, Table {row.table}" for row in published_rows)
        full = FULL.get(split) if published_rows else None
        rows.append({"build": build, **ratio, "printed": published_rows, "tables": tables, "full": full})
    return rows


def example_rows(builds: Sequence[Record], number: int = 3) -> list[Record]:
    """Return example rows of noise from the builds, each with its benchmark and split.

    One of each type comes first, in the order of the types, and the builds take turns.
    """
    rows_by_type: dict[str, list[Record]] = {noise: [] for noise in NOISE_TYPES}
    for build in builds:
        for row in build.get("examples") or ():
            row = {"benchmark": build["benchmark"], "split": build["split"], **row}
            rows_by_type[row["noise_type"]].append(row)
    groups = [rows for rows in rows_by_type.values() if rows]
    # Each type starts one place further on, so that no build has all the first rows.
    rotated = [rows[n % len(rows) :] + rows[: n % len(rows)] for n, rows in enumerate(groups)]
    return [row for rows in zip_longest(*rotated) for row in rows if row][:number]


# The other datasets: each function makes README.md, and figures if it has any, by file name. ``statistics`` is the
# record that the dataset's one file of ``statistics/`` holds.


def verifier_steps(statistics: Record, dataset_info: Sequence[Record], audit: Audit | None = None) -> dict[str, bytes]:
    """Make README.md of ``safe-verifier-steps`` and its images; ``audit`` is of people who judged its rows."""
    counts = {e.name: [by_type.get(e.name, {}) for by_type in statistics["types"].values()] for e in TAXONOMY}
    types = {name: by_benchmark for name, by_benchmark in counts.items() if any(by_benchmark)}
    rows = {name: sum(sum(splits.values()) for splits in by_benchmark) for name, by_benchmark in types.items()}
    readme = _readme(
        names.VERIFIER_STEPS,
        statistics,
        dataset_info,
        "verifier_steps.md.jinja",
        default=names.STEPS,
        types=types,
        category=category,
        audit=audit,
    )
    return {
        names.README: readme,
        "images/types.png": types_bars(rows),
        "images/positions.png": positions_histogram(statistics["positions"]),
    }


def path_probe(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """Make README.md of ``safe-path-probe``."""
    by_form = _accuracy_by_form(statistics["marked"])
    page = "path_probe.md.jinja"
    readme = _readme(names.PATH_PROBE, statistics, dataset_info, page, default=names.PROBED, by_form=by_form)
    return {names.README: readme}


def _readme(
    dataset: str, statistics: Record, dataset_info: Sequence[Record], template: str, default: str, **values: Any
) -> bytes:
    configs = configs_of(statistics["files"], default)
    version, rows, builds = (statistics[name] for name in ("version", "rows", "verified"))
    card = DatasetCard(dataset, version, rows, builds, configs, dataset_info)
    return card.readme(template, ["text-classification"], default, record=statistics, **values).encode()


def _accuracy_by_form(marked: Mapping[str, Record]) -> float | None:
    """Return the balanced accuracy of judging by a path's form alone; None where a label has no rows."""
    valid = marked.get("valid", {"rows": 0, "marked": 0})
    wrong = [counts for kind, counts in marked.items() if kind != "valid"]
    rows = sum(counts["rows"] for counts in wrong)
    if not rows or not valid["rows"]:
        return None
    passed = 1 - valid["marked"] / valid["rows"]
    return float(passed + sum(counts["marked"] for counts in wrong) / rows) / 2


def paths(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """Make README.md of a set of relation paths."""
    builds = [{**statistics, "source": source} for source in statistics["sources"]]
    configs = configs_of(statistics["files"])
    rows = sum(rows for _, rows in next(c.splits for c in configs if c.name == names.PATHS))
    dataset = names.paths_set(statistics["benchmark"])
    card = DatasetCard(dataset, statistics["version"], rows, builds, configs, dataset_info)
    tasks = ["question-answering"]
    return {names.README: card.readme("paths.md.jinja", tasks, names.PROMPT_COMPLETION, record=statistics).encode()}


ORIGIN_COLORS = {IDEAL: "#bbbbbb", INJECTED: "#4477aa", REFINED: "#ee7733"}


def types_bars(types: Mapping[str, int]) -> bytes:
    """Draw a bar for each error type, coloured by category; ``types`` has rows by type."""
    counts = [(e.name, types[e.name]) for e in TAXONOMY if types.get(e.name)]
    counts.sort(key=lambda item: CATEGORIES.index(category(item[0])))
    total = sum(number for _, number in counts)

    def draw(axes: Any) -> None:
        for kind in dict.fromkeys(category(name) for name, _ in counts):
            places = [n for n, (name, _) in enumerate(counts) if category(name) == kind]
            rows = [counts[n][1] for n in places]
            axes.barh(places, rows, 0.75, color=COLORS[kind], label=f"{kind}: {sum(rows):,}")
        for n, (_, number) in enumerate(counts):
            share = f" {number:,} ({100 * number / total:.1f}%)"
            axes.text(number, n, share, va="center", fontsize=8)
        axes.set_yticks(range(len(counts)), [name for name, _ in counts], fontsize=9)
        axes.invert_yaxis()
        axes.margins(x=0.2)
        axes.set_xlabel("rows")
        axes.set_title(f"{total:,} steps by error type")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))

    return png(lambda figure: draw(figure.add_subplot()), (8.0, 1.2 + 0.32 * len(counts)))


def positions_histogram(positions: Mapping[str, Mapping[str, int]]) -> bytes:
    """Draw rows by a step's position, stacked by origin; ``positions`` has counts by origin for each."""
    numbers = sorted(map(int, positions))

    def draw(axes: Any) -> None:
        bottom = [0] * len(numbers)
        for origin, color in ORIGIN_COLORS.items():
            heights = [positions[str(n)].get(origin, 0) for n in numbers]
            if any(heights):
                axes.bar(numbers, heights, bottom=bottom, label=origin, color=color, width=0.8)
            bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
        axes.set_xticks(numbers)
        axes.set_xlabel("position of the step")
        axes.set_ylabel("rows")
        axes.set_ylim(0, math.ceil(max(bottom, default=1) * 1.08))
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)

    return png(lambda figure: draw(figure.add_subplot()), (7.2, 3.6))
