"""What voids stored work, and what does not: tried on a copy of the tree."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from safe_stepwise.store.code import code_digest

ROOT = Path(__file__).parents[3]
LABELS = ("builders.verified.chunks", "builders.verified.teachers.annotations")
BY_MODEL = ("builders.verified.chunks", "builders.verified.teachers.llm")
STEPS = ("builders.steps.chunks", "builders.steps.making")
STEP_SET = ("builders.steps.build", "builders.steps.making")
"""With the prompts that its rows are rendered by, of which the steps themselves know nothing."""
GROUNDING = "safe_stepwise/language/grounding.py"


def digests(root: Path, *roots: tuple[str, ...]) -> list[str]:
    code = (
        "import sys; from safe_stepwise.store.code import code_digest\n"
        "for modules in sys.argv[1:]: print(code_digest(*modules.split()))"
    )
    command = [sys.executable, "-c", code, *map(" ".join, roots)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in ("safe_stepwise", "builders", "evaluators", "cards", "scripts"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def changed(root: Path, file: str, roots: tuple[str, ...]) -> bool:
    """Whether the digest is another with a few bytes more in a file, or with a file more."""
    path = root / file
    before, kept = digests(root, roots), path.read_bytes() if path.exists() else None
    path.write_bytes((kept or b"") + b"\n# A word more.\n")
    after = digests(root, roots)
    path.unlink() if kept is None else path.write_bytes(kept)
    return before != after


@pytest.mark.parametrize(
    ("roots", "file"),
    [
        (LABELS, GROUNDING),
        (LABELS, "safe_stepwise/language/vocabulary/relations.yaml"),
        (LABELS, "safe_stepwise/records.py"),
        (BY_MODEL, "safe_stepwise/prompts/verification/extract.yaml"),
        (BY_MODEL, "safe_stepwise/engines/client.py"),
        (STEPS, "safe_stepwise/language/vocabulary/phrases.yaml"),
        (STEP_SET, "safe_stepwise/prompts/loop/verify.yaml"),
    ],
)
def test_what_makes_an_artifact_voids_it(copy: Path, roots: tuple[str, ...], file: str) -> None:
    assert changed(copy, file, roots)


@pytest.mark.parametrize(
    ("roots", "file"),
    [
        (LABELS, "builders/verified/teachers/llm.py"),
        (LABELS, "builders/benchmarks/another.py"),
        (LABELS, "builders/steps/proposals.py"),
        (BY_MODEL, "safe_stepwise/engines/vllm.py"),
        (BY_MODEL, "safe_stepwise/methods/loop.py"),
        (BY_MODEL, "safe_stepwise/prompts/judge/equivalence.yaml"),
        (BY_MODEL, GROUNDING),
        (STEPS, "safe_stepwise/methods/another.py"),
        (STEPS, "safe_stepwise/prompts/loop/verify.yaml"),
        (STEPS, "evaluators/comparison/report.py"),
        (STEPS, "cards/templates/release.md.jinja"),
    ],
)
def test_what_had_no_part_in_it_does_not(copy: Path, roots: tuple[str, ...], file: str) -> None:
    assert not changed(copy, file, roots)


def test_a_copy_has_the_same_digests_and_they_are_known_at_once(copy: Path) -> None:
    roots = (LABELS, BY_MODEL, STEPS)
    assert digests(copy, *roots) == [code_digest(*modules) for modules in roots]
    assert len(set(digests(copy, *roots))) == 3


def test_a_registry_is_looked_into_where_all_counts() -> None:
    assert code_digest(*BY_MODEL) != code_digest(*BY_MODEL, excluded=())


def test_a_module_that_is_not_there_is_a_fault_and_another_projects_is_not() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"builders\.nothing"):
        code_digest("builders.nothing")
    assert code_digest("json.decoder") == code_digest()
