"""Countries, regions, towns, and the schools and firms that are based there."""

from builders.synthetic.world import Entity, World, one

TOWNS = ("stad", "wick", "mouth", "oru", "holm", "haven", "ville", "ona", "bridge", "imar", "feld")
COUNTRIES = (("ia", "ian"), ("land", "landic"), ("or", "orese"), ("istan", "istani"), ("o", "oan"))
REGIONS = ("Province", "County", "Region", "District")


def add_places(world: World) -> None:
    """Six countries in a ring of borders, their regions and towns, and cemeteries."""
    rng, names = world.rng, world.names
    countries = []
    for _ in range(6):
        ending, adjective = one(rng, COUNTRIES)
        stem = names.word(("",), long=True)
        country = world.new("country", stem + ending)
        country.demonym = stem + adjective
        countries.append(country)
    for n, country in enumerate(countries):
        capital = world.new("town", names.word(TOWNS), listed=False)
        country.facts = {
            "inception": [str(1200 + int(rng.random() * 600))],
            "capital": [capital],
            "shares border with": [countries[(n + 1) % 6]],
        }
        for _ in range(2):
            stem, ending = names.word(("", "a", "el"), long=True), one(rng, REGIONS)
            region = world.new("region", f"{stem} {ending}")
            region.facts = {"country": [country]}
            for _ in range(2):
                add_town(world, names.word(TOWNS), region)
    world.cemeteries = [
        world.new("cemetery", f"{names.word(('',), long=True)} Cemetery", listed=False) for _ in range(8)
    ]


def add_town(world: World, name: str, region: Entity, listed: bool = True) -> Entity:
    """A town of the region and its country."""
    town = world.new("town", name, listed=listed)
    town.facts = {"located in the administrative territorial entity": [region], "country": region.facts["country"]}
    return town


def add_organisations(world: World) -> None:
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
        school.facts = {
            "country": town.facts["country"],
            "located in the administrative territorial entity": [town],
            "inception": [str(1650 + int(rng.random() * 180))],
        }
    for kind, nouns in (
        ("label", ("Records", "Music", "Recordings")),
        ("company", ("Pictures", "Motors", "Press", "Works")),
        ("award", ("Prize", "Medal", "Award")),
    ):
        for _ in range(8):
            org = world.new(kind, f"{names.word(('', 'a'), long=True)} {one(rng, nouns)}")
            town = one(rng, towns)
            org.facts["country"] = town.facts["country"]
            if kind != "award":
                org.facts["headquarters location"] = [town]
            org.occupation = {"label": "record label", "award": "arts prize"}.get(kind, "company")
