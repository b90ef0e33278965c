"""Rows of a Parquet file, whose columns may hold what JSON lacks."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from builders.work.fields import NO_JSON

_AT_ONCE = 256


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows, their values as `plain` makes them.

    Raises ``pyarrow.ArrowException``, OSError, or ``ValueError``: a column's name may be no UTF-8.
    """
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_AT_ONCE):
            names = batch.schema.names
            for values in zip(*map(_values, batch.columns), strict=True):
                yield dict(zip(names, values, strict=True))


def plain(value: Any) -> Any:
    """A value of Parquet or `datasets` as JSON can have it; of what it can't, the kind.

    So only a reader who needs a column minds what is in it.

    >>> plain({"idx": 3, "made": b"?", "share": float("nan")})
    {'idx': 3, 'made': {'not in JSON': 'bytes'}, 'share': {'not in JSON': 'nan'}}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {NO_JSON: str(value)}
    return {NO_JSON: type(value).__name__}


def _values(column: Any) -> list[Any]:
    try:
        return [plain(value) for value in column.to_pylist()]
    except Exception:  # each type has errors of its own: of time zones, of years, of UTF-8
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return plain(scalar.as_py())
    except Exception:
        return {NO_JSON: str(scalar.type)}
