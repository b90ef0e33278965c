"""The first half of a build of relation paths: from sources and a graph to searched shards."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builders.paths.negatives import MOST
from builders.paths.relation_chunks import CHUNK_ROWS, PathsChunk, Searcher
from builders.paths.relation_inputs import GraphFile
from builders.paths.relation_readers import check_graph, reader_of
from builders.work.collecting import Collected, collected
from builders.work.executors import Executor, Slurm
from builders.work.ranks import Work
from builders.work.rejects import Rejecting
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS
from safe_stepwise.store.names import WORK

TEST_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class PathsBuild:
    """What to build. Each of ``sources`` is a file or ``hub-id@rev``, ``kb`` the graph's file."""

    benchmark: str
    sources: tuple[str, ...]
    split: str
    output: Path
    kb: Path | None = None
    version: str = "v0.1.0"
    seed: int = 0
    limit: int | None = None
    """Rows of each source."""
    workers: int = 1
    engine: str = "local"
    """One of ``executors.EXECUTORS``."""
    ranks: int | None = None
    slurm: Slurm = field(default_factory=Slurm)
    keep_rejects: bool = False
    keep_work: bool = False
    """Whether what was searched stays for a run that makes the set again."""
    test_share: float = TEST_SHARE
    max_hops: int = HOPS
    negatives: int = MOST
    """Of each hard kind, at most."""

    def __post_init__(self) -> None:
        check_graph(self.benchmark, self.kb)
        if not 0 < self.test_share < 1:
            raise UserError(f"--test-share {self.test_share}: a share lies between 0 and 1")

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / WORK / f"paths-{self.benchmark}"


def jobs(plan: PathsBuild, graph: GraphFile | None) -> Iterator[PathsChunk]:
    """The rows of all sources, chunk by chunk."""
    reader, folder = reader_of(plan.benchmark), plan.work / "shards"
    for number, source in enumerate(plan.sources):
        for part in reader.chunks(source, plan.split, size=CHUNK_ROWS, limit=plan.limit):
            yield PathsChunk(
                *(plan.benchmark, plan.split, number, part.start, part.rows, graph),
                *(plan.max_hops, plan.negatives, plan.seed, folder),
            )


def _total(plan: PathsBuild, graph: GraphFile | None) -> int | None:
    """Rows that the build will read; None for Hub datasets, which are not read twice."""
    if not all(Path(source).exists() for source in plan.sources):
        return None
    return sum(job.size for job in jobs(plan, graph))


def collect(plan: PathsBuild, graph: GraphFile | None, done: Collected) -> None:
    """Run all chunks; fills ``done`` as it goes, and ``rejects.jsonl`` in the work folder."""
    (plan.work / "shards").mkdir(parents=True, exist_ok=True)
    rejecting = Rejecting(plan.benchmark, plan.split, plan.keep_rejects)
    work = Work(
        functools.partial(jobs, plan, graph),
        Searcher(),
        plan.work,
        f"{plan.benchmark} {plan.split}",
        unit="question",
        check=rejecting.check,
    )
    executor = Executor(plan.engine, plan.workers, plan.ranks or plan.workers, plan.slurm)
    total = functools.partial(_total, plan, graph)
    for _ in collected(work, executor, total, rejecting, ", ".join(plan.sources), done):
        pass
