"""The card of the path probe: every figure from its record, values that break nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from huggingface_hub import DatasetCard

from cards import datasets
from cards.pages import WORDS
from safe_stepwise.store.names import CORRUPTIONS

EVIL = "</details>\n\n# Big | <script> `code` [x](y)"
INFO = [{"config_name": "path_probe", "features": [{"name": "id", "dtype": "string"}]}]
SOURCE = {
    "benchmark": EVIL,
    "split": "train",
    "license": "cc0-1.0",
    "homepage": EVIL,
    "citation": "",
    "source": {"synthetic": False},
    "teacher": "annotations",
    "simulated": False,
}
FILES = {"split": "test", "rows": 7, "bytes": 1, "arrow_bytes": 1, "files": []}


def statistics(**changes: Any) -> dict[str, Any]:
    return {
        "version": "v0.3.0",
        "rows": 1234,
        "questions": 77,
        "splits": {"test": {"rows": 1234, "questions": 77}},
        "benchmarks": {EVIL: {"questions": 77, "valid": 77, "reversed": 76}},
        "marked": {"valid": {"rows": 10, "marked": 1}, "reversed": {"rows": 20, "marked": 4}},
        "left_out": {EVIL: {EVIL: 3}},
        "refused": {"reversed": {EVIL: 1}},
        "verified": [SOURCE],
        "files": {name: {"test": FILES} for name in ("prompt_completion", "path_probe")},
        "prompt_sha256": "ab" * 32,
        "libraries": {"datasets": "4.0"},
        "code_sha256": "cd" * 32,
        **changes,
    }


def readme(**changes: Any) -> str:
    return datasets.path_probe(statistics(**changes), INFO)["README.md"].decode()


def test_figures_are_those_of_the_record() -> None:
    text = readme()
    assert "1,234 rows" in text
    assert "Its balanced accuracy is 0.550" in text
    assert "| `reversed` | 20 | 20.0% |" in text
    assert "| `reversed` |" in text.partition("questions without this kind")[2]
    assert "imulated" not in text
    data = DatasetCard(text).data.to_dict()
    assert [(c["config_name"], c.get("default")) for c in data["configs"]] == [
        ("path_probe", True),
        ("prompt_completion", None),
    ]


def test_values_break_nothing() -> None:
    text = readme()
    assert "<script>" not in text
    assert "\n# Big" not in text
    for line in text.splitlines():
        if line.startswith("| `"):
            assert line.endswith(" |")


def test_what_is_simulated_or_made_up_says_so() -> None:
    made_up = {**SOURCE, "simulated": True, "source": {"synthetic": True}}
    text = readme(verified=[made_up])
    assert "> **Simulated teacher.**" in text
    assert "> **Synthetic data.**" in text


@pytest.mark.parametrize("name", sorted(set(statistics()) - {"left_out"}))
def test_a_figure_that_is_missing_is_an_error(name: str) -> None:
    record = copy.deepcopy(statistics())
    del record[name]
    with pytest.raises(KeyError):
        datasets.path_probe(record, INFO)


def test_every_kind_has_a_meaning() -> None:
    assert set(WORDS["corruptions"]) == set(CORRUPTIONS)
