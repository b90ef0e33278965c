"""The house rule: what a step states counts, said in any words; what it gets wrong is named."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from builders.benchmarks import parse_row
from safe_stepwise.checking.faithfulness.grounds import (
    Chain,
    ChainVerdict,
    Fault,
    Grounds,
    grounds_of,
    grounds_of_paths,
)
from safe_stepwise.checking.faithfulness.house import judge, stance_on
from safe_stepwise.checking.faithfulness.step_text import parse_text
from safe_stepwise.checking.statements import state
from safe_stepwise.errors import UserError
from safe_stepwise.language.senses import meaning_of
from safe_stepwise.language.vocabulary import load
from safe_stepwise.records import Passage, Question, Triple
from tests import sizes

FILM = Triple("Dune Rain", "director", "Ana Vorr")
BORN = Triple("Ana Vorr", "place of birth", "Oru")
PAGES = (
    Passage("Dune Rain", ("Dune Rain is a 1950 film directed by Ana Vorr and written by Edo Marn.",)),
    Passage("Ana Vorr", ("Ana Vorr (3 May 1901 – 4 March 1970) was born in Oru and died in Vel.",)),
)
ASKED = grounds_of_paths("Where was the director of Dune Rain born?", ["Oru"], [(FILM, BORN)], passages=PAGES)


def told(*steps: str, grounds: Grounds = ASKED) -> ChainVerdict:
    return judge(grounds, Chain(steps, grounds.answers[0]))


@pytest.mark.parametrize(
    "steps",
    [
        ("Dune Rain was directed by Ana Vorr.", "Ana Vorr was born in Oru."),
        ("The film was helmed by Ana Vorr.", "She hails from Oru."),
        ("Dune Rain's director, Ana Vorr, was born in Oru.",),
        ("Ana Vorr made Dune Rain (1950).", "Vorr's birthplace is Oru, so Oru is the answer."),
        ("It was Ana Vorr, a poet, who directed Dune Rain.", "Oru is where she was born."),
        ("Edo Marn wrote Dune Rain.", "Ana Vorr directed it.", "Ana Vorr was born in Oru."),
    ],
)
def test_facts_count_in_whatever_words_they_are_told(steps: tuple[str, ...]) -> None:
    verdict = told(*steps)
    assert verdict.path == "faithful", verdict
    assert {t for step in verdict.steps for t in step.triples} == {FILM, BORN}


@pytest.mark.parametrize(
    ("steps", "fault", "first"),
    [
        (("Dune Rain was directed by Gita Lund.", "Gita Lund was born in Oru."), "factual", 1),
        (("Dune Rain was directed by Ana Vorr.", "She was born in Marn."), "factual", 2),
        (("Dune Rain was edited by Ana Vorr.", "She was born in Oru."), "relation", 1),
        (("Dune Rain directed Ana Vorr.", "She was born in Oru."), "reversed", 1),
        (("Ana Vorr was born in Oru.", "Ana Vorr directed Dune Rain."), "order", 1),
        (("Dune Rain was directed by Ana Vorr.", "So it is Oru."), "missing", None),
        (("The director of Ana Rain is Gita Vorr.", "She was born in Oru."), "factual", 1),
        (("Dune Rain was written by Ana Vorr and directed by Edo Marn.",), "factual", 1),
    ],
)  # fmt: skip
def test_the_first_bad_step_is_found_and_its_kind(steps: tuple[str, ...], fault: Fault, first: int | None) -> None:
    verdict = told(*steps)
    assert (verdict.path, verdict.first) == ("unfaithful", first), verdict
    assert fault in (verdict.fault, "relation" if verdict.fault == "factual" else fault)


def test_a_question_without_a_path_is_not_judged() -> None:
    verdict = told("Dune Rain was directed by Ana Vorr.", grounds=replace(ASKED, paths=()))
    assert (verdict.path, verdict.fault) == ("unjudgeable", "unread")


BRANCHES = (
    Triple("Dune Rain", "director", "Ana Vorr"),
    Triple("Ford", "director", "Ors Velt"),
    Triple("Ana Vorr", "date of birth", "3 May 1901"),
    Triple("Ors Velt", "date of birth", "1899"),
)


def test_branches_come_in_any_order_but_not_crossed() -> None:
    grounds = grounds_of_paths(
        "Which film has the older director, Dune Rain or Ford?", ["Ford"], [BRANCHES], compares=True
    )
    assert told(
        "Ors Velt, born in 1899, directed Ford.",
        "Dune Rain was directed by Ana Vorr.",
        "Vorr was born in 1901, Velt in 1899.",
        grounds=grounds,
    ).path == "faithful"  # fmt: skip
    crossed = told(
        "Dune Rain was directed by Ors Velt and Ford by Ana Vorr.",
        "Ana Vorr was born on 3 May 1901 and Ors Velt in 1899.",
        grounds=grounds,
    )
    assert (crossed.path, crossed.first) == ("unfaithful", 1)


@pytest.mark.parametrize("wording", ["was born in {}", "was born on {}", "died on {}"])
def test_a_publication_is_no_birth_nor_death(wording: str) -> None:
    released = Triple("Dune Rain", "publication date", "3 May 1950")
    assert stance_on(parse_text(f"Dune Rain {wording.format('3 May 1950')}."), released) != "states"
    assert stance_on(parse_text("Dune Rain came out on 3 May 1950."), released) == "states"


@pytest.mark.parametrize("other", ["Ana Vorr", "Pell Quill"])
@pytest.mark.parametrize("step", ["Dune Rain was directed by {} and Ors Velt.", "{} and Ors Velt directed Dune Rain."])
def test_a_second_director_is_no_film_of_the_first(step: str, other: str) -> None:
    paths = [
        (Triple("Dune Rain", "directed_by", name), Triple(film, "directed_by", name))
        for name, film in (("Ana Vorr", "Ember"), ("Ors Velt", "Low Tide"))
    ]
    grounds = grounds_of_paths("Which other films are by a director of Dune Rain?", ["Ember", "Low Tide"], paths)
    verdict = told(step.format(other), "Ors Velt directed Low Tide.", grounds=grounds)
    assert verdict.path == ("faithful" if other == "Ana Vorr" else "unfaithful")


def test_every_relation_is_said_by_senses_that_there_are() -> None:
    vocabulary = load("senses")
    for relation in vocabulary["relations"]:
        meaning = meaning_of(relation)
        assert meaning is not None
        assert meaning.senses | meaning.turned <= set(vocabulary["senses"]), relation


# --------------------------------------------------------------------------------------- real rows


def real(path: Path, benchmark: str) -> Iterator[Question]:
    """A benchmark's real rows; those that its reader refuses are left out, as builders do."""
    for name in ("dev", "train"):
        with (path / f"{benchmark}_{name}.jsonl").open(encoding="utf-8") as file:
            for line in file:
                try:
                    yield parse_row(json.loads(line), benchmark, "validation")
                except UserError:
                    continue


def worded(triple: Triple, n: int) -> str:
    """A triple in a wording of the vocabulary, or in one of two plainer ones."""
    if n % 4 == 3:
        plain = ("{h}'s {r} is {t}.", "The {r} of {h} is {t}.")[n // 4 % 2]
        return plain.format(h=triple.head, r=triple.relation, t=triple.tail)
    said = state([triple], n)
    return f"{said[:1].upper()}{said[1:]}."


Altered = Callable[[Triple, list[Triple], Random], Triple]
ALTERED: dict[str, tuple[Altered, float]] = {
    "wrong tail": (lambda t, pool, rng: replace(t, tail=rng.choice(pool).tail), 0.03),
    "wrong head": (lambda t, pool, rng: replace(t, head=rng.choice(pool).head), 0.03),
    "wrong relation": (lambda t, pool, rng: replace(t, relation=rng.choice(pool).relation), 0.08),
    "reversed": (lambda t, pool, rng: replace(t, head=t.tail, tail=t.head), 0.10),
}  # fmt: skip


def test_what_is_true_of_real_evidence_passes_and_one_wrong_fact_does_not(real_data: Path) -> None:
    questions = [q for q in islice(real(real_data, "2wikimultihopqa"), sizes.size(120, 60)) if q.evidence]
    facts = [t for q in questions for t in q.evidence]
    passed, tried = Counter[str](), Counter[str]()
    for question in questions:
        rng, grounds = Random(question.id), grounds_of(question)
        fact = rng.choice(question.evidence)
        one = replace(grounds, paths=((fact,),))

        def passes(said: Triple, one: Grounds = one, rng: Random = rng) -> bool:
            step = worded(said, rng.randrange(1000))
            return judge(one, Chain((step,), "")).path == "faithful"

        tried["true"] += 1
        passed["true"] += passes(fact)
        alike = [t for t in facts if t.relation == fact.relation and t.head != fact.head
                 and t.tail != fact.tail]  # fmt: skip
        others = [t for t in facts if t.relation != fact.relation]
        for kind, (altered, _) in ALTERED.items():
            pool = others if kind == "wrong relation" else alike
            if pool:
                tried[kind] += 1
                passed[kind] += passes(altered(fact, pool, rng))
    assert passed["true"] / tried["true"] >= 0.97
    for kind, (_, most) in ALTERED.items():
        assert passed[kind] / tried[kind] <= most, (kind, passed[kind], tried[kind])


def test_peoples_derivations_are_faithful(real_data: Path) -> None:
    questions = {q.id: q for q in islice(real(real_data, "hotpotqa"), 400)}
    with (real_data / "r4c_derivations.jsonl").open(encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["id"] in questions][:40]
    found = Counter[str]()
    for row in rows:
        question = questions[row["id"]]
        paths = [[Triple(*fact) for _, _, fact in path] for path in row["derivations"]]
        grounds = grounds_of_paths(question.question, question.accepted, paths, (), question.passages, compares=True)
        for path in paths:
            steps = tuple(f"{t.head} {t.relation} {t.tail}." for t in path)
            found[judge(grounds, Chain(steps, question.answer)).path] += 1
    assert found["faithful"] >= 0.90 * found.total(), found


def test_paths_of_a_real_graph_are_faithful_and_one_other_end_is_found(real_data: Path) -> None:
    graph, near = list[Triple](), defaultdict[str, list[Triple]](list)
    with gzip.open(real_data / "metaqa_kb.txt.gz", "rt", encoding="utf-8") as file:
        for line in file:
            graph.append(triple := Triple(*line.rstrip("\n").split("|")))
            near[triple.head].append(triple)
            near[triple.tail].append(triple)
    with (real_data / "metaqa_questions.jsonl").open(encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["hop"] == 2][:60]
    found, refused = Counter[str](), Counter[str]()
    for row in rows:
        rng, topic = Random(row["id"]), re.findall(r"\[(.*)\]", row["question"])[0]
        one = rng.choice(near[topic])
        joint = one.tail if one.head == topic else one.head
        two = rng.choice([t for t in near[joint] if t != one] or [one])
        path = list(dict.fromkeys((one, two)))
        asked = row["question"].replace("[", "").replace("]", "")
        grounds = grounds_of_paths(asked, row["answers"], [path], near[topic][:50])
        steps = [f"{t.head} {t.relation} {t.tail}." for t in path]
        found[judge(grounds, Chain(tuple(steps), "")).path] += 1
        place = rng.randrange(len(path))
        other = rng.choice([t for t in graph[:2000] if t.tail != path[place].tail])
        steps[place] = f"{path[place].head} {path[place].relation} {other.tail}."
        refused[judge(grounds, Chain(tuple(steps), "")).path] += 1
    assert found["faithful"] >= 0.99 * found.total(), found
    assert refused["unfaithful"] >= 0.95 * refused.total(), refused
