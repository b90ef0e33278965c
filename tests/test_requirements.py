"""What is installed is known: bounds in pyproject.toml, versions and hashes in requirements/."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = PROJECT["optional-dependencies"]
RUNTIME += [Requirement(line) for extra in ("metric", "build", "report") for line in EXTRAS[extra]]
DEV = [Requirement(line) for line in EXTRAS["dev"]]


def locked(name: str) -> dict[str, set[str]]:
    """Versions by package; fails for one without a hash."""
    found: dict[str, set[str]] = defaultdict(set)
    text = (ROOT / "requirements" / name).read_text("utf-8")
    for entry in re.split(r"\n(?=[a-z0-9])", text, flags=re.IGNORECASE):
        line = re.match(r"([\w.-]+)==([\w.]+)", entry)
        if line is None:
            assert entry.startswith("#"), entry
            continue
        assert "--hash=sha256:" in entry, entry
        found[canonicalize_name(line[1])].add(line[2])
    return found


@pytest.mark.parametrize("requirement", RUNTIME, ids=str)
def test_every_runtime_dependency_has_an_upper_bound(requirement: Requirement) -> None:
    assert any(part.operator in ("<", "<=", "==") for part in requirement.specifier)


@pytest.mark.parametrize(("name", "wanted"), [("demo.txt", RUNTIME), ("test.txt", [*RUNTIME, *DEV])], ids=str)
def test_the_lock_has_all_that_is_wanted(name: str, wanted: list[Requirement]) -> None:
    found = locked(name)
    for requirement in wanted:
        versions = found[canonicalize_name(requirement.name)]
        assert versions, f"{requirement.name}: run make lock"
        assert all(version in requirement.specifier for version in versions), requirement


def test_demo_and_tests_run_on_the_same_versions() -> None:
    tests = locked("test.txt")
    assert all(tests[name] == versions for name, versions in locked("demo.txt").items())
