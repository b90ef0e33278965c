"""A copy of the house in which a toy is added, file by file, to count what that touches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.memory.sitecustomize import FOLDER
from tests.test_house import PACKAGES, ROOT


class Copy:
    """The packages of the house in a folder; ``touched`` are the files that were written there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.touched: set[str] = set()
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package)

    def add(self, file: str, text: str) -> None:
        """Write a file that is new."""
        assert not (self.folder / file).exists()
        (self.folder / file).write_text(text, encoding="utf-8")
        self.touched.add(file)

    def insert(self, file: str, text: str, before: str) -> None:
        """Put a text before another, which stands there once."""
        place = self.folder / file
        source = place.read_text(encoding="utf-8")
        assert source.count(before) == 1, before
        place.write_text(source.replace(before, text + before), encoding="utf-8")
        self.touched.add(file)

    def run(self, *arguments: str) -> str:
        """What Python prints by the copy's modules; its tests' helpers are those of here."""
        paths = os.pathsep.join([str(FOLDER), str(self.folder), str(ROOT)])
        told = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": paths, "SAFE_STEPWISE_CACHE": str(self.folder / "replies.sqlite")},
        )
        assert told.returncode == 0, told.stdout + told.stderr
        return told.stdout
