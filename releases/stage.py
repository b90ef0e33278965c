"""A stage of a release: what it needs, whether it could be made, what it takes, and its making."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from releases.manifest import Manifest
from releases.pricing import Cost, Forecast
from releases.release import M, Release


@dataclass(frozen=True, slots=True)
class Made:
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

    def make(self) -> Made:
        """Make it, going on where an earlier run was stopped."""
        raise NotImplementedError
