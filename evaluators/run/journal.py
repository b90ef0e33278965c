"""Trajectories on disk as they end, and how a run stands: what one that is killed goes on from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.outcomes import NO_LINE, trajectory_of
from safe_stepwise.engines.client import Client, requests
from safe_stepwise.records import Trajectory, canonical_json
from safe_stepwise.store.files import write_atomically, write_lines
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.store.progress import counts


class Journal:
    """Trajectories that ended, by key, one line each, on disk before the next one ends.

    A line that a kill tore, or that was damaged, is taken out: its question is owed again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Trajectory] = {}
        lines = path.read_bytes().split(b"\n") if path.exists() else [b""]
        if (sound := [*filter(self._knows, lines), b""]) != lines:
            write_atomically(path, b"\n".join(sound))
        self._file = path.open("ab", buffering=0)

    def _knows(self, line: bytes) -> bool:
        """Whether a line holds a trajectory, which is then known."""
        try:
            entry = parse_json(line)
            self._known[entry["key"]] = trajectory_of(entry["trajectory"])
        except NO_LINE:
            return False
        return True

    def get(self, key: str) -> Trajectory | None:
        """The trajectory under a key, if it ended."""
        return self._known.get(key)

    def add(self, key: str, trajectory: Trajectory) -> None:
        """Keep a trajectory."""
        self._known[key] = trajectory
        left = memoryview(f"{self._line(key)}\n".encode("utf-8", "backslashreplace"))
        while left:
            left = left[self._file.write(left) :]

    def end(self, keys: Iterable[str]) -> None:
        """Put what is kept under these keys last and in their order, whichever ended first."""
        last = dict.fromkeys(key for key in keys if key in self._known)
        order = [*(key for key in self._known if key not in last), *last]
        if order != [*self._known]:
            write_lines(self._path, map(self._line, order))

    def _line(self, key: str) -> str:
        return canonical_json({"key": key, "trajectory": self._known[key]})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(slots=True)
class Progress:
    """How a run stands, in trajectories."""

    total: int
    done: int = 0
    """All that have ended, kept and failed ones included."""
    kept: int = 0
    """By an earlier run."""
    failed: int = 0

    def standing(self, clients: Sequence[Client]) -> str:
        """In words, with the calls and tokens of this run."""
        accounts = [client.total() for client in clients]
        prompt, cached = sum(a.prompt for a in accounts), sum(a.cached for a in accounts)
        share = f" ({cached / prompt:.0%} cached)" if prompt else ""
        done, owed = self.done - self.kept - self.failed, self.total - self.done
        stands = counts(done, self.kept, owed, failed=self.failed)
        return f"{stands}; {requests(accounts)}; prompt tokens {prompt:,}{share}"
