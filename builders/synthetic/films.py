"""Generates a fictional film world for learning relation paths: a small graph, and questions by template.

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

from builders.synthetic.world import WORDS, Namer, load, pick
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.graphs.store import MemoryGraph, NamedTriple, inverse
from safe_stepwise.records import Candidate, RelationPath
from safe_stepwise.store.files import write_lines

_WORDED: dict[str, Any] = load("films.yaml")
KB = "kb.txt"
QUESTIONS = "questions.jsonl"
HOPS = 3
_TRIES = 200
"""Draws without a new question after which the graph counts as too small."""


@dataclass(frozen=True, slots=True)
class Films:
    """The number of films and of questions; ``seed`` decides on everything else."""

    films: int = 900
    questions: int = 3000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FilmQuestion:
    """A question, its topic, the path that it was made from, and the answers of that path."""

    id: str
    question: str
    topic: str
    path: RelationPath
    answers: tuple[str, ...]

    def row(self) -> str:
        """Render the question as a line that the reader of MetaQA reads."""
        fields = {"hop": len(self.path), "question": self.question, "answers": self.answers}
        return json.dumps({"id": self.id, **fields}, ensure_ascii=False)


def write_films(world: Films, folder: Path) -> tuple[Path, Path]:
    """Write ``kb.txt`` and ``questions.jsonl``; return their paths; raise ``UserError`` for too many questions."""
    triples = film_triples(world)
    rows = film_questions(world, triples)
    folder.mkdir(parents=True, exist_ok=True)
    kb, questions = folder / KB, folder / QUESTIONS
    write_lines(kb, map("|".join, triples))
    write_lines(questions, (question.row() for question in rows))
    return kb, questions


def film_triples(world: Films) -> list[NamedTriple]:
    """Generate the graph, film by film; each name belongs to one entity.

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
    triples: list[NamedTriple] = []
    for _ in range(world.films):
        director = _busy(rng, crew)
        facts = {
            "directed_by": [director],
            "written_by": [director if rng.random() < 0.3 else _busy(rng, crew)],
            "starring": [_busy(rng, actors) for _ in range(2 + int(rng.random() * 3))],
            "scored_by": [_busy(rng, composers)] if rng.random() < 0.6 else [],
            "of_genre": [pick(rng, _WORDED["genres"]) for _ in range(1 + int(rng.random() * 2))],
            "released_in": [str(1931 + int(rng.random() * 90))],
            "spoken_in": [pick(rng, tongues)] if rng.random() < 0.5 else [],
            "filmed_in": [pick(rng, places)] if rng.random() < 0.5 else [],
        }
        if rng.random() < 0.3:
            facts["written_by"].append(_busy(rng, crew))
        if rng.random() < 0.1:
            facts["starring"].append(director)
        title = names.title(WORDS["titles"]["film"])
        triples += ((title, relation, tail) for relation, tails in facts.items() for tail in dict.fromkeys(tails))
    return triples


def _people(names: Namer, number: int) -> list[str]:
    surnames = WORDS["surnames"]
    return [f"{names.given_name(i % 2 == 0)} {names.word(surnames, long=True)}" for i in range(number)]


def _busy(rng: Random, people: Sequence[str]) -> str:
    """Draw a person; the first of them make far more films than the last."""
    return people[int(rng.random() ** 1.5 * len(people))]


def film_questions(world: Films, triples: Sequence[NamedTriple]) -> list[FilmQuestion]:
    """Generate distinct questions of one, two and three hops in turn; raise ``UserError`` for too many."""
    knowledge, rng = GraphKnowledge(MemoryGraph(triples)), Random(f"questions:{world.seed}")
    topics: defaultdict[str, set[str]] = defaultdict(set)  # what each relation leads on from, in either direction
    for head, relation, tail in triples:
        topics[relation].add(head)
        topics[inverse(relation)].add(tail)
    listed = {relation: sorted(names) for relation, names in topics.items()}
    paths = {hops: [path for path in templates() if len(path) == hops] for hops in range(1, HOPS + 1)}
    questions: dict[str, FilmQuestion] = {}
    tries = 0
    while len(questions) < world.questions:
        hops = len(questions) % HOPS + 1
        path = pick(rng, paths[hops])
        topic = pick(rng, listed[path[0]])
        wording = pick(rng, templates()[path]).format(x=f"[{topic}]")
        answers = tuple(sorted(knowledge.rank_ends(Candidate(topic, path))))
        tries = 0 if answers and wording not in questions else tries + 1
        if not tries:
            id_ = f"{hops}hop-made-{len(questions)}"
            questions[wording] = FilmQuestion(id_, wording, topic, path, answers)
        elif tries > _TRIES:
            raise UserError(f"{world.films} films have no {world.questions} questions; make more")
    return list(questions.values())


@cache
def templates() -> Mapping[RelationPath, tuple[str, ...]]:
    """Return the wordings of each path, in which ``{x}`` is the topic.

    A path by way of films combines wordings of the films with two of the last relation. So both halves of a held-out
    template occur elsewhere, and the template with the nearest words may mean another path.

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
            questions[(place + shift + offset) % len(questions)].replace("{films}", phrase)
            for offset in (0, 2)
            for place, phrase in enumerate(_WORDED["films"][films])
        )
    return wordings
