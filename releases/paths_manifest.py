"""Read the manifest of a release of relation paths, and check its entries.

The keys: ``paths`` (the dataset of paths over a knowledge graph), ``adapter`` (the training of a model that proposes
paths) and ``deliberation`` (the evaluation of these proposals). A *proposer* is what names relation paths for a
question: an adapter or a baseline. A release is of relation paths or of verified questions (`releases.manifest`),
never of both, as each has one adapter. Each ``check`` raises ``UserError`` with the key that is wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

from releases.manifest import OWN_ADAPTER, OnError
from releases.reading import RecipeEntry, read_strictly
from safe_stepwise.commands.values import Count, Natural, Part
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import BLOCKS, REPORT, check_version
from trainers.config import PathRecipe

EVALUATION = "deliberation"
"""The name of the evaluation, as a key of the manifest and as a part of the release."""
Mode = Literal["constrained", "free"]
"""Whether the adapter's proposals are constrained to the paths that the graph has from a topic."""
OWN_SFT = "{sft}"
"""In an engine's spec: the adapter after SFT, from which KTO starts. ``{adapter}`` is the published one."""
Split = Literal["train", "validation", "test"]


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source, such as ``paths.kb``: a file beside the manifest, or a file of the Hub."""

    input: str
    sha256: str | None = None
    expected_rows: Count | None = None
    """The number of rows of a missing source, which only a dry run uses."""

    @property
    def is_hub(self) -> bool:
        """Whether the input names a file of the Hub at a commit."""
        return "@" in self.input and not Path(self.input).exists()

    @property
    def is_available(self) -> bool:
        """Whether the source can be read; a file of the Hub counts as available."""
        return self.is_hub or Path(self.input).is_file()

    def resolve_input(self, folder: Path) -> Self:
        """Return the source with its file's path resolved against ``folder``."""
        source = replace(self, input=str(folder / self.input))
        return self if source.is_hub else source


@dataclass(frozen=True, slots=True)
class PathsEntry:
    """``paths``: a set of relation paths, by options of `safe-stepwise build_paths`; None is the builder's default."""

    benchmark: str
    questions: tuple[SourceEntry, ...]
    split: Split = "train"
    kb: SourceEntry | None = None
    """The knowledge graph; None if each question brings its own graph."""
    limit: Count | None = None
    on_error: OnError = "stop"
    max_hops: Count | None = None
    negatives: Count | None = None
    test_share: Part | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The builder's options that the entry sets."""
        names = ("limit", "max_hops", "negatives", "test_share")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def check(self) -> None:
        if not self.questions:
            raise UserError("paths.questions: name at least one file")
        files = [source.input for source in self.questions]
        if duplicates := [file for n, file in enumerate(files) if file in files[:n]]:
            raise UserError(f"paths.questions: {duplicates[0]} is there twice")


@dataclass(frozen=True, slots=True)
class ProposerEntry:
    """``adapter``: the stages of training on the set; the last stage's adapter is published."""

    sft: RecipeEntry
    kto: RecipeEntry | None = None
    splits: Literal["question", "template"] = "template"
    """Whether train and test share no question, or no template."""
    paths: Literal["single", "joint"] = "single"
    """Whether a reply names one path of a topic, or all of a question."""

    @property
    def stages(self) -> dict[str, RecipeEntry]:
        """The recipe of each stage by its method, in the order of training."""
        entries = {"sft": self.sft, **({} if self.kto is None else {"kto": self.kto})}
        shared = {"splits": self.splits, "paths": self.paths}
        return {method: replace(entry, change={**entry.change, **shared}) for method, entry in entries.items()}

    def check(self) -> None:
        for place, entry in (("adapter.sft", self.sft), ("adapter.kto", self.kto)):
            if entry and (shared_keys := {"splits", "paths"} & {*entry.change}):
                key = min(shared_keys)
                raise UserError(f"{place}.change: {key} are those of all stages; write adapter.{key}")
        for method, entry in self.stages.items():
            place = f"adapter.{method}"
            entry.check(place, PathRecipe, "start", key="")
            if (actual := entry.read(PathRecipe, dataset="-", output="-", start="-").method) != method:
                raise UserError(f"{place}: recipe: {entry.file} is of {actual}; name one of {method}")


@dataclass(frozen=True, slots=True)
class DeliberationEntry:
    """``deliberation``: the evaluation, with the options of `safe-stepwise evaluate_deliberation`."""

    paths: tuple[str, ...]
    """The proposers, as the command's ``--paths`` names them; the first one comes first in the report."""
    questions: tuple[SourceEntry, ...] = ()
    """The sources of the questions; if empty, those of the manifest's ``paths`` entry."""
    split: Split = "test"
    held_out: bool = True
    """Whether only questions of the adapter's test split are evaluated."""
    per_hop: Count | None = None
    draw: bool = False
    """Whether the ``per_hop`` questions of each number of hops are drawn at random; else they are the first ones."""
    ways: tuple[Mode, ...] = get_args(Mode)
    generator: str | None = None
    candidates: Count | None = None
    labels: Literal["gold", "weak"] = "gold"
    """Whether the baselines learn from the gold paths of the set, or from its weakly labelled ones."""

    def uses(self, placeholder: str) -> bool:
        return any(placeholder in spec for spec in (*self.paths, self.generator or ""))

    @property
    def report_folders(self) -> dict[str, str]:
        """The folder of each mode's report in the release; the first mode's is the release's own."""
        first, *modes = self.ways
        return {first: REPORT, **{mode: f"{BLOCKS}/{mode}/{REPORT}" for mode in modes}}

    def check(self) -> None:
        if not self.paths or not self.ways or len({*self.ways}) < len(self.ways):
            raise UserError(f"{EVALUATION}.paths and ways: name at least one, each way once")


@dataclass(frozen=True, slots=True)
class PathsManifest:
    """What a release of relation paths makes: the paths, an adapter that proposes them, evaluations of both."""

    version: str
    seed: Natural
    paths: PathsEntry
    adapter: ProposerEntry | None = None
    deliberation: DeliberationEntry | None = None

    @property
    def sources(self) -> dict[str, SourceEntry]:
        sources = {} if self.paths.kb is None else {"paths.kb": self.paths.kb}
        evaluated = () if self.deliberation is None else self.deliberation.questions
        for key, questions in (("paths", self.paths.questions), (EVALUATION, evaluated)):
            sources |= {f"{key}.questions[{n}]": source for n, source in enumerate(questions)}
        return sources

    @property
    def trained(self) -> list[str]:
        """The placeholders of the adapters that the release trains."""
        return [] if self.adapter is None else [OWN_ADAPTER, *([OWN_SFT] if self.adapter.kto else [])]

    def check(self) -> None:
        check_version(self.version)
        for entry in (self.paths, self.adapter, self.deliberation):
            if entry is not None:
                entry.check()


def read_paths(values: Mapping[str, Any], folder: Path) -> PathsManifest:
    """Read a manifest of relation paths whose file is in ``folder``; raise ``UserError`` with a wrong key."""
    if "builds" in values:
        raise UserError(
            "builds and paths: a release is of verified questions or of relation paths, as "
            "each has one adapter; write a manifest for either"
        )
    manifest = read_strictly(PathsManifest, values, folder)
    manifest.check()
    return manifest
