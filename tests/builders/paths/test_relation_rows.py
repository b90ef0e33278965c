"""Negatives, the rows that they become, their order, and the splits."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from builders.paths.kg_build import held_out
from builders.paths.weak import DELETION, FLIPPED, SPURIOUS, SWAP, TRUNCATION, Explored, explore, negatives
from builders.paths.weak import WRONG_RELATION as WRONG
from builders.work.parquet import interleave
from safe_stepwise.graphs.graph_store import GraphStore
from tests.makers import films

GRAPH = GraphStore(films.triples())
PATH = ("directed_by", "~directed_by", "starred_actors")
TOPIC = "Film 1"
ANSWERS = films.execute(GRAPH, TOPIC, PATH)


def explored(*topics: str, hops: int = 3) -> dict[str, Explored]:
    return {topic: explore(GRAPH, topic, ANSWERS, hops) for topic in topics}


def test_each_kind_is_what_it_says_and_none_is_as_good_as_the_best() -> None:
    of = explored(TOPIC)
    found = negatives(TOPIC, of, "key", limit=99)
    by = {kind: [n.path for n in found if n.kind == kind] for kind in {n.kind for n in found}}
    assert by[TRUNCATION] == [("directed_by", "~directed_by")]
    assert len(by[FLIPPED]) == 3
    assert all(sum(a != b for a, b in zip(p, PATH, strict=True)) == 1 for p in by[FLIPPED])
    assert by[WRONG]
    for path in by[WRONG]:
        assert sum(a != b for a, b in zip(path, PATH, strict=True)) == 1
        assert films.execute(GRAPH, TOPIC, path)
    f1 = {c.path: c.f1 for c in of[TOPIC].candidates}
    assert by[SPURIOUS]
    assert all(films.execute(GRAPH, TOPIC, path) & ANSWERS for path in by[SPURIOUS])
    assert all(f1.get(n.path, 0) < 1 for n in found)
    assert not {SWAP, DELETION} & set(by)
    assert max(Counter((n.source, n.path) for n in found).values()) == 1


def test_only_a_question_of_several_topics_is_swapped_or_loses_a_path() -> None:
    other = "Film 2"
    of = explored(TOPIC, other)
    kinds = {n.kind for n in negatives(TOPIC, of, "key")}
    assert DELETION in kinds
    own = {c.path for c in of[TOPIC].candidates if c.is_best}
    theirs = {c.path for c in of[other].candidates if c.is_best}
    assert (SWAP in kinds) == bool(theirs - own)
    assert not {SWAP, DELETION} & {n.kind for n in negatives(TOPIC, explored(TOPIC, "nobody"), "")}


def test_as_many_of_a_hard_kind_as_said_drawn_by_the_key() -> None:
    of = explored(TOPIC)
    counted = Counter(n.kind for n in negatives(TOPIC, of, "key", limit=1))
    assert counted[FLIPPED] == counted[WRONG] == counted[SPURIOUS] == 1
    drawn = {tuple(n.path for n in negatives(TOPIC, of, str(key), limit=1)) for key in range(9)}
    assert len(drawn) > 1


@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(0, 5))
def test_neighbours_are_of_different_questions_where_that_can_be(sizes: list[int], seed: int) -> None:
    rows = [{"question_id": f"q{q}", "n": n} for q, size in enumerate(sizes) for n in range(size)]
    found = interleave(rows, seed, itemgetter("question_id"))
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    met = sum(a["question_id"] == b["question_id"] for a, b in pairwise(found))
    assert met == max(0, 2 * max(sizes) - sum(sizes) - 1)
    for question in {row["question_id"] for row in rows}:
        order = [row["n"] for row in found if row["question_id"] == question]
        assert len(order) == len(set(order))


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), max_size=40), st.integers(0, 3))
def test_templates_held_out_take_no_more_than_their_share_of_each_hop(sizes: dict[str, int], seed: int) -> None:
    hops = {name: len(name) for name in sizes}
    out = held_out(sizes, hops, 0.25, seed)
    for number in set(hops.values()):
        of = [name for name in sizes if hops[name] == number]
        taken = sum(sizes[name] for name in of if name in out)
        assert taken <= round(0.25 * sum(sizes[name] for name in of))
