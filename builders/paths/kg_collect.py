"""The first half of a build of relation paths: from sources and a graph to searched shards."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builders.paths.negatives import MOST
from builders.paths.relation_chunks import CHUNK_ROWS, PathsChunk, Searcher
from builders.paths.relation_inputs import GraphFile
from builders.paths.relation_readers import check_graph, reader_of
from builders.work import collect as work
from builders.work.plans import Plan
from builders.work.ranks import Work
from builders.work.rejects import Rejecting
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS

TEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class PathsBuild(Plan):
    """What to build. Each of ``sources`` is a file or ``hub-id@rev``, ``kb`` the graph's file."""

    benchmark: str
    sources: tuple[str, ...]
    split: str
    kb: Path | None = None
    test_share: float = TEST_SHARE
    max_hops: int = HOPS
    negatives: int = MOST
    """Of each hard kind, at most."""

    def __post_init__(self) -> None:
        check_graph(self.benchmark, self.kb)
        if not 0 < self.test_share < 1:
            raise UserError(f"--test-share {self.test_share}: a share lies between 0 and 1")

    @property
    def work_name(self) -> str:
        """The folder of unfinished work."""
        return f"paths-{self.benchmark}"


def jobs(plan: PathsBuild, graph: GraphFile | None) -> Iterator[PathsChunk]:
    """The rows of all sources, chunk by chunk."""
    reader, folder = reader_of(plan.benchmark), plan.work / "shards"
    for number, source in enumerate(plan.sources):
        for part in reader.chunks(source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            yield PathsChunk(
                *(plan.benchmark, plan.split, part.start, part.rows, folder),
                *(number, graph, plan.max_hops, plan.negatives, plan.seed),
            )


def _total(plan: PathsBuild, graph: GraphFile | None) -> int | None:
    """Rows that the build will read; None for Hub datasets, which are not read twice."""
    if not all(Path(source).exists() for source in plan.sources):
        return None
    return sum(job.size for job in jobs(plan, graph))


def collect(plan: PathsBuild, graph: GraphFile | None, collected: work.Collected) -> None:
    """Run all chunks; fills ``collected`` as it goes, and ``rejects.jsonl`` in the work folder."""
    rejecting = Rejecting(plan.benchmark, plan.split, plan.keep_rejects)
    title, chunks = f"{plan.benchmark} {plan.split}", functools.partial(jobs, plan, graph)
    searching = Work(chunks, Searcher(), plan.work, title, "question", rejecting.check)
    total = functools.partial(_total, plan, graph)
    work.collect(searching, plan, total, rejecting, ", ".join(plan.sources), collected)
