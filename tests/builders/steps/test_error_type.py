"""An error type is an entry of the taxonomy, a check with its wording, and a proposal: four files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import load_dataset

from safe_stepwise.store.names import PROMPT_COMPLETION, STEPS, STEPS_RECORD, VERIFIER_STEPS
from tests.toys import Copy

ENTRY = """\
- name: Flattery
  category: Procedural
  step_kinds: [Attribution]
  next_state: decompose
  comparison: absent
  gives_value: false
  definition: >-
    The step praises a passage and reads nothing in it.
"""
CHECK = '''\
    def _flattery(self, case: _Case) -> Feedback | None:
        """Praise of a passage, whatever stands around it."""
        if "is well written" not in case.step.text:
            return None
        return self._report(case, "Flattery", "praised", missing=self._first_gap(case) or None)

'''
DIAGNOSIS = """\
  praised:
    finding:
      seen: ["the step [praises|applauds] how a passage is written"]
      unseen: ["the step only compliments a passage"]
    reason:
      seen: ["it reads nothing in it"]
      unseen: ["it takes nothing from it"]
"""
PROPOSAL = '''\
    def _flattery(self, item: Item, position: int) -> Iterator[_Draft]:
        """Praise of the passage that is to be read."""
        claim = "what is said there is well written"
        yield _Draft("praised", "Attribution", {"n": item.passage_number, "claim": claim})

'''
LOOPS = """
from safe_stepwise.checking.checker import Checker
from safe_stepwise.feedback import feedback_schema, format_feedback, parse_feedback
from safe_stepwise.methods.quoting import with_evidence
from safe_stepwise.records import Feedback, Step
from tests.safe_stepwise.methods.machines import ASKED, PASSAGES, Script, path, run, verdict

step = Step(1, "According to Passage 1, what is said there is well written.", "Attribution")
said = Feedback("Flattery", "It praises.", "Read it.")
assert "Flattery" in feedback_schema()["properties"]["error_type"]["enum"]
assert parse_feedback(format_feedback(said)) == said
quoted = with_evidence(said, ASKED.question, PASSAGES, [], step)
print(quoted.diagnosis)
print(parse_feedback(format_feedback(quoted, "evidence_first")).error_type)
print(path(run("sg_fsm_safe", Script(verify=[verdict("Flattery"), verdict("Correct")]))))
"""


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("house"))
    checker, proposals = "safe_stepwise/checking/checker.py", "builders/steps/proposals.py"
    copy.insert("safe_stepwise/taxonomy.yaml", ENTRY, before="- name: Off-topic\n")
    copy.insert("safe_stepwise/language/vocabulary/verdicts.yaml", DIAGNOSIS, before="  answered:\n")
    copy.insert(checker, CHECK, before="    def _check_off_topic(")
    copy.insert(
        checker,
        '            "Flattery": self._flattery,\n',
        before='            "Off-topic": self._check_off_topic,\n',
    )
    copy.insert(proposals, PROPOSAL, before="    def _draft_off_topic(")
    copy.insert(proposals, '    "Flattery": _at_fact(Injector._flattery),\n', before='    "Contradictory": _at_fact(')
    assert len(copy.touched) == 4
    return copy


@pytest.fixture(scope="module")
def built(house: Copy) -> Path:
    output = house.folder / "build"
    made = ("--benchmark", "synthetic", "--teacher=annotations", "--workers=1", "--output", str(output))
    house.run("-m", "scripts.build_verified", *made, "--split", "train", "--input", "rows=60,seed=1")
    steps = ("--verified", str(output), "--output", str(output), "--workers=1", "--rows=280", "--teacher=annotations")
    house.run("-m", "scripts.build_verifier_steps", *steps)
    return output


@pytest.fixture(scope="module")
def steps(built: Path) -> Path:
    return built / VERIFIER_STEPS


def test_its_rows_are_made_counted_and_told(steps: Path) -> None:
    rows = load_dataset(str(steps), STEPS, split="train", cache_dir=str(steps / "cache"))
    label = rows.features["error_type"]
    assert label.names[:3] == ["Overthinking", "Flattery", "Off-topic"]
    made = [row for row in rows if label.int2str(row["error_type"]) == "Flattery"]
    assert all("is well written" in row["current_step"] for row in made)
    assert all(row["diagnosis"] and row["guidance"] for row in made)
    assert {rows.features["error_category"].int2str(row["error_category"]) for row in made} == {"Procedural"}
    statistics = json.loads((steps / STEPS_RECORD).read_bytes())
    assert statistics["types"]["synthetic"]["Flattery"]["train"] == len(made) > 10
    card = (steps / "README.md").read_text(encoding="utf-8")
    assert "out of twelve" in card
    assert "| Flattery |" in card


def test_a_prompt_asks_for_it(steps: Path) -> None:
    rows = load_dataset(str(steps), PROMPT_COMPLETION, split="test", cache_dir=str(steps / "cache"))
    assert "- Flattery: The step praises a passage and reads nothing in it." in rows[0]["prompt"][0]["content"]
    assert any(json.loads(row["completion"][0]["content"])["error_type"] == "Flattery" for row in rows)


def test_verifiers_and_the_checker_are_measured_by_it(house: Copy, built: Path) -> None:
    output = built / "quality"
    asked = ("--verifier", "symbolic:error_rate=0.3,seed=1", "--verified", str(built), "--steps", str(built))
    house.run("-m", "scripts.evaluate_verifier", *asked, "--output", str(output))
    assert "Flattery" in (output / "verifier_quality.md").read_text(encoding="utf-8")
    assert "Flattery" in json.loads((output / "verifier_quality.json").read_text())["verifiers"][0]["confusion"]
    assert "Flattery" in house.run("-m", "scripts.measure_checker", "--verified", str(built))


def test_loops_go_by_it(house: Copy) -> None:
    quoted, label, path = house.run("-c", LOOPS).splitlines()
    assert quoted == "nothing Step: nothing. Absent."
    assert label == "Flattery"
    assert path == "q0 q2 g2 q0 q2 g2 q5"
