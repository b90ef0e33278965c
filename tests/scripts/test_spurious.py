"""What is measured of chains whose wrongs are known: players who come to right answers by them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.synthetic import generate, parse_spec, to_row
from builders.verified import evaluation_questions
from evaluators.comparison.significance import wilson
from evaluators.outcomes import read_outcomes
from scripts import evaluate_stepwise
from tests.makers.truth import truth_of

SPURIOUS = "symbolic:error_rate=0.3,spurious=0.5,seed=1"
CLEAN = "symbolic"
SAFE, ALONE = "safe", "no_verification"


def evaluate(file: Path, folder: Path, *more: str, generator: str = SPURIOUS) -> Path:
    """An evaluation's folder, measured."""
    evaluate_stepwise.main(
        [
            f"--questions={file}", f"--output={folder / 'out'}", f"--cache={folder / 'cache'}",
            f"--generator={generator}", "--passages=all", *more,
        ]
    )  # fmt: skip
    return folder / "out"


def synthetic(file: Path, rows: int, seed: int = 5) -> Path:
    made = generate(parse_spec(f"rows={rows},seed={seed},noise=0"), split="validation")
    file.write_text("".join(json.dumps(to_row(q, "none")) + "\n" for q, _ in made), "utf-8")
    return file


def odd_half(source: Path, file: Path) -> Path:
    """The half of a benchmark's rows on which no rule was made.

    All rows that there are have an even digest, so that the bit before the last one halves them.
    """
    rows = source.read_text("utf-8").splitlines()
    names = [(row := json.loads(line)).get("_id") or row["id"] for line in rows]
    kept = [r for r, name in zip(rows, names, strict=True) if _number(name) // 2 % 2]
    file.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    return file


def _number(name: str) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest(), 16)


def lines(file: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, file.read_text("utf-8").splitlines())


Chain = tuple[bool, str, bool]
"""Whether it is faithful in truth; what the house rule says of it; whether its answer is right."""


def truth_in(folder: Path) -> dict[tuple[str, str], bool]:
    """Whether each chain of an evaluation is faithful in truth, by method and question."""
    ended = [o for o in read_outcomes(folder) if o.trajectory.steps and o.trajectory.stop_reason != "failed"]
    (file,) = folder.parent.glob("*.jsonl")
    rows = evaluation_questions.read(str(file), [ended[0].benchmark], all_passages=True)
    questions = {question.id: question for question in rows.questions}
    truths = {(o.method, o.question_id): truth_of(questions[o.question_id], o.trajectory) for o in ended}
    return {key: truth.is_faithful for key, truth in truths.items() if truth}


def chains(folder: Path, method: str) -> list[Chain]:
    """All chains of a method whose truth is known."""
    systems = found(folder)["systems"]
    truth = truth_in(folder)
    return [
        (truth[key], row["rules"]["house"]["path"], row["exact_match"])
        for row in lines(folder / "faithfulness.jsonl")
        if (key := (systems[row["system"]]["method"], row["question_id"])) in truth
        and key[0] == method and row["response"] == "chain"
    ]  # fmt: skip


def found(folder: Path) -> Any:
    return json.loads((folder / "faithfulness.json").read_text("utf-8"))


def reported(folder: Path, method: str) -> Any:
    """The share of right answers that are spurious, as it is reported."""
    part = next(one["all"] for one in found(folder)["systems"] if one["method"] == method)
    return part["rules"]["house"]["answers"]["exact_match"]["spurious"]


def check_the_share(folder: Path, method: str) -> None:
    """The truth lies within the reported interval, and the reported share within the truth's."""
    right = [is_faithful for is_faithful, _, is_right in chains(folder, method) if is_right]
    told, truth = reported(folder, method), wilson(right.count(False), len(right))
    assert told["low"] <= truth.value <= told["high"]
    assert truth.low <= told["value"] <= truth.high


def check_chain_by_chain(told: Sequence[Chain], least: float) -> None:
    """Precision and recall of "unfaithful"; what was not decided was not found."""
    counts = Counter((is_faithful, path) for is_faithful, path, _ in told)
    named = counts[False, "unfaithful"]
    precision = named / (named + counts[True, "unfaithful"])
    recall = named / sum(not is_faithful for is_faithful, _, _ in told)
    assert min(precision, recall) >= least, (counts, precision, recall)


# -------------------------------------------------------------------------------- the made-up world


def test_the_spurious_share_is_found(tmp_path: Path) -> None:
    folder = evaluate(synthetic(tmp_path / "rows.jsonl", 160), tmp_path, f"--method={ALONE}")
    check_the_share(folder, ALONE)
    check_chain_by_chain(chains(folder, ALONE), 0.95)


def test_no_chain_without_errors_is_unfaithful(tmp_path: Path) -> None:
    file = synthetic(tmp_path / "rows.jsonl", 100)
    folder = evaluate(file, tmp_path, f"--method={ALONE}", generator=CLEAN)
    told = chains(folder, ALONE)
    assert len(told) > 90
    assert all(is_faithful and is_right for is_faithful, _, is_right in told)
    assert {path for _, path, _ in told} <= {"faithful", "unjudgeable"}
    assert reported(folder, ALONE)["value"] == 0


def spurious_alone(folder: Path) -> tuple[int, int, float]:
    """On how many questions no verification alone, SAFE alone is spurious, and p."""
    systems = [one["method"] for one in found(folder)["systems"]]
    one = next(
        one for one in found(folder)["paired"]
        if (one["rule"], one["what"], one["benchmark"]) == ("house", "spurious", None)
        and one["answer"] == "exact_match"
    )  # fmt: skip
    counts = {systems[one[which]]: one[f"{which}_only"] for which in ("first", "second")}
    return counts[ALONE], counts[SAFE], one["p_holm"]


BOTH = (f"--method={ALONE}", f"--method={SAFE}")


def test_a_verifier_that_knows_cuts_spurious_answers(tmp_path: Path) -> None:
    file = synthetic(tmp_path / "rows.jsonl", 60)
    folder = evaluate(file, tmp_path, *BOTH, "--verifier=symbolic")
    check_the_share(folder, SAFE)
    alone, safe, p = spurious_alone(folder)
    assert alone > safe
    assert p < 0.01


def test_a_verifier_that_accepts_everything_does_not(tmp_path: Path) -> None:
    verdict = {"error_type": "Correct", "diagnosis": "It is sound.", "guidance": "Go on."}
    script = tmp_path / "accepts.json"
    script.write_text(json.dumps({"replies": [], "default": json.dumps(verdict)}), "utf-8")
    file = synthetic(tmp_path / "rows.jsonl", 60)
    folder = evaluate(file, tmp_path, *BOTH, f"--verifier=mock:{script}")
    assert spurious_alone(folder)[2] >= 0.01


# ---------------------------------------------------------------------------------------- real rows


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize(("benchmark", "least"), [("2wikimultihopqa", 0.9), ("musique", 0.8)])
def test_it_is_found_on_real_rows(benchmark: str, least: float, real_data: Path, tmp_path: Path) -> None:
    file = odd_half(real_data / f"{benchmark}_dev.jsonl", tmp_path / f"{benchmark}.jsonl")
    folder = evaluate(file, tmp_path, f"--method={ALONE}", f"--benchmark={benchmark}")
    check_the_share(folder, ALONE)
    check_chain_by_chain(chains(folder, ALONE), least)
