"""Manifests of relation paths: a set of them, the adapter that learns it, and how that is measured.

A release is either of these or of verified questions (`releases.manifest`), never of both: each has
one adapter.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from releases.evaluations import OWN_ADAPTER, find_recipe
from releases.keys import check_keys, manifest_values, read_entry
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import ADAPTER, BLOCKS, PATHS, REPORT, SFT, TEST, TRAIN, VALIDATION, known_version

Method = Literal["sft", "kto"]
EVALUATION = "deliberation"
"""The part, and the key, of how answers are measured."""
WAYS = ("constrained", "free")
"""How an adapter is asked: held to the paths that the graph has from a topic, or not."""
OWN_SFT = "{sft}"
"""In an engine's spec: the adapter that KTO went on from, as `OWN_ADAPTER` is the published one."""


@dataclass(frozen=True, slots=True)
class KnownPaths:
    """What such a manifest may name, and who reads its recipes."""

    benchmarks: Collection[str]
    graphs: Collection[str]
    """Those of them whose graph is a file of its own."""
    baselines: Collection[str]
    """Who proposes paths and asks nobody."""
    check_engine: Callable[[str], object]
    """Raises ``UserError`` for a spec of no engine."""
    recipes: Path
    """A folder of ``NAME.yaml``."""
    check_recipe: Callable[[Path, Mapping[str, Any], Method], object]
    """Raises ``UserError`` for one of another method, or that can't be read, or changes of it that
    are none."""


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

    @property
    def sources(self) -> dict[str, SourceEntry]:
        """All that it is made from, by key."""
        found = {f"questions[{n}]": one for n, one in enumerate(self.questions)}
        return {**({} if self.kb is None else {"kb": self.kb}), **found}


@dataclass(frozen=True, slots=True)
class StageEntry:
    """``adapter.sft`` or ``adapter.kto``: a recipe of ours, or a YAML file beside the manifest."""

    recipe: Path
    change: Mapping[str, Any] | None = None
    """Keys of the recipe that are other here, as ``filters.negatives``."""


@dataclass(frozen=True, slots=True)
class ProposerEntry:
    """``adapter``: what learns the set. The last stage that is named is the one published."""

    sft: StageEntry
    kto: StageEntry | None = None
    splits: str = "template"
    """What train and test never share."""

    @property
    def stages(self) -> dict[Method, StageEntry]:
        """The stages in their order."""
        return {"sft": self.sft, **({} if self.kto is None else {"kto": self.kto})}


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

    @property
    def specs(self) -> str:
        """Everybody who is asked, in one text."""
        return " ".join((*self.paths, self.generator or ""))

    @property
    def places(self) -> dict[str, str]:
        """Where in a release each way has its report: the first in the release's own."""
        first, *others = self.ways
        return {first: REPORT, **{way: f"{BLOCKS}/{way}/{REPORT}" for way in others}}


@dataclass(frozen=True, slots=True)
class PathsManifest:
    """A manifest of relation paths; ``sha256`` is the file's own digest."""

    path: Path
    sha256: str
    version: str
    seed: int
    paths: PathsEntry
    adapter: ProposerEntry | None = None
    deliberation: DeliberationEntry | None = None

    @property
    def sources(self) -> dict[str, SourceEntry]:
        """All files that it is made from, by key."""
        asked = () if self.deliberation is None else self.deliberation.questions
        found = {f"paths.{key}": one for key, one in self.paths.sources.items()}
        return {**found, **{f"deliberation.questions[{n}]": one for n, one in enumerate(asked)}}

    @property
    def needs(self) -> dict[str, set[str]]:
        """Its parts in the order of their making, with those that each needs."""
        found: dict[str, set[str]] = {PATHS: set()}
        if self.adapter is not None:
            first = {} if self.adapter.kto is None else {SFT: {PATHS}}
            found |= {**first, ADAPTER: {PATHS, *first}}
        if (entry := self.deliberation) is not None:
            folders = ((SFT, OWN_SFT), (ADAPTER, OWN_ADAPTER))
            found[EVALUATION] = {PATHS, *(part for part, own in folders if own in entry.specs)}
        return found

    @property
    def trained(self) -> set[str]:
        """The parts that train."""
        return {SFT, ADAPTER}


def of_paths(path: Path) -> bool:
    """Whether a manifest is one of relation paths. Raises ``UserError`` as `read_paths`."""
    values, _ = manifest_values(path)
    return isinstance(values, dict) and PATHS in values


def read_paths(path: Path, known: KnownPaths) -> PathsManifest:
    """Read a manifest strictly: ``UserError`` names the file and the key that is wrong."""
    values, sha256 = manifest_values(path)
    try:
        if isinstance(values, dict) and "builds" in values:
            raise UserError(
                "builds and paths: a release is of verified questions or of relation paths, as "
                "each has one adapter; write a manifest for either"
            )
        check_keys(PathsManifest, values, "", given=("path", "sha256"))
        known_version(values["version"])
        adapter = values.get("adapter")
        return PathsManifest(
            path=path,
            sha256=sha256,
            version=values["version"],
            seed=values["seed"],
            paths=_paths(values["paths"], path.parent, known),
            adapter=None if adapter is None else _adapter(adapter, path.parent, known),
            deliberation=_deliberation(values, path.parent, known),
        )
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _paths(values: Any, beside: Path, known: KnownPaths) -> PathsEntry:
    entry = read_entry(PathsEntry, values, "paths.")
    one_of(entry.benchmark, known.benchmarks, "paths.benchmark")
    one_of(entry.split, (TRAIN, VALIDATION, TEST), "paths.split")
    one_of(entry.on_error, ("stop", "keep"), "paths.on_error")
    for name in ("limit", "max_hops", "negatives"):
        _least(getattr(entry, name), f"paths.{name}")
    if entry.test_share is not None and not 0 < entry.test_share < 1:
        raise UserError("paths.test_share: a share lies between 0 and 1")
    if not entry.questions:
        raise UserError("paths.questions: name at least one file")
    asked = tuple(_source(one, f"paths.questions[{n}]", beside) for n, one in enumerate(entry.questions))
    if twice := [one.input for n, one in enumerate(asked) if one in asked[:n]]:
        raise UserError(f"paths.questions: {twice[0]} is there twice")
    if entry.kb is None and entry.benchmark in known.graphs:
        raise UserError(f"paths.kb: {entry.benchmark} has its graph in a file of its own; name it")
    if entry.kb is not None and entry.benchmark not in known.graphs:
        raise UserError(f"paths.kb: rows of {entry.benchmark} bring their graph; leave it out")
    kb = None if entry.kb is None else _source(entry.kb, "paths.kb", beside)
    return replace(entry, questions=asked, kb=kb)


def _deliberation(manifest: Mapping[str, Any], beside: Path, known: KnownPaths) -> DeliberationEntry | None:
    if (values := manifest.get(EVALUATION)) is None:
        return None
    entry = read_entry(DeliberationEntry, values, f"{EVALUATION}.")
    one_of(entry.split, (TRAIN, VALIDATION, TEST), f"{EVALUATION}.split")
    for name in ("per_hop", "candidates"):
        _least(getattr(entry, name), f"{EVALUATION}.{name}")
    for way in entry.ways:
        one_of(str(way), WAYS, f"{EVALUATION}.ways")
    if not entry.paths or not entry.ways or len({*entry.ways}) < len(entry.ways):
        raise UserError(f"{EVALUATION}.paths and ways: name at least one, each way once")
    adapter = manifest.get("adapter") or {}
    has = {OWN_ADAPTER: bool(adapter), OWN_SFT: "kto" in adapter}
    for spec in (*entry.paths, *([entry.generator] if entry.generator else ())):
        _engine(spec, has, known)
    asked = tuple(_source(one, f"{EVALUATION}.questions[{n}]", beside) for n, one in enumerate(entry.questions))
    return replace(entry, questions=asked)


def _engine(said: Any, has: Mapping[str, bool], known: KnownPaths) -> None:
    """Raise ``UserError`` for who is neither a baseline nor an engine, or needs what is not made.

    It may have a name before it, as ``KTO=vllm:...``.
    """
    if not isinstance(said, str):
        raise UserError(f"{EVALUATION}.paths: has to be a list of texts")
    spec = named(said)[1]
    if spec in known.baselines:
        return
    for own, there in has.items():
        if own in spec and not there:
            what = "an adapter" if own == OWN_ADAPTER else "adapter.kto"
            raise UserError(f"{EVALUATION}.paths: {own} in {spec!r} stands for none; add {what}")
        spec = spec.replace(own, "x")
    try:
        known.check_engine(spec)
    except UserError as error:
        raise UserError(f"{EVALUATION}.paths: {said!r} is no baseline, and {error}") from None


def named(said: str) -> tuple[str, str]:
    """The name that a contender is given, if any, and who it is.

    >>> named("KTO=vllm:m+{adapter}"), named("symbolic:error_rate=0.3")
    (('KTO', 'vllm:m+{adapter}'), ('', 'symbolic:error_rate=0.3'))
    """
    head, _, rest = said.partition("=")
    return (head, rest) if rest and ":" not in head else ("", said)


def _source(values: Any, where: str, beside: Path) -> SourceEntry:
    entry = read_entry(SourceEntry, values, f"{where}.")
    _least(entry.expected_rows, f"{where}.expected_rows")
    file = replace(entry, input=str(beside / entry.input))
    return entry if file.is_hub else file


def _least(number: int | None, where: str) -> None:
    if number is not None and number < 1:
        raise UserError(f"{where}: has to be 1 or more")


def _adapter(values: Any, beside: Path, known: KnownPaths) -> ProposerEntry:
    entry = read_entry(ProposerEntry, values, "adapter.")
    one_of(entry.splits, ("question", "template"), "adapter.splits")
    stages = {name: _stage(one, name, beside, known) for name, one in entry.stages.items()}
    return replace(entry, sft=stages["sft"], kto=stages.get("kto"))


def _stage(values: Any, name: Method, beside: Path, known: KnownPaths) -> StageEntry:
    where = f"adapter.{name}"
    entry = read_entry(StageEntry, values, f"{where}.")
    file = find_recipe(entry.recipe, where, beside, known.recipes)
    change = dict(entry.change or {})
    if "splits" in change:
        raise UserError(f"{where}.change: splits are those of all stages; write adapter.splits")
    try:
        known.check_recipe(file, change, name)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    return StageEntry(file, change)
