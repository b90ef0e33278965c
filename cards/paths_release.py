"""The overview of a release of relation paths: README on top of its folder, from its records."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cards.base_model import Base
from cards.cards import Record
from cards.deliberation import Deliberation
from cards.pages import fill
from cards.pages import metadata as header
from cards.paths import configs_of
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import (
    ADAPTER,
    BLOCKS,
    DATASETS,
    PATHS_RECORD,
    README,
    REPORT,
    RESULTS,
    SFT,
    TRAINING,
    paths_set,
    proposer_repo,
)
from safe_stepwise.store.parsing import read_record


def release(
    lock: Record,
    paths: Record,
    stages: Mapping[str, Record] | None = None,
    license: str | None = None,
    results: Mapping[str, Record] | None = None,
) -> str:
    """README of a release folder.

    Args:
        lock: what ``release.lock.json`` holds (``files`` is not looked at).
        paths: what ``statistics/paths.json`` of the set holds.
        stages: what ``training.json`` holds, by folder, of the published adapter and of the one
            that it went on from; those that are there.
        license: that of the published adapter's card.
        results: what ``results.json`` of evaluations holds, by the folder of each.

    Raises ``KeyError`` for a figure that is missing, ``UserError`` where lock and records differ.
    """
    if paths["version"] != lock["version"]:
        raise UserError(f"the lock is of {lock['version']}, but the paths of {paths['version']}")
    name, trained = paths_set(paths["benchmark"]), dict(stages or {})
    base = Base.read(trained[ADAPTER]) if ADAPTER in trained else None
    return fill(
        "paths_release.md.jinja",
        lock=lock,
        record=paths,
        dataset=name,
        folder=f"{DATASETS}/{name}",
        configs=configs_of(paths["files"]),
        base=base,
        adapter=None if base is None else proposer_repo(name, base.name),
        license=license,
        stages=trained,
        evaluations=[Deliberation(place, one, "") for place, one in (results or {}).items()],
    )


def read_release(folder: Path, lock: Record) -> str:
    """The same from the files of a release folder, as far as they are there."""

    def record(file: Path) -> Any:
        return read_record(file, "make it anew")

    (paths,) = (folder / DATASETS).glob(f"*/{PATHS_RECORD}")
    places = {name: folder / name / TRAINING for name in (SFT, ADAPTER)}
    stages = {name: record(file) for name, file in places.items() if file.is_file()}
    card = folder / ADAPTER / README
    said = header(card.read_text(encoding="utf-8")) if card.is_file() else {}
    reports = [folder / REPORT, *sorted(folder.glob(f"{BLOCKS}/*/{REPORT}"))]
    results = {
        place.relative_to(folder).as_posix(): record(place / RESULTS)
        for place in reports
        if (place / RESULTS).is_file()
    }
    return release(lock, record(paths), stages, said.get("license"), results)
