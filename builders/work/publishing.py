"""Dataset folders: read, completed with record and card, swapped in whole, never half-written."""

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
from safe_stepwise.store import files
from safe_stepwise.store.boundary import plain, read_file
from safe_stepwise.store.names import REFUSED, REJECTS, STATISTICS, UNMATCHED, WORK
from safe_stepwise.store.tables import environment, text_table

Record = Mapping[str, Any]
"""A build's statistics as its JSON has them."""
Splits = Mapping[str, Iterable[Mapping[str, Any]]]
"""Each config's splits (records of `SplitFiles`)."""
Card = Callable[[Sequence[Record], Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""README and images by file name, from the records of a dataset and its ``dataset_info``."""
CardOfOne = Callable[[Record, Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""The same of a dataset that one build makes, from its only record."""

S = TypeVar("S")
"""A build's statistics: a dataclass, or what JSON has of it."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """What any record has, of whatever version."""

    version: str


def read_statistics(dataset: Path, kind: Any = Versioned) -> list[dict[str, Any]]:
    """The statistics of every build in a dataset folder, by file name; none if it is not there.

    Raises ``UserError`` for a folder that holds something else than a dataset of ours, and for a
    record that lacks what ``kind`` has.
    """
    if not dataset.exists():
        return []
    if not dataset.is_dir():
        raise UserError(f"{dataset}: a file is in the way of the dataset folder; remove it")
    files = sorted((dataset / STATISTICS).glob("*.json"))
    if not files and any(dataset.iterdir()):
        raise UserError(
            f"{dataset}: not a dataset of build_verified (no statistics/*.json in it); choose another --output"
        )
    mend = "choose another --output"
    for file in files:
        read_file(kind, file, "the record", mend)
    return [read_file(dict[str, Any], file, "the record", mend) for file in files]


def check_version(dataset: Path, version: str, kind: Any = Versioned) -> None:
    """Raise ``UserError`` if the folder holds a build of another version, or none of its kind."""
    for build in read_statistics(dataset):
        if build["version"] != version:
            raise UserError(
                f"{dataset}: holds version {build['version']}, but this build is {version}; choose "
                f"another --output, or continue it with --version {build['version']}"
            )
    read_statistics(dataset, kind)


def link_tree(source: Path, target: Path) -> None:
    """Copy a folder by hard links, as its files are replaced and never changed in place."""
    if source.exists():
        shutil.copytree(source, target, copy_function=_link_or_copy)


def swap_in(new: Path, final: Path) -> None:
    """Put a complete folder in the place of ``final``; `recover` mends a crash in between."""
    old = _old(final)
    if final.exists():
        final.rename(old)
    new.rename(final)
    _sync_folder(final.parent)
    shutil.rmtree(old, ignore_errors=True)


def recover(final: Path) -> None:
    """Undo or finish a `swap_in` that was interrupted."""
    old = _old(final)
    if not old.exists():
        return
    if final.exists():
        shutil.rmtree(old)
    else:
        old.rename(final)


@contextmanager
def building(plan: Plan, datasets: Sequence[str], done: Callable[[], str], kind: Any = Versioned) -> Iterator[None]:
    """Hold a plan's output folder while its datasets are built, and mend what a crash left.

    Raises ``UserError`` for a folder that cannot be written, holds a link, another version or records that lack what
    ``kind`` has, and for a full disk, with what is ``done``.
    """
    output = plan.output
    hidden = (WORK, *(_old(output / name).name for name in datasets))
    with files.exclusive(output, owned=(*datasets, *hidden, REJECTS, REFUSED, UNMATCHED)):
        for name in datasets:
            recover(output / name)
            check_version(output / name, plan.version, kind)
        try:
            yield
        except OSError as error:
            new_release(plan.work)
            if files.is_disk_full(error):
                raise UserError(
                    f"{output}: no space left on the disk, with {done()}; make room and run the "
                    f"same command again: it resumes from {plan.work}"
                ) from error
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
    _write(dataset / name, files.json_bytes(plain(statistics)))
    records = read_statistics(dataset)
    configs: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for config, parts in splits(record).items():
            configs.setdefault(config, []).extend(parts)
    for file, data in card(records, _dataset_info(configs, features)).items():
        _write(dataset / file, data)
    for made in (*dataset.glob("*"), *dataset.glob("*/*")):
        if made.is_dir():
            _sync_folder(made)


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that one build makes whole, and the file beside it of what it left out."""

    name: str
    record: str
    """The file of its statistics, whose ``files`` are those by config and split."""
    features: Callable[[str], Any]
    """The `datasets.Features` of a config."""
    left_out: str = REJECTS

    def build(
        self, plan: Plan, card: CardOfOne, done: Callable[[], str], make: Callable[[Path], tuple[S, bytes]]
    ) -> S:
        """Build it in the place of any earlier one; returns its statistics.

        ``make`` writes the Parquet files into a folder, and returns the statistics with the lines of what was left
        out. Killed at any instant, the same call resumes. Raises as `building`.
        """
        with building(plan, (self.name,), done):
            release = new_release(plan.work)
            statistics, left_out = make(release / "data")
            record = json.loads(json.dumps(plain(statistics)))  # in our order, not that of its file
            files = {config: splits.values() for config, splits in record["files"].items()}

            complete(
                release, self.record, statistics, lambda _, info: card(record, info), lambda _: files, self.features
            )
            swap_in(release, plan.output / self.name)
            publish_lines(plan.output / self.left_out, left_out)
            if not plan.keep_work:
                forget(plan.work)
        return statistics


def publish_lines(file: Path, content: bytes) -> None:
    """Put a file of rows that were left out in place; none if there are none."""
    if content:
        files.write_atomically(file, content)
    else:
        file.unlink(missing_ok=True)


def forget(work: Path) -> None:
    """Remove the work of a build that is in place."""
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


def _old(final: Path) -> Path:
    return final.with_name(f".{final.name}.old")


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomically(file, content)


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


def summary(folder: Path, template: str, **values: Any) -> str:
    """A template of a folder in plain text; ``table`` in it sets rows as an aligned table."""
    return environment((folder,)).get_template(template).render(table=text_table, **values).removesuffix("\n")
