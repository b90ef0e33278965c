"""The digest of what makes an artifact: modules, all that they import, and their data.

Stored work is named by it, so that a change of the code voids what that code could have changed,
and nothing else: another method, an engine that was not used or a report leave it alone.
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
"""The project's own, as far as they are there."""

REGISTRIES = (
    *("safe_stepwise.open", "safe_stepwise.methods"),
    *("builders.benchmarks", "builders.synthetic", "builders.paths.relation_readers"),
)
"""Modules that only look others up. Whoever uses one names what it found there, as an artifact does
not depend on everything that could have been found."""


@functools.cache
def code_digest(*modules: str, without: tuple[str, ...] = REGISTRIES) -> str:
    """SHA-256 (64 hex digits) of modules, by name, of all they import, and of the data beside them.

    Imports inside functions count. Modules ``without`` are not looked into unless they are named themselves, and
    modules of other projects never. The package's version is part of it. Raises ``ModuleNotFoundError`` for a module
    of this project that is not there.
    """
    sources = closure(modules, without)
    digest = hashlib.sha256(safe_stepwise.__version__.encode())
    for name in sorted(sources):
        digest.update(f"\0{name}\0".encode() + sources[name].content)
    for name, file in sorted(_data(sources).items()):
        digest.update(f"\0{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def modules_of(things: Iterable[object]) -> list[str]:
    """The modules of their classes, each once: the engines that a run used, say."""
    return sorted({type(thing).__module__ for thing in things})


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A module's file, its package, the names it imports, and its strings."""

    file: Path
    package: str
    content: bytes
    imports: tuple[str, ...]
    strings: frozenset[str]


def closure(modules: tuple[str, ...], without: tuple[str, ...] = ()) -> dict[str, SourceFile]:
    """The modules and all that they import, packages above them included, by name."""
    found: dict[str, SourceFile] = {}
    owed = list(modules)
    while owed:
        name = owed.pop()
        if name in found or (name in without and name not in modules):
            continue
        source = _source(name)
        if source is not None:
            found[name] = source
            owed += [*source.imports, name.rpartition(".")[0]]
        elif name in modules and name.partition(".")[0] in PACKAGES:
            raise ModuleNotFoundError(name)
    return found


_PARSING = threading.Lock()
"""Python 3.11 counts the depth of its parser once for all threads, and may stumble over it."""


@functools.cache
def _source(name: str) -> SourceFile | None:
    """None for what is no module of ours, such as a function that is imported from one."""
    root, *path = name.split(".")
    spec = importlib.util.find_spec(root) if root in PACKAGES else None
    if spec is None or not spec.submodule_search_locations:
        return None
    place = Path(spec.submodule_search_locations[0]).joinpath(*path)
    for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if file.is_file():
            content = file.read_bytes()
            with _PARSING:
                nodes = list(ast.walk(ast.parse(content)))
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            imports = [each for node in nodes for each in _imported(node, package)]
            values = (node.value for node in nodes if isinstance(node, ast.Constant))
            strings = frozenset(value for value in values if isinstance(value, str))
            return SourceFile(file, package, content, tuple(imports), strings)
    return None


def _imported(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
    return [base, *(f"{base}.{alias.name}" for alias in node.names)]


def _data(sources: Mapping[str, SourceFile]) -> dict[str, Path]:
    """What lies beside the modules and is no code.

    Of folders that are no packages, those that a module beside them names ("templates"), or any
    module with a file in them ("verification/extract").
    """
    every = frozenset[str]().union(*(source.strings for source in sources.values()))
    paths = {string.partition("/")[0] for string in every if "/" in string}
    found: dict[str, Path] = {}
    for source in sources.values():
        folder = source.file.parent
        for file in _files(folder, paths | source.strings):
            found[f"{source.package}/{file.relative_to(folder).as_posix()}"] = file
    return found


def _files(folder: Path, named: Set[str]) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name in named and not (entry / "__init__.py").exists():
            inside = (file for file in entry.rglob("*") if "__pycache__" not in file.parts)
            yield from filter(Path.is_file, inside)
        elif entry.is_file() and entry.suffix != ".py" and not entry.name.startswith("."):
            yield entry
