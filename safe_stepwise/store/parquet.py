"""Rows of Parquet files of ours, which somebody else may have written, or damaged."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS, LABELED
from safe_stepwise.store.opening import open_file

T = TypeVar("T")
ANEW = "make or pull it anew"
_NO_ROW = (ValueError, TypeError, LookupError, AttributeError)
"""What a row raises that holds something else than it should."""


def read_rows(
    file: Path,
    read: Callable[[dict[str, Any]], T],
    columns: Sequence[str] | None = None,
    wanted: Callable[[Any], Any] | None = None,
) -> Iterator[T]:
    """What ``read`` makes of each row of a file.

    ``columns`` are those that it needs, if not all; ``wanted`` says of a batch which of its rows.
    Raises ``UserError`` for a file that cannot be read, with the row's id where ``read`` can't.
    """
    for batch in _batches(file, columns):
        with _reading(f"{file}:"):
            content = (batch.filter(wanted(batch)) if wanted else batch).to_pylist()
        for row in content:
            with _reading(f"{file}: row {row.get('id')!r}"):
                found = read(row)
            yield found


def _batches(file: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    from pyarrow.parquet import ParquetFile

    # Not as a stream of `datasets`: its threads may outlive the last row and abort the exit.
    with _reading(f"{file}:"), open_file(file) as opened, ParquetFile(opened) as content:
        for lacking in sorted(set(columns or ()) - set(content.schema_arrow.names)):
            raise UserError(f"{file}: has no column {lacking}; {ANEW}")
        named = None if columns is None else list(columns)
        yield from content.iter_batches(1_000, columns=named, use_threads=False)


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Raise ``UserError`` about what is no file, or no row, of ours."""
    from pyarrow import ArrowException

    try:
        yield
    except (OSError, ArrowException, *_NO_ROW) as error:
        kind = f"no {error}" if isinstance(error, KeyError) else str(error).partition("\n")[0]
        raise UserError(f"{what} cannot be read ({kind[:200]}); {ANEW}") from None


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
