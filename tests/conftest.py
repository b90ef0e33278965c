"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from safe_stepwise.store import figures
from tests import sizes, sketches
from tests.memory import sitecustomize

ROOT = Path(__file__).resolve().parents[1]

# Every process of the run, this one too, keeps what it parsed.
PARSES = ROOT / ".pytest_cache" / "parses.sqlite"
PARSES.parent.mkdir(exist_ok=True)
os.environ.setdefault(sitecustomize.SWITCH, str(PARSES))
os.environ["PYTHONPATH"] = os.pathsep.join(
    dict.fromkeys([str(sitecustomize.FOLDER), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))])
)

# A shell starts background jobs with Ctrl-C ignored, and the commands under test would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nor may a test hang on how fast the machine is: an example takes as long as it takes.
settings.register_profile(
    "any machine", deadline=None, max_examples=sizes.examples(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

GRID = 3
"""Cases of a parametrised test in the quick suite, unless its mark `quick_cases` says another number."""
REAL_GRID = 1
"""Cases of a parametrised test on real rows: each benchmark costs as much as a hundred cases made up."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "quick_cases(count): how many cases of its grid the quick suite runs")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests wait a third of their time, for servers and other processes."""
    from scripts.cli import cores

    return cores() + 1


def pytest_report_header() -> str:
    size = "full" if sizes.is_full() else "quick: a sample of the cases (make test-full runs all)"
    return f"size of the tests: {size}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a seeded sample of each grid in the quick suite; a case that was named by its id stays."""
    if sizes.is_full() or any("[" in argument for argument in config.args):
        return
    grids = defaultdict(list)
    for item in items:
        grids[item.nodeid.partition("[")[0]].append(item)
    sampled = set()
    for name, grid in grids.items():
        mark = grid[0].get_closest_marker("quick_cases")
        cases = REAL_GRID if "real_data" in grid[0].fixturenames else GRID
        sampled |= {*sizes.sample(grid, mark.args[0] if mark else cases, seed=name)}
    config.hook.pytest_deselected(items=[item for item in items if item not in sampled])
    items[:] = [item for item in items if item in sampled]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Sketch figures, except where a test may compare them with those of a process that it starts."""
    names = vars(getattr(item, "module", None) or sizes)
    figures._render = sketches.render
    if not {"subprocess", "killed"} & names.keys():
        sketches.use_sketches()


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real benchmark rows, none of which may be copied into the project."""
    named = os.environ.get("SAFE_STEPWISE_REAL_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is no folder (set SAFE_STEPWISE_REAL_DATA)")
    return folder


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures as users get them, in the quick suite too."""
    monkeypatch.setattr(figures, "_render", sketches.render)
