"""What a release is made of: stages, each with what it needs, a check, a price and its making."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import yaml

from builders.work.plans import ENGINES, Slurm
from builders.work.shards import Annotator
from releases.manifest import Manifest
from releases.paths_manifest import PathsManifest
from safe_stepwise.commands.values import Count, Known, Seconds
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import DATASETS

M = TypeVar("M", Manifest, PathsManifest, covariant=True)
_SECONDS = 3600
KEEP_FAILED = "--keep-failed"
"""The option that locks a part whose questions failed."""
COUNTED = ("calls", "prompt", "computed", "reply")
Take = Mapping[str, float]
"""What one row or question takes: ``calls, prompt, reply``, and ``computed`` if that is less."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one GPU: prompts computed, replies written, rows trained on."""

    prompt: float
    reply: float
    train: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a part of a release takes; ``computed`` are the prompt tokens that no cache holds."""

    name: str
    rows: int
    calls: int = 0
    prompt: int = 0
    computed: int = 0
    reply: int = 0
    trained: int = 0

    def hours(self, speed: Speed) -> float:
        """GPU hours."""
        seconds = self.computed / speed.prompt + self.reply / speed.reply
        return (seconds + self.trained / speed.train) / _SECONDS


@dataclass(frozen=True, slots=True)
class SourceRows:
    """A source of relation paths as it is here: its digest and rows (None of a graph), or nothing of it.

    Of questions that are put also how many there are of each number of hops, and the most topic
    entities of one.
    """

    sha256: str | None = None
    rows: int | None = None
    by_hops: Counter[int] | None = None
    topics: int = 1


@dataclass
class Forecast:
    """What stages tell each other while a release is priced."""

    build_rows: list[int] = field(default_factory=list)
    """Of each build of the manifest."""
    sources: dict[str, SourceRows] = field(default_factory=dict)
    """Those of relation paths by their keys."""
    questions_asked: dict[object, int] = field(default_factory=dict)
    """By what is asked: what an earlier part asks in the same words is asked there, and cached."""

    @cached_property
    def expected(self) -> Any:
        """What one row or question of each part takes."""
        return expectations()

    def question_rows(self, release: "Release[PathsManifest]", part: str) -> dict[str, int]:
        """The rows of a part's questions by source; raises ``UserError`` where they are not known."""
        rows = {}
        for key, source in self.sources.items():
            entry = release.manifest.sources[key]
            if not key.startswith(f"{part}.questions"):
                continue
            if (number := entry.expected_rows if source.rows is None else source.rows) is None:
                raise UserError(
                    f"{release.file}: {key}: {entry.input} is not here; bring it, or say how many "
                    "rows it has with expected_rows"
                )
            rows[key] = number
        return rows

    def ask_anew(self, key: object, questions: int) -> int:
        """How many of some questions no part before has asked."""
        earlier = self.questions_asked.get(key, 0)
        self.questions_asked[key] = max(earlier, questions)
        return max(0, questions - earlier)


def expectations() -> Any:
    """What one row or question of each part takes, and the speeds to go by if none is given.

    Speeds are assumptions, and the report says so.
    """
    return yaml.safe_load(Path(__file__).with_name("expectations.yaml").read_text(encoding="utf-8"))


def price_engine(spec: str, name: str, rows: int, take: Take) -> Cost:
    """What one engine is asked; nothing if no model stands behind it."""
    return Cost(name, rows) if spec.startswith(("symbolic", "mock")) else price_rows(name, rows, take)


def price_rows(name: str, rows: int, take: Take) -> Cost:
    """``rows`` times what one row takes."""
    take = {"computed": take["prompt"], **take}
    return Cost(name, rows, *(round(rows * take[count]) for count in COUNTED))


def add_costs(name: str, costs: Iterable[Cost], rows: int | None = None) -> Cost:
    """The sum of costs; ``rows`` in the place of theirs, where all are of the same rows."""
    costs = list(costs)
    total = sum(cost.rows for cost in costs) if rows is None else rows
    return Cost(name, total, *(sum(getattr(cost, count) for cost in costs) for count in (*COUNTED, "trained")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What stages are asked for."""

    manifest: Path
    output: Path
    only: Sequence[str] = ()
    """The parts to make, with what they need; all if none is named."""
    skip_training: bool = False
    keep_failed: bool = False
    """Whether a part is locked though questions of it failed, which then count as wrong."""
    cache: Path | None = None
    """The file of replies."""
    in_flight: Count = IN_FLIGHT
    timeout: Seconds | None = None
    workers: Count = 1
    engine: Annotated[str, Known(ENGINES)] = "local"
    ranks: Count | None = None
    slurm: Slurm = field(default_factory=Slurm)

    @property
    def engine_options(self) -> dict[str, Any]:
        """The fields of a build that say where it runs."""
        return {name: getattr(self, name) for name in ("workers", "engine", "ranks", "slurm")}


@dataclass(frozen=True)
class Release(Generic[M]):
    """What all stages of a release work on; ``sha256`` is the digest of the manifest's file."""

    options: Options
    manifest: M
    sha256: str
    opened: list[Annotator] = field(default_factory=list)
    """Who may hold models and connections."""

    @property
    def file(self) -> Path:
        """The manifest's file, with which errors begin."""
        return self.options.manifest

    @property
    def output(self) -> Path:
        """The folder that it is made in."""
        return self.options.output

    @property
    def datasets(self) -> Path:
        """Where its datasets go."""
        return self.output / DATASETS

    def close(self) -> None:
        """Let go of all teachers: what comes next may want their memory. The next use opens them again."""
        for annotator in self.opened:
            annotator.close()


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a stage: what there is to say, and what the lock counts."""

    summary: str = ""
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage(Generic[M]):
    """Something to make of a release; several stages of one ``name`` are one part, made or left out together."""

    release: Release[M]
    name: str
    kind: ClassVar[type] = Manifest
    """The manifests that may name it."""
    part: ClassVar[str] = ""
    key: ClassVar[str] = ""
    """Without which a manifest does not name it; empty of what every release has."""
    trains: ClassVar[bool] = False
    """Whether it goes by ``--skip-training``."""
    note: ClassVar[str] = ""
    """What a dry run says below the costs, if there are any of this."""

    @classmethod
    def named_in(cls, release: Release[Any]) -> "Iterator[Stage[Any]]":
        """The stages of this class that a release's manifest names: one called ``part``, if it has the ``key``."""
        if not cls.key or getattr(release.manifest, cls.key):
            yield cls(release, cls.part)

    @property
    def needs(self) -> Collection[str]:
        """The parts that have to be there."""
        return ()

    @property
    def follows(self) -> str:
        """A part without which it is made otherwise: once that is made, it is made again."""
        return ""

    def validate(self) -> None:
        """Raise ``UserError`` with the key of the manifest's entry that is wrong."""

    def check(self) -> None:
        """Raise ``UserError``, before anything is made, if it could not be made."""

    def look(self) -> None:
        """Raise ``UserError`` for a bad file that is named; a dry run looks, too."""

    def preface(self, forecast: Forecast) -> str:
        """What a dry run says above the costs."""
        return ""

    def price(self, forecast: Forecast) -> Iterable[Cost]:
        """What it takes, at most where prompts depend on replies."""
        return ()

    def owed(self) -> Iterable[str]:
        """What it can't be made without and is not here, a line each."""
        return ()

    def make(self) -> Result:
        """Make it, going on where an earlier run was stopped."""
        raise NotImplementedError

    def refuse_failed(self, failed: int) -> None:
        """Raise ``UserError`` where questions of an evaluation ``failed``, unless the release is to be locked so."""
        if failed and not self.release.options.keep_failed:
            raise UserError(
                f"{self.name}: {failed:,} questions failed, so the part is not locked; run the same command again: "
                f"only they are asked. With {KEEP_FAILED} it is locked as it is, and they count as wrong"
            )
