from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from builders.benchmarks.sources import RawRow
from builders.synthetic import parse_spec
from builders.verified import chunks
from builders.verified.chunks import VerificationChunk, shard_schema
from builders.verified.teachers import Proposal
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.work.executors import run_in_order
from builders.work.rejects import RowsSummary
from builders.work.shards import Shard, process, read_shard
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Question, Triple, canonical_json

SPEC = parse_spec("rows=60,seed=3,noise=0.3")


class SilentTeacher(AnnotationsTeacher):
    """Finds nothing, and counts how often it is asked."""

    name = identity = "silent"
    asked = 0

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        return ()

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        return {}

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        type(self).asked += 1
        return Proposal((), "missing_evidence", "It found nothing.")


class BrokenTeacher(SilentTeacher):
    name = identity = "broken"

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        raise ZeroDivisionError("a fault of ours")


def hotpot_row(number: int) -> dict[str, object]:
    return {
        "_id": f"h{number}",
        "question": f"In which country is the town number {number}?",
        "answer": "Marn",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": [["Vel", 0], ["Oru", 1]],
        "context": [
            ["Vel", ["The Vel is a river.", " It crosses Oru."]],
            ["Oru", ["Oru is a town.", " It lies in Marn."]],
        ],
    }


def raw(number: int, content: object) -> RawRow:
    payload = content if isinstance(content, str) else canonical_json(content)
    return RawRow(f"dev.jsonl:{number}", payload)


@pytest.fixture
def job(tmp_path: Path) -> VerificationChunk:
    schema = shard_schema()
    rows = tuple(raw(n, hotpot_row(n)) for n in range(1, 4))
    return VerificationChunk("hotpotqa", "train", 0, rows, tmp_path, SilentTeacher, schema)


def test_a_chunk_is_processed_once(job: VerificationChunk) -> None:
    SilentTeacher.asked = 0
    first, again = process(job), process(job)
    assert (first.cached, again.cached) == (False, True)
    assert SilentTeacher.asked == 3
    assert replace(again, cached=False) == first
    assert [id_ for _, id_ in first.summary.ids] == ["h1", "h2", "h3"]
    assert read_shard(first.path).column("index").to_pylist() == [0, 1, 2]
    assert [path.name for path in job.folder.iterdir()] == [first.path.name]


def test_a_torn_shard_is_made_again(job: VerificationChunk) -> None:
    shard = process(job)
    whole = shard.path.read_bytes()
    shard.path.write_bytes(whole[: len(whole) // 2])
    assert process(job) == shard
    assert shard.path.read_bytes() == whole


@pytest.mark.parametrize(
    "change",
    [
        {"teacher": AnnotationsTeacher},
        {"benchmark": "2wikimultihopqa"},
        {"split": "validation"},
        {"start": 200},
        {"rows": (raw(1, hotpot_row(9)),)},
        {"rows": (raw(7, hotpot_row(1)), raw(2, hotpot_row(2)), raw(3, hotpot_row(3)))},
    ],
)
def test_everything_that_matters_is_in_the_name(job: VerificationChunk, change: dict[str, object]) -> None:
    assert replace(job, **change).path != job.path  # type: ignore[arg-type]


def test_changed_code_makes_other_shards(job: VerificationChunk, monkeypatch: pytest.MonkeyPatch) -> None:
    before = job.path
    monkeypatch.setattr(chunks, "code_digest", lambda *modules: "another")
    assert job.path != before


def test_bad_rows_are_rejects_with_reason(job: VerificationChunk) -> None:
    broken = hotpot_row(2)
    del broken["answer"]
    half = '{"_id": "h4", "question": "\\ud83d"}'
    rows = (raw(1, hotpot_row(1)), raw(2, broken), raw(3, '{"_id": "h3"'), raw(4, half))
    shard = process(replace(job, rows=rows))
    assert len(shard.summary.ids) + len(shard.summary.rejects) == 4
    assert [id_ for _, id_ in shard.summary.ids] == ["h1"]
    assert [(r.location, r.id) for r in shard.summary.rejects] == [
        ("dev.jsonl:2", "h2"),
        ("dev.jsonl:3", None),
        ("dev.jsonl:4", "h4"),
    ]
    assert "answer" in shard.summary.rejects[0].reason
    assert shard.summary.rejects[0].row == broken
    assert shard.summary.rejects[1].row == '{"_id": "h3"'
    again = process(replace(job, rows=rows))
    assert again.cached
    assert again.summary.rejects == shard.summary.rejects


def test_a_chunk_may_be_all_rejects(job: VerificationChunk) -> None:
    shard = process(replace(job, rows=(raw(1, "[]"),)))
    assert (shard.summary.ids, len(shard.summary.rejects)) == ((), 1)
    assert read_shard(shard.path).num_rows == 0


def test_a_fault_names_the_row_and_leaves_no_shard(job: VerificationChunk) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        process(replace(job, teacher=BrokenTeacher))
    assert "'h1'" in caught.value.__notes__[0]
    assert list(job.folder.iterdir()) == []


def run(
    jobs: Iterable[VerificationChunk], workers: int
) -> Generator[tuple[VerificationChunk, Shard[RowsSummary]], None, None]:
    return run_in_order(process, jobs, workers=workers, is_cpu_bound=True)


def synthetic_jobs(job: VerificationChunk) -> list[VerificationChunk]:
    made = {"benchmark": "synthetic", "rows": (), "spec": SPEC, "generated": 10}
    return [replace(job, start=start, **made) for start in range(0, 60, 10)]  # type: ignore[arg-type]


def test_results_come_in_order_for_any_number_of_workers(job: VerificationChunk, tmp_path: Path) -> None:
    contents = []
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        folder.mkdir()
        jobs = [replace(j, folder=folder) for j in synthetic_jobs(job)]
        results = list(run(iter(jobs), workers=workers))
        assert [j.start for j, _ in results] == [0, 10, 20, 30, 40, 50]
        contents.append([(s.path.name, s.path.read_bytes()) for _, s in results])
    assert contents[0] == contents[1]


def test_a_stopped_run_keeps_what_is_finished(job: VerificationChunk) -> None:
    results = run(iter(synthetic_jobs(job)), workers=1)
    next(results)
    next(results)
    results.close()
    again = list(run(iter(synthetic_jobs(job)), workers=1))
    assert [shard.cached for _, shard in again] == [True, True, False, False, False, False]


def test_jobs_are_drawn_only_a_few_ahead(job: VerificationChunk) -> None:
    drawn = 0

    def counted() -> object:
        nonlocal drawn
        for one in synthetic_jobs(job) * 4:
            drawn += 1
            yield one

    results = run(counted(), workers=2)  # type: ignore[arg-type]
    next(results)
    assert drawn <= 6
    results.close()
