"""Both papers are cited wherever the method is, in the same words."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import cards
from safe_stepwise.store.boundary import parse_yaml
from tests.cards.test_adapter import readme
from tests.cards.test_release import overview
from tests.cards.test_verifier_steps import statistics

TEMPLATE = Path(cards.__file__).parent / "templates" / "_citation.md.jinja"
PATH_PROBE = TEMPLATE.with_name("path_probe.md.jinja")


def titles(text: str) -> list[str]:
    found = re.findall(r"title\s*= \{(.*)\},", text)
    return [title.replace("{", "").replace("}", "") for title in found]


def test_cards_cite_both_papers() -> None:
    both = titles(TEMPLATE.read_text("utf-8"))
    assert len(both) == 2
    for text in (readme(steps=statistics(examples=[])), overview()):
        assert titles(text)[:2] == both


def test_the_metric_cites_what_the_cards_do() -> None:
    both = titles(TEMPLATE.read_text("utf-8"))
    citation = parse_yaml(files("safe_stepwise").joinpath("metric", "space.yaml").read_bytes())["citation"]
    assert titles(citation) == [*both, *titles(PATH_PROBE.read_text("utf-8"))[-1:]]
    assert citation.count("Kwon, Daeyong and Yoon, Soyoung and Hwang, Seung-won") == 2
