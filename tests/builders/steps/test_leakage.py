from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from builders.steps import leakage
from builders.steps.leakage import BOILERPLATE, Document, DocumentIndex, document, find_copies, groups, held_out, near
from builders.steps.rows import StepRow
from builders.synthetic import generate, parse_spec
from safe_stepwise.records import Feedback, Passage, Question, Step, StepKind
from tests import sizes


def question(id_: str, text: str, *gold: str) -> Question:
    passages = tuple(Passage(f"P{n}", (body,), True) for n, body in enumerate(gold))
    return Question(id_, "synthetic", "train", text, "x", passages=passages)


def words(seed: int, number: int = 60) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(10_000)}" for _ in range(number))


def test_the_same_gold_passages_are_near_whatever_their_order() -> None:
    one = question("1", words(1), words(10), words(11))
    other = Question("2", "synthetic", "train", words(2), "x", passages=one.passages[::-1])
    distractor = Passage("D", (words(12),), False)
    third = Question("3", "synthetic", "train", words(3), "x",
                     passages=(*one.passages, distractor))  # fmt: skip
    assert near(document(one), document(other))
    assert near(document(one), document(third))


def test_half_of_the_smaller_one_is_near() -> None:
    shared = words(5, 60)
    small = question("1", words(6, 10), shared)
    large = question("2", words(7, 10), f"{shared} {words(8, 300)}")
    assert near(document(small), document(large))
    assert not near(document(small), document(question("3", words(6, 9), words(9, 60))))


def test_case_and_punctuation_hide_nothing() -> None:
    text = words(5)
    changed = text.upper().replace(" ", ", ")
    assert near(document(question("1", "Q", text)), document(question("2", "R", changed)))


def test_short_questions_are_compared_whole() -> None:
    same = document(question("1", "Who founded Oru?")), document(question("2", "who founded oru"))
    assert near(*same)
    assert not near(same[0], document(question("3", "Who founded Vel?")))


def brute(documents: dict[str, Document]) -> set[frozenset[str]]:
    parent = {key: key for key in documents}

    def root(key: str) -> str:
        while parent[key] != key:
            key = parent[key]
        return key

    for one, other in combinations(documents, 2):
        if near(documents[one], documents[other]):
            parent[root(one)] = root(other)
    return {frozenset(k for k in documents if root(k) == r) for r in map(root, documents)}


@settings(max_examples=sizes.examples(50), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.integers(0, 12), min_size=1)), max_size=9))
def test_groups_are_what_comparing_all_pairs_gives(content: list[tuple[int, set[int]]]) -> None:
    documents = {
        f"q{n}": Document(f"{passages}-{n % 4}".encode(), frozenset(grams))
        for n, (passages, grams) in enumerate(content)
    }
    assert {frozenset(group) for group in groups(documents)} == brute(documents)


def test_groups_of_generated_questions_are_what_comparing_all_pairs_gives() -> None:
    made = generate(parse_spec("rows=150,seed=3"), 0, 150, "train")
    documents = {q.id: document(q) for q, _ in made}
    assert {frozenset(group) for group in groups(documents)} == brute(documents)


def test_boilerplate_brings_nobody_together() -> None:
    banner = words(1, 40)
    many = {str(n): document(question(str(n), words(100 + n, 9), banner + f" {words(n, 9)}"))
            for n in range(BOILERPLATE + 1)}  # fmt: skip
    assert len(groups(many)) == len(many)
    few = dict(list(many.items())[:BOILERPLATE])
    assert len(groups(few)) == 1


def test_the_index_finds_what_is_near_to_any() -> None:
    held = [question(str(n), words(n), words(50 + n)) for n in range(20)]
    index = DocumentIndex(map(document, held))
    copy = question("x", f"And {held[7].question}", held[7].passages[0].text)
    assert index.near(document(copy))
    assert not index.near(document(question("y", words(98), words(99))))


def test_many_questions_are_grouped_by_few_comparisons(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    compared = []
    real = leakage.near
    monkeypatch.setattr(leakage, "near", lambda a, b: compared.append(1) or real(a, b))
    made = {str(n): document(question(str(n), words(n), words(n // 3 + 10_000))) for n in range(sizes.size(6000, 600))}
    assert len(groups(made)) == sizes.size(2000, 200)
    assert len(compared) < 10 * sizes.size(6000, 600)


def test_whole_groups_go_to_test_with_the_smallest_overshoot() -> None:
    made = [["a", "b", "c"], ["d"], ["e", "f"], ["g"]]
    rows = dict.fromkeys("abcdefg", 10)
    assert held_out(made, rows, 10) == [1]
    assert held_out(made, rows, 30) == [0]
    assert held_out([["a", "b", "c"], ["e", "f"]], rows, 10) == [1]
    assert held_out([["a", "b"]], rows, 5) == []


def step_row(number: int, text: str, kind: StepKind = "Logical") -> StepRow:
    before = tuple(Step(n, "So.", "Logical") for n in range(1, number))
    said = Feedback("Correct", "So.", "Go on.")
    step = Step(number, text, kind)
    return StepRow(question(f"q{number}", "Who?"), before, step, said, "ideal", "hand")


def test_steps_that_stand_in_train_are_copies_whatever_their_number_case_and_spaces() -> None:
    train = [step_row(1, "Oru lies on  the Vel."), step_row(4, "####ANSWER: Oru", "Final Answer")]
    copy = step_row(2, "oru lies on the vel.")
    other = step_row(2, "Oru lies on the Vel")
    answer = step_row(3, "####ANSWER: Oru", "Final Answer")
    assert find_copies([copy, other, answer], train) == {copy.id}
    assert find_copies(train, []) == frozenset()
