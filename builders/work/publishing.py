"""Publishes dataset folders: each gets its record and card, and replaces the old folder as a whole."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from builders.work.plans import Plan
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files, names

Record = Mapping[str, Any]
"""A build's statistics as its JSON has them."""
Splits = Mapping[str, Iterable[Mapping[str, Any]]]
"""Each config's splits (records of `SplitFiles`)."""
Card = Callable[[Sequence[Record], Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""README and images by file name, from the records of a dataset and its ``dataset_info``."""
SingleCard = Callable[[Record, Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""README and images of a dataset that one build makes, from its only record and its ``dataset_info``."""

S = TypeVar("S")
"""A build's statistics: a dataclass, or what JSON has of it."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """The field that a build's record has in every version of this toolkit."""

    version: str


def read_statistics(
    dataset: Path, kind: Any = Versioned, mend: str = "choose another --output"
) -> list[dict[str, Any]]:
    """Read the statistics of every build in a dataset folder, in the order of their file names.

    Raises ``UserError`` for another folder, and for a record that lacks a field of ``kind``; ``mend`` is the advice.
    """
    if not dataset.exists():
        return []
    if not dataset.is_dir():
        raise UserError(f"{dataset}: a file is in the way of the dataset folder; remove it")
    files = sorted((dataset / names.STATISTICS).glob("*.json"))
    if not files and any(dataset.iterdir()):
        raise UserError(
            f"{dataset}: not a dataset of build_verified (no statistics/*.json in it); choose another --output"
        )
    for file in files:
        boundary.read_file(kind, file, "the record", mend)
    return [boundary.read_file(dict[str, Any], file, "the record", mend) for file in files]


def swap_in(new: Path, final: Path) -> None:
    """Put a complete folder in the place of ``final``; `recover` mends a crash in between."""
    old = _backup_path(final)
    if final.exists():
        final.rename(old)
    new.rename(final)
    _sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(final: Path) -> None:
    """Undo or finish a `swap_in` that was interrupted."""
    old = _backup_path(final)
    if not old.exists():
        return
    if final.exists():
        shutil.rmtree(old)
    else:
        old.rename(final)


@contextmanager
def building(
    plan: Plan, datasets: Sequence[str], describe: Callable[[], str], kind: Any = Versioned
) -> Iterator[None]:
    """Lock a plan's output folder while its datasets are built, and mend what a crash left.

    Raises ``UserError`` for a bad folder, another version, a record without a field of ``kind``, and a full disk.
    """
    output = plan.output
    hidden = (names.WORK, *(_backup_path(output / name).name for name in datasets))
    with files.lock_folder(output, owned=(*datasets, *hidden, names.REJECTS, names.REFUSED, names.UNMATCHED)):
        for name in datasets:
            recover(output / name)
            for build in read_statistics(output / name):
                if build["version"] != plan.version:
                    raise UserError(
                        f"{output / name}: holds version {build['version']}, but this build is {plan.version}; choose "
                        f"another --output, or continue it with --version {build['version']}"
                    )
            read_statistics(output / name, kind)
        try:
            yield
        except OSError as error:
            new_release(plan.work)
            if files.is_disk_full(error):
                raise UserError(
                    f"{output}: no space left on the disk, with {describe()}; make room and run the "
                    f"same command again: it resumes from {plan.work}"
                ) from error
            raise


def new_release(work: Path) -> Path:
    """Empty the folder in which datasets are prepared, and return it."""
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
    """Add a record (as file ``name``) and the card to a dataset; ``splits`` returns the files of a record."""
    _write(dataset / name, files.json_bytes(boundary.plain(statistics)))
    records = read_statistics(dataset)
    configs: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for config, split_files in splits(record).items():
            configs.setdefault(config, []).extend(split_files)
    for file, data in card(records, _read_dataset_info(configs, features)).items():
        _write(dataset / file, data)
    for folder in (*dataset.glob("*"), *dataset.glob("*/*")):
        if folder.is_dir():
            _sync_folder(folder)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that one build makes as a whole, and the file of rows that it left out."""

    name: str
    record: str
    """The file of its statistics, whose ``files`` are those by config and split."""
    features: Callable[[str], Any]
    """The `datasets.Features` of a config."""
    left_out: str = names.REJECTS

    def build(
        self, plan: Plan, card: SingleCard, describe: Callable[[], str], make: Callable[[Path], tuple[S, bytes]]
    ) -> S:
        """Build the dataset, replace an earlier one by it, and return its statistics; raise as `building`.

        ``make`` writes files into a folder, and returns statistics and left-out lines. After a kill it resumes.
        """
        with building(plan, (self.name,), describe):
            release = new_release(plan.work)
            statistics, left_out = make(release / "data")
            record = json.loads(json.dumps(boundary.plain(statistics)))  # in our order, not that of its file
            files = {config: splits.values() for config, splits in record["files"].items()}
            complete(
                release, self.record, statistics, lambda _, info: card(record, info), lambda _: files, self.features
            )
            swap_in(release, plan.output / self.name)
            publish_lines(plan.output / self.left_out, left_out)
            if not plan.keep_work:
                remove_work(plan.work)
        return statistics


def publish_lines(file: Path, content: bytes) -> None:
    """Write a file of rows that were left out, or remove it if there are none."""
    if content:
        files.write_atomically(file, content)
    else:
        file.unlink(missing_ok=True)


def remove_work(work: Path) -> None:
    """Remove the work folder of a build that is published."""
    shutil.rmtree(work)
    with suppress(OSError):
        work.parent.rmdir()


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries, so that a rename survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _backup_path(final: Path) -> Path:
    return final.with_name(f".{final.name}.old")


def link_or_copy(source: str, target: str) -> None:
    """Copy a file by a hard link if possible: published files are replaced and never changed in place."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomically(file, content)


def _read_dataset_info(configs: Splits, features: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Return the ``dataset_info`` entries of a README: sizes of the splits of every config with rows."""
    from datasets import DatasetInfo, SplitDict, SplitInfo
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    infos = DatasetInfosDict()
    for config, splits in configs.items():
        nonempty = [split for split in splits if split["rows"]]
        if not nonempty:
            continue
        sizes = {split["split"]: SplitInfo(split["split"], split["arrow_bytes"], split["rows"]) for split in nonempty}
        infos[config] = DatasetInfo(
            config_name=config,
            features=features(config),
            splits=SplitDict(sizes),
            download_size=sum(split["bytes"] for split in nonempty),
            dataset_size=sum(split["arrow_bytes"] for split in nonempty),
        )
    data = DatasetCardData()
    infos.to_dataset_card_data(data)
    entries = data.get("dataset_info") or []
    return [dict(e) for e in (entries if isinstance(entries, list) else [entries])]
