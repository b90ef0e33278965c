"""The environment passes the checks that verifiers itself makes of its tasks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from scripts import build_verified

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "safe_multihop"
pytestmark = pytest.mark.skipif(
    find_spec("verifiers") is None, reason="no verifiers here: pip install verifiers==0.4.0"
)


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    build_verified.main(
        f"--benchmark synthetic --input rows=20,seed=1 --split train --teacher annotations "
        f"--output {folder} --workers 1".split()
    )
    return folder / "safe-verified-multihop"


def test_it_validates(verified: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-c", "from verifiers.v1.cli.validate import main; main()"),
            *("safe-multihop", "--taskset.source", str(verified)),
            *("--taskset.benchmark", "synthetic", "--runtime.type", "subprocess"),
            *("--no-rich", "--output-dir", str(tmp_path), "--run.name", "all"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{PACKAGE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (summary,) = tmp_path.rglob("summary.json")
    found = json.loads(summary.read_text())
    assert found["total"] >= 10
    assert found["valid_rate"] == 1.0
    assert found["outcomes"]["valid"] == found["total"]
    for check in ("gold", "noop"):
        assert found["checks"][check]["valid"] == found["total"]


def test_replies_are_paid_by_the_checker(verified: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE))
    from safe_multihop.taskset import SafeMultihopConfig, SafeMultihopTaskset

    from safe_stepwise.checking.writing import write_trajectory
    from safe_stepwise.steps import format_step

    config = SafeMultihopConfig(source=str(verified), benchmark="synthetic")
    task = next(iter(SafeMultihopTaskset(config)))
    assert task.data.row["answer"] not in (task.data.system_prompt or "")
    ideal = [format_step(step) for step in write_trajectory(task._checker, 0)]

    def paid(*steps: str) -> tuple[float, float, float]:
        class Trace:
            last_reply = "\n".join(steps)

        async def all_of() -> tuple[float, float, float]:
            trace: Any = Trace()
            return (await task.trajectory(trace), await task.exact_match(trace), await task.abstained(trace))

        return asyncio.run(all_of())

    assert paid(*ideal) == (1.0, 1.0, 0.0)
    guessed = f"Step 1: {ideal[-1].partition(': ')[2]}"
    assert paid(guessed) == (0.0, 1.0, 0.0)
    assert paid() == (0.0, 0.0, 0.0)
