"""The pictures of measured faithfulness."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.faithfulness.tables import FILES, MOSAIC, draw_mosaic, lay_out_mosaic, render_files
from safe_stepwise.checking.faithfulness.groups import score_reasoning
from tests.browsing import BREAKOUTS

pytestmark = pytest.mark.usefixtures("rendered")

COUNTS = ("faithful", "unfaithful", "unjudgeable", "abstained", "unstructured", "failed")


def system(name: str, right: list[int], wrong: list[int], breaks: list[Any]) -> dict[str, Any]:
    questions = sum(right) + sum(wrong)
    table = {
        "right": dict(zip(COUNTS, right, strict=True)),
        "wrong": dict(zip(COUNTS, wrong, strict=True)),
        "unscored": 0,
        "spurious": dict.fromkeys(("value", "low", "high", "least", "most")) | {"of": 0},
        "gap": {"answer": 0.5, "reasoning": 0.4, "low": 0.1, "high": 0.2},
    }
    table["scores"] = score_reasoning(table["right"], table["wrong"])
    ruled = {"answers": {"exact_match": table, "rule": table}, "edits": None, "breaks": breaks}
    part = {"questions": questions, "rules": {"house": ruled, "paper": ruled}}
    return {
        "name": name, "method": "safe", "players": {"generator": name}, "options": {},
        "conditions": {}, "simulated": True, "taken": "only", "benchmarks": {"b": part},
        "all": part,
    }  # fmt: skip


def record(*systems: dict[str, Any]) -> dict[str, Any]:
    settings = {"rules": ["house", "paper"], "without_evidence": 0}
    return {"simulated": True, "settings": settings, "systems": [*systems], "paired": []}


BROKEN = [
    {"position": 2, "fault": "factual", "chains": 5, "right": 3},
    {"position": None, "fault": "missing", "chains": 2, "right": 1},
]
PLAIN = system("SAFE", [8, 2, 1, 0, 1, 0], [1, 4, 0, 2, 0, 1], BROKEN)
WHOLE = system("CoT", [3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [])


def test_the_same_numbers_give_the_same_picture() -> None:
    assert draw_mosaic(record(PLAIN, WHOLE)) == draw_mosaic(record(PLAIN, WHOLE))
    assert draw_mosaic(record(PLAIN)) != draw_mosaic(record(WHOLE, PLAIN))


def test_a_report_has_the_picture_and_its_page_shows_it() -> None:
    made = render_files(record(PLAIN, WHOLE))
    assert {*made} == {*FILES}
    assert f"]({MOSAIC})" in made["faithfulness.md"].decode()
    assert "Where chains break" in made["faithfulness.md"].decode()


def test_without_unfaithful_chains_there_is_nothing_to_say_of_breaks() -> None:
    assert "Where chains break" not in render_files(record(WHOLE))["faithfulness.md"].decode()


def test_names_are_drawn_and_not_written() -> None:
    """Nothing that a file says can become markup, and nothing is fetched."""
    hostile = system(" ".join(BREAKOUTS), [1] * 6, [1] * 6, BROKEN)
    root = ElementTree.fromstring(draw_mosaic(record(hostile)))
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "image", "foreignObject", "a", "text"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.lower().startswith("on") for name in attributes)
    links = [v for e in root.iter() for k, v in e.attrib.items() if k.endswith("href")]
    assert all(link.startswith("#") for link in links)


@given(st.lists(st.integers(0, 9), min_size=12, max_size=12))
def test_the_boxes_of_a_mosaic_fill_it_by_their_counts(counts: list[int]) -> None:
    boxes = [*lay_out_mosaic(system("s", counts[:6], counts[6:], [])["all"]["rules"]["house"])]
    assert sum(count for *_, count in boxes) == sum(counts)
    for _, _, width, _, _, height, count in boxes:
        assert width * height == pytest.approx(count / sum(counts))
