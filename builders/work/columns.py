"""Makes the columns of a config (`datasets.Features`) from ``columns.yaml``, the table of all published columns."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.store.packaged import read_yaml

_TABLES: Mapping[str, Mapping[str, Any]] = read_yaml(Path(__file__).with_suffix(".yaml"))


def features(*tables: str, only: Collection[str] = (), **class_names: Sequence[str]) -> Any:
    """Return the columns of some tables, in this order, or ``only`` those that are named.

    ``class_names`` has the names of each class label, by column.
    """
    from datasets import ClassLabel, Features, List, Value

    def feature(kind: Any) -> Any:
        if isinstance(kind, list):
            return List(feature(kind[0]))
        return {name: feature(part) for name, part in kind.items()} if isinstance(kind, Mapping) else Value(kind)

    columns = {name: kind for table in tables for name, kind in _TABLES[table].items() if not only or name in only}
    classes = {name: ClassLabel(names=[*class_names[name]]) for name, kind in columns.items() if kind == "class"}
    return Features({name: classes.get(name) or feature(kind) for name, kind in columns.items()})
