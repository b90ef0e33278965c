"""The base class of a release's stages, and the costs by which a dry run prices them.

A *part* is what ``--only`` names: the stages of one name, which are made or left out together.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import yaml

from builders.work.plans import ENGINES, Slurm
from builders.work.shards import Annotator
from releases.manifest import BuildEntry, Manifest
from releases.paths_manifest import PathsManifest, SourceEntry
from safe_stepwise.commands.model_options import ModelOptions
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS

M = TypeVar("M", Manifest, PathsManifest, covariant=True)
_SECONDS_PER_HOUR = 3600
KEEP_FAILED = "--keep-failed"
"""The option that locks a part whose questions failed."""
COST_FIELDS = ("calls", "prompt", "computed", "reply")
UnitCost = Mapping[str, float]
"""The calls and tokens of one row or question: ``calls, prompt, reply``, and ``computed`` if that is less."""


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of one GPU in tokens a second: prompts computed, replies written, rows trained on."""

    prompt: float
    reply: float
    train: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The calls and tokens of a part of a release; ``computed`` are the prompt tokens that no cache holds."""

    name: str
    rows: int
    calls: int = 0
    prompt: int = 0
    computed: int = 0
    reply: int = 0
    trained: int = 0

    def hours(self, speed: Speed) -> float:
        seconds = self.computed / speed.prompt + self.reply / speed.reply
        return (seconds + self.trained / speed.train) / _SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The SHA-256 and the number of rows of a source of relation paths, None if they are not known."""

    sha256: str | None = None
    rows: int | None = None
    topics: int = 1
    """The largest number of topic entities of a question."""


@dataclass
class Forecast:
    """The figures that stages share while a release is priced."""

    build_rows: list[int] = field(default_factory=list)
    sources: dict[str, SourceRows] = field(default_factory=dict)
    """The sources of relation paths, by their keys."""
    counted_questions: dict[object, int] = field(default_factory=dict)
    """The questions already counted, by request: a request that an earlier part makes is cached."""

    @cached_property
    def expected(self) -> Any:
        """The calls and tokens of one row or question of each part."""
        return expectations()

    def question_rows(self, release: "Release[PathsManifest]", section: str) -> dict[str, int]:
        """Return the numbers of questions in a section by source; raise ``UserError`` if one is not known."""
        entries = release.manifest.sources
        return {
            key: release.expected_rows(key, entries[key]) if source.rows is None else source.rows
            for key, source in self.sources.items()
            if key.startswith(f"{section}.questions")
        }

    def count_new_questions(self, key: object, questions: int) -> int:
        """Return how many of ``questions`` no earlier part requests by ``key``; remember that this part does."""
        earlier = self.counted_questions.get(key, 0)
        self.counted_questions[key] = max(earlier, questions)
        return max(0, questions - earlier)


def expectations() -> Any:
    """Read the calls and tokens of one row or question of each part, and the default speeds, which are assumptions."""
    return yaml.safe_load(Path(__file__).with_name("expectations.yaml").read_text(encoding="utf-8"))


def price_engine(spec: str, name: str, rows: int, unit_cost: UnitCost) -> CostEstimate:
    """Return the cost of ``rows`` by the engine of a spec; an engine without a model costs nothing."""
    return CostEstimate(name, rows) if spec.startswith(("symbolic", "mock")) else price_rows(name, rows, unit_cost)


def price_rows(name: str, rows: int, unit_cost: UnitCost) -> CostEstimate:
    """Return the cost of ``rows`` by the calls and tokens of one."""
    unit_cost = {"computed": unit_cost["prompt"], **unit_cost}
    return CostEstimate(name, rows, *(round(rows * unit_cost[count]) for count in COST_FIELDS))


def add_costs(name: str, costs: Iterable[CostEstimate], rows: int | None = None) -> CostEstimate:
    """Return the sum of costs under a new name; ``rows`` replaces the sum of their rows if all share the same."""
    costs = list(costs)
    total = sum(cost.rows for cost in costs) if rows is None else rows
    sums = (sum(getattr(cost, count) for cost in costs) for count in (*COST_FIELDS, "trained"))
    return CostEstimate(name, total, *sums)


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The options of a run over a release's stages; the manifest, not ``allowance``, limits what roles may take."""

    manifest: Path
    output: Path
    only: Sequence[str] = ()
    """The parts to make, with what they need; all if none is named."""
    skip_training: bool = False
    keep_failed: bool = False
    """Whether a part is locked though questions of it failed, which then count as wrong."""
    workers: Count = 1
    engine: Annotated[str, Name(ENGINES)] = "local"
    ranks: Count | None = None
    slurm: Slurm = field(default_factory=Slurm)

    @property
    def engine_options(self) -> dict[str, Any]:
        """The options that decide where a build runs."""
        return {name: getattr(self, name) for name in ("workers", "engine", "ranks", "slurm")}

    @property
    def model_options(self) -> dict[str, Any]:
        """The options that decide how models are called."""
        return {name: getattr(self, name) for name in ("cache", "in_flight", "timeout")}


@dataclass(frozen=True)
class Release(Generic[M]):
    """A release in the making; ``sha256`` is the digest of the manifest's file."""

    options: Options
    manifest: M
    sha256: str
    annotators: list[Annotator] = field(default_factory=list)
    """The teachers and makers that hold models or connections."""

    @property
    def file(self) -> Path:
        return self.options.manifest

    @property
    def output(self) -> Path:
        return self.options.output

    @property
    def datasets(self) -> Path:
        """The folder of the release's datasets."""
        return self.output / DATASETS

    def expected_rows(self, key: str, entry: BuildEntry | SourceEntry) -> int:
        """Return the rows that an entry expects in its missing input; raise ``UserError`` if it says none."""
        if entry.expected_rows is None:
            raise UserError(
                f"{self.file}: {key}: {entry.input} is not here; bring it, or say how many rows it has with "
                "expected_rows"
            )
        return entry.expected_rows

    def refuse_unnamed(self, names: Iterable[str]) -> None:
        """Raise ``UserError`` for the first of some names in the folder that the manifest does not have."""
        for name in names:
            raise UserError(f"{self.datasets}: holds {name}, which {self.file} does not name; choose another --output")

    def close(self) -> None:
        """Close all teachers and makers, to free their memory; the next use opens them again."""
        for annotator in self.annotators:
            annotator.close()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a stage: a summary to print, and the counts that the lock records."""

    summary: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage(Generic[M]):
    """A stage of a release; stages of one ``name`` are one part, which is made or left out as a whole."""

    release: Release[M]
    name: str
    manifest_type: ClassVar[type] = Manifest
    """The type of manifest that may name it."""
    default_name: ClassVar[str] = ""
    key: ClassVar[str] = ""
    """The manifest's key that names it; empty for a stage of every release."""
    trains: ClassVar[bool] = False
    """Whether ``--skip-training`` leaves it out."""
    note: ClassVar[str] = ""
    """A note that a dry run prints below the costs, if the stage has any."""

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[Stage[Any]]":
        """Yield the stages of this class that a release's manifest names: one, if the manifest has the ``key``."""
        if not cls.key or getattr(release.manifest, cls.key):
            yield cls(release, cls.default_name)

    @property
    def needs(self) -> Collection[str]:
        """The parts that have to be made before it."""
        return ()

    @property
    def follows(self) -> str:
        """A part that changes its result: once that part is made, the stage is made again."""
        return ""

    def validate(self) -> None:
        """Raise ``UserError`` with the key of the manifest's entry that is wrong."""

    def check(self) -> None:
        """Raise ``UserError`` if the stage can't be made; called before anything is made."""

    def check_inputs(self) -> None:
        """Raise ``UserError`` for a bad file that the manifest names; called by a dry run."""

    def preface(self, forecast: Forecast) -> str:
        """Return the text that a dry run prints above the costs."""
        return ""

    def price(self, forecast: Forecast) -> Iterable[CostEstimate]:
        """Return estimates of its costs; they are upper bounds if prompts depend on replies."""
        return ()

    def missing(self) -> Iterable[str]:
        """List a line for each missing file that it needs."""
        return ()

    def make(self) -> Result:
        """Make the stage, going on where an earlier run stopped."""
        raise NotImplementedError

    def refuse_failed(self, failed: int) -> None:
        """Raise ``UserError`` if ``failed`` questions of an evaluation is above 0, unless ``--keep-failed`` is set."""
        if failed and not self.release.options.keep_failed:
            raise UserError(
                f"{self.name}: {failed:,} questions failed, so the part is not locked; run the same command again: "
                f"only they are asked. With {KEEP_FAILED} it is locked as it is, and they count as wrong"
            )
