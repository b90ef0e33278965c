"""Outcomes of prompting methods whose players speak from a script."""

from __future__ import annotations

import asyncio
from typing import Any

from evaluators.outcomes import Outcome
from evaluators.prompting.measures import measure_trajectory
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import option_values, options_type
from safe_stepwise.methods.running import make_answerer
from safe_stepwise.records import Hop, Passage, Question, SupportingFact, Triple
from safe_stepwise.scoring import exact_match, f1
from tests.safe_stepwise.methods.machines import Script

FILM = Passage("Dune Rain", ("It is a film.", "Dune Rain was directed by Ors Velt."), True)
MAN = Passage("Ors Velt", ("Ors Velt was born in Oru.",), True)
OTHER = Passage("Low Tide", ("Low Tide is a film.", "It was shot in Kel."))
_ASKED = ("q1", "x", "validation", "Where was the director of Dune Rain born?", "Oru")
FACTS = (SupportingFact("Dune Rain", 1), SupportingFact("Ors Velt", 0))
TRIPLES = (Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "place of birth", "Oru"))
HOPS = (Hop("Dune Rain >> director", "Ors Velt", 1), Hop("Where was #1 born?", "Oru", 2))


def question(benchmark: str = "2wikimultihopqa", id_: str = "q1", **changes: Any) -> Question:
    """The same two hops, annotated as the benchmark does it."""
    annotated: dict[str, Any] = {
        "musique": {"decomposition": HOPS, "aliases": ("Oru town",)},
        "hotpotqa": {"supporting_facts": FACTS},
        "2wikimultihopqa": {"supporting_facts": FACTS, "evidence": TRIPLES},
    }[benchmark]
    fields = {"passages": (FILM, MAN, OTHER), "hops": 2, **annotated, **changes}
    return Question(id_, benchmark, *_ASKED[2:], **fields)


def outcome_of(
    method: str,
    script: Script,
    asked: Question | None = None,
    simulated: bool = False,
    generator: str = "model",
    **options: Any,
) -> Outcome:
    """What a method came to, measured as an evaluation does it."""
    asked = asked or question()
    of, chosen = METHODS[method], options_type(METHODS[method])(**options)
    players = dict.fromkeys(of.roles, Client(MockEngine(script), tries=1))
    found = asyncio.run(make_answerer(of, players, chosen)(asked))
    return Outcome(
        asked.benchmark,
        method,
        dict.fromkeys(of.roles, generator),
        option_values(chosen),
        asked.id,
        exact_match(found.answer, asked.accepted),
        f1(found.answer, asked.accepted, asked.benchmark),
        None,
        found,
        simulated,
        measures=measure_trajectory(asked, found, chosen, asked.benchmark),
    )
