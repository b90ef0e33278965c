from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from releases.publish.folder import walk
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import LOCK
from scripts import publish, regenerate
from tests.releases.conftest import add_adapter, add_space, lock, write
from tests.scripts.test_manifest import MANIFEST
from tests.servers.hub_server import NAMESPACE, TOKEN, Fault, HubServer

ROOT = Path(__file__).parents[2]
STEPS = "datasets/safe-verifier-steps"
VERIFIED = "datasets/safe-verified-multihop"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `scripts.regenerate` makes, and an adapter and a Space beside it."""
    root = tmp_path_factory.mktemp("made")
    write(root / "small.yaml", MANIFEST.replace("seed: 4", "seed: 6", 1))  # its test split has missing evidence
    regenerate.regenerate(root / "small.yaml", root / "release", workers=1)
    add_adapter(root / "release")
    add_space(root / "release")
    lock(root / "release")
    return root / "release"


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "release"))


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with HubServer() as server:
        yield server


def command(
    root: Path, hub: HubServer, home: Path, *options: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, talking to the local Hub."""
    return subprocess.run(
        [sys.executable, "-m", "scripts.publish", str(root), "--namespace", NAMESPACE, *options],
        env=hub.env(home, token),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,  # if it hangs
    )


def refused(root: Path, *options: str) -> str:
    """Why a release is refused; the checks come before the Hub is asked anything."""
    with pytest.raises(UserError) as caught:
        publish.main([str(root), "--namespace", NAMESPACE, *options])
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


OPEN = f"""
import json
import evaluate
from datasets import get_dataset_config_names, load_dataset
rows = {{}}
for name in ("safe-verified-multihop", "safe-noise-labels", "safe-verifier-steps"):
    repo = "{NAMESPACE}/" + name
    for config in get_dataset_config_names(repo, revision="v0.1.0"):
        splits = load_dataset(repo, config, revision="v0.1.0")
        rows[name + " " + config] = {{split: part.num_rows for split, part in splits.items()}}
metric = evaluate.load("{NAMESPACE}/safe_stepwise", revision="v0.1.0")
print(json.dumps([rows, metric.compute(predictions=["a"], references=["a"])]))
"""


def test_a_killed_push_is_completed_and_the_release_loads_by_its_tag(
    made: Path, hub: HubServer, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    dry = command(made, hub, home, token=None)
    assert dry.returncode == 0, dry.stderr
    assert "datasets/somebody/safe-verifier-steps: to be created" in dry.stdout
    assert "somebody/safe-verifier-Tiny-1B: to be created" in dry.stdout
    assert "stays here: README.md, datasets/refused.jsonl" in dry.stdout
    assert {asked.method for asked in hub.asked} <= {"GET", "HEAD"}
    assert not any(asked.authorized for asked in hub.asked)

    # Killed with the third commit on the Hub and its answer on the way.
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.publish", str(made), "--namespace", NAMESPACE, "--push"],
        env=hub.env(home),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with hub.failing(Fault("commit", 3, "lost", then=process.kill)):
        killed, _ = process.communicate()
    assert process.returncode == -9, killed
    assert not any(repo.tags for repo in hub.store.repos.values())

    pushed = command(made, hub, home, "--push")
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    assert "3 configurations" in pushed.stdout
    assert "evaluate.load gives Stepwise" in pushed.stdout
    assert len(hub.store.repos) == 5
    for repo in hub.store.repos.values():
        assert [c.title for c in repo.history(repo.head)] == ["Release v0.1.0", "initial commit"]
        assert repo.tags == {"v0.1.0": repo.head.oid}

    written = len(hub.written())
    again = command(made, hub, home, "--push")
    assert again.stdout.count("nothing to do") == 5, again.stdout + again.stderr
    assert len(hub.written()) == written

    rows, computed = hub.client(OPEN, home, token=None)
    assert computed == {"five": 5}
    assert sum(rows["safe-verifier-steps steps"].values()) == 60
    assert rows["safe-noise-labels synthetic"] == {"train": 40, "validation": 20}

    said = [dry.stdout, dry.stderr, killed, pushed.stdout, pushed.stderr, again.stdout]
    assert not any(TOKEN in text for text in said)
    files = (path for path in home.rglob("*") if path.is_file())
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


@pytest.fixture
def adapter_alone(tmp_path: Path) -> Path:
    add_adapter(tmp_path / "alone")
    write(tmp_path / "alone" / "adapter" / "more.safetensors", "so that threads upload")
    lock(tmp_path / "alone")
    return tmp_path / "alone"


def test_a_hub_that_hangs_ends_the_command(adapter_alone: Path, hub: HubServer, tmp_path: Path) -> None:
    with hub.failing(Fault("refs", 1, "hang", times=1000)):
        dry = command(adapter_alone, hub, tmp_path, "--timeout", "1", token=None)
    assert dry.returncode == 0, dry.stderr
    assert "not compared with the Hub: " in dry.stdout
    assert "no answer within 1 s; see --timeout" in dry.stdout
    assert len(hub.asked) == 1
    # Threads of an upload that Python would wait for at its end.
    with hub.failing(Fault("lfs-put", 1, "hang", times=1000)):
        push = command(adapter_alone, hub, tmp_path, "--push", "--timeout", "2")
    assert push.returncode == 2
    assert push.stderr.strip().splitlines()[-1].startswith("error: somebody/safe-verifier-Tiny-1B:")
    assert push.stderr.count("error: ") == 1
    with hub.failing(Fault("resolve", 1, "hang", times=1000)):
        back = command(adapter_alone, hub, tmp_path, "--push", "--timeout", "2")
    assert back.returncode == 2
    assert "it got no tag: not done within 4 s (see --timeout)" in back.stderr


def test_what_does_not_load_back_gets_no_tag(release: Path, hub: HubServer, tmp_path: Path) -> None:
    for folder in (*(release / "datasets").iterdir(), release / "adapter"):
        shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
    write(release / "space" / "safe_stepwise.py", "import nothing_of_that_name\n")
    lock(release)
    ran = command(release, hub, tmp_path, "--push")
    assert ran.returncode == 2
    assert "does not load back, so it got no tag" in ran.stderr
    assert not hub.repo("space", f"{NAMESPACE}/safe_stepwise").tags


@pytest.fixture
def at_hub(hub: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> HubServer:
    """The local Hub, for calls in this process that download nothing."""
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-login"))
    monkeypatch.setenv("HF_TOKEN", "")
    return hub


def test_a_wrong_or_missing_token_is_one_line(made: Path, at_hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "set HF_TOKEN or run `hf auth login`" in refused(made, "--push")
    wrong = "hf_" + "x" * 34
    monkeypatch.setenv("HF_TOKEN", wrong)
    said = refused(made, "--push")
    assert "the Hub takes no such token" in said
    assert wrong not in said
    assert not at_hub.written()


def test_a_card_that_the_hub_refuses_is_not_pushed(
    release: Path, at_hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    write(release / "adapter" / "README.md", "---\nlicense: 3\n---\n\nWords\n")
    lock(release)
    assert "does not pass the Hub's check" in refused(release, "--push")
    assert not at_hub.written()


def test_without_a_network_the_dry_run_says_what_is_there(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    publish.main([str(made), "--namespace", NAMESPACE])
    said = capsys.readouterr().out
    assert "not compared with the Hub: " in said
    assert "data/preference/train-00000-of-00001.parquet" in said


def edit(file: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the rows of a Parquet file."""
    table = pq.read_table(file)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(type(table).from_pylist(rows, table.schema), file)


def split(root: Path, config: str, name: str, dataset: str = STEPS) -> Path:
    (file,) = (root / dataset / "data" / config).glob(f"{name}-*.parquet")
    return file


def spoil_guidance(rows: list[dict[str, Any]]) -> None:
    rows[3]["guidance"] += " hf_" + "a1B2" * 9


def test_rows_of_an_ablation_are_refused(release: Path) -> None:
    file = release / STEPS / "statistics" / "verifier_steps.json"
    write(file, json.dumps({**json.loads(file.read_text()), "unverifiable": True}))
    lock(release)
    assert "made with --unverifiable" in refused(release)


def test_secrets_are_refused_wherever_they_stand(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(split(release, "steps", "train"), spoil_guidance)
    lock(release)
    said = refused(release)
    assert f"{STEPS}/data/steps/train-00000-of-00001.parquet: holds a Hugging Face token" in said
    assert "a1B2" not in said
    shutil.rmtree(release / "datasets")
    write(release / "space" / "app.py", f'KEY = "sk-{"proj-" + "a1b2" * 10}"\n')
    lock(release)
    assert "space/app.py: holds an OpenAI or Anthropic key" in refused(release)
    write(release / "space" / "app.py", 'KEY = "my own long password"\n')
    lock(release)
    monkeypatch.setenv("HF_TOKEN", "my own long password")
    assert "space/app.py: holds the value of the Hub's token" in refused(release)


def test_test_questions_in_train_are_refused(release: Path, made: Path) -> None:
    def leak(config: str, source: Path, dataset: str = STEPS) -> str:
        extra = pq.read_table(source).to_pylist()[0]
        file = split(release, config, "train", dataset)
        before = file.read_bytes()
        edit(file, lambda rows: rows.append(extra))
        lock(release)
        said = refused(release)
        file.write_bytes(before)
        return said

    assert "a test question is in train" in leak("steps", split(made, "steps", "test"))
    missing = split(made, "missing_evidence", "test")
    assert "a test question is in train" in leak("missing_evidence", missing)
    twins = split(made, "missing_evidence_twins", "test")
    assert "a test question is in train" in leak("missing_evidence_twins", twins)
    for config in ("prompt_completion", "missing_evidence_prompt_completion"):
        assert "a test row is in train" in leak(config, split(made, config, "test"))
    sample = split(made, "synthetic_eval", "test", VERIFIED)
    said = leak("synthetic", sample, VERIFIED)
    assert "a question of synthetic_eval is in train" in said

    def renamed(rows: list[dict[str, Any]]) -> None:
        (asked,) = pq.read_table(sample).slice(0, 1).to_pylist()
        rows[0] |= {"question": asked["question"].upper()}

    edit(split(release, "steps", "train"), renamed)
    lock(release)
    assert "a question of synthetic_eval is in train" in refused(release)


def test_files_must_be_as_locked(release: Path) -> None:
    file = split(release, "steps", "train")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"x")
    assert f"{file}: differs, says {LOCK}" in refused(release)
    file.unlink()
    assert f"{file}: is missing, says {LOCK}" in refused(release)
    file.write_bytes(whole)
    write(release / "space" / "extra.py", "")
    assert f"extra.py: is not part of the release, says {LOCK}" in refused(release)


def test_what_is_no_release_folder_is_refused(release: Path) -> None:
    assert "so it is no finished release" in refused(release / "release.lock.json")
    (release / "release.lock.json").unlink()
    (release / "release.lock.json").mkdir()
    assert "so it is no finished release" in refused(release)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "missing; a repo is not published without its card"),
        ("# Words\n", "a card needs metadata"),
        ("---\nlicense: mit\n---\n", "a card needs metadata (---) and words"),
        ("---\nlicense: [mit\n---\nWords\n", "its metadata is no YAML"),
        ("---\nlicense: mit\n---\nWords\n", "a Space needs its sdk"),
    ],
)
def test_cards_must_be_sound(text: str | None, why: str, release: Path) -> None:
    card = release / "space" / "README.md"
    card.unlink() if text is None else write(card, text)
    lock(release)
    assert why in refused(release)


def test_what_is_no_release_is_refused(release: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no user or organization"):
        publish.main([str(release), "--namespace", "a/b"])
    lock(release, "1.0")
    assert "vMAJOR.MINOR.PATCH" in refused(release)
    write(release / LOCK, "{}")
    assert "not a lock that safe-stepwise regenerate wrote" in refused(release)
    (release / LOCK).unlink()
    assert "no finished release" in refused(release)
    write(tmp_path / "bare" / "notes.txt", "")
    lock(tmp_path / "bare")
    assert "holds no dataset, adapter or Space" in refused(tmp_path / "bare")
    (release / "space" / "link").symlink_to("/etc/hostname")
    lock(release)
    assert "a link" in refused(release)


def test_a_release_of_ours_has_the_lock_that_publishing_reads(made: Path) -> None:
    files = json.loads((made / LOCK).read_text())["files"]
    assert set(files) == {path for path in walk(made) if path != LOCK}
