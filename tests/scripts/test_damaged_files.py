"""Every file that a command reads, damaged in every way of `tests.makers.damage`.

The command works, or ends in one printable line that names the file; it never raises anything
else, and its memory stays small.
"""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from builders.steps.refined import line_of, read_refined
from builders.steps.rows import StepRow
from builders.synthetic import generate, parse_spec, to_row
from builders.verified import build as building
from cards.datasets import AuditScores, noise_labels
from evaluators.audit.report import read_scores
from safe_stepwise.errors import UserError
from safe_stepwise.records import Feedback, Step
from safe_stepwise.store.parquet import parquet_files
from safe_stepwise.store.terminal import printable
from scripts import (
    audit_labels,
    build_verified,
    build_verifier_steps,
    calibrate_faithfulness,
    compare_labels,
    evaluate_stepwise,
    evaluate_verifier,
    join_results,
    measure_checker,
    view_traces,
)
from tests import sizes
from tests.cards.test_cards import INFO, statistics
from tests.evaluators.audit.made import exported, said
from tests.makers.damage import BYTES, TEXT, Damage, lines

SOME = dict([*TEXT.items()][::5])
"""For commands that take their time."""
QUICK = 3
"""Damages of a file that the quick suite tries."""
MOST = 300 * 2**20
"""Bytes that a damaged file of a few kilobytes may cost."""
Main = Callable[[Sequence[str]], object]
HOTPOT: dict[str, Any] = {
    "_id": "h1",
    "question": "In which country is the town that the Vel crosses?",
    "answer": "Marn",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Vel", 1], ["Oru", 1]],
    "context": [
        ["Vel", ["The Vel is a river.", " It crosses Oru."]],
        ["Oru", ["Oru is a town.", " It lies in Marn."]],
    ],
}
WIKI = {
    **{name: value for name, value in HOTPOT.items() if name != "level"},
    "_id": "w1",
    "type": "compositional",
    "evidences": [["Vel", "crosses", "Oru"], ["Oru", "country", "Marn"]],
}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Which country has the town that the Vel crosses?",
    "answer": "Marn",
    "answer_aliases": ["Marnland"],
    "answerable": True,
    "question_decomposition": [
        {"id": 1, "question": "Vel >> crosses", "answer": "Oru", "paragraph_support_idx": 0},
        {"id": 2, "question": "#1 >> country", "answer": "Marn", "paragraph_support_idx": 1},
    ],
    "paragraphs": [
        {"idx": n, "title": title, "paragraph_text": " ".join(text), "is_supporting": True}
        for n, (title, text) in enumerate(HOTPOT["context"])
    ],
}
MADE = [to_row(*one) for one in generate(parse_spec("rows=3,seed=5,noise=0.3"), split="train")]
ROWS = {
    "hotpotqa": [HOTPOT, {**HOTPOT, "_id": "h2"}],
    "2wikimultihopqa": [WIKI, {**WIKI, "_id": "w2"}],
    "musique": [MUSIQUE, {**MUSIQUE, "id": "2hop__1_3"}],
    "synthetic": MADE,
}
NESTED = ("context", "supporting_facts", "evidences")
OWN = [
    {
        "id": f"q{n}",
        "question": "Where is Oru?",
        "answer": "Marn",
        "passages": [{"title": "Oru", "text": "Oru is in Marn.", "is_gold": True}],
    }
    for n in range(2)
]


def outcome(main: Main, options: Sequence[str], names: Sequence[str]) -> str:
    """What a command says of an input: nothing, or its one line, in which a name has to stand."""
    try:
        main(options)
    except UserError as error:
        said = printable(str(error))
        assert any(name in said for name in names), said
        return said
    return ""


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def damaged(file: Path, damages: dict[str, Damage], try_it: Callable[[], str]) -> dict[str, str]:
    """What is said of each damage to a file; the file is as it was in the end."""
    whole, before, said = file.read_bytes(), peak(), {}
    assert try_it() == ""
    faults = []
    for name, damage in sizes.sample({**damages, "folder": None}.items(), QUICK, seed=file.name):
        file.unlink()
        if damage is None:
            file.mkdir()
        else:
            file.write_bytes(damage(whole))
        try:
            said[name] = try_it()
        except Exception as error:
            error.add_note(f"{file.name}: {name}")
            faults.append(error)
        if file.is_dir():
            file.rmdir()
        file.write_bytes(whole)
    assert peak() - before < MOST
    if faults:
        raise ExceptionGroup(f"{len(faults)} of {len(damages)} damages", faults)
    return said


def arguments(**options: object) -> list[str]:
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("form", ["jsonl", "json", "parquet"])
@pytest.mark.parametrize("benchmark", ROWS)
def test_rows_of_a_benchmark(benchmark: str, form: str, tmp_path: Path) -> None:
    file, output = tmp_path / f"rows.{form}", tmp_path / "out"
    if form == "parquet":
        rows = [  # lists of lists of several types, which Parquet lacks, travel as JSON
            {n: json.dumps(v) if n in NESTED else v for n, v in row.items()} for row in ROWS[benchmark]
        ]
        pq.write_table(pa.Table.from_pylist(rows), file)
    else:
        content = lines(ROWS[benchmark])
        file.write_bytes(content if form == "jsonl" else json.dumps(ROWS[benchmark]).encode())
    options = arguments(
        benchmark=benchmark,
        input=file,
        split="train",
        teacher="annotations",
        output=output,
        workers=1,
        on_error="keep",
    )

    def try_it() -> str:
        shutil.rmtree(output, ignore_errors=True)
        said = outcome(build_verified.main, options, [file.name])
        if not said:
            accounted(output)
        return said

    damages = BYTES if form == "parquet" else TEXT if benchmark == "musique" else SOME
    said = damaged(file, damages, try_it)
    assert sum(map(bool, said.values())) >= sizes.size(3, 1)  # the others cost a row alone


def accounted(output: Path) -> None:
    """Whatever was rejected stands in ``rejects.jsonl``."""
    (record,) = (output / "safe-verified-multihop" / "statistics").glob("*.json")
    rejects = output / "rejects.jsonl"
    listed = rejects.read_bytes().count(b"\n") if rejects.exists() else 0
    assert json.loads(record.read_bytes())["rejected"] == listed


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A verified set with a sample, a verifier set, an evaluation with its journal."""
    folder = tmp_path_factory.mktemp("built")
    for split in ("train", "validation"):
        build_verified.main(
            arguments(
                benchmark="synthetic",
                input="rows=40,seed=3,noise=0.1",
                split=split,
                teacher="annotations",
                output=folder,
                workers=1,
            )
        )
    build_verifier_steps.main(
        arguments(verified=folder, teacher="annotations", rows=60, test_share=0.5, workers=1, output=folder)
    )
    evaluate(folder / "safe-verified-multihop", folder / "results", "")
    return folder


def evaluate(questions: Path, output: Path, name: str, *more: str) -> str:
    options = arguments(
        questions=questions,
        output=output,
        method="safe",
        generator="symbolic",
        verifier="symbolic",
        limit=2,
        cache=output.parent / "replies.sqlite",
    )
    return outcome(evaluate_stepwise.main, [*options, *more], [name])


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_questions_of_ones_own(kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"own.{kind}"
    file.write_bytes(lines(OWN) if kind == "jsonl" else json.dumps(OWN).encode())
    script = tmp_path / "mock.json"
    script.write_text('{"replies": [], "default": "Step 1: ####ANSWER: Marn (Final Answer)"}')
    options = arguments(
        questions=file,
        output=tmp_path / "out",
        method="no_verification",
        generator=f"mock:{script}",
        cache=tmp_path / "replies.sqlite",
    )
    damaged(file, SOME, lambda: outcome(evaluate_stepwise.main, options, [file.name]))


FOLDERS = ("safe-verified-multihop", "safe-verifier-steps", "safe-noise-labels")


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", [".trajectories.jsonl", "results.json"])
def test_what_an_evaluation_goes_on_from(name: str, built: Path, tmp_path: Path) -> None:
    output = tmp_path / "results"
    shutil.copytree(built / "results", output)
    before = (output / "trajectories.jsonl").read_bytes()

    def try_it() -> str:
        said = evaluate(built / "safe-verified-multihop", output, name)
        if not said:
            assert (output / "trajectories.jsonl").read_bytes() == before
        return said

    damaged(output / name, SOME, try_it)


@pytest.mark.parametrize("name", ["trajectories.jsonl", "questions.jsonl", "results.json"])
def test_what_the_page_of_traces_shows(name: str, built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(built / "results", folder)
    damaged(folder / name, TEXT, lambda: outcome(view_traces.main, [str(folder)], [name]))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("name", ["trajectories.jsonl", "questions.jsonl", "results.json"])
def test_what_evaluations_are_joined_from(name: str, built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(built / "results", folder)
    options = [str(folder), f"--output={tmp_path / 'joined'}"]
    damaged(folder / name, TEXT, lambda: outcome(join_results.main, options, [name, str(folder)]))


def test_what_people_judged(tmp_path: Path) -> None:
    judged = [said(f"q{n}", who, label="right") for n in range(2) for who in ("ann", "bob")]
    file, output = exported(tmp_path / "ann.jsonl", judged), tmp_path / "scores.json"
    options = ["score", str(file), "--output", str(output)]
    damaged(file, TEXT, lambda: outcome(audit_labels.main, options, [file.name]))
    audit_labels.main(options)

    def told() -> str:
        def card(_: Sequence[str]) -> None:
            found = AuditScores(output.name, "", read_scores(output, "labels"))
            assert noise_labels([statistics()], INFO, audit=found)

        return outcome(card, [], [output.name])

    damaged(output, TEXT, told)


def test_a_corpus(built: Path, tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_bytes(lines([{"title": f"T{n}", "text": f"Thing {n} is old."} for n in range(9)]))
    questions = built / "safe-verified-multihop"
    damaged(file, SOME, lambda: evaluate(questions, tmp_path / "out", file.name, f"--corpus={file}"))


@pytest.mark.parametrize("kind", ["published", "derivations"])
def test_labels_to_compare_with(kind: str, built: Path, tmp_path: Path) -> None:
    if kind == "published":
        file = tmp_path / "published.jsonl"
        file.write_bytes(
            lines([to_row(*one) for one in generate(parse_spec("rows=40,seed=3,noise=0.1"), split="train")])
        )
        options = arguments(verified=built, published=file)
        names = [file.name, "published labels"]
        damaged(file, TEXT, lambda: outcome(compare_labels.main, options, names))
        return
    questions = tmp_path / "hotpotqa_train.jsonl"
    questions.write_bytes(lines([HOTPOT]))
    file = tmp_path / "r4c_derivations.jsonl"
    told = [["Vel", 1, ["Vel", "crosses", "Oru"]], ["Oru", 1, ["Oru", "in", "Marn"]]]
    file.write_bytes(lines([{"id": "h1", "derivations": [told]}]))
    options = arguments(questions=questions, benchmark="hotpotqa", derivations=file, output=tmp_path / "out")
    names = [file.name, "--derivations"]
    damaged(file, TEXT, lambda: outcome(calibrate_faithfulness.main, options, names))


def step_files(folder: Path, what: str) -> list[Path]:
    return sorted((folder / what).rglob("*.parquet"))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("config", ["synthetic", "synthetic_labeled", "synthetic_eval"])
def test_the_parquet_files_of_a_verified_set(config: str, built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "safe-verified-multihop"
    shutil.copytree(built / copy.name, copy)
    (file, *_) = sorted((copy / "data" / config).glob("*.parquet"))
    steps = arguments(verified=copy, teacher="annotations", rows=20, output=tmp_path / "out", workers=1, pool=10)

    def try_it() -> str:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        said = [outcome(build_verifier_steps.main, steps, [file.name])]
        if config == "synthetic_labeled":
            said.append(outcome(measure_checker.main, arguments(verified=copy), [file.name]))
        else:
            split = "train" if config == "synthetic" else "test"
            said.append(evaluate(copy, tmp_path / "results", file.name, f"--split={split}"))
        return "".join(said)

    damaged(file, BYTES, try_it)


def test_the_parquet_files_of_a_verifier_set(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "safe-verifier-steps"
    shutil.copytree(built / copy.name, copy)
    options = arguments(
        steps=copy,
        verifier="symbolic",
        verified=built,
        limit=9,
        output=tmp_path / "out",
        cache=tmp_path / "replies.sqlite",
    )
    for file in sorted((copy / "data" / "steps").glob("*.parquet")):
        # Text that changed unnoticed differs from the questions in the other folder.
        names = [file.name, copy.name, f"{built}: its question"]
        damaged(file, BYTES, lambda n=names: outcome(evaluate_verifier.main, options, n))
    (record,) = (copy / "statistics").glob("*.json")
    damaged(record, SOME, lambda: outcome(evaluate_verifier.main, options, [record.name]))


@pytest.mark.parametrize("file", ["statistics/synthetic-train.json", "rejects.jsonl"])
def test_what_a_build_finds_in_its_output(file: str, built: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    shutil.copytree(built / FOLDERS[0], output / FOLDERS[0])
    shutil.copytree(built / FOLDERS[2], output / FOLDERS[2])
    source = tmp_path / "rows.jsonl"
    source.write_bytes(lines([*MADE, {}]))
    options = arguments(
        benchmark="synthetic",
        input=source,
        split="validation",
        teacher="annotations",
        output=output,
        workers=1,
        on_error="keep",
    )
    build_verified.main(options)
    if file == "rejects.jsonl":
        there = output / file
        there.write_bytes(there.read_bytes().replace(b"validation", b"train"))
    else:
        there = output / FOLDERS[0] / file
    damaged(there, SOME, lambda: outcome(build_verified.main, options, [there.name]))


def test_the_statistics_of_questions_for_steps(built: Path, tmp_path: Path) -> None:
    copy = tmp_path / "safe-verified-multihop"
    shutil.copytree(built / copy.name, copy)
    steps = arguments(verified=copy, teacher="annotations", rows=20, output=tmp_path / "out", workers=1, pool=3)
    damaged(
        copy / "statistics" / "synthetic-train.json",
        SOME,
        lambda: outcome(build_verifier_steps.main, steps, [copy.name]),
    )


def test_a_damaged_shard_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "out"
    options = arguments(
        benchmark="synthetic",
        input="rows=9,seed=1,noise=0.3",
        split="train",
        teacher="annotations",
        output=output,
        workers=1,
    )
    with monkeypatch.context() as kept:
        kept.setattr(building.publishing, "remove_work", lambda work: None)
        build_verified.main(options)
        files = parquet_files(output / FOLDERS[0], "*")
        before = [file.read_bytes() for file in files]
        (shard,) = (output / ".work").rglob("*.arrow")

        def try_it() -> str:
            build_verified.main(options)
            assert [file.read_bytes() for file in files] == before
            return ""

        for name, damage in sizes.sample(BYTES.items(), QUICK):
            whole = shard.read_bytes()
            shard.write_bytes(damage(whole))
            try_it()
            assert shard.read_bytes() == whole, name


def test_refined_rows(tmp_path: Path) -> None:
    file = tmp_path / "refined.jsonl"
    (question, _), *_ = generate(parse_spec("rows=3,seed=5,noise=0.3"), split="train")
    step, said = Step(1, "Oru is a town.", "Attribution"), Feedback("Redundancy", "So.", "On.")
    rows = [StepRow(question, (), step, said, "refined", teacher) for teacher in "ab"]
    file.write_text("".join(map(line_of, rows)), encoding="utf-8")
    said_of = damaged(file, TEXT, lambda: outcome(lambda _: read_refined(file), [], [file.name]))
    assert sum(map(bool, said_of.values())) > sizes.size(len(TEXT) // 2, 1)
