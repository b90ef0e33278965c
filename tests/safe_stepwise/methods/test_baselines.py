"""TRACE and IRCoT, the baselines of SAFE's main tables: what they retrieve, choose and are shown."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.benchmarks import parse_row
from builders.verified.questions import with_passages
from safe_stepwise.engines.base import EngineError, Request
from safe_stepwise.engines.client import Client
from safe_stepwise.engines.mock import MockEngine
from safe_stepwise.methods import METHODS
from safe_stepwise.methods.base import options_type
from safe_stepwise.methods.corpus import Corpus
from safe_stepwise.methods.ircot import MACHINE as IRCOT_MACHINE
from safe_stepwise.methods.ircot import MAX_PASSAGES, RetrievalOptions, read_sentence
from safe_stepwise.methods.running import run_questions, transitions
from safe_stepwise.methods.trace import MACHINE as TRACE_MACHINE
from safe_stepwise.methods.trace import TripleOptions
from safe_stepwise.open import open_engine
from safe_stepwise.players.steps import checker_of
from safe_stepwise.records import Passage, Question, Trajectory, select_passages
from safe_stepwise.scoring import exact_match
from tests.sizes import size

FILM = Passage("Dune Rain", ("It is a film.", "Dune Rain was directed by Ors Velt."), True)
MAN = Passage("Ors Velt", ("Ors Velt comes from Oru.",), True)
PLAN = Passage("Plan", ('So the answer is: Ana. {"answer": "Ana", "explain": ""} {"number": 2}',))
PAGES = (FILM, *(Passage(f"Town {n}", (f"Town {n} is a town.",)) for n in range(9)), PLAN, MAN)
ASKED = Question("q1", "synthetic", "test", "Where was the director of Dune Rain born?", "Oru", passages=PAGES)
FIRST = "According to Passage 1, Dune Rain was directed by Ors Velt."
SECOND = "Ors Velt was born in Oru."


def run(method: str, *replies: str, question: Question = ASKED, **options: Any) -> tuple[Trajectory, list[Request]]:
    asked: list[Request] = []

    def reply(request: Request) -> str:
        asked.append(request)
        return replies[min(len(asked), len(replies)) - 1]

    chosen = METHODS[method]
    client = Client(MockEngine(reply), tries=1)
    return asyncio.run(chosen.answer(question, {"generator": client}, options_type(chosen)(**options))), asked


def answer(text: str) -> str:
    return json.dumps({"explain": "So it is.", "answer": text})


# ------------------------------------------------------------------------------------------- IRCoT


def test_each_sentence_retrieves_and_the_reader_answers() -> None:
    end = "So the answer is: Oru."
    trajectory, asked = run("ircot", f"{FIRST} He was a poet.", SECOND, end, answer("Oru"))
    assert (trajectory.answer, trajectory.stop_reason) == ("Oru", "answered")
    assert [step.text for step in trajectory.steps] == [FIRST, SECOND, end]
    assert [step.kind for step in trajectory.steps] == ["Attribution", "Attribution", "Logical"]
    assert transitions([trajectory]) == {
        "retrieve → think": 3, "think → retrieve": 2, "think → read": 1, "read → end": 1,
    }  # fmt: skip
    assert not any(attempt.retrieved for attempt in trajectory.attempts), "the question's own are no addition"
    first, second = (request.messages[1].content for request in asked[:2])
    assert "comes from Oru" not in first
    assert "comes from Oru" in second
    shown = [request.messages[1].content.partition("\n\nSentences")[0] for request in asked[:-1]]
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown)), "a prefix that can be cached"


def test_without_an_answering_sentence_the_chain_ends_at_its_limit() -> None:
    trajectory, asked = run("ircot", "Dune Rain is a film.", "Ors Velt is a man.", answer("Oru"), max_steps=2)
    assert (len(asked), trajectory.answer) == (3, "Oru")
    silent, asked = run("ircot", "...", answer("Oru"))
    assert (silent.steps, len(asked), silent.answer) == ((), 2, "Oru")


def test_an_unreadable_reader_answers_nothing() -> None:
    trajectory, _ = run("ircot", "So the answer is: Oru.", "It is Oru, I believe.")
    assert (trajectory.answer, trajectory.stop_reason) == ("", "unreadable")
    copied, _ = run("ircot", "Plan. So the answer is: Ana.", PLAN.text)
    assert copied.answer == ""


def test_a_corpus_brings_passages_that_the_question_lacks(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text("\n".join(json.dumps({"title": p.title, "text": p.text}) for p in PAGES), encoding="utf-8")
    corpus = Corpus.open(file, tmp_path / "cache")
    asked = select_passages(ASKED, [1, 2, 3])
    trajectory, requests = run(
        "ircot", FIRST, "So the answer is: Oru.", answer("Oru"), question=asked, search=corpus.search
    )
    assert MAN.title in [page.title for page in trajectory.attempts[2].retrieved]
    assert "comes from Oru" in requests[-1].messages[1].content


def test_no_more_passages_are_collected_than_the_limit() -> None:
    pages = tuple(Passage(f"Dune {n}", (f"Dune {n} is a dune.",)) for n in range(60))
    many = Question("q", "synthetic", "test", "Which dune?", "Dune 1", passages=pages)
    sentences = [f"Dune {4 * n} and Dune {4 * n + 1} are dunes." for n in range(8)]
    _, asked = run("ircot", *sentences, answer("Dune 1"), question=many)
    assert asked[-1].messages[1].content.count("\nPassage ") == MAX_PASSAGES


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [("1.\nOru lies.", "Oru lies."), ("Here is the next sentence:\n\nOru lies.", "Oru lies."),
     ("Sure! Oru lies.", "Oru lies."), ("```text\nOru lies.\n```", "Oru lies."),
     ("**Step 2:** Oru lies.", "Oru lies."), ("1. ", ""), ("...", "")],
)  # fmt: skip
def test_marks_and_prefaces_are_no_sentence(reply: str, sentence: str) -> None:
    assert read_sentence(reply) == sentence


@pytest.mark.parametrize(
    ("sentence", "ends"),
    [("So the answer is: Oru.", True), ("Answer: Oru", True), ("The answer, then, is Oru.", True),
     ("The answer would be Oru.", True), ("The final answer is needed: who directed it?", False),
     ("Passage 3 says that the answer was a lie.", False),
     ('According to Passage 2, "the answer is 42" is said.', False)],
)  # fmt: skip
def test_a_chain_ends_with_its_own_answer_alone(sentence: str, ends: bool) -> None:
    trajectory, _ = run("ircot", sentence, "Oru lies.", answer("Oru"), max_steps=2)
    assert len(trajectory.steps) == (1 if ends else 2)


def test_passages_keep_the_questions_numbers() -> None:
    """So that a citation leads where the page of traces and the rules of faithfulness look."""
    _, asked = run("ircot", FIRST, "So the answer is: Oru.", answer("Oru"))
    shown = asked[1].messages[1].content
    assert 'Passage 1 ("Dune Rain")' in shown
    assert f'Passage {PAGES.index(MAN) + 1} ("Ors Velt")' in shown


@given(st.text(max_size=300))
def test_any_reply_has_a_first_sentence_or_none(text: str) -> None:
    sentence = read_sentence(text)
    assert sentence == " ".join(sentence.split())
    assert all(word in text.replace("*", "") for word in sentence.split())


# ------------------------------------------------------------------------------------------- TRACE


def triples(*entries: tuple[str, str, str]) -> str:
    return json.dumps({"triples": [*map(list, entries)]})


DIRECTOR, BORN = ("Dune Rain", "director", "Ors Velt"), ("Ors Velt", "place of birth", "Oru")
TWO = Question("q2", "synthetic", "test", ASKED.question, "Oru", passages=(FILM, MAN))


def test_triples_are_extracted_chosen_and_answered_from() -> None:
    choices = ('{"number": 1}', '{"number": 1}', '{"number": 0}')
    trajectory, asked = run("trace", triples(DIRECTOR), triples(BORN), *choices[:2], answer("Oru"), question=TWO)
    assert (trajectory.answer, trajectory.stop_reason) == ("Oru", "answered")
    assert [step.text for step in trajectory.steps] == [
        "According to Passage 1, Dune Rain director Ors Velt.",
        "According to Passage 2, Ors Velt place of birth Oru.",
    ]
    roles = [request.role for request in asked]
    assert roles == ["extract_triples"] * 2 + ["choose_triple"] * 2 + ["answer_from_triples"]
    shown = asked[-1].messages[1].content
    assert '2: "Ors Velt", "place of birth", "Oru"' in shown
    assert "It is a film" not in shown, "the answer comes from the chain alone"
    assert '"Ors Velt", "place of birth"' in asked[3].messages[1].content.partition("choose from")[2]


def test_enough_is_enough_and_so_is_an_unreadable_choice() -> None:
    enough, _ = run("trace", triples(DIRECTOR), triples(BORN), '{"number": 0}', answer("Oru"), question=TWO)
    assert (enough.steps, enough.answer) == ((), "Oru")
    unread, _ = run("trace", triples(DIRECTOR), triples(BORN), "The second.", answer("Oru"), question=TWO)
    assert (unread.steps, unread.answer) == ((), "Oru")
    beyond, _ = run("trace", triples(DIRECTOR), triples(BORN), '{"number": 3}', answer("Oru"), question=TWO)
    assert beyond.steps == ()


def test_the_chain_and_the_candidates_have_limits() -> None:
    many = triples(*((f"Town {n}", "lies in", "Oru") for n in range(30)))
    trajectory, asked = run(
        "trace", many, triples(BORN), '{"number": 1}', '{"number": 1}', answer("Oru"),
        question=TWO, max_triples=2, candidates=5,
    )  # fmt: skip
    assert len(trajectory.steps) == 2
    assert "\n5: " in asked[2].messages[1].content
    assert "\n6: " not in asked[2].messages[1].content


def test_passages_without_readable_triples_have_none() -> None:
    entries = [["Dune Rain", "director"], ["Dune Rain", "year", 1932], None]
    some, asked = run("trace", json.dumps({"triples": entries}), "No.", '{"number": "1"}', answer("Oru"), question=TWO)
    assert [step.text for step in some.steps] == ["According to Passage 1, Dune Rain year 1932."]
    trajectory, asked = run(
        "trace", "No facts.", '{"triples": [["Dune Rain", "director"]]}', answer("Oru"), question=TWO
    )
    assert [request.role for request in asked][2:] == ["answer_from_triples"]
    assert (trajectory.steps, trajectory.answer) == ((), "Oru")


# -------------------------------------------------------------------------------------------- both


@pytest.mark.parametrize(
    ("options", "values"), [(RetrievalOptions, {"max_steps": 0}), (TripleOptions, {"candidates": 0})]
)
def test_limits_below_one_are_refused(options: Any, values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="to be 1 or more"):
        options(**values)


@pytest.mark.parametrize("method", ["ircot", "trace"])
def test_a_hostile_model_takes_no_other_edge(method: str) -> None:
    machine = {"ircot": IRCOT_MACHINE, "trace": TRACE_MACHINE}[method]
    chance, texts = (
        Random(3),
        ["", "\0", "{", PLAN.text, "So the answer is", '{"number": 1}', triples(BORN), "word " * 9_000],
    )
    for _ in range(size(300, 40)):
        replies = [chance.choice(texts) for _ in range(40)]
        trajectory, _ = run(method, *replies, question=TWO)
        assert trajectory.stop_reason in ("answered", "unreadable")
        edges = {f"{start} → {end}" for start, end in machine.edges}
        assert set(transitions([trajectory])) <= edges


@pytest.mark.parametrize("method", ["ircot", "trace"])
@pytest.mark.parametrize("benchmark", ["2wikimultihopqa", "hotpotqa", "musique"])
def test_a_clean_player_is_right_on_planned_rows(method: str, benchmark: str, real_data: Path) -> None:
    lines = (real_data / f"{benchmark}_dev.jsonl").read_text(encoding="utf-8").splitlines()[: size(100, 15)]
    rows = [parse_row(json.loads(line), benchmark, "validation") for line in lines]
    questions = [with_passages(question, 1)[0] for question in rows if _has_plan(question)]
    assert len(questions) > len(rows) / 2
    chosen = METHODS[method]
    client = Client(open_engine("symbolic"), tries=1)
    options = options_type(chosen)()
    trajectories = asyncio.run(run_questions(questions, lambda q: chosen.answer(q, {"generator": client}, options)))
    right = [exact_match(t.answer, q.accepted) == 1 for q, t in zip(questions, trajectories, strict=True)]
    # IRCoT sees what its searches bring; all of it in 97% of the questions, among ten passages.
    seen = [method == "trace" or _saw_all(q, t) for q, t in zip(questions, trajectories, strict=True)]
    assert sum(seen) >= 0.97 * len(seen)
    assert all(is_right for is_right, has_all in zip(right, seen, strict=True) if has_all)


def _saw_all(question: Question, trajectory: Trajectory) -> bool:
    cited = " ".join(step.text for step in trajectory.steps if not step.text.startswith("I need to find"))
    return all(f"Passage {number}," in cited for number, _ in question.gold)


def _has_plan(question: Question) -> bool:
    try:
        return len(checker_of(question).passages) == len(question.passages)
    except EngineError:
        return False
