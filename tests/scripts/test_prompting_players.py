"""`evaluate_stepwise` with symbolic players of prompting methods, on real rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.verified.evaluation_questions import read
from evaluators.outcomes import Outcome, read_outcomes
from safe_stepwise.engines.base import EngineError
from safe_stepwise.methods import METHODS
from safe_stepwise.players.steps import checker_of, facts_of
from safe_stepwise.records import Question
from scripts import evaluate_stepwise
from tests.safe_stepwise.players.test_prompting import is_likely, mcnemar

BENCHMARKS = ("2wikimultihopqa", "hotpotqa", "musique")
ROWS = 30
REASONS = ("no passage states", "the row's annotations give no plan")


def evaluate(
    data: Path, output: Path, benchmark: str, rows: int, methods: Sequence[str], *specs: str
) -> dict[tuple[str, str], list[Outcome]]:
    """What each method came to with each generator, questions in their order."""
    evaluate_stepwise.main(
        [
            f"--questions={data / benchmark}_dev.jsonl",
            f"--benchmark={benchmark}",
            "--passages=all",
            f"--limit={rows}",
            *(f"--method={name}" for name in methods),
            *(f"--generator={spec}" for spec in specs),
            "--verifier=symbolic",
            f"--output={output}",
            f"--cache={output.parent / 'cache.sqlite'}",
        ]
    )
    found: dict[tuple[str, str], list[Outcome]] = {}
    for one in read_outcomes(output):
        name = one.players["generator"]
        spec = next(s for s in specs if named(s) <= named(name.partition(" ")[0]))
        found.setdefault((one.method, spec), []).append(one)
    return found


def named(spec: str) -> set[str]:
    return set(filter(None, spec.partition(":")[2].split(",")))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_clean_players_are_right_where_there_is_a_plan(benchmark: str, real_data: Path, tmp_path: Path) -> None:
    output = tmp_path / "results"
    methods = [name for name in METHODS if name != "ircot"]  # it sees what its searches bring: `test_baselines`
    evaluate(real_data, output, benchmark, ROWS, methods, "symbolic")
    found = list(read_outcomes(output))
    assert Counter(one.method for one in found) == dict.fromkeys(methods, ROWS)
    failed = {one.question_id for one in found if one.trajectory.stop_reason == "failed"}
    assert len(failed) < ROWS / 2
    for one in found:
        if one.question_id in failed:
            assert one.trajectory.failure.startswith(REASONS), one.method
        else:
            assert (one.exact_match, one.trajectory.stop_reason) == (1.0, "answered"), one.method


VALUE, PARAGRAPH, LUCKY = (f"symbolic:{what}=0.2,seed=1" for what in ("value", "paragraph", "lucky"))


@pytest.mark.parametrize(
    ("benchmark", "number", "specs"),
    [("2wikimultihopqa", 60, (VALUE, PARAGRAPH, LUCKY)), ("musique", 119, (PARAGRAPH,))],
)
def test_mistakes_on_chains_cost_the_machines_what_they_should(
    benchmark: str, number: int, specs: Sequence[str], real_data: Path, tmp_path: Path
) -> None:
    """SG-FSM, section 4.6, where a lucky answer does not outlive the summary."""
    machines = ("sg_fsm1", "sg_fsm2", "sg_fsm_safe")
    hops = chains(real_data / f"{benchmark}_dev.jsonl", benchmark, number, tmp_path)
    assert len(hops) == number
    found = evaluate(tmp_path, tmp_path / "results", benchmark, number, machines, *specs)
    right = {who: [one.exact_match == 1 for one in several] for who, several in found.items()}
    kept = [0.8**places for places in hops]
    for spec in specs:
        one, two, safe = (right[name, spec] for name in machines)
        losing = two if spec == LUCKY else one
        assert is_likely(sum(losing), kept), spec
        assert all(one) == (spec == LUCKY)
        assert mcnemar(safe, losing) < 0.01, spec
        if spec == VALUE:
            assert mcnemar(two, one) < 0.01
        if spec == PARAGRAPH:
            assert mcnemar(safe, two) < 0.01


def chains(file: Path, benchmark: str, number: int, folder: Path) -> list[int]:
    """The hops of the first questions that are chains; their rows are the folder's file."""
    asked = read(str(file), [benchmark], skip=True, all_passages=True).questions
    hops = {question.id: several for question in asked if (several := hops_of(question))}
    rows = [
        (line, hops[name])
        for line in file.read_text("utf-8").splitlines()
        if (name := (row := json.loads(line)).get("_id") or row["id"]) in hops
    ][:number]
    (folder / file.name).write_text("".join(f"{line}\n" for line, _ in rows), encoding="utf-8")
    return [several for _, several in rows]


def hops_of(question: Question) -> int:
    """How many finds a chain takes; 0 of what is no chain, or not planned for."""
    try:
        plan = checker_of(question).plan
    except EngineError:
        return 0
    return len(facts_of(question).places) if plan.kind == "sequential" else 0


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_replies_that_cannot_be_read_are_counted_and_withdraw(benchmark: str, real_data: Path, tmp_path: Path) -> None:
    plain, spoilt = "symbolic", "symbolic:format=0.3,seed=1"
    output, methods = tmp_path / "results", ("direct", "sg_fsm1")
    clean = evaluate(real_data, tmp_path / "clean", benchmark, 60, methods[1:], plain)
    evaluate(real_data, output, benchmark, 60, methods, spoilt)
    calls = [len(one.trajectory.attempts) for one in clean["sg_fsm1", plain] if one.exact_match]
    runs = {run["method"]: run["all"] for run in results(output)["runs"]}
    # What nobody could plan for failed, and counts as wrong.
    planned = [0.7] * len(calls)
    direct, machine = runs["direct"]["prompting"], runs["sg_fsm1"]["prompting"]
    assert is_likely(round(direct["strict"]["exact_match"] * 60), planned)
    assert direct["format"]["counts"]["first"] == round(direct["strict"]["exact_match"] * 60)
    assert direct["salvaged"]["exact_match"] > direct["strict"]["exact_match"]
    assert is_likely(machine["format"]["counts"]["first"], [0.7] * machine["format"]["replies"])
    ended = runs["sg_fsm1"]["stop_reasons"]
    assert is_likely(ended.get("withdrawn", 0), [1 - (1 - 0.3**3) ** number for number in calls])
    assert ended["answered"] == round(machine["strict"]["exact_match"] * 60)


def results(output: Path) -> Any:
    return json.loads((output / "results.json").read_text(encoding="utf-8"))
