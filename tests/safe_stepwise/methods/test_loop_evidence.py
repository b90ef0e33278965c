"""The loop with incomplete evidence: who searches, what comes of it, where it ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import pytest

from builders.benchmarks import BENCHMARKS
from builders.verified.evaluation_questions import without_passage
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.feedback import format_feedback
from safe_stepwise.language.text import normal_name
from safe_stepwise.methods.loop import DEFAULT, Limits, Search, is_unread, run_question
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Passage, Question, Trajectory
from safe_stepwise.scoring import exact_match

FILM = Passage("Dune Rain", ("Dune Rain was directed by Ors Velt.",), True)
VELT = Passage("Ors Velt", ("Ors Velt was born in Oru.",))
OTHERS = tuple(Passage(f"Other {n}", (f"{n} is a number.",)) for n in range(4))
ASKED = Question("q", "synthetic", "train", "Where was its director born?", "Oru", passages=(FILM,))

DENIED = "Step 1: None of the passages says where Ors Velt was born. (Attribution)"
FOUND = "Step 1: According to Passage 2, Ors Velt was born in Oru. (Attribution)"
LAST = "Step 2: ####ANSWER: Oru (Final Answer)"
GOOD = Feedback("Correct", "It is so.", "Go on.")
LACKING = Feedback("Missing Evidence", "No passage is about him.", "Read it.", "Ors Velt  birth")


@dataclass
class Turns:
    """Replies in turn, the last from then on."""

    replies: tuple[str | Feedback, ...]
    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> str:
        reply = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(request)
        return format_feedback(reply) if isinstance(reply, Feedback) else reply


@dataclass
class Corpus:
    found: Sequence[Passage]
    queries: list[str] = field(default_factory=list)

    def __call__(self, query: str) -> Sequence[Passage]:
        self.queries.append(query)
        return self.found


def play(
    generator: Turns, verifier: Turns | None, search: Search | None, limits: Limits = DEFAULT
) -> Trajectory:
    one = Client(MockEngine(generator))
    other = Client(MockEngine(verifier)) if verifier else None
    return asyncio.run(run_question(ASKED, one, other, replace(limits, search=search)))


def test_what_a_query_finds_stands_behind_the_passages_when_the_step_is_written_anew() -> None:
    generator, corpus = Turns((DENIED, FOUND, LAST)), Corpus([VELT])
    found = play(generator, Turns((LACKING, GOOD)), corpus)
    assert (found.answer, corpus.queries) == ("Oru", ["Ors Velt birth"])
    assert [attempt.retrieved for attempt in found.attempts] == [(VELT,), (), ()]
    assert [attempt.accepted for attempt in found.attempts] == [False, True, True]
    asked = [request.messages[1].content for request in generator.asked]
    assert 'Passage 2 ("Ors Velt")' not in asked[0]
    for later in asked[1:]:
        assert later.index("Passage 1 (") < later.index('Passage 2 ("Ors Velt")')
        assert later.startswith(asked[0][: asked[0].index("\n\nQuestion")])
    assert LACKING.diagnosis in asked[1]


def test_the_verifier_knows_the_label_and_sees_the_new_passages() -> None:
    verifier = Turns((LACKING, GOOD))
    play(Turns((DENIED, FOUND, LAST)), verifier, Corpus([VELT]))
    for request in verifier.asked:
        assert request.schema is not None
        assert "Missing Evidence" in request.schema.text
        assert "Missing Evidence" in request.messages[0].content
    assert 'Passage 2 ("Ors Velt")' in verifier.asked[1].messages[1].content


def test_at_most_three_passages_and_none_twice() -> None:
    corpus = Corpus([FILM, VELT, VELT, *OTHERS])
    found = play(Turns((DENIED, FOUND, LAST)), Turns((LACKING, GOOD)), corpus)
    assert found.attempts[0].retrieved == (VELT,)
    corpus = Corpus(OTHERS)
    found = play(Turns((DENIED, FOUND, LAST)), Turns((LACKING, GOOD)), corpus)
    assert found.attempts[0].retrieved == OTHERS[:3]


def test_a_query_asked_before_or_in_vain_is_a_rejection_and_no_more() -> None:
    again = Feedback("Missing Evidence", "Still.", "Read it.", "ors velt BIRTH")
    corpus = Corpus([FILM])
    limits = Limits(max_steps=1, max_retries=3, on_exhausted="drop")
    found = play(Turns((DENIED,)), Turns((LACKING, again)), corpus, limits)
    assert corpus.queries == ["Ors Velt birth"]
    assert [attempt.retrieved for attempt in found.attempts] == [()] * 5
    assert not found.steps


def test_searching_is_bounded_by_the_retries() -> None:
    queries = [Feedback("Missing Evidence", "No.", "Read.", f"query {n}") for n in range(9)]
    corpus, limits = Corpus(OTHERS), Limits(max_steps=2, max_retries=1)
    found = play(Turns((DENIED,)), Turns(tuple(queries)), corpus, limits)
    assert len(corpus.queries) == 4
    assert [attempt.accepted for attempt in found.attempts[:4]] == [False, True] * 2


def test_without_a_verifier_nobody_searches() -> None:
    corpus = Corpus([VELT])
    found = play(Turns((FOUND, LAST)), None, corpus)
    assert (found.answer, corpus.queries) == ("Oru", [])


def test_without_a_search_the_label_does_not_exist() -> None:
    verifier = Turns((LACKING, GOOD))
    found = play(Turns((FOUND, FOUND, LAST)), verifier, None)
    assert "Missing Evidence" not in verifier.asked[0].messages[0].content
    assert is_unread(found.attempts[0])
    assert found.answer == "Oru"


# ------------------------------------------------------------------------------ the symbolic roles


def with_one_gold_passage_less(folder: Path, benchmark: str, rows: int) -> list[Question]:
    """Real rows that the symbolic engine answers whole, each without its last gold passage."""
    parse = BENCHMARKS[benchmark].parse
    with (folder / f"{benchmark}_dev.jsonl").open(encoding="utf-8") as lines:
        parsed = [parse(json.loads(line), "validation") for line in islice(lines, 2 * rows)]
    whole = [q for q, t in zip(parsed, symbolic(parsed, None), strict=True) if is_right(q, t)]
    assert len(whole) >= rows
    return [without_passage(q, q.gold[-1][0]) for q in whole[:rows]]


def symbolic(questions: Sequence[Question], search: Search | None) -> list[Trajectory]:
    async def all_of_them() -> list[Trajectory]:
        one, other = Client(open_engine("symbolic")), Client(open_engine("symbolic"))
        return [await run_question(q, one, other, Limits(search=search)) for q in questions]

    return asyncio.run(all_of_them())


def is_right(question: Question, found: Trajectory) -> bool:
    return exact_match(found.answer, [question.answer], question.benchmark) == 1


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "hotpotqa"])
def test_real_rows_without_a_gold_passage_are_answered_once_it_is_found(
    real_data: Path, benchmark: str
) -> None:
    less = with_one_gold_passage_less(real_data, benchmark, rows=12)
    lines = (real_data / f"{benchmark}_dev.jsonl").read_text(encoding="utf-8").splitlines()[:60]
    rows = [BENCHMARKS[benchmark].parse(json.loads(line), "validation") for line in lines]
    corpus = {page.title: replace(page, is_gold=False) for row in rows for page in row.passages}

    def search(query: str) -> list[Passage]:
        words = f" {normal_name(query)} "
        named = [t for t in corpus if f" {normal_name(t)} " in words]
        return [corpus[title] for title in sorted(named, key=len, reverse=True)]

    without = [is_right(q, t) for q, t in zip(less, symbolic(less, None), strict=True)]
    found = symbolic(less, search)
    right = [is_right(q, t) for q, t in zip(less, found, strict=True)]
    assert sum(right) >= sum(without) + 0.5 * len(less)
    for question, trajectory in zip(less, found, strict=True):
        at_hand = len(question.passages)
        for attempt in trajectory.attempts:
            told = f"{attempt.text} {attempt.feedback}"
            assert all(int(n) <= at_hand for n in re.findall(r"\bPassage (\d+)", told))
            at_hand += len(attempt.retrieved)
