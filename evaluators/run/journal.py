"""The trajectories that ended, kept as they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safe_stepwise.records import Trajectory, canonical_json


class Journal:
    """Trajectories by key, one line each, on disk before the next one ends.

    A last line that a kill tore is cut off; ``read`` makes a trajectory of its plain fields.
    """

    def __init__(self, path: Path, read: Callable[[Any], Trajectory]) -> None:
        self.path = path
        self._known: dict[str, Trajectory] = {}
        sound = 0
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                if not line.endswith(b"\n"):
                    break
                try:
                    entry = json.loads(line)
                    self._known[entry["key"]] = read(entry["trajectory"])
                except (ValueError, TypeError, KeyError, AttributeError):
                    break  # torn, or damaged: from here on all is owed again
                sound += len(line)
        self._file = path.open("ab", buffering=0)
        self._file.truncate(sound)

    def get(self, key: str) -> Trajectory | None:
        """The trajectory under a key, if it ended."""
        return self._known.get(key)

    def add(self, key: str, trajectory: Trajectory) -> None:
        """Keep a trajectory."""
        self._known[key] = trajectory
        line = canonical_json({"key": key, "trajectory": asdict(trajectory)}) + "\n"
        left = memoryview(line.encode("utf-8", "backslashreplace"))
        while left:
            left = left[self._file.write(left) :]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
