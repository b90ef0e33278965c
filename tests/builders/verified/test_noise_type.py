"""A noise type is a name (`records.NoiseType`), its words on the cards, and whoever finds it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from safe_stepwise.store.names import NOISE_LABELS, VERIFIED

ROOT = Path(__file__).parents[3]
SCRIPT = """
import sys, types
from pathlib import Path

import safe_stepwise

file = Path(safe_stepwise.__file__).with_name("records.py")
source = file.read_text(encoding="utf-8")
assert source.count('    "unspecified",\\n') == 1
records = types.ModuleType("safe_stepwise.records")
sys.modules[records.__name__] = safe_stepwise.records = records
source = source.replace('    "unspecified",\\n', '    "unspecified",\\n    "toy",\\n')
exec(compile(source, file, "exec"), vars(records))

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.build import summary
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from cards.datasets import CARDS
from cards.pages import WORDS

WORDS["noise_types"]["toy"] = "the question is a toy"


class ToyTeacher(AnnotationsTeacher):
    name = identity = "annotations:toy"

    async def propose(self, question, graph):
        return Proposal((), "toy", "It is a toy.", 0.9)


plan = Build("synthetic", "rows=12,seed=3", "train", ToyTeacher, output=Path(sys.argv[1]))
print(summary(plan, build(plan, CARDS)))
"""


def test_a_toy_type_goes_all_the_way(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert run.returncode == 0, run.stderr
    assert re.search(r"^ *toy +12$", run.stdout, re.MULTILINE)
    for dataset in (VERIFIED, NOISE_LABELS):
        (record,) = (tmp_path / dataset / "statistics").glob("*.json")
        assert json.loads(record.read_bytes())["unverifiable"] == {"toy": 12}
        card = (tmp_path / dataset / "README.md").read_text(encoding="utf-8")
        assert "the question is a toy" in card
        assert "'8': toy" in card
