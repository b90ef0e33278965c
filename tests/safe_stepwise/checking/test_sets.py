"""Sets are compared: by how many members they have, or by what they share (SAFE v1, Figure 15)."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from builders.benchmarks import BENCHMARKS
from builders.steps.contexts import StepSource
from builders.steps.making import check_trajectory, inject
from builders.steps.proposals import Injector
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import validate, verify
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import RowError
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Label, Passage, Question, Step, StepKind, Triple
from safe_stepwise.store.event_loop import wait_for
from safe_stepwise.taxonomy import CORRECT

BOTH = "It was directed by Ors Velt and Ana Vorr."
PAGES = (
    Passage("Dune Rain", ("Dune Rain is a film.", BOTH), True),
    Passage("Oru Night", ("Oru Night is a film.", "It was directed by Edo Marsh."), True),
    Passage("Marn", ("Marn is a country.",)),
)  # fmt: skip
PATH = (
    Triple("Dune Rain", "director", "Ors Velt", 1, 1),
    Triple("Dune Rain", "director", "Ana Vorr", 1, 1),
    Triple("Oru Night", "director", "Edo Marsh", 2, 1),
)
MORE = Question(
    "q", "2wikimultihopqa", "train", "Which film has more directors, Dune Rain or Oru Night?",
    "Dune Rain", kind="comparison", passages=PAGES,
)  # fmt: skip
SOUND: Sequence[tuple[str, StepKind]] = (
    ("According to Passage 1, Dune Rain was directed by Ors Velt.", "Attribution"),
    ("According to Passage 1, Dune Rain was directed by Ana Vorr.", "Attribution"),
    ("By Step 1 and Step 2, Dune Rain has 2 directors.", "Logical"),
    ("According to Passage 2, Oru Night was directed by Edo Marsh.", "Attribution"),
    ("By Step 4, Oru Night has one director.", "Logical"),
    ("Dune Rain has more directors (Step 3) than Oru Night (Step 5), so the answer is Dune Rain.",
     "Logical"),
    ("####ANSWER: Dune Rain", "Final Answer"),
)  # fmt: skip


def steps(*said: tuple[str, StepKind]) -> tuple[Step, ...]:
    return tuple(Step(n, text, kind) for n, (text, kind) in enumerate(said, 1))


def verdict(number: int, text: str) -> str | None:
    """The checker's label of another Logical step in the place of a sound one."""
    sound = steps(*SOUND)
    found = Checker(MORE, PATH, PATH).check(sound[: number - 1], Step(number, text, "Logical"))
    return None if found is None else found.error_type


def test_sizes_are_counted_side_by_side() -> None:
    plan = Checker(MORE, PATH, PATH).plan
    assert (plan.kind, plan.operation) == ("set comparison", "most")
    told = [(item.derivation or item.ends[-1], item.uses) for item in plan.items]
    assert told == [
        ("Ors Velt", ()),
        ("Ana Vorr", ()),
        ("count", (0, 1)),
        ("Edo Marsh", ()),
        ("count", (3,)),
        ("conclusion", (2, 4)),
    ]


def test_a_models_trajectory_of_sets_passes() -> None:
    """In the words that the set planner's prompt shows."""
    verdicts = check_trajectory(Checker(MORE, PATH, PATH), steps(*SOUND))
    assert {one.error_type for one in verdicts} == {CORRECT}
    assert "Dune Rain" in verdicts[1].guidance  # count them
    assert "director" in verdicts[1].guidance


@pytest.mark.parametrize("seed", range(12))
def test_our_own_trajectory_of_sets_passes(seed: int) -> None:
    checker = Checker(MORE, PATH, PATH)
    written = write_trajectory(checker, seed)
    check_trajectory(checker, written)
    assert [step.kind for step in written] == [kind for _, kind in SOUND]
    assert "2 directors" in written[2].text
    assert "1 director" in written[4].text


@pytest.mark.parametrize(
    ("number", "text", "label"),
    [
        (3, "By Step 1 and Step 2, Dune Rain has 3 directors.", "Logical Fallacy"),
        (3, "Therefore, Dune Rain has two directors.", CORRECT),
        (3, "So the answer is Dune Rain.", "Logical Fallacy"),  # before the other side is read
        (4, "By Step 1 and Step 2, Dune Rain has 2 directors.", "Redundancy"),
        (5, "By Step 4, Oru Night has two directors.", "Logical Fallacy"),
        (6, "Oru Night (Step 5) has more directors than Dune Rain, so the answer is Oru Night.",
         "Logical Fallacy"),
        (6, "1 director (Step 5) is more than 2 directors (Step 3), so the answer is Dune Rain.",
         "Logical Fallacy"),
    ],
)  # fmt: skip
def test_a_count_is_right_or_wrong(number: int, text: str, label: str) -> None:
    assert verdict(number, text) == label


def test_a_count_of_what_was_not_read_is_baseless() -> None:
    checker, sound = Checker(MORE, PATH, PATH), steps(*SOUND)
    found = checker.check(sound[:1], Step(2, "By Step 1, Dune Rain has 2 directors.", "Logical"))
    assert found is not None
    assert found.error_type == "Logical Fallacy"


def test_wrong_counts_are_injected_and_found() -> None:
    label = Label("none", "", PATH, PATH, "", 1.0)
    source = StepSource.build(MORE, label)
    ideal = write_trajectory(source.checker, 0)
    rows = [row for seed in range(6) for row in inject(Injector(source, seed), ideal, "x")[0]]
    own = [row for row in rows if row.question == MORE and row.step.number in (3, 5)]
    said = [row.step.text for row in own if row.feedback.error_type == "Logical Fallacy"]
    assert any("directors" in text for text in said)
    assert not any("2 directors" in text for text in said if "Dune Rain" in text)


def test_sides_of_equal_size_are_ambiguous_and_numbers_are_no_sets() -> None:
    path = (*PATH, Triple("Oru Night", "director", "Ilka Brandt", 2, 1))
    noise, why = validate(MORE, KnowledgeGraph(path), Proposal(path, "none", ""))
    assert (noise, why) == ("ambiguous_question", "Both sides have the same number of values, 2.")
    counted = tuple(
        Triple(head, "population", tail, n, 0)
        for n, (head, tail) in enumerate([("Dune Rain", "1,200"), ("Oru Night", "900")], 1)
    )
    more = replace(MORE, question="Which has more people, Dune Rain or Oru Night?")
    assert Checker(more, counted, counted).plan.kind == "simple comparison"


def test_what_sets_share_is_named_with_its_own_steps() -> None:
    """Which of the values agree, and where each was read."""
    pages = (
        Passage("Dune Rain", ("Dune Rain is a Canadian and British film.",), True),
        Passage("Oru Night", ("Oru Night is a British film.",), True),
    )
    path = tuple(
        Triple(head, "country of origin", tail, n, 0)
        for head, tail, n in (("Dune Rain", "Canadian", 1), ("Dune Rain", "British", 1), ("Oru Night", "British", 2))
    )
    asked = "Are Dune Rain and Oru Night from the same country?"
    question = replace(MORE, question=asked, answer="yes", passages=pages)
    checker = Checker(question, path, path)
    assert checker.plan.kind == "set comparison"
    conclusions = [write_trajectory(checker, seed)[3].text for seed in range(20)]
    named = [text for text in conclusions if "British (" in text]
    assert named
    assert all("British (Step 2)" in text and "British (Step 3)" in text for text in named)
    assert not any("Canadian" in text for text in conclusions)


@pytest.mark.skipif("SAFE_STEPWISE_REAL_DATA" not in os.environ, reason="no real rows here")
def test_real_sets_of_2wiki_have_trajectories_that_pass() -> None:
    folder, found = Path(os.environ["SAFE_STEPWISE_REAL_DATA"]), Counter[str]()
    for name in ("2wikimultihopqa_train.jsonl", "2wikimultihopqa_dev.jsonl"):
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            values = Counter((head, relation) for head, relation, _ in row["evidences"])
            if "comparison" not in row["type"] or max(values.values()) < 2:
                continue
            try:
                question = BENCHMARKS["2wikimultihopqa"].parse(row, "train")
            except RowError:
                continue
            label = wait_for(verify(question, AnnotationsTeacher()))
            if label.noise_type != "none":
                found["noise"] += 1
                continue
            checker = Checker(question, label.reasoning_path, label.knowledge_graph)
            assert checker.plan.kind == "set comparison"
            check_trajectory(checker, write_trajectory(checker, 0))
            found[checker.plan.operation or "untold"] += 1
    assert found == {"same": 5, "most": 1, "noise": 1}
