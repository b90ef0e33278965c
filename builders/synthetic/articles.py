"""Articles: an entity's facts told as an encyclopedia would, and no fact that it doesn't hold.

Text is made from facts alone, so noise is made by writing an article from changed facts.
"""

from random import Random

from builders.synthetic.wording import PROSE
from builders.synthetic.world import Article, Day, Entity, one, order_of, start_year, text_of
from builders.synthetic.writer import Writer


def write_article(e: Entity, rng: Random) -> Article:
    """The article of ``e``: 2 to 7 sentences that state every fact it holds and no other."""
    w = Writer(rng, e)
    _WRITERS[e.kind](w, e)
    for aside in e.asides:
        w.add(aside)
    if len(w.sentences) < 2:
        w.aside("filler", None)
    mentions = {v.key for vs in e.facts.values() for v in vs if isinstance(v, Entity)}
    mentions.update(work.key for _, work in e.works)
    return Article(e.title, tuple(w.sentences), w.states, frozenset(mentions | {e.key}))


def _life(w: Writer, e: Entity) -> tuple[str, list[tuple[int, str]]]:
    """The parentheses after a person's name, and what they state."""
    facts = e.facts
    born, died = facts.get("date of birth"), facts.get("date of death")
    place, end = facts.get("place of birth"), facts.get("place of death")
    draw = w.rng.random()
    alias = f"born {e.full}; " if e.full and e.short not in e.full else ""
    if born is None:
        if died is None or draw < 0.5:
            return "", []
        return f" (died {text_of(died[0])})", [(e.key, "date of death")]
    dob = (e.key, "date of birth")
    if died is None:
        if draw < 0.15:
            return "", []
        if place and draw < 0.4:
            said = [dob, (e.key, "place of birth")]
            return f" (born {text_of(born[0])} in {text_of(place[0])})", said
        return f" ({alias}born {text_of(born[0])})", [dob]
    dod = (e.key, "date of death")
    if place and end and draw < 0.12:
        said = [dob, dod, (e.key, "place of birth"), (e.key, "place of death")]
        return (
            f" ({text_of(born[0])}, {text_of(place[0])} – {text_of(died[0])}, {text_of(end[0])})"
        ), said
    if draw < 0.3:
        return f" ({alias}{order_of(born[0])[0]}–{order_of(died[0])[0]})", []
    if draw < 0.36:
        return f" (b. {text_of(born[0])} – d. {text_of(died[0])})", [dob, dod]
    return f" ({alias}{text_of(born[0])} – {text_of(died[0])})", [dob, dod]


def _person(w: Writer, e: Entity) -> None:
    facts, rng = e.facts, w.rng
    life, said = _life(w, e)
    lead = e.full if e.full and e.short in e.full else e.name
    country = facts.get("country of citizenship")
    was = w.words["was"]
    occupation = e.occupation
    if country and isinstance(country[0], Entity):
        home = country[0]
        draw = rng.random()
        if draw < 0.75:
            role = _with_article(f"{home.demonym} {occupation}")
        elif draw < 0.9:
            role = f"{_with_article(occupation)} from {home.name}"
        else:
            role = ""
        if role:
            said = [*said, (e.key, "country of citizenship")]
    else:
        role = ""
    role = role or _with_article(occupation)
    w.add(f"{lead}{life} {was} {role}.", *said)
    w.tell("country of citizenship", "country of citizenship")
    _event(w, "born both", "date of birth", "place of birth")
    if "father" in facts and "mother" in facts:
        w.tell("parents", "father", "mother")
    else:
        w.tell("father", "father")
        w.tell("mother", "mother")
    for relation in ("sibling", "educated at", "employer", "record label"):
        w.tell(relation, relation)
    for relation, work in e.works:
        _work(w, relation, work)
    for relation in ("award received", "spouse", "child"):
        w.tell(relation, relation)
    _incidents(w, e, "aside", "company aside")
    _event(w, "died both", "date of death", "place of death")
    w.tell("place of burial", "place of burial")


def _with_article(noun: str) -> str:
    vowel = noun[0] in "aeiouAEIOU" and not noun.startswith("uni")
    return f"an {noun}" if vowel else f"a {noun}"


def _event(w: Writer, both: str, date: str, place: str) -> None:
    """State the date and the place of a birth or death, together if neither is told yet."""
    owed = [r for r in (place, date) if r in w.e.facts and (w.e.key, r) not in w.states]
    if len(owed) == 2:
        w.tell(both, place, date)
    elif owed:
        w.tell(owed[0], owed[0])


def _work(w: Writer, relation: str, work: Entity) -> None:
    words = w.words
    words["x"], words["y"] = work.name, str(start_year(work))
    w.add(one(w.rng, PROSE["works " + relation]).format_map(words), (work.key, relation))


def _incidents(w: Writer, e: Entity, place: str, company: str = "") -> None:
    """Near-misses: other places, years and people the subject had to do with."""
    for told in e.incidents:
        w.add(told)
    near = e.facts.get("_near", ()) if len(w.sentences) < 5 else ()
    for incident in near:
        template = company if isinstance(incident, Entity) and incident.kind == "person" else place
        w.aside(template, incident)


def _dated(w: Writer, kind: str) -> None:
    values = w.e.facts.get("publication date")
    if values:
        form = "date" if isinstance(values[0], Day) else "year"
        w.tell(f"publication {form} {kind}", "publication date")


def _lead_words(w: Writer, e: Entity) -> tuple[str, list[tuple[int, str]]]:
    """ "1954 Kelvian" before a work's genre, as far as the facts go, and what it states."""
    words: list[str] = []
    said: list[tuple[int, str]] = []
    date = e.facts.get("publication date")
    if date and w.rng.random() < 0.75:
        words.append(str(order_of(date[0])[0]))
        if isinstance(date[0], str):
            said.append((e.key, "publication date"))
    origin = e.facts.get("country of origin")
    if origin and isinstance(origin[0], Entity) and w.rng.random() < 0.7:
        words.append(origin[0].demonym)
        said.append((e.key, "country of origin"))
    return " ".join([*words, ""]), said


def _film(w: Writer, e: Entity) -> None:
    rng, facts = w.rng, e.facts
    words, said = _lead_words(w, e)
    noun = _with_article(f"{words}{e.occupation} film")
    director, cast = facts.get("director"), facts.get("cast member")
    draw = rng.random()
    if director and cast and draw < 0.3:
        text = f"{e.name} is {noun} directed by {w.plain(director)} and starring {w.plain(cast)}."
        said += [(e.key, "director"), (e.key, "cast member")]
    elif director and draw < 0.55:
        verb = one(rng, ("directed by", "written and directed by", "made by the director"))
        if len(director) > 1:
            verb = one(rng, ("directed by", "co-directed by"))
        text = f"{e.name} is {noun} {verb} {w.plain(director)}."
        said.append((e.key, "director"))
    elif director and draw < 0.7:
        text = f"Directed by {w.plain(director)}, {e.name} is {noun}."
        said.append((e.key, "director"))
    else:
        text = f"{e.name} is {noun}."
    w.add(text, *said)
    for relation in ("director", "producer", "cast member"):
        w.tell(relation, relation)
    w.tell("composer film", "composer")
    w.tell("country of origin", "country of origin")
    _dated(w, "film")
    _incidents(w, e, "film aside")


def _record(w: Writer, e: Entity) -> None:
    rng, facts = w.rng, e.facts
    noun = "album" if e.kind == "album" else "song"
    performer, date, label = (
        facts.get(r) for r in ("performer", "publication date", "record label")
    )
    text, said = f"{e.name} is {_with_article(noun)}", []
    if performer and rng.random() < 0.7:
        verb = one(rng, ("by", "recorded by", "performed by"))
        text += f" {verb} {w.describe(performer)}"
        said.append((e.key, "performer"))
    if date and isinstance(date[0], str) and rng.random() < 0.6:
        text += f", released in {date[0]}" if said else f" released in {date[0]}"
        said.append((e.key, "publication date"))
        if label and rng.random() < 0.5:
            text += f" by {w.plain(label)}" if rng.random() < 0.5 else f" on {w.plain(label)}"
            said.append((e.key, "record label"))
    w.add(f"{text}.", *said)
    w.tell("performer", "performer")
    w.tell("composer song", "composer")
    w.tell("record label song", "record label")
    _dated(w, "song")
    _incidents(w, e, "song aside")


def _book(w: Writer, e: Entity) -> None:
    words, said = _lead_words(w, e)
    author = e.facts.get("author")
    noun = _with_article(f"{words}{e.occupation}")
    if author and w.rng.random() < 0.7:
        verb = one(w.rng, ("by", "written by", "by the writer"))
        verb = verb if len(author) == 1 else "by"
        w.add(f"{e.name} is {noun} {verb} {w.plain(author)}.", *said, (e.key, "author"))
    else:
        w.add(f"{e.name} is {noun}.", *said)
        w.tell("author", "author")
    if (e.key, "country of origin") not in w.states and "country of origin" in e.facts:
        w.aside("book origin", e.facts["country of origin"][0])
        w.states[e.key, "country of origin"] = len(w.sentences) - 1
    _dated(w, "book")
    _incidents(w, e, "book aside")


def _town(w: Writer, e: Entity) -> None:
    region, country = "located in the administrative territorial entity", "country"
    if region in e.facts and country in e.facts:
        w.tell("town", region, country)
    elif region in e.facts:
        w.tell(region, region)
    elif country in e.facts:
        w.tell(country, country)
    else:
        w.add(f"{e.name} is a small town on a river.")
    _incidents(w, e, "town aside")


def _region(w: Writer, e: Entity) -> None:
    if "country" in e.facts:
        w.tell("region", "country")
    else:
        w.add(f"{e.name} is an administrative division in hilly country.")
    _incidents(w, e, "region aside")


def _country(w: Writer, e: Entity) -> None:
    w.add(f"{e.name} is a country with {one(w.rng, ('a long coast', 'mild winters'))}.")
    w.tell("inception country", "inception")
    w.tell("capital", "capital")
    w.tell("shares border with", "shares border with")
    _incidents(w, e, "region aside")


def _organisation(w: Writer, e: Entity) -> None:
    rng, facts = w.rng, e.facts
    country = facts.get("country")
    noun, said, tail = e.occupation, [], ""
    if country and isinstance(country[0], Entity):
        said.append((e.key, "country"))
        if rng.random() < 0.6:
            noun = f"{country[0].demonym} {noun}"
        else:
            tail = f" in {country[0].name}"
    year = facts.get("inception")
    if year and "founded by" not in facts and rng.random() < 0.5:
        verb = one(rng, ("founded in", "established in"))
        tail += f", {verb} {text_of(year[0])}"
        said.append((e.key, "inception"))
    w.add(f"{e.name} is {_with_article(noun)}{tail}.", *said)
    if year and "founded by" in facts:
        w.tell("founded both", "founded by", "inception")
    else:
        w.tell("founded by", "founded by")
        w.tell("inception", "inception")
    w.tell("headquarters location", "headquarters location")
    w.tell("school place", "located in the administrative territorial entity")
    _incidents(w, e, "award place" if e.kind == "award" else "org aside")


_WRITERS = {
    "person": _person,
    "film": _film,
    "song": _record,
    "album": _record,
    "book": _book,
    "town": _town,
    "region": _region,
    "country": _country,
    "school": _organisation,
    "company": _organisation,
    "label": _organisation,
    "award": _organisation,
}
