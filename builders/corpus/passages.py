"""Build a corpus of the distinct passages in benchmark rows, in their order.

SAFE v2 (finding 5) searches "the full corpus" without defining it. Ours has the passages of a benchmark's rows,
distractors included: for train and dev of 2WikiMultihopQA roughly the summaries that its questions were made from.
Each line is a passage, ``{"title": ..., "sentences": [...]}``, as ``evaluate_stepwise --corpus`` reads it. The same
rows give the same bytes; memory takes 16 bytes a passage.
"""

import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders.benchmarks.sources import InputSource
from builders.verified.collect import Build, jobs, source_of
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, files, tables
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.progress import counts, show_progress


@dataclass(frozen=True, slots=True)
class CorpusBuild:
    """Settings of a corpus build: sources and output."""

    sources: Sequence[Build]
    output: Path

    @property
    def record(self) -> Path:
        """The file of counts beside the output; raises ``UserError`` for an output that is no ``.jsonl``."""
        if (name := re.fullmatch(r"(.+)\.jsonl(\.gz)?", self.output.name)) is None:
            raise UserError(f"--output {self.output}: name it .jsonl or .jsonl.gz")
        return self.output.with_name(f"{name[1]}.statistics.json")


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
    rejected: int = 0
    """Unreadable rows."""
    first_rejected: str = ""


def build(plan: CorpusBuild) -> dict[str, Any]:
    """Write the corpus and its record; raise ``UserError`` for bad sources or output."""
    record = plan.record
    if plan.output.resolve() in {Path(source.source).resolve() for source in plan.sources}:
        raise UserError(f"--output {plan.output}: is one of the inputs; write the corpus elsewhere")
    tallies = [SourceCounts(b.benchmark, b.split, source_of(b)) for b in plan.sources]
    plan.output.parent.mkdir(parents=True, exist_ok=True)

    def rows() -> int:
        return sum(tally.rows for tally in tallies)

    def describe() -> str:
        bad, new = (sum(numbers) for numbers in zip(*((t.rejected, t.new) for t in tallies), strict=True))
        return f"{counts(rows(), 0, '?', rejected=bad)}; passages {new:,}"

    with files.report_unwritable(plan.output), show_progress("corpus", "row", None, rows, describe):
        files.write_parts(plan.output, _pack(_lines(plan, tallies), plan.output.suffix == ".gz"))
    record.unlink(missing_ok=True)  # it may belong to another corpus, and this run may be stopped here
    statistics = {
        "passages": sum(tally.new for tally in tallies),
        "sha256": sha256_of(plan.output),
        "sources": tallies,
        "code_sha256": code_digest(__name__),
    }
    files.write_atomically(record, files.json_bytes(boundary.plain(statistics)))
    return statistics


def _lines(plan: CorpusBuild, tallies: Sequence[SourceCounts]) -> Iterator[bytes]:
    """Yield the distinct passages of all sources as lines, and count rows and passages."""
    digests: set[bytes] = set()
    for source, tally in zip(plan.sources, tallies, strict=True):
        for job in jobs(source):
            questions, rejects = job.questions()
            tally.rows += len(questions) + len(rejects)
            tally.rejected += len(rejects)
            if rejects and not tally.first_rejected:
                tally.first_rejected = f"{rejects[0].location}: {rejects[0].reason}"
            for page in (page for _, question, _ in questions for page in question.passages):
                content = f"{page.title}\0{page.text}".encode("utf-8", "surrogatepass")
                digest = hashlib.blake2b(content, digest_size=16).digest()
                if page.text.strip() and digest not in digests:
                    digests.add(digest)
                    tally.new += 1
                    line = json.dumps({"title": page.title, "sentences": page.sentences}, ensure_ascii=False)
                    yield f"{line}\n".encode()
        if tally.rows == tally.rejected:
            raise UserError(
                f"{source.source}: none of its {tally.rows} rows could be read as "
                f"{source.benchmark}; the first: {tally.first_rejected}"
            )


def _pack(lines: Iterable[bytes], gzipped: bool) -> Iterator[bytes]:
    """Yield the bytes of the file; gzip without time and name."""
    if not gzipped:
        yield from lines
        return
    packer = zlib.compressobj(level=9, wbits=31)
    yield from map(packer.compress, lines)
    yield packer.flush()


def summary(plan: CorpusBuild, statistics: dict[str, Any]) -> str:
    """Render what was read, the output and how to search it."""
    header = ("benchmark", "split", "source", "rows", "unreadable", "new passages")
    rows = [(t.benchmark, t.split, t.source.name, t.rows, t.rejected, t.new) for t in statistics["sources"]]
    values = {"rows": [header, *rows], "plan": plan, "statistics": statistics}
    return tables.fill(Path(__file__).parent / "templates", "summary.txt", **values).rstrip()
