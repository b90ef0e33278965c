"""What of a release folder goes to which Hub repo."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from releases import report
from releases.lock import read_lock
from safe_stepwise.errors import UserError
from safe_stepwise.store import names
from safe_stepwise.store.boundary import read_object
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.terminal import shown

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MODEL_WEIGHTS = f"{names.TUNED}/model.safetensors"
"""Of a model that was tuned as a whole."""
HUB_FILE = ".gitattributes"
"""The Hub's own file, which it writes when a repo is made."""

Kind = Literal["dataset", "model", "space"]
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")


@dataclass(frozen=True)
class LocalFile:
    """One file of a repo, by the path it has there."""

    path: str
    content: Path | bytes
    """Where it lies; or what it holds, when that is made for the Hub (a merged card)."""
    size: int
    """In bytes."""
    origin: str = ""
    """The file of the release that it is, or is made of; empty of one that is made on the way."""

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal, of the content."""
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        return sha256_of(self.content)

    @cached_property
    def git_oid(self) -> str:
        """Git's own digest of the content, by which the Hub names files that are not large."""
        head = b"blob %d\0" % self.size
        return hashlib.sha1(head + self.read()).hexdigest()

    def read(self) -> bytes:
        """The whole content."""
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


@dataclass(frozen=True)
class Artifact:
    """One repo of a release: what it is called, and what it is to hold."""

    kind: Kind
    repo: str
    """``namespace/name``."""
    folder: str
    """Where it lies in the release, with forward slashes."""
    files: tuple[LocalFile, ...]

    @property
    def card(self) -> LocalFile | None:
        """Its README.md, if there is one."""
        return next((file for file in self.files if file.path == names.README), None)

    @property
    def url(self) -> str:
        """The repo as the Hub's addresses have it.

        >>> Artifact("dataset", "ns/safe-noise-labels", "datasets/safe-noise-labels", ()).url
        'datasets/ns/safe-noise-labels'
        """
        return self.repo if self.kind == "model" else f"{self.kind}s/{self.repo}"


@dataclass(frozen=True, slots=True)
class Collection:
    """What the repos of a release are put into."""

    title: str
    about: str


SAFE = Collection(
    "Stepwise atomic feedback (SAFE)", "Verified multi-hop QA, step-level verifiers and the stepwise metric"
)
PROPOSING = Collection(
    "Relation paths (Deliberation on Priors)",
    "Relation paths of questions over knowledge graphs, and adapters that propose them",
)


@dataclass(frozen=True)
class Release:
    """A folder that ``scripts.regenerate`` made, read."""

    root: Path
    version: str
    lock: Mapping[str, Any]
    lock_sha256: str
    artifacts: tuple[Artifact, ...]
    left_out: tuple[str, ...]
    """Files that belong to no repo (lists of what was refused, an ablation's adapters)."""
    too_long: tuple[str, ...] = ()
    """Of them, those of reports that are more than is published of one file."""

    @property
    def collection(self) -> Collection:
        """Where its repos belong."""
        return PROPOSING if _paths_sets(self.root) else SAFE


def read_release(root: Path, namespace: str) -> Release:
    """The artifacts that are there; ``adapter/`` and ``space/`` may be absent.

    Reports go into the repo of the verified benchmarks (`releases.report`), or of relation paths.

    Raises UserError for a folder without a lock (a build that has not ended), a version that is no
    ``vMAJOR.MINOR.PATCH``, a namespace that can't be one, and a folder with nothing to publish.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise UserError(f"--namespace {namespace!r} is no user or organization of the Hub")
    if not (root / names.LOCK).is_file():
        raise UserError(
            f"{root}: has no {names.LOCK}, so it is no finished release; make one with "
            "safe-stepwise regenerate MANIFEST --output DIR"
        )
    lock = read_lock(root)
    version = names.known_version(lock["version"])
    artifacts = tuple(_artifacts(root, namespace))
    if not artifacts:
        raise UserError(f"{root}: holds no dataset, adapter or Space to publish")
    published = {file.origin for artifact in artifacts for file in artifact.files} | {names.LOCK}
    left_out = tuple(path for path in walk(root) if path not in published)
    long = tuple(path.relative_to(root).as_posix() for path in report.too_long(root))
    return Release(root, version, lock, sha256_of(root / names.LOCK), artifacts, left_out, long)


def walk(folder: Path) -> list[str]:
    """Every file below a folder by its path there; links and hidden files too."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _artifacts(root: Path, namespace: str) -> list[Artifact]:
    sets, paths = (*names.SETS, names.PATH_PROBE), _paths_sets(root)
    repos: list[tuple[Kind, str, str]] = [("dataset", name, f"{names.DATASETS}/{name}") for name in (*sets, *paths)]
    if (root / names.ADAPTER).is_dir():
        repos.append(("model", _adapter_repo(root / names.ADAPTER), names.ADAPTER))
    if (root / names.GENERATOR).is_dir():
        repos.append(
            ("model", names.model_repo(names.GENERATOR_KIND, _tuned_base(root / names.GENERATOR)), names.GENERATOR)
        )
    repos.append(("space", names.METRIC, names.SPACE))
    artifacts = []
    for kind, name, folder in repos:
        if (root / folder).is_dir():
            files = _files(root, root / folder, [root / folder / path for path in walk(root / folder)])
            if name == (paths[0] if paths else names.VERIFIED):
                files += _files(root, root, report.published(root))
            artifacts.append(Artifact(kind, f"{namespace}/{name}", folder, files))
    return artifacts


def _paths_sets(root: Path) -> list[str]:
    """The sets of relation paths in a release."""
    return sorted(path.name for path in (root / names.DATASETS).glob(names.PATHS_SETS) if path.is_dir())


def _adapter_repo(adapter: Path) -> str:
    """What an adapter is called after: its base model, and its rows if these are paths."""
    if (adapter / names.TUNED).is_dir():
        return names.model_repo(names.VERIFIER_KIND, _tuned_base(adapter))
    file = adapter / ADAPTER_CONFIG
    base = read_object(file).get("base_model_name_or_path")
    if not isinstance(base, str):
        raise UserError(f"{file}: names no base model; was the adapter saved by peft?")
    record = adapter / names.TRAINING
    learnt = read_object(record).get("dataset") if record.is_file() else None
    name = str(learnt.get("name")) if isinstance(learnt, dict) else ""
    return names.model_repo(name if fnmatch(name, names.PATHS_SETS) else names.VERIFIER_KIND, base)


def _tuned_base(model: Path) -> str:
    """The base of a model that was tuned as a whole."""
    base = read_object(model / names.TRAINING).get("base_model")
    name = base.get("name") if isinstance(base, dict) else None
    if not isinstance(name, str):
        raise UserError(f"{model / names.TRAINING}: names no base model; was the model trained here?")
    return name


def _files(root: Path, base: Path, paths: Sequence[Path]) -> tuple[LocalFile, ...]:
    """Files of a release by the paths that they have below ``home``."""
    if link := next((path for path in paths if path.is_symlink()), None):
        raise UserError(f"{link}: a link; a release is made of plain files")
    for path in paths:
        if fault := _unfit(path, is_dataset=names.DATASETS in path.relative_to(root).parts):
            raise UserError(f"{shown(path)}: {fault}; take it out of the release")
    places = [(path.relative_to(base).as_posix(), path.relative_to(root).as_posix(), path) for path in paths]
    return tuple(LocalFile(name, path, path.stat().st_size, origin) for name, origin, path in places)


_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt", ".bin")


def _unfit(path: Path, *, is_dataset: bool) -> str:
    """Why a file is published by nobody, whatever a lock says of it; nothing where it may be."""
    if not path.name.isprintable():
        return "its name holds characters that are not seen"
    with path.open("rb") as file:
        head = file.read(2)
        # Weights may begin so, too: with the length of their header.
        is_pickled = head[:1] == b"\x80" and head[1:] in b"\x02\x03\x04\x05" and path.suffix != ".safetensors"
        if is_pickled or path.suffix.lower() in _PICKLES:
            return "a pickle, which runs what it holds where it is loaded"
    if is_dataset and path.suffix.lower() == ".py":
        return "a script among a dataset's files, which loading could run"
    return ""
