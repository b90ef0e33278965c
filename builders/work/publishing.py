"""From files that are written to a dataset folder that is in place: record, card, swap."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builders.work import folders
from safe_stepwise.errors import UserError
from safe_stepwise.store import locks
from safe_stepwise.store.files import write_atomically

Record = Mapping[str, Any]
"""A build's statistics as its JSON has them."""
Splits = Mapping[str, Iterable[Mapping[str, Any]]]
"""Each config's splits (records of `SplitFiles`)."""
Card = Callable[[Sequence[Record], Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""README and images by file name, from the records of a dataset and its ``dataset_info``."""


@contextmanager
def building(
    output: Path, datasets: Sequence[str], version: str, work: Path, done: Callable[[], str]
) -> Iterator[None]:
    """Hold the output folder while its datasets are built in ``work``, and mend what a crash left.

    Raises ``UserError`` for a folder that cannot be written or holds another version, and for a
    full disk, with what is ``done``.
    """
    with locks.exclusive(output):
        for name in datasets:
            folders.recover(output / name)
            folders.check_version(output / name, version)
        try:
            yield
        except OSError as error:
            new_release(work)
            if locks.is_disk_full(error):
                raise UserError(
                    f"{output}: no space left on the disk, with {done()}; make room and run the "
                    f"same command again: it resumes from {work}"
                ) from error
            if locks.is_forbidden(error):
                raise locks.cannot_write(Path(error.filename or output), error) from error
            raise


def new_release(work: Path) -> Path:
    """Where datasets are prepared, without what an earlier run left there."""
    shutil.rmtree(work / "release", ignore_errors=True)
    return work / "release"


def complete(
    dataset: Path,
    name: str,
    statistics: Any,
    card: Card,
    splits: Callable[[Record], Splits],
    features: Callable[[str], Any],
) -> None:
    """Add a record, in the file ``name``, and the card to a dataset, and flush its folders.

    ``splits`` are the files of a record, ``features`` the `datasets.Features` of a config by name.
    """
    content = json.dumps(asdict(statistics), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    _write(dataset / name, content.encode())
    records = folders.read_statistics(dataset)
    configs: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for config, parts in splits(record).items():
            configs.setdefault(config, []).extend(parts)
    for file, data in card(records, _dataset_info(configs, features)).items():
        _write(dataset / file, data)
    for made in (*dataset.glob("*"), *dataset.glob("*/*")):
        if made.is_dir():
            folders.sync_folder(made)


def publish_lines(file: Path, content: bytes) -> None:
    """Put a file of rows that were left out in place; none if there are none."""
    if content:
        write_atomically(file, content)
    else:
        file.unlink(missing_ok=True)


def forget(work: Path) -> None:
    """Remove the work of a build that is in place."""
    shutil.rmtree(work)
    with suppress(OSError):
        work.parent.rmdir()


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)


def _dataset_info(configs: Splits, features: Callable[[str], Any]) -> list[dict[str, Any]]:
    """The ``dataset_info`` entries of a README: sizes of the splits of every config with rows."""
    from datasets import DatasetInfo, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    infos = DatasetInfosDict()
    for config, splits in configs.items():
        parts = [part for part in splits if part["rows"]]
        if not parts:
            continue
        sizes = {p["split"]: SplitInfo(p["split"], p["arrow_bytes"], p["rows"]) for p in parts}
        infos[config] = DatasetInfo(
            config_name=config,
            features=features(config),
            splits=SplitDict(sizes),
            download_size=sum(part["bytes"] for part in parts),
            dataset_size=sum(part["arrow_bytes"] for part in parts),
        )
    data = DatasetCardData()
    infos.to_dataset_card_data(data)
    entries = data.get("dataset_info") or []
    return [dict(e) for e in (entries if isinstance(entries, list) else [entries])]
