"""Names say what a thing is: no definition and hardly a binding is called by an empty word.

A binding is a variable, a parameter, a field, an import's alias or an exception's name. In five
codebases of the field 0.1 to 1.2 of 1,000 lines have one with an empty name, and none of their
functions and classes has.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_house import ROOT, paths

EMPTY = frozenset(
    """
    found one ones said says say tell tells told asked ask asks known knows other others another of wanted want wants
    got given here there this that these those they them what which who whom whose where when how why thing things
    stuff foo made taken kept put seen left held shown named called meant done owed settled stated written drawn
    counted heard came went gone whole part parts either neither second third ours theirs mine own both each every same
    such most more less few several lot way ways bit now then so thus likewise at by to into within without about again
    also much many rest
    """.split()
)
BOUND = 1.5
"""Bindings with an empty name in 1,000 lines (the rule of issue 34; verifiers has 0.6, nanochat 1.2)."""


def is_empty(name: str) -> bool:
    return name.strip("_").lower() in EMPTY


def definitions(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each function and class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each variable, parameter, field, alias and caught exception."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, alias.asname) for alias in node.names if alias.asname)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.lineno, node.name


def parsed() -> Iterator[tuple[Path, str, ast.AST]]:
    for path in paths():
        source = path.read_text(encoding="utf-8")
        yield path.relative_to(ROOT), source, ast.parse(source)


def test_no_function_or_class_is_called_by_an_empty_word() -> None:
    assert [
        f"{path}:{line}: {name}" for path, _, tree in parsed() for line, name in definitions(tree) if is_empty(name)
    ] == []


def test_hardly_a_binding_is_called_by_an_empty_word() -> None:
    lines, places = 0, []
    for path, source, tree in parsed():
        lines += source.count("\n")
        places += [f"{path}:{line}: {name}" for line, name in bindings(tree) if is_empty(name)]
    assert len(places) <= BOUND * lines / 1000, "\n".join(places)


@pytest.mark.parametrize(
    "source",
    [
        "found = 1", "def f(told): ...", "[one for one in rows]", "class C:\n    said: str", "import json as other",
        "try: f()\nexcept E as what: ...", "for _, known in rows: ...", "with f() as made: ...", "lambda own: own",
        "if (got := f()): ...", "def f(*, _parts=()): ...",
    ],
)  # fmt: skip
def test_the_test_would_see_an_empty_binding(source: str) -> None:
    assert sum(is_empty(name) for _, name in bindings(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source", ["def told(): ...", "class Found: ...", "class C:\n    async def _asked(self): ..."]
)
def test_the_test_would_see_an_empty_definition(source: str) -> None:
    assert sum(is_empty(name) for _, name in definitions(ast.parse(source))) == 1
