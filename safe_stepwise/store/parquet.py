"""Finds and reads the Parquet files of our datasets, which other programs may have written or damaged.

A dataset's folder has its files as ``data/CONFIG/SPLIT-*.parquet``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from safe_stepwise.errors import UserError, require_modules
from safe_stepwise.store import names, opening
from safe_stepwise.store.grouping import grouped

T = TypeVar("T")
ANEW = "make or pull it anew"
"""The end of an error message about a damaged file."""


def read_rows(
    file: Path,
    read: Callable[[dict[str, Any]], T],
    columns: Sequence[str] | None = None,
    select: Callable[[Any], Any] | None = None,
) -> Iterator[T]:
    """Yield each row of a file as ``read`` converts it.

    ``columns``: those that ``read`` needs (None: all). ``select`` returns the mask of the rows to read in an Arrow
    batch (None: all rows). Raises ``UserError`` for a file that can't be read; it has the row's id if ``read`` fails.
    """
    for batch in _read_batches(file, columns):
        with _explain_errors(f"{file}:"):
            rows = (batch.filter(select(batch)) if select else batch).to_pylist()
        for row in rows:
            with _explain_errors(f"{file}: row {row.get('id')!r}"):
                value = read(row)
            yield value


def _read_batches(file: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield a file's rows in Arrow batches; raise ``UserError`` for a missing column, and without pyarrow."""
    require_modules("a Parquet file", "pyarrow", "build", "pyarrow")
    from pyarrow.parquet import ParquetFile

    # A stream of `datasets` has threads that may outlive the last row and abort the exit.
    with _explain_errors(f"{file}:"), opening.open_file(file) as opened, ParquetFile(opened) as content:
        for lacking in sorted(set(columns or ()) - set(content.schema_arrow.names)):
            raise UserError(f"{file}: has no column {lacking}; {ANEW}")
        yield from content.iter_batches(1_000, columns=columns and list(columns), use_threads=False)


@contextmanager
def _explain_errors(place: str) -> Iterator[None]:
    """Turn any error inside the context into a ``UserError`` that names the file or row."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ArrowException, ValueError, TypeError, LookupError, AttributeError) as error:
        reason = f"no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise UserError(f"{place} cannot be read ({reason[:200]}); {ANEW}") from None


def dataset_folder(folder: Path, name: str) -> Path | None:
    """Find a dataset's folder, with ``data`` in it: in a build or release, or ``folder`` itself; else None."""
    places = (folder / name, folder / names.DATASETS / name, folder)
    return next((place for place in places if (place / "data").is_dir()), None)


def find_files(folder: Path, name: str, config: str, advice: str) -> list[Path]:
    """List the Parquet files of a config (or glob pattern) of a dataset; raise ``UserError`` with advice for none."""
    dataset = dataset_folder(folder, name)
    if dataset is None or not (files := parquet_files(dataset, config)):
        raise UserError(f"{folder}: no {name} in it; {advice}")
    return files


def parquet_files(dataset: Path, config: str, split: str = "*") -> list[Path]:
    """List the Parquet files of a config's split, sorted; config and split may be glob patterns."""
    return sorted((dataset / "data").glob(f"{config}/{split}-*.parquet"))


def labeled_files(dataset: Path) -> dict[str, list[Path]]:
    """List the Parquet files of the configs with all labelled rows (``B_labeled``), by benchmark."""
    files = parquet_files(dataset, f"*{names.LABELED}")
    return grouped(files, lambda file: file.parent.name.removesuffix(names.LABELED))
