"""Computes the digest of the code that makes an artifact: modules, all their imports, and their data files.

Stored work is named by this digest, so a change of code invalidates only work that the code could have changed, and
not, for example, that of another method or engine.
"""

import ast
import functools
import hashlib
import importlib.util
import threading
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

import safe_stepwise

PACKAGES = ("safe_stepwise", "builders", "trainers", "evaluators", "cards", "releases", "scripts")
"""The project's own packages; some may be missing."""

REGISTRIES = (
    *("safe_stepwise.open", "safe_stepwise.methods"),
    *("builders.benchmarks", "builders.synthetic", "builders.paths.relation_readers"),
)
"""Modules that only look up other modules. A caller passes the modules that it looked up, as an
artifact does not depend on everything in a registry."""


@functools.cache
def code_digest(*modules: str, excluded: tuple[str, ...] = REGISTRIES) -> str:
    """Return the SHA-256 (64 hex digits) of modules (by name), all modules they import, and their data files.

    Imports inside functions count, as does the package's version. ``excluded`` modules count only if they are
    among ``modules``; modules of other projects never count. Raises ``ModuleNotFoundError`` for a missing module of
    this project.
    """
    sources = _find_sources(modules, excluded)
    digest = hashlib.sha256(safe_stepwise.__version__.encode())
    for name in sorted(sources):
        digest.update(f"\0{name}\0".encode() + sources[name].content)
    for name, file in sorted(_find_data_files(sources).items()):
        digest.update(f"\0{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def modules_of(instances: Iterable[object]) -> list[str]:
    """List the modules of the classes of some objects (such as the engines of a run), sorted, each once."""
    return sorted({type(instance).__module__ for instance in instances})


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """A module's file, its package, the names it imports, and its strings."""

    file: Path
    package: str
    content: bytes
    imports: tuple[str, ...]
    strings: frozenset[str]


def _find_sources(modules: tuple[str, ...], excluded: tuple[str, ...]) -> dict[str, _SourceFile]:
    sources: dict[str, _SourceFile] = {}
    pending = list(modules)
    while pending:
        name = pending.pop()
        if name in sources or (name in excluded and name not in modules):
            continue
        source = _read_source(name)
        if source is not None:
            sources[name] = source
            pending += [*source.imports, name.rpartition(".")[0]]
        elif name in modules and name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(name)
    return sources


_PARSER_LOCK = threading.Lock()
"""Python 3.11 counts its parser's depth once for all threads, so parsing in two threads may fail."""


@functools.cache
def _read_source(name: str) -> _SourceFile | None:
    """Read a module of this project; None for any other name, such as that of an imported function."""
    root, *path = name.split(".")
    spec = importlib.util.find_spec(root) if root in PACKAGES else None
    if spec is None or not spec.submodule_search_locations:
        return None
    stem = Path(spec.submodule_search_locations[0]).joinpath(*path)
    for file in (stem / "__init__.py", stem.with_name(f"{stem.name}.py")):
        if file.is_file():
            content = file.read_bytes()
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            return _SourceFile(file, package, content, *_parse_source(content, package))
    return None


def _parse_source(content: bytes, package: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names that a module of a package imports, and its strings."""
    with _PARSER_LOCK:
        nodes = list(ast.walk(ast.parse(content)))
    imports = tuple(module for node in nodes for module in _list_imports(node, package))
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return imports, frozenset(value for value in values if isinstance(value, str))


def _list_imports(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def _find_data_files(sources: Mapping[str, _SourceFile]) -> dict[str, Path]:
    """Find the files beside the modules, and in folders that a string of theirs names ("templates", "loop/verify")."""
    strings = frozenset[str]().union(*(source.strings for source in sources.values()))
    folders = {string.partition("/")[0] for string in strings if "/" in string}
    data: dict[str, Path] = {}
    for source in sources.values():
        parent = source.file.parent
        for file in _list_files(parent, folders | source.strings):
            data[f"{source.package}/{file.relative_to(parent).as_posix()}"] = file
    return data


def _list_files(parent: Path, folders: Set[str]) -> Iterator[Path]:
    for entry in parent.iterdir():
        if entry.is_dir() and entry.name in folders and not (entry / "__init__.py").exists():
            entries = (file for file in entry.rglob("*") if "__pycache__" not in file.parts)
            yield from filter(Path.is_file, entries)
        elif entry.is_file() and entry.suffix != ".py" and not entry.name.startswith("."):
            yield entry
