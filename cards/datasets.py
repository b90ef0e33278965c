"""Dataset cards: the README of a dataset, from nothing but the statistics of its builds.

A *build* makes the verified questions of one split of a benchmark, and writes a record: the *statistics*. Records of
other datasets have those of their builds under ``verified``. A record that lacks a figure raises ``KeyError``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cards.pages import Record, add_header, fill
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store import boundary, names, published_labels
from safe_stepwise.store.published_tables import PAPERS, published
from safe_stepwise.taxonomy import TAXONOMY, category

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
        """The ``sources`` that are benchmarks of the user's own."""
        return tuple(build for build in self.sources if build.get("columns"))

    @property
    def is_own(self) -> bool:
        """Whether all questions are of benchmarks of the user's own."""
        return bool(self.sources) and len(self.own_benchmarks) == len(self.sources)

    @property
    def own_without_triples(self) -> bool:
        """Whether all questions are of the user's own benchmarks, without triples or single-hop questions."""
        return self.is_own and not any({"evidence", "decomposition"} & set(b["columns"]) for b in self.sources)

    @property
    def is_versioned(self) -> bool:
        """Whether the version says something: a file of the user's own has the first one without being asked."""
        return not self.is_own or self.version != "v0.1.0"

    @property
    def added(self) -> set[str]:
        """The parts of passages that builds added where they were lacking: sentences, title."""
        of_own = ("sentences", "title")  # of one's own benchmark; later builds say which
        added = (b.get("added", of_own) if b.get("columns") else ("sentences",) for b in self.builds)
        return set().union(*added)

    @property
    def licenses(self) -> list[str]:
        return licenses_of(self.builds)

    @property
    def simulated(self) -> bool:
        """Whether any label comes from a simulated teacher."""
        return any(build["simulated"] for build in self.builds)

    @property
    def synthetic(self) -> bool:
        """Whether all questions are made up."""
        return all(build["source"]["synthetic"] for build in self.builds)

    def readme(self, template: str, tasks: list[str], default: str | None = None, **values: Any) -> str:
        """Return the README: a header with the Hub's ``tasks`` and ``default`` config, and the filled template."""
        return add_header(self._make_metadata(tasks, default), fill(template, card=self, **values))

    def _make_metadata(self, tasks: list[str], default: str | None) -> Any:
        from huggingface_hub import DatasetCardData

        tags = [*([] if self.is_own else ["multi-hop-question-answering"]), "verification", "knowledge-graph"]
        if any(build["source"]["synthetic"] for build in self.builds):
            tags.append("synthetic")
        extra: dict[str, Any] = {"dataset_info": [dict(entry) for entry in self.dataset_info]}
        return DatasetCardData(
            language="en",
            # As a list the Hub takes several; its "other" would need a text of our own to link to.
            license=self.licenses if len(self.licenses) > 1 else self.licenses[0],
            pretty_name=self.dataset,
            task_categories=tasks,
            size_categories=[next((name for limit, name in _SIZES if self.rows < limit), "n>1M")],
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


def sources_of(builds: Sequence[Record]) -> tuple[Record, ...]:
    """Return the last build of each benchmark, which has the licence, home page and citation of its source."""
    return tuple({build["benchmark"]: build for build in builds}.values())


def licenses_of(builds: Sequence[Record]) -> list[str]:
    """Return the licences of the builds' sources, as Hub licence ids, without repeats."""
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
        splits = (names.TRAIN, names.VALIDATION, names.TEST)
        configs[name] = {split: rows[split] for split in splits if rows.get(split)}
    return {name: splits for name, splits in configs.items() if splits}


# Verified questions and their labels


def card_of_builds(
    dataset: str,
    tasks: list[str],
    statistics: Sequence[Record],
    dataset_info: Sequence[Record],
    audit: AuditScores | None = None,
) -> str:
    """Render the README of a dataset of verified questions or of their labels; raise ``KeyError`` for a lack."""
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
        return {published_labels.PUBLISHED}
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
        published_rows = [row for row in published().noise_ratios if (row["benchmark"], row["split"]) == split]
        ratio = {"judged": judged, "noise": noise, "percent": 100 * noise / judged if judged else None}
        tables = " and ".join(f"{PAPERS[row['paper']]}, Table {row['table']}" for row in published_rows)
        full = FULL_SPLITS.get(split) if published_rows else None
        rows.append({"build": build, **ratio, "printed": published_rows, "tables": tables, "full": full})
    return rows


# The other datasets: each function returns the bytes of README.md by file name.
# ``statistics`` is the record in the dataset's only file of ``statistics/``.


def verifier_steps(
    statistics: Record, dataset_info: Sequence[Record], audit: AuditScores | None = None
) -> dict[str, bytes]:
    """Render README.md of ``safe-verifier-steps``, with the scores of an ``audit``; return its bytes by file name."""
    counts = {e.name: [by_type.get(e.name, {}) for by_type in statistics["types"].values()] for e in TAXONOMY}
    types = {name: by_benchmark for name, by_benchmark in counts.items() if any(by_benchmark)}
    values: dict[str, Any] = {"types": types, "category": category, "audit": audit}
    place = names.VERIFIER_STEPS, "verifier_steps.md.jinja", names.STEPS
    return _render_readme(*place, statistics, dataset_info, **values)


def path_probe(statistics: Record, dataset_info: Sequence[Record]) -> dict[str, bytes]:
    """Render README.md of ``safe-path-probe``; return its bytes by file name."""
    place = names.PATH_PROBE, "path_probe.md.jinja", names.PROBED
    return _render_readme(*place, statistics, dataset_info, by_form=_accuracy_by_form(statistics["marked"]))


def _render_readme(
    dataset: str, template: str, default: str, statistics: Record, dataset_info: Sequence[Record], **values: Any
) -> dict[str, bytes]:
    configs = configs_of(statistics["files"], default)
    version, rows, builds = (statistics[name] for name in ("version", "rows", "verified"))
    card = DatasetCard(dataset, version, rows, builds, configs, dataset_info)
    text = card.readme(template, ["text-classification"], default, record=statistics, **values)
    return {names.README: text.encode()}


def _accuracy_by_form(marked: Mapping[str, Record]) -> float | None:
    """Return the balanced accuracy (0-1) of judging by form, from counts by kind; None if a label has no rows."""
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
