"""The overview of a release: README on top of its folder, from its lock and its artifacts' records.

It goes to no repo: every artifact has a card of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards import path_probe, verifier_steps
from cards.base_model import Base
from cards.cards import Config, Record, configs_of, licenses_of, sources_of
from cards.loop import judge_of
from cards.pages import fill
from cards.pages import metadata as header
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.store.names import (
    ADAPTER,
    BLOCKS,
    DATASETS,
    GENERATOR,
    METRIC,
    NOISE_LABELS,
    PATH_PROBE,
    PROBE_RECORD,
    README,
    REPORT,
    RESULTS,
    SETS,
    SPACE,
    STATISTICS,
    STEPS_RECORD,
    VERIFIED,
    VERIFIER_STEPS,
    adapter_repo,
    generator_repo,
)
from safe_stepwise.store.parsing import read_record


@dataclass(frozen=True, slots=True)
class Artifact:
    """One of the five: where it is in the folder, what its repo is called, under what licence."""

    title: str
    folder: str
    repo: str
    kind: str
    licenses: list[str]
    configs: tuple[Config, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseCard:
    """What the overview says beside what stands in the records."""

    artifacts: Sequence[Artifact]
    sources: tuple[Record, ...]
    base: Base | None
    """The model that the adapter is for."""
    runs: Sequence[tuple[Record, Mapping[str, str]]]
    """Every setting that was evaluated, and who played what in it."""
    blocks: Mapping[str, Record]
    """What the evaluations of blocks came to, by the folder of each."""
    learnt_simulated: bool
    """Whether any row that the adapter learnt is known to be simulated."""
    simulated: bool
    """Whether any of it was made by what only plays a model."""

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return bool(self.sources) and all(s["source"]["synthetic"] for s in self.sources)

    @property
    def missing(self) -> list[str]:
        """Artifacts that a release can have and this one has not."""
        have = {artifact.folder for artifact in self.artifacts}
        places = (*(f"{DATASETS}/{name}" for name in SETS), ADAPTER, SPACE)
        return [place for place in places if place not in have]

    @property
    def roles(self) -> list[str]:
        """Every role that was played."""
        return list(dict.fromkeys(role for _, players in self.runs for role in players))


def release(
    lock: Record,
    statistics: Sequence[Record],
    steps: Record | None = None,
    training: Record | None = None,
    metadata: Mapping[str, Record] | None = None,
    results: Record | None = None,
    blocks: Mapping[str, Record] | None = None,
    probe: Record | None = None,
) -> str:
    """README of a release folder.

    Args:
        lock: what ``release.lock.json`` holds (``files`` is not looked at).
        statistics: the builds' records, as ``statistics/*.json`` of the verified benchmarks.
        steps: the verifier set's record, None if there is no such set.
        training: ``adapter/training.json``, None if there is no adapter.
        metadata: what the headers of the ``adapter`` and ``space`` cards say, by folder.
        results: ``report/results.json``, None if nothing was evaluated.
        blocks: the same of blocks, by the folder of each report.
        probe: the path probe's record, None if there is none.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` where lock and records differ.
    """
    records = [*statistics, *([] if steps is None else [steps])]
    for entry in (*records, *([] if probe is None else [{"benchmark": PATH_PROBE, **probe}])):
        if entry["version"] != lock["version"]:
            raise UserError(
                f"the lock is of {lock['version']}, but {entry.get('benchmark', VERIFIER_STEPS)} of {entry['version']}"
            )
    base = None if training is None else Base.read(training)
    learnt = [] if training is None else [training["dataset"], *training["dataset"]["plus"]]
    runs = [] if results is None else results["runs"]
    others = [run for one in (blocks or {}).values() for run in one["runs"]]
    card = ReleaseCard(
        artifacts=_artifacts(statistics, steps, base, metadata or {}, probe),
        sources=sources_of(statistics),
        base=base,
        runs=[(run, _players(run)) for run in runs],
        blocks=blocks or {},
        learnt_simulated=any(data["simulated"] for data in learnt),
        simulated=any(one["simulated"] for one in (*records, *learnt, *runs, *others)),
    )
    told = {"lock": lock, "builds": statistics, "steps": steps, "training": training}
    judge = judge_of(results["settings"]) if results is not None else None
    return fill("release.md.jinja", card=card, results=results, judge=judge, **told)


def read_release(folder: Path, lock: Record) -> str:
    """The same from the files of a release folder, as far as they are there."""

    def record(path: str) -> Any:
        file = folder / path
        return read_record(file, "make it anew") if file.is_file() else None

    builds = sorted((folder / DATASETS / VERIFIED / STATISTICS).glob("*.json"))
    headers = {
        name: header((folder / name / README).read_text(encoding="utf-8"))
        for name in (GENERATOR, ADAPTER, SPACE)
        if (folder / name / README).is_file()
    }
    return release(
        lock,
        [read_record(build, "make it anew") for build in builds],
        record(f"{DATASETS}/{VERIFIER_STEPS}/{STEPS_RECORD}"),
        record(f"{ADAPTER}/training.json"),
        headers,
        record(f"{REPORT}/{RESULTS}"),
        {place: record(f"{place}/{RESULTS}") for place in _reports_of_blocks(folder)},
        record(f"{DATASETS}/{PATH_PROBE}/{PROBE_RECORD}"),
    )


def _reports_of_blocks(folder: Path) -> list[str]:
    """The folders in which evaluations of blocks, and of their adapters, stand."""
    found = (*folder.glob(f"{BLOCKS}/*/{REPORT}"), *folder.glob(f"{BLOCKS}/*/*/{REPORT}"))
    complete = (place for place in sorted(found) if (place / RESULTS).is_file())
    return [place.relative_to(folder).as_posix() for place in complete]


def _artifacts(
    statistics: Sequence[Record],
    steps: Record | None,
    base: Base | None,
    metadata: Mapping[str, Record],
    probe: Record | None,
) -> list[Artifact]:
    def dataset(title: str, name: str, builds: Sequence[Record], configs: tuple[Config, ...]) -> Artifact:
        return Artifact(title, f"{DATASETS}/{name}", name, "dataset", licenses_of(builds), configs)

    def other(title: str, folder: str, name: str, kind: str) -> Artifact:
        return Artifact(title, folder, name, kind, [metadata[folder]["license"]])

    sets = (("verified benchmarks", VERIFIED), ("noise labels", NOISE_LABELS)) if statistics else ()
    found = [dataset(t, name, statistics, configs_of(name, statistics)) for t, name in sets]
    if steps is not None:
        configs = verifier_steps.configs_of(steps["files"])
        found.append(dataset("step-level verifier set", VERIFIER_STEPS, steps["verified"], configs))
    if probe is not None:
        configs = path_probe.configs_of(probe["files"])
        found.append(dataset("path probe", PATH_PROBE, probe["verified"], configs))
    if base is not None and GENERATOR in metadata:
        found.append(other("generator", GENERATOR, generator_repo(base.name), "model"))
    if base is not None:
        found.append(other("verifier adapter", ADAPTER, adapter_repo(base.name), "model"))
    if SPACE in metadata:
        found.append(other("stepwise metric", SPACE, METRIC, "space"))
    return found


def _players(run: Record) -> dict[str, str]:
    """Who was asked, the role that answers first."""
    players, method = run["players"], METHODS.get(run["method"])
    answering = method.roles[0] if method else min(players)
    asked = (role for role, calls in run["all"]["calls"].items() if calls)
    others = {role: players.get(role, players[answering]) for role in (*asked, *players)}
    return {answering: players[answering], **others}
