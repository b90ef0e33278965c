"""The base class of a release's stages, the check of their players, and the costs by which a dry run prices them.

A *part* is what ``--only`` names: the stages of one name, which are made or left out together. A *player* is the spec
of an engine that plays a role. It may have a placeholder, such as ``{adapter}``, for a model that the release trains.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from builders.work.plans import ENGINES, Slurm
from builders.work.shards import Annotator
from releases.manifest import OWN_ADAPTER, OWN_GENERATOR, BuildEntry, Manifest
from releases.paths_manifest import OWN_SFT, PathsManifest, SourceEntry
from safe_stepwise.commands.options import ModelOptions
from safe_stepwise.commands.values import Count, Name
from safe_stepwise.errors import UserError, at_place
from safe_stepwise.open import check_spec
from safe_stepwise.store.names import DATASETS
from safe_stepwise.store.packaged import read_yaml

M = TypeVar("M", Manifest, PathsManifest, covariant=True)
_PLACEHOLDER = re.compile(r"\{\w*\}")
_TRAINED_BY = {OWN_ADAPTER: "adapter", OWN_GENERATOR: "generator", OWN_SFT: "adapter.kto"}
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
    """The calls and tokens of a part; ``computed`` are the prompt tokens that no cache holds."""

    name: str
    rows: int
    calls: int = 0
    prompt: int = 0
    computed: int = 0
    reply: int = 0
    trained: int = 0

    def hours(self, speed: Speed) -> float:
        seconds = self.computed / speed.prompt + self.reply / speed.reply
        return (seconds + self.trained / speed.train) / 3600


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
    def expectations(self) -> Any:
        return read_expectations()

    def question_rows(self, release: "Release[PathsManifest]", section: str) -> dict[str, int]:
        """Return the number of questions of each source in a section; raise ``UserError`` if one is not known."""
        entries = release.manifest.sources
        return {
            key: release.require_expected_rows(key, entries[key]) if source.rows is None else source.rows
            for key, source in self.sources.items()
            if key.startswith(f"{section}.questions")
        }

    def count_new_questions(self, key: object, questions: int) -> int:
        """Return how many of a part's ``questions`` no earlier part requests by the same ``key``, and count them."""
        earlier = self.counted_questions.get(key, 0)
        self.counted_questions[key] = max(earlier, questions)
        return max(0, questions - earlier)


def read_expectations() -> Any:
    """Read our assumptions: the calls and tokens of one row or question of each part, and the default speeds."""
    return read_yaml(Path(__file__).with_name("expectations.yaml"))


def check_player(spec: str, place: str, trained: Collection[str]) -> None:
    """Raise ``UserError`` for a bad spec, an unknown placeholder, or one of a model that is not ``trained``."""
    for placeholder, key in _TRAINED_BY.items():
        if placeholder in spec and placeholder not in trained:
            raise UserError(f"{place}: {placeholder} stands for no model of the release; add {key} to the manifest")
        spec = spec.replace(placeholder, "trained")
    if unknown := _PLACEHOLDER.search(spec):
        raise UserError(f"{place}: {unknown[0]} stands for nothing; write {', '.join(_TRAINED_BY)}")
    with at_place(place):
        check_spec(spec)


def price_engine(spec: str, name: str, rows: int, unit_cost: UnitCost) -> CostEstimate:
    """Return the cost of ``rows`` by the engine of a spec; an engine without a model costs nothing."""
    return CostEstimate(name, rows) if spec.startswith(("symbolic", "mock")) else price_rows(name, rows, unit_cost)


def price_rows(name: str, rows: int, unit_cost: UnitCost) -> CostEstimate:
    """Return the cost of ``rows`` by the cost of one row."""
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
    """The options of a run over a release's stages; the manifest, not ``allowance``, limits the tokens of roles."""

    manifest: Path
    output: Path
    only: Sequence[str] = ()
    """The parts to make, with the parts that they need; all if none is named."""
    skip_training: bool = False
    keep_failed: bool = False
    """Whether a part is locked though some of its questions failed, which then count as wrong."""
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

    def require_expected_rows(self, key: str, entry: BuildEntry | SourceEntry) -> int:
        """Return the number of rows that an entry states for its missing input; raise ``UserError`` without one."""
        if entry.expected_rows is None:
            raise UserError(
                f"{self.file}: {key}: {entry.input} is not here; bring it, or say how many rows it has with "
                "expected_rows"
            )
        return entry.expected_rows

    def refuse_unnamed(self, unnamed: Sequence[str]) -> None:
        """Raise ``UserError`` if the output holds ``unnamed`` datasets or blocks, which the manifest does not name."""
        if unnamed:
            text = f"holds {unnamed[0]}, which {self.file} does not name; choose another --output"
            raise UserError(f"{self.datasets}: {text}")

    def close(self) -> None:
        """Close all teachers and makers, to free their memory; the next use opens them again."""
        for annotator in self.annotators:
            annotator.close()


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage: a summary to print, and the counts that the lock records."""

    summary: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage(Generic[M]):
    """A stage of a release; stages of one ``name`` are one part, which is made or left out as a whole."""

    release: Release[M]
    name: str
    manifest_type: ClassVar[type] = Manifest
    """The type of manifest that may name the stage."""
    default_name: ClassVar[str] = ""
    key: ClassVar[str] = ""
    """The manifest's key that names the stage; empty for a stage of every release."""
    trains: ClassVar[bool] = False
    """Whether ``--skip-training`` leaves the stage out."""
    note: ClassVar[str] = ""
    """A note that a dry run prints below the costs, if the stage has costs."""

    @classmethod
    def from_manifest(cls, release: Release[Any]) -> "Iterator[Stage[Any]]":
        """Yield the stages of this class that a release's manifest names: one, if the manifest has the ``key``."""
        if not cls.key or getattr(release.manifest, cls.key):
            yield cls(release, cls.default_name)

    @property
    def needs(self) -> Collection[str]:
        """The parts that have to be made before the stage."""
        return ()

    @property
    def remade_after(self) -> str:
        """The part that changes the stage's result: once that part is made, the stage is made again."""
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
        """Return estimates of the stage's costs; they are upper bounds if prompts depend on replies."""
        return ()

    def missing(self) -> Iterable[str]:
        """Return a line for each missing file that the stage needs."""
        return ()

    def make(self) -> StageResult:
        """Make the stage, continuing where an earlier run stopped."""
        raise NotImplementedError

    def refuse_failed(self, failed: int) -> None:
        """Raise ``UserError`` if ``failed`` questions of an evaluation is above 0, unless ``--keep-failed`` is set."""
        if failed and not self.release.options.keep_failed:
            raise UserError(
                f"{self.name}: {failed:,} questions failed, so the part is not locked; run the same command again: "
                f"only they are asked. With --keep-failed it is locked as it is, and they count as wrong"
            )
