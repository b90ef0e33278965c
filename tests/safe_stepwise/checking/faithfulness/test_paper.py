"""The paper's rule: its cases (Table 8, in our words), the order of a path, what is left open."""

from __future__ import annotations

from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.checking.faithfulness import paper
from safe_stepwise.checking.faithfulness.grounds import Chain, Grounds, grounds_of_paths
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.paper import join_steps
from safe_stepwise.records import Triple

CORFU = Triple("Corfu", "location.country.administrative_divisions", "Greece")
GREEK = Triple("Greece", "location.country.languages_spoken", "Greek Language")
CRUZADO = Triple("Brazilian cruzado", "location.country.currency_formerly_used", "Brazil")
REAL = Triple("Brazil", "location.country.currency_used", "Brazilian real")
TOUR = Triple("Rihanna: Live in Concert Tour", "music.artist.concert_tours", "Rihanna")
BORN = Triple("Rihanna", "people.person.place_of_birth", "Saint Michael Parish")
NATION = Triple("Rihanna", "people.person.nationality", "Barbados")
STORY = Triple("The story of my life", "book.author.book_editions_published", "Helen Keller")
DIED = Triple("Helen Keller", "people.deceased_person.place_of_death", "Easton")


def test_table_8_both_right() -> None:
    asked = "Which language is spoken in the country that the island of Corfu is part of?"
    told = Chain(
        (
            "The island of Corfu belongs to Greece.",
            "So the country with Corfu in it is Greece.",
            "Most people in Greece speak the Greek language.",
        ),
        "Greek",
    )
    found = judge_chain(grounds_of_paths(asked, ["Greek Language"], [[CORFU, GREEK]]), told, "paper")
    assert [step.triples for step in found.steps] == [(CORFU,), (CORFU,), (GREEK,)]
    assert (found.is_right, found.path, found.fault, found.edits) == (True, "faithful", "", 0)


def test_table_8_right_answer_wrong_path() -> None:
    asked = "Which money does the country of the Brazilian cruzado pay with today?"
    told = Chain(
        (
            "Brazil had the Brazilian cruzado for its currency in the late 1980s.",
            "So the country of the Brazilian cruzado is Brazil.",
        ),
        "Brazilian real",
    )
    grounds = grounds_of_paths(asked, ["Brazilian real"], [[CRUZADO, REAL]])
    found = judge_chain(grounds, told, "paper")
    assert [step.triples for step in found.steps] == [(CRUZADO,), (CRUZADO,)]
    assert (found.is_right, found.path, found.first) == (True, "unfaithful", None)
    assert found.edits == 1


def test_table_8_wrong_answer_right_path() -> None:
    """Printed as correct reasoning; to Algorithm 2 an answer error, which ``is_right`` keeps."""
    asked = "In which place did the star of the Rihanna: Live in Concert Tour grow up?"
    told = Chain(
        ("The star of the Rihanna: Live in Concert Tour was Rihanna.", "Barbados is where Rihanna grew up."),
        "Barbados",
    )
    grounds = grounds_of_paths(asked, ["Saint Michael Parish"], [[TOUR, BORN]], [NATION])
    found = judge_chain(grounds, told, "paper")
    assert [step.triples for step in found.steps] == [(TOUR,), (NATION,)]
    assert (found.is_right, found.path, found.fault) == (False, "faithful", "")


def test_table_8_both_wrong() -> None:
    asked = 'At which place did the writer of "The Story of My Life" pass away?'
    told = Chain(
        ('Helen Keller wrote the book "The Story of My Life".', "Connecticut, USA, is where Helen Keller died."),
        "Connecticut, USA",
    )
    grounds = grounds_of_paths(asked, ["Easton"], [[STORY, DIED]])
    found = judge_chain(grounds, told, "paper")
    assert [step.triples for step in found.steps] == [(STORY,), (DIED,)]
    assert (found.is_right, found.path, found.fault) == (False, "unfaithful", "factual")
    assert (found.first, found.steps[0].fault) == (2, "")
    assert found.steps[1].score == pytest.approx(0.57, abs=0.1)  # that printed, by other vectors


WALK = (
    Triple("Dune Rain", "director", "Ors Velt"),
    Triple("Ors Velt", "spouse", "Ana Vorr"),
    Triple("Ana Vorr", "birthplace", "Oru"),
    Triple("Oru", "country", "Kelvia"),
)


def sentences(path: tuple[Triple, ...]) -> tuple[str, ...]:
    return tuple(f"The {t.relation} of {t.head} is {t.tail}." for t in path)


def grounds_to(length: int) -> Grounds:
    asked = "Where is the wife of the director of Dune Rain from?"
    return grounds_of_paths(asked, [WALK[length - 1].tail], [WALK[:length]])


@pytest.mark.parametrize("length", [2, 3, 4])
def test_a_reordered_path_is_incoherent(length: int) -> None:
    grounds = grounds_to(length)
    for path in permutations(WALK[:length]):
        found = judge_chain(grounds, Chain(sentences(path), grounds.answers[0]), "paper")
        if path == WALK[:length]:
            assert (found.path, found.fault, found.first) == ("faithful", "", None)
        else:
            assert (found.path, found.fault) == ("unfaithful", "order"), path
            assert found.first is not None
            assert found.first > 1
            assert found.steps[found.first - 1].fault == "order"


@given(st.permutations(WALK), st.lists(st.booleans(), min_size=4, max_size=4))
def test_inverse_triples_are_accepted_whatever_the_order(path: list[Triple], turned: list[bool]) -> None:
    gold = [Triple(t.tail, t.relation, t.head) if turn else t
            for t, turn in zip(WALK, turned, strict=True)]  # fmt: skip
    asked = grounds_to(4)
    grounds = grounds_of_paths(asked.question, asked.answers, [gold])
    assert not grounds.is_branched
    found = paper.judge(grounds, Chain(sentences(tuple(path)), "Kelvia"))
    assert (found.path == "faithful") == (tuple(path) == WALK)


def test_a_false_fact_goes_before_a_broken_order() -> None:
    told = (*sentences(WALK[1::-1]), "Nobody knows where the river ends.")
    found = paper.judge(grounds_to(2), Chain(told, "Ana Vorr"))
    assert (found.fault, found.first) == ("factual", 3)
    assert [step.fault for step in found.steps] == ["", "", "factual"]


def test_a_wrong_answer_is_no_fault_of_the_path() -> None:
    found = paper.judge(grounds_to(2), Chain(sentences(WALK[:2]), "Edo Marn"))
    assert (found.is_right, found.path) == (False, "faithful")


@pytest.mark.parametrize(
    ("given", "right"), [("Kelvia", True), ("the country of Kelvia", True), ("Kel", False), ("", False), ("?", False)]
)
def test_an_answer_holds_the_right_one_or_is_in_it(given: str, right: bool) -> None:
    assert paper.judge(grounds_to(4), Chain(sentences(WALK), given)).is_right == right


def test_a_path_may_go_on_beyond_the_answer() -> None:
    grounds = grounds_of_paths("Who married Dune Rain's director?", ["Ana Vorr"], [WALK[:2]], WALK)
    assert paper.judge(grounds, Chain(sentences(WALK[:3]), "Ana Vorr")).path == "faithful"


SIDES = (
    Triple("Dune Rain", "director", "Ors Velt"),
    Triple("Tin Ford", "director", "Edo Marn"),
    Triple("Ors Velt", "date of birth", "3 May 1901"),
    Triple("Edo Marn", "date of birth", "9 June 1899"),
)
COMPARED = grounds_of_paths("Which film's director was born first, Dune Rain or Tin Ford?", ["Tin Ford"], [SIDES])


@pytest.mark.parametrize("order", [*permutations(range(4))], ids=str)
def test_branches_come_in_any_order_each_in_its_own(order: tuple[int, ...]) -> None:
    assert COMPARED.is_branched
    found = paper.judge(COMPARED, Chain(sentences(tuple(SIDES[n] for n in order)), "Tin Ford"))
    is_told = order.index(0) < order.index(2) and order.index(1) < order.index(3)
    assert (found.path, found.fault) == (("faithful", "") if is_told else ("unfaithful", "order"))


def test_what_concludes_is_passed_over() -> None:
    told = (*sentences(SIDES), "So the one of 1899 came first, by two years.")
    grounds = COMPARED
    assert paper.judge(grounds, Chain(told, "Tin Ford")).fault == "factual"
    found = paper.judge(grounds, Chain(told, "Tin Ford", concluding=(5,)))
    assert (found.path, len(found.steps), found.steps[4].triples) == ("faithful", 5, ())


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_finds_no_more_false_facts(one: float, other: float) -> None:
    chain = Chain((*sentences(WALK[:2]), "Ana Vorr met Edo near Oru."), "Ana Vorr")
    counts = [
        sum(s.fault == "factual" for s in paper.judge(grounds_to(4), chain, sigma=sigma).steps)
        for sigma in sorted((one, other))
    ]
    assert counts == sorted(counts)


@pytest.mark.parametrize(
    ("grounds", "steps"),
    [
        (grounds_of_paths("Who?", ["Ana"], []), ("Ana did.",)),
        (grounds_of_paths("Who?", ["Ana"], [], WALK), ("Ana did.",)),
        (grounds_to(2), ()),
    ],
)
def test_without_path_or_steps_nothing_is_judged(grounds: Grounds, steps: tuple[str, ...]) -> None:
    found = judge_chain(grounds, Chain(steps, "Ana"), "paper")
    assert (found.path, found.edits, found.distance) == ("unjudgeable", None, None)


def test_retrieval_repairs_what_it_grades() -> None:
    """A weakness that is kept: a wrong tail passes as the true triple."""
    long = Triple("Dune Rain", "director", "Orsolo Veltimann the Younger")
    grounds = grounds_of_paths("Who made Dune Rain?", [long.tail], [[long]])
    told = Chain(("The director of Dune Rain is Orsolo Veltimann the Elder.",), long.tail)
    assert judge_chain(grounds, told, "paper").path == "faithful"


# ------------------------------------------------------------------------- several triples in a step

MADE = Triple("Dune Rain", "director", "Ors Velt")
WED = Triple("Ors Velt", "spouse", "Ana Brell")
HOME = Triple("Ana Brell", "place of birth", "Oru")
COMPOSED = Triple("Dune Rain", "composer", "Ana Brell")
"""It joins two names of the first step in the chains below, but mends nothing."""


@pytest.mark.parametrize(
    ("steps", "relations", "fault", "edits"),
    [
        (["The director of Dune Rain is Ors Velt, whose spouse is Ana Brell.", "Ana Brell's place of birth is Oru."],
         [["director", "spouse"], ["place of birth"]], "", 0),
        (["The director of Dune Rain is Ors Velt.",
          "The spouse of Ors Velt is Ana Brell, whose place of birth is Oru."],
         [["director"], ["spouse", "place of birth"]], "", 0),
        # No step names both ends of the second fact.
        (["The director of Dune Rain is Ors Velt.", "Ana Brell's place of birth is Oru."],
         [["director"], ["place of birth"]], "order", 1),
        # The order of the steps is wrong, whatever they state.
        (["Ana Brell's place of birth is Oru.", "The director of Dune Rain is Ors Velt, whose spouse is Ana Brell."],
         [["place of birth"], ["director"]], "order", 3),
        # A path in order keeps one triple a step.
        (["The director of Dune Rain is Ors Velt.", "The spouse of Ors Velt is Ana Brell.",
          "Ana Brell's place of birth is Oru."], [["director"], ["spouse"], ["place of birth"]], "", 0),
        # The step names somebody else as well, who may be what it gets wrong.
        (["The director of Dune Rain is Edo Marn, and the spouse of Ors Velt is Ana Brell.",
          "Ana Brell's place of birth is Oru."], [["director"], ["place of birth"]], "order", 1),
    ],
)  # fmt: skip
def test_a_step_may_state_several_triples(
    steps: list[str], relations: list[list[str]], fault: str, edits: int
) -> None:
    """By hand: τ̃ of the first step is (5 / √(5 · 12) + 1 + 1) / 3 = .88 for director and spouse alike."""
    question = "Where was the wife of the director of Dune Rain born?"
    grounds = grounds_of_paths(question, ["Oru"], [[MADE, WED, HOME]], [COMPOSED])
    verdict = judge_chain(grounds, Chain(tuple(steps), "Oru"), "paper")
    assert [[triple.relation for triple in step.triples] for step in verdict.steps] == relations
    assert (verdict.fault, verdict.edits) == (fault, edits)


NAMES = st.sampled_from("ABCD")


@given(
    st.lists(
        st.lists(st.builds(Triple, NAMES, st.just("r"), NAMES), min_size=1, max_size=3, unique=True),
        min_size=1, max_size=3, unique_by=lambda triples: triples[0],
    ),
    NAMES,
)  # fmt: skip
def test_the_fewest_triples_that_reach_the_goal_are_chosen(candidates: list[list[Triple]], goal: str) -> None:
    """The choice by dynamic programming against all choices."""
    nearest = {triples[0] for triples in candidates}
    choices = []
    for triples in candidates:
        others = [triple for triple in triples[1:] if triple not in nearest]
        sizes = (combinations(others, size) for size in range(3))
        choices.append([order for size in sizes for more in size for order in permutations([triples[0], *more])])
    walks = (choice for choice in product(*choices) if reaches([t for path in choice for t in path], goal))
    joined = join_steps([[(triple, 0.8) for triple in triples] for triples in candidates], [goal])
    fewest = min((sum(map(len, choice)) for choice in walks), default=0)
    assert sum(map(len, joined)) == fewest
    assert not joined or reaches([t for path in joined for t in path], goal)


def reaches(path: list[Triple], goal: str) -> bool:
    """Whether a walk along a path passes the goal after its first end."""
    walks = [(path[0].head, path[0].tail), (path[0].tail, path[0].head)]
    for triple in path[1:]:
        pairs = ((triple.head, triple.tail), (triple.tail, triple.head))
        walks = [(*walk, end) for walk in walks for start, end in pairs if walk[-1] == start]
    return any(goal in walk[1:] for walk in walks)
