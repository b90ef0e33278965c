"""A corpus of a benchmark's own passages: what is in it, and what a search in it is worth."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.corpus import passages
from builders.synthetic import generate, parse_spec, to_row
from builders.verified.evaluation_questions import read
from safe_stepwise.errors import UserError
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.records import Question
from safe_stepwise.scoring import exact_match
from safe_stepwise.store import progress as bars
from scripts import build_corpus, evaluate_stepwise, join_results
from tests import sizes

SPEC = "rows=30,seed=4,noise=0.2"


def built(output: Path, *more: str, **options: str) -> list[dict[str, Any]]:
    """The corpus of one source, the synthetic one if none is named."""
    said = {"benchmark": "synthetic", "input": SPEC, "split": "train", **options}
    build_corpus.main(
        [
            *(f"--{name}={value}" for name, value in said.items()),
            f"--output={output}", *more,
        ]
    )  # fmt: skip
    return lines(output)


def lines(output: Path) -> list[dict[str, Any]]:
    raw = output.read_bytes()
    text = gzip.decompress(raw) if output.suffix == ".gz" else raw
    return [json.loads(line) for line in text.splitlines()]


def record(output: Path) -> dict[str, Any]:
    name = output.name.removesuffix(".gz").removesuffix(".jsonl")
    found: dict[str, Any] = json.loads(output.with_name(f"{name}.statistics.json").read_text())
    return found


def synthetic(split: str = "train", spec: str = SPEC) -> list[Question]:
    return [question for question, _ in generate(parse_spec(spec), split=split)]


def pages(questions: Sequence[Question]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((p.title, p.text) for q in questions for p in q.passages))


def test_it_has_each_passage_once_where_it_first_occurs(tmp_path: Path) -> None:
    found = built(tmp_path / "corpus.jsonl")
    every = [p for q in synthetic() for p in q.passages]
    assert len(found) == len(pages(synthetic())) < len(every)
    assert [line["title"] for line in found] == [title for title, _ in pages(synthetic())]
    first = every[0]
    assert found[0] == {"title": first.title, "sentences": list(first.sentences)}
    made = record(tmp_path / "corpus.jsonl")
    assert made["passages"] == len(found)
    (source,) = made["sources"]
    assert (source["rows"], source["new"], source["rejected"]) == (30, len(found), 0)


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_same_rows_same_bytes_and_a_search_reads_them(tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    built(output)
    first = output.read_bytes()
    built(output)
    assert output.read_bytes() == first
    corpus = Corpus.open(output, tmp_path / "corpora")
    assert corpus.sha256 == record(output)["sha256"]
    assert [(p.title, p.text) for p in corpus.passages] == pages(synthetic())
    assert not list(tmp_path.glob(".*"))


def test_inputs_join_in_their_order(tmp_path: Path) -> None:
    rows = [to_row(q, "none") for q in synthetic("validation", "rows=20,seed=9")]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    output = tmp_path / "corpus.jsonl"
    found = built(output, f"--input={file}", f"--input={SPEC}", "--split=dev", "--split=train")
    both = [*synthetic(), *synthetic("validation", "rows=20,seed=9")]
    assert [line["title"] for line in found] == [title for title, _ in pages(both)]
    made = record(output)
    assert [s["split"] for s in made["sources"]] == ["train", "validation", "train"]
    assert [s["new"] > 0 for s in made["sources"]] == [True, True, False]
    assert [s["source"]["name"] for s in made["sources"]] == [SPEC, "rows.jsonl", SPEC]


def test_rows_that_cannot_be_read_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = to_row(synthetic()[0], "none")
    file = tmp_path / "rows.jsonl"
    bad = {**row, "id": "bad", "question": 7}
    file.write_text(f"{json.dumps(bad)}\n{{\n{json.dumps(row)}\n", encoding="utf-8")
    output = tmp_path / "corpus.jsonl"
    assert len(built(output, input=str(file))) == len(pages(synthetic()[:1]))
    (source,) = record(output)["sources"]
    assert (source["rows"], source["rejected"]) == (3, 2)
    assert "left out: rows of rows.jsonl that can't be read, the first: rows.jsonl:1" in (capsys.readouterr().out)
    file.write_text('{"id": 1}\n{"id"\n', encoding="utf-8")
    before = output.read_bytes()
    with pytest.raises(UserError, match=r"none of its 2 rows could be read as synthetic; the fir"):
        built(output, input=str(file))
    assert output.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"benchmark": "music"}, "--benchmark 'music'"),
        ({"split": "training"}, "no split 'training'"),
        ({"input": "none.jsonl", "benchmark": "musique"}, "none.jsonl: no such file"),
        ({"output": "corpus.txt"}, "name it .jsonl or .jsonl.gz"),
        ({"input": "rows=0"}, "'0' is not a whole number from 1"),
        ({"limit": "0"}, "from 1 on"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, options: dict[str, str], message: str) -> None:
    said = {"output": "corpus.jsonl", **options}
    output = tmp_path / said.pop("output")
    with pytest.raises(UserError, match=message) as caught:
        built(output, **said)
    assert "\n" not in str(caught.value)
    assert not output.exists()
    with pytest.raises(UserError, match="--split is given 2 times, --input 3 times"):
        built(output, "--input=x", "--input=y", "--split=train")


def test_an_input_is_not_written_over(tmp_path: Path) -> None:
    rows = own_rows(tmp_path)
    before = rows.read_bytes()
    with pytest.raises(UserError, match="is one of the inputs"):
        built(tmp_path / "x" / ".." / "rows.jsonl", input=str(rows))
    assert rows.read_bytes() == before


def test_a_run_that_is_stopped_leaves_no_record_of_another_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "corpus.jsonl"
    built(output)
    first = output.read_bytes(), record(output)

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(passages, "sha256_of", stopped)
        with pytest.raises(KeyboardInterrupt):
            built(output, input="rows=5,seed=5")
    assert len(lines(output)) == len(pages(synthetic("train", "rows=5,seed=5")))
    assert not output.with_name("corpus.statistics.json").exists()
    built(output)
    assert (output.read_bytes(), record(output)) == first


def test_the_bar_says_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bars, "AFTER_S", 0.0)
    built(tmp_path / "corpus.jsonl", input="rows=400,seed=1")
    said = capsys.readouterr().err
    assert "done 400 cached 0 rejected 0 owed ?; passages" in said


def test_without_and_with_a_search_make_the_papers_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SAFE v2, Table 8, as the help says to make it."""
    corpus, said = tmp_path / "corpus.jsonl", [str(tmp_path / "without"), str(tmp_path / "with")]
    built(corpus)
    for output in said:
        evaluate_stepwise.main(
            [
                "--questions", str(own_rows(tmp_path)), "--drop-gold", "--method=safe",
                "--generator=symbolic:error_rate=0", "--verifier=symbolic", f"--output={output}",
                f"--cache={tmp_path / 'c.sqlite'}",
                *([f"--corpus={corpus}"] if output.endswith("with") else []),
            ]
        )  # fmt: skip
    join_results.main(
        [
            f"{said[0]}=without retrieval", f"{said[1]}=with retrieval",
            "--reference=without retrieval", "--published=v2:8", f"--output={tmp_path / 'joined'}",
        ]
    )  # fmt: skip
    assert "Against without retrieval, EM:" in capsys.readouterr().out
    text = (tmp_path / "joined" / "report" / "ablation.md").read_text(encoding="utf-8")
    (gain,) = re.findall(r"\| Δ SAFE, with retrieval.*? over .*? \| \+(\d+\.\d) ±", text)
    runs = [json.loads((Path(one) / "results.json").read_text())["runs"][0] for one in said]
    less, more = (run["average"]["exact_match"] for run in runs)
    assert float(gain) == pytest.approx(100 * (more - less), abs=0.06)
    assert more > less + 0.4


def own_rows(folder: Path) -> Path:
    """The first verifiable questions of `SPEC`, in a file."""
    sound = [q for q, noise in generate(parse_spec(SPEC), split="train") if noise == "none"][:12]
    file = folder / "rows.jsonl"
    rows = (json.dumps(to_row(question, "none")) for question in sound)
    file.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return file


# ---------------------------------------------------------------------------------------- real rows


MUSTS = sizes.size(200, 24)
"""Questions of real rows that are answered without a passage that they need."""


def of_musts(real_data: Path, tmp_path: Path, name: str | None) -> dict[str, Any]:
    """What comes of `MUSTS` real 2Wiki rows without a gold passage, drawn: with a search over the
    passages of a benchmark's rows, or with none.
    """
    corpus, folder = tmp_path / "corpus.jsonl.gz", tmp_path / "run"
    if name:
        dev = str(real_data / f"{name}_dev.jsonl")
        built(corpus, benchmark=name, input=dev, split="validation")
    evaluate_stepwise.main(
        [
            f"--questions={real_data / '2wikimultihopqa_dev.jsonl'}", f"--limit={MUSTS}",
            "--drop-gold", "--method=safe", "--generator=symbolic:error_rate=0.1",
            "--verifier=symbolic", f"--output={folder}", f"--cache={tmp_path / 'c.sqlite'}",
            *([f"--corpus={corpus}"] if name else []),
        ]
    )  # fmt: skip
    (run,) = json.loads((folder / "results.json").read_text())["runs"]
    found: dict[str, Any] = run["all"]
    return found


def test_evidence_that_is_missing_is_worth_searching_for(tmp_path: Path, real_data: Path) -> None:
    without = of_musts(real_data, tmp_path / "without", None)
    searched = of_musts(real_data, tmp_path / "with", "2wikimultihopqa")
    assert searched["exact_match"] >= without["exact_match"] + 0.4
    assert searched["calls_per_question"] < without["calls_per_question"]
    assert "no_evidence" not in without["stop_reasons"]
    asked = read(str(real_data / "2wikimultihopqa_dev.jsonl"), limit=MUSTS).questions
    for name, found in (("without", without), ("with", searched)):
        answers = [json.loads(t) for t in (tmp_path / name / "run" / "trajectories.jsonl").open()]
        scored = [
            exact_match(line["trajectory"]["answer"], question.accepted)
            for line, question in zip(answers, asked, strict=True)
        ]
        assert found["exact_match"] == sum(scored) / MUSTS


def test_where_nothing_can_be_found_a_question_ends_early(tmp_path: Path, real_data: Path) -> None:
    """The passages are another benchmark's."""
    found = of_musts(real_data, tmp_path, "musique")
    assert found["calls_per_question"] <= 20
    assert found["stop_reasons"]["no_evidence"] >= 0.75 * MUSTS
    assert "no evidence found" in (tmp_path / "run" / "report" / "cost.md").read_text()
