"""MetaQA: questions of 1-3 hops over a knowledge base of films, their gold paths derived from it.

Source: https://github.com/yuyuz/MetaQA (Zhang et al. 2018); CC BY 3.0 as its authors state. The
knowledge base has ``head|relation|tail`` a line (plain or .gz), a question is, invented::

    {"id": "2hop-dev-1", "hop": 2, "question": "who acted in the films directed by [Ana Vorr]",
     "answers": ["Tom Sel"]}

No path is annotated. One is derived: of all sequences of relations (each walked either way) that
are as long as the question says, those whose execution from the topic entity gives exactly its
answers, the topic itself left out after every hop. Where several do, the one whose relations the
question's words name; where that leaves several, the question is left out. Names are never
normalised.
"""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File

from builders.paths.asked import Asked, Path, Refuse
from safe_stepwise.errors import UserError
from safe_stepwise.records import Triple
from safe_stepwise.store.parsing import parse_json
from safe_stepwise.store.shapes import shaped

NAME = "metaqa"
LICENSE = "cc-by-3.0"
HOMEPAGE = "https://github.com/yuyuz/MetaQA"
CITATION = """\
@inproceedings{zhang2018variational,
  title = {Variational Reasoning for Question Answering with Knowledge Graph},
  author = {Zhang, Yuyu and Dai, Hanjun and Kozareva, Zornitsa and Smola, Alexander J. and
            Song, Le},
  booktitle = {Proceedings of AAAI},
  year = {2018}
}"""
_TOPIC = re.compile(r"\[([^\[\]]+)\]")
_CUES = {
    relation: re.compile(rf"\b(?:{cue})", re.IGNORECASE)
    for relation, cue in {
        "directed_by": "direct",
        "written_by": "writ|wrote|screenwrit|author|penn",
        "starred_actors": "star|act(?!ion)|appear|cast|co-star",
        "has_genre": "genre|types?\\b|sort|kinds?\\b",
        "in_language": "languag|spok",
        "release_year": "year|release|when|date",
        "has_tags": "tag|describ|about|topic|terms?\\b|word|subject",
        "has_imdb_rating": "rating|rated|popular|think|opinion|good",
        "has_imdb_votes": "votes?\\b|famous|well known",
    }.items()
}
"""How questions speak of relations."""
_MOST_HOPS = 3
_MOST_PATHS = 200
"""Gold paths of a question that are kept: a genre's films alone are thousands."""

Move = tuple[str, bool]
"""A relation, and whether it is walked from tail to head."""


@dataclass(frozen=True, slots=True)
class Questioned:
    """A line of the questions' file."""

    id: str
    hop: int
    question: str
    answers: tuple[str, ...]


@dataclass(slots=True)
class Films:
    """The knowledge base: what each name is joined to, by move."""

    triples: dict[Triple, None] = field(default_factory=dict)
    joined: dict[str, dict[Move, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, triple: Triple) -> None:
        if triple not in self.triples:
            self.triples[triple] = None
            self.joined[triple.head][triple.relation, False].append(triple.tail)
            self.joined[triple.tail][triple.relation, True].append(triple.head)

    def step(self, names: set[str], move: Move) -> set[str]:
        """What some names are joined to by a move."""
        joined = (self.joined[name].get(move, ()) for name in names)
        return {other for others in joined for other in others}

    def leads_only_to(self, names: set[str], move: Move, goal: frozenset[str]) -> bool:
        """Whether a move reaches nothing else; stops at the first that it does."""
        return all(other in goal for name in names for other in self.joined[name].get(move, ()))

    def moves(self, names: set[str]) -> set[Move]:
        """The moves that lead on from some names."""
        return {move for name in names for move in self.joined[name]}


def read_films(file: File) -> Films:
    """The knowledge base of a file; ``UserError`` where it is none, with the line."""
    films = Films()
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        lines = raw.decode().splitlines()
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UserError(f"{file}: cannot be read ({error}); give MetaQA's kb.txt as --kb") from None
    for number, line in enumerate(lines, 1):
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise UserError(
                f"{file}:{number}: not head|relation|tail; give MetaQA's kb.txt as --kb"
            )
        head, relation, tail = parts
        films.add(Triple(head, relation, tail))
    if not films.triples:
        raise UserError(f"{file}: is empty; give MetaQA's kb.txt as --kb")
    return films


def read_questions(file: File) -> Iterator[Questioned]:
    """The questions of a file; ``UserError`` where it is missing or a line is none."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}); see --questions") from None
    for number, line in enumerate(lines, 1):
        try:
            row = parse_json(line)
            known = {name: row[name] for name in ("id", "hop", "question", "answers")}
            yield shaped(Questioned(**{**known, "answers": tuple(row["answers"])}), Questioned)
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{file}:{number}: no MetaQA question ({error}); a line has id, hop, question and "
                "answers"
            ) from None


def film_questions(
    films: Films, questions: Iterator[Questioned], refuse: Refuse
) -> Iterator[Asked]:
    """The questions that one sequence of relations answers, with its instances as gold paths."""
    for one in questions:
        found = _asked(films, one)
        if isinstance(found, Asked):
            yield found
        else:
            refuse(NAME, one.id, found)


def _asked(films: Films, one: Questioned) -> Asked | str:
    topics = _TOPIC.findall(one.question)
    if len(topics) != 1 or topics[0] not in films.joined:
        return "no topic entity of the knowledge base"
    if not 1 <= one.hop <= _MOST_HOPS or not one.answers:
        return "no answers, or no number of hops from 1 to 3"
    found = relation_paths(films, topics[0], one.hop, frozenset(one.answers))
    if len(found) > 1:
        said = _TOPIC.sub("", one.question)
        found = [moves for moves in found if asked_for(said, moves)] or found
    if len(found) != 1:
        return "several relation paths give its answers" if found else "no relation path does"
    paths = instances(films, topics[0], found[0], one.answers)
    return Asked(
        benchmark=NAME,
        id=one.id,
        question=_TOPIC.sub(r"\1", one.question),
        answer=paths[0][-1].head if found[0][-1][1] else paths[0][-1].tail,
        accepted=one.answers,
        paths=paths,
        start=topics[0],
        needed=tuple(range(1, one.hop + 1)),
    )


def relation_paths(
    films: Films, topic: str, hops: int, answers: frozenset[str]
) -> list[tuple[Move, ...]]:
    """The sequences of moves whose execution from the topic gives exactly the answers."""
    ends: dict[tuple[Move, ...], set[str]] = {(): {topic}}
    for _ in range(hops - 1):
        ends = {
            (*moves, move): reached
            for moves, names in ends.items()
            for move in sorted(films.moves(names))
            if (reached := films.step(names, move) - {topic})
        }
    return [
        (*moves, move)
        for moves, names in ends.items()
        for move in sorted(films.moves(names))
        if films.leads_only_to(names, move, answers | {topic})
        and films.step(names, move) - {topic} == answers
    ]


def asked_for(question: str, moves: Sequence[Move]) -> bool:
    """Whether a question's words speak of just the relations of some moves.

    >>> asked_for("who acted in the films directed by Ana", [("directed_by", True)])
    False
    """
    said = {relation for relation, cue in _CUES.items() if cue.search(question)}
    return said == {relation for relation, _ in moves}


def instances(
    films: Films, topic: str, moves: Sequence[Move], answers: Sequence[str]
) -> tuple[Path, ...]:
    """Paths of the knowledge base along some moves, from the topic to an answer, in their order.

    All of them up to `_MOST_PATHS`, but for those that come back to the topic.
    """
    found: list[tuple[str, Path]] = [(topic, ())]
    for number, move in enumerate(moves, 1):
        goal = set(answers) if number == len(moves) else None
        longer = (
            (other, (*path, _triple(name, move, other)))
            for name, path in found
            for other in films.joined[name].get(move, ())
            if other != topic and (goal is None or other in goal)
        )
        found = [pair for pair in longer if len(set(pair[1])) == len(pair[1])]
    return tuple(path for _, path in found)[:_MOST_PATHS]


def _triple(name: str, move: Move, other: str) -> Triple:
    """The triple of a move, as the knowledge base has it."""
    relation, is_back = move
    return Triple(other, relation, name) if is_back else Triple(name, relation, other)
