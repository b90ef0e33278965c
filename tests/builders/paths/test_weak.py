"""Weak labels, by hand and on real questions, of which rules were developed on the other half."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from builders.paths.relation_readers import questions
from builders.paths.weak import Templates, drop_rare, explore, popularity
from safe_stepwise.graphs.graph_store import GraphStore, read_triples
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion
from tests.makers.films import execute

FILMS = GraphStore(
    [
        ("Oru", "directed_by", "Ana"),
        ("Oru", "written_by", "Ana"),
        ("Vel", "directed_by", "Ana"),
        ("Vel", "written_by", "Edo"),
        ("Marn", "directed_by", "Ors"),
        ("Marn", "written_by", "Ana"),
    ]
)


def test_the_shortest_paths_and_the_best_are_told_apart() -> None:
    found = {c.path: c for c in explore(FILMS, "Ana", frozenset(["Oru", "Vel"]), 1).candidates}
    directed, written = found[("~directed_by",)], found[("~written_by",)]
    assert (directed.f1, directed.is_shortest, directed.is_best) == (1.0, True, True)
    assert (written.f1, written.is_shortest, written.is_best) == (0.5, True, False)
    longer = found[("~directed_by", "directed_by", "~directed_by")] if len(found) > 9 else None
    assert longer is None or not longer.is_shortest


def test_a_question_of_three_hops_has_its_own_paths_first() -> None:
    answers = frozenset(["Ana", "Ors"])  # who directed what the writer of Oru wrote
    for hops, length in ((3, 3), (0, 1)):
        tied = [c.path for c in explore(FILMS, "Oru", answers, hops).candidates if c.is_best]
        assert {len(path) for path in tied} == {length} or hops == 0
    assert ("written_by", "~written_by", "directed_by") in [
        c.path for c in explore(FILMS, "Oru", answers, 3).candidates
    ]


def test_a_topic_or_an_answer_that_the_graph_lacks_gives_no_path() -> None:
    assert explore(FILMS, "nobody", frozenset(["Ana"])).candidates == ()
    assert explore(FILMS, "Oru", frozenset(["nobody"])).candidates == ()
    (found, *_) = explore(FILMS, "Vel", frozenset(["Ana", "nobody"]), 1).candidates
    assert found.f1 == pytest.approx(2 / 3)


def test_a_path_that_is_rarely_best_is_taken_for_chance() -> None:
    popular = popularity([([("by",)], 9), ([("by",), ("in",)], 1), ([("of",)], 5)])
    assert drop_rare([("by",), ("in",)], popular) == [("by",)]
    assert drop_rare([("of",), ("by",)], popular) == [("by",), ("of",)]
    assert drop_rare([("in",)], popular) == [("in",)]
    assert drop_rare([("unheard", "of"), ("on",)], popular) == [("on",), ("unheard", "of")]


def test_a_template_has_the_path_that_most_of_its_questions_have() -> None:
    templates = Templates()
    templates.add("who [topic]", 1, [(("by",), 1.0), (("in",), 1.0), (("by", "in"), 1.0)])
    templates.add("who [topic]", 1, [(("by",), 0.5)])
    templates.add("when [topic]", 1, [(("by",), 1.0), (("in",), 1.0)])
    templates.add("where", 1, [])
    assert templates.gold() == {"who [topic]": ("by",), "when [topic]": ("by",)}


@pytest.fixture(scope="module")
def asked(real_data: Path) -> list[KGQuestion]:
    return list(questions("metaqa", str(real_data / "metaqa_questions.jsonl"), "validation"))


@pytest.fixture(scope="module")
def films(real_data: Path) -> GraphStore:
    return GraphStore(read_triples(real_data / "metaqa_kb.txt.gz"))


def test_real_questions_are_answered_by_their_gold_paths_and_weak_labels_have_them(
    asked: list[KGQuestion], films: GraphStore
) -> None:
    templates, few = Templates(), Templates()
    found = {}
    for number, q in enumerate(asked):
        found[q.id] = explore(films, q.topics[0], q.answers, q.hops).candidates
        paths = [(c.path, c.f1) for c in found[q.id]]
        for counted in (templates, few) if number % 5 == 0 else (templates,):
            counted.add(masked(q.question, q.topics), q.hops, paths)
    gold = templates.gold()
    sure = few.sure()
    assert len(sure) > 0.8 * len(few.gold())
    assert sure.items() <= gold.items()
    assert not few.gold().items() <= gold.items(), "that a guess is right is no news, then"
    popular = popularity(([c.path for c in cs if c.is_best], 1) for cs in found.values())
    held = [q for q in asked if int(hashlib.sha256(q.id.encode()).hexdigest(), 16) % 2]
    exact = {1: 0.94, 2: 0.99, 3: 0.99}
    for hops, (least, most) in {1: (0.85, 1.3), 2: (0.70, 2.5), 3: (0.60, 7.5)}.items():
        of = [q for q in held if q.hops == hops]
        right = {q.id: gold[masked(q.question, q.topics)] for q in of}
        shortest = {q.id: [c.path for c in found[q.id] if c.is_shortest] for q in of}
        best = {q.id: drop_rare([c.path for c in found[q.id] if c.is_best], popular) for q in of}
        assert sum(right[i] in p for i, p in shortest.items()) / len(of) >= (0.93 if hops == 3 else 0.99)
        assert sum(map(len, shortest.values())) / len(of) <= most
        hits = sum(right[i] in p for i, p in best.items())
        assert hits / len(of) >= 0.99
        assert hits / sum(map(len, best.values())) >= least
        got = [execute(films, q.topics[0], right[q.id]) == q.answers for q in of]
        assert sum(got) / len(of) >= exact[hops]
