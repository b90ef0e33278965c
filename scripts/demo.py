"""Build a small release of made-up questions, open it, score its labels, run the loop on some."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.synthetic import generate, parse_spec
from releases import stage, stages
from releases.lock import read_lock
from releases.making import make, release_code
from releases.manifest import Manifest
from safe_stepwise.store import files, names, tables
from scripts.cli import command, cores, run
from studies.labels.agreement import build_score_rows, read_noise_types, score_noise_types

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "scripts" / "releases" / "demo.yaml"


@dataclass(frozen=True, kw_only=True)
class Options:
    output: Path = ROOT / "build" / "demo"


@command
def main(options: Options) -> None:
    """Make the demo's release, open every config, and print the scores of labels and of the loop."""
    output = options.output
    run_options: dict[str, Any] = {"skip_training": True, "cache": output / "replies.sqlite", "workers": cores()}
    release = stages.open_release(stage.Options(manifest=MANIFEST, output=output, **run_options))
    remove_outdated(release)
    print(make(release))
    opened = open_configs(output / names.DATASETS, ROOT / "build" / "hf-cache")
    print("\nOpened with load_dataset:\n")
    rows = [(*config, split, table.num_rows) for config, splits in opened.items() for split, table in splits.items()]
    print(tables.text_table([("dataset", "config", "split", "rows"), *rows]))
    predicted = read_noise_types(opened[names.VERIFIED, "synthetic_labeled"])
    print("\nLabels against the truth that the generator knows:\n")
    scores = build_score_rows(score_noise_types(true_noise_types(release.manifest), predicted))
    print(tables.text_table([("noise", "true", "found", "precision", "recall", "F1"), *scores]))
    print(f"\nFiles: {output / names.DATASETS / names.VERIFIED}")
    print(f"       {output / names.DATASETS / names.NOISE_LABELS}")
    print(f"       {output / names.LOCK}")


def open_configs(datasets: Path, cache: Path) -> Mapping[tuple[str, str], Any]:
    """Open each config with `load_dataset` in the folder ``cache``; return its splits by (dataset, config)."""
    from datasets import disable_progress_bars, get_dataset_config_names, load_dataset

    disable_progress_bars()
    folders = {name: str(datasets / name) for name in names.SETS if (datasets / name).exists()}
    return {
        (name, config): load_dataset(folder, config, cache_dir=str(cache))
        for name, folder in folders.items()
        for config in get_dataset_config_names(folder)
    }


def remove_outdated(release: stage.Release[Manifest]) -> None:
    """Remove an earlier demo's datasets if the code or the manifest has changed since."""
    if not (release.output / names.LOCK).exists():
        return
    lock = read_lock(release.output)
    if (lock["code_sha256"], lock["manifest"]["sha256"]) != (release_code(), release.sha256):
        (release.output / names.LOCK).unlink()
        files.remove_folder(release.output / names.DATASETS)


def true_noise_types(manifest: Manifest) -> dict[tuple[str, str], str]:
    """Return the noise type that the generator gave each made-up question, by (split, question id)."""
    return {
        (entry.split, question.id): noise
        for entry in manifest.builds
        for spec in [parse_spec(entry.input)]
        for question, noise in generate(spec, 0, spec.rows, entry.split)
    }


if __name__ == "__main__":
    run(main)
