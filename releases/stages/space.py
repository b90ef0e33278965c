"""The stages of the metric's Space: its code, with the package of the same checkout, and trajectories to show."""

import json
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from releases.manifest import Manifest
from releases.stage import Stage, StageResult
from safe_stepwise.store.files import locate_lines, open_unpacked, write_lines
from safe_stepwise.store.names import METRIC, QUESTIONS, REPORT, SPACE, TRAJECTORIES
from safe_stepwise.taxonomy import CORRECT

CHECKOUT = Path(__file__).parents[2]
PACKAGE, PROJECT, SETUP, LICENSE = "safe_stepwise", "pyproject.toml", "setup.py", "LICENSE"
TRACES = "traces"
MAX_TRACES = 60
"""The largest number of trajectories that the Space shows; the report has all."""
_IGNORED = shutil.ignore_patterns("__pycache__", ".*")


@dataclass(frozen=True)
class SpaceStage(Stage[Manifest]):
    """The stage that copies the Space's code."""

    default_name = SPACE

    def make(self) -> StageResult:
        copy_space(CHECKOUT, self.release.output)
        return StageResult()


@dataclass(frozen=True)
class TracesStage(Stage[Manifest]):
    """The stage that copies the trajectories which the Space shows."""

    default_name, key = SPACE, "evaluation"
    remade_after = "evaluation"

    def make(self) -> StageResult:
        copy_traces(self.release.output)
        return StageResult()


def copy_space(checkout: Path, output: Path) -> None:
    """Make the Space's folder from a checkout.

    The package is copied beside the app: if the Space installed it by name, whoever registered that name on PyPI could
    run code in it. ``requirements.txt`` lists its dependencies, which Hugging Face installs before it copies files.
    """
    folder = output / SPACE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout / "evaluators" / METRIC, folder, ignore=_IGNORED)
    shutil.copytree(checkout / PACKAGE, folder / PACKAGE, ignore=_IGNORED)
    for name in (PROJECT, SETUP, LICENSE):  # so that pip installs the package from the Space
        shutil.copyfile(checkout / name, folder / name)
    project = tomllib.loads((checkout / PROJECT).read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    requirements = {*project["dependencies"], *extras["metric"], *extras["openai"]}
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in sorted(requirements)), encoding="utf-8")


def copy_traces(output: Path) -> None:
    """Copy the first trajectories of the release's report in which a step was rejected, if there are any."""
    folder = output / SPACE / TRACES
    shutil.rmtree(folder, ignore_errors=True)
    rows = [*islice(filter(_has_rejected_step, _read_rows(output / REPORT, TRAJECTORIES)), MAX_TRACES)]
    if rows:
        folder.mkdir()
        _write_rows(folder / TRAJECTORIES, rows)
        names = ("benchmark", "id", "question")
        keys = {(row["benchmark"], row["trajectory"]["question_id"]) for row in rows}
        questions = [row for row in _read_rows(output / REPORT, QUESTIONS) if (row["benchmark"], row["id"]) in keys]
        _write_rows(folder / QUESTIONS, ({name: row[name] for name in names} for row in questions))


def _has_rejected_step(row: dict[str, Any]) -> bool:
    verdicts = (attempt["feedback"] for attempt in row["trajectory"]["attempts"])
    return any(verdict is not None and verdict["error_type"] != CORRECT for verdict in verdicts)


def _read_rows(folder: Path, name: str) -> Iterator[Any]:
    if (file := locate_lines(folder, name)).is_file():
        with open_unpacked(file) as lines:
            yield from map(json.loads, lines)


def _write_rows(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_lines(file, (json.dumps(row, ensure_ascii=False) for row in rows))
