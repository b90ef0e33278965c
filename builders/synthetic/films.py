"""A made-up film world to learn relation paths on: a small graph, and questions by template.

What it is: some thousand triples about films that nobody made, and questions of one to three
relations over them, worded by ``films.yaml``; what MetaQA is in kind, with other relations, names
and words. Its files are read as ``--benchmark metaqa``: ``kb.txt`` (``head|relation|tail``) and
``questions.jsonl``. Source: this file. Licence: CC0-1.0. A question::

    {"id": "2hop-made-7", "hop": 2, "question": "who wrote the films that [Ana Brell] directed",
     "answers": ["Edo Marn", "Ors Velt"]}

Quirks: each name is one entity's; a director may have written a film, or acted in it, so that paths
tie as they do in MetaQA; answers are what the path of the question leads to by ``no_topic``.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

from builders.synthetic.world import WORDS, Namer, load, one
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.store import MemoryGraph, NamedTriple, execute, inverse
from safe_stepwise.records import RelationPath
from safe_stepwise.store.files import write_lines

_WORDED: dict[str, Any] = load("films.yaml")
KB = "kb.txt"
QUESTIONS = "questions.jsonl"
HOPS = 3
_TRIES = 200
"""Draws in a row that give no new question, before the graph is taken for too small."""


@dataclass(frozen=True, slots=True)
class Films:
    """How large a world, and how many questions; ``seed`` decides on all the rest."""

    films: int = 900
    questions: int = 3000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the path that it was made from, whose answers are ``answers``."""

    id: str
    question: str
    topic: str
    path: RelationPath
    answers: tuple[str, ...]

    def row(self) -> str:
        """Its line, as the reader of MetaQA takes it."""
        said = {"hop": len(self.path), "question": self.question, "answers": self.answers}
        return json.dumps({"id": self.id, **said}, ensure_ascii=False)


def write_films(world: Films, folder: Path) -> tuple[Path, Path]:
    """Write ``kb.txt`` and ``questions.jsonl``, each whole; returns where.

    Raises ``UserError`` for more questions than the world has.
    """
    triples = film_triples(world)
    asked = film_questions(world, triples)
    folder.mkdir(parents=True, exist_ok=True)
    kb, questions = folder / KB, folder / QUESTIONS
    write_lines(kb, map("|".join, triples))
    write_lines(questions, (one.row() for one in asked))
    return kb, questions


def film_triples(world: Films) -> list[NamedTriple]:
    """The graph, film by film; each name is one entity's.

    >>> film_triples(Films(films=1))[0]
    ('Return to Lobrama', 'directed_by', 'Brustelle Noremander')
    """
    rng = Random(f"films:{world.seed}")
    names = Namer(rng)
    crew = _people(names, 2 + world.films // 5)
    actors = _people(names, 6 + world.films // 3)
    composers = _people(names, 2 + world.films // 12)
    places = [names.word(("", "a", "holm"), long=True) for _ in range(3 + world.films // 20)]
    tongues = [names.word(("ian", "ish")) for _ in range(8)]
    found: list[NamedTriple] = []
    for _ in range(world.films):
        director = _busy(rng, crew)
        facts = {
            "directed_by": [director],
            "written_by": [director if rng.random() < 0.3 else _busy(rng, crew)],
            "starring": [_busy(rng, actors) for _ in range(2 + int(rng.random() * 3))],
            "scored_by": [_busy(rng, composers)] if rng.random() < 0.6 else [],
            "of_genre": [one(rng, _WORDED["genres"]) for _ in range(1 + int(rng.random() * 2))],
            "released_in": [str(1931 + int(rng.random() * 90))],
            "spoken_in": [one(rng, tongues)] if rng.random() < 0.5 else [],
            "filmed_in": [one(rng, places)] if rng.random() < 0.5 else [],
        }
        if rng.random() < 0.3:
            facts["written_by"].append(_busy(rng, crew))
        if rng.random() < 0.1:
            facts["starring"].append(director)
        title = names.title(WORDS["titles"]["film"])
        found += ((title, r, tail) for r, tails in facts.items() for tail in dict.fromkeys(tails))
    return found


def _people(names: Namer, number: int) -> list[str]:
    surnames = WORDS["surnames"]
    return [f"{names.given(i % 2 == 0)} {names.word(surnames, long=True)}" for i in range(number)]


def _busy(rng: Random, people: Sequence[str]) -> str:
    """Someone; the first of them make far more films than the last."""
    return people[int(rng.random() ** 1.5 * len(people))]


def film_questions(world: Films, triples: Sequence[NamedTriple]) -> list[Asked]:
    """As many questions as asked for, no two with the same words; hops take turns.

    Raises ``UserError`` for more of them than the graph has.
    """
    graph, rng = MemoryGraph(triples), Random(f"questions:{world.seed}")
    topics: defaultdict[str, set[str]] = defaultdict(set)  # what each relation leads on from, in either direction
    for head, relation, tail in triples:
        topics[relation].add(head)
        topics[inverse(relation)].add(tail)
    listed = {relation: sorted(names) for relation, names in topics.items()}
    of = {hops: [path for path in templates() if len(path) == hops] for hops in range(1, HOPS + 1)}
    found: dict[str, Asked] = {}
    tries = 0
    while len(found) < world.questions:
        hops = len(found) % HOPS + 1
        path = one(rng, of[hops])
        topic = one(rng, listed[path[0]])
        said = one(rng, templates()[path]).format(x=f"[{topic}]")
        answers = tuple(sorted(execute(graph, topic, path)))
        tries = 0 if answers and said not in found else tries + 1
        if not tries:
            id_ = f"{hops}hop-made-{len(found)}"
            found[said] = Asked(id_, said, topic, path, answers)
        elif tries > _TRIES:
            raise UserError(f"{world.films} films have no {world.questions} questions; make more")
    return list(found.values())


@cache
def templates() -> Mapping[RelationPath, tuple[str, ...]]:
    """The wordings of each path, ``{x}`` being the topic.

    Of a path by way of films, each of its wordings of the films stands with two of the last
    relation, others for each path: so a template that is held out has been seen in parts, and
    what is nearest by its words may well mean another path.

    >>> templates()["~directed_by", "written_by"][0]
    'who wrote the films that {x} directed'
    """
    simple = {**_WORDED["direct"], **_WORDED["others"]}
    wordings = {tuple(path.split()): tuple(questions) for path, questions in simple.items()}
    # By way of films anything may be asked of them, but not whom they were found by.
    pairs = [
        (films, last)
        for films, last in product(_WORDED["films"], _WORDED["asked"])
        if last != inverse(films.split()[-1]) or films == "~starring"
    ]
    for shift, (films, last) in enumerate(pairs):
        questions = _WORDED["asked"][last]
        wordings[*films.split(), last] = tuple(
            questions[(place + shift + more) % len(questions)].replace("{films}", way)
            for more in (0, 2)
            for place, way in enumerate(_WORDED["films"][films])
        )
    return wordings
