"""Reports of a release: packed, bounded, looked through, and in the repo of the questions."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from releases import report
from releases.publish.checks import check_release
from releases.publish.folder import read_release
from releases.publish.hub import Hub
from releases.publish.push import dry_run
from safe_stepwise.errors import UserError
from scripts import view_traces
from tests.makers.outcomes import outcomes
from tests.releases.conftest import CARD, lock, write
from tests.releases.test_leaderboard import VERIFIED

SECRET = "hf_" + "a" * 34
QUESTION = {"benchmark": "musique", "id": "q0", "question": "Where is Oru?"}


@pytest.fixture
def reported(small: Path) -> Path:
    """The small release with a sample of one question, and reports of the release and of blocks."""
    write(small / VERIFIED / "README.md", CARD.format(""))
    sample = small / VERIFIED / "data" / "musique_eval" / "test-00000-of-00001.parquet"
    sample.parent.mkdir(parents=True)
    row = {"id": "q0", "question": "Where is Oru?", "passages": []}
    pq.write_table(pa.Table.from_pylist([row]), sample)
    for place in ("report", "blocks/sweep/report", "blocks/ablation/no-x/report"):
        write(small / place / "results.json", json.dumps({"settings": {}}))
        write(small / place / "report" / "comparison.md", "# Comparison")
        lines = [one.to_json() for one in outcomes([1.0])]
        write(small / place / "trajectories.jsonl", "".join(f"{line}\n" for line in lines))
        asked = {**QUESTION, "references": ["Marn"], "passages": []}
        write(small / place / "questions.jsonl", f"{json.dumps(asked)}\n")
    write(small / "blocks" / "ablation" / "no-x" / "adapter" / "adapter_config.json", "{}")
    report.pack(small)
    lock(small)
    return small


def checked(root: Path) -> None:
    check_release(read_release(root, "somebody"), None, lambda _: None)


def refused(root: Path) -> str:
    report.pack(root)
    lock(root)
    with pytest.raises(UserError) as caught:
        checked(root)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_reports_go_to_the_repo_of_the_questions_and_lines_go_packed(reported: Path) -> None:
    release = read_release(reported, "somebody")
    (verified,) = [one for one in release.artifacts if one.folder == VERIFIED]
    names = {file.path for file in verified.files}
    packed = {"results.json", "report/comparison.md", "trajectories.jsonl.gz", "questions.jsonl.gz"}
    for place in ("report", "blocks/sweep/report", "blocks/ablation/no-x/report"):
        assert {name for name in names if name.startswith(place)} == {f"{place}/{name}" for name in packed}
    assert "README.md" in names
    left = set(release.left_out)
    assert "report/trajectories.jsonl" in left
    assert "blocks/ablation/no-x/adapter/adapter_config.json" in left
    checked(reported)


def test_a_release_of_before_is_published_as_it_was(reported: Path) -> None:
    for packed in reported.rglob("*.gz"):
        packed.unlink()
    (verified,) = [a for a in read_release(reported, "ns").artifacts if a.folder == VERIFIED]
    assert not [file.path for file in verified.files if "report" in file.path]
    assert read_release(reported, "ns").too_long == ()


def test_packing_is_the_same_bytes_and_is_not_done_twice(reported: Path) -> None:
    file = reported / "report" / "trajectories.jsonl"
    packed = file.with_name(f"{file.name}.gz")
    first, when = packed.read_bytes(), packed.stat().st_mtime_ns
    assert gzip.decompress(first) == file.read_bytes()
    report.pack(reported)
    assert packed.stat().st_mtime_ns == when
    packed.unlink()
    report.pack(reported)
    assert packed.read_bytes() == first
    file.write_text("other\n")
    os.utime(file, ns=(when + 10**9, packed.stat().st_mtime_ns + 10**9))
    report.pack(reported)
    assert gzip.decompress(packed.read_bytes()) == b"other\n"
    file.unlink()
    report.pack(reported)
    assert not packed.exists()  # of an earlier run


def test_what_is_too_long_stays_here_and_is_told(reported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = reported / "blocks" / "sweep" / "report" / "trajectories.jsonl"
    long.write_text("x" * 9999 + "\n")
    monkeypatch.setattr(report, "MAX_PACKED_BYTES", 9999)
    report.pack(reported)
    lock(reported)
    release = read_release(reported, "somebody")
    assert release.too_long == ("blocks/sweep/report/trajectories.jsonl",)

    class Unreachable(Hub):
        def request(self, *_: object, **__: object) -> None:
            raise UserError("the Hub can't be reached")

    said = dry_run(Unreachable(None), release)
    assert "too long to be published (more than 9,999 bytes of lines): blocks/sweep/rep" in said
    checked(reported)


@pytest.mark.parametrize("name", ["trajectories.jsonl", "report/comparison.md", "traces.html"])
def test_a_secret_in_a_report_is_found_packed_or_not(name: str, reported: Path) -> None:
    write(reported / "blocks" / "ablation" / "no-x" / "report" / name, f"key: {SECRET}\n")
    said = refused(reported)
    assert "blocks/ablation/no-x/report/" in said
    assert "holds a Hugging Face token" in said
    assert SECRET not in said


def test_test_questions_may_stand_in_a_report_but_no_others(reported: Path) -> None:
    file = reported / "blocks" / "sweep" / "report" / "questions.jsonl"
    for changed in ({"id": "q1"}, {"question": "Whose secret is it?"}, {"benchmark": "custom"}):
        write(file, json.dumps({**QUESTION, **changed, "references": [], "passages": []}) + "\n")
        assert "a question that is in no evaluation sample of this release" in refused(reported)
    write(file, json.dumps(QUESTION) + "\n")
    report.pack(reported)
    lock(reported)
    checked(reported)


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b'{"id": 3}\n', mtime=0), b"\x1f\x8b\x08"])
def test_a_report_that_cannot_be_read_is_refused(content: bytes, reported: Path) -> None:
    packed = reported / "report" / "questions.jsonl.gz"
    packed.write_bytes(content)
    lock(reported)
    with pytest.raises(
        UserError, match=r"questions\.jsonl\.gz(, line 1: is no question|: cannot be read|: can't be read as gzip)"
    ) as caught:
        checked(reported)
    assert len(str(caught.value).splitlines()) == 1


def test_a_link_in_a_report_is_refused(reported: Path) -> None:
    (reported / "report" / "link.md").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match=r"link\.md: a link; a release is made of plain files"):
        read_release(reported, "somebody")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a\u202egpj.md", b"x", "characters that are not seen"),
        ("a\x1b[8m.md", b"x", "characters that are not seen"),
        ("training_args.bin", b"x", "a pickle"),
        ("notes.md", pickle.dumps([1, 2]), "a pickle"),
        ("state.PT", b"PK\x03\x04", "a pickle"),
    ],
)
def test_files_that_nobody_should_load_are_refused_though_the_lock_names_them(
    name: str, content: bytes, says: str, reported: Path
) -> None:
    (reported / "report" / name).write_bytes(content)
    lock(reported)
    with pytest.raises(UserError, match=says) as caught:
        read_release(reported, "somebody")
    assert str(caught.value).isprintable()


def test_a_script_among_the_files_of_a_dataset_is_refused(reported: Path) -> None:
    dataset = next(path for path in (reported / "datasets").iterdir() if path.is_dir())
    (dataset / f"{dataset.name}.py").write_text("print()")
    lock(reported)
    with pytest.raises(UserError, match=r"\.py: a script among a dataset's files"):
        read_release(reported, "somebody")


def test_the_traces_of_a_published_report_can_be_read(reported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = reported / "report"
    view_traces.main([str(folder)])
    whole = (folder / "traces.html").read_bytes()
    for lines in folder.glob("*.jsonl"):
        lines.unlink()  # as from the Hub
    view_traces.main([str(folder)])
    assert (folder / "traces.html").read_bytes() == whole
    assert "1 trajectories" in capsys.readouterr().out
    packed = folder / "trajectories.jsonl.gz"
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"trajectories\.jsonl\.gz: cannot be read"):
        view_traces.main([str(folder)])
