"""Chains that come to the right answer though a fact that it needs is false in them, or missing.

At the rate ``spurious``, decided once a question, the generator states one fact of its plan wrongly
(another value, another relation) or passes over it, and goes on to the right answer as if nothing
had been. What is wrong depends on the question alone, so that it can be told from what was written
(`players.truth`). Told of the fault it mends it, mostly, as its other mistakes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from safe_stepwise.checking import statements
from safe_stepwise.checking.wordings import phrase
from safe_stepwise.language.vocabulary import load
from safe_stepwise.players.facts import Facts, another
from safe_stepwise.records import Step, Triple

Way = Literal["value", "relation", "missing"]
_OTHERS: Mapping[str, Sequence[str]] = load("relations")["alike"]


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with a chain, at a place of its plan; ``text`` is the step's, if it has one.

    A value and a relation are stated wrongly; what is missing is passed over.
    """

    place: int
    way: Way
    text: str = ""


def flaw_of(facts: Facts, ideal: Sequence[Step]) -> Flaw | None:
    """What is wrong with a question's chain; None where all that it needs is hidden.

    ``ideal`` are the steps that carry out its plan.
    """
    chance = Random(f"spurious {facts.question.id}")
    places = [place for place in facts.places if not facts.is_hidden(place)]
    if not places:
        return None
    place = chance.choice(places)
    return chance.choice([*_flaws(facts, ideal, place, chance)])


def _flaws(facts: Facts, ideal: Sequence[Step], place: int, chance: Random) -> Iterator[Flaw]:
    yield Flaw(place, "missing")
    item, right = facts.plan.items[place], ideal[place].text
    value = facts.claims.value_of(item)
    other, seed = another(facts.question, value, chance), chance.randrange(100)
    if item.sentence is not None:
        if value in right:
            yield Flaw(place, "value", " ".join(right.replace(value, other).split()))
        return

    def told(triples: Sequence[Triple]) -> str:
        claim = statements.state(triples, seed)
        return " ".join(phrase("fact", str(seed), n=item.passage, claim=claim).split())

    yield Flaw(place, "value", told([replace(t, tail=other) for t in item.triples]))
    if relations := _OTHERS.get(item.triples[0].relation):
        relation = chance.choice(relations)
        yield Flaw(place, "relation", told([replace(t, relation=relation) for t in item.triples]))
