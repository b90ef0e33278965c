"""The ground floor stays light, and stands on nothing above it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = {"torch", "vllm", "transformers", "trl", "ray", "datasets", "pandas"}
UPPER_FLOORS = {"builders", "cards", "evaluators", "releases", "scripts", "trainers"}
ROOT = Path(__file__).resolve().parents[2]

# After each module the new top-level names are noted, so that the guilty one is named.
IMPORT_ALL = """
import importlib, json, sys
brought = {}
for name in json.loads(sys.argv[1]):
    before = set(sys.modules)
    importlib.import_module(name)
    brought[name] = sorted({module.partition(".")[0] for module in set(sys.modules) - before})
print(json.dumps(brought))
"""


def modules() -> list[str]:
    """Every module by its file, which unlike pkgutil also finds folders without __init__.py."""
    files = sorted((ROOT / "safe_stepwise").rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def test_importing_every_module_brings_in_nothing_heavy_and_no_upper_floor() -> None:
    names = modules()
    assert {"safe_stepwise", "safe_stepwise.records", "safe_stepwise.steps"} <= set(names)
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, json.dumps(names)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    brought = {name: set(tops) for name, tops in json.loads(done.stdout).items()}
    assert set(brought) == set(names)
    guilty = {name: tops & (HEAVY | UPPER_FLOORS) for name, tops in brought.items()}
    assert {name: tops for name, tops in guilty.items() if tops} == {}
