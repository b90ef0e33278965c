"""Dataset cards: the README (and pictures) of a dataset, from nothing but the statistics of its builds.

A *build* makes the verified questions of one split of a benchmark, and writes a record: the *statistics*. Records of
other datasets have those of their builds under ``verified``. A record that lacks a figure raises ``KeyError``.
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
from safe_stepwise.store import agreement, boundary, names
from safe_stepwise.store.figures import COLORS, png
from safe_stepwise.store.published_tables import PAPERS, published
from safe_stepwise.taxonomy import CATEGORIES, TAXONOMY, category

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
ANNOTATIONS = "annotations"
"""The name of the teacher that reads a benchmark's annotations instead of calling a model."""
Configs = Mapping[str, Mapping[str, int]]
"""The number of rows of each split that has rows, by config."""
FULL_SPLITS = {("hotpotqa", "validation"): 7_405, ("musique", "train"): 19_938, ("musique", "validation"): 2_417}
"""The questions of a split, by benchmark and split, where the papers' tables have fewer."""


@dataclass(frozen=True, slots=True)
class AuditScores:
    """People's judgements of a sample of rows."""

    file: str
    """The name of the file of scores."""
    sha256: str
    scores: Record
    """The content of the file, as `audit_labels score` writes it."""


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """The fields that every dataset's README has; templates see it as ``card``."""

    dataset: str
    version: str
    rows: int
    builds: Sequence[Record]
    """The records of the builds whose questions are in the dataset."""
    configs: Configs
    dataset_info: Sequence[Record]
    """The Hub's entries ``dataset_info`` of the header, one for each config."""

    @property
    def sources(self) -> tuple[Record, ...]:
        """One build of each source benchmark, as `sources_of` returns them."""
        return sources_of(self.builds)

    @property
    def own_benchmarks(self) -> tuple[Record, ...]:
        """Those of the ``sources`` that are no known benchmark, but one of the user's own."""
        return tuple(build for build in self.sources if build.get("columns"))

    @property
    def licenses(self) -> list[str]:
        return licenses_of(self.builds)

    @property
    def simulated(self) -> bool:
        """Whether any label comes from a simulated teacher."""
        return any(build["simulated"] for build in self.builds)

    @property
    def synthetic(self) -> bool:
        """Whether all questions are made up, and none is from a real benchmark."""
        return all(build["source"]["synthetic"] for build in self.builds)

    def readme(self, template: str, tasks: list[str], default: str | None = None, **values: Any) -> str:
        """Return the README: a header with the Hub's ``tasks`` and ``default`` config, and the filled template."""
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
                    "config_name": name,
                    **({"default": True} if name == default else {}),
                    "data_files": [{"split": split, "path": f"data/{name}/{split}-*.parquet"} for split in splits],
                }
                for name, splits in self.configs.items()
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
    """Return the last build of each benchmark, which has the licence, home page and citation of its source."""
    return tuple({build["benchmark"]: build for build in builds}.values())


def licenses_of(builds: Sequence[Record]) -> list[str]:
    """Return the licences of the builds' sources, as Hub licence ids, each once."""
    return sorted({build["license"] for build in builds})


def configs_of_builds(dataset: str, statistics: Sequence[Record]) -> Configs:
    """Return the configs with rows of a dataset of verified questions, sorted by name, from the builds' records."""
    configs: dict[str, dict[str, int]] = {}
    for build in statistics:
        for name, files in build["files"][dataset].items():
            if files["rows"]:
                configs.setdefault(name, {})[files["split"]] = files["rows"]
    return dict(sorted(configs.items()))


def configs_of(files: Mapping[str, Mapping[str, Record]], default: str = "") -> Configs:
    """Return the configs with rows of a dataset whose record has these ``files``, the ``default`` first."""
    configs = {}
    for name in sorted(files, key=lambda name: (name != default, name.startswith(names.MISSING), name)):
        rows = {split: file["rows"] for split, file in files[name].items()}
        configs[name] = {
            split: rows[split] for split in (names.TRAIN, names.VALIDATION, names.TEST) if rows.get(split)
        }
    return {name: splits for name, splits in configs.items() if splits}


# Verified questions and their labels


def card_of_builds(
    dataset: str,
    tasks: list[str],
    statistics: Sequence[Record],
    dataset_info: Sequence[Record],
    audit: AuditScores | None = None,
) -> str:
    """Render the README of a dataset of verified questions or their labels; raise ``KeyError`` for a missing figure.

    ``statistics`` are the builds' records, ``dataset_info`` the Hub's entries of that name, one for each config;
    ``audit`` has people's judgements of labels.
    """
    (version,) = {build["version"] for build in statistics}
    rows = sum(build["rows"] - build["rejected"] for build in statistics)
    configs = configs_of_builds(dataset, statistics)
    annotated = {build["benchmark"] for build in statistics if build["teacher"] == ANNOTATIONS}
    return DatasetCard(dataset, version, rows, statistics, configs, dataset_info).readme(
        f"{dataset.removeprefix('safe-').replace('-', '_')}.md.jinja",
        tasks,
        noise_types=NOISE_TYPES,
        teachers=set().union(*map(_teacher_types, statistics)),
        known=[build for build in statistics if build.get("known")],
        unknown=[b for b in statistics if not b.get("known") and not b.get("listed")],
        listed=[build for build in statistics if build.get("listed")],
        ratios=noise_ratios(statistics),
        examples=example_rows(statistics),
        measured={name: figures for name, figures in read_measured().items() if name in annotated},
        limits=list(dict.fromkeys(filter(None, (build.get("caveat") for build in statistics)))),
        endings={e for e in ("", names.LABELED, names.EVAL) for b in statistics if b["benchmark"] + e in configs},
        sampled=[b for b in statistics if b["benchmark"] + names.EVAL in b["files"][dataset]],
        libraries=_libraries(statistics),
        audit=audit,
    )


verified_multihop = partial(card_of_builds, names.VERIFIED, ["question-answering"])
noise_labels = partial(card_of_builds, names.NOISE_LABELS, ["question-answering", "text-classification"])
CARDS = {names.VERIFIED: verified_multihop, names.NOISE_LABELS: noise_labels}
"""The functions that render the cards, by dataset: `card_of_builds` without its first two parameters."""


def read_measured() -> dict[str, Record]:
    """Read ``measured.yaml``: how labels by annotations agree with published labels, by benchmark."""
    by_benchmark = boundary.parse_yaml(Path(__file__).with_name("measured.yaml").read_bytes())
    return {name: {"weak": "", **figures} for name, figures in by_benchmark.items()}


def _teacher_types(build: Record) -> set[str]:
    if build["teacher"] == ANNOTATIONS:
        return {ANNOTATIONS}
    if build.get("listed"):
        return {agreement.PUBLISHED}
    kind = "simulated" if build["simulated"] else "model"
    return {kind, ANNOTATIONS, "adjudicated"} if build.get("adjudication") else {kind}


def _libraries(statistics: Sequence[Record]) -> dict[str, str]:
    """Return the version of each library; a text such as ``1.0 and 1.1`` if builds had different versions."""
    by_library: dict[str, set[str]] = {}
    for build in statistics:
        for name, version in build["libraries"].items():
            by_library.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(versions)) for name, versions in sorted(by_library.items())}


def noise_ratios(builds: Sequence[Record]) -> list[Record]:
    """Compute each build's share of noise, for a table beside the papers' figures of its split.

    ``percent`` is None without ``judged`` rows. ``printed`` are the papers' rows in their ``tables``, and ``full`` the
    number of questions in the split if those tables have fewer, else None.
    """
    rows: list[Record] = []
    for build in builds:
        split = build["benchmark"], build["split"]
        judged = build["rows"] - build["rejected"] - build["unparsed"]
        noise = sum(build["unverifiable"].values())
        published_rows = [row for row in published().noise_ratios if (row.benchmark, row.split) == split]
        ratio = {"judged": judged, "noise": noise, "percent": 100 * noise / judged if judged else None}
        tables = " and ".join(f"{PAPERS[row.paper]}, Table {row.table}" for row in published_rows)
        full = FULL_SPLITS.get(split) if published_rows else None
        rows.append({"build": build, **ratio, "printed": published_rows, "tables": tables, "full": full})
    return rows


def example_rows(builds: Sequence[Record], number: int = 3) -> list[Record]:
    """Return up to ``number`` rows of noise, with benchmark and split: one of each type first, builds in turn."""
    rows_by_type: dict[str, list[Record]] = {noise: [] for noise in NOISE_TYPES}
    for build in builds:
        for row in build.get("examples") or ():
            row = {"benchmark": build["benchmark"], "split": build["split"], **row}
            rows_by_type[row["noise_type"]].append(row)
    groups = [rows for rows in rows_by_type.values() if rows]
    # Each type starts at a later row than the type before it, so that no build has all the first rows.
    rotated = [rows[n % len(rows) :] + rows[: n % len(rows)] for n, rows in enumerate(groups)]
    return [row for rows in zip_longest(*rotated) for row in rows if row][:number]


# The other datasets: each function returns the bytes of README.md, and of pictures if it has any, by file name.
# ``statistics`` is the record in the dataset's only file of ``statistics/``.


def verifier_steps(
    statistics: Record, dataset_info: Sequence[Record], audit: AuditScores | None = None
) -> dict[str, bytes]:
    """Render README.md of ``safe-verifier-steps``, with the scores of an ``audit``, and two pictures, by file name."""
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
    """Render README.md of ``safe-path-probe``; return its bytes by file name."""
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
    """Return the balanced accuracy (0-1) by form alone, from counts by kind; None if a label has no rows."""
    valid = marked.get("valid", {"rows": 0, "marked": 0})
    wrong = [counts for kind, counts in marked.items() if kind != "valid"]
    rows = sum(counts["rows"] for counts in wrong)
    if not rows or not valid["rows"]:
        return None
    passed = 1 - valid["marked"] / valid["rows"]
    return float(passed + sum(counts["marked"] for counts in wrong) / rows) / 2


def paths(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """Render README.md of a set of relation paths; return its bytes by file name."""
    builds = [{**statistics, "source": source} for source in statistics["sources"]]
    configs = configs_of(statistics["files"])
    rows, dataset = sum(configs[names.PATHS].values()), names.paths_set(statistics["benchmark"])
    card = DatasetCard(dataset, statistics["version"], rows, builds, configs, dataset_info)
    tasks = ["question-answering"]
    return {names.README: card.readme("paths.md.jinja", tasks, names.PROMPT_COMPLETION, record=statistics).encode()}


ORIGIN_COLORS = {names.IDEAL: "#bbbbbb", names.INJECTED: "#4477aa", names.REFINED: "#ee7733"}


def types_bars(types: Mapping[str, int]) -> bytes:
    """Draw a bar for each error type, coloured by category; return the PNG. ``types`` has the rows of each type."""
    counts = [(e.name, types[e.name]) for e in TAXONOMY if types.get(e.name)]
    counts.sort(key=lambda item: CATEGORIES.index(category(item[0])))
    total = sum(number for _, number in counts)

    def draw(axes: Any) -> None:
        for kind in dict.fromkeys(category(name) for name, _ in counts):
            heights = [n for n, (name, _) in enumerate(counts) if category(name) == kind]
            rows = [counts[n][1] for n in heights]
            axes.barh(heights, rows, 0.75, color=COLORS[kind], label=f"{kind}: {sum(rows):,}")
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
    """Draw the rows by position (from 1 on, as text), stacked by origin; return the PNG."""
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
