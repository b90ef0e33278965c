"""Graph stores: both agree on everything, and so do path search and a walk edge by edge."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.errors import UserError
from safe_stepwise.graphs import store
from safe_stepwise.graphs.sqlite_store import SqliteGraph, build_sqlite
from safe_stepwise.graphs.store import (
    CONVENTIONS,
    GraphStore,
    MemoryGraph,
    NamedTriple,
    instances,
    inverse,
    read_triples,
    search,
)
from safe_stepwise.records import RelationPath
from tests.makers.films import execute

NAMES = ["Oru", "oru", "Ana Vorr", "1901", "a|b", "Ünï", "x"]
RELATIONS = ["by", "in", "By"]
triples_of_a_graph = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(RELATIONS), st.sampled_from(NAMES)), max_size=14
)


def on_disk(triples: list[NamedTriple], folder: str) -> SqliteGraph:
    file = Path(folder, "graph.sqlite")
    build_sqlite(file, triples)
    return SqliteGraph(file)


def edges(triples: list[NamedTriple]) -> set[NamedTriple]:
    return set(triples) | {(t, inverse(r), h) for h, r, t in triples}


def walked(triples: list[NamedTriple], chain: tuple[str, ...], path: RelationPath) -> set[tuple[str, ...]]:
    """All chains along a path, by looking at every edge for every hop."""
    found = {chain}
    for relation in path:
        found = {(*one, t) for one in found for h, r, t in edges(triples) if (h, r) == (one[-1], relation)}
    return found


def allowed(chain: tuple[str, ...], convention: str) -> bool:
    if convention == "no_topic":
        return chain[0] not in chain[1:]
    return convention == "walk" or len(set(chain)) == len(chain)


def paths_from(graph: GraphStore, topic: str, hops: int) -> list[tuple[str, ...]]:
    start = graph.node(topic)
    found = {} if start is None else search(graph, start, hops)
    return sorted(found, key=lambda path: (len(path), path))


@given(triples_of_a_graph, st.lists(st.sampled_from([*RELATIONS, *map(inverse, RELATIONS)]), max_size=3))
def test_both_stores_walk_as_the_edges_say(triples: list[NamedTriple], relations: list[str]) -> None:
    path = tuple(relations)
    with tempfile.TemporaryDirectory() as folder:
        memory, disk = MemoryGraph(triples), on_disk(triples, folder)
        assert memory.relations == disk.relations
        for topic in (*NAMES, "nobody"):
            known = {name for h, _, t in triples for name in (h, t)}
            for convention in CONVENTIONS:
                chains = {c for c in walked(triples, (topic,), path) if allowed(c, convention)}
                chains = chains if topic in known else set()
                for graph in (memory, disk):
                    assert execute(graph, topic, path, convention) == {c[-1] for c in chains}
                    assert instances(graph, topic, path, convention) == sorted(chains)
            assert paths_from(memory, topic, 2) == paths_from(disk, topic, 2)
        disk.close()


@given(triples_of_a_graph)
def test_both_stores_take_the_same_steps(triples: list[NamedTriple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(triples, folder)
        told = []
        graphs: tuple[GraphStore, GraphStore] = (MemoryGraph(triples), disk)
        for graph in graphs:
            nodes = [n for name in NAMES if (n := graph.node(name)) is not None]
            steps = graph.steps(nodes)
            assert all(graph.follow(nodes, r) == steps.get(r, set()) for r in graph.relations)
            assert graph.follow(nodes, "unheard of") == set()
            told.append({r: sorted(graph.names(ends)) for r, ends in steps.items()})
        assert told[0] == told[1]
        for most in (0, 2, 99):
            ranges = [{r: {*graph.names(ends)} for r, ends in graph.ranges(most).items()} for graph in graphs]
            assert ranges[0] == ranges[1]
        led_to: dict[str, set[str]] = {}
        for _, relation, tail in edges(triples):
            led_to.setdefault(relation, set()).add(tail)
        assert ranges[0] == led_to
        disk.close()


@given(triples_of_a_graph)
def test_what_a_relation_leads_to_is_whole(triples: list[NamedTriple]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        disk = on_disk(triples, folder)
        for name in {name for h, _, t in triples for name in (h, t)}:
            node = disk.node(name)
            assert node is not None
            for relation in disk.relations:
                ends = {t for h, r, t in edges(triples) if (h, r) == (name, relation)}
                assert set(disk.names(disk.follow([node], relation))) == ends
        disk.close()


def test_names_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    triples = [(f"film {i}", 'by "x"', f"Ünï\n\\{i}") for i in range(50)]
    disk, memory = on_disk(triples, str(tmp_path)), MemoryGraph(triples)
    nodes = [n for h, _, t in triples for name in (t, h) if (n := disk.node(name)) is not None]
    for asked in (nodes, nodes[::-1], [*nodes[:3], *nodes[:3]], sorted(nodes), []):
        same = [memory.node(name) for name in disk.names(asked)]
        assert memory.names([n for n in same if n is not None]) == disk.names(asked)
        assert [disk.node(name) for name in disk.names(asked)] == asked


@given(triples_of_a_graph, st.sampled_from(NAMES))
def test_a_search_finds_each_path_that_leads_somewhere_and_no_other(triples: list[NamedTriple], topic: str) -> None:
    graph = MemoryGraph(triples)
    start = graph.node(topic)
    if start is None:
        return
    found = search(graph, start, 2)
    both = [*RELATIONS, *map(inverse, RELATIONS)]
    every = [(one,) for one in both] + [(one, two) for one in both for two in both]
    reached = {path: execute(graph, topic, path) for path in every}
    assert {path: frozenset(graph.names(ends)) for path, ends in found.items()} == {
        path: ends for path, ends in reached.items() if ends
    }


@given(triples_of_a_graph, st.sampled_from(NAMES), st.integers(1, 9))
def test_hop_by_hop_the_same_paths_are_found(triples: list[NamedTriple], topic: str, limit: int) -> None:
    graph = MemoryGraph(triples)
    start = graph.node(topic)
    if start is None:
        return
    found, pending = dict(search(graph, start, 3, limit=limit)), [()]
    assert len(found) <= limit or {len(path) for path in found} == {1}
    while pending:
        further = search(graph, start, 3, pending.pop(), limit)
        deepest = max(map(len, further), default=0)
        pending += [path for path in further if len(path) == deepest]
        found |= further
    assert found == search(graph, start, 3)


DENSE = [(f"e{one}", f"r{(one * other) % 7}", f"e{other}") for one in range(40) for other in range(40) if one != other]


def test_a_dense_graph_is_searched_as_far_as_a_bound_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(store, "MAX_PATHS", 300)
    for graph in (MemoryGraph(DENSE), on_disk(DENSE, str(tmp_path))):
        store._tell_cut.cache_clear()
        assert paths_from(graph, "e1", 6) == paths_from(graph, "e1", 2) == paths_from(graph, "e1", 10**12)
        assert {len(path) for path in paths_from(graph, "e1", 6)} == {1, 2}
        (line,) = capsys.readouterr().err.splitlines()  # once
        assert line.startswith(
            "note: from 'e1' paths of up to 2 relations are searched: 3 would be more than 300 paths"
        )
    monkeypatch.setattr(store, "MAX_PATHS", 10**9)
    monkeypatch.setattr(store, "MAX_REACHED", 200)
    store._tell_cut.cache_clear()
    assert len(paths_from(MemoryGraph(DENSE), "e1", 6)[-1]) <= 2
    assert "200 entities on the way" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_chains_of_a_dense_graph_are_visited_as_far_as_a_bound_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = MemoryGraph([*DENSE, ("e1", "only", "end")])
    nowhere = ("r1", "r2", "r3", "r1", "r2", "r3", "~only")  # leads to the topic alone: dead ends without end
    whole = instances(graph, "e1", ("r1", "r2"))
    assert not capsys.readouterr().err
    monkeypatch.setattr(store, "MAX_VISITED", 2_000)
    assert instances(graph, "e1", nowhere) == []
    assert "only the first 0 chains of r1 > r2" in capsys.readouterr().err
    assert instances(graph, "e1", ("r1", "r2")) == whole
    first = instances(graph, "e1", ("r1", "r2", "r3"), limit=5)
    assert len(first) == 5
    assert not capsys.readouterr().err
    assert len(instances(graph, "e1", ("r1", "r2", "r3", "r4"))) < 2_000


def test_a_step_is_the_callers_own() -> None:
    graph = MemoryGraph([("Oru", "by", "Ana")])
    node = graph.node("Oru")
    assert node is not None
    graph.steps([node])["by"].clear()
    assert graph.names(graph.follow([node], "by")) == ["Ana"]


@pytest.mark.parametrize("build", [MemoryGraph, lambda t: build_sqlite(Path("never.sqlite"), t)])
def test_a_relation_that_looks_like_a_backward_one_is_refused(build: object, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="begins with '~'"):
        build([("a", "~by", "b")])  # type: ignore[operator]
    assert not list(Path().glob("*never*"))


def test_a_file_that_is_no_graph_is_a_users_mistake(tmp_path: Path) -> None:
    file = tmp_path / "graph.sqlite"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(UserError, match="build it anew"):
        SqliteGraph(file)
    with pytest.raises(UserError, match="build it anew"):
        SqliteGraph(tmp_path / "missing.sqlite")


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
        (b"a|b|c\na|b\n", r"kb.txt:2: 'a\|b' is no triple"),
        (b"a|b|c\na||c\n", "kb.txt:2"),
        (b"a|b|c|d\n", "kb.txt:1"),
        (b"a|b|\xff\n", "kb.txt:1: not UTF-8"),
        (b"\n", "holds no triples"),
        (gzip.compress(b"a|b|c\n" * 99, mtime=0)[:-9], "can't be read to its end"),
    ],
)
def test_what_is_no_triple_is_told_with_its_line(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "kb.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match=said):
        list(read_triples(file))
