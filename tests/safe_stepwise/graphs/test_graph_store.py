"""The graph store: its steps, its search for paths and their chains agree with a walk edge by edge."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from safe_stepwise.graphs import graph_store
from safe_stepwise.graphs.graph_store import GraphStore, NamedTriple, instances, inverse, read_triples, search_paths
from safe_stepwise.records import RelationPath
from tests.makers.films import execute

EVERY = 10**6
NAMES = ["Oru", "oru", "Ana Vorr", "1901", "a|b", "Ünï", "x"]
RELATIONS = ["by", "in", "By"]
triples_of_a_graph = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(RELATIONS), st.sampled_from(NAMES)), max_size=14
)


def edges(triples: list[NamedTriple]) -> set[NamedTriple]:
    return set(triples) | {(t, inverse(r), h) for h, r, t in triples}


def walked(triples: list[NamedTriple], chain: tuple[str, ...], path: RelationPath) -> set[tuple[str, ...]]:
    """All chains along a path, by looking at every edge for every hop."""
    found = {chain}
    for relation in path:
        found = {(*one, t) for one in found for h, r, t in edges(triples) if (h, r) == (one[-1], relation)}
    return found


def paths_from(graph: GraphStore, topic: str, hops: int) -> list[tuple[str, ...]]:
    return sorted(search_paths(graph, topic, hops), key=lambda path: (len(path), path))


@given(triples_of_a_graph, st.lists(st.sampled_from([*RELATIONS, *map(inverse, RELATIONS)]), min_size=1, max_size=3))
def test_chains_are_those_of_the_edges_but_for_those_that_come_back(
    triples: list[NamedTriple], relations: list[str]
) -> None:
    path, graph = tuple(relations), GraphStore(triples)
    for topic in (*NAMES, "nobody"):
        chains = {c for c in walked(triples, (topic,), path) if topic not in c[1:]}
        assert execute(graph, topic, path) == {c[-1] for c in chains}
        assert list(instances(graph, topic, path, EVERY)) == sorted(chains)


@given(triples_of_a_graph)
def test_steps_are_those_of_the_edges(triples: list[NamedTriple]) -> None:
    graph = GraphStore(triples)
    nodes = graph.nodes([*NAMES, "nobody"])
    steps = graph.steps(nodes)
    assert {relation: {*graph.names(ends)} for relation, ends in steps.items()} == {
        relation: {tail for _, r, tail in edges(triples) if r == relation} for _, relation, _ in edges(triples)
    }
    assert {*graph.relations} == {relation for r in {r for _, r, _ in triples} for relation in (r, inverse(r))}
    assert all(graph.follow(nodes, relation) == steps[relation] for relation in graph.relations)
    assert graph.follow(nodes, "unheard of") == set()


@given(triples_of_a_graph, st.sampled_from(NAMES))
def test_a_search_finds_each_path_that_leads_somewhere_and_no_other(triples: list[NamedTriple], topic: str) -> None:
    graph = GraphStore(triples)
    found = search_paths(graph, topic, 2)
    both = [*RELATIONS, *map(inverse, RELATIONS)]
    every = [(one,) for one in both] + [(one, two) for one in both for two in both]
    reached = {path: execute(graph, topic, path) for path in every}
    assert {path: frozenset(graph.names(ends)) for path, ends in found.items()} == {
        path: ends for path, ends in reached.items() if ends
    }


@given(triples_of_a_graph, st.sampled_from(NAMES), st.integers(1, 9))
def test_hop_by_hop_the_same_paths_are_found(triples: list[NamedTriple], topic: str, limit: int) -> None:
    graph = GraphStore(triples)
    found, pending = dict(search_paths(graph, topic, 3, limit=limit)), [()]
    assert len(found) <= limit or {len(path) for path in found} == {1}
    while pending:
        further = search_paths(graph, topic, 3, pending.pop(), limit)
        deepest = max(map(len, further), default=0)
        pending += [path for path in further if len(path) == deepest]
        found |= further
    assert found == search_paths(graph, topic, 3)


DENSE = [(f"e{one}", f"r{(one * other) % 7}", f"e{other}") for one in range(40) for other in range(40) if one != other]


def test_a_dense_graph_is_searched_as_far_as_a_bound_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(graph_store, "MAX_PATHS", 300)
    graph = GraphStore(DENSE)
    graph_store._note_cut.cache_clear()
    assert paths_from(graph, "e1", 6) == paths_from(graph, "e1", 2) == paths_from(graph, "e1", 10**12)
    assert {len(path) for path in paths_from(graph, "e1", 6)} == {1, 2}
    (line,) = capsys.readouterr().err.splitlines()  # once
    assert line.startswith("note: from 'e1' paths of up to 2 relations are searched: 3 would be more than 300 paths")
    monkeypatch.setattr(graph_store, "MAX_PATHS", 10**9)
    monkeypatch.setattr(graph_store, "MAX_REACHED", 200)
    graph_store._note_cut.cache_clear()
    assert len(paths_from(GraphStore(DENSE), "e1", 6)[-1]) <= 2
    assert "200 entities on the way" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_chains_of_a_dense_graph_are_visited_as_far_as_a_bound_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = GraphStore([*DENSE, ("e1", "only", "end")])
    nowhere = ("r1", "r2", "r3", "r1", "r2", "r3", "~only")  # leads to the topic alone: dead ends without end
    whole = list(instances(graph, "e1", ("r1", "r2"), EVERY))
    monkeypatch.setattr(graph_store, "MAX_VISITED", 2_000)
    assert list(instances(graph, "e1", nowhere, EVERY)) == []
    assert list(instances(graph, "e1", ("r1", "r2"), EVERY)) == whole
    assert len(list(instances(graph, "e1", ("r1", "r2", "r3"), 5))) == 5
    assert len(list(instances(graph, "e1", ("r1", "r2", "r3", "r4"), EVERY))) < 2_000


def test_a_step_is_the_callers_own() -> None:
    graph = GraphStore([("Oru", "by", "Ana")])
    graph.steps(graph.nodes(["Oru"]))["by"].clear()
    assert graph.names(graph.follow(graph.nodes(["Oru"]), "by")) == ["Ana"]


def test_a_relation_that_looks_like_a_backward_one_is_refused() -> None:
    with pytest.raises(ValueError, match="begins with '~'"):
        GraphStore([("a", "~by", "b")])


@pytest.mark.parametrize("mark", ["|", "\t"])
@pytest.mark.parametrize("packed", [False, True])
def test_triples_are_read_from_lines_however_packed(mark: str, packed: bool, tmp_path: Path) -> None:
    text = f"Oru{mark}by{mark} Ana \r\n\nVel{mark}by{mark}Ana\n".encode()
    file = tmp_path / "kb.txt"
    file.write_bytes(gzip.compress(text) if packed else text)
    assert list(read_triples(file)) == [("Oru", "by", " Ana "), ("Vel", "by", "Ana")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a|b|c\na|b\n", r"kb.txt, line 2: is no triple \('a\|b'\)"),
        (b"a|b|c\na||c\n", "kb.txt, line 2"),
        (b"a|b|c|d\n", "kb.txt, line 1"),
        (b"a|b|\xff\n", "kb.txt, line 1: is no triple .'utf-8' codec"),
        (b"\n", "holds no triples"),
        (gzip.compress(b"a|b|c\n" * 99, mtime=0)[:-9], "cannot be read"),
    ],
)
def test_what_is_no_triple_is_told_with_its_line(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "kb.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=said):
        list(read_triples(file))
