"""The teacher proposes, the graph disposes: with a scripted teacher."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.verified.teachers import Proposal, Teacher, TeacherError
from builders.verified.verification import similar, validate, verify
from safe_stepwise.graphs.knowledge_graph import KnowledgeGraph
from safe_stepwise.records import Label, NoiseType, Passage, Question, Triple

T1 = Triple("Dune Rain", "director", "Ors Velt", 1, 0)
T2 = Triple("Ors Velt", "place of birth", "Oru", 2, 0)
GOLD = (
    Passage("Dune Rain", ("It was directed by Ors Velt.",), True),
    Passage("Ors Velt", ("He was born in Oru.",), True),
    Passage("Vel", ("It is a river.",)),
)
CHAIN = Question("q1", "synthetic", "train", "Where was the director of Dune Rain born?", "Oru", passages=GOLD)


@dataclass
class Scripted:
    """Says what it is told to, and counts what it is asked."""

    extracted: Mapping[int, tuple[Triple, ...]] = field(default_factory=dict)
    path: tuple[Triple, ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)
    noise_type: NoiseType = "none"
    explanation: str = ""
    fails: str = ""
    calls: list[str] = field(default_factory=list)
    name: str = "scripted"

    def _called(self, stage: str) -> None:
        self.calls.append(stage)
        if stage.split()[0] == self.fails:
            raise TeacherError(f"no {stage}")

    async def extract(self, question: Question, passage: int) -> tuple[Triple, ...]:
        self._called(f"extract {passage}")
        return self.extracted.get(passage, ())

    async def resolve(self, question: Question, triples: tuple[Triple, ...]) -> Mapping[str, str]:
        self._called("resolve")
        return self.same

    async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
        self._called("propose")
        return Proposal(self.path, self.noise_type, self.explanation)


def judge(teacher: Teacher, question: Question = CHAIN) -> Label:
    return asyncio.run(verify(question, teacher))


def says(*path: Triple, **changes: object) -> Scripted:
    """A teacher that extracts exactly what it proposes."""
    by_passage = {n: tuple(t for t in path if t.passage == n) for n in (1, 2)}
    return replace(Scripted(by_passage, path), **changes)  # type: ignore[arg-type]


# Stages


def test_a_stated_path_to_the_answer_is_sound() -> None:
    found = judge(says(T1, T2))
    assert (found.noise_type, found.unverifiable, found.teacher) == ("none", False, "scripted")
    assert found.reasoning_path == found.knowledge_graph == (T1, T2)
    assert "Oru" in found.explanation


def test_stages_come_in_order_for_gold_passages_only() -> None:
    teacher = says(T1, T2)
    judge(teacher)
    assert teacher.calls == ["extract 1", "extract 2", "resolve", "propose"]


@pytest.mark.parametrize("stage", ["extract", "resolve", "propose"])
def test_a_teacher_that_fails_leaves_the_row_unparsed(stage: str) -> None:
    found = judge(says(T1, T2, fails=stage))
    assert (found.noise_type, found.unverifiable) == ("unparsed", False)
    assert f"no {stage}" in found.explanation
    assert found.reasoning_path == found.knowledge_graph == ()
    assert found.teacher == "scripted"


def test_a_fault_of_ours_is_not_the_teachers() -> None:
    class Broken(Scripted):
        async def propose(self, question: Question, graph: KnowledgeGraph) -> Proposal:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge(Broken())


@pytest.mark.parametrize("noise_type", ["external_knowledge", "unparsed", "entity_confusion"])
def test_what_the_teacher_found_is_kept(noise_type: NoiseType) -> None:
    found = judge(says(T1, noise_type=noise_type, explanation="Because."))
    assert (found.noise_type, found.explanation) == (noise_type, "Because.")
    assert found.reasoning_path == (T1,)


# The graph disposes


def test_a_proposed_triple_that_was_not_extracted_is_refused() -> None:
    found = judge(Scripted({1: (T1,)}, (T1, T2)))
    assert found.noise_type == "missing_evidence"
    assert "Ors Velt – place of birth – Oru" in found.explanation


@pytest.mark.parametrize(
    "stated",
    [
        replace(T2, relation="place of death"),
        replace(T2, tail="Vel"),
        replace(T2, head="Ila Velt"),
        Triple("Oru", "place of birth", "Ors Velt", 2, 0),
    ],
)
def test_a_triple_that_differs_from_what_is_stated_is_refused(stated: Triple) -> None:
    found = judge(Scripted({1: (T1,), 2: (stated,)}, (T1, T2)))
    assert found.noise_type == "missing_evidence"


def test_another_spelling_of_a_stated_triple_is_accepted() -> None:
    stated = Triple("Sir Ors Velt", "place of birth", "ORU", 2, 0)
    assert judge(Scripted({1: (T1,), 2: (stated,)}, (T1, T2))).noise_type == "none"


LOOP = Triple("Dune Rain", "director", "the Dune Rain", 1, 0)


def test_a_triple_from_a_thing_to_itself_is_left_out() -> None:
    found = judge(Scripted({1: (LOOP, T1), 2: (T2,)}, (LOOP, T1, T2)))
    assert found.noise_type == "none"
    assert found.reasoning_path == found.knowledge_graph == (T1, T2)


def test_a_triple_from_a_thing_to_itself_that_is_annotated_is_kept_and_said() -> None:
    annotated = replace(CHAIN, evidence=(LOOP, T1, T2))
    found = judge(Scripted({1: (LOOP, T1), 2: (T2,)}, (LOOP, T1, T2)), annotated)
    assert found.reasoning_path == (LOOP, T1, T2)
    assert "itself annotates “Dune Rain – director – the Dune Rain”" in found.explanation


def test_an_empty_path_proves_nothing() -> None:
    found = judge(Scripted({1: (T1,), 2: (T2,)}, ()))
    assert found.noise_type == "missing_evidence"
    assert found.explanation


def test_a_path_that_ends_elsewhere_is_a_wrong_answer() -> None:
    found = judge(says(T1, T2), replace(CHAIN, answer="Vel"))
    assert found.noise_type == "wrong_answer"
    assert "“Oru”" in found.explanation
    assert "“Vel”" in found.explanation


@pytest.mark.parametrize(
    ("answer", "aliases", "expected"),
    [
        ("Vel", ("Oru",), "none"),
        ("oru", (), "none"),
        ("the town of Oru", (), "none"),
        ("Oru town", (), "none"),
        ("Orum", (), "wrong_answer"),
        ("Or", (), "wrong_answer"),
        ("Vel", ("Marn", "Po"), "wrong_answer"),
    ],
)
def test_answers_and_their_aliases(answer: str, aliases: tuple[str, ...], expected: str) -> None:
    found = judge(says(T1, T2), replace(CHAIN, answer=answer, aliases=aliases))
    assert found.noise_type == expected


def test_an_alias_of_the_teacher_joins_the_answer() -> None:
    question = replace(CHAIN, answer="Old Town")
    assert judge(says(T1, T2), question).noise_type == "wrong_answer"
    assert judge(says(T1, T2, same={"Old Town": "Oru"}), question).noise_type == "none"


def test_a_path_that_does_not_join() -> None:
    loose = Triple("Marel", "director", "Ila Dell", 1, 0)
    found = judge(says(loose, T2))
    assert found.noise_type == "missing_evidence"
    assert "broken" in found.explanation
    assert "“Marel”" in found.explanation or '"Marel"' in found.explanation


def test_an_alias_or_a_name_within_a_name_joins() -> None:
    loose = replace(T1, tail="O. V.")
    assert judge(says(loose, T2)).noise_type == "missing_evidence"
    assert judge(says(loose, T2, same={"O. V.": "Ors Velt"})).noise_type == "none"
    within = Triple("Lake Oru (Kelvia)", "country", "Kelvia", 2, 0)
    joined = judge(says(T1, replace(T2, passage=1), within), replace(CHAIN, answer="Kelvia"))
    assert joined.noise_type == "none"


def test_an_answer_at_the_head_of_a_hop() -> None:
    question = replace(CHAIN, question="Who, born in Oru, directed it?", answer="Ors Velt")
    assert judge(says(T1, T2), question).noise_type == "none"


# Ambiguity


BOTH = Triple("Ors Velt", "place of birth", "Vel", 2, 0)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (BOTH, "ambiguous_question"),
        (replace(BOTH, sentence=1), "none"),
        (replace(BOTH, passage=1), "none"),
        (replace(BOTH, relation="place of death"), "none"),
        (replace(BOTH, tail="Sir Oru"), "none"),
    ],
)
def test_two_values_in_one_sentence(other: Triple, expected: str) -> None:
    found = judge(Scripted({1: (T1,), 2: (T2, other)}, (T1, T2)))
    assert found.noise_type == expected
    if expected != "none":
        assert "“Oru” and “Vel”" in found.explanation


def test_two_values_in_mid_path_need_an_article_to_lead_on() -> None:
    second = replace(T1, tail="Ila Dell")
    teacher = Scripted({1: (T1, second), 2: (T2,)}, (T1, T2))
    assert judge(teacher).noise_type == "none"
    article = Passage("Ila Dell", ("Ila Dell was a director.",))
    found = judge(teacher, replace(CHAIN, passages=(*GOLD, article)))
    assert found.noise_type == "ambiguous_question"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("Where was the director of Dune Rain born?", "ambiguous_question"),
        ("Where was the director of Dune Rain (1954 film) born?", "none"),
    ],
)
def test_a_name_that_two_gold_passages_bear(asked: str, expected: str) -> None:
    films = tuple(Passage(f"Dune Rain ({year} film)", ("x",), True) for year in (1954, 1960))
    question = replace(CHAIN, question=asked, passages=(*films, *GOLD[1:]))
    path = (replace(T1, passage=None), T2)
    assert judge(Scripted({1: path}, path), question).noise_type == expected


# Comparisons


def dated(head: str, date: str, passage: int) -> Triple:
    return Triple(head, "date of birth", date, passage, 0)


COMPARISON = replace(
    CHAIN, kind="comparison", question="Who was born first, Ors Velt or Ila Dell?",
    answer="Ila Dell",
)  # fmt: skip


@pytest.mark.parametrize(
    ("path", "answer", "expected"),
    [
        ([dated("Ors Velt", "1901", 1), dated("Ila Dell", "1899", 2)], "Ila Dell", "none"),
        ([dated("Ila Dell", "1899", 1), dated("Ors Velt", "1901", 2)], "Ila Dell", "none"),
        ([dated("Ors Velt", "1901", 1), dated("Ila Dell", "1899", 2)], "Ors Velt", "wrong_answer"),
        ([dated("Ors Velt", "1901", 1), dated("Ila Dell", "1901", 2)], "Ila Dell",
         "ambiguous_question"),
        ([dated("Ors Velt", "1901", 1), dated("Ila Dell", "3 May 1901", 2)], "Ila Dell",
         "none"),
        ([dated("Ila Dell", "1899", 1)], "Ila Dell", "missing_evidence"),
        ([dated("Ors Velt", "Oru", 1), dated("Ila Dell", "Vel", 2)], "Ila Dell", "none"),
        ([Triple("Ors Velt", "liked", "1901", 1, 0), Triple("Ila Dell", "liked", "1899", 2, 0)],
         "Ors Velt", "none"),
    ],
)  # fmt: skip
def test_a_comparison(path: list[Triple], answer: str, expected: str) -> None:
    assert judge(says(*path), replace(COMPARISON, answer=answer)).noise_type == expected


def test_a_comparison_over_two_hops_a_side() -> None:
    marel = Triple("Marel", "director", "Ila Dell", 1, 0)
    path = (T1, dated("Ors Velt", "1901", 1), marel, dated("Ila Dell", "1899", 2))
    question = replace(
        COMPARISON, kind="bridge_comparison", answer="Marel",
        question="Which film has the director who was born first, Dune Rain or Marel?",
    )  # fmt: skip
    assert judge(says(*path), question).noise_type == "none"
    assert judge(says(*path), replace(question, answer="Dune Rain")).noise_type == "wrong_answer"


def test_a_comparison_with_a_branch_cut_short() -> None:
    marel = Triple("Marel", "director", "Ila Dell", 1, 0)
    question = replace(
        COMPARISON, kind="bridge_comparison", answer="Marel",
        question="Which film has the director who was born first, Dune Rain or Marel?",
    )  # fmt: skip
    found = judge(says(T1, marel, dated("Ila Dell", "1899", 2)), question)
    assert found.noise_type == "missing_evidence"


@pytest.mark.parametrize(
    ("nations", "answer", "expected"),
    [
        (("Kelvia", "Kelvian"), "yes", "none"),
        (("Kelvia", "Kelvian"), "no", "wrong_answer"),
        (("Kelvia", "Marnia"), "no", "none"),
        (("Kelvia", "Marnia"), "yes", "wrong_answer"),
    ],
)
def test_a_question_of_yes_or_no(nations: tuple[str, str], answer: str, expected: str) -> None:
    path = [
        Triple(head, "country of citizenship", nation, n, 0)
        for n, (head, nation) in enumerate(zip(("Ors Velt", "Ila Dell"), nations, strict=True), 1)
    ]
    asked = "Are Ors Velt and Ila Dell of the same nationality?"
    question = replace(CHAIN, question=asked, answer=answer)
    assert judge(says(*path), question).noise_type == expected


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_yes_or_no_to_anything_but_sameness_is_not_decided(answer: str) -> None:
    path = [dated("Ors Velt", "1901", 1), dated("Ila Dell", "1899", 2)]
    question = replace(CHAIN, question="Is Ors Velt older than Ila Dell?", answer=answer)
    assert judge(says(*path), question).noise_type == "none"


@pytest.mark.parametrize("step", [1, -1])
def test_who_lived_longer(step: int) -> None:
    path = (
        dated("Ors Velt", "1901", 1), Triple("Ors Velt", "date of death", "1970", 1, 0),
        dated("Ila Dell", "1899", 2), Triple("Ila Dell", "date of death", "1960", 2, 0),
    )  # fmt: skip
    question = replace(COMPARISON, question="Who lived longer, Ors Velt or Ila Dell?")
    longer = replace(question, answer="Ors Velt")
    assert judge(says(*path[::step]), longer).noise_type == "none"
    assert judge(says(*path[::step]), question).noise_type == "wrong_answer"


def test_a_word_in_a_title_is_no_operation() -> None:
    path = (
        Triple("The Last Rain", "publication date", "1960", 1, 0),
        Triple("Marel", "publication date", "1954", 2, 0),
    )
    question = replace(COMPARISON, question="Which was released first, The Last Rain or Marel?", answer="Marel")
    assert judge(says(*path), question).noise_type == "none"
    wrong = replace(question, answer="The Last Rain")
    assert judge(says(*path), wrong).noise_type == "wrong_answer"


# Properties


NAMES = st.sampled_from(["A", "B", "C", "Oru", "1901", "The Oru", "A (town)", ""])
TRIPLES = st.lists(
    st.builds(
        partial(Triple, passage=1, sentence=0), NAMES, st.sampled_from(["director", "date of birth", "liked"]), NAMES
    ),
    max_size=5,
)


@given(
    TRIPLES, TRIPLES, NAMES, st.sampled_from(["", "comparison"]),
    st.dictionaries(NAMES, NAMES, max_size=2),
)  # fmt: skip
def test_nothing_unstated_passes(
    stated: list[Triple], path: list[Triple], answer: str, kind: str, same: dict[str, str]
) -> None:
    graph = KnowledgeGraph(stated, same)
    question = replace(CHAIN, answer=answer, kind=kind, question="Who was born first, A or B?")
    noise_type, explanation = validate(question, graph, Proposal(tuple(path), "none", ""))
    assert explanation
    if noise_type == "none":
        assert path
        assert all(graph.find(t.head, t.relation, t.tail) for t in path)
        if not kind:
            ends = [end for t in path for end in (t.head, t.tail)]
            assert any(graph.is_same_entity(end, answer) or similar(end, answer) for end in ends)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("Oru", "the ORU", True), ("Oru", "town of Oru", True), ("Oru", "Orum", False), ("Ana Vorr", "Vorr Ana", False)],
)
def test_similar_answers(one: str, other: str, expected: bool) -> None:
    assert similar(one, other) is similar(other, one) is expected
