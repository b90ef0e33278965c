"""What a graph decides of constraints, and what it leaves open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.graphs.graph_store import GraphStore, instances, read_triples
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.records import COMPARISONS, CONSTRAINT_KINDS, Candidate, Constraint
from tests.safe_stepwise.graphs.test_graph_store import EVERY, triples_of_a_graph

GRAPH = GraphStore(
    [
        ("Oru", "by", "Ana"), ("Vel", "by", "Ana"), ("Isk", "by", "Ana"), ("1984", "by", "Ana"),
        ("Oru", "year", "1990"), ("Vel", "year", "1998"), ("1984", "year", "1956"),
        ("Oru", "with", "Edo"), ("Vel", "with", "Pell"), ("Isk", "with", "Edo"),
        ("Oru", "gross", "1,200"), ("Vel", "gross", "1,100"),
        ("Pell", "born", "3 May 1940"), ("Edo", "born", "1950"),
        ("Pell", "died", "1991"), ("Edo", "prize", "2001"), ("Edo", "prize", "2003"),
    ]
)  # fmt: skip
KNOWLEDGE = GraphKnowledge(GRAPH)
FILMS = Candidate("Ana", ("~by",))
ACTORS = Candidate("Ana", ("~by", "with"))
YEARS = Candidate("Ana", ("~by", "year"))


def decided(kind: str, candidate: Candidate = FILMS, *pool: Candidate, **fields: str) -> dict[str, bool]:
    said = Constraint(kind, "It is so.", **fields)  # type: ignore[arg-type]
    return KNOWLEDGE.decide(said, candidate, [candidate, *pool])


# ---------------------------------------------------------------- type, other entities


def test_a_type_is_what_a_relation_leads_to() -> None:
    assert decided("type", relation="~by") == dict.fromkeys(("Oru", "Vel", "Isk", "1984"), True)
    assert decided("type", YEARS, relation="year") == dict.fromkeys(("1990", "1998", "1956"), True)
    assert decided("type", relation="gross") == {}  # no graph shows what nothing can be
    assert decided("type", relation="~gross") == {"Oru": True, "Vel": True}
    assert decided("type", relation="genre") == {}
    assert decided("type") == {}


def test_an_induced_kind_is_left_to_the_model() -> None:
    assert decided("shared_role", relation="~by", entity="Edo", time="1990", comparison="in") == {}


def test_several_topics_by_intersection() -> None:
    with_edo = Candidate("Edo", ("~with",))
    found = decided("multi_entity", FILMS, with_edo, entity="Edo")
    assert found == {"Oru": True, "Isk": True, "Vel": False, "1984": False}
    assert decided("multi_entity", FILMS, entity="Edo") == {}
    assert decided("multi_entity", FILMS, with_edo, entity="Pell") == {}
    far = Candidate("Edo", ("born",))
    assert decided("multi_entity", FILMS, far, entity="Edo") == {}


@pytest.mark.parametrize("relation", ["with", "~with"])
def test_another_entity_by_its_relation_in_either_direction(relation: str) -> None:
    """A film of which no actor is known may have any."""
    found = decided("multi_entity", entity="Edo", relation=relation)
    assert found == {"Oru": True, "Isk": True, "Vel": False}


@pytest.mark.parametrize("entity", ["Ana", "Nobody", "edo", ""])
def test_of_the_topic_itself_and_strangers_nothing_is_decided(entity: str) -> None:
    assert decided("multi_entity", entity=entity, relation="with") == {}


# ---------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("time", "comparison", "met", "failed"),
    [
        ("1990", "in", "Oru", "Vel 1984"),
        ("1990", "", "Oru", "Vel 1984"),
        ("1990", "after", "Vel", "Oru 1984"),
        ("1998", "before", "Oru 1984", "Vel"),
        ("May 1998", "in", "Vel", "Oru 1984"),
        ("5 May 1998", "after", "", "Oru Vel 1984"),
    ],
)
@pytest.mark.parametrize("relation", ["year", ""])
def test_a_date_that_is_given(relation: str, time: str, comparison: str, met: str, failed: str) -> None:
    """The film of no year is left open; the name of the film "1984" is no date of it."""
    fields = {"time": time, "comparison": comparison, "relation": relation}
    expected = {**dict.fromkeys(met.split(), True), **dict.fromkeys(failed.split(), False)}
    assert decided("explicit_time", **fields) == expected


@pytest.mark.parametrize("time", ["", "long ago", "5 May"])
def test_what_is_no_date_decides_nothing(time: str) -> None:
    assert decided("explicit_time", time=time, relation="year") == {}


def test_a_date_that_is_the_answer_speaks_for_itself() -> None:
    found = decided("explicit_time", YEARS, time="1995", comparison="before")
    assert found == {"1990": True, "1956": True, "1998": False}


def test_the_date_may_be_that_of_what_stands_before_on_the_chain() -> None:
    """Who was in a film of 1990: Edo was in one of no year, too."""
    found = decided("explicit_time", ACTORS, time="1990", relation="year")
    assert found == {"Edo": True, "Pell": False}
    assert decided("explicit_time", ACTORS, time="1991", relation="year") == {"Pell": False}


def test_relations_that_give_other_dates_leave_it_open() -> None:
    """Pell was born in another year than he died in; no film of his speaks for him then.

    Edo, who was born before 1991 and won a prize after it, may have done anything in it.
    """
    assert decided("explicit_time", ACTORS, time="1991") == {}
    assert decided("explicit_time", ACTORS, time="1930") == {"Edo": False, "Pell": False}
    assert decided("explicit_time", ACTORS, time="1930", comparison="after") == {"Edo": True, "Pell": True}


TERMS = GraphKnowledge(
    GraphStore(
        [
            ("Arl", "holder", "m.1"), ("m.1", "who", "Ana"), ("m.1", "from", "2003-01-06"),
            ("m.1", "to", "2011-01-03T00:00:00Z"), ("Arl", "holder", "m.2"), ("m.2", "who", "Edo"),
            ("m.2", "from", "2009-01-21"), ("m.2", "to", "2009-12"), ("Arl", "holder", "m.3"),
            ("m.3", "who", "Pell"), ("m.3", "from", "1998"), ("m.3", "to", "2002-12-31"),
        ]
    )
)  # fmt: skip
HOLDERS = Candidate("Arl", ("holder", "who"))


@pytest.mark.parametrize("relation", ["from", "to", ""])
@pytest.mark.parametrize(("time", "out"), [("2009", "Pell"), ("5 May 2005", "Edo Pell")])
def test_a_time_is_met_by_the_terms_of_office_around_it(relation: str, time: str, out: str) -> None:
    said = Constraint("explicit_time", "It is so.", relation=relation, time=time, comparison="in")
    found = TERMS.decide(said, HOLDERS, [HOLDERS])
    assert {name for name, is_met in found.items() if not is_met} == {*out.split()}
    assert {name for name, is_met in found.items() if is_met} == {"Ana", "Edo", "Pell"} - {*out.split()}


def test_several_terms_of_one_entity_leave_the_time_between_them_open() -> None:
    days = [("office.from", "2001"), ("office.to", "2005"), ("office.from", "2015"), ("office.to", "2019")]
    path = Candidate("Arl", ("held_by",))
    said = Constraint("explicit_time", "In 2010.", time="2010", comparison="in")
    for chosen, expected in ((days, {}), ([days[0], days[3]], {"Ana": True}), (days[:2], {"Ana": False})):
        graph = GraphStore([("Arl", "held_by", "Ana"), *(("Ana", *day) for day in chosen)])
        assert GraphKnowledge(graph).decide(said, path, [path]) == expected
    born = GraphStore([("Arl", "held_by", "Ana"), ("Ana", "born", "1950"), ("Ana", "office.to", "2019")])
    assert GraphKnowledge(born).decide(said, path, [path]) == {}


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [("first", {"Pell": True, "Ana": False, "Edo": False}), ("last", {"Pell": False, "Ana": False})],
)
def test_terms_in_their_order(comparison: str, expected: dict[str, bool]) -> None:
    """By Freebase's dates; which of two is last is not known where one gives no day."""
    fields = {"relation": "from", "comparison": comparison}
    said = Constraint("ordinal", "It is so.", **fields)  # type: ignore[arg-type]
    found = TERMS.decide(said, HOLDERS, [HOLDERS])
    assert found.items() >= expected.items()
    coarse = GraphStore([("A", "of", "X"), ("B", "of", "X"), ("A", "on", "1998"), ("B", "on", "3 May 1998")])
    films = Candidate("X", ("~of",))
    assert GraphKnowledge(coarse).decide(replace(said, relation="on"), films, [films]) == {}


@pytest.mark.parametrize("text", ["1998-13", "1998-05-40", "1998-5", "0000-01-01", "1998-05-03x"])
def test_what_looks_like_a_date_of_freebase_and_is_none_decides_nothing(text: str) -> None:
    said = Constraint("explicit_time", "It is so.", relation="from", time=text, comparison="in")
    assert TERMS.decide(said, HOLDERS, [HOLDERS]) == {}


def test_a_film_that_is_called_as_a_year_has_no_date_by_that() -> None:
    graph = GraphStore([("1984", "by", "Ana"), ("B", "by", "Ana"), ("B", "year", "2001")])
    said = Constraint("explicit_time", "After 2000.", time="2000", comparison="after")
    for relation in ("year", ""):
        asked = replace(said, relation=relation)
        assert GraphKnowledge(graph).decide(asked, FILMS, [FILMS]) == {"B": True}


def test_the_direction_is_that_of_the_other_entity() -> None:
    """ "Vel" is an actor elsewhere, too; a topic may be named in another case."""
    graph = GraphStore([
        ("It", "with", "Edo"), ("Vel", "with", "Edo"), ("It", "by", "Ana"), ("Vel", "by", "Ana"),
        ("Oru", "by", "Ana"), ("Oru", "with", "Vel"),
    ])  # fmt: skip
    edo = Candidate("Edo", ("~with",))
    for entity, relation in (("Edo", "~with"), ("edo", "with")):
        said = Constraint("multi_entity", "With Edo.", entity=entity, relation=relation)
        found = GraphKnowledge(graph).decide(said, FILMS, [FILMS, edo])
        assert found == {"It": True, "Vel": True, "Oru": False}


def test_the_time_of_something_else() -> None:
    fields = {"entity": "Oru", "relation": "year"}
    assert decided("implicit_time", comparison="after", **fields) == {"Oru": False, "Vel": True, "1984": False}
    older = {"entity": "Edo", "relation": "born", "comparison": "before"}
    assert decided("implicit_time", ACTORS, **older) == {"Pell": True, "Edo": False}
    spell = {"entity": "Edo", "relation": "prize", "comparison": "in"}
    assert decided("implicit_time", ACTORS, **spell) == {"Edo": True}
    assert decided("implicit_time", entity="Isk", relation="year") == {}
    assert decided("implicit_time", entity="Nobody", relation="year") == {}
    assert decided("implicit_time", entity="Pell") == {}  # born or died?


# ---------------------------------------------------------------- order


def test_first_and_last_are_open_while_a_date_is_missing() -> None:
    assert decided("ordinal", comparison="first", relation="year") == {"Oru": False, "Vel": False}
    assert decided("ordinal", comparison="last", relation="year") == {"Oru": False, "1984": False}


def test_first_and_last_of_dates() -> None:
    found = decided("ordinal", YEARS, comparison="first")
    assert found == {"1956": True, "1990": False, "1998": False}


def test_first_by_what_stands_before_on_the_chain() -> None:
    chosen = Candidate("Pell", ("~with", "by"))
    assert decided("ordinal", chosen, comparison="first", relation="year") == {"Ana": True}


def test_most_by_number_and_by_how_many() -> None:
    assert decided("ordinal", comparison="most", relation="gross") == {"Vel": False}
    found = decided("ordinal", ACTORS, comparison="most", relation="~with")
    assert found == {"Edo": True, "Pell": False}
    assert decided("ordinal", ACTORS, comparison="least", relation="~with")["Pell"] is True


@pytest.mark.parametrize("comparison", ["", "in", "first", "most"])
def test_no_order_without_values(comparison: str) -> None:
    assert decided("ordinal", comparison=comparison) == {}


# ---------------------------------------------------------------- any graph


@given(
    triples_of_a_graph,
    st.sampled_from(CONSTRAINT_KINDS),
    st.sampled_from(["", *COMPARISONS]),
    st.sampled_from(["", "by", "~by", "in", "no"]),
    st.sampled_from(["", "Oru", "1901", "Nobody"]),
)
def test_only_what_a_path_leads_to_is_decided(
    triples: list[tuple[str, str, str]], kind: str, comparison: str, relation: str, entity: str
) -> None:
    knowledge = GraphKnowledge(GraphStore(triples), hops=2)
    said = Constraint(
        kind,
        "x",
        relation,
        entity,
        time="1901",
        comparison=comparison,  # type: ignore[arg-type]
    )
    pool = [Candidate("Oru", path) for path in knowledge.list_paths("Oru")]
    for candidate in pool:
        found = knowledge.decide(said, candidate, pool)
        assert set(found) <= set(knowledge.rank_ends(candidate))
        assert all(isinstance(verdict, bool) for verdict in found.values())


@given(triples_of_a_graph)
def test_knowledge_ranks_by_instantiations_then_by_name(triples: list[tuple[str, str, str]]) -> None:
    graph = GraphStore(triples)
    knowledge = GraphKnowledge(graph, hops=2)
    for path in knowledge.list_paths("Oru"):
        candidate = Candidate("Oru", path)
        chains = list(instances(graph, "Oru", path, EVERY))
        times = {chain[-1]: sum(c[-1] == chain[-1] for c in chains) for chain in chains}
        ranked = knowledge.rank_ends(candidate)
        assert list(ranked) == sorted(times, key=lambda name: (-times[name], name))
        assert ranked
        assert knowledge.chains(candidate, 2) == chains[:2]
        assert set(path) <= set(knowledge.relations([candidate]))
    assert knowledge.rank_ends(Candidate("Nobody", ("by",))) == ()


# ---------------------------------------------------------------- MetaQA


def test_metaqa_s_years_and_types_are_decided(real_data: Path) -> None:
    """Against the triples themselves, for the busiest directors."""
    file = real_data / "metaqa_kb.txt.gz"
    if not file.is_file():
        pytest.skip(f"no {file}")
    triples = [*read_triples(file)]
    knowledge = GraphKnowledge(GraphStore(triples))
    years: dict[str, set[int]] = {}
    films: dict[str, set[str]] = {}
    for head, relation, tail in triples:
        if relation == "release_year" and tail.isdigit():
            years.setdefault(head, set()).add(int(tail))
        elif relation == "directed_by":
            films.setdefault(tail, set()).add(head)
    checked = 0
    busiest = sorted(films, key=lambda name: (-len(films[name]), name))[:40]
    for director in busiest:
        path = Candidate(director, ("~directed_by",))
        after = Constraint("explicit_time", "", "release_year", time="1990", comparison="after")
        found = knowledge.decide(after, path, [path])
        known = {film: years[film] for film in films[director] if len(years.get(film, ())) == 1}
        assert {f: found[f] for f in known} == {f: min(known[f]) > 1990 for f in known}
        checked += len(known)
        of_films = knowledge.decide(Constraint("type", "", "~directed_by"), path, [path])
        assert of_films == dict.fromkeys(films[director] - {director}, True)
        of_people = knowledge.decide(Constraint("type", "", "starred_actors"), path, [path])
        assert sum(of_people.values()) <= 1  # some films are called by a person
    assert checked > 400
