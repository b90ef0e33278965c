"""A corruption that can be followed from the question to its answer is none."""

from __future__ import annotations

from random import Random

import pytest

from builders.paths.corruptions import Scope, find_objection
from builders.paths.world import Path, PathQuestion, World
from safe_stepwise.records import Triple

DIRECTED = Triple("Ana Brell", "directed", "Ember")
WROTE = Triple("Ors Velt", "wrote", "Ember")
BOOK, PRESS = Triple("Ana Brell", "author of", "Dune Rain"), Triple("Dune Rain", "publisher", "Oru Press")


def question(text: str, path: Path, answer: str, *topics: str) -> PathQuestion:
    places = tuple(range(1, len(path) + 1))
    return PathQuestion("webqsp", "q", text, answer, (answer,), (path,), "Ana Brell", places, topics=topics)


@pytest.mark.parametrize(
    ("kind", "asked", "path", "leads"),
    [
        # Another topic of the question, and the same without it.
        ("misguided_question", question("which film is it", (DIRECTED,), "Ember", "Ors Velt"), (WROTE,), True),
        ("misguided_question", question("which film is it", (DIRECTED,), "Ember"), (WROTE,), False),
        # An entity that the question names.
        ("misguided_question", question("which film did ors velt write", (DIRECTED,), "Ember"), (WROTE,), True),
        ("hop_dropped", question("who published dune rain", (BOOK, PRESS), "Oru Press"), (PRESS,), True),
        ("hop_dropped", question("who published her book", (BOOK, PRESS), "Oru Press"), (PRESS,), False),
        ("hop_dropped", question("who published her book", (BOOK, PRESS), "Oru Press"), (BOOK,), False),
    ],
)
def test_what_leads_to_the_answer_is_refused(kind: str, asked: PathQuestion, path: Path, leads: bool) -> None:
    scope = Scope(asked, World([asked], [DIRECTED, WROTE, BOOK, PRESS]), [asked], Random(0))
    objection = find_objection(kind, scope, path, 1)  # type: ignore[arg-type]
    assert objection == ("it leads to the answer" if leads else None)


def test_a_side_of_a_comparison_leads_nowhere_though_the_question_names_it() -> None:
    sides = (Triple("Ember", "date", "1954"), Triple("Ash", "date", "1960"))
    asked = PathQuestion(
        "2wikimultihopqa", "q", "which came first, ember or ash", "Ember", ("Ember",), (sides,), "Ember", (1, 2)
    )
    scope = Scope(asked, World([asked], sides), [asked], Random(0))
    assert find_objection("hop_dropped", scope, sides[:1], 2) is None
