"""Makes a block's world from its seed, with namesakes and near misses that mislead a careless reader."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from builders.synthetic.world import PLACE, WORDS, Article, Entity, Namer, Value, World, order_of, pick, text_of

CREATORS: dict[str, str] = WORDS["creators"]
"""Trade of a work's maker, by the relation of the work to the maker."""


def make_world(rng: Random, write: Callable[[Entity, Random], Article], names: Namer | None = None) -> World:
    """Make a world from ``rng``; ``write`` writes every article, and ``names`` invents the names."""
    world = World(rng, write, names)
    _add_places(world)
    _add_organisations(world)
    _add_people(world)
    _add_works(world)
    _add_namesakes(world)
    _add_near_misses(world)
    # A town's namesake is never drawn, but its article may be needed.
    namesakes = [namesake for entity in world.entities for _, namesake in entity.alikes]
    entities = {entity.key: entity for entity in (*world.entities, *namesakes)}
    world.articles = {key: write(entity, rng) for key, entity in entities.items()}
    return world


def _add_places(world: World) -> None:
    """Add six countries in a ring of borders, their regions and towns, and cemeteries."""
    rng, names = world.rng, world.names
    countries = []
    for _ in range(6):
        ending, adjective = pick(rng, WORDS["countries"])
        stem = names.word(("",), long=True)
        country = world.add("country", stem + ending)
        country.demonym = stem + adjective
        countries.append(country)
    for n, country in enumerate(countries):
        capital = world.add("town", names.word(WORDS["towns"]), listed=False)
        country.facts = {
            "inception": [str(1200 + int(rng.random() * 600))],
            "capital": [capital],
            "shares border with": [countries[(n + 1) % 6]],
        }
        for _ in range(2):
            stem, ending = names.word(("", "a", "el"), long=True), pick(rng, WORDS["regions"])
            region = world.add("region", f"{stem} {ending}")
            region.facts = {"country": [country]}
            for _ in range(2):
                _add_town(world, names.word(WORDS["towns"]), region)
    world.cemeteries = [
        world.add("cemetery", f"{names.word(('',), long=True)} Cemetery", listed=False) for _ in range(8)
    ]


def _add_town(world: World, name: str, region: Entity, listed: bool = True) -> Entity:
    town = world.add("town", name, listed=listed)
    town.facts = {PLACE: [region], "country": region.facts["country"]}
    return town


def _add_organisations(world: World) -> None:
    """Add schools, record labels, companies and awards; `_add_works` adds their founders."""
    rng, names = world.rng, world.names
    towns = world.by_kind["town"]
    for n in range(10):
        town = towns[(n * 2) % len(towns)]
        name = f"{names.word(('',), long=True)} {pick(rng, ('College', 'Academy'))}"
        if rng.random() < 0.4:
            name = f"University of {names.word(('', 'a'), long=True)}"
        school = world.add("school", name)
        school.occupation = "university" if "Uni" in name else "school"
        founded = str(1650 + int(rng.random() * 180))
        school.facts = {"country": town.facts["country"], PLACE: [town], "inception": [founded]}
    for kind, words in WORDS["organisations"].items():
        for _ in range(8):
            organisation = world.add(kind, f"{names.word(('', 'a'), long=True)} {pick(rng, words['nouns'])}")
            town = pick(rng, towns)
            organisation.facts["country"] = town.facts["country"]
            if kind != "award":
                organisation.facts["headquarters location"] = [town]
            organisation.occupation = words["trade"]


def _add_people(world: World) -> None:
    """Add the makers of each trade with their careers, and families for most of them."""
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
                p.facts[relation] = [pick(rng, world.by_kind[kind])]
        if p.occupation == "singer":
            p.facts["record label"] = [pick(rng, world.by_kind["label"])]
    for p in everyone:
        if rng.random() < 0.75:
            _add_family(world, p)


def _add_person(world: World, trade: str, birth: int, female: bool, surname: str = "") -> Entity:
    """Add a person with dates, places and nationality; everyone born before 1925 has died."""
    rng, names = world.rng, world.names
    surname = surname or names.word(WORDS["surnames"], long=rng.random() < 0.4)
    first_name = names.given_name(female)
    p = world.add("person", f"{first_name} {surname}")
    p.short, p.female = surname, female
    p.occupation = WORDS["feminine"].get(trade, trade) if female else trade
    draw = rng.random()
    if draw < 0.15:
        p.full = f"{first_name} {names.given_name(female)} {surname}"
    elif draw < 0.22:
        p.full = f"{'Dame' if female else 'Sir'} {p.name}"
    elif draw < 0.3:
        p.full = f"{names.given_name(female)} {names.word(WORDS['surnames'])}"
    towns = world.by_kind["town"]
    p.facts = {
        "date of birth": [world.day(birth, birth)],
        "place of birth": [pick(rng, towns)],
        "country of citizenship": [pick(rng, world.by_kind["country"])],
    }
    if birth < 1925 or rng.random() < 0.25:
        p.facts["date of death"] = [world.day(birth + 50, min(birth + 88, 2015))]
        if rng.random() < 0.75:
            while (place := pick(rng, towns)) is p.facts["place of birth"][0]:
                pass
            p.facts["place of death"] = [place]
        if rng.random() < 0.25:
            p.facts["place of burial"] = [pick(rng, world.cemeteries)]
    return p


def _add_family(world: World, p: Entity) -> None:
    rng, year = world.rng, p.start_year
    draw = rng.random()
    job = pick(rng, WORDS["relatives"])
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
    father = _add_person(world, pick(rng, WORDS["fathers"]), year - 23 - int(rng.random() * 15), False, p.short)
    p.facts["father"] = [father]
    if rng.random() < 0.5:
        mother = _add_person(world, pick(rng, WORDS["mothers"]), year - 21 - int(rng.random() * 12), True)
        p.facts["mother"] = [mother]
    if rng.random() < 0.5:
        father.facts["father"] = [_add_person(world, "merchant", year - 60 - int(rng.random() * 10), False, p.short)]
    if rng.random() < 0.5 and "mother" in p.facts:
        mother.facts["father"] = [_add_person(world, "surgeon", year - 60 - int(rng.random() * 10), False)]


def _add_works(world: World) -> None:
    """Add works by living makers, and founders for the firms and awards."""
    rng, names = world.rng, world.names
    for kind, words in WORDS["works"].items():
        for _ in range(words["number"]):
            _add_work(world, kind, names.title(WORDS["titles"][kind]))
    for kind in WORDS["organisations"]:
        for organisation in world.by_kind[kind]:
            founder = world.maker("founded by")
            organisation.facts["inception"] = [str(founder.start_year + 25 + int(rng.random() * 20))]
            if rng.random() < 0.75:
                organisation.facts["founded by"] = [founder]


def _add_work(world: World, kind: str, name: str, avoid: Value | None = None) -> Entity:
    """Add a work from a year in which all its makers were active; its chief maker isn't ``avoid``."""
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
    work = world.add(kind, name)
    work.facts = {relation: [maker] for relation, maker in makers.items()}
    date: Value = world.day(year, year) if rng.random() < 0.35 else str(year)
    work.facts["publication date"] = [date]
    if kind in ("film", "book"):
        work.facts["country of origin"] = [pick(rng, world.by_kind["country"])]
        work.occupation = pick(rng, WORDS["genres"] if kind == "film" else ("novel", "book"))
    else:
        work.facts["record label"] = [pick(rng, world.by_kind["label"])]
    draw = rng.random()
    if draw < 0.25:
        work.title = f"{name} ({kind})"
    if not chief.works and rng.random() < 0.6:
        chief.works.append((lead, work))
    return work


def _year_in_careers(world: World, *people: Entity) -> int | None:
    """Draw a year in which all were grown up and alive; None if there is none."""
    low = max(p.start_year + 22 for p in people)
    ends = [order_of(p.facts["date of death"][0])[0] - 1 if "date of death" in p.facts else 2012 for p in people]
    high = min(*ends, *(p.start_year + 60 for p in people))
    return low + int(world.rng.random() * (high - low + 1)) if low <= high else None


def _add_namesakes(world: World) -> None:
    """Add namesakes for some people, films and towns, and link each pair in ``alikes``."""
    rng = world.rng
    for relation, group in world.makers.items():
        for p in group:
            if rng.random() < 0.45:
                _add_namesake(world, p, CREATORS[relation])
    for film in rng.sample(world.by_kind["film"], 10):
        twin = _add_work(world, "film", film.name, avoid=film.facts["director"][0])
        if film.start_year == twin.start_year:
            twin.facts["publication date"] = [str(film.start_year + 1)]
        for place in (film, twin):
            place.title = f"{place.name} ({place.start_year} film)"
        film.alikes.append(("title", twin))
        twin.alikes.append(("title", film))
    towns, regions = world.by_kind["town"], world.by_kind["region"]
    for town in towns[:12:2]:
        while (region := pick(rng, regions)).facts["country"] == town.facts["country"]:
            pass
        twin = _add_town(world, town.name, region, listed=False)
        for place in (town, twin):
            place.title = f"{place.name}, {text_of(place.facts[PLACE][0])}"
        town.alikes.append(("town", twin))


def _add_namesake(world: World, p: Entity, trade: str) -> None:
    rng, year = world.rng, p.start_year
    mode = pick(rng, ("epithet", "profession", "dates"))
    early = year - 150 - int(rng.random() * 30)
    later = year - 5 + int(rng.random() * 25)
    parent = year - 28 - int(rng.random() * 10)
    forebear, namesake = pick(rng, WORDS["forebears"]), pick(rng, WORDS["namesakes"])
    birth, job = {"dates": (early, forebear), "profession": (later, namesake)}.get(mode, (parent, trade))
    twin = _add_person(world, job, min(birth, 1985), p.female, p.short)
    base = p.name
    twin.full = p.full = ""
    if mode == "epithet":
        elder, younger = pick(rng, (("the Elder", "the Younger"), ("Sr.", "Jr.")))
        if p.female:
            elder, younger = "the Elder", "the Younger"
        p.name = p.title = f"{base} {younger}"
        twin.name = twin.title = f"{base} {elder}"
    else:
        twin.name, p.title = base, f"{base} ({p.occupation})"
        twin.title = f"{base} ({twin.occupation})"
        if rng.random() < 0.4:
            p.asides.append(("apart hatnote", {"other": twin}))
    p.alikes.append((mode, twin))


def _add_near_misses(world: World) -> None:
    """Add towns and contemporaries that articles mention and that answer nothing."""
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
            near.append(pick(rng, [p for p, start in born if abs(start - year) < 40]))
        if rng.random() < (0.6 if e.kind == "person" else 0.7):
            near.append(pick(rng, towns))
        mentioned = {text_of(v) for vs in e.facts.values() for v in vs} | {e.name}
        e.facts["_near"] = [v for v in near if text_of(v) not in mentioned]
