"""The overview of a release: counts of its lock, what is there and what is not."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from cards.models import model_card
from cards.releases import render_release_folder
from tests.cards.records import changed, config, loop_results, training
from tests.cards.test_adapter import EVIL
from tests.cards.test_cards import statistics
from tests.cards.test_verifier_steps import statistics as steps_statistics

LICENSES = {"adapter": "apache-2.0", "space": "mit"}


def lock(**changes: Any) -> dict[str, Any]:
    counted = {
        "rows": 100,
        "verified": 81,
        "unverifiable": {"missing_evidence": 9, "wrong_answer": 4},
        "unparsed": 3,
        "rejected": 7,
    }
    made: dict[str, Any] = {
        "manifest": {"name": "demo.yaml", "sha256": "ab" * 32},
        "version": "v0.3.0",
        "code_sha256": "cd" * 32,
        "libraries": {"python": "3.11.7", "datasets": "5.2.0"},
        "counts": {
            "musique-train": counted,
            "hotpotqa-validation": {**counted, "rows": 211},
            "verifier-steps": {key: steps_statistics()[key] for key in ("rows", "questions", "splits", "origins")},
        },
        "files": {},
    }
    return changed(made, changes)


BUILDS = [statistics(), statistics("hotpotqa", "validation", license="cc-by-sa-4.0", citation="@misc{other}")]


def write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def overview(**options: Any) -> str:
    """Render a release folder that has the records; one that is None is not there."""
    made = {
        "lock": lock(),
        "statistics": BUILDS,
        "steps": steps_statistics(),
        "training": training(),
        "licenses": LICENSES,
        "results": loop_results(),
        **options,
    }
    files = {
        "datasets/safe-verifier-steps/statistics/verifier_steps.json": made["steps"],
        "adapter/training.json": made["training"],
        "report/results.json": made["results"],
        **{f"{name}/README.md": f"---\nlicense: {id_}\n---\n# x" for name, id_ in made["licenses"].items()},
        **{
            f"datasets/safe-verified-multihop/statistics/{number}.json": build
            for number, build in enumerate(made["statistics"])
        },
    }
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            if content is not None:
                write(Path(folder, name), content)
        return render_release_folder(Path(folder), made["lock"])


def test_all_five_artifacts_are_named_with_their_licences() -> None:
    text = overview()
    for title, folder, repo, licenses in (
        ("verified benchmarks", "datasets/safe-verified-multihop", "dataset", "cc-by-4.0, cc-by-sa"),
        ("noise labels", "datasets/safe-noise-labels", "dataset", "cc-by-4.0, cc-by-sa-4.0"),
        ("step-level verifier set", "datasets/safe-verifier-steps", "dataset", "cc-by-4.0 |"),
        ("verifier adapter", "adapter", "model `safe-verifier-Qwen3-8B`", "apache-2.0"),
        ("stepwise metric", "space", "space `safe_stepwise`", "mit"),
    ):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {title} |")]
        assert f"[`{folder}/`]({folder})" in line
        assert repo in line
        assert licenses in line
    assert "Not in this release" not in text
    assert "| hotpotqa | `cc-by-sa-4.0` |" in text
    assert "@misc{other}" in text
    assert "@article{someone2020," in text


def test_every_figure_is_the_locks() -> None:
    text = overview()
    assert "| musique | train | 100 | 81 | 13 | 0 | 3 | 7 | annotations |" in text
    assert "| hotpotqa | validation | 211 | 81 | 13 | 0 | 3 | 7 | annotations |" in text
    assert "331 rows of 77 questions" in text
    assert "| test | 31 | 7 | 10 | 21 | 0 |" in text
    assert "on 541 rows in 17 steps (3,749.4 s on 2 × NVIDIA H200)" in text
    assert "python 3.11.7" in text
    assert "demo.yaml" in text
    assert "ab" * 32 in text
    assert "imulated" not in text
    assert "ynthetic" not in text
    assert "\n\n\n" not in text


def test_the_evaluation_is_told_setting_by_setting() -> None:
    text = overview()
    assert "musique: 75 questions, hotpotqa: 81 questions." in text
    assert (
        "| openai:m | - | no_verification | max_retries=3, max_steps=10 | 0.610 / 0.702 / - | "
        "0.610 / 0.733 / - | 0.612 / 0.718 / - |" in text
    )
    assert "vllm:Qwen/Qwen3-8B+ns/adapter@v0.3.0 | safe |" in text
    assert "(`-`: no judge)" in text
    assert "by the judge openai:j" in overview(results=loop_results(**{"settings.judge": "openai:j"}))
    assert "## Evaluation" not in overview(results=None)


def test_what_is_not_there_is_said() -> None:
    text = overview(steps=None, training=None, licenses={}, results=None)
    assert "Not in this release: `datasets/safe-verifier-steps/`, `adapter/`, `space/`." in text
    assert "PeftModel" not in text
    assert "evaluate.load" not in text
    assert "verifier set has" not in text


def test_snippets_are_python_and_name_every_config() -> None:
    text = overview()
    snippets = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(snippets) == 3
    for snippet in snippets:
        ast.parse(snippet)
    for name in ("musique", "musique_labeled", "hotpotqa_eval", "steps", "prompt_completion"):
        assert f'"{name}")' in snippets[0]
    assert 'PeftModel.from_pretrained(base, "adapter")' in snippets[1]


@pytest.mark.parametrize(
    "options",
    [
        {"statistics": [statistics(simulated=True), BUILDS[1]]},
        {"steps": steps_statistics(simulated=True)},
        {"results": loop_results(**{"runs.0.simulated": True})},
    ],
)
def test_simulated_parts_are_marked(options: dict[str, Any]) -> None:
    text = overview(**options)
    assert "> **Simulated.**" in text
    assert text.count("(simulated)") == 1


def test_synthetic_only() -> None:
    source = {"name": "rows=9", "digest": "ab" * 32, "synthetic": True}
    assert "**Synthetic data.**" in overview(statistics=[statistics(source=source)])


def test_a_figure_that_is_gone_is_an_error() -> None:
    for way in (
        ("lock", "counts", "musique-train"),
        ("lock", "counts", "musique-train", "verified"),
        ("lock", "counts", "verifier-steps", "splits"),
        ("lock", "counts", "verifier-steps", "origins", "test", "ideal"),
        ("lock", "manifest", "sha256"),
        ("lock", "code_sha256"),
        ("training", "run", "seconds"),
        ("training", "dataset", "rows"),
        ("licenses", "adapter"),
        ("results", "settings", "judge"),
        ("results", "runs"),
    ):
        given: dict[str, Any] = {
            "lock": lock(),
            "training": training(),
            "licenses": dict(LICENSES),
            "results": loop_results(),
        }
        at: Any = given
        for name in way[:-1]:
            at = at[name]
        del at[way[-1]]
        with pytest.raises(KeyError):
            overview(**given)


def test_names_can_break_nothing() -> None:
    made = lock(**{"manifest.name": EVIL, "libraries.python": EVIL})
    build = statistics(teacher=EVIL, source={"name": EVIL, "digest": EVIL, "synthetic": False})
    text = overview(
        lock=made,
        statistics=[build],
        training=training(**{"base_model.name": EVIL, "run.device": EVIL}),
        results=loop_results(**{"runs.0.players.generator": EVIL, "settings.judge": EVIL}),
    )
    heads = [line for line in text.splitlines() if re.match("#|```|---", line)]
    plain = overview(statistics=BUILDS[:1]).splitlines()
    assert heads == [line for line in plain if re.match("#|```|---", line)]
    assert "<script" not in text
    assert "\x1b" not in text
    for snippet in re.findall(r"```python\n(.*?)```", text, re.S):
        ast.parse(snippet)


def test_a_folder_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    for build in BUILDS:
        name = f"{build['benchmark']}-{build['split']}.json"
        write(tmp_path / "datasets/safe-verified-multihop/statistics" / name, build)
    read = render_release_folder(tmp_path, lock())
    assert "Not in this release: `datasets/safe-verifier-steps/`, `adapter/`, `space/`." in read
    write(tmp_path / "datasets/safe-verifier-steps/statistics/verifier_steps.json", steps_statistics())
    write(tmp_path / "adapter/training.json", training())
    write(tmp_path / "adapter/README.md", model_card(training(), None, config=config(), version="v0.3.0"))
    write(tmp_path / "space/README.md", "---\ntitle: x\nsdk: gradio\nlicense: mit\n---\n# x")
    write(tmp_path / "report/results.json", loop_results())
    ordered = sorted(BUILDS, key=lambda build: str(build["benchmark"]))
    whole = overview(statistics=ordered, licenses={**LICENSES, "adapter": "other"})
    assert render_release_folder(tmp_path, lock()) == whole
