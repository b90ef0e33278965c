from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from huggingface_hub import DatasetCard

from builders.benchmarks import hotpotqa
from builders.verified.questions import config_features, question_sha256
from cards import datasets
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.store.names import NOISE_LABELS, VERIFIED

TEMPLATES = Path(datasets.__file__).parent / "templates"
INFO = [{"config_name": "musique", "features": [{"name": "id", "dtype": "string"}]}]


def split_files(split: str, rows: int) -> dict[str, Any]:
    names = [f"{split}-00000-of-00001.parquet"] if rows else []
    return {"split": split, "rows": rows, "bytes": 10, "arrow_bytes": 20, "files": names}


def statistics(benchmark: str = "musique", split: str = "train", **changes: Any) -> dict[str, Any]:
    verified = {benchmark: split_files(split, 81), f"{benchmark}_labeled": split_files(split, 97)}
    if split == "validation":
        verified[f"{benchmark}_eval"] = split_files("test", 75)
    return {
        "version": "v0.3.0",
        "benchmark": benchmark,
        "split": split,
        "source": {"name": f"{benchmark}.jsonl", "digest": "ab" * 32, "synthetic": False},
        "limit": None,
        "teacher": "annotations",
        "simulated": False,
        "replies": {},
        "seed": 5,
        "rows": 100,
        "verified": 81,
        "unverifiable": {"missing_evidence": 9, "wrong_answer": 4},
        "unparsed": 3,
        "rejected": 3,
        "kinds": {"chain": {"rows": 97, "unverifiable": 13}},
        "evaluation": {"size": 75, "rows": 75, "left_out": 6, "passages": 10} if split == "validation" else None,
        "files": {"safe-verified-multihop": verified, "safe-noise-labels": {benchmark: split_files(split, 97)}},
        "license": "cc-by-4.0",
        "homepage": "https://example.org/musique",
        "citation": "@article{someone2020,\n  title = {Questions}\n}",
        "caveat": "",
        "libraries": {"datasets": "5.2.0"},
        "code_sha256": "cd" * 32,
        **changes,
    }


AGREEMENT = {
    "rows": 60,
    "noise": 10,
    "found": 16,
    "precision": 0.5,
    "recall": 0.8,
    "f1": 0.6154,
    "calibration": [
        {"confidence": "0.9 to 1", "noise": 8, "noise_confirmed": 6, "sound": 40, "sound_confirmed": 39},
        {"confidence": "under 0.5", "noise": 8, "noise_confirmed": 2, "sound": 0, "sound_confirmed": 0},
    ],
}
MAKERS = [datasets.verified_multihop, datasets.noise_labels]


@pytest.mark.parametrize("make", MAKERS)
def test_the_yaml_is_what_the_hub_reads(make: Any) -> None:
    text = make([statistics(), statistics(split="validation")], INFO)
    data = DatasetCard(text).data.to_dict()
    assert data["license"] == "cc-by-4.0"
    assert data["language"] == "en"
    assert "question-answering" in data["task_categories"]
    assert data["size_categories"] == ["n<1K"]
    assert data["dataset_info"] == INFO
    configs = {c["config_name"]: c["data_files"] for c in data["configs"]}
    assert [f["split"] for f in configs["musique"]] == ["train", "validation"]
    assert configs["musique"][0]["path"] == "data/musique/train-*.parquet"
    if make is datasets.verified_multihop:
        assert set(configs) == {"musique", "musique_labeled", "musique_eval"}
        assert [f["split"] for f in configs["musique_eval"]] == ["test"]


@pytest.mark.parametrize("make", MAKERS)
def test_every_figure_is_the_runs(make: Any) -> None:
    text = make([statistics(split="validation")], INFO)
    assert "| musique | validation | 100 | 81 | 13 | 0 | 3 | 3 |" in text
    assert "| musique | validation | chain | 97 | 13 |" in text
    has_sample = make is datasets.verified_multihop
    assert ("75 questions, sampled with seed 5" in text) is has_sample
    assert ("The sample excludes 6 verified rows" in text) is has_sample
    assert "\n\n\n" not in text
    for type_ in NOISE_TYPES:
        assert text.count(f"| `{type_}` |") == 1
    assert f"`{'ab' * 32}`" in text
    assert "2604.01993" in text
    assert "@article{someone2020," in text
    assert "ynthetic" not in text


def test_licences_that_differ_are_listed() -> None:
    other = statistics("hotpotqa", license="cc-by-sa-4.0")
    text = datasets.verified_multihop([statistics(), other], INFO)
    assert DatasetCard(text).data.license == ["cc-by-4.0", "cc-by-sa-4.0"]
    assert "There is no single licence" in text
    assert "| musique | `cc-by-4.0` |" in text
    assert "| hotpotqa | `cc-by-sa-4.0` |" in text


@pytest.mark.parametrize("make", MAKERS)
def test_a_synthetic_card_says_so(make: Any) -> None:
    source = {"name": "rows=100,seed=1", "digest": "ab" * 32, "synthetic": True}
    text = make([statistics("synthetic", source=source, citation="", homepage="")], INFO)
    assert "**Synthetic data.**" in text
    assert "synthetic" in DatasetCard(text).data.tags


def test_one_real_benchmark_beside_it_and_the_card_is_not_synthetic() -> None:
    source = {"name": "rows=100,seed=1", "digest": "ab" * 32, "synthetic": True}
    text = datasets.noise_labels([statistics(), statistics("synthetic", source=source)], INFO)
    assert "**Synthetic data.**" not in text
    assert "| synthetic |" in text


@pytest.mark.parametrize("make", MAKERS)
def test_a_card_says_what_labels_of_its_benchmark_cannot_tell(make: Any) -> None:
    builds = [statistics("hotpotqa", split, caveat=hotpotqa.CAVEAT) for split in ("train", "validation")]
    text = make([*builds, statistics("2wikimultihopqa")], INFO)
    assert text.count("- HotpotQA annotates no triples") == 1
    assert "- HotpotQA annotates" not in make([statistics("2wikimultihopqa")], INFO)


@pytest.mark.parametrize("make", MAKERS)
def test_weak_labels_are_called_so_before_anything_else(make: Any) -> None:
    text = make([statistics("2wikimultihopqa"), statistics("hotpotqa")], INFO)
    screen = " ".join(text.partition("# safe-")[2].splitlines()[1:8])
    assert "**The labels of HotpotQA here are weak.**" in screen
    of = datasets.read_measured()["hotpotqa"]
    assert f"on {of['rows']:,} rows, of which {of['noise']} are noise" in screen.replace("> ", "")
    for figure in ("precision", "recall", "f1"):
        assert f"{of[figure]:.2f}" in screen
    for other in (statistics(), statistics("hotpotqa", teacher="openai:m prompts d7ba")):
        assert "weak" not in make([other], INFO)


def test_what_was_measured_is_what_the_pages_say() -> None:
    root = Path(__file__).parents[2]
    readme = (root / "README.md").read_text(encoding="utf-8")
    page = (root / "docs" / "verify.md").read_text(encoding="utf-8")
    for of in datasets.read_measured().values():
        figures = f"{of['precision']:.3f} | {of['recall']:.3f} | {of['f1']:.3f} |"
        of_rows = f"{of['rows']:,} | {of['noise']} | {of['found']}"
        assert f"| {of['title']} | {of_rows} | {figures}" in page
        assert f"| {of['title']} | {of['rows']:,} ({of['noise']}) | {figures}" in readme


@pytest.mark.parametrize("make", MAKERS)
def test_agreement_with_published_labels_is_told(make: Any) -> None:
    known = {"by": "a|b.jsonl", "digest": "ef" * 32, "agreement": AGREEMENT}
    text = make([statistics(known=known, min_confidence=0.25), statistics("hotpotqa")], INFO)
    assert "| musique | train | a\\|b.jsonl | 60 of 97 | 10 | 16 | 0.500 | 0.800 | 0.615 |" in text
    assert "| musique | train | 0.9 to 1 | 8 | 0.750 | 40 | 0.975 |" in text
    assert "| musique | train | under 0.5 | 8 | 0.250 | 0 | - |" in text
    assert "Noise labels with a confidence below 0.25 are `undecided` in musique train" in text
    assert "No published labels were given for hotpotqa train:" in text


@pytest.mark.parametrize("make", MAKERS)
def test_without_published_labels_a_card_says_what_was_measured_elsewhere(make: Any) -> None:
    text = make([statistics()], INFO)
    of = datasets.read_measured()["musique"]
    assert "No published labels were given for musique train:" in text
    assert f"| MuSiQue | {of['rows']} | {of['noise']} |" in text
    assert "confirmed" not in text
    model = make([statistics(teacher="openai:m prompts d7ba")], INFO)
    assert "No published labels were given for musique train:" in model
    assert "| MuSiQue |" not in model


@pytest.mark.parametrize("make", MAKERS)
def test_a_simulated_teacher_is_named_as_such(make: Any) -> None:
    replies = {"read": 1_200, "unreadable": 3}
    played = statistics(simulated=True, teacher="symbolic", replies=replies)
    text = make([played, statistics("hotpotqa")], INFO)
    assert "**Simulated teacher.** Labels of musique train were" in text
    assert "1,200 read, 3 unreadable" in text
    assert "A simulated teacher (`symbolic`, `mock`)" in text
    assert "number after `prompts`" not in make([statistics()], INFO)
    assert "imulated" not in make([statistics()], INFO)


@pytest.mark.parametrize("make", MAKERS)
def test_limits_are_those_of_the_teachers_it_had(make: Any) -> None:
    text = make([statistics(teacher="openai:m prompts d7ba", replies={"read": 3})], INFO)
    assert "A model as teacher may overlook" in text
    assert "number after `prompts`" in text
    assert "`annotations` uses no model" not in text
    assert "`annotations` uses no model" in make([statistics()], INFO)


def test_only_configs_that_are_there_are_described() -> None:
    text = datasets.verified_multihop([statistics()], INFO)
    assert "- `B`: " in text
    assert "- `B_eval`" not in text
    assert "- `B_eval`" in datasets.verified_multihop([statistics(split="validation")], INFO)


def test_values_cannot_break_a_table() -> None:
    evil = statistics(
        teacher="a|b\n| c |",
        source={"name": "my|file\n.jsonl", "digest": "ab" * 32, "synthetic": False},
        kinds={"x | y": {"rows": 97, "unverifiable": 13}, "": {"rows": 0, "unverifiable": 0}},
    )
    text = datasets.verified_multihop([evil], INFO)
    block: list[int] = []
    for line in text.splitlines():
        if line.startswith("| "):
            block.append(line.replace("\\|", "").count("|"))
        elif block:
            assert len(set(block)) == 1, line
            block = []
    assert "a\\|b \\| c \\|" in text


def test_a_missing_figure_is_an_error() -> None:
    lacking = copy.deepcopy(statistics())
    del lacking["verified"]
    with pytest.raises(KeyError):
        datasets.verified_multihop([lacking], INFO)


def test_a_split_without_rows_is_in_no_config() -> None:
    entry = statistics()
    entry["files"]["safe-verified-multihop"]["musique"] = split_files("train", 0)
    data = DatasetCard(datasets.verified_multihop([entry], INFO)).data.to_dict()
    assert [c["config_name"] for c in data["configs"]] == ["musique_labeled"]


@pytest.mark.parametrize("make", MAKERS)
def test_the_papers_limits_are_repeated(make: Any) -> None:
    limits = make([statistics()], INFO).split("## Limitations")[1].split("##")[0]
    assert "Labels can be wrong" in limits
    assert "only if the generator follows it" in limits


@pytest.mark.parametrize("make", MAKERS)
def test_the_row_that_is_shown_is_one(make: Any) -> None:
    """It has the columns of the config, each of its type."""
    shown = make([statistics()], INFO).split("```json\n")[1].split("```")[0]
    row = json.loads(shown)
    features = (
        config_features(VERIFIED, "b") if make is datasets.verified_multihop else config_features(NOISE_LABELS, "b")
    )
    assert [*row] == [*features]
    encoded = features.encode_example(row)
    assert Dataset.from_list([encoded], features=features)[0].keys() == row.keys()
    if "question_sha256" in row:
        question = json.loads((TEMPLATES / "_example_question.json").read_text())
        assert row["question_sha256"] == question_sha256(question["question"])


@pytest.mark.parametrize("make", MAKERS)
def test_use_people_and_upkeep_are_told(make: Any) -> None:
    text = make([statistics()], INFO)
    for title in ("Intended use", "Personal data", "Maintenance"):
        assert f"## {title}\n" in text
    assert "Out of scope" in text
    assert "some of them living" in text
    source = {"name": "s", "digest": "ab" * 32, "synthetic": True}
    made_up = make([statistics(source=source)], INFO)
    assert "None. Every person in this repo is made up." in made_up
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert "some of them living" not in made_up


@pytest.mark.parametrize("make", MAKERS)
def test_share_alike_is_said_of_the_rows_that_it_binds(make: Any) -> None:
    assert "Share alike" not in make([statistics()], INFO)
    text = make([statistics(), statistics("hotpotqa", license="cc-by-sa-4.0")], INFO)
    assert "**Share alike.** Rows of hotpotqa are under CC BY-SA 4.0" in text
    assert "not edited" not in text
    assert "No word of a question, an answer or a passage was changed." in text


def test_sources_are_attributed() -> None:
    """Licence, home page, citation and changes of each, as CC BY asks for."""
    other = statistics("hotpotqa", license="cc-by-sa-4.0", citation="@misc{other}")
    for make in MAKERS:
        text = make([statistics(), other], INFO)
        assert "| hotpotqa | `cc-by-sa-4.0` | https://example.org/musique |" in text
        assert "@misc{other}" in text
        assert "@article{someone2020," in text
        assert "We changed the sources as follows" in text
