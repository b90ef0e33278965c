"""Build a corpus of the distinct passages in benchmark rows, in their order, and measure how well it can be searched.

SAFE v2 (finding 5) searches "the full corpus" without defining it. Ours has the passages of a benchmark's rows,
distractors included: for train and dev of 2WikiMultihopQA roughly the summaries that its questions were made from.
Each line is a passage, ``{"title": ..., "sentences": [...]}``, as ``evaluate_stepwise --corpus`` reads it. The same
rows give the same bytes; memory takes 16 bytes a passage.

The recall of the search is measured on a sample of questions. From each question a passage is removed as in its row of
``missing_evidence``, and searched for by the query of that row: subject and relation, or a title, never the value.
"""

import asyncio
import hashlib
import heapq
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource
from builders.steps.composition import rank
from builders.steps.making import without_evidence
from builders.verified.collect import Build, jobs, source_of
from builders.verified.questions import VerifiedQuestion
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.checking import plans, writing
from safe_stepwise.checking.checker import Checker
from safe_stepwise.errors import UserError
from safe_stepwise.methods import limits, searching
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.records import Passage, Question
from safe_stepwise.store.boundary import plain
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.files import json_bytes, report_unwritable, write_atomically, write_parts
from safe_stepwise.store.progress import counts, show_progress
from safe_stepwise.store.tables import decimal, fill

NOISE, NO_PLAN, RESTATED = "not verified", "no plan", "each fact is stated twice, or cannot be asked"
"""Reasons why a question has no passage removed."""


def recall(questions: Sequence[Question], search: limits.Search, seed: int) -> dict[str, Any]:
    """Count the passages searched for and found among the ``top`` hits, and the questions left out, by reason."""
    searched, hits, left_out = Counter[str](), Counter[str](), Counter[str]()

    def count() -> int:
        return searched.total() + left_out.total()

    with show_progress("recall", "question", len(questions), count):
        for question in questions:
            removal = remove_evidence(question, seed)
            if isinstance(removal, str):
                left_out[removal] += 1
                continue
            query, passage = removal
            top = {(page.title, page.text) for page in search(query)[: searching.RETRIEVED]}
            searched[question.benchmark] += 1
            hits[question.benchmark] += (passage.title, passage.text) in top
    return {
        "top": searching.RETRIEVED,
        "searched": searched.total(),
        "found": hits.total(),
        "benchmarks": {name: {"searched": searched[name], "found": hits[name]} for name in sorted(searched)},
        "left_out": dict(sorted(left_out.items())),
    }


def remove_evidence(question: Question, seed: int) -> tuple[str, Passage] | str:
    """Return the query and the removed passage of a question's row of ``missing_evidence``, or the reason for none."""
    label = asyncio.run(verify(question, AnnotationsTeacher()))
    if label.unverifiable:
        return NOISE
    try:
        sample, label = VerifiedQuestion(question, label).sample(seed)
        checker = Checker(sample, label.reasoning_path, label.knowledge_graph)
    except (plans.PlanError, ValueError):
        return NO_PLAN
    rows = without_evidence(checker, writing.write_trajectory(checker, seed), seed, "")
    removed = [page for page in sample.passages if page not in rows[0].question.passages] if rows else []
    return (rows[0].feedback.query or "", removed[0]) if removed else RESTATED


SUFFIXES = (".jsonl.gz", ".jsonl")
RECALL_SAMPLE = 1_000
"""The default number of questions whose removed passage is searched for."""


@dataclass(frozen=True, slots=True)
class CorpusBuild:
    """Settings of a corpus build: sources, output, and the number of questions to measure the search with."""

    sources: Sequence[Build]
    output: Path
    recall_of: int = RECALL_SAMPLE
    seed: int = 0

    @property
    def stem(self) -> str:
        """The output's name without its suffix (one of `SUFFIXES`); raises ``UserError`` without such a suffix."""
        for suffix in SUFFIXES:
            if self.output.name.endswith(suffix) and self.output.name != suffix:
                return self.output.name.removesuffix(suffix)
        raise UserError(f"--output {self.output}: name it .jsonl or .jsonl.gz")

    @property
    def record(self) -> Path:
        return self.output.with_name(f"{self.stem}.statistics.json")


@dataclass(slots=True)
class SourceCounts:
    """Counts of one source."""

    benchmark: str
    split: str
    source: InputSource
    rows: int = 0
    """All rows read."""
    new: int = 0
    """Passages that no earlier row had."""
    rejected: dict[str, int] = field(default_factory=dict)
    """Unreadable rows, by reason up to its first colon."""
    first_rejected: str = ""


def build(plan: CorpusBuild, indices: Path) -> dict[str, Any]:
    """Write the corpus, its index (into ``indices``) and its record; raise ``UserError`` for bad sources or output."""
    record = plan.record
    if plan.output.resolve() in {Path(source.source).resolve() for source in plan.sources}:
        raise UserError(f"--output {plan.output}: is one of the inputs; write the corpus elsewhere")
    reader = _Reader(plan)
    plan.output.parent.mkdir(parents=True, exist_ok=True)
    with report_unwritable(plan.output), show_progress("corpus", "row", None, lambda: reader.rows, reader.describe):
        write_parts(plan.output, _pack(reader.lines(), plan.output.suffix == ".gz"))
    record.unlink(missing_ok=True)  # it may belong to another corpus, and this run may be stopped here
    corpus = Corpus.open(plan.output, indices)
    measured = recall(reader.sample, corpus.search, plan.seed) if plan.recall_of else None
    statistics = {
        "passages": len(corpus.passages),
        "sha256": corpus.sha256,
        "seed": plan.seed,
        "sources": reader.sources,
        # Recall of the loop's search (BM25); None if it was not measured.
        "recall": measured,
        "recall_share": measured["found"] / measured["searched"] if measured and measured["searched"] else None,
        "code_sha256": code_digest(__name__),
    }
    write_atomically(record, json_bytes(plain(statistics)))
    return statistics


class _Reader:
    """Reads the rows of all sources in turn: their distinct passages, and a sample of their questions."""

    def __init__(self, plan: CorpusBuild) -> None:
        self._plan = plan
        self.sources = [SourceCounts(b.benchmark, b.split, source_of(b)) for b in plan.sources]
        self._digests: set[bytes] = set()
        self._sample: list[tuple[int, int, Question]] = []

    @property
    def rows(self) -> int:
        return sum(source.rows for source in self.sources)

    @property
    def sample(self) -> list[Question]:
        """The sampled questions, in the order of their rank."""
        return [question for *_, question in sorted(self._sample, reverse=True)]

    def describe(self) -> str:
        bad = sum(sum(source.rejected.values()) for source in self.sources)
        return f"{counts(self.rows, 0, '?', rejected=bad)}; passages {len(self._digests):,}"

    def lines(self) -> Iterator[bytes]:
        for plan, tally in zip(self._plan.sources, self.sources, strict=True):
            for question in _questions(plan, tally):
                self._draw(question)
                for page in filter(self._is_new, question.passages):
                    tally.new += 1
                    content = {"title": page.title, "sentences": page.sentences}
                    yield (json.dumps(content, ensure_ascii=False) + "\n").encode()
            if tally.rows == sum(tally.rejected.values()):
                raise UserError(
                    f"{plan.source}: none of its {tally.rows} rows could be read as "
                    f"{plan.benchmark}; the first: {tally.first_rejected}"
                )

    def _is_new(self, page: Passage) -> bool:
        if not page.text.strip():
            return False
        content = f"{page.title}\0{page.text}".encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(content, digest_size=16).digest()
        is_new = digest not in self._digests
        self._digests.add(digest)
        return is_new

    def _draw(self, question: Question) -> None:
        """Add a question to the sample if its rank, which depends on the question alone, is among the first."""
        key = f"{question.benchmark}\0{question.id}"
        entry = (-int.from_bytes(rank(self._plan.seed, key)), -self.rows, question)
        if len(self._sample) < self._plan.recall_of:
            heapq.heappush(self._sample, entry)
        elif self._sample and entry > self._sample[0]:
            heapq.heapreplace(self._sample, entry)


def _questions(plan: Build, tally: SourceCounts) -> Iterator[Question]:
    """Yield the questions of a source, counting its rows."""
    for job in jobs(plan):
        questions, rejects = job.questions()
        tally.rows += len(rejects)
        for reject in rejects:
            reason = reject.reason.partition(":")[0]
            tally.rejected[reason] = tally.rejected.get(reason, 0) + 1
            tally.first_rejected = tally.first_rejected or f"{reject.location}: {reject.reason}"
        for _, question, _ in questions:
            tally.rows += 1
            yield question


def _pack(lines: Iterable[bytes], gzipped: bool) -> Iterator[bytes]:
    """Yield the bytes of the file; gzip without time and name."""
    if not gzipped:
        yield from lines
        return
    packer = zlib.compressobj(level=9, wbits=31)
    yield from map(packer.compress, lines)
    yield packer.flush()


def summary(plan: CorpusBuild, statistics: dict[str, Any]) -> str:
    """Render what was read, the recall, the output and how to search it."""
    header = ("benchmark", "split", "source", "rows", "unreadable", "new passages")
    tallies = statistics["sources"]
    rows = [(t.benchmark, t.split, t.source.name, t.rows, sum(t.rejected.values()), t.new) for t in tallies]
    values = {"rows": [header, *rows], "plan": plan, "statistics": statistics, "share": decimal(3)}
    return fill(Path(__file__).parent / "templates", "summary.txt", **values).rstrip()
