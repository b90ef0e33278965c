"""An external graph: how it is read, and what of it a question gets."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.faithfulness.measuring import HUB_SIZE, Options, read_knowledge
from safe_stepwise.errors import UserError
from safe_stepwise.language.text import normal_name
from safe_stepwise.records import Triple
from tests.makers.chains import BESIDE, FIRST, SECOND, measure, told

LINES = "Dune Rain|starred_actors|Ana Vorr\nThe Low Tide|directed_by|Kem Dall\n\nAna|knows|Kem\n"


def test_triples_of_what_is_named_are_found(tmp_path: Path) -> None:
    (plain := tmp_path / "kb.txt").write_text(LINES)
    (packed := tmp_path / "kb.txt.gz").write_bytes(gzip.compress(LINES.encode()))
    for file in (plain, packed):
        graph = read_knowledge(file)
        assert graph.record["triples"] == 3
        assert graph.triples_naming(["Who directed Low Tide (1931)?"]) == (
            Triple("The Low Tide", "directed_by", "Kem Dall"),
        )
        assert graph.triples_naming(["Anatol of Dune"]) == ()
        assert len(graph.triples_naming(["KEM DALL", "dune rain"])) == 2


def test_of_an_entity_with_many_triples_those_between_what_is_named(tmp_path: Path) -> None:
    lines = [f"Film {n}|in_language|Kelvian" for n in range(HUB_SIZE + 1)]
    (file := tmp_path / "kb.txt").write_text("\n".join(lines))
    graph = read_knowledge(file)
    assert graph.triples_naming(["Kelvian"]) == ()
    assert graph.triples_naming(["Is Film 7 in Kelvian?"]) == (Triple("Film 7", "in_language", "Kelvian"),)


@pytest.mark.parametrize(
    ("text", "told_of"),
    [("a|b\n", ", line 1: is no triple ('a|b')"), ("a|b|c\na||c\n", ", line 2:"), ("\n", "no triple")],
)
def test_what_is_no_graph_is_one_line(tmp_path: Path, text: str, told_of: str) -> None:
    (file := tmp_path / "kb.txt").write_text(text)
    with pytest.raises(UserError, match=r"kb\.txt") as raised:
        read_knowledge(file)
    assert told_of in str(raised.value)
    (tmp_path / "kb.gz").write_bytes(gzip.compress(b"a|b|c")[:-9])
    for name in ("kb.gz", "none.txt"):
        with pytest.raises(UserError, match="cannot be read"):
            read_knowledge(tmp_path / name)


names = st.text("ab é(.", min_size=1, max_size=6).map(str.strip).filter(normal_name)


@given(st.lists(st.tuples(names, names), min_size=1, max_size=8), st.data())
def test_a_name_alone_finds_all_its_triples(
    tmp_path_factory: pytest.TempPathFactory, ends: list[tuple[str, str]], data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("kb") / "kb.txt"
    file.write_text("".join(f"{head}|r|{tail}\n" for head, tail in ends))
    graph = read_knowledge(file)
    wanted = data.draw(st.sampled_from([end for pair in ends for end in pair]))
    if "(" in wanted:  # what stands in brackets tells no name from another
        return
    found = graph.triples_naming([wanted])
    same = [t for t in graph.triples if normal_name(wanted) in map(normal_name, (t.head, t.tail))]
    assert set(same) <= set(found)


def test_a_graph_adds_to_what_a_step_may_be(tmp_path: Path) -> None:
    """By the paper's rule a step beside the point is a fact once the graph has it."""
    (file := tmp_path / "kb.txt").write_text("Low Tide|shot in|Kel\n")
    asked, options = [told("q1", FIRST, BESIDE, SECOND)], Options(("paper",))
    (without,) = measure(asked, options)
    (known,) = measure(asked, replace(options, knowledge=read_knowledge(file)))
    assert without.verdicts["paper"].steps[1].fault == "factual"
    assert known.verdicts["paper"].steps[1].triples == (Triple("Low Tide", "shot in", "Kel"),)
