"""Makes a block's world from its seed, with what a careless reader takes for something else."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from builders.synthetic.world import PLACE, WORDS, Article, Entity, Namer, Value, World, one, order_of, text_of

CREATORS: dict[str, str] = WORDS["creators"]
"""Who makes works, by the relation of a work to them."""


def make_world(rng: Random, write: Callable[[Entity, Random], Article], names: Namer | None = None) -> World:
    """A world drawn from ``rng``, every article written by ``write``, ``names`` given by one."""
    world = World(rng, write, names)
    _add_places(world)
    _add_organisations(world)
    _add_people(world)
    _add_works(world)
    _add_namesakes(world)
    _add_near_misses(world)
    # A town's namesake is never drawn, but may have to be read.
    namesakes = [other for e in world.entities for _, other in e.alikes]
    told = {e.key: e for e in (*world.entities, *namesakes)}
    world.articles = {key: write(e, rng) for key, e in told.items()}
    return world


def _add_places(world: World) -> None:
    """Six countries in a ring of borders, their regions and towns, and cemeteries."""
    rng, names = world.rng, world.names
    countries = []
    for _ in range(6):
        ending, adjective = one(rng, WORDS["countries"])
        stem = names.word(("",), long=True)
        country = world.new("country", stem + ending)
        country.demonym = stem + adjective
        countries.append(country)
    for n, country in enumerate(countries):
        capital = world.new("town", names.word(WORDS["towns"]), listed=False)
        country.facts = {
            "inception": [str(1200 + int(rng.random() * 600))],
            "capital": [capital],
            "shares border with": [countries[(n + 1) % 6]],
        }
        for _ in range(2):
            stem, ending = names.word(("", "a", "el"), long=True), one(rng, WORDS["regions"])
            region = world.new("region", f"{stem} {ending}")
            region.facts = {"country": [country]}
            for _ in range(2):
                _add_town(world, names.word(WORDS["towns"]), region)
    world.cemeteries = [
        world.new("cemetery", f"{names.word(('',), long=True)} Cemetery", listed=False) for _ in range(8)
    ]


def _add_town(world: World, name: str, region: Entity, listed: bool = True) -> Entity:
    town = world.new("town", name, listed=listed)
    town.facts = {PLACE: [region], "country": region.facts["country"]}
    return town


def _add_organisations(world: World) -> None:
    """Schools, record labels, companies and awards; who founded them comes with the works."""
    rng, names = world.rng, world.names
    towns = world.by_kind["town"]
    for n in range(10):
        town = towns[(n * 2) % len(towns)]
        name = f"{names.word(('',), long=True)} {one(rng, ('College', 'Academy'))}"
        if rng.random() < 0.4:
            name = f"University of {names.word(('', 'a'), long=True)}"
        school = world.new("school", name)
        school.occupation = "university" if "Uni" in name else "school"
        founded = str(1650 + int(rng.random() * 180))
        school.facts = {"country": town.facts["country"], PLACE: [town], "inception": [founded]}
    for kind, about in WORDS["organisations"].items():
        for _ in range(8):
            organisation = world.new(kind, f"{names.word(('', 'a'), long=True)} {one(rng, about['nouns'])}")
            town = one(rng, towns)
            organisation.facts["country"] = town.facts["country"]
            if kind != "award":
                organisation.facts["headquarters location"] = [town]
            organisation.occupation = about["trade"]


def _add_people(world: World) -> None:
    """The makers of each trade with their careers, and families for most of them."""
    rng = world.rng
    for relation, trade in CREATORS.items():
        makers = world.makers[relation] = []
        for _ in range(14 if relation == "director" else 9):
            # Founders come first: what they founded employs and honours the others.
            founder = relation == "founded by"
            birth = 1830 + int(rng.random() * 15) if founder else 1882 + int(rng.random() * 75)
            makers.append(_add_person(world, trade, birth, rng.random() < 0.35))
    everyone = [p for makers in world.makers.values() for p in makers]
    for p in everyone:
        for relation, (kind, share) in WORDS["careers"].items():
            if rng.random() < share and len(p.facts) < 8:
                p.facts[relation] = [one(rng, world.by_kind[kind])]
        if p.occupation == "singer":
            p.facts["record label"] = [one(rng, world.by_kind["label"])]
    for p in everyone:
        if rng.random() < 0.75:
            _add_family(world, p)


def _add_person(world: World, trade: str, birth: int, female: bool, surname: str = "") -> Entity:
    """A person with dates, places and nationality; everyone born before 1925 has died."""
    rng, names = world.rng, world.names
    surname = surname or names.word(WORDS["surnames"], long=rng.random() < 0.4)
    given = names.given(female)
    p = world.new("person", f"{given} {surname}")
    p.short, p.female = surname, female
    p.occupation = WORDS["feminine"].get(trade, trade) if female else trade
    draw = rng.random()
    if draw < 0.15:
        p.full = f"{given} {names.given(female)} {surname}"
    elif draw < 0.22:
        p.full = f"{'Dame' if female else 'Sir'} {p.name}"
    elif draw < 0.3:
        p.full = f"{names.given(female)} {names.word(WORDS['surnames'])}"
    towns = world.by_kind["town"]
    p.facts = {
        "date of birth": [world.day(birth, birth)],
        "place of birth": [one(rng, towns)],
        "country of citizenship": [one(rng, world.by_kind["country"])],
    }
    if birth < 1925 or rng.random() < 0.25:
        p.facts["date of death"] = [world.day(birth + 50, min(birth + 88, 2015))]
        if rng.random() < 0.75:
            p.facts["place of death"] = [world.other(towns, p.facts["place of birth"][0])]
        if rng.random() < 0.25:
            p.facts["place of burial"] = [one(rng, world.cemeteries)]
    return p


def _add_family(world: World, p: Entity) -> None:
    rng, year = world.rng, p.start_year
    draw = rng.random()
    job = one(rng, WORDS["relatives"])
    if draw < 0.4:
        spouse = _add_person(world, job, year + int(rng.random() * 12) - 6, not p.female)
        p.facts["spouse"] = [spouse]
        if rng.random() < 0.7:
            spouse.facts["spouse"] = [p]
        if rng.random() < 0.4:
            _add_parents(world, spouse)
    elif draw < 0.7:
        _add_parents(world, p)
    elif draw < 0.85:
        child = _add_person(world, job, year + 24 + int(rng.random() * 12), rng.random() < 0.5, p.short)
        p.facts["child"] = [child]
        child.facts["mother" if p.female else "father"] = [p]
    else:
        sibling = _add_person(world, job, year + 2 + int(rng.random() * 6), rng.random() < 0.5, p.short)
        p.facts["sibling"], sibling.facts["sibling"] = [sibling], [p]


def _add_parents(world: World, p: Entity) -> None:
    rng, year = world.rng, p.start_year
    father = _add_person(world, one(rng, WORDS["fathers"]), year - 23 - int(rng.random() * 15), False, p.short)
    p.facts["father"] = [father]
    if rng.random() < 0.5:
        mother = _add_person(world, one(rng, WORDS["mothers"]), year - 21 - int(rng.random() * 12), True)
        p.facts["mother"] = [mother]
    if rng.random() < 0.5:
        father.facts["father"] = [_add_person(world, "merchant", year - 60 - int(rng.random() * 10), False, p.short)]
    if rng.random() < 0.5 and "mother" in p.facts:
        mother.facts["father"] = [_add_person(world, "surgeon", year - 60 - int(rng.random() * 10), False)]


def _add_works(world: World) -> None:
    """Works by living makers, and founders for the firms and awards."""
    rng, names = world.rng, world.names
    for kind, about in WORDS["works"].items():
        for _ in range(about["number"]):
            _add_work(world, kind, names.title(WORDS["titles"][kind]))
    for kind in WORDS["organisations"]:
        for organisation in world.by_kind[kind]:
            founder = world.maker("founded by")
            organisation.facts["inception"] = [str(founder.start_year + 25 + int(rng.random() * 20))]
            if rng.random() < 0.75:
                organisation.facts["founded by"] = [founder]


def _add_work(world: World, kind: str, name: str, avoid: Value | None = None) -> Entity:
    """A work from a year in which all its makers were active; its chief maker isn't ``avoid``."""
    rng, lead = world.rng, WORDS["works"][kind]["lead"]
    while (chief := world.maker(lead)) is avoid:
        pass
    year, makers = None, {}
    while year is None:
        makers = {lead: chief}
        if kind == "film":
            for relation in ("producer", "composer", "cast member"):
                if rng.random() < 0.45:
                    makers[relation] = world.maker(relation)
        elif kind != "book" and rng.random() < 0.4:
            makers["composer"] = world.maker("composer")
        year = _year_in_careers(world, *makers.values())
    work = world.new(kind, name)
    work.facts = {relation: [maker] for relation, maker in makers.items()}
    date: Value = world.day(year, year) if rng.random() < 0.35 else str(year)
    work.facts["publication date"] = [date]
    if kind in ("film", "book"):
        work.facts["country of origin"] = [one(rng, world.by_kind["country"])]
        work.occupation = one(rng, WORDS["genres"] if kind == "film" else ("novel", "book"))
    else:
        work.facts["record label"] = [one(rng, world.by_kind["label"])]
    draw = rng.random()
    if draw < 0.25:
        work.title = f"{name} ({kind})"
    if not chief.works and rng.random() < 0.6:
        chief.works.append((lead, work))
    return work


def _year_in_careers(world: World, *people: Entity) -> int | None:
    """A year in which all were grown up and alive, if there is one."""
    low = max(p.start_year + 22 for p in people)
    ends = [order_of(p.facts["date of death"][0])[0] - 1 if "date of death" in p.facts else 2012 for p in people]
    high = min(*ends, *(p.start_year + 60 for p in people))
    return low + int(world.rng.random() * (high - low + 1)) if low <= high else None


def _add_namesakes(world: World) -> None:
    """Namesakes for some people, films and towns, each pair linked in ``alikes``."""
    rng = world.rng
    for relation, group in world.makers.items():
        for p in group:
            if rng.random() < 0.45:
                _add_namesake(world, p, CREATORS[relation])
    for film in rng.sample(world.by_kind["film"], 10):
        twin = _add_work(world, "film", film.name, avoid=film.facts["director"][0])
        if film.start_year == twin.start_year:
            twin.facts["publication date"] = [str(film.start_year + 1)]
        for each in (film, twin):
            each.title = f"{each.name} ({each.start_year} film)"
        film.alikes.append(("title", twin))
        twin.alikes.append(("title", film))
    towns, regions = world.by_kind["town"], world.by_kind["region"]
    for town in towns[:12:2]:
        while (region := one(rng, regions)).facts["country"] == town.facts["country"]:
            pass
        twin = _add_town(world, town.name, region, listed=False)
        for each in (town, twin):
            each.title = f"{each.name}, {text_of(each.facts[PLACE][0])}"
        town.alikes.append(("town", twin))


def _add_namesake(world: World, p: Entity, trade: str) -> None:
    rng, year = world.rng, p.start_year
    mode = one(rng, ("epithet", "profession", "dates"))
    early = year - 150 - int(rng.random() * 30)
    later = year - 5 + int(rng.random() * 25)
    parent = year - 28 - int(rng.random() * 10)
    forebear, namesake = one(rng, WORDS["forebears"]), one(rng, WORDS["namesakes"])
    birth, job = {"dates": (early, forebear), "profession": (later, namesake)}.get(mode, (parent, trade))
    other = _add_person(world, job, min(birth, 1985), p.female, p.short)
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
    born = [(p, p.start_year) for p in people]
    for e in world.entities:
        if e.kind == "country":
            continue
        near: list[Value] = []
        if e.kind == "person" and rng.random() < 0.2:
            year = e.start_year
            near.append(one(rng, [p for p, start in born if abs(start - year) < 40]))
        if rng.random() < (0.6 if e.kind == "person" else 0.7):
            near.append(one(rng, towns))
        known = {text_of(v) for vs in e.facts.values() for v in vs} | {e.name}
        e.facts["_near"] = [v for v in near if text_of(v) not in known]
