"""Twice the row takes twice the time; a row beyond anything real is refused, with its reason."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.benchmarks import parse_row
from builders.steps.leakage import document, held_out
from builders.steps.wrong_values import wrong_values
from builders.verified.teachers.annotations import AnnotationsTeacher
from builders.verified.verification import verify
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import Item
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import RowError, UserError
from safe_stepwise.language.sentences import split_sentences
from safe_stepwise.records import Label, Passage, Question, Step, SupportingFact, Triple
from safe_stepwise.store.fields import MAX_CHARS, MAX_ENTRIES
from safe_stepwise.store.sizes import MAX_HOPS, MAX_NAME_CHARS, MAX_PASSAGE_CHARS, MAX_PASSAGES, MAX_QUESTION_CHARS
from scripts import build_verified
from tests.growth import PARSED, POWER, TEXTS, exponent, too_slow

FILM = Passage("Dune Rain", ("Dune Rain is a film directed by Ana Vorr.",), True)
BORN = Passage("Ana Vorr", ("Ana Vorr was born in Oru.",), True)
EVIDENCE = (Triple("Dune Rain", "director", "Ana Vorr"), Triple("Ana Vorr", "place of birth", "Oru"))
FACTS = (SupportingFact("Dune Rain", 0), SupportingFact("Ana Vorr", 0))
WHO = "Where was the director of Dune Rain born?"


def row(*passages: Passage, **fields: Any) -> Question:
    given = {"evidence": EVIDENCE, "supporting_facts": FACTS, **fields}
    return Question("q", "b", "train", WHO, "Oru", passages=passages, **given)


def judged(question: Question) -> Label:
    return asyncio.run(verify(question, AnnotationsTeacher()))


def pages(text: str) -> tuple[Passage, Passage]:
    """A text as one sentence, and as many."""
    many = tuple(text[at : at + 20] for at in range(0, len(text), 20))
    return Passage("Ana Vorr", (text,), True), Passage("Ana Vorr", many, True)


def triples(text: str) -> None:
    for page in pages(text):
        judged(row(FILM, page))
        judged(row(FILM, page, evidence=(EVIDENCE[0], replace(EVIDENCE[1], tail="3 May 1901"))))


def facts(text: str) -> None:
    for page in pages(text):
        for kind in ("bridge", "comparison"):
            judged(row(FILM, page, kind=kind, evidence=()))


def answers(text: str) -> None:
    judged(replace(row(FILM, BORN), answer=text[:MAX_NAME_CHARS], question=text))
    judged(replace(row(FILM, BORN, evidence=(), kind="bridge"), answer=text[:MAX_NAME_CHARS], question=text))


def own_words(text: str) -> None:
    path = (Triple("Dune Rain", "names", "Ana Vorr", 1, 0), Triple("Ana Vorr", "names", "Oru", 2, 0))
    for page in pages(text):
        checker = Checker(row(FILM, page, evidence=(), kind="bridge"), path, path)
        step = "According to Passage 2, Ana Vorr was born in Vel."
        checker.check([], Step(1, step, "Attribution"))
    write_trajectory(checker, 0)


def values(text: str) -> None:
    question = row(FILM, replace(pages(text)[0], is_gold=False))
    for value in ("Ana Vorr", "Oru", "3 May 1901"):
        wrong_values(question, Item("Attribution", (EVIDENCE[1],), ()), value, 0)


def sentences(text: str) -> None:
    # sentencex looks for the end of every quotation anew: what bounds that is `fields.MAX_CHARS`.
    split_sentences(re.sub("[“”'\"]", "", text))


READERS: dict[str, Callable[[str], object]] = {
    reader.__name__: reader for reader in (triples, facts, answers, own_words, values, sentences)
} | {"document": lambda text: document(row(pages(text)[0]))}


@pytest.mark.parametrize("name", READERS)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    assert too_slow(READERS[name], PARSED if name == "own_words" else TEXTS) == []


def gold(count: int) -> Question:
    """Passages of one title."""
    return row(FILM, *(Passage("Ana Vorr", (f"Ana Vorr {n} came to Oru.",), True) for n in range(count)))


def bridge(count: int) -> Question:
    return replace(gold(count), evidence=(), kind="bridge")


def aliases(count: int) -> Question:
    return replace(row(FILM, BORN), aliases=tuple(f"Oru {n}" for n in range(count)))


def pointed(count: int) -> Question:
    many = tuple(SupportingFact("Ana Vorr", 0) for _ in range(count))
    return replace(row(FILM, BORN, evidence=(), kind="comparison"), supporting_facts=many)


@pytest.mark.parametrize("make", [gold, bridge, aliases, pointed])
def test_twice_as_many_take_no_more_than_their_pairs(make: Callable[[int], Question]) -> None:
    assert exponent(lambda count: judged(make(count)), MAX_PASSAGES, bound=2.5) <= 2.5


def test_a_split_of_many_groups_is_drawn_in_one_go() -> None:
    groups = [[str(n)] for n in range(40_000)]
    rows = dict.fromkeys((str(n) for n in range(40_000)), 2)
    assert exponent(lambda count: held_out(groups[:count], rows, count + 1), 40_000) <= POWER


def raw(**fields: Any) -> dict[str, Any]:
    return {
        "_id": "q7",
        "type": "compositional",
        "question": WHO,
        "answer": "Oru",
        "evidences": [["Dune Rain", "director", "Ana Vorr"]],
        "supporting_facts": [["Dune Rain", 0]],
        "context": [["Dune Rain", list(FILM.sentences)], ["Ana Vorr", list(BORN.sentences)]],
        **fields,
    }


def refusal(**fields: Any) -> str:
    with pytest.raises(RowError) as found:
        parse_row(raw(**fields), "2wikimultihopqa", "train")
    return str(found.value)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": "a" * (MAX_QUESTION_CHARS + 1)}, "question has 10001 characters, at most 10000"),
        ({"answer": "a" * (MAX_NAME_CHARS + 1)}, "an answer has 1001 characters, at most 1000"),
        ({"evidences": [["a", "b", "c" * 1001]]}, "evidence 1 has 1001 characters, at most 1000"),
        ({"evidences": [["a", "b", "c"]] * (MAX_HOPS + 1)}, "evidence has 51 entries, at most 50"),
        ({"context": [["Dune Rain", ["a"]]] * (MAX_PASSAGES + 1)}, "passages has 201 entries"),
        ({"context": [["Dune Rain", ["a" * (MAX_CHARS + 1)]]]}, "passage 1 sentence 0 has 50001"),
        ({"context": [["Dune Rain", ["a" * 500] * 101]]}, f"passage 1 has 50500 .* {MAX_PASSAGE_CHARS}"),
        ({"context": [["Dune Rain", ["a"] * (MAX_ENTRIES + 1)]]}, "passage 1 sentences has 1001 entries"),
        ({"context": [["Dune Rain", ["a" * 9_999]]] * 101}, "all passages together has 1009899"),
    ],
)
def test_what_is_larger_than_anything_real_is_refused(fields: dict[str, Any], reason: str) -> None:
    said = refusal(**fields)
    assert re.search(reason, said)
    assert said.endswith("are read")
    assert "\n" not in said


def test_a_row_too_large_is_kept_apart_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    large = raw(_id="q8", question="a" * (MAX_QUESTION_CHARS + 1))
    file.write_text(json.dumps(raw()) + "\n" + json.dumps(large) + "\n", encoding="utf-8")
    output = tmp_path / "out"
    args = ["--benchmark=2wikimultihopqa", f"--input={file}", "--split=train", "--workers=1"]
    with pytest.raises(UserError, match=r"rows.jsonl:2 \(id q8\): question has 10001 .* mend the row"):
        build_verified.main([*args, "--teacher=annotations", f"--output={output}"])
    kept = [*args, "--teacher=annotations", f"--output={output}", "--on-error=keep"]
    build_verified.main(kept)
    (rejects,) = output.rglob("rejects.jsonl")
    (reject,) = map(json.loads, rejects.read_text(encoding="utf-8").splitlines())
    assert reject["id"] == "q8"
    assert "question has 10001 characters" in reject["reason"]
