"""Questions over a graph as they are put: their graphs, their record, their gold paths."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.paths import weak
from builders.paths.questions import BEST, DERIVED, Questions
from builders.paths.weak import explore
from safe_stepwise.errors import UserError
from tests.makers import films


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that are searched from, as they are."""
    found = list[str]()

    def told(graph, topic, *rest):  # type: ignore[no-untyped-def]
        found.append(topic)
        return explore(graph, topic, *rest)

    monkeypatch.setattr(weak, "explore", told)
    return found


def test_where_hops_are_told_gold_paths_do_not_depend_on_what_is_put(tmp_path: Path, searched: list[str]) -> None:
    kb, asked = films.written(tmp_path, 40)
    rows = Questions("metaqa", (str(asked),), "test", kb, 3)
    size = len(rows.questions)
    every, origin = rows.find_gold_paths({}, range(size))
    few, told = rows.find_gold_paths({}, [3, 5])
    assert every == few
    assert (origin, told) == (DERIVED, DERIVED)
    assert len(searched) == 2 * size
    assert rows.find_gold_paths({}, [])[1] == ""
    assert len(searched) == 2 * size


def test_where_they_are_not_only_what_is_put_is_searched(tmp_path: Path, searched: list[str]) -> None:
    rows = [
        {"id": f"w{n}", "question": f"who made film {n}", "answer": [f"Ana {n}"],
         "q_entity": [f"Film {n}"], "a_entity": [f"Ana {n}"],
         "graph": [[f"Film {n}", "film.by", f"Ana {n}"]]}
        for n in range(4)
    ]  # fmt: skip
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = Questions("webqsp", (str(file),), "test", None, 2)
    gold, origin = asked.find_gold_paths({}, [1, 3])
    assert searched == ["Film 1", "Film 3"]
    assert [bool(paths) for paths in gold] == [False, True, False, True]
    assert origin == BEST
    assert asked.description["graph"] is None


def test_a_graph_that_is_none_is_named(tmp_path: Path) -> None:
    kb, asked = films.written(tmp_path, 1)
    kb.write_text("Oru|by|Ana\na|b\n")
    with pytest.raises(UserError, match=r"kb\.txt, line 2: is no triple \('a\|b'\)"):
        Questions("metaqa", (str(asked),), "test", kb, 3)
