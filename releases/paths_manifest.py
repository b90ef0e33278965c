"""Manifests of relation paths: a set of them, the adapter that learns it, and how that is measured.

A release is either of these or of verified questions (`releases.manifest`), never of both: each has
one adapter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from releases.reading import RecipeEntry, need_positive, need_seed, need_share, read_strictly
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import BLOCKS, REPORT, TEST, TRAIN, VALIDATION, known_version
from trainers.config import PathRecipe

EVALUATION = "deliberation"
"""The part, and the key, of how answers are measured."""
WAYS = ("constrained", "free")
"""How an adapter is asked: held to the paths that the graph has from a topic, or not."""
OWN_SFT = "{sft}"
"""In an engine's spec: the adapter that KTO went on from, as ``{adapter}`` is the published one."""
_SPLITS = (TRAIN, VALIDATION, TEST)


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """``paths.kb``, one of ``paths.questions``: a file beside the manifest, or of the Hub."""

    input: str
    sha256: str | None = None
    expected_rows: int | None = None
    """Of a source that is not at hand, for a dry run; nothing else goes by it."""

    @property
    def is_hub(self) -> bool:
        """Whether it is of the Hub, where what is meant is at a commit."""
        return "@" in self.input and not Path(self.input).exists()

    @property
    def is_here(self) -> bool:
        """Whether it can be read: what the Hub has is taken to be there."""
        return self.is_hub or Path(self.input).is_file()

    def located(self, beside: Path) -> Self:
        """With the path of a file."""
        file = replace(self, input=str(beside / self.input))
        return self if file.is_hub else file


@dataclass(frozen=True, slots=True)
class PathsEntry:
    """``paths``: what `safe-stepwise build_paths` makes, with its options."""

    benchmark: str
    questions: tuple[SourceEntry, ...]
    split: str = "train"
    kb: SourceEntry | None = None
    limit: int | None = None
    on_error: str = "stop"
    max_hops: int | None = None
    """The builder's own, if not said; so the next two."""
    negatives: int | None = None
    test_share: float | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options of the builder that are said."""
        names = ("limit", "max_hops", "negatives", "test_share")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def check(self) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        one_of(self.split, _SPLITS, "paths.split")
        one_of(self.on_error, ("stop", "keep"), "paths.on_error")
        need_positive(self, "paths.", "limit", "max_hops", "negatives")
        need_share(self.test_share, "paths.test_share")
        if not self.questions:
            raise UserError("paths.questions: name at least one file")
        if duplicates := [source.input for n, source in enumerate(self.questions) if source in self.questions[:n]]:
            raise UserError(f"paths.questions: {duplicates[0]} is there twice")


@dataclass(frozen=True, slots=True)
class ProposerEntry:
    """``adapter``: what learns the set. The last stage that is named is the one published."""

    sft: RecipeEntry
    kto: RecipeEntry | None = None
    splits: str = "template"
    """What train and test never share."""

    @property
    def stages(self) -> dict[str, RecipeEntry]:
        """The stages by their methods, in their order."""
        return {"sft": self.sft, **({} if self.kto is None else {"kto": self.kto})}

    def check(self) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        one_of(self.splits, ("question", "template"), "adapter.splits")
        for method, entry in self.stages.items():
            _check_stage(entry, method)


@dataclass(frozen=True, slots=True)
class DeliberationEntry:
    """``deliberation``: an evaluation as `safe-stepwise evaluate_deliberation` makes it."""

    paths: tuple[str, ...]
    """Who proposes, as ``--paths`` of the command has it; the first one heads the report."""
    questions: tuple[SourceEntry, ...] = ()
    """Those of the set itself, if none are named."""
    split: str = "test"
    held_out: bool = True
    """Whether questions are put that the adapter's split has in test, and no others."""
    per_hop: int | None = None
    ways: tuple[str, ...] = WAYS
    generator: str | None = None
    candidates: int | None = None

    def names(self, placeholder: str) -> bool:
        """Whether a model that the release trains is asked in it."""
        return any(placeholder in spec for spec in (*self.paths, self.generator or ""))

    @property
    def places(self) -> dict[str, str]:
        """Where in a release each way has its report: the first in the release's own."""
        first, *modes = self.ways
        return {first: REPORT, **{mode: f"{BLOCKS}/{mode}/{REPORT}" for mode in modes}}

    def check(self) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        one_of(self.split, _SPLITS, f"{EVALUATION}.split")
        need_positive(self, f"{EVALUATION}.", "per_hop", "candidates")
        for mode in self.ways:
            one_of(mode, WAYS, f"{EVALUATION}.ways")
        if not self.paths or not self.ways or len({*self.ways}) < len(self.ways):
            raise UserError(f"{EVALUATION}.paths and ways: name at least one, each way once")


@dataclass(frozen=True, slots=True)
class PathsManifest:
    """A manifest of relation paths."""

    version: str
    seed: int
    paths: PathsEntry
    adapter: ProposerEntry | None = None
    deliberation: DeliberationEntry | None = None

    @property
    def sources(self) -> dict[str, SourceEntry]:
        """All files that it is made from, by key."""
        sources = {} if self.paths.kb is None else {"paths.kb": self.paths.kb}
        evaluated = () if self.deliberation is None else self.deliberation.questions
        for key, questions in (("paths", self.paths.questions), (EVALUATION, evaluated)):
            sources |= {f"{key}.questions[{n}]": source for n, source in enumerate(questions)}
        return sources

    def check(self) -> None:
        """Raise ``UserError`` with the key that is wrong."""
        known_version(self.version)
        need_seed(self.seed)
        for entry in (self.paths, self.adapter, self.deliberation):
            if entry is not None:
                entry.check()
        for key, source in self.sources.items():
            need_positive(source, f"{key}.", "expected_rows")


def read_paths(values: Mapping[str, Any], beside: Path) -> PathsManifest:
    """A manifest from its YAML, paths ``beside`` it. Raises ``UserError`` with the key that is wrong."""
    if "builds" in values:
        raise UserError(
            "builds and paths: a release is of verified questions or of relation paths, as "
            "each has one adapter; write a manifest for either"
        )
    manifest = read_strictly(PathsManifest, values, beside)
    manifest.check()
    return manifest


def split_name(contender: str) -> tuple[str, str]:
    """The name that a contender is given, if any, and who it is.

    >>> split_name("KTO=vllm:m+{adapter}"), split_name("symbolic:error_rate=0.3")
    (('KTO', 'vllm:m+{adapter}'), ('', 'symbolic:error_rate=0.3'))
    """
    head, _, spec = contender.partition("=")
    return (head, spec) if spec and ":" not in head else ("", contender)


def _check_stage(entry: RecipeEntry, method: str) -> None:
    place = f"adapter.{method}"
    if "splits" in entry.change:
        raise UserError(f"{place}.change: splits are those of all stages; write adapter.splits")
    entry.check(place, PathRecipe, "start", key="")
    if (actual := entry.read(PathRecipe, dataset="-", output="-", start="-").method) != method:
        raise UserError(f"{place}: recipe: {entry.file} is of {actual}; name one of {method}")
