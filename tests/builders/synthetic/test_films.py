"""The film world: its answers are what its graph says, and its files what MetaQA's reader takes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.paths import metaqa
from builders.paths.weak import explore
from builders.synthetic.films import Films, film_questions, film_triples, templates, write_films
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import MemoryGraph, NamedTriple, read_triples
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import RelationPath
from tests import sizes

worlds = st.builds(Films, st.integers(30, 90), st.integers(1, 60), st.integers(0, 999))
KINDS = {"released_in": "year", "of_genre": "genre", "spoken_in": "tongue", "filmed_in": "place"}


def walked(triples: list[NamedTriple], topic: str, path: RelationPath) -> set[str]:
    """Where a path leads, by all triples for every hop, the topic left out after each."""
    found = {topic}
    for relation in path:
        name, way = relation.removeprefix("~"), -1 if relation[0] == "~" else 1
        edges = [(h, t)[::way] for h, r, t in triples if r == name]
        found = {end for start, end in edges if start in found} - {topic}
    return found


@settings(max_examples=sizes.examples(25))
@given(worlds)
def test_answers_are_what_the_path_leads_to(world: Films) -> None:
    triples = film_triples(world)
    asked = film_questions(world, triples)
    assert len({each.question for each in asked}) == len(asked) == world.questions
    for each in asked:
        assert set(each.answers) == walked(triples, each.topic, each.path) != set()
        assert masked(each.question, [each.topic]).replace("[topic]", "{x}") in (templates()[each.path])


@settings(max_examples=sizes.examples(25))
@given(worlds)
def test_a_name_is_one_entitys(world: Films) -> None:
    """However it is written: a topic that could be two things has no answers of its own."""
    kinds = defaultdict(set)
    for head, relation, tail in film_triples(world):
        kinds[head.casefold()].add((head, "film"))
        kinds[tail.casefold()].add((tail, KINDS.get(relation, "person")))
    assert all(len(meant) == 1 for meant in kinds.values())
    assert not any(mark in name for name in kinds for mark in "|[]\n")
    assert len(set(film_triples(world))) == len(film_triples(world))


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    def made(folder: str, seed: int) -> list[bytes]:
        files = write_films(Films(films=40, questions=30, seed=seed), tmp_path / folder)
        return [file.read_bytes() for file in files]

    first = made("one", 3)
    assert made("two", 3) == first
    assert all(one != other for one, other in zip(made("three", 4), first, strict=True))


def test_templates_are_enough_to_hold_some_out_and_mean_one_path_each() -> None:
    meant = Counter(words for wordings in templates().values() for words in wordings)
    assert set(meant.values()) == {1}
    assert len(meant) >= 100
    of_hops = Counter(map(len, templates()))
    assert all(of_hops[hops] >= 10 for hops in (1, 2, 3))
    assert all(words.count("{x}") == 1 and "{films}" not in words for words in meant)


def test_the_files_are_read_as_metaqas(tmp_path: Path) -> None:
    world = Films(films=60, questions=60)
    kb, questions = write_films(world, tmp_path)
    triples = list(read_triples(kb))
    assert triples == film_triples(world)
    graph = MemoryGraph(triples)
    rows = [row for c in metaqa.chunks(str(questions), "train", size=50, limit=None)
            for row in c.rows]  # fmt: skip
    for row, asked in zip(rows, film_questions(world, triples), strict=True):
        read = metaqa.parse(json.loads(str(row.payload)), "train")
        assert (read.topics, read.answers) == ((asked.topic,), frozenset(asked.answers))
        assert (read.id, read.hops) == (asked.id, len(asked.path))
        best = [c.path for c in explore(graph, asked.topic, read.answers, read.hops).candidates
                if c.tied]  # fmt: skip
        assert asked.path in best


def test_more_questions_than_a_world_has_are_refused() -> None:
    world = Films(films=1, questions=500)
    with pytest.raises(UserError, match="make more"):
        film_questions(world, film_triples(world))
