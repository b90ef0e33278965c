"""Makes a block's world from its seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from builders.synthetic.articles import write_article
from builders.synthetic.namesakes import add_namesakes
from builders.synthetic.people import add_people
from builders.synthetic.places import add_organisations, add_places
from builders.synthetic.works import add_works
from builders.synthetic.world import Entity, Value, World, one, start_year, text_of


def make_world(rng: Random) -> World:
    """A world drawn from ``rng``, every article written."""
    world = World(rng, write_article)
    add_places(world)
    add_organisations(world)
    add_people(world)
    add_works(world)
    add_namesakes(world)
    _add_near_misses(world)
    world.articles = {e.key: write_article(e, rng) for e in world.entities}
    return world


def _add_near_misses(world: World) -> None:
    """Towns and contemporaries that articles mention and that answer nothing."""
    rng, towns = world.rng, world.by_kind["town"]
    people = world.by_kind["person"]
    for p in people:
        for relation in ("place of birth", "place of death"):
            town = p.facts.get(relation, [""])[0]
            if isinstance(town, Entity) and town.alikes and rng.random() < 0.4:
                p.facts[relation] = [replace(town, name=town.title)]
    born = [(p, start_year(p)) for p in people]
    for e in world.entities:
        if e.kind == "country":
            continue
        near: list[Value] = []
        if e.kind == "person" and rng.random() < 0.2:
            year = start_year(e)
            near.append(one(rng, [p for p, start in born if abs(start - year) < 40]))
        if rng.random() < (0.6 if e.kind == "person" else 0.7):
            near.append(one(rng, towns))
        known = {text_of(v) for vs in e.facts.values() for v in vs} | {e.name}
        e.facts["_near"] = [v for v in near if text_of(v) not in known]
