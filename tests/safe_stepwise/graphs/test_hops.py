from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_stepwise.graphs.hop_lookup import look_up
from safe_stepwise.graphs.hops import AnnotatedHop, annotated_hops
from safe_stepwise.records import Hop, Passage, Question, Triple

PAGE = Passage("The Reed House", ("The Reed House is an inn.", "Ana Vorr sang in it."), True)


def decomposed(*hops: tuple[str, str] | tuple[str, str, int]) -> Question:
    return Question(
        "q1", "musique", "train", "?", hops[-1][1], passages=(PAGE,),
        decomposition=tuple(Hop(*hop) for hop in hops),
    )  # fmt: skip


def triples(*hops: tuple[str, str] | tuple[str, str, int]) -> list[tuple[str, str, str]]:
    found = annotated_hops(decomposed(*hops))
    return [(t.head, t.relation, t.tail) for hop in found for t in hop.triples]


def test_evidence_where_there_is_no_decomposition() -> None:
    evidence = (Triple("A", "director", "B"), Triple("B", "spouse", "C"))
    question = Question("q1", "2wikimultihopqa", "train", "?", "C", evidence=evidence)
    assert annotated_hops(question) == tuple(AnnotatedHop(triple) for triple in evidence)
    assert annotated_hops(Question("q1", "hotpotqa", "train", "?", "C")) == ()


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        (
            [("Dune Rain >> director", "Ors Velt"), ("#1 >> place of birth", "Oru")],
            [("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")],
        ),
        (
            [("Who directed Dune Rain?", "Ors Velt"), ("Where was #1 born?", "Oru")],
            [("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")],
        ),
        (
            [("A >> spouse", "B"), ("#1 >> father", "C"), ("#2 >> employer", "D")],
            [("A", "spouse", "B"), ("B", "father", "C"), ("C", "employer", "D")],
        ),
        # inverse hops
        (
            [("Which film was directed by Ors Velt?", "Dune Rain"), ("When was #1 released?", "19")],
            [("Dune Rain", "director", "Ors Velt"), ("Dune Rain", "publication date", "19")],
        ),
        (
            [("Who is it?", "Ors Velt"), ("What is the film starring #1?", "Dune Rain")],
            [("Who is it?", "Who is it?", "Ors Velt"), ("Dune Rain", "cast member", "Ors Velt")],
        ),
        # what stands before the subject
        ([("Who directed the film Dune Rain?", "B")], [("Dune Rain", "director", "B")]),
        ([("Who directed the 1954 film Dune Rain?", "B")], [("Dune Rain", "director", "B")]),
        ([("In Oru >> country", "B")], [("In Oru", "country", "B")]),
        # more than one arrow
        ([("A >> part of >> B", "C")], [("A", "part of >> B", "C")]),
        # references to nothing
        ([("#9 >> director", "B")], [("#9", "director", "B")]),
        ([("Where was #9 born?", "B")], [("#9", "place of birth", "B")]),
        ([("#0 >> director", "B")], [("#0", "director", "B")]),
        # two answers at once
        (
            [("A >> capital", "B"), ("C >> capital", "D"), ("How far is #1 from #2?", "E")],
            [
                ("A", "capital", "B"),
                ("C", "capital", "D"),
                ("B", "How far is … from …?", "E"),
                ("D", "How far is … from …?", "E"),
            ],
        ),
    ],
)
def test_a_decomposition_as_triples(hops: list[tuple[str, str]], expected: list[tuple[str, str, str]]) -> None:
    assert triples(*hops) == expected


def test_an_answer_that_no_hop_names_is_needed_by_the_last_one() -> None:
    found = triples(("Why did Po sing?", "B"), ("Who won?", "C"), ("How often did he?", "D"))
    assert found[-2:] == [("B", "How often did he?", "D"), ("C", "How often did he?", "D")]
    named = triples(("Why did Po sing?", "B"), ("Who saw #1?", "C"), ("How did #2 go?", "D"))
    assert named[-1:] == [("C", "How did … go?", "D")]
    assert len(named) == 3


def test_a_free_hop_starts_at_its_passage() -> None:
    (hop,) = annotated_hops(decomposed(("Why is the inn famous?", "Ana Vorr", 1)))
    assert hop == AnnotatedHop(Triple("The Reed House", "Why is the inn famous?", "Ana Vorr", 1), True, ())
    (unpinned,) = annotated_hops(decomposed(("Why is the inn famous?", "Ana Vorr")))
    assert unpinned.triple.head == "Why is the inn famous?"
    assert unpinned.triple.passage is None


def test_a_free_hop_does_not_start_at_its_own_answer() -> None:
    (hop,) = annotated_hops(decomposed(("Which house is famous?", "the Reed House", 1)))
    assert hop.triple.head == "Which house is famous?"
    assert (hop.triple.tail, hop.triple.passage) == ("the Reed House", 1)


@given(
    st.lists(
        st.tuples(
            st.text(max_size=20)
            | st.sampled_from(["#1 >> director", "Where was #2 born?", "#1 #2 #9", "#", ">>", "#1"]),
            st.text(max_size=8),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_decomposition_gives_every_hop(hops: list[tuple[str, str]]) -> None:
    found = annotated_hops(decomposed(*hops))
    assert len(found) == len(hops)
    assert all(hop.triples for hop in found)
    for hop, (_, answer) in zip(found, hops, strict=True):
        assert answer in (hop.triple.head, hop.triple.tail)
        look_up(hop, [(1, PAGE)])


# Looking up


def free(question: str, answer: str, *refers: str, passage: int | None = 1) -> AnnotatedHop:
    head = refers[0] if refers else "The Reed House"
    return AnnotatedHop(Triple(head, question, answer, passage), True, refers)


@pytest.mark.parametrize(
    ("hop", "status"),
    [
        (free("Who sang at the inn?", "Ana Vorr"), "stated"),
        (free("Who sang at the inn?", "Ors Velt"), "absent"),
        (free("Who sang in …?", "Ana Vorr", "Reed House"), "stated"),
        # neither the earlier answer nor a word of the question stands there
        (free("What does the mayor of … collect?", "Ana Vorr", "Vel"), "mentioned"),
        (free("What inn is … a guest of?", "Ana Vorr", "Vel"), "stated"),
        # pinned to another passage
        (free("Who sang at the inn?", "Ana Vorr", passage=2), "absent"),
        (free("Who sang at the inn?", "Ana Vorr", passage=None), "stated"),
        # a relation of the vocabulary is looked for in every passage
        (AnnotatedHop(Triple("Ana Vorr", "place of birth", "Oru", 2)), "absent"),
        (AnnotatedHop(Triple("Ana Vorr", "spouse", "The Reed House", 2)), "together"),
    ],
)
def test_look_up(hop: AnnotatedHop, status: str) -> None:
    assert look_up(hop, [(1, PAGE)]).status == status


def test_a_free_hop_says_where() -> None:
    found = look_up(free("Who sang at the inn?", "Ana Vorr"), [(1, PAGE)])
    assert (found.passage, found.sentence) == (1, 1)
    assert look_up(free("Who sang?", "Ana Vorr"), []).status == "absent"


def test_an_answer_inside_another_word_is_absent() -> None:
    assert look_up(free("Who sang at the inn?", "Ana Vo"), [(1, PAGE)]).status == "absent"
