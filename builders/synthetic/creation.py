"""Makes a block's world from its seed, with what a careless reader takes for something else."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from builders.synthetic.people import CREATORS, add_people, add_person
from builders.synthetic.places import add_organisations, add_places, add_town
from builders.synthetic.works import add_work, add_works
from builders.synthetic.world import Article, Entity, Namer, Value, World, one, start_year, text_of

_SPORTS = ("footballer", "politician", "chemist", "cyclist", "bishop", "rower", "economist")
_EARLY = ("painter", "engraver", "clergyman", "organist", "naval officer", "astronomer")


def make_world(rng: Random, write: Callable[[Entity, Random], Article], names: Namer | None = None) -> World:
    """A world drawn from ``rng``, every article written by ``write``, ``names`` given by one."""
    world = World(rng, write, names)
    add_places(world)
    add_organisations(world)
    add_people(world)
    add_works(world)
    _add_namesakes(world)
    _add_near_misses(world)
    # A town's namesake is never drawn, but may have to be read.
    namesakes = [other for e in world.entities for _, other in e.alikes]
    told = {e.key: e for e in (*world.entities, *namesakes)}
    world.articles = {key: write(e, rng) for key, e in told.items()}
    return world


def _add_namesakes(world: World) -> None:
    """Namesakes for some people, films and towns, each pair linked in ``alikes``."""
    rng = world.rng
    for relation, group in world.makers.items():
        for p in group:
            if rng.random() < 0.45:
                _namesake(world, p, CREATORS[relation])
    films = world.by_kind["film"]
    for film in rng.sample(films, 10):
        director = film.facts["director"][0]
        twin = add_work(world, "film", film.name, avoid=director if isinstance(director, Entity)
                          else None)  # fmt: skip
        if start_year(film) == start_year(twin):
            twin.facts["publication date"] = [str(start_year(film) + 1)]
        for each in (film, twin):
            each.title = f"{each.name} ({start_year(each)} film)"
        film.alikes.append(("title", twin))
        twin.alikes.append(("title", film))
    towns, regions = world.by_kind["town"], world.by_kind["region"]
    for town in towns[:12:2]:
        while (region := one(rng, regions)).facts["country"] == town.facts["country"]:
            pass
        twin = add_town(world, town.name, region, listed=False)
        for each in (town, twin):
            home = each.facts["located in the administrative territorial entity"][0]
            each.title = f"{each.name}, {text_of(home)}"
        town.alikes.append(("town", twin))


def _namesake(world: World, p: Entity, occupation: str) -> None:
    rng, year = world.rng, start_year(p)
    mode = one(rng, ("epithet", "profession", "dates"))
    early = year - 150 - int(rng.random() * 30)
    birth = {"dates": early, "profession": year - 5 + int(rng.random() * 25)}.get(
        mode, year - 28 - int(rng.random() * 10)
    )
    job = {"dates": one(rng, _EARLY), "profession": one(rng, _SPORTS)}.get(mode, occupation)
    other = add_person(world, job, min(birth, 1985), p.female, p.short)
    base = p.name
    other.full = p.full = ""
    if mode == "epithet":
        elder, younger = one(rng, (("the Elder", "the Younger"), ("Sr.", "Jr.")))
        if p.female:
            elder, younger = "the Elder", "the Younger"
        p.name = p.title = f"{base} {younger}"
        other.name = other.title = f"{base} {elder}"
    else:
        other.name, p.title = base, f"{base} ({p.occupation})"
        other.title = f"{base} ({other.occupation})"
        if rng.random() < 0.4:
            p.asides.append(("apart hatnote", {"other": other}))
    p.alikes.append((mode, other))


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
