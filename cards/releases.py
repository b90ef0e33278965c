"""The overview of a release: the README on top of its folder, from its lock and its artifacts' records.

It is not uploaded; each artifact has its own card. Every function that renders raises ``KeyError`` for a missing
figure. An adapter with a record needs a card.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cards import datasets
from cards.models import Base
from cards.pages import Record, fill
from cards.pages import metadata as header
from cards.scores import DeliberationScores, answering_role, judge_of
from safe_stepwise.store import boundary, names


def render_release_folder(folder: Path, lock: Record) -> str:
    """Render the overview of a release of verified questions from the records in it; ``lock`` lacks ``files``."""
    builds = [_record(f) for f in sorted((folder / names.DATASETS / names.VERIFIED / names.STATISTICS).glob("*.json"))]
    steps = _record(folder / names.DATASETS / names.VERIFIER_STEPS / names.STEPS_RECORD)
    probe = _record(folder / names.DATASETS / names.PATH_PROBE / names.PROBE_RECORD)
    records = [*builds, *([] if steps is None else [steps])]
    training = _record(folder / names.ADAPTER / names.TRAINING)
    results = _record(folder / names.REPORT / names.RESULTS)
    base = None if training is None else Base.read(training)
    learnt = [] if training is None else [training["dataset"], *training["dataset"]["plus"]]
    runs = [] if results is None else results["runs"]
    patterns = (f"{names.BLOCKS}/*/{names.REPORT}", f"{names.BLOCKS}/*/*/{names.REPORT}")
    blocks = _list_results(folder, sorted(report for pattern in patterns for report in folder.glob(pattern)))
    block_runs = [run for record in blocks.values() for run in record["runs"]]
    artifacts, sources = _list_artifacts(folder, builds, steps, base, probe), datasets.sources_of(builds)
    present = {artifact["folder"] for artifact in artifacts}
    folders = (*(f"{names.DATASETS}/{name}" for name in names.SETS), names.ADAPTER, names.SPACE)
    card = {
        "artifacts": artifacts,
        "missing": [folder for folder in folders if folder not in present],
        "sources": sources,
        "base": base,
        "runs": [(run, _list_players(run)) for run in runs],
        "blocks": blocks,
        "learnt_simulated": any(data["simulated"] for data in learnt),
        "simulated": any(record["simulated"] for record in (*records, *learnt, *runs, *block_runs)),
        "synthetic": bool(sources) and all(source["source"]["synthetic"] for source in sources),
    }
    judge = judge_of(results["settings"]) if results is not None else None
    values = {"lock": lock, "builds": builds, "steps": steps, "training": training}
    return fill("release.md.jinja", card=card, results=results, judge=judge, **values)


def _record(file: Path) -> Any:
    return boundary.read_file(dict[str, Any], file, "the record", "make it anew") if file.is_file() else None


def _list_results(folder: Path, reports: Sequence[Path]) -> dict[str, Any]:
    """Read the results of complete evaluations, by the path of the report's folder in the release."""
    complete = (report for report in reports if (report / names.RESULTS).is_file())
    return {report.relative_to(folder).as_posix(): _record(report / names.RESULTS) for report in complete}


def _list_artifacts(
    folder: Path, statistics: Sequence[Record], steps: Record | None, base: Base | None, probe: Record | None
) -> list[Record]:
    """Return the rows of the table of artifacts: ``repo`` without a namespace, and its type on the Hub as ``kind``."""
    cards = (folder / name / names.README for name in (names.GENERATOR, names.ADAPTER, names.SPACE))
    metadata = {card.parent.name: header(card.read_text(encoding="utf-8")) for card in cards if card.is_file()}

    def dataset(title: str, name: str, builds: Sequence[Record], configs: datasets.Configs) -> Record:
        row = {"title": title, "folder": f"{names.DATASETS}/{name}", "repo": name, "kind": "dataset"}
        return {**row, "licenses": datasets.licenses_of(builds), "configs": configs}

    def artifact(title: str, folder: str, name: str, kind: str = "model") -> Record:
        row = {"title": title, "folder": folder, "repo": name, "kind": kind}
        return {**row, "licenses": [metadata[folder]["license"]]}

    sets = (("verified benchmarks", names.VERIFIED), ("noise labels", names.NOISE_LABELS)) if statistics else ()
    artifacts = [dataset(t, name, statistics, datasets.configs_of_builds(name, statistics)) for t, name in sets]
    if steps is not None:
        configs = datasets.configs_of(steps["files"], names.STEPS)
        artifacts.append(dataset("step-level verifier set", names.VERIFIER_STEPS, steps["verified"], configs))
    if probe is not None:
        configs = datasets.configs_of(probe["files"], names.PROBED)
        artifacts.append(dataset("path probe", names.PATH_PROBE, probe["verified"], configs))
    if base is not None:
        generator, verifier = (names.model_repo(k, base.name) for k in (names.GENERATOR_KIND, names.VERIFIER_KIND))
        artifacts += [artifact("generator", names.GENERATOR, generator)] if names.GENERATOR in metadata else []
        artifacts.append(artifact("verifier adapter", names.ADAPTER, verifier))
    if names.SPACE in metadata:
        artifacts.append(artifact("stepwise metric", names.SPACE, names.METRIC, "space"))
    return artifacts


def _list_players(run: Record) -> dict[str, str]:
    """Return the player of each role that a run called or names, the answering role first."""
    players, answering = run["players"], answering_role(run)
    active = (role for role, calls in run["all"]["calls"].items() if calls)
    return {role: players.get(role, players[answering]) for role in (answering, *active, *players)}


def render_paths_folder(folder: Path, lock: Record) -> str:
    """Render the overview of a release of relation paths from the records in it; ``lock`` lacks ``files``."""
    (record,) = (folder / names.DATASETS).glob(f"*/{names.PATHS_RECORD}")
    paths = _record(record)
    records = {name: _record(folder / name / names.TRAINING) for name in (names.SFT, names.ADAPTER)}
    stages = {name: training for name, training in records.items() if training is not None}
    base = Base.read(stages[names.ADAPTER]) if names.ADAPTER in stages else None
    card = folder / names.ADAPTER / names.README
    dataset = names.paths_set(paths["benchmark"])
    reports = [folder / names.REPORT, *sorted(folder.glob(f"{names.BLOCKS}/*/{names.REPORT}"))]
    return fill(
        "paths_release.md.jinja",
        lock=lock,
        record=paths,
        dataset=dataset,
        folder=f"{names.DATASETS}/{dataset}",
        configs=datasets.configs_of(paths["files"]),
        base=base,
        adapter=None if base is None else names.model_repo(dataset, base.name),
        license=header(card.read_text(encoding="utf-8")).get("license") if card.is_file() else None,
        stages=stages,
        evaluations=[DeliberationScores(name, results) for name, results in _list_results(folder, reports).items()],
    )
