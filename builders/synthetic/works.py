"""Films, songs, albums and books, and who founded the firms."""

from builders.synthetic.world import Entity, Value, World, one, order_of, start_year

FILM_TITLES = (
    "The {n} of {a}", "{a} and the {n}", "Return to {a}", "{a} {b}", "The {n} in {a}", "{a}",
    "The Last {n} of {a}", "Goodbye, {a}", "{a}'s {n}", "The {a} {n}",
)  # fmt: skip
SONG_TITLES = ("Sing for {a}", "{a} in Blue", "Oh {a}", "The {n} and {a}", "{a} Road", "Dear {a}")
ALBUM_TITLES = ("The {a} Sessions", "Songs from {a}", "{a} {n}", "Live in {a}", "{n} for {a}")
BOOK_TITLES = ("The {n} of {a}", "A History of {a}", "{a}: A Life", "The {a} {n}", "{a}'s {n}")
_GENRES = ("drama", "comedy", "crime", "silent", "romantic", "war", "thriller", "musical")


def add_works(world: World) -> None:
    """Works by living makers, and founders for the firms and awards."""
    rng, names = world.rng, world.names
    for kind, count, patterns in (
        ("film", 44, FILM_TITLES),
        ("song", 14, SONG_TITLES),
        ("album", 12, ALBUM_TITLES),
        ("book", 16, BOOK_TITLES),
    ):
        for _ in range(count):
            add_work(world, kind, names.title(patterns))
    for kind in ("label", "company", "award"):
        for org in world.by_kind[kind]:
            founder = world.maker("founded by")
            org.facts["inception"] = [str(_start(world, founder))]
            if rng.random() < 0.75:
                org.facts["founded by"] = [founder]


def add_work(world: World, kind: str, name: str, avoid: Entity | None = None) -> Entity:
    """A work from a year in which all its makers were active; its chief maker isn't ``avoid``."""
    rng = world.rng
    lead = {"film": "director", "book": "author"}.get(kind, "performer")
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
        year = _year_in_career(world, *makers.values())
    work = world.new(kind, name)
    work.facts = {relation: [maker] for relation, maker in makers.items()}
    date: Value = world.day(year, year) if rng.random() < 0.35 else str(year)
    work.facts["publication date"] = [date]
    if kind in ("film", "book"):
        work.facts["country of origin"] = [one(rng, world.by_kind["country"])]
        work.occupation = one(rng, _GENRES) if kind == "film" else one(rng, ("novel", "book"))
    else:
        work.facts["record label"] = [one(rng, world.by_kind["label"])]
    draw = rng.random()
    if draw < 0.25:
        work.title = f"{name} ({kind})"
    if not chief.works and rng.random() < 0.6:
        chief.works.append((lead, work))
    return work


def _year_in_career(world: World, *people: Entity) -> int | None:
    """A year in which all were grown up and alive, if there is one."""
    low = max(start_year(p) + 22 for p in people)
    high = min(
        min(order_of(p.facts["date of death"][0])[0] - 1 if "date of death" in p.facts
            else 2012, start_year(p) + 60) for p in people
    )  # fmt: skip
    return low + int(world.rng.random() * (high - low + 1)) if low <= high else None


def _start(world: World, founder: Entity) -> int:
    return start_year(founder) + 25 + int(world.rng.random() * 20)
