from __future__ import annotations

import pytest

from builders.verified.questions import VerifiedQuestion
from safe_stepwise.records import Hop, Label, Passage, Question, Triple
from safe_stepwise.store.codec import label_row, question_row


def row(gold: set[int], total: int = 20, title: str = "Oru") -> VerifiedQuestion:
    """Passages that all share a title, as MuSiQue's may; ``gold`` counts from 1."""
    passages = tuple(Passage(title, (f"This is passage {n}.",), n in gold) for n in range(1, total + 1))
    path = tuple(Triple("a", f"in {n}", "b", n) for n in sorted(gold))
    graph = (*path, Triple("a", "nowhere", "b", None))
    hops = tuple(Hop("a >> in", "b", n) for n in sorted(gold))
    question = Question("q7", "musique", "train", "?", "b", passages=passages, decomposition=hops)
    label = Label("none", "A path.", path, graph, "annotations")
    return VerifiedQuestion.of_row({**question_row(question), **label_row(label)}, "musique", "train")


@pytest.mark.parametrize("gold", [{3, 17}, {1, 2, 3, 20}, set(range(11, 21))])
def test_numbers_follow_their_passages_though_titles_repeat(gold: set[int]) -> None:
    question, label = row(gold).sample(4)
    assert len(question.passages) == 10
    assert {p.sentences[0] for _, p in question.gold} == {f"This is passage {n}." for n in gold}
    for triple in label.reasoning_path:
        assert triple.passage is not None
        cited = question.passages[triple.passage - 1]
        assert cited.sentences[0] == f"This is passage {triple.relation.removeprefix('in ')}."
    assert label.knowledge_graph[: len(gold)] == label.reasoning_path
    assert label.knowledge_graph[-1].passage is None
    for hop, number in zip(question.decomposition, sorted(gold), strict=True):
        assert hop.passage is not None
        assert question.passages[hop.passage - 1].sentences[0] == f"This is passage {number}."


def test_the_seed_decides_on_order_and_distractors() -> None:
    content = row({3, 17})
    assert content.sample(1) == content.sample(1)
    assert content.sample(1) != content.sample(2)


def test_more_than_ten_gold_passages_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 10 gold passages"):
        row(set(range(1, 12))).sample(0)


def test_fewer_than_ten_passages_all_stay() -> None:
    question, _ = row({1, 2}, total=4).sample(0)
    assert len(question.passages) == 4
