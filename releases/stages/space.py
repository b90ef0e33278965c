"""The stages of the metric's Space: its code with the package of the same checkout, and traces to show."""

import json
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from releases.manifest import Manifest
from releases.stage import Result, Stage
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

    def make(self) -> Result:
        copy_space(CHECKOUT, self.release.output)
        return Result()


@dataclass(frozen=True)
class TracesStage(Stage[Manifest]):
    """The stage that copies the trajectories which the Space shows."""

    default_name, key = SPACE, "evaluation"
    follows = "evaluation"

    def make(self) -> Result:
        copy_traces(self.release.output)
        return Result()


def copy_space(checkout: Path, output: Path) -> None:
    """Make the Space's folder from a checkout.

    The package lies beside the app, as whoever took its name on PyPI could run code in every Space that installs it.
    ``requirements.txt`` lists its dependencies, as Hugging Face installs these before any other file is there.
    """
    folder = output / SPACE
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(checkout / "evaluators" / METRIC, folder, ignore=_IGNORED)
    shutil.copytree(checkout / PACKAGE, folder / PACKAGE, ignore=_IGNORED)
    for name in (PROJECT, SETUP, LICENSE):  # so that pip installs the package from the Space
        shutil.copyfile(checkout / name, folder / name)
    project = tomllib.loads((checkout / PROJECT).read_text(encoding="utf-8"))["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"]["openai"]]
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in sorted(requirements)), encoding="utf-8")


def copy_traces(output: Path) -> None:
    """Copy the first trajectories of the release's report in which a step was rejected, if there are any."""
    folder = output / SPACE / TRACES
    shutil.rmtree(folder, ignore_errors=True)
    chosen: list[dict[str, Any]] = []
    for line in _lines(output / REPORT, TRAJECTORIES):
        verdicts = (attempt["feedback"] for attempt in line["trajectory"]["attempts"])
        if any(verdict is not None and verdict["error_type"] != CORRECT for verdict in verdicts):
            chosen.append(line)
        if len(chosen) == MAX_TRACES:
            break
    if chosen:
        folder.mkdir()
        _write(folder / TRAJECTORIES, chosen)
        names = ("benchmark", "id", "question")
        keys = {(line["benchmark"], line["trajectory"]["question_id"]) for line in chosen}
        questions = [row for row in _lines(output / REPORT, QUESTIONS) if (row["benchmark"], row["id"]) in keys]
        _write(folder / QUESTIONS, ({name: row[name] for name in names} for row in questions))


def _lines(folder: Path, name: str) -> Iterator[Any]:
    if (file := locate_lines(folder, name)).is_file():
        with open_unpacked(file) as lines:
            yield from map(json.loads, lines)


def _write(file: Path, rows: Iterable[dict[str, Any]]) -> None:
    write_lines(file, (json.dumps(row, ensure_ascii=False) for row in rows))
