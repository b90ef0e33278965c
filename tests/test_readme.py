"""The README is short, what it shows runs and prints what it says, and its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
import yaml

import setup
from scripts import build_verified
from setup import LINK, make_links_absolute
from tests.docs.commands import ROOT, fences, python, run

README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = fences(ROOT / "README.md")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `make demo` has built the split that the README opens."""
    place = tmp_path_factory.mktemp("readme")
    manifest = yaml.safe_load((ROOT / "scripts/releases/demo.yaml").read_text("utf-8"))
    (build,) = (build for build in manifest["builds"] if build["split"] == "validation")
    named = [f"--{key}={build[key]}" for key in ("benchmark", "input", "split", "teacher")]
    build_verified.main([*named, "--output", str(place / "build/demo/datasets"), "--workers", "1"])
    return place


def test_it_is_short() -> None:
    assert len(README.split()) <= 900
    assert len(README.splitlines()) <= 165


def test_snippets_print_what_is_shown(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("SAFE_STEPWISE_CACHE", str(place / "replies.sqlite"))
    (place / "examples").symlink_to(ROOT / "examples")
    shown = ""
    kinds = " ".join(fence.language for fence in SHOWN)
    assert kinds == "bash bash text python text bash text bash python text bash text"
    for fence in SHOWN[1:]:  # the first are make's two commands
        if fence.language == "python":
            shown = python(fence.text, place)
        elif fence.language == "bash":
            shown = "".join(map(run, fence.commands))
        else:
            assert fence.text in shown


def test_its_two_commands_are_in_the_makefile() -> None:
    rules = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert {command.removeprefix("make ") for command in SHOWN[0].commands} <= rules


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(file: str) -> None:
    named = ROOT / file
    for page in sorted(named.glob("*.md")) if named.is_dir() else [named]:
        for _, _, target in LINK.findall(page.read_text("utf-8")):
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve()
            assert there.exists(), f"{page.name}: {target}"
            if anchor:
                heads = re.findall(r"^#+ (.+)$", there.read_text("utf-8"), re.MULTILINE)
                assert anchor in {_anchor(head) for head in heads}, f"{page.name}: {target}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("address", [None, "https://example.org/safe-stepwise"])
def test_no_link_is_relative_on_pypi(address: str | None) -> None:
    told = make_links_absolute(README, LINK, address)
    targets = re.findall(r"\]\(([^)]+)\)", told)
    assert all(target.startswith("https://") for target in targets)
    assert ("raw/main/docs/trace.svg" in told) == (address is not None)


def test_both_papers_can_be_cited() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    papers = [told["preferred-citation"], *told["references"]]
    assert [paper["url"][-2:] for paper in papers] == ["v1", "v2"]
    assert all(len(paper["authors"]) == 3 for paper in papers)
    shown = (ROOT / "cards" / "templates" / "_citation.md.jinja").read_text("utf-8")
    plain = re.sub(r"[{}]", "", shown)
    assert all(paper["title"] in plain for paper in papers)


def test_the_build_says_what_it_does_with_links() -> None:
    assert doctest.testmod(setup).attempted >= 2
    assert doctest.testmod(setup).failed == 0
