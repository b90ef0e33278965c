"""Build a small release of made-up questions, open it, score its labels, run the loop on some.

make demo          (or: python -m scripts.demo)
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from builders.synthetic import generate, parse_spec
from evaluators.labels.agreement import by_noise_type, score_rows
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import LOCK, NOISE_LABELS, VERIFIED, VERIFIER_STEPS
from scripts.cli import Parser, cores, run, table
from scripts.manifest import read_manifest
from scripts.regenerate import regenerate

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "scripts" / "releases" / "demo.yaml"


def main(arguments: Sequence[str]) -> None:
    """Regenerate the demo manifest, load every config, run the loop, print what was found."""
    parser = Parser(
        prog="python -m scripts.demo",
        description=(__doc__ or "").partition("\n")[0],
        epilog=(
            "examples:\n"
            "  make demo                                       # the same, with its own .venv\n"
            "  python -m scripts.demo --output build/my-demo"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=ROOT / "build" / "demo",
        metavar="DIR",
        help="default build/demo",
    )
    options = parser.parse_args(arguments)
    forget_stale(options.output)
    print(
        regenerate(
            MANIFEST,
            options.output,
            cache=options.output / "replies.sqlite",
            skip_training=True,
            workers=cores(),
        )
    )
    opened = open_all(options.output / "datasets", ROOT / "build" / "hf-cache")
    print("\nOpened with load_dataset:\n")
    print(table([("dataset", "config", "split", "rows"), *opened_rows(opened)]))
    found = labels(opened[VERIFIED, "synthetic_labeled"])
    print("\nLabels against the truth that the generator knows:\n")
    scores = score_rows(by_noise_type(truth(), found))
    print(table([("noise", "true", "found", "precision", "recall", "F1"), *scores]))
    print(f"\nFiles: {options.output / 'datasets' / VERIFIED}")
    print(f"       {options.output / 'datasets' / NOISE_LABELS}")
    print(f"       {options.output / LOCK}")


def forget_stale(output: Path) -> None:
    """Remove a demo that other code, or another manifest, made: it would show old figures."""
    lock = output / LOCK
    if not lock.exists():
        return
    made = json.loads(lock.read_text(encoding="utf-8"))
    now = (code_digest("scripts.regenerate", without=()), read_manifest(MANIFEST).sha256)
    if (made["code_sha256"], made["manifest"]["sha256"]) != now:
        lock.unlink()
        shutil.rmtree(output / "datasets")


def open_all(datasets_folder: Path, cache: Path) -> dict[tuple[str, str], Any]:
    """Every config of all datasets as ``load_dataset`` gives it, by dataset and config.

    ``cache`` takes the place of the user's own Hugging Face cache.
    """
    from datasets import disable_progress_bars, get_dataset_config_names, load_dataset

    disable_progress_bars()
    opened = {}
    for dataset in (VERIFIED, NOISE_LABELS, VERIFIER_STEPS):
        if not (datasets_folder / dataset).exists():
            continue
        folder = str(datasets_folder / dataset)
        for config in get_dataset_config_names(folder):
            opened[dataset, config] = load_dataset(folder, config, cache_dir=str(cache))
    return opened


def opened_rows(opened: Mapping[tuple[str, str], Any]) -> list[tuple[str, str, str, int]]:
    """(dataset, config, split, rows) of all that was opened."""
    return [
        (dataset, config, split, rows.num_rows)
        for (dataset, config), splits in opened.items()
        for split, rows in splits.items()
    ]


def labels(labeled: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Noise type of each row of a ``B_labeled`` config."""
    found = {}
    for split, rows in labeled.items():
        name = rows.features["noise_type"].int2str
        for id_, number in zip(rows["id"], rows["noise_type"], strict=True):
            found[split, id_] = name(number)
    return found


def truth() -> dict[tuple[str, str], str]:
    """Noise type that the generator gave each question of the demo manifest."""
    known: dict[tuple[str, str], str] = {}
    for entry in read_manifest(MANIFEST).builds:
        spec = parse_spec(entry.input)
        for question, noise in generate(spec, 0, spec.rows, entry.split):
            known[entry.split, question.id] = noise
    return known


if __name__ == "__main__":
    run(main)
