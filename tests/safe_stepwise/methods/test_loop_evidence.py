"""The loop with incomplete evidence: who searches, what comes of it, where it ends."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.benchmarks import BENCHMARKS
from evaluators.run.command import remove_passage
from safe_stepwise.engines.base import Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.feedback import format_feedback
from safe_stepwise.language.text import normal_name
from safe_stepwise.methods.limits import DEFAULT, FEEDBACK_FORMS, FeedbackForm, Limits, OnExhausted, Search
from safe_stepwise.methods.loop import FINAL_ANSWER, UNREAD, run_question
from safe_stepwise.methods.searching import NO_EVIDENCE
from safe_stepwise.open import open_engine
from safe_stepwise.records import Feedback, Passage, Question, Trajectory
from safe_stepwise.scoring import exact_match
from tests import sizes

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


def play(generator: Turns, verifier: Turns | None, search: Search | None, limits: Limits = DEFAULT) -> Trajectory:
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


def test_a_query_that_found_nothing_is_not_asked_again_and_ends_after_one_more_try() -> None:
    again = Feedback("Missing Evidence", "Still.", "Read it.", "ors velt BIRTH")
    generator, corpus = Turns((DENIED, DENIED, LAST.replace("2", "1"))), Corpus([FILM])
    found = play(generator, Turns((LACKING, again)), corpus)
    assert corpus.queries == ["Ors Velt birth"]
    assert [attempt.state for attempt in found.attempts] == ["", "", FINAL_ANSWER]
    assert (found.stop_reason, found.answer, len(found.steps)) == (NO_EVIDENCE, "Oru", 1)
    asked = [request.messages[1].content for request in generator.asked]
    assert "brought nothing new" not in asked[0]
    assert "The search for “Ors Velt  birth” brought nothing new" in asked[1]
    assert LACKING.guidance not in asked[1]
    assert [a.feedback and a.feedback.guidance for a in found.attempts] == ["Read it."] * 2 + [None]


@pytest.mark.parametrize("form", FEEDBACK_FORMS)
def test_a_search_in_vain_is_told_in_every_form(form: FeedbackForm) -> None:
    generator = Turns((DENIED, FOUND, LAST))
    limits = Limits(feedback=form)
    found = play(generator, Turns((LACKING, GOOD)), Corpus([]), limits)
    assert "brought nothing new" in generator.asked[1].messages[1].content
    assert (found.stop_reason, found.answer) == ("answered", "Oru")


def test_another_fault_between_two_searches_in_vain_changes_nothing() -> None:
    bad = Feedback("Unsupported", "It is not.", "Read it.")
    found = play(Turns((DENIED,)), Turns((LACKING, bad, LACKING)), Corpus([]))
    assert (found.stop_reason, len(found.attempts)) == (NO_EVIDENCE, 4)


def test_the_next_step_has_its_own_tries() -> None:
    """In vain once, then on another way; in vain once more at the next step: nothing has ended."""
    generator = Turns((DENIED, FOUND, DENIED.replace("1", "2"), LAST))
    other = replace(LACKING, query="the birth of Ors Velt")
    found = play(generator, Turns((LACKING, GOOD, other, GOOD)), Corpus([]))
    assert (found.stop_reason, len(found.attempts)) == ("answered", 4)


@pytest.mark.parametrize("rule", ["accept", "drop"])
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_step_whose_every_query_finds_something_else_ends_with_its_retries(rule: OnExhausted, retries: int) -> None:
    queries = tuple(Feedback("Missing Evidence", "No.", "Read.", f"query {n}") for n in range(99))
    pages = (Passage(f"Page {n}", (f"{n} is a number.",)) for n in count())
    generator, limits = Turns((DENIED,)), Limits(10, retries, rule)
    found = play(generator, Turns(queries), lambda _: [next(pages)], limits)
    searched = max(2, retries + 1)  # without a retry, the next round is the second try
    assert (found.stop_reason, len(generator.asked)) == (NO_EVIDENCE, searched + 1)
    assert sum(len(attempt.retrieved) for attempt in found.attempts) == searched
    accepted = sum(attempt.accepted for attempt in found.attempts)
    assert accepted == (retries == 0 and rule == "accept")


@settings(max_examples=sizes.examples(150), deadline=None)
@given(
    st.lists(st.sampled_from([DENIED, FOUND, LAST, "Hm."]), min_size=1, max_size=9),
    st.lists(
        st.one_of(
            st.sampled_from([GOOD, Feedback("Unsupported", "No.", "Read."), "Fine."]),
            st.sampled_from("abc").map(lambda q: Feedback("Missing Evidence", "No.", "Read.", q)),
        ),
        min_size=1,
        max_size=9,
    ),
    st.integers(0, 3),
    st.sampled_from(["accept", "drop"]),
)
def test_whatever_is_said_no_step_lacks_evidence_in_vain_more_than_twice(
    said: list[str], judged: list[str | Feedback], retries: int, rule: OnExhausted
) -> None:
    corpus = Corpus(OTHERS[:1])
    found = play(Turns(tuple(said)), Turns(tuple(judged)), corpus, Limits(3, retries, rule))
    assert len(set(corpus.queries)) == len(corpus.queries)
    vain = [a for a in found.attempts if a.feedback and a.feedback.query and not a.retrieved]
    assert all(n <= 2 for n in Counter(a.number for a in vain if not a.accepted).values())
    last = found.attempts[-1]
    assert (last.state == FINAL_ANSWER) == (found.stop_reason in (NO_EVIDENCE, "max_steps"))
    if found.stop_reason == NO_EVIDENCE:
        tried = found.attempts[-2].feedback
        assert tried is not None
        assert tried.error_type == "Missing Evidence"


def test_without_a_verifier_nobody_searches() -> None:
    corpus = Corpus([VELT])
    found = play(Turns((FOUND, LAST)), None, corpus)
    assert (found.answer, corpus.queries) == ("Oru", [])


def test_without_a_search_the_label_does_not_exist() -> None:
    verifier = Turns((LACKING, GOOD))
    found = play(Turns((FOUND, FOUND, LAST)), verifier, None)
    assert "Missing Evidence" not in verifier.asked[0].messages[0].content
    assert found.attempts[0].feedback is not None
    assert found.attempts[0].feedback.error_type == UNREAD
    assert found.answer == "Oru"


# ------------------------------------------------------------------------------ the symbolic roles


def with_one_gold_passage_less(folder: Path, benchmark: str, rows: int) -> list[Question]:
    """Real rows that the symbolic engine answers whole, each without its last gold passage."""
    parse = BENCHMARKS[benchmark].parse
    with (folder / f"{benchmark}_dev.jsonl").open(encoding="utf-8") as lines:
        parsed = [parse(json.loads(line), "validation") for line in islice(lines, 2 * rows)]
    whole = [q for q, t in zip(parsed, symbolic(parsed, None), strict=True) if is_right(q, t)]
    assert len(whole) >= rows
    return [remove_passage(q, q.gold[-1][0]) for q in whole[:rows]]


def symbolic(questions: Sequence[Question], search: Search | None) -> list[Trajectory]:
    async def all_of_them() -> list[Trajectory]:
        one, other = Client(open_engine("symbolic")), Client(open_engine("symbolic"))
        return [await run_question(q, one, other, Limits(search=search)) for q in questions]

    return asyncio.run(all_of_them())


def is_right(question: Question, found: Trajectory) -> bool:
    return exact_match(found.answer, [question.answer], question.benchmark) == 1


@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "hotpotqa"])
def test_real_rows_without_a_gold_passage_are_answered_once_it_is_found(real_data: Path, benchmark: str) -> None:
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
