"""The first half of a build of relation paths: from sources and a graph to searched shards."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from builders.benchmarks import sources
from builders.paths.negatives import MOST
from builders.paths.relation_chunks import (
    CHUNK_ROWS,
    GraphFile,
    PathsChunk,
    Searcher,
)
from builders.paths.relation_readers import check_graph, reader_of
from builders.paths.relation_statistics import Graph, InputFile
from builders.work.collecting import Collected, collected
from builders.work.executors import Executor, Slurm
from builders.work.ranks import Work
from builders.work.rejects import Rejecting
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.relation_paths import HOPS
from safe_stepwise.graphs.sqlite_store import build_sqlite
from safe_stepwise.graphs.triples import NamedTriple, read_triples
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import WORK
from safe_stepwise.store.progress import telling

LARGE = 64 * 2**20
"""Bytes of a graph's file from which it is kept on disk: its dictionaries would take some GB."""
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


def inputs_of(plan: PathsBuild) -> list[InputFile]:
    """The sources with their digests; ``UserError`` for one that can't be read."""
    return [
        InputFile(Path(one).name if Path(one).exists() else one, sources.digest(one))
        for one in plan.sources
    ]


def graph_of(plan: PathsBuild) -> tuple[GraphFile | None, Graph | None]:
    """The graph as the workers open it, and what to say of it; None where rows bring their own.

    A large one is put into a SQLite file among the work, once. Raises ``UserError`` for a file that
    is no graph.
    """
    if plan.kb is None:
        return None, None
    try:
        digest = sha256_of(plan.kb)
        large = plan.kb.stat().st_size >= LARGE
    except OSError as error:
        raise UserError(f"{plan.kb}: can't be read: {error.strerror}") from None
    counted = _Counted(plan.kb)
    file = GraphFile(plan.kb.absolute(), digest)
    try:
        if large:
            file = GraphFile(plan.work / f"graph-{digest[:24]}.sqlite", digest)
        if large and not file.file.exists():
            file.file.parent.mkdir(parents=True, exist_ok=True)
            with telling("graph", "triple", None, lambda: counted.triples, lambda: ""):
                build_sqlite(file.file, counted)
        else:
            for _ in counted:
                pass
        relations = len(file.open().relations)
    except ValueError as error:
        raise UserError(f"{plan.kb}: {error}") from None
    return file, Graph(plan.kb.name, digest, counted.triples, relations // 2)


class _Counted:
    """The triples of a file, counted as they are read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.triples = 0

    def __iter__(self) -> Iterator[NamedTriple]:
        for triple in read_triples(self._file):
            self.triples += 1
            yield triple


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
