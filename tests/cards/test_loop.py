"""The loop's scores on the adapter's card: those of this adapter, and in the Hub's own words."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from cards import scores
from cards.models import model_card
from evaluators.comparison.report import render_report
from safe_stepwise.records import FAILED
from tests.cards.records import config, training
from tests.cards.test_adapter import EVIL, shape
from tests.evaluators.comparison.test_report import run

WEIGHTS = "adapter@0123456789ab"
OWN = f"vllm:Qwen/Qwen3-8B@b968826d9c46+{WEIGHTS}"


def evaluated(verifier: str = OWN, lost: int = 0, **changes: Any) -> dict[str, Any]:
    """``results.json`` of three methods on two benchmarks, what of it matters here."""
    made = run(generator="openai:m", **changes)
    for n, one in enumerate(made):
        if one.method == "safe":
            made[n] = one = replace(one, players={**one.players, "verifier": verifier})
            if one.question_id == "q3" and (lost := lost - 1) >= 0:
                failed = replace(one.trajectory, stop_reason=FAILED)
                made[n] = replace(one, trajectory=failed)
    settings = {"questions": {"hotpotqa": 4, "musique": 4}, "judge": "openai:j", "corpus": None}
    found = {"settings": {**settings, "drop_gold": False}, "comparison": render_report(made).results}
    return dict(json.loads(json.dumps(found)))


def readme(loops: dict[str, dict[str, Any]], weights_name: str | None = WEIGHTS, main_folder: str = "report") -> str:
    name = {"base_model_name_or_path": "Qwen/Qwen3-8B"}
    made = {"config": config(**name), "version": "v0.3.0"}
    return model_card(training(), None, **made, loops=loops, weights_name=weights_name, main_folder=main_folder)


def test_every_method_stands_beside_it() -> None:
    text = readme({"report": evaluated()})
    assert "## In the loop\n" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    (safe,) = [row for row in rows if row.startswith("| **SAFE**")]
    found = evaluated()["comparison"]["systems"]
    (own,) = [one for one in found if one["method"] == "safe"]
    estimate = own["benchmarks"]["musique"]["exact_match"]
    half = (estimate["high"] - estimate["low"]) / 2
    assert f" {estimate['value']:.3f} ±{half:.3f} / " in safe
    assert "| openai:m | this adapter |" in safe
    assert "| No verification | openai:m | - | 0.250 ±" in text
    assert OWN not in text  # where the folder lay says nothing to a reader
    assert "`report/`" in text
    assert "imulated" not in text


def test_the_header_has_what_the_hub_reads() -> None:
    card = ModelCard(readme({"report": evaluated()}))
    results = card.data.eval_results or []
    assert len(results) == 2 * 3
    places = {(one.dataset_type, one.dataset_config, one.dataset_split) for one in results}
    assert places == {
        ("safe-verified-multihop", "hotpotqa_eval", "test"),
        ("safe-verified-multihop", "musique_eval", "test"),
    }
    assert {one.dataset_revision for one in results} == {"v0.3.0"}
    assert {one.metric_type: one.metric_value for one in results} == {
        "exact_match": 0.75,
        "f1": 0.75,
        "accuracy": 0.75,
    }
    (judged,) = [one for one in results if one.metric_type == "accuracy"][:1]
    assert judged.metric_args == {
        "generator": "openai:m",
        "verifier": "this adapter",
        "method": "safe",
        "max_steps": 10,
        "max_retries": 3,
        "judge": "openai:j",
    }
    assert card.data.to_dict()["metrics"] == ["accuracy", "exact_match", "f1"]
    index = eval_results_to_model_index("name", results)
    assert model_index_to_eval_results(index) == ("name", results)


def test_another_adapters_scores_are_not_its_own() -> None:
    text = readme({"report": evaluated()}, "adapter@ffffffffffff")
    assert "In the loop" not in text
    assert "model-index" not in text
    assert "In the loop" not in readme({"report": evaluated("symbolic: x")})
    assert "In the loop" not in readme({})
    assert "In the loop" not in readme({"report": evaluated()}, weights_name=None)


def test_an_effort_or_another_suffix_of_a_player_hides_no_adapter() -> None:
    assert "| openai:m | this adapter |" in readme({"report": evaluated(f"{OWN} (effort low)")})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (evaluated(simulated=True), "was simulated. So its scores are not in the header"),
        (evaluated(lost=1), "lost 1 question to failed requests, counted as wrong. So its scores"),
    ],
)
def test_what_is_no_score_is_shown_but_not_in_the_header(found: dict[str, Any], why: str) -> None:
    text = readme({"report": found})
    assert why in text
    assert "| **SAFE**" in text
    assert "model-index" not in text
    assert ("**SAFE** (simulated) |" in text) == ("simulated" in why)


def test_evaluations_of_blocks_are_named() -> None:
    blocks = {"blocks/more/report": evaluated(), "blocks/swept/report": evaluated(max_retries=1)}
    text = readme({"report": evaluated(), **blocks})
    for place in blocks:
        assert f"`{place}/`" in text.partition("Further evaluations with this adapter")[2]
    assert text.count("## In the loop\n") == 1
    assert len(ModelCard(text).data.eval_results or []) == 2 * 3


def test_its_own_evaluation_is_told_whatever_its_conditions() -> None:
    swept = readme({"report": evaluated(max_retries=1)})
    assert "| **SAFE**, max_retries=1 | openai:m |" in swept
    results = ModelCard(swept).data.eval_results or []
    assert {one.metric_args["max_retries"] for one in results if one.metric_args} == {1}
    less = evaluated()
    less["settings"] |= {"drop_gold": True, "corpus": {"name": "pages.jsonl"}}
    place = "blocks/missing-evidence/incomplete/report"
    text = readme({place: less}, main_folder=place)
    assert "## In the loop\n" in text
    assert "**The evidence differs** from that of the samples (drop gold, corpus)" in text
    assert "model-index" not in text


def test_names_can_break_nothing() -> None:
    evil = evaluated(f"{EVIL}+{WEIGHTS}")
    for one in evil["comparison"]["systems"]:
        one["players"]["generator"] = EVIL
        one["benchmarks"][EVIL] = one["benchmarks"].pop("musique")
    evil["comparison"]["benchmarks"] = ["hotpotqa", EVIL]
    evil["settings"] |= {"judge": EVIL, "questions": {EVIL: 3}}
    text = readme({"report": evil})
    assert "<script" not in ModelCard(text).text
    assert "\x1b" not in text
    assert shape(text) == shape(readme({"report": evaluated()}))
    assert len(ModelCard(text).data.eval_results or []) == 2 * 3


def test_a_figure_that_is_missing_is_an_error() -> None:
    found = evaluated()
    del found["comparison"]["systems"][0]["benchmarks"]["musique"]["failed"]
    del found["comparison"]["systems"][-1]["benchmarks"]["musique"]["failed"]
    with pytest.raises(KeyError):
        readme({"report": found})
    assert set(scores.METRICS) == {"exact_match", "f1", "accuracy"}
