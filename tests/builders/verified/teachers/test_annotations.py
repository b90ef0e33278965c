"""Verification with the benchmark's own annotations, from a row to its label."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builders.benchmarks import BENCHMARKS
from builders.synthetic import Spec, generate
from builders.synthetic.writers import names
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.errors import RowError
from safe_stepwise.records import NOISE_TYPES, Hop, Label, Passage, Question, Triple
from studies.labels.agreement import score_agreement, score_noise_types
from tests import sizes


def judge(question: Question) -> Label:
    return asyncio.run(verify(question, AnnotationsTeacher()))


def page(title: str, *sentences: str) -> Passage:
    return Passage(title, sentences, True)


def row(text: str, answer: str, hops: list[tuple[str, str, str]], *gold: Passage, kind: str = "") -> Question:
    distractor = Passage("Karn", ("Karn is a river in Kelvia.", "Ana Vorr was born in Oru."))
    return Question(
        "q1", "2wikimultihopqa", "train", text, answer, kind=kind,
        passages=(distractor, *gold), evidence=tuple(Triple(*hop) for hop in hops),
    )  # fmt: skip


FILM = page("Dune Rain", "Dune Rain is a 1954 film.", "It was directed by Ors Velt.")
ORS = page("Ors Velt", "Ors Velt (1910 – 1970) was a Kelvian director.", "He was born in Oru.")
BIRTH = row(
    "Where was the director of Dune Rain born?",
    "Oru",
    [("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")],
    FILM,
    ORS,
)


def with_gold(question: Question, *gold: Passage) -> Question:
    return replace(question, passages=(question.passages[0], *gold))


def test_a_sound_row() -> None:
    label = judge(BIRTH)
    assert label.noise_type == "none"
    assert label.teacher == "annotations"
    assert [(t.relation, t.passage, t.sentence) for t in label.reasoning_path] == [
        ("director", 2, 1),
        ("place of birth", 3, 1),
    ]
    assert set(label.reasoning_path) <= set(label.knowledge_graph)


def test_distractors_prove_nothing() -> None:
    question = row("Where was she born?", "Oru", [("Ana Vorr", "place of birth", "Oru")], ORS)
    label = judge(question)
    assert label.noise_type == "missing_evidence"
    assert label.reasoning_path == ()


# One row for each kind of noise, and the smallest change that mends it


def about_ors(*sentences: str) -> Question:
    return with_gold(BIRTH, FILM, page("Ors Velt", *sentences))


@pytest.mark.parametrize(
    ("question", "noise_type", "words"),
    [
        (
            about_ors("Ors Velt was a director.", "He died in 1970."),
            "missing_evidence",
            "“Oru” is not in them",
        ),
        (
            about_ors("Ors Velt was a director.", "He worked in Oru."),
            "external_knowledge",
            "says something else of “",
        ),
        (
            about_ors("Ors Velt was a director.", "He was born in Vel."),
            "wrong_answer",
            "gives “Vel”",
        ),
        (
            with_gold(BIRTH, page("Dune Rain", "Dune Rain is a 1954 film.",
                                  "It was directed by Ors Velt the Younger."),
                      page("Ors Velt the Elder", "Ors Velt the Elder was born in Oru.")),
            "entity_confusion",
            "velt the younger",
        ),
        (
            about_ors("Ors Velt (1801 – 1870) was a director.", "He was born in Oru."),
            "entity_confusion",
            "died in 1870, before 1954",
        ),
        (
            with_gold(BIRTH, page("Dune Rain", "It was directed by Ors Velt and Ila Dell."), ORS,
                      page("Ila Dell", "Ila Dell (1912 – 1980) was a director.")),
            "ambiguous_question",
            "“Ors Velt” and “Ila Dell”",
        ),
        (
            replace(BIRTH, evidence=(), passages=tuple(replace(p, is_gold=False) for p in BIRTH.passages)),
            "unparsed",
            "no annotations",
        ),
        (replace(BIRTH, answer="Vel"), "wrong_answer", "not in “Vel”"),
    ],
)  # fmt: skip
def test_every_kind_of_noise(question: Question, noise_type: str, words: str) -> None:
    label = judge(question)
    assert (label.noise_type, label.unverifiable) == (noise_type, noise_type != "unparsed")
    assert words in label.explanation
    assert label.explanation.endswith(".")
    assert label.explanation.count("\n") == 0


def test_a_contradiction_stands_in_the_graph() -> None:
    label = judge(about_ors("Ors Velt was a director.", "He was born in Vel."))
    assert label.knowledge_graph[-1] == Triple("Ors Velt", "place of birth", "Vel", 3, 1)


@pytest.mark.parametrize(
    ("hop", "gold", "noise_type"),
    [
        # the gold passage is another's
        (("Ors Velt the Younger", "place of birth", "Oru"),
         page("Ors Velt the Elder", "He was born in Vel."), "entity_confusion"),
        (("Ors Velt the Younger", "place of birth", "Oru"),
         page("Ors Velt the Younger", "He was a painter."), "missing_evidence"),
        # the sentence names another
        (("Ana Vorr", "father", "Ors Velt the Younger"),
         page("Ana Vorr", "She was the daughter of Ors Velt the Elder."), "entity_confusion"),
        (("Ana Vorr", "father", "Ors Velt the Younger"),
         page("Ana Vorr", "She was the daughter of Ors Velt the Younger."), "none"),
    ],
)  # fmt: skip
def test_name_alikes(hop: tuple[str, str, str], gold: Passage, noise_type: str) -> None:
    assert judge(row("Who or where?", hop[2], [hop], gold)).noise_type == noise_type


@pytest.mark.parametrize("town", ["Oru", "Vel"])
def test_a_painter_is_no_footballer(town: str) -> None:
    hop = ("Ors Velt (painter)", "place of birth", "Oru")
    gold = page("Ors Velt (footballer)", f"He was born in {town}.")
    assert judge(row("Where was the painter born?", "Oru", [hop], gold)).noise_type == ("entity_confusion")


def test_an_answer_elsewhere_in_the_gold_text_is_missing_too() -> None:
    vel = page("Vel", "Vel is a river.", "It runs to Oru.")
    question = with_gold(BIRTH, FILM, page("Ors Velt", "Ors Velt was a director."), vel)
    label = judge(question)
    assert label.noise_type == "missing_evidence"
    assert "stands in passage 4, but not with “Ors Velt”" in label.explanation
    assert [t.relation for t in label.reasoning_path] == ["director"]


# The relations that names alone do not prove


def one_hop(relation: str, tail: str, *sentences: str) -> str:
    text = f"Ana Vorr: {relation}?"
    question = row(text, tail, [("Ana Vorr", relation, tail)], page("Ana Vorr", *sentences))
    return judge(question).noise_type


@pytest.mark.parametrize(
    ("relation", "tail", "sentence", "noise_type"),
    [
        # a spouse hop needs a sentence that says marriage
        ("spouse", "Ors Velt", "She married Ors Velt.", "none"),
        ("spouse", "Ors Velt", "Her husband was Ors Velt.", "none"),
        ("spouse", "Ors Velt", "She starred opposite Ors Velt.", "external_knowledge"),
        ("spouse", "Ors Velt", "She was a friend of Ors Velt.", "external_knowledge"),
        ("spouse", "Ors Velt", "She sang.", "missing_evidence"),
        # a place of death needs a death there
        ("place of death", "Vel", "She died in Vel.", "none"),
        ("place of death", "Vel", "She was born in Vel.", "external_knowledge"),
        ("place of death", "Vel", "She moved to Vel.", "external_knowledge"),
        ("place of death", "Vel", "She was born in Vel and died in Oru.", "wrong_answer"),
        # a date must be that event's date
        ("date of death", "1970", "She died in 1970.", "none"),
        ("date of death", "1970", "She was born in 1901 and died in 1970.", "none"),
        ("date of death", "1970", "She moved to Oru in 1970.", "external_knowledge"),
        ("date of death", "1901", "She was born in 1901 and died in 1970.", "wrong_answer"),
        ("date of birth", "3 May 1901", "She was born on May 3, 1901.", "none"),
        ("date of birth", "3 May 1901", "She was born on May 4, 1901.", "wrong_answer"),
        # the stated nationality must not contradict the answer
        ("country of citizenship", "Kelvia", "She was a Kelvian poet.", "none"),
        ("country of citizenship", "Kelvia", "She was a Marnish poet.", "wrong_answer"),
        ("country of citizenship", "Kelvia", "She held Marnish citizenship.", "wrong_answer"),
        ("country of citizenship", "Kelvia", "She toured in Kelvia.", "external_knowledge"),
    ],
)
def test_relations(relation: str, tail: str, sentence: str, noise_type: str) -> None:
    assert one_hop(relation, tail, "Ana Vorr sang.", sentence) == noise_type


@pytest.mark.parametrize(
    ("title", "life", "noise_type"),
    [
        ("Ors Velt", "(1460 – 1535)", "entity_confusion"),
        ("Ors Velt", "(1860 – 1930)", "none"),
        ("Ors Velt the Elder", "(1860 – 1930)", "entity_confusion"),
        ("Ors Velt the Younger", "(1860 – 1930)", "none"),
    ],
)
def test_two_painters_of_one_name_are_two_people(title: str, life: str, noise_type: str) -> None:
    ana = page(
        "Ana Vorr", "Ana Vorr (1901 – 1970) was a poet.",
        "She was the daughter of the painter Ors Velt the Younger."
        if "the" in title else "She was the daughter of the painter Ors Velt.",
    )  # fmt: skip
    painter = page(title, f"{title} {life} was a painter.", "He was born in Oru.")
    question = row(
        "Where was the father of Ana Vorr born?", "Oru",
        [("Ana Vorr", "father", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")], ana, painter,
    )  # fmt: skip
    assert judge(question).noise_type == noise_type


# Comparisons


DATES = [("Ors Velt", "date of birth", "1910"), ("Ila Dell", "date of birth", "1912")]
ILA = page("Ila Dell", "Ila Dell (1912 – 1980) was a Marnish singer.")


@pytest.mark.parametrize(
    ("text", "answer", "hops", "noise_type"),
    [
        ("Who was born first, Ors Velt or Ila Dell?", "Ors Velt", DATES, "none"),
        ("Who was born first, Ors Velt or Ila Dell?", "Ila Dell", DATES, "wrong_answer"),
        ("Who was born first, Ors Velt or Ila Dell?", "Ors Velt", DATES[:1], "missing_evidence"),
        ("Who was born first, Ors Velt or Ila Dell?", "Ors Velt",
         [DATES[0], ("Ila Dell", "date of birth", "1913")], "wrong_answer"),
        ("Are Ors Velt and Ila Dell of the same nationality?", "no",
         [("Ors Velt", "country of citizenship", "Kelvia"),
          ("Ila Dell", "country of citizenship", "Marnish")], "none"),
        ("Are Ors Velt and Ila Dell of the same nationality?", "yes",
         [("Ors Velt", "country of citizenship", "Kelvia"),
          ("Ila Dell", "country of citizenship", "Marnish")], "wrong_answer"),
    ],
)  # fmt: skip
def test_comparisons(text: str, answer: str, hops: list[tuple[str, str, str]], noise_type: str) -> None:
    assert judge(row(text, answer, hops, ORS, ILA, kind="comparison")).noise_type == noise_type


# Decompositions


def decomposed(*hops: Hop, answer: str = "Oru") -> Question:
    return replace(BIRTH, benchmark="musique", evidence=(), decomposition=hops, answer=answer)


@pytest.mark.parametrize(
    ("hops", "noise_type"),
    [
        ((Hop("Dune Rain >> director", "Ors Velt", 2), Hop("#1 >> place of birth", "Oru", 3)),
         "none"),
        ((Hop("Who directed Dune Rain?", "Ors Velt", 2), Hop("Where was #1 born?", "Oru", 3)),
         "none"),
        ((Hop("Dune Rain >> producer", "Ors Velt", 2), Hop("#1 >> place of birth", "Oru", 3)),
         "external_knowledge"),
        ((Hop("Dune Rain >> director", "Ors Velt", 2), Hop("#1 >> place of death", "Oru", 3)),
         "external_knowledge"),
        ((Hop("Dune Rain >> director", "Ila Dell", 2), Hop("#1 >> place of birth", "Oru", 3)),
         "missing_evidence"),
        ((Hop("Who made the film of 1954?", "Ors Velt", 2), Hop("What town is #1 of?", "Oru", 3)),
         "none"),
        ((Hop("Who made the film of 1954?", "Ors Velt", 2), Hop("What town is #1 of?", "Marn", 3)),
         "missing_evidence"),
    ],
)  # fmt: skip
def test_hops_in_words(hops: tuple[Hop, ...], noise_type: str) -> None:
    assert judge(decomposed(*hops, answer=hops[-1].answer)).noise_type == noise_type


def test_a_reference_to_nothing_is_noise_and_no_crash() -> None:
    label = judge(decomposed(Hop("Where was #9 born?", "Oru", 3)))
    assert label.noise_type == "missing_evidence"


def test_names_that_are_two_forms_of_one() -> None:
    hops = [("Dune Rain", "director", "Ors Velt"), ("Ors B. Velt", "place of birth", "Oru")]
    evidence = tuple(Triple(*hop) for hop in hops)
    assert judge(replace(BIRTH, evidence=evidence)).noise_type == "none"


@pytest.mark.parametrize(("later", "noise_type"), [("Mina Karn", "none"), ("Ila Karn", "missing_evidence")])
def test_a_joint_under_a_maiden_name(later: str, noise_type: str) -> None:
    hops = [("Ors Velt", "spouse", "Mina Dell"), (later, "place of birth", "Vel")]
    ors = page("Ors Velt", "Ors Velt was a director.", "He married Mina Dell.")
    wife = page(later, f"{later} was a singer.", "She was born in Vel.")
    question = row("Where was the wife of Ors Velt born?", "Vel", hops, ors, wife)
    assert judge(question).noise_type == noise_type


# Against the known noise of a synthetic world, from a seed that is used nowhere else


# Nobody reads the misread rows of these two: what they show is how the checks do on other hands.
UNSEEN = ("online", "sections")


@pytest.mark.parametrize("writer", names())
def test_synthetic_noise_is_found(writer: str) -> None:
    teacher = AnnotationsTeacher()
    true: dict[str, str] = {}
    found: dict[str, str] = {}
    for question, truth in generate(Spec(sizes.size(1200, 300), 904_417, 0.5, writer), split="train"):
        true[question.id] = truth
        found[question.id] = asyncio.run(verify(question, teacher)).noise_type
    assert len(true) == len(found) == sizes.size(1200, 300)
    unverifiable, *types = score_noise_types(true, found)
    assert {score.name for score in types} == set(NOISE_TYPES) - {"unspecified", "undecided"}
    floor = 0.95 if writer in UNSEEN else 0.93
    assert unverifiable.precision >= floor, unverifiable
    assert unverifiable.recall >= floor, unverifiable
    if writer == "plain":
        for score in types:
            assert min(score.precision, score.recall) >= 0.9, score


# Against real rows, none of which is in this repository


def real_rows(folder: Path, benchmark: str) -> Iterator[tuple[str, Question | RowError]]:
    for name, split in (("train", "train"), ("dev", "validation")):
        for line in (folder / f"{benchmark}_{name}.jsonl").open(encoding="utf-8"):
            raw = json.loads(line)
            try:
                yield raw.get("_id") or raw["id"], BENCHMARKS[benchmark].parse(raw, split)
            except RowError as error:
                yield raw.get("_id") or raw["id"], error


# The least F1 and the largest share of rows called unverifiable: guards against regressions.
@pytest.mark.parametrize(
    ("benchmark", "rows", "least_f1", "largest_share"),
    [("2wikimultihopqa", 591, 0.62, 1.0), ("musique", 203, 0.50, 1.0), ("hotpotqa", 1273, 0.0, 0.06)],
)
def test_real_rows(real_data: Path, benchmark: str, rows: int, least_f1: float, largest_share: float) -> None:
    teacher = AnnotationsTeacher()
    labels: dict[str, Label] = {}
    rejected = 0
    for id_, question in real_rows(real_data, benchmark):
        if isinstance(question, RowError):
            rejected += 1
            assert str(question)
            continue
        label = asyncio.run(verify(question, teacher))
        assert label.explanation
        edges = set(label.knowledge_graph)
        assert set(label.reasoning_path) <= edges
        labels[id_] = label
    counts = Counter(label.noise_type for label in labels.values())
    assert counts.total() + rejected == rows
    assert set(counts) <= set(NOISE_TYPES)
    file = real_data / f"{benchmark}_published_labels.jsonl"
    published = [json.loads(line) for line in file.open(encoding="utf-8")]
    found = {id_: label.unverifiable for id_, label in labels.items()}
    score = score_agreement({p["id"]: p["unverifiable"] for p in published}, found, benchmark)
    assert score.f1 >= least_f1, score
    assert sum(found.values()) <= largest_share * len(found), counts


def test_an_explanation_looks_into_all_passages() -> None:
    gold = Passage("Ors Velt", ("Ors Velt was a poet.",), is_gold=True)
    other = Passage("Oru", ("Oru is a town. Ors Velt was born in Oru.",))
    question = Question(
        "q", "2wikimultihopqa", "train", "Where was Ors Velt born?", "Oru", passages=(gold, other),
        evidence=(Triple("Ors Velt", "place of birth", "Oru"),),
    )  # fmt: skip
    label = asyncio.run(verify(question, AnnotationsTeacher()))
    assert label.noise_type == "missing_evidence"
    assert label.explanation == (
        "No gold passage was found to state “Ors Velt – place of birth – Oru”: passage 2, which is no gold passage, "
        "states it (“Oru is a town. Ors Velt was born in Oru.”)."
    )
