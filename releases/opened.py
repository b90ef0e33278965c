"""A release's datasets as their users open them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safe_stepwise.store.names import NOISE_LABELS, VERIFIED, VERIFIER_STEPS

Opened = Mapping[tuple[str, str], Any]
"""The splits of each config, by dataset and config."""


def open_all(datasets_folder: Path, cache: Path) -> Opened:
    """Every config of all datasets as ``load_dataset`` gives it.

    ``cache`` takes the place of the user's own Hugging Face cache.
    """
    from datasets import disable_progress_bars, get_dataset_config_names, load_dataset

    disable_progress_bars()
    folders = {
        name: str(datasets_folder / name) for name in (VERIFIED, NOISE_LABELS, VERIFIER_STEPS)
    }
    return {
        (name, config): load_dataset(folder, config, cache_dir=str(cache))
        for name, folder in folders.items()
        if Path(folder).exists()
        for config in get_dataset_config_names(folder)
    }


def opened_rows(opened: Opened) -> list[tuple[str, str, str, int]]:
    """(dataset, config, split, rows) of all that was opened."""
    return [
        (dataset, config, split, rows.num_rows)
        for (dataset, config), splits in opened.items()
        for split, rows in splits.items()
    ]
