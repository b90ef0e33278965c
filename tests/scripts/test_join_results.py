"""`join_results`: real evaluations joined, opened, joined again, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluators.outcomes import read_outcomes, read_questions
from evaluators.traces.page import read_traces
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import REPORT_PAGE
from scripts import evaluate_stepwise, join_results, view_traces
from tests.evaluators.comparison.test_report import markdown_rows
from tests.scripts.test_evaluate_stepwise import arguments, contents, own, results
from tests.servers.openai_server import MockServer
from tests.servers.stepper import Stepper

Evaluate = Callable[..., Path]


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Evaluations by a mock server, one cache of replies for all."""
    folder = tmp_path_factory.mktemp("join")
    file = own(folder / "own.jsonl", 24)
    with MockServer(Stepper(), models_status=404) as server:

        def made(name: str, *more: str, verifier: str = "v", limit: int = 24) -> Path:
            address = server.spec.partition("@")[2]
            if not (folder / name).exists():
                evaluate_stepwise.main(
                    arguments(
                        file, folder / name, f"--generator=openai:g@{address}",
                        f"--verifier=openai:{verifier}@{address}", f"--judge=openai:j@{address}",
                        f"--limit={limit}", *more, cache=str(folder / "replies.sqlite"),
                    )
                )  # fmt: skip
            return folder / name

        yield made


METHODS = ("--method=no_verification", "--method=safe")


def test_variants_of_several_runs_make_one_table(
    evaluate: Evaluate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = evaluate("full", *METHODS)
    other = evaluate("other", *METHODS, "--max-steps=1", verifier="w")
    output = tmp_path / "joined"
    join_results.main([f"{full}=verified", f"{other}=one step", f"--output={output}", "--reference=verified"])
    said = capsys.readouterr().out
    assert "Against verified, Acc:" in said
    assert "evaluations: 2; systems: 4; questions: 24" in said
    assert "<h2>Ablations</h2>" in (output / "report" / REPORT_PAGE).read_text(encoding="utf-8")
    text = (output / "report" / "ablation.md").read_text(encoding="utf-8")
    rows = {row[1]: row for row in markdown_rows(text.split("### Acc by")[0])}
    alone = {
        (run["method"], run["options"]["max_steps"]): run["average"]["accuracy"]
        for folder in (full, other)
        for run in results(folder)["runs"]
    }
    assert rows["SAFE, verified"][-1].startswith(f"{100 * alone['safe', 10]:.1f} ±")
    assert rows["SAFE, one step"][-1].startswith(f"{100 * alone['safe', 1]:.1f} ±")
    gain = 100 * (alone["safe", 1] - alone["safe", 10])
    assert rows["Δ SAFE, one step over SAFE, verified"][-1].startswith(f"{gain:+.1f} ±")
    made = results(output)
    assert [run["average"] for run in made["runs"]] == [
        run["average"] for folder in (full, other) for run in results(folder)["runs"]
    ]
    uptakes = [run["all"].get("uptake") for run in made["runs"]]
    assert uptakes == [run["all"].get("uptake") for folder in (full, other) for run in results(folder)["runs"]]
    # The verifier sees every flaw, and the generator makes none twice: every retry is mended.
    assert uptakes[0] is None
    assert uptakes[1].keys() == {"Contradictory", "Wrong Conclusion"}
    assert all(counts["mended"] == counts["retries"] > 0 for counts in uptakes[1].values())
    assert [entry["name"] for entry in made["settings"]["joined"]] == ["verified", "one step"]
    assert made["settings"]["conditions"] == {"variant": ["verified", "one step"]}
    assert made["comparison"]["systems"]


def test_a_joined_folder_opens_and_joins_again_to_the_byte(evaluate: Evaluate, tmp_path: Path) -> None:
    full = evaluate("full", *METHODS)
    drop = evaluate("drop", "--method=safe", "--on-exhausted=drop")
    output = tmp_path / "joined"
    options = [str(full), str(drop), f"--output={output}"]
    join_results.main(options)
    first = contents(output)
    join_results.main(options)  # over an earlier one
    assert contents(output) == first
    view_traces.main([str(output)])
    shown = read_traces(output)
    assert {s["label"] for s in shown["systems"]} == {
        "No verification, on_exhausted=accept", "SAFE, on_exhausted=accept",
        "SAFE, on_exhausted=drop",
    }  # fmt: skip
    assert len(shown["runs"]) == 3 * 24
    assert all(question["text"] for question in shown["questions"])
    more = evaluate("full2", "--method=safe", verifier="w")
    join_results.main([str(output), str(more), f"--output={tmp_path / 'again'}"])
    again = [*read_outcomes(tmp_path / "again")]
    assert len(again) == 4 * 24
    assert [o.to_json() for o in again[: 3 * 24]] == [o.to_json() for o in read_outcomes(output)]


def test_only_shared_questions_count_and_that_is_said(
    evaluate: Evaluate, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = evaluate("full", *METHODS)
    less = evaluate("less", "--method=safe", verifier="w", limit=10)
    join_results.main([str(full), str(less), f"--output={tmp_path / 'out'}"])
    assert "left out of custom: 14 questions that not all were asked" in capsys.readouterr().out
    assert len([*read_questions(tmp_path / "out")]) == 10
    assert results(tmp_path / "out")["settings"]["left_out"] == {"custom": 14}


def test_the_same_system_twice_counts_once_or_is_refused(evaluate: Evaluate, tmp_path: Path) -> None:
    full, same = evaluate("full", *METHODS), evaluate("same", *METHODS)
    join_results.main([str(full), str(same), f"--output={tmp_path / 'out'}"])
    assert len([*read_outcomes(tmp_path / "out")]) == 2 * 24
    lines = (same / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    changed = [line.replace('"answer":"N7"', '"answer":"M"') for line in lines]
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("questions.jsonl", "results.json"):
        (copy / name).write_bytes((same / name).read_bytes())
    (copy / "trajectories.jsonl").write_text("".join(f"{line}\n" for line in changed))
    with pytest.raises(UserError, match="give them names of their own"):
        join_results.main([str(full), str(copy), f"--output={tmp_path / 'out'}"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"again": True}, "one folder is named twice"),
        ({"output": "full"}, "is one of the evaluations; choose another --output"),
        ({"output": "less"}, "holds an evaluation; choose another --output"),
        ({"more": "--reference=nothing"}, "--reference 'nothing' is not known"),
        ({"more": "--published=v2:99"}, "--published 'v2:99' is not known"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    evaluate: Evaluate, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    full = evaluate("full", *METHODS)
    less = evaluate("less", "--method=safe", verifier="w", limit=10)
    folders = {"full": full, "less": less}
    before = {name: contents(folder) for name, folder in folders.items()}
    output = folders.get(change.get("output", ""), tmp_path / "out")
    second = [str(full)] if change.get("again") else []
    more = [change["more"]] if "more" in change else []
    with pytest.raises(UserError, match=message) as caught:
        join_results.main([str(full), *second, f"--output={output}", *more])
    assert "\n" not in str(caught.value)
    assert {name: contents(folder) for name, folder in folders.items()} == before
    assert not (tmp_path / "out").exists()


def test_an_evaluation_that_has_not_ended_is_not_written_over(evaluate: Evaluate, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / ".trajectories.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match="holds an evaluation; choose another --output"):
        join_results.main([str(evaluate("full", *METHODS)), f"--output={begun}"])
    assert [path.name for path in begun.iterdir()] == [".trajectories.jsonl"]


def test_two_judges_are_refused(evaluate: Evaluate, tmp_path: Path) -> None:
    full = evaluate("full", *METHODS)
    other = tmp_path / "other"
    other.mkdir()
    for name in ("questions.jsonl", "trajectories.jsonl"):
        (other / name).write_bytes((full / name).read_bytes())
    made = json.loads((full / "results.json").read_text())
    made["settings"]["judge"] = "openai:k"
    (other / "results.json").write_text(json.dumps(made))
    with pytest.raises(UserError, match="judged by different judges"):
        join_results.main([str(full), str(other), f"--output={tmp_path / 'out'}"])
