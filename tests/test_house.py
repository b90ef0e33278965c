"""The map of the house (DESIGN, section 2), drawn from the imports of every file.

Imports inside functions count. A room is a file or folder at the top of a package; a floor is one
above the highest that it imports.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
MIDDLE = ("builders", "trainers", "evaluators", "cards")
THIRD = ("releases",)
"""Imports every middle folder, which is what it is for."""
TOP = ("scripts", "studies", "examples")
PACKAGES = ("safe_stepwise", *MIDDLE, *THIRD, *TOP)
ADDRESSES = ("checker", "rewards")
"""Of users: modules that only hand names on, and so are no rooms."""
NOUNS = {"records", "taxonomy", "steps", "feedback", "scoring", "errors"}
TEXT = ("language", "graphs", "checking")
"""Knows what text means and never hears of a model; each room imports those before it alone."""
MODELS = ("engines", "prompts", "methods", "metric")
"""Asks models and never hears of an annotation; likewise."""
Graph = Mapping[str, frozenset[str]]


@cache
def files() -> Graph:
    """Every module with the modules of the house that it imports."""
    known = {}
    for path in paths():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        known[name.removesuffix(".__init__")] = path
    return {name: imported(path, name, known) for name, path in known.items()}


def paths() -> Iterator[Path]:
    """Every file of the house."""
    return (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))


def imported(path: Path, name: str, known: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return frozenset(found & set(known) - {name})


def rooms(package: str) -> Graph:
    """The rooms of a package: what stands at its top, with what each imports there."""
    inside = {name: name.split(".")[1] for name in files() if name.startswith(f"{package}.")}
    found: dict[str, set[str]] = {room: set() for room in inside.values()}
    for name, room in inside.items():
        found[room] |= {inside[other] for other in files()[name] if other in inside} - {room}
    return {room: frozenset(others) for room, others in found.items()}


def floors(graph: Graph) -> dict[str, int]:
    """The floor of each; raises for a circle, with those on it."""
    known: dict[str, int] = {}

    def floor(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise AssertionError("a circle: " + " -> ".join([*above[above.index(name) :], name]))
        if name not in known:
            below = (floor(other, (*above, name)) for other in sorted(graph[name]))
            known[name] = 1 + max(below, default=0)
        return known[name]

    for name in graph:
        floor(name, ())
    return known


def test_no_circle_and_no_long_way_down() -> None:
    assert max(floors(files()).values()) <= 13


@pytest.mark.parametrize("package", ["safe_stepwise", "builders", "evaluators", "trainers"])
def test_rooms_stand_in_no_circle(package: str) -> None:
    assert floors(rooms(package))


def test_the_ground_floor_is_small() -> None:
    assert len(rooms("safe_stepwise").keys() - {*ADDRESSES}) <= 19
    heights = floors(rooms("safe_stepwise"))
    del heights["register"]  # the address of one of the commands
    assert heights.pop("commands") <= 9  # stands above all others
    assert max(heights.values()) <= 8
    assert len(rooms("builders")) <= 8


@pytest.mark.parametrize("column", [TEXT, MODELS])
def test_a_column_imports_downwards(column: tuple[str, ...]) -> None:
    ground = NOUNS | {"store"}
    graph = rooms("safe_stepwise")
    for place, room in enumerate(column):
        # The metric opens what its caller names.
        above = {"open"} if room == "metric" else set()
        assert graph[room] <= ground | set(column[:place]) | above, room


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_only_hands_names_on(name: str) -> None:
    file = ROOT / "safe_stepwise" / f"{name}.py"
    told, *rest = ast.parse(file.read_text(encoding="utf-8")).body
    assert isinstance(told, ast.Expr)
    assert rest
    assert all(isinstance(node, ast.ImportFrom) for node in rest)


def test_only_players_join_the_columns() -> None:
    graph = rooms("safe_stepwise")
    joining = {r for r, others in graph.items() if others & set(TEXT) and others & set(MODELS)}
    assert joining == {"players"}
    assert not graph["engines"] & {"methods", "metric", "players", "open", *TEXT}
    assert graph["store"] <= NOUNS
    assert all(graph[noun] <= NOUNS | {"store"} for noun in NOUNS)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_middle_folder_imports_the_ground_and_itself(package: str) -> None:
    allowed = {package, "safe_stepwise", *(MIDDLE if package in (*THIRD, *TOP) else ())}
    allowed |= {*THIRD} if package in TOP else set()
    allowed |= {"scripts"} if package == "examples" else set()  # its command line
    allowed |= {"studies"} if package == "scripts" else set()
    for name, others in files().items():
        if name.split(".")[0] == package:
            strangers = {other for other in others if other.split(".")[0] not in allowed}
            assert not strangers, name


def test_no_function_is_long() -> None:
    sizes = {f"{path.relative_to(ROOT)}:{name}": lines for path in paths() for name, lines in sizes_of(path)}
    assert not {name: lines for name, lines in sizes.items() if lines > 60}
    assert median(sizes.values()) <= 9


def sizes_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a file with its lines, docstring and all."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1


def test_the_test_would_see_a_long_function(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    file.write_text("async def f():\n" + "    x = 1\n" * 60)
    assert [*sizes_of(file)] == [("1 f", 61)]


def test_the_test_would_see_a_circle() -> None:
    with pytest.raises(AssertionError, match="a -> b -> a"):
        floors({"a": frozenset({"b"}), "b": frozenset({"a"})})


def test_an_import_inside_a_function_counts(tmp_path: Path) -> None:
    file = tmp_path / "inner.py"
    file.write_text("def f():\n    from house import room\n    import house.door\n")
    assert imported(file, "x", ["house.room", "house.door"]) == {"house.room", "house.door"}
