"""`evaluate_stepwise` where the papers are followed in place of us: asked, recorded, told apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cards.scores import LoopScores
from evaluators.comparison.systems import System, name_systems
from evaluators.outcomes import read_outcomes
from safe_stepwise import prompts
from safe_stepwise.errors import UserError
from scripts import evaluate_stepwise, join_results
from tests.scripts.test_evaluate_stepwise import MODEL, PLAYERS, arguments, asking, own, results, synthetic
from tests.servers.openai_server import MockServer
from tests.servers.stepper import Stepper

LOOP = ["tries_total", "accepted_diagnosis", "last_rejected", "answer_when_told"]
ALL = [*LOOP, "examples", "judge_without_question", "judge_all"]
FINAL = "There is no room for another"


@dataclass(frozen=True)
class Told(Stepper):
    """Whose verifier asks for the answer; keeps what it was asked, system and user."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, body: Mapping[str, Any]) -> str:
        system, user = (message["content"] for message in body["messages"])
        self.asked.append((system, user))
        return super().__call__(body)

    def verdict(self, user: str) -> str:
        said = super().verdict(user)
        return said.replace("Go on.", "Submit it as ####ANSWER: <answer>.")

    @property
    def kinds(self) -> dict[str, list[tuple[str, str]]]:
        files = {"verify": "loop/verify", "judge": "judge/equivalence", "generate": "loop/generate"}
        return {
            role: [one for one in self.asked if one[0].startswith(prompts.load(file).system)]
            for role, file in files.items()
        }


def evaluated(output: Path, *more: str, limit: int = 6) -> Told:
    """What was asked in an evaluation of SAFE, with no reply at hand; all answers are judged."""
    model = Told()
    file = own(output.parent / "own.jsonl", 6)
    judged = () if "--as-published" in more else ("--judge-all",)
    with MockServer(model, models_status=404) as server:
        evaluate_stepwise.main(arguments(file, output, *asking(server.spec, "safe"), *judged, *more))
    return model


def system_of(output: Path) -> System:
    (run,) = results(output)["runs"]
    return System.make(run["method"], run["players"], run["options"], run["conditions"])


def test_by_default_nothing_is_theirs_and_nothing_says_so(tmp_path: Path) -> None:
    asked = evaluated(tmp_path / "ours").kinds
    made = results(tmp_path / "ours")
    assert not {*made["settings"], *made["runs"][0]["options"]} & {*ALL, "as_published"}
    assert made["runs"][0]["conditions"] == {}
    assert not any("Example 1:" in system for system, _ in (*asked["verify"], *asked["judge"]))
    assert all("Question: " in user for _, user in asked["judge"])
    assert not any(FINAL in user for _, user in asked["generate"])


def test_one_option_follows_the_papers_in_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = evaluated(tmp_path / "theirs", "--as-published").kinds
    assert f"as the papers have it, not we: {', '.join(ALL)}" in capsys.readouterr().out
    for role in ("verify", "judge"):
        text = prompts.examples([role])[role]
        assert asked[role]
        assert all(system.endswith(text) for system, _ in asked[role])
    assert not any("Question: " in user for _, user in asked["judge"])
    # After each first step the guidance asks for the answer, and the next prompt for nothing else.
    later = [user for _, user in asked["generate"] if "none yet" not in user]
    assert later
    assert all(FINAL in user for user in later)
    assert any('Why: "So."' in user and "Rejected:" not in user for user in later)
    made = results(tmp_path / "theirs")
    assert made["settings"]["as_published"] == ALL
    (run,) = made["runs"]
    assert {name: run["options"][name] for name in LOOP} == dict.fromkeys(LOOP, True)
    assert run["options"]["examples"].startswith("verify ")
    assert run["conditions"]["judge_without_question"] is True
    assert run["conditions"]["judge_examples"].startswith("judge ")
    assert made["settings"]["judge_examples"] == run["conditions"]["judge_examples"]
    for outcome in read_outcomes(tmp_path / "theirs"):
        assert (outcome.options, outcome.conditions) == (run["options"], run["conditions"])
    text = (tmp_path / "theirs" / "report" / "comparison.md").read_text(encoding="utf-8")
    assert "tries_total" in text
    assert "judge_without_question" in text
    card = LoopScores("report", made, None)
    assert "answer_when_told=True" in card.changed_options(made["comparison"]["systems"][0])
    assert not card.changed_conditions  # the evidence is whole
    (shown,) = {run["conditions"]["judge_examples"]}
    assert f"(judge without question, judge examples {shown})" in str(card.judge)


def test_what_is_said_beside_it_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ("--no-last-rejected", "--examples=judge", "--no-judge-without-question")
    asked = evaluated(tmp_path / "some", "--as-published", "--max-retries=2", *more).kinds
    left = [*(name for name in LOOP if name != "last_rejected"), "judge_all"]
    assert f"as the papers have it, not we: {', '.join(left)}\n" in capsys.readouterr().out
    assert results(tmp_path / "some")["settings"]["as_published"] == left
    assert "last_rejected" not in results(tmp_path / "some")["runs"][0]["options"]
    assert not any("Example 1:" in system for system, _ in asked["verify"])
    assert all("Example 1:" in system for system, _ in asked["judge"])
    assert all("Question: " in user for _, user in asked["judge"])


VARIANTS = {
    "ours": [],
    **{name: [f"--{name.replace('_', '-')}"] for name in LOOP},
    "examples": ["--examples=verify"],
    "judge_examples": ["--examples=judge"],
    "judge_without_question": ["--judge-without-question"],
    "all": ["--as-published"],
    "limit": ["--max-tokens=verify=4096"],  # an option that only this one has
}


def test_runs_that_differ_in_one_choice_stay_apart_and_are_called_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Symbolic players on synthetic rows, from the questions to the joined table."""
    file = synthetic(tmp_path / "rows.jsonl", 3)
    for name, more in VARIANTS.items():
        evaluate_stepwise.main(
            arguments(
                file, tmp_path / name, "--method=safe", *PLAYERS, *more,
                cache=str(tmp_path / "replies.sqlite"),
            )
        )  # fmt: skip
    systems = [system_of(tmp_path / name) for name in VARIANTS]
    assert len(set(systems)) == len(VARIANTS)
    assert len({*name_systems(systems).values()}) == len(VARIANTS)
    tokens = {
        name: results(tmp_path / name)["runs"][0]["all"]["prompt_tokens"]["verifier"]
        for name in ("ours", "examples", "judge_examples")
    }
    assert tokens["examples"] > 1.3 * tokens["ours"] == 1.3 * tokens["judge_examples"]
    for other in systems[1:]:
        one, two = name_systems([systems[0], other]).values()
        assert (one, two) == ("SAFE", two)
        assert two.startswith("SAFE, ")
    capsys.readouterr()
    folders = [str(tmp_path / name) for name in VARIANTS]
    join_results.main([*folders, f"--output={tmp_path / 'joined'}"])
    captured = capsys.readouterr()
    assert f"systems: {len(VARIANTS)}; questions: 3" in captured.out
    assert len(results(tmp_path / "joined")["runs"]) == len(VARIANTS)
    rows = captured.out.splitlines()[3 : 3 + len(VARIANTS)]
    assert len({row.rpartition("  ")[0].strip() for row in rows}) == len(VARIANTS)


def test_a_choice_and_its_opposite_are_both_tried(tmp_path: Path) -> None:
    file = synthetic(tmp_path / "rows.jsonl", 2)
    more = ("--method=safe", "--tries-total", "--no-tries-total", "--max-retries=1,2")
    evaluate_stepwise.main(arguments(file, tmp_path / "out", *more, *PLAYERS))
    ran = [run["options"] for run in results(tmp_path / "out")["runs"]]
    found = {(one["max_retries"], one.get("tries_total", False)) for one in ran}
    assert found == {(1, True), (1, False), (2, True), (2, False)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--judge-without-question"], "go with a --judge SPEC"),
        (["--tries-total", "--max-retries=0"], "max_retries counts tries: it has to be 1 or more"),
        (["--as-published", "--max-retries=0"], "max_retries counts tries"),
        (["--examples=generate"], "--examples 'generate'"),
        (["--examples=verify,none"], "none goes with no other"),
    ],
)
def test_a_contradiction_is_one_line(tmp_path: Path, options: list[str], message: str) -> None:
    file = own(tmp_path / "own.jsonl", 1)
    with pytest.raises(UserError, match=message) as caught:
        evaluate_stepwise.main(arguments(file, tmp_path / "out", "--method=no_verification", MODEL, *options))
    assert "\n" not in str(caught.value)
