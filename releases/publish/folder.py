"""The artifacts of a release folder: which files go to which repo of the Hub."""

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
from safe_stepwise.records import identity
from safe_stepwise.store import boundary, names, terminal
from safe_stepwise.store.files import sha256_of
from trainers.models import CONFIG

HUB_FILE = ".gitattributes"
"""The file that the Hub writes when a repo is created."""

RepoType = Literal["dataset", "model", "space"]
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt", ".bin")
"""Suffixes of files that are pickles, or may be."""


@dataclass(frozen=True)
class LocalFile:
    """A file to publish, with its path in the repo."""

    path: str
    content: Path | bytes
    """The file on disk, or the bytes of a file that is generated for the Hub, such as a merged card."""
    size: int
    """In bytes."""
    origin: str = ""
    """The path in the release of this file, or of the file from which it is generated; may be empty."""

    @cached_property
    def sha256(self) -> str:
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        return sha256_of(self.content)

    @cached_property
    def git_oid(self) -> str:
        """Git's digest of the content, which the Hub lists for files outside LFS."""
        return hashlib.sha1(b"blob %d\0" % self.size + self.read()).hexdigest()

    def read(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.read_bytes()


@dataclass(frozen=True)
class Artifact:
    """A repo of a release, and the files to publish in it."""

    kind: RepoType
    repo: str
    """``namespace/name``."""
    folder: str
    """The artifact's path in the release, with forward slashes."""
    files: tuple[LocalFile, ...]

    @property
    def card(self) -> LocalFile | None:
        """The repo's README.md, if there is one."""
        return next((file for file in self.files if file.path == names.README), None)

    @property
    def url(self) -> str:
        """The path of the repo in the Hub's addresses."""
        return self.repo if self.kind == "model" else f"{self.kind}s/{self.repo}"


@dataclass(frozen=True)
class FinishedRelease:
    """A finished release folder, ready to publish."""

    root: Path
    version: str
    lock: Mapping[str, Any]
    lock_sha256: str
    artifacts: tuple[Artifact, ...]
    left_out: tuple[str, ...]
    """Paths of files that are not published, such as lists of rejects and adapters of blocks."""
    too_long: tuple[str, ...] = ()
    """Paths of the files in ``left_out`` that would be published if they were shorter."""


def read_release(root: Path, namespace: str) -> FinishedRelease:
    """Read a finished release folder, which has at least one artifact to publish.

    The folder has a lock, or it is the ``--output`` of builds, whose datasets are published as they
    are. Reports go into the repo of the verified benchmarks, or of relation paths (`releases.report`). Raises
    ``UserError`` for any other folder, a version that is not ``vMAJOR.MINOR.PATCH``, and an impossible namespace.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise UserError(f"--namespace {namespace!r} is no user or organization of the Hub")
    is_build = not (root / names.LOCK).is_file()
    lock = _make_lock_of_builds(root) if is_build else read_lock(root)
    version = names.check_version(lock["version"])
    artifacts = tuple(_list_artifacts(root, namespace))
    if not artifacts:
        raise UserError(f"{root}: holds no dataset, adapter or Space to publish")
    published = {file.origin for artifact in artifacts for file in artifact.files} | {names.LOCK}
    left_out = tuple(path for path in walk(root) if path not in published)
    too_long = tuple(path.relative_to(root).as_posix() for path in report.long_files(root))
    lock_sha256 = identity(lock) if is_build else sha256_of(root / names.LOCK)
    return FinishedRelease(root, version, lock, lock_sha256, artifacts, left_out, too_long)


def datasets_in(root: Path) -> Path:
    """Return the folder with a release's datasets: ``datasets`` in it, or the ``--output`` of builds itself."""
    return root / names.DATASETS if (root / names.DATASETS).is_dir() else root


def _make_lock_of_builds(root: Path) -> dict[str, Any]:
    """Return the version and the digests of the datasets that builds wrote into a folder, in the form of a lock."""
    records = {}
    for name in (*names.SETS, names.PATH_PROBE):
        if (root / name).is_dir():
            statistics = sorted((root / name / names.STATISTICS).glob("*.json"))
            records[name] = {file.name: boundary.read_object(file) for file in statistics}
    versions = {str(record.get("version")) for by_file in records.values() for record in by_file.values()}
    if not versions:
        raise UserError(
            f"{root}: has no {names.LOCK}, so it is no finished release; make one with safe-stepwise regenerate "
            "MANIFEST --output DIR, or give the --output of build_verified"
        )
    if len(versions) > 1:
        raise UserError(f"{root}: holds builds of {' and '.join(sorted(versions))}; build all with the same --version")
    builds = [
        {name: record.get("files") for name, record in records[dataset].items()}
        for dataset in (names.VERIFIED, names.NOISE_LABELS)
        if dataset in records
    ]
    if builds[1:] and builds[0] != builds[1]:
        raise UserError(f"{root}: a build was interrupted in it; run the same build_verified again")
    paths = [f"{name}/{path}" for name in records for path in walk(root / name)]
    return {"version": versions.pop(), "files": {path: sha256_of(root / path) for path in paths}}


def walk(folder: Path) -> list[str]:
    """List the paths of all files below a folder, with links and hidden files, relative to it."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(path.relative_to(folder).as_posix() for path in files)


def _list_artifacts(root: Path, namespace: str) -> list[Artifact]:
    """List the artifacts whose folders a release has; its reports are files of the first set of questions or paths."""
    datasets = datasets_in(root)
    relation_paths = sorted(path.name for path in datasets.glob(names.PATHS_SETS) if path.is_dir())
    sets = (*names.SETS, names.PATH_PROBE, *relation_paths)
    repos: list[tuple[RepoType, str, str]] = [
        ("dataset", name, (datasets / name).relative_to(root).as_posix()) for name in sets
    ]
    if (root / names.ADAPTER).is_dir():
        repos.append(("model", _name_adapter_repo(root / names.ADAPTER), names.ADAPTER))
    if (generator := root / names.GENERATOR).is_dir():
        repos.append(("model", names.model_repo(names.GENERATOR_KIND, _read_base(generator)), names.GENERATOR))
    repos.append(("space", names.METRIC, names.SPACE))
    repo_with_reports = relation_paths[0] if relation_paths else names.VERIFIED
    artifacts = []
    for kind, name, folder in repos:
        if (root / folder).is_dir():
            folder_files = [root / folder / path for path in walk(root / folder)]
            files = _collect_files(root, root / folder, folder_files, is_dataset=kind == "dataset")
            if name == repo_with_reports:
                files += _collect_files(root, root, report.published_files(root), is_dataset=False)
            artifacts.append(Artifact(kind, f"{namespace}/{name}", folder, files))
    return artifacts


def _name_adapter_repo(adapter: Path) -> str:
    """Name an adapter's repo after its base model, and after its dataset if that is of relation paths."""
    if (adapter / names.TUNED).is_dir():
        return names.model_repo(names.VERIFIER_KIND, _read_base(adapter))
    file = adapter / CONFIG
    base = boundary.read_object(file).get("base_model_name_or_path")
    if not isinstance(base, str):
        raise UserError(f"{file}: names no base model; was the adapter saved by peft?")
    record = adapter / names.TRAINING
    dataset = boundary.read_object(record).get("dataset") if record.is_file() else None
    name = str(dataset.get("name")) if isinstance(dataset, dict) else ""
    return names.model_repo(name if fnmatch(name, names.PATHS_SETS) else names.VERIFIER_KIND, base)


def _read_base(model: Path) -> str:
    """Read the name of the base model from the training record of a model whose weights were all tuned."""
    base = boundary.read_object(model / names.TRAINING).get("base_model")
    name = base.get("name") if isinstance(base, dict) else None
    if not isinstance(name, str):
        raise UserError(f"{model / names.TRAINING}: names no base model; was the model trained here?")
    return name


def _collect_files(root: Path, base: Path, paths: Sequence[Path], *, is_dataset: bool) -> tuple[LocalFile, ...]:
    """Return files to publish, with paths in the repo relative to ``base``; raise ``UserError`` for bad files."""
    if link := next((path for path in paths if path.is_symlink()), None):
        raise UserError(f"{link}: a link; a release is made of plain files")
    files = []
    for path in paths:
        if fault := _find_fault(path, is_dataset=is_dataset):
            raise UserError(f"{terminal.sanitize(path)}: {fault}; take it out of the release")
        origin = path.relative_to(root).as_posix()
        files.append(LocalFile(path.relative_to(base).as_posix(), path, path.stat().st_size, origin))
    return tuple(files)


def _find_fault(path: Path, *, is_dataset: bool) -> str:
    """Return why a file must not be published, whatever the lock says; empty if it may be."""
    if not path.name.isprintable():
        return "its name holds characters that are not seen"
    with path.open("rb") as file:
        head = file.read(2)
        # Safetensors may begin with the same bytes: the length of their header.
        is_pickled = head[:1] == b"\x80" and head[1:] in b"\x02\x03\x04\x05" and path.suffix != ".safetensors"
        if is_pickled or path.suffix.lower() in _PICKLES:
            return "a pickle, which can run code when it is loaded"
    if is_dataset and path.suffix.lower() == ".py":
        return "a script among a dataset's files, which loading could run"
    return ""
