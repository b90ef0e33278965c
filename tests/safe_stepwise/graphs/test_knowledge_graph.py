from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph, entity_key
from safe_stepwise.records import Triple


def chain(*names: str) -> list[Triple]:
    return [Triple(a, "leads to", b) for a, b in pairwise(names)]


# Entities


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Élan Vorr", "elan vorr"),
        ("The Silent Ford", "Silent Ford"),
        ("Sir Ors Velt", "Ors Velt"),
        ("3 May 1901", "May 3rd, 1901"),
        ("3 May 1901", "the 3 May 1901"),
        ("1,250,000", "1250000"),
        ("Seven", "7"),
        ("12.0", "12"),
        ("Bombay", "Mumbai"),
        ("U.S.", "United States"),
        ("Ors Velt (Painter)", "ors velt (painter)"),
        ("O'Dell", "O’Dell"),
    ],
)
def test_one_entity(one: str, other: str) -> None:
    assert entity_key(one) == entity_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ors Velt", "Ors Velt (painter)"),
        ("Ors Velt (painter)", "Ors Velt (footballer)"),
        ("Ors Velt the Elder", "Ors Velt the Younger"),
        ("Ors Velt II", "Ors Velt III"),
        ("Ors Velt, Jr.", "Ors Velt, Sr."),
        ("3 May 1901", "4 May 1901"),
        ("May 1901", "3 May 1901"),
        ("1901", "1902"),
        ("7", "8"),
        ("7", "7 Oru Street"),
        ("Seven", "Seven Brides"),
        ("2,011", "3,011"),
        ("1,250,000", "1,250,001"),
        ("300", "300 km"),
        ("!!!", "???"),
    ],
)
def test_two_entities(one: str, other: str) -> None:
    assert entity_key(one) != entity_key(other)


@given(st.text(max_size=40))
def test_any_name_has_a_key(name: str) -> None:
    assert entity_key(name) == entity_key(f"{name}")


def test_name_alikes_are_two_nodes() -> None:
    graph = KnowledgeGraph(
        [Triple("Ors Velt the Elder", "child", "Ila"), Triple("Ors Velt the Younger", "child", "Po")]
    )
    assert graph.path("Ila", "Po") is None


# Aliases


@pytest.mark.parametrize("order", list(permutations([("A", "B"), ("B", "C"), ("D", "C")])))
def test_aliases_hold_transitively_in_any_order(order: tuple[tuple[str, str], ...]) -> None:
    graph = KnowledgeGraph(chain("A", "X"), dict(order))
    assert len({graph.node(name) for name in "ABCD"}) == 1
    assert graph.node("A") == KnowledgeGraph([], {"A": "B", "B": "C", "D": "C"}).node("D")
    assert all(name in graph for name in "ABCD")
    assert "E" not in graph
    assert graph.is_same_entity("a", "D")
    assert not graph.is_same_entity("A", "X")


def test_a_cycle_of_aliases_and_an_alias_to_itself() -> None:
    graph = KnowledgeGraph(chain("A", "X"), {"A": "B", "B": "A", "C": "C"})
    assert graph.is_same_entity("A", "B")
    assert not graph.is_same_entity("A", "C")


def test_an_alias_joins_a_path() -> None:
    triples = [Triple("Dune Rain", "director", "Velt"), Triple("Ors Velt", "spouse", "Ana")]
    assert KnowledgeGraph(triples).path("Dune Rain", "Ana") is None
    found = KnowledgeGraph(triples, {"Velt": "Ors Velt"}).path("Dune Rain", "Ana")
    assert found == tuple(triples)


# Edges


def test_the_same_triple_is_kept_once_and_another_place_is_another() -> None:
    one, elsewhere = Triple("A", "r", "B", 1, 0), Triple("A", "r", "B", 2, 0)
    graph = KnowledgeGraph([one, elsewhere, one])
    assert graph.triples == (one, elsewhere)
    assert graph.find("A", "r", "B") == (one, elsewhere)


def test_find() -> None:
    graph = KnowledgeGraph(
        [Triple("A", "r", "B"), Triple("A", "r", "C"), Triple("A", "s", "B"), Triple("B", "r", "A")]
    )
    assert [t.tail for t in graph.find("a", "r")] == ["B", "C"]
    assert [t.relation for t in graph.find("A", "s", "b")] == ["s"]
    assert graph.find("A", "r", "D") == ()
    assert graph.find("A", "R", "B") == ()
    assert graph.find("Z", "r") == ()
    assert graph.find("C", "r") == ()
    assert [t.tail for t in graph.find("B", "r", "A")] == ["A"]


# Paths


def test_a_path_goes_either_way() -> None:
    triples = [Triple("A", "r", "B"), Triple("C", "s", "B")]
    graph = KnowledgeGraph(triples)
    assert graph.path("A", "C") == tuple(triples)
    assert graph.path("C", "A") == tuple(reversed(triples))


def test_the_shortest_path() -> None:
    graph = KnowledgeGraph([*chain("A", "B", "C", "D"), Triple("S", "r", "C"), Triple("A", "q", "C")])
    assert graph.path("A", "D") == (Triple("A", "q", "C"), Triple("C", "leads to", "D"))
    assert len(graph.path("B", "D") or ()) == 2
    assert graph.path("S", "D") == (Triple("S", "r", "C"), Triple("C", "leads to", "D"))


def test_no_path() -> None:
    graph = KnowledgeGraph([*chain("A", "B"), *chain("C", "D")])
    assert graph.path("A", "D") is None
    assert graph.path("A", "Z") is None
    assert graph.path("Z", "A") is None
    assert graph.path("A", "A") == ()


EDGES = st.lists(
    st.builds(Triple, st.sampled_from("ABCDEF"), st.sampled_from("rs"), st.sampled_from("ABCDEF")), max_size=12
)
ALIASES = st.dictionaries(st.sampled_from("ABCXYZ"), st.sampled_from("ABCXYZ"), max_size=3)


@given(EDGES, ALIASES, st.sampled_from("ABCDEFX"), st.sampled_from("ABCDEFY"))
def test_a_path_joins_its_ends_by_edges_of_the_graph(
    edges: list[Triple], same: dict[str, str], source: str, target: str
) -> None:
    graph = KnowledgeGraph(edges, same)
    path = graph.path(source, target)
    if path is None:
        return
    at = graph.node(source)
    for triple in path:
        assert triple in edges
        assert triple in graph.find(triple.head, triple.relation, triple.tail)
        ends = {graph.node(triple.head), graph.node(triple.tail)}
        assert at in ends
        at = next(iter(ends - {at}), at)
    assert at == graph.node(target)
    assert len(path) < max(2, len({graph.node(name) for t in edges for name in (t.head, t.tail)}))


@given(EDGES, ALIASES)
def test_order_does_not_matter(edges: list[Triple], same: dict[str, str]) -> None:
    one = KnowledgeGraph(edges, same)
    other = KnowledgeGraph(reversed(edges), dict(reversed(same.items())))
    assert {one.node(t.head) for t in edges} == {other.node(t.head) for t in edges}
    assert set(one.triples) == set(other.triples)


# Branches


def test_a_chain_is_one_branch() -> None:
    path = chain("A", "B", "C")
    assert KnowledgeGraph(path).branches(path) == (tuple(path),)


def test_two_branches() -> None:
    one, other = chain("A", "B", "C"), chain("D", "E")
    assert KnowledgeGraph().branches([*one, *other]) == (tuple(one), tuple(other))
    assert KnowledgeGraph().branches([one[0], *other, one[1]]) == (tuple(one), tuple(other))


def test_a_shared_triple_is_in_both_branches() -> None:
    one, other, shared = Triple("A", "r", "C"), Triple("B", "r", "C"), Triple("C", "s", "D")
    branches = KnowledgeGraph().branches([one, other, shared])
    assert branches == ((one, shared), (other, shared))


def test_one_head_with_two_values_is_one_branch() -> None:
    path = [Triple("A", "date of birth", "1901"), Triple("A", "date of death", "1970")]
    assert KnowledgeGraph().branches(path) == (tuple(path),)


def test_branches_join_through_aliases() -> None:
    path = [Triple("A", "r", "Velt"), Triple("Ors Velt", "s", "B")]
    assert len(KnowledgeGraph().branches(path)) == 2
    assert len(KnowledgeGraph([], {"Velt": "Ors Velt"}).branches(path)) == 1


def test_no_branch_of_nothing() -> None:
    assert KnowledgeGraph().branches([]) == ()


@given(EDGES)
def test_branches_hold_edges_of_the_path_only(edges: list[Triple]) -> None:
    for branch in KnowledgeGraph(edges).branches(edges):
        assert branch
        assert set(branch) <= set(edges)
        assert branch[0].head not in {t.tail for t in edges}
