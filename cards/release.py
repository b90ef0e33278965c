"""The overview of a release: README on top of its folder, from its lock and its artifacts' records.

It goes to no repo: every artifact has a card of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cards import verifier_steps
from cards.base_model import Base
from cards.cards import Config, SourceCard, configs_of, sources_of
from cards.pages import fill
from cards.pages import metadata as header
from safe_stepwise.errors import UserError
from safe_stepwise.methods import METHODS
from safe_stepwise.store.names import (
    ADAPTER,
    DATASETS,
    METRIC,
    NOISE_LABELS,
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
)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One of the five: where it is in the folder, what its repo is called, under what licence."""

    title: str
    folder: str
    repo: str
    kind: str
    licenses: tuple[str, ...]
    configs: tuple[Config, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the rows of one benchmark's split."""

    benchmark: str
    split: str
    source: str
    digest: str
    teacher: str
    simulated: bool
    rows: int
    verified: int
    unverifiable: int
    unparsed: int
    rejected: int


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the evaluation; scores from 0 to 1, by benchmark and on average."""

    players: Mapping[str, str]
    """By role; a role that was asked without a player of its own is played by who answers."""
    method: str
    options: Mapping[str, Any]
    simulated: bool
    scores: tuple[Mapping[str, float | None], ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What ``report/results.json`` tells: questions by benchmark, and every setting's scores."""

    questions: Mapping[str, int]
    judge: str | None
    roles: tuple[str, ...]
    columns: tuple[str, ...]
    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class Trained:
    """What the adapter learnt, and how long that took."""

    base: Base
    rows: int
    steps: int
    seconds: float
    devices: int
    device: str
    simulated: bool
    """Whether any of its rows are known to be."""


@dataclass(frozen=True, slots=True)
class ReleaseCard:
    """All that the overview says."""

    version: str
    manifest: Mapping[str, str]
    code: str
    libraries: Mapping[str, str]
    artifacts: tuple[Artifact, ...]
    counts: tuple[Counts, ...]
    steps: Mapping[str, Any] | None
    """Counts of the verifier set."""
    steps_simulated: bool
    trained: Trained | None
    evaluation: Evaluation | None
    sources: tuple[SourceCard, ...]

    @property
    def simulated(self) -> bool:
        """Whether any of it was made by what only plays a model."""
        played = [*(c.simulated for c in self.counts), self.steps_simulated]
        played += [] if self.trained is None else [bool(self.trained.simulated)]
        settings = () if self.evaluation is None else self.evaluation.settings
        return any((*played, *(one.simulated for one in settings)))

    @property
    def synthetic(self) -> bool:
        """Whether nothing in it is from a real benchmark."""
        return bool(self.sources) and all(source.synthetic for source in self.sources)

    @property
    def missing(self) -> list[str]:
        """Artifacts that a release can have and this one has not."""
        have = {artifact.folder for artifact in self.artifacts}
        places = (
            *(f"{DATASETS}/{name}" for name in SETS),
            ADAPTER,
            SPACE,
        )
        return [place for place in places if place not in have]


def release(
    lock: Mapping[str, Any],
    statistics: Sequence[Mapping[str, Any]],
    steps: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    results: Mapping[str, Any] | None = None,
) -> str:
    """README of a release folder.

    Args:
        lock: what ``release.lock.json`` holds (``files`` is not looked at).
        statistics: the builds' records, as ``statistics/*.json`` of the verified benchmarks.
        steps: the verifier set's record, None if there is no such set.
        training: ``adapter/training.json``, None if there is no adapter.
        metadata: what the headers of the ``adapter`` and ``space`` cards say, by folder.
        results: ``report/results.json``, None if nothing was evaluated.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` where lock and records differ.
    """
    card = release_card(lock, statistics, steps, training, metadata or {}, results)
    return fill("release.md.jinja", card=card)


def read_release(folder: Path, lock: Mapping[str, Any]) -> str:
    """The same from the files of a release folder, as far as they are there."""

    def record(path: str) -> Any:
        file = folder / path
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None

    builds = sorted((folder / DATASETS / VERIFIED / STATISTICS).glob("*.json"))
    headers = {
        name: header((folder / name / README).read_text(encoding="utf-8"))
        for name in (ADAPTER, SPACE)
        if (folder / name / README).is_file()
    }
    return release(
        lock,
        [json.loads(build.read_text(encoding="utf-8")) for build in builds],
        record(f"{DATASETS}/{VERIFIER_STEPS}/{STEPS_RECORD}"),
        record(f"{ADAPTER}/training.json"),
        headers,
        record(f"{REPORT}/{RESULTS}"),
    )


def release_card(
    lock: Mapping[str, Any],
    statistics: Sequence[Mapping[str, Any]],
    steps: Mapping[str, Any] | None,
    training: Mapping[str, Any] | None,
    metadata: Mapping[str, Mapping[str, Any]],
    results: Mapping[str, Any] | None,
) -> ReleaseCard:
    """The overview of one release; arguments and errors as for `release`."""
    for entry in (*statistics, *([steps] if steps else [])):
        if entry["version"] != lock["version"]:
            raise UserError(
                f"the lock is of {lock['version']}, but "
                f"{entry.get('benchmark', VERIFIER_STEPS)} of {entry['version']}"
            )
    trained = None if training is None else _trained(training)
    return ReleaseCard(
        version=lock["version"],
        manifest=lock["manifest"],
        code=lock["code_sha256"],
        libraries=lock["libraries"],
        artifacts=tuple(_artifacts(statistics, steps, trained, metadata)),
        counts=tuple(_counts(lock["counts"], entry) for entry in statistics),
        steps=None if steps is None else lock["counts"]["verifier-steps"],
        steps_simulated=steps is not None and steps["simulated"],
        trained=trained,
        evaluation=None if results is None else _evaluation(results),
        sources=sources_of(statistics),
    )


def _artifacts(
    statistics: Sequence[Mapping[str, Any]],
    steps: Mapping[str, Any] | None,
    trained: Trained | None,
    metadata: Mapping[str, Mapping[str, Any]],
) -> list[Artifact]:
    def dataset(
        title: str, name: str, builds: Sequence[Mapping[str, Any]], configs: tuple[Config, ...]
    ) -> Artifact:
        licenses = tuple(sorted({source.license for source in sources_of(builds)}))
        return Artifact(title, f"{DATASETS}/{name}", name, "dataset", licenses, configs)

    found = []
    for title, name in (("verified benchmarks", VERIFIED), ("noise labels", NOISE_LABELS)):
        if statistics:
            found.append(dataset(title, name, statistics, configs_of(name, statistics)))
    if steps is not None:
        configs = verifier_steps.configs_of(steps["files"])
        found.append(dataset("step-level verifier set", VERIFIER_STEPS, steps["verified"], configs))
    if trained is not None:
        license = str(metadata[ADAPTER]["license"])
        name = adapter_repo(trained.base.name)
        found.append(Artifact("verifier adapter", ADAPTER, name, "model", (license,)))
    if SPACE in metadata:
        license = str(metadata[SPACE]["license"])
        found.append(Artifact("stepwise metric", SPACE, METRIC, "space", (license,)))
    return found


def _trained(training: Mapping[str, Any]) -> Trained:
    run, data = training["run"], training["dataset"]
    return Trained(
        base=Base.read(training),
        rows=data["rows"],
        steps=run["steps"],
        seconds=run["seconds"],
        devices=run["devices"],
        device=run["device"],
        simulated=any(one["simulated"] for one in (data, *data["plus"])),
    )


def _counts(counts: Mapping[str, Any], entry: Mapping[str, Any]) -> Counts:
    locked = counts[f"{entry['benchmark']}-{entry['split']}"]
    return Counts(
        benchmark=entry["benchmark"],
        split=entry["split"],
        source=entry["source"]["name"],
        digest=entry["source"]["digest"],
        teacher=entry["teacher"],
        simulated=entry["simulated"],
        rows=locked["rows"],
        verified=locked["verified"],
        unverifiable=sum(locked["unverifiable"].values()),
        unparsed=locked["unparsed"],
        rejected=locked["rejected"],
    )


def _evaluation(results: Mapping[str, Any]) -> Evaluation:
    settings = results["settings"]
    benchmarks = list(settings["questions"])
    average = ["average"] if len(benchmarks) > 1 else []
    runs = [
        Setting(
            players=_players(one),
            method=one["method"],
            options=one["options"],
            simulated=one["simulated"],
            scores=(*(one["benchmarks"][name] for name in benchmarks), *(one[k] for k in average)),
        )
        for one in results["runs"]
    ]
    return Evaluation(
        questions=settings["questions"],
        judge=settings["judge"],
        roles=tuple(dict.fromkeys(role for run in runs for role in run.players)),
        columns=(*benchmarks, *average),
        settings=tuple(runs),
    )


def _players(run: Mapping[str, Any]) -> dict[str, str]:
    """Who was asked, the role that answers first."""
    players, method = run["players"], METHODS.get(run["method"])
    answering = method.roles[0] if method else min(players)
    asked = (role for role, calls in run["all"]["calls"].items() if calls)
    others = {role: players.get(role, players[answering]) for role in (*asked, *players)}
    return {answering: players[answering], **others}
