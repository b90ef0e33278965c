"""Define the interface of a kind of training row, and find its data sets in a folder or on the Hub."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import singledispatch
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import loading
from safe_stepwise.errors import UserError
from safe_stepwise.records import identity
from safe_stepwise.store import boundary, parquet
from trainers.config import Recipe

MAX_IDS_LISTED = 10
ANEW = "make or pull it anew"
Row = Mapping[str, Any]
"""A row of a data set, by column: ``id``, ``prompt`` and ``completion`` (lists of turns), sometimes ``label``."""


class BadRow(Exception):
    """The reason why a row can't be trained on."""


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """The source of a data set: its name, its commit on the Hub (None for a folder), and its builder's statistics."""

    name: str
    revision: str | None
    about: Mapping[str, Any]


class RowKind(ABC):
    """A kind of training row: how to load and check the rows, and which prompts the trained model will get."""

    rendered_by = "prompt_sha256"
    """The key under which a set's statistics keep the digest of its rows' prompts."""
    recorded_prompts: Mapping[str, str] = {}
    """The prompts as a run's record states them; empty for the paper's prompts."""
    classes: tuple[str, ...] = ()
    """The labels among which a model with a head chooses; empty for a model that writes."""
    labelled = False
    """Whether each row has a label, good or bad; KTO learns from such rows, SFT from rows without one."""

    def open(self, dataset: str, split: str, filters: Any) -> tuple[DatasetSource, list[Row]]:
        """Load the rows of a split that pass the filters, at most ``filters.rows``; raise ``UserError`` for none."""
        source, rows = self.rows(dataset, split, filters)
        selected = rows[: filters.rows]
        if not selected:
            raise UserError(f"{dataset}: no row of {split} is left by the filters; loosen them")
        return source, selected

    @abstractmethod
    def rows(self, dataset: str, split: str, filters: Any) -> tuple[DatasetSource, list[Row]]:
        """Load a split's rows ``{id, prompt, completion}``, some with a ``label``, that pass the filters, in order.

        Raises ``UserError`` for a dataset that is missing, not pinned or of another kind.
        """

    @abstractmethod
    def questions(self, dataset: str, split: str) -> Mapping[str, Any]:
        """Map the id of each row of a dataset's split to the key of its question."""

    @abstractmethod
    def check(self, completion: str) -> None:
        """Raise ``BadRow`` for a completion that can't be parsed, or is cut short."""

    @abstractmethod
    def prompt_digest(self) -> str:
        """Return the SHA-256 of the prompts that are sent to the adapter once it serves."""

    def set_digest(self) -> str:
        """Return the SHA-256 of the prompts that this version renders a set's rows by."""
        return self.prompt_digest()


@singledispatch
def kind_of(recipe: Recipe) -> RowKind:
    """Return the kind of row that a recipe trains on; the file of each kind registers it for its recipe."""
    raise TypeError(f"{type(recipe).__name__}: say what kind its rows are of")


def find(dataset: str, name: str, statistics: str) -> tuple[DatasetSource, str]:
    """Find a recipe's data set, a folder or NAMESPACE/NAME@REVISION; return its source and the address for `load`.

    ``name`` is the set's folder, ``statistics`` a file in it. Raises ``UserError`` if it is missing or not pinned.
    """
    folder = Path(dataset).expanduser()
    if (folder / name / "data").is_dir():
        folder /= name
    if folder.is_dir():
        file = folder / statistics
        about = boundary.read_file(dict[str, Any], file, "the record", ANEW) if file.is_file() else {}
        return DatasetSource(folder.resolve().name, None, about), str(folder)
    repo, separator, revision = dataset.partition("@")
    if repo.count("/") != 1 or repo.startswith((".", "/", "~")):
        raise UserError(f"{dataset}: no such folder, and no NAMESPACE/NAME@REVISION of the Hub")
    if not separator or not revision:
        raise UserError(f"{dataset}: no such folder, and not pinned; write {repo}@COMMIT_OR_TAG")
    return _find_on_hub(repo, revision, statistics), repo


def load(dataset: str, place: str, revision: str | None, config: str, split: str) -> Any:
    """Load a split of a config as a `datasets.Dataset` from `find`'s address; raise ``UserError`` for no rows."""
    from datasets import load_dataset
    from datasets.utils.logging import disable_progress_bar

    disable_progress_bar()
    with loading(dataset, f"no {config} rows of {split}"):
        if revision is None:
            return _load_folder(Path(place), config, split)
        return load_dataset(place, config, split=split, revision=revision)


def fingerprint(rows: Iterable[Row]) -> str:
    """Return the SHA-256 (64 hex digits) of ids, prompts, completions and labels of rows, in their order."""
    keys = ("id", "prompt", "completion", "label")
    return identity([[row[key] for key in keys if key in row] for row in rows])


def refuse(bad: Mapping[str, str], dataset: str, advice: str) -> None:
    """Raise ``UserError`` if there are ``bad`` rows (reasons by id); its message lists ten ids at most."""
    if bad:
        reasons = "; ".join(f"{id_}: {reason}" for id_, reason in sorted(bad.items())[:MAX_IDS_LISTED])
        suffix = f"; and {len(bad) - MAX_IDS_LISTED} more" if len(bad) > MAX_IDS_LISTED else ""
        raise UserError(f"{dataset}: {len(bad)} rows can't be trained on ({reasons}{suffix}); {advice}")


def _find_on_hub(name: str, revision: str, statistics: str) -> DatasetSource:
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    with loading(f"{name}@{revision}", "cannot be had from the Hub"):
        commit = HfApi().dataset_info(name, revision=revision).sha
        try:
            file = hf_hub_download(name, statistics, repo_type="dataset", revision=commit)
        except EntryNotFoundError:
            return DatasetSource(name, commit, {})
    return DatasetSource(name, commit, boundary.read_file(dict[str, Any], Path(file), "the record", ANEW))


def _load_folder(folder: Path, config: str, split: str) -> Any:
    """Read a split's Parquet files as they are now: `load_dataset` would answer from a stale cache."""
    import pyarrow
    import pyarrow.parquet
    from datasets import Dataset

    if not (files := parquet.parquet_files(folder, config, split)):
        raise FileNotFoundError(f"no data/{config}/{split}-*.parquet in it")
    return Dataset(pyarrow.concat_tables([pyarrow.parquet.read_table(file) for file in files]))
