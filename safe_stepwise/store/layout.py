"""Where the rows of a published dataset lie in what a build or a release wrote."""

from pathlib import Path

from safe_stepwise.store.names import DATASETS, LABELED


def dataset_folder(folder: Path, name: str) -> Path | None:
    """The dataset ``name`` of a build's --output or of a release, or that ``folder`` itself is.

    None if there is none. A folder of any name that holds ``data`` is taken for the dataset.
    """
    places = (folder / name, folder / DATASETS / name, folder)
    return next((place for place in places if (place / "data").is_dir()), None)


def parquet_files(dataset: Path, config: str, split: str = "*") -> list[Path]:
    """The files of a config's split in their order; either may be a pattern."""
    return sorted((dataset / "data").glob(f"{config}/{split}-*.parquet"))


def labeled_files(dataset: Path) -> dict[str, list[Path]]:
    """The files of all labelled rows, by benchmark."""
    found: dict[str, list[Path]] = {}
    for file in parquet_files(dataset, f"*{LABELED}"):
        found.setdefault(file.parent.name.removesuffix(LABELED), []).append(file)
    return found
