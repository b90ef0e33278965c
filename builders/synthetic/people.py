"""People: their dates, places, careers and families."""

from builders.synthetic.world import Entity, World, one, start_year

SURNAMES = ("in", "ard", "ett", "moor", "vell", "quist", "ov", "ander", "esk", "ane", "igo", "uhl")
CREATORS = {
    "director": "film director",
    "producer": "film producer",
    "composer": "composer",
    "performer": "singer",
    "author": "novelist",
    "cast member": "actor",
    "founded by": "businessman",
}


def add_people(world: World) -> None:
    """The makers of each trade with their careers, and families for most of them."""
    rng = world.rng
    for relation, occupation in CREATORS.items():
        world.makers[relation] = [
            add_person(
                world,
                occupation,
                # Founders come first: what they founded employs and honours the others.
                1830 + int(rng.random() * 15) if relation == "founded by" else 1882 + int(rng.random() * 75),
                rng.random() < 0.35,
            )
            for _ in range(14 if relation == "director" else 9)
        ]
    everyone = [p for group in world.makers.values() for p in group]
    for p in everyone:
        _career(world, p)
    for p in everyone:
        if rng.random() < 0.75:
            _family(world, p)


def add_person(world: World, occupation: str, birth: int, female: bool, surname: str = "") -> Entity:
    """A person with dates, places and nationality; everyone born before 1925 has died."""
    rng, names = world.rng, world.names
    surname = surname or names.word(SURNAMES, long=rng.random() < 0.4)
    given = names.given(female)
    p = world.new("person", f"{given} {surname}")
    p.short, p.female = surname, female
    p.occupation = _feminine(occupation) if female else occupation
    draw = rng.random()
    if draw < 0.15:
        p.full = f"{given} {names.given(female)} {surname}"
    elif draw < 0.22:
        p.full = f"{'Dame' if female else 'Sir'} {p.name}"
    elif draw < 0.3:
        p.full = f"{names.given(female)} {names.word(SURNAMES)}"
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


def _feminine(occupation: str) -> str:
    return {"actor": "actress", "businessman": "businesswoman"}.get(occupation, occupation)


def _career(world: World, p: Entity) -> None:
    rng, facts, kinds = world.rng, p.facts, world.by_kind
    for relation, kind, rate in (
        ("educated at", "school", 0.3),
        ("employer", "company", 0.2),
        ("award received", "award", 0.3),
    ):
        if rng.random() < rate and len(facts) < 8:
            facts[relation] = [one(rng, kinds[kind])]
    if p.occupation == "singer":
        facts["record label"] = [one(rng, kinds["label"])]


def _family(world: World, p: Entity) -> None:
    rng, year = world.rng, start_year(p)
    draw = rng.random()
    job = one(rng, ("painter", "lawyer", "physician", "teacher", "actor", "poet"))
    if draw < 0.4:
        spouse = add_person(world, job, year + int(rng.random() * 12) - 6, not p.female)
        p.facts["spouse"] = [spouse]
        if rng.random() < 0.7:
            spouse.facts["spouse"] = [p]
        if rng.random() < 0.4:
            _parents(world, spouse)
    elif draw < 0.7:
        _parents(world, p)
    elif draw < 0.85:
        child = add_person(world, job, year + 24 + int(rng.random() * 12), rng.random() < 0.5,
                            p.short)  # fmt: skip
        p.facts["child"] = [child]
        child.facts["mother" if p.female else "father"] = [p]
    else:
        twin = add_person(world, job, year + 2 + int(rng.random() * 6), rng.random() < 0.5, p.short)
        p.facts["sibling"], twin.facts["sibling"] = [twin], [p]


def _parents(world: World, p: Entity) -> None:
    rng, year = world.rng, start_year(p)
    father = add_person(world, one(rng, ("engineer", "writer", "merchant", "composer")),
                         year - 23 - int(rng.random() * 15), False, p.short)  # fmt: skip
    p.facts["father"] = [father]
    if rng.random() < 0.5:
        mother = add_person(world, one(rng, ("pianist", "teacher", "actor")),
                             year - 21 - int(rng.random() * 12), True)  # fmt: skip
        p.facts["mother"] = [mother]
    if rng.random() < 0.5:
        elder = add_person(world, "merchant", year - 60 - int(rng.random() * 10), False, p.short)
        father.facts["father"] = [elder]
    if rng.random() < 0.5 and "mother" in p.facts:
        elder = add_person(world, "surgeon", year - 60 - int(rng.random() * 10), False)
        mother.facts["father"] = [elder]
