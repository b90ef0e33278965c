from __future__ import annotations

import copy
import html
from typing import Any

import pytest
from huggingface_hub import DatasetCard

from builders.steps import leakage
from builders.steps.configs import CONFIGS
from cards import pages
from cards.datasets import verifier_steps
from safe_stepwise.taxonomy import ERROR_TYPES

INFO = [{"config_name": "steps", "features": [{"name": "id", "dtype": "string"}]}]
EVIL = "</details>\n\n# Big | <script> `code` [x](y) **b** _i_ <!-- \u2028"


def split_files(split: str, rows: int) -> dict[str, Any]:
    return {"split": split, "rows": rows, "bytes": 10, "arrow_bytes": 20, "files": []}


def example(error_type: str, origin: str) -> dict[str, Any]:
    return {
        "id": "ab" * 16,
        "benchmark": "musique",
        "question": EVIL,
        "passages": [{"title": EVIL, "text": EVIL}],
        "previous_steps": [f"Step 1: {EVIL}"],
        "current_step": f"Step 2: {EVIL}",
        "error_type": error_type,
        "diagnosis": EVIL,
        "guidance": EVIL,
        "origin": origin,
    }


def probe(score: float | None) -> dict[str, Any]:
    return {
        "name": "step alone",
        "measure": "accuracy",
        "aim": 0.5,
        "rows": 331,
        "score": score,
        "majority": 0.305,
        "recall": {} if score is None else {"Off-topic": 0.17, "Correct": 0.81},
    }


def statistics(**changes: Any) -> dict[str, Any]:
    return {
        "version": "v0.3.0",
        "seed": 5,
        "teacher": "annotations",
        "simulated": False,
        "unverifiable": False,
        "composition": {"rows": 330, "questions": 77, "ideal": 0.31, "refined": 0, "rows_per_question": 9},
        "test_share": 0.1,
        "pool": None,
        "refined": None,
        "rows": 331,
        "questions": 77,
        "splits": {"train": {"rows": 300, "questions": 70}, "test": {"rows": 31, "questions": 7}},
        "benchmarks": {"musique": {"rows": 331, "questions": 77, "ideal": 101, "injected": 230, "refined": 0}},
        "origins": {
            "train": {"ideal": 91, "injected": 209, "refined": 0},
            "test": {"ideal": 10, "injected": 21, "refined": 0},
        },
        "types": {
            "musique": {
                **{entry.name: {"train": 20, "test": 3} for entry in ERROR_TYPES},
                "Correct": {"train": 91, "test": 10},
            }
        },
        "positions": {
            "1": {"ideal": 50, "injected": 100, "refined": 0},
            "2": {"ideal": 51, "injected": 130, "refined": 0},
        },
        "contexts": {"original": 300, "altered": 21, "borrowed": 10},
        "per_question": {"mean": 4.3, "most": 7},
        "wordings": {"steps": {"seen": 19, "unseen": 12}, "missing_evidence": {"seen": 1, "unseen": 1}},
        "probes": [probe(0.449), {**probe(0.3), "name": "evidence types", "aim": 0.4}],
        "missing_evidence": {"train": 41, "test": 2},
        "trajectories": {"musique": {"questions": 99, "passing": 88}},
        "refused": {"": {"no path": 11}, "Off-topic": {"another | error": 1_234}},
        "kept_out": {"musique": {"questions": 13, "rows": 456}},
        "overlap": {"steps": 0, "missing_evidence": 0},
        "shortfalls": {"musique": {"Logical Fallacy": 9}},
        "groups": {"groups": 60, "largest": 4},
        "verified": [
            {
                "benchmark": "musique",
                "split": "train",
                "version": "v0.3.0",
                "source": {"name": "m|q.jsonl", "digest": "ab" * 32, "synthetic": False},
                "teacher": "annotations",
                "simulated": False,
                "verified": 120,
                "digest": "cd" * 32,
                "license": "cc-by-4.0",
                "homepage": "https://example.org/musique",
                "citation": "@article{someone2020,\n  title = {Questions}\n}",
                "code_sha256": "ef" * 32,
            }
        ],
        "files": {
            name: {"train": split_files("train", 300), "test": split_files("test", 31)}
            for name in ("missing_evidence", "prompt_completion", "steps")
        },
        "examples": [example("Correct", "ideal"), example("Off-topic", "injected")],
        "prompt_sha256": "12" * 32,
        "libraries": {"datasets": "5.2.0"},
        "code_sha256": "34" * 32,
        **changes,
    }


def readme(**changes: Any) -> str:
    return verifier_steps(statistics(**changes), INFO)["README.md"].decode()


def test_the_yaml_is_what_the_hub_reads() -> None:
    data = DatasetCard(readme()).data.to_dict()
    assert data["license"] == "cc-by-4.0"
    assert data["dataset_info"] == INFO
    configs = {c["config_name"]: c for c in data["configs"]}
    assert [*configs] == ["steps", "prompt_completion", "missing_evidence"]
    assert configs["steps"]["default"] is True
    assert all("default" not in configs[name] for name in configs if name != "steps")
    assert configs["steps"]["data_files"][1]["path"] == "data/steps/test-*.parquet"
    assert data["size_categories"] == ["n<1K"]


def test_every_figure_is_the_runs() -> None:
    text = readme()
    assert "331 rows of 77 questions" in text
    assert "| musique | 331 | 77 | 101 | 230 | 0 |" in text
    assert "| test | 31 | 7 | 10 | 21 | 0 |" in text
    for entry in ERROR_TYPES:
        assert f"| {entry.category} | {entry.name} | 23 | 20 | 3 |" in text
    assert "| Correct | Correct | 101 | 91 | 10 |" in text
    assert "| musique | 99 | 88 |" in text
    assert "| ideal | no path | 11 |" in text
    assert "| Off-topic | another \\| error | 1,234 |" in text
    assert "musique 13 questions with 456 rows" in text
    assert "For musique, there were fewer rows than requested of some kinds" in text
    assert "replace them (at most 9 rows per question). Lacking: Logical Fallacy 9." in text
    assert "60 groups, the largest of 4 questions" in text
    assert "43 steps from questions with one gold passage removed" in text
    assert "12" * 32 in text
    assert "Seed 5, 31% ideal steps requested, 10% of the rows" in text
    assert "@article{someone2020," in text
    assert "imulated" not in text
    assert "ynthetic" not in text


def test_it_says_what_can_be_labelled_without_passages() -> None:
    text = readme()
    assert "| step alone | 331 | accuracy | 0.449 | 0.305 | 0.50 |" in text
    assert "No probe is above its target. But a verifier could reach the probes' scores" in text
    assert "step alone: Off-topic 0.17, Correct 0.81" in text
    text = readme(probes=[probe(0.501), probe(None)])
    assert "**Above the target: step alone.** The words of the steps, or their overlap with the passages, thus" in text
    assert "| step alone | 331 | accuracy | too few rows | 0.305 | 0.50 |" in text
    assert "There are too few rows for the probes." in readme(probes=[probe(None)])


def test_it_says_what_twins_are_for() -> None:
    assert "missing_evidence_twins" not in readme()
    found = {**probe(0.512), "name": "missing or missed", "measure": "balanced accuracy"}
    text = readme(
        missing_evidence_twins={"train": 40, "test": 2},
        missing_evidence_probe=found,
        missing_evidence_prompt_sha256="78" * 32,
    )
    assert "- `missing_evidence_twins`: 42 of those steps in the same words" in text
    assert "- `missing_evidence_prompt_completion`: the rows of all configs above" in text
    assert "78" * 32 in text
    assert "their twins). It reaches 0.512 (balanced accuracy, from the step and previous steps, 331 rows" in text
    assert "missing or missed" not in readme(missing_evidence_probe={**found, "score": None})


def test_the_configs_stand_in_an_order() -> None:
    names = sorted(CONFIGS)
    made = {name: {"train": split_files("train", 300), "test": split_files("test", 0)} for name in names}
    configs = DatasetCard(readme(files=made)).data.to_dict()["configs"]
    assert [c["config_name"] for c in configs] == [
        *("steps", "kto", "preference", "prompt_completion"),
        *sorted(name for name in CONFIGS if name.startswith("missing_evidence")),
    ]


def test_it_says_how_differently_it_is_worded() -> None:
    text = readme()
    assert "4.3 rows on average and 7 at most (the build allows 9)" in text
    assert "Of the test rows, 12 have a wording that no row of `train` has, and 19 a" in text
    assert "occurs verbatim" not in text
    text = readme(overlap={"steps": 5, "missing_evidence": 3}, rows=325)
    assert "(final answers are exempt): 5 rows, and 3 of `missing_evidence`. So there are 325" in text


def test_it_says_that_passages_were_changed() -> None:
    text = readme()
    assert "**The passages of 31 rows are not the benchmark's.** In 21 rows, a value" in text
    none = {"original": 331, "altered": 0, "borrowed": 0}
    assert "are not the benchmark's" not in readme(contexts=none)


def test_the_rule_of_the_split_is_the_builders() -> None:
    text = readme()
    assert (leakage.WORDS, leakage.CONTAINMENT, leakage.BOILERPLATE) == (8, 0.5, 50)
    assert "at least half of the word 8-grams (of question and gold passages together)" in text
    assert "than fifty questions" in text


def test_nothing_untrue_is_said_of_the_text() -> None:
    changed, none = readme(), {"original": 331, "altered": 0, "borrowed": 0}
    assert "In 31 rows a passage was changed or exchanged on purpose" in changed
    assert "so that they state false things" in changed
    for text in (changed, readme(contexts=none)):
        assert "not edited" not in text
        assert "No word of" not in text
        assert "Steps and verdicts were added" in text
        assert "rows of `missing_evidence` lack one gold passage" in text
    assert "on purpose, as described" not in readme(contexts=none)
    without = readme(missing_evidence={"train": 0, "test": 0})
    assert "lack one gold passage" not in without


def test_share_alike_binds_steps_too() -> None:
    (build,) = statistics()["verified"]
    text = readme(verified=[{**build, "benchmark": "hotpotqa", "license": "cc-by-sa-4.0"}])
    assert "Rows of hotpotqa are under CC BY-SA 4.0" in text
    assert "from them in this dataset is too (also the steps, diagnoses and guidance)." in text
    assert "## Personal data" in text
    assert "Erroneous steps and changed passages state false things on purpose" in text


def test_changed_statistics_change_the_card() -> None:
    """No number on the card stands in the template."""
    plain = readme()
    for key in ("rows", "questions", "seed", "test_share", "kept_out", "groups"):
        changed = copy.deepcopy(statistics()[key])
        if isinstance(changed, dict):
            inner = next(iter(changed.values())) if key == "kept_out" else changed
            for name, value in inner.items():
                inner[name] = value + 1 if isinstance(value, int) else value
        else:
            changed = changed + 1 if isinstance(changed, int) else changed * 2
        assert readme(**{key: changed}) != plain


def test_rows_are_shown_as_text_that_can_break_nothing() -> None:
    text = readme()
    assert text.count("</details>") == text.count("<details>") == 2
    assert "<script>" not in text
    assert "# Big" not in text
    shown = pages.escape_html(EVIL)
    assert html.unescape(shown) == EVIL
    assert not set(shown) & set("<>|`*_[]()\n")


def test_simulated_makers_and_synthetic_questions_are_named_as_such() -> None:
    assert "A script instead of a model wrote the steps of this dataset" in readme(simulated=True)
    build = statistics()["verified"][0]
    assert "**Simulated teacher.** Labels of musique train" in readme(verified=[{**build, "simulated": True}])
    synthetic = {**build, "source": {**build["source"], "synthetic": True}}
    assert "**Synthetic data.**" in readme(verified=[synthetic])


def test_it_says_which_weaknesses_refined_rows_show() -> None:
    shown = {"name": "fallacies | passed", "meaning": "passes <b>", "rows": 2, "given": 1_003}
    absent = {"name": "detours passed", "meaning": "x", "given": 0, "rows": 0}
    origin = {"file": "refined.jsonl", "sha256": "ab", "rows": 1_003, "simulated": None}
    said = readme(refined={**origin, "families": [shown, absent]})
    assert "| fallacies \\| passed | passes &lt;b> | 1,003 | 2 |" in said
    assert "detours passed" not in said
    before = readme(refined=origin)  # as earlier versions wrote it
    assert "1,003 such rows were given to the build in refined.jsonl" in before
    assert "weakness" not in before


def test_the_papers_limits_are_repeated() -> None:
    limits = readme().split("## Limitations")[1].split("##")[0]
    assert "Labels can be wrong" in limits
    assert "only if the generator follows it" in limits


def test_a_missing_figure_is_an_error() -> None:
    lacking = statistics()
    del lacking["kept_out"]
    with pytest.raises(KeyError):
        verifier_steps(lacking, INFO)


def test_rows_are_counted_by_position_and_origin() -> None:
    positions = {"10": {"ideal": 1_000}, "2": {"injected": 9, "refined": 4}}
    card = verifier_steps({**statistics(), "positions": positions}, INFO)["README.md"].decode()
    assert "| 2 | 0 | 9 | 4 |\n| 10 | 1,000 | 0 | 0 |\n" in card
