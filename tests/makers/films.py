"""A made-up graph of films in MetaQA's form, and questions of one to three hops over it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from safe_stepwise.graphs.graph_store import GraphStore, NamedTriple
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.records import Candidate, RelationPath

ASKED: dict[str, RelationPath] = {
    "who directed [{}]": ("directed_by",),
    "[{}] was made by which director": ("directed_by",),
    "who wrote the film [{}]": ("written_by",),
    "which films did [{}] direct": ("~directed_by",),
    "what did [{}] write": ("~written_by",),
    "in which years did films by the director [{}] come out": ("~directed_by", "release_year"),
    "who acts in films that [{}] wrote": ("~written_by", "starred_actors"),
    "of which genre are films with [{}]": ("~starred_actors", "has_genre"),
    "who acts in films by the director of [{}]": ("directed_by", "~directed_by", "starred_actors"),
    "which genres have films with the actors of [{}]": (
        "starred_actors", "~starred_actors", "has_genre",
    ),
}  # fmt: skip


def triples(films: int = 60, seed: int = 0) -> list[NamedTriple]:
    draw = random.Random(seed)
    people = [f"Person {number}" for number in range(films // 3)]
    found: list[NamedTriple] = []
    for number in range(films):
        film = f"Film {number}"
        found.append((film, "directed_by", draw.choice(people)))
        found.append((film, "written_by", draw.choice(people)))
        found += [(film, "starred_actors", name) for name in draw.sample(people, 3)]
        found.append((film, "release_year", str(1950 + draw.randrange(40))))
        found.append((film, "has_genre", draw.choice(["Drama", "Comedy", "Western"])))
    return found


def execute(graph: GraphStore, topic: str, path: RelationPath) -> frozenset[str]:
    """The entities that a path leads to."""
    return frozenset(GraphKnowledge(graph).rank_ends(Candidate(topic, path)))


def questions(graph: GraphStore, number: int, seed: int = 0) -> Iterator[dict[str, object]]:
    """Rows in the shape of JSON; each question has an answer."""
    draw, made = random.Random(seed), 0
    while made < number:
        words, path = draw.choice(list(ASKED.items()))
        kind = "Film" if not path[0].startswith("~") else "Person"
        topic = f"{kind} {draw.randrange(60 if kind == 'Film' else 20)}"
        answers = sorted(execute(graph, topic, path))
        if answers:
            made += 1
            yield {"id": f"q{made}", "hop": len(path), "question": words.format(topic),
                   "answers": answers}  # fmt: skip


def written(folder: Path, number: int, seed: int = 0) -> tuple[Path, Path]:
    """The files of the graph and of ``number`` questions."""
    folder.mkdir(parents=True, exist_ok=True)
    kb, asked = folder / "kb.txt", folder / "questions.jsonl"
    made = triples()
    kb.write_text("".join("|".join(triple) + "\n" for triple in made))
    rows = questions(GraphStore(made), number, seed)
    asked.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return kb, asked
