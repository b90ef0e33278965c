"""The proposer's card: figures of its runs and nothing else, whatever the names in it."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from huggingface_hub import ModelCard

from cards.models import License, proposer_card
from cards.scores import DeliberationScores
from safe_stepwise.errors import UserError
from tests.cards import records
from tests.cards.records import config

WEIGHTS = "adapter@0123456789ab"
EVIL = "evil|name\n---\nlicense: mit\n```\n# Big <script>alert(1)</script> [x](javascript:y) {{ 7 }}"


def stage(method: str, **changes: Any) -> dict[str, Any]:
    """``training.json`` of a stage."""
    path = {"filters": {"negatives": [], "paths": None, "rows": 480}, "method": method, "beta": 0.1,
            "desirable_weight": 1.0, "undesirable_weight": 1.5, "splits": "template"}  # fmt: skip
    made = records.training()
    made["recipe"] |= path
    made["dataset"] |= {"name": "dp-metaqa-paths"}
    if method == "kto":
        made["dataset"] |= {"undesirable_rows": 376}
        made["start"] = {"name": "sft", "revision": "47" * 32}
        made["held_out"] |= {"margin_before": 12.829, "margin_after": 35.8866, "kl_before": None,
                             "kl_after": None}  # fmt: skip
    return records.changed(made, changes)


def paths(**changes: Any) -> dict[str, Any]:
    """``statistics/paths.json``, what of it matters here."""
    audit = {"rules": {"best": {"recall": 0.999, "precision": 0.868, "paths": 1.1}}}
    made = {
        "benchmark": "metaqa", "split": "train", "version": "v0.3.0", "rows": 3000, "simulated":
        False, "sources": [{"name": "qa.txt", "digest": "ab" * 32, "synthetic": False}],
        "hops": {"1": audit}, "caveat": "No path is annotated.", "license": "cc-by-3.0",
        "homepage": "https://example.org/kg", "citation": "@misc{kg}",
    }  # fmt: skip
    return records.changed(made, changes)


def run(name: str, hits: float, proposer: str, **changes: Any) -> dict[str, Any]:
    """A run of an evaluation."""
    found = {"hits_at_1": hits, "hit": hits + 0.01, "f1": hits - 0.01, "questions": 200,
             "intervals": {"hits_at_1": [hits - 0.05, hits + 0.05]}, "failed": 0}  # fmt: skip
    made = {**found, "name": name, "players": {"proposer": proposer}, "simulated": False,
            "paths": {"first_executable": 0.985},
            "by_hop": {"1": dict(found), "2": {**found, "hits_at_1": hits - 0.2}}}  # fmt: skip
    return records.changed(made, changes)


def results(*runs: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """``results.json`` of an evaluation."""
    settings = {"questions": 400, "benchmark": "metaqa", "split": "test", "per_hop": 200,
                "held_out": True, "constrained": True, "resamples": 2000, "seed": 3,
                "generator": None, "labels": "gold"}  # fmt: skip
    made = {"scorer": "dp", "settings": settings, "runs": list(runs)}
    return records.changed(made, changes)


OWN, NEAREST = run("KTO", 0.861, f"transformers:tiny+{WEIGHTS}"), run("nearest", 0.713, "nearest")


def readme(stages: Any = None, found: Any = None, about: Any = None, **options: Any) -> str:
    options = {"config": config(), "version": "v0.3.0", "weights_name": WEIGHTS, **options}
    stages = stages or [stage("sft"), stage("kto")]
    return proposer_card(stages, about or paths(), results=found, **options)


def test_both_stages_stand_side_by_side() -> None:
    first = stage("sft", **{"recipe.seed": 3, "run.seconds": 286.4})
    card = readme([first, stage("kto", **{"recipe.seed": 4, "run.seconds": 1181.0})])
    assert "# dp-metaqa-Qwen3-8B\n" in card
    assert "SFT, then KTO from that adapter, which is also the reference model: 24.5 minutes" in card
    for line in (
        "| | SFT | KTO |\n| --- | ---: | ---: |\n| training rows | 541 | 541 |\n",
        "| of these, wrong paths | 0 | 376 |\n",
        "| seed | 3 | 4 |\n",
        "| minutes | 4.8 | 19.7 |\n",
        "| margin on held-out rows, before KTO |  | 12.8290 |\n| margin on held-out rows, after KTO |  | 35.8866 |\n",
        "| beta, weights of right and wrong paths | 0.1, 1.0 and 1.5 |\n",
        f"| started from | `sft` (`{'47' * 32}`) |\n",
        "| 1 | 0.999 | 0.868 |\n",
    ):
        assert line in card
    assert "kl on held-out" not in card  # it was not measured
    assert "**Not measured.**" in card
    assert "model-index" not in card
    alone = readme([stage("sft")])
    assert "KTO" not in alone
    assert "| | SFT |\n| --- | ---: |\n" in alone


def test_what_was_measured_stands_beside_the_baselines() -> None:
    free = results(OWN, NEAREST, **{"settings.constrained": False})
    card = readme(found={"report": results(OWN, NEAREST), "blocks/free/report": free})
    assert "### Answers, held to the paths of the graph\n" in card
    assert "### Answers, free to name any path\n" in card
    row = "| **KTO** | 0.861 \\[0.811, 0.911\\] | 0.661 \\[0.811, 0.911\\] | 0.861 | 0.851 | 0.985 |"
    assert card.count(row) == 2
    assert "| nearest | 0.713 " in card
    data = ModelCard(card).data
    found = {(one.dataset_config, one.metric_name): one for one in data.eval_results if one.metric_type == "hits_at_1"}
    assert len(found) == 4
    assert {one.metric_value for one in found.values()} == {0.861, 0.661}
    assert {one.dataset_type for one in found.values()} == {"dp-metaqa-paths"}


def test_no_run_is_that_of_an_adapter_without_a_name() -> None:
    assert not DeliberationScores("report", results(OWN)).is_own(OWN)
    assert DeliberationScores("report", results(OWN), WEIGHTS).is_own(OWN)
    with pytest.raises(UserError, match="report: no run of it is of the adapter, whose name is not known; evaluate"):
        readme(found={"report": results(OWN, NEAREST)}, weights_name=None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"simulated": True}, "0 questions failed .* was simulated. So these scores"),
        ({"failed": 3}, "3 questions failed and count as wrong. So these scores"),
    ],
)
def test_what_is_no_result_is_not_in_the_header(change: dict[str, Any], said: str) -> None:
    card = readme(found={"report": results({**OWN, **change}, NEAREST)})
    assert re.search(said, card)
    assert ModelCard(card).data.eval_results is None


def test_the_header_is_what_the_hub_reads() -> None:
    data = ModelCard(readme(license=License("apache-2.0", "its card"))).data.to_dict()
    assert (data["base_model"], data["license"]) == ("Qwen/Qwen3-8B", "apache-2.0")
    assert {"lora", "relation-paths", "sft", "kto", "trl"} <= set(data["tags"])
    assert "synthetic" not in data["tags"]
    made_up = paths(sources=[{"name": "x", "digest": "y", "synthetic": True}])
    card = readme(about=made_up)
    assert "> **Synthetic data.**" in card
    assert "synthetic" in ModelCard(card).data.tags


@pytest.mark.parametrize(
    ("stages", "options", "said"),
    [
        ([stage("sft")], {"found": {"report": results(NEAREST)}}, "report: no run of it is of "),
        ([stage("sft")], {"version": "3"}, "vMAJOR.MINOR.PATCH"),
    ],
)
def test_results_of_another_adapter_are_refused(stages: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        readme(stages, **options)
    assert "\n" not in str(caught.value)


SHOWN = [
    ("run", "seconds"), ("run", "steps"), ("run", "device"), ("run", "tokens"), ("dataset", "rows"),
    ("recipe", "seed"), ("recipe", "splits"), ("recipe", "method"), ("adapter", "sha256"),
    ("held_out", "rows"), ("start", "revision"), ("prompt_sha256",), ("libraries",), ("curve",),
]  # fmt: skip


@pytest.mark.parametrize("way", SHOWN)
def test_a_figure_that_is_missing_is_an_error(way: tuple[str, ...]) -> None:
    trained = copy.deepcopy(stage("kto"))
    inner = trained
    for key in way[:-1]:
        inner = inner[key]
    del inner[way[-1]]
    with pytest.raises(KeyError):
        readme([stage("sft"), trained])


def test_names_of_strangers_break_nothing() -> None:
    trained = stage("kto", **{"run.device": EVIL, "dataset.name": "dp-metaqa-paths"})
    trained["libraries"] = {EVIL: EVIL}
    evil = run(EVIL, 0.3, EVIL)
    about = paths(benchmark="metaqa", caveat=EVIL)
    card = readme([stage("sft"), trained], {"report": results(OWN, evil)}, about)
    body = card.split("---\n", 2)[2]
    assert "<script>" not in body
    assert "\nlicense: mit" not in card
    assert "[x](javascript" not in body
    assert "\n# Big" not in body
    heads = re.findall(r"^#+ .*$", readme(found={"report": results(OWN, NEAREST)}), re.M)
    assert re.findall(r"^#+ .*$", card, re.M) == heads
