"""Scores where the Hub's leaderboards look for them, read back by the Hub's own client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from releases.publish.checks import check_release
from releases.publish.folder import FinishedRelease, read_release
from releases.publish.leaderboard import adapter_files, add_leaderboard_files, dataset_files, loop_results
from safe_stepwise.errors import UserError
from tests.cards.test_loop import evaluated, readme
from tests.releases.conftest import CARD, lock, write

VERIFIED = "datasets/safe-verified-multihop"


SAMPLED = CARD.format(
    """configs:
- config_name: musique
  data_files: [{split: train, path: "data/musique/train-*.parquet"}]
- config_name: musique_eval
  data_files: [{split: test, path: "data/musique_eval/test-*.parquet"}]
"""
)


@pytest.fixture
def scored(small: Path) -> Path:
    """The small release with verified benchmarks, and an adapter that the loop was run with."""
    other = evaluated()
    for one in other["comparison"]["systems"]:
        one["players"]["generator"] = "openai:google/gemma-3-12b-it"
    loops = {"report": evaluated(), "blocks/generators/report": other}
    write(small / "adapter" / "README.md", readme(loops))
    write(small / VERIFIED / "README.md", SAMPLED)
    lock(small)
    return small


def released(root: Path) -> FinishedRelease:
    return add_leaderboard_files(read_release(root, "somebody"), "somebody")


def files(release: FinishedRelease, folder: str) -> dict[str, bytes]:
    (found,) = [one for one in release.artifacts if one.folder == folder]
    return {file.path: file.read() for file in found.files}


def entries(made: dict[str, bytes]) -> dict[str, list[Any]]:
    named = {name: text for name, text in made.items() if name.startswith(".eval_results/")}
    return {name: parse_eval_result_entries(yaml.safe_load(text)) for name, text in named.items()}


def test_each_way_of_measuring_is_a_file_whose_tasks_the_dataset_defines(scored: Path) -> None:
    release = released(scored)
    found = entries(files(release, "adapter"))
    assert len(found) == 2  # two generators: a variant has a file of its own
    assert all(name.endswith(".yaml") for name in found)
    tasks = yaml.safe_load(files(release, VERIFIED)["eval.yaml"])
    assert tasks["evaluation_framework"] == "inspect-ai"
    defined = {task["id"]: (task["config"], task["split"]) for task in tasks["tasks"]}
    assert defined["musique_eval_f1"] == ("musique_eval", "test")
    for one in found.values():
        assert {entry.dataset_id for entry in one} == {"somebody/safe-verified-multihop"}
        assert sorted(entry.task_id for entry in one) == sorted(defined)
        assert {entry.value for entry in one} == {0.75}
        place = "https://huggingface.co/datasets/somebody/safe-verified-multihop/tree/v0.1.0"
        assert {entry.source_url for entry in one} == {place}
    (gemma,) = [name for name in found if "gemma" in name]
    notes = {entry.task_id: entry.notes for entry in found[gemma]}
    how = "generator openai:google/gemma-3-12b-it, verifier this adapter, method safe, max_steps 10"
    assert how in notes["musique_eval_f1"]
    assert "judge openai:j" not in notes["musique_eval_f1"]
    assert notes["musique_eval_accuracy"].endswith("judge openai:j")


def test_the_figures_are_those_of_the_cards_header(scored: Path) -> None:
    card = (scored / "adapter" / "README.md").read_text("utf-8")
    results = loop_results(card, "card")
    index = {(one.dataset_config, one.metric_type): one.metric_value for one in results}
    made = entries(adapter_files(results, "ns", "v9.0.0"))
    told = {entry.task_id: entry.value for one in made.values() for entry in one}
    assert told == {f"{config}_{metric}": value for (config, metric), value in index.items()}
    assert adapter_files(results, "ns", "v9.0.0") == adapter_files(results, "ns", "v9.0.0")


def test_they_can_be_left_out_and_are_where_there_is_nothing_to_tell(scored: Path) -> None:
    release = read_release(scored, "somebody")  # as with --no-leaderboard
    assert "eval.yaml" not in files(release, VERIFIED)
    assert not entries(files(release, "adapter"))
    write(scored / "adapter" / "README.md", readme({}))
    write(scored / VERIFIED / "README.md", CARD.format(""))
    release = released(scored)
    assert "eval.yaml" not in files(release, VERIFIED)
    assert not entries(files(release, "adapter"))
    assert dataset_files([], []) == {}


def test_the_samples_are_tasks_for_inspect_whether_or_not_there_are_scores(scored: Path) -> None:
    write(scored / "adapter" / "README.md", readme({}))
    found = yaml.safe_load(files(released(scored), VERIFIED)["eval.yaml"])["tasks"]
    scorers = {"musique_eval_exact_match": "exact", "musique_eval_f1": "f1"}
    assert {task["id"]: task["scorers"][0]["name"] for task in found} == scorers
    for task in found:
        # What Inspect takes: it refuses further keys.
        keys = {"id", "config", "split", "field_spec", "solvers", "scorers"}
        assert set(task) == keys
        assert (task["config"], task["split"]) == ("musique_eval", "test")
        assert task["field_spec"] == {"input": "input", "target": "answer"}


def test_what_is_made_on_the_way_counts_as_the_card_it_is_made_of(scored: Path) -> None:
    read: list[str] = []
    check_release(released(scored), None, read.append)
    assert read.count("adapter/README.md") == 1 + 2  # itself, two files of scores
    assert read.count(f"{VERIFIED}/README.md") == 1 + 1  # itself, the tasks
    write(scored / "adapter" / "README.md", readme({"report": evaluated()}))
    with pytest.raises(UserError, match=r"adapter/README\.md: differs"):
        check_release(released(scored), None, read.append)


@pytest.mark.parametrize("index", ["3", "[{name: x}]", "[{name: x, results: [{task: 1}]}]"])
def test_a_header_of_a_strange_shape_has_no_scores(index: str, small: Path) -> None:
    write(small / VERIFIED / "README.md", CARD.format(""))
    write(small / "adapter" / "README.md", CARD.format(f"model-index: {index}\n"))
    assert not entries(files(released(small), "adapter"))
