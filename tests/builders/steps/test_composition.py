from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.steps.composition import Candidate, Composition, choose, split_evenly
from safe_stepwise.errors import UserError
from safe_stepwise.taxonomy import ERROR_TYPES
from tests import sizes

TYPES = [entry.name for entry in ERROR_TYPES]
PAPER = {"2wikimultihopqa": (5476, 2292), "hotpotqa": (3063, 1330), "musique": (2976, 1438)}


def pool(benchmark: str, questions: int, seed: int = 1, chance: float = 0.3, refined: float = 0.0) -> list[Candidate]:
    rng = random.Random(seed)
    made = []
    for n in range(questions):
        question = f"{benchmark}-{n}"
        for position in range(1, rng.choice([4, 5, 6, 7]) + 1):
            key = f"{question}-{position}"
            made.append(Candidate(f"{key}-i", benchmark, question, "Correct", position, "ideal"))
            for type_ in TYPES:
                if rng.random() < chance:
                    id_ = f"{key}-{type_}"
                    made.append(Candidate(id_, benchmark, question, type_, position, "injected"))
            if rng.random() < refined:
                type_ = rng.choice(TYPES)
                id_ = f"{key}-r"
                made.append(Candidate(id_, benchmark, question, type_, position, "refined"))
    return made


def paper_pool() -> list[Candidate]:
    return [c for b, (_, q) in PAPER.items() for c in pool(b, q + 200, refined=0.2)]


def test_fewer_refined_rows_than_there_are_show_all_weaknesses_alike() -> None:
    families = ["look-alike names"] * 60 + ["fallacies passed"] * 30 + ["denials passed"] * 3
    mined = [
        Candidate(f"r{n}", "musique", f"q{n}", "Correct", 1 + n % 2, "refined", family=family)
        for n, family in enumerate(families)
    ]
    others = pool("musique", 100)
    chosen = choose([*others, *mined], Composition(120, refined=23, ideal=0.3), seed=5)
    found = Counter(one.family for one in mined if one.id in chosen.ids)
    assert found == {"look-alike names": 10, "fallacies passed": 10, "denials passed": 3}
    # Of rows that name none, positions have equal shares, as ever.
    nameless = [replace(one, family="") for one in mined]
    chosen = choose([*others, *nameless], Composition(120, refined=23, ideal=0.3), seed=5)
    places = Counter(one.position for one in nameless if one.id in chosen.ids)
    assert sorted(places.values()) == [11, 12]


def test_the_papers_composition_is_met_exactly() -> None:
    candidates = paper_pool()
    chosen = choose(candidates, Composition(11_515, 5_060, 0.339, 848, PAPER), seed=3)
    assert not chosen.shortfalls
    rows = [c for c in candidates if c.id in chosen.ids]
    assert len(rows) == len(chosen.ids) == 11_515
    by_origin = Counter(c.origin for c in rows)
    assert by_origin == {"ideal": 3_904, "injected": 6_763, "refined": 848}
    for benchmark, (wanted, questions) in PAPER.items():
        ours = [c for c in rows if c.benchmark == benchmark]
        assert len(ours) == wanted
        assert len({c.question for c in ours}) == questions
        types = Counter(c.error_type for c in ours if c.origin == "injected")
        assert set(types) == set(TYPES)
        assert max(types.values()) - min(types.values()) <= 1
        for type_ in TYPES:
            places = Counter(c.position for c in ours if c.row_class == type_)
            early = [places[position] for position in (1, 2, 3, 4)]
            assert max(early) - min(early) <= 0.1 * sum(places.values())


def test_labels_get_the_same_shares_of_traits_as_far_as_the_pool_allows() -> None:
    rng = random.Random(4)
    overlaps = {"Correct": 0.8, "Contradictory": 0.5, "Unsupported": 0.2, "Off-topic": 0.6}
    candidates = [
        Candidate(
            f"{label}-{n}", "a", f"q{n}", label, 1, "ideal" if label == "Correct" else "injected", traits=(trait,)
        )
        for label, share in overlaps.items()
        for n in range(400)
        for trait in [int(rng.random() < share)]
    ]
    chosen = choose(candidates, Composition(200), seed=2)
    for label in overlaps:
        traits = [c.traits[0] for c in candidates if c.id in chosen.ids and c.error_type == label]
        # The mean over the labels, in each of them.
        assert abs(sum(traits) / len(traits) - 0.525) < 0.03


def test_a_deduction_is_no_attributions_rival() -> None:
    kinds = ("Logical", "Attribution")
    candidates = [
        Candidate(f"{kind}-{n}", "a", f"{kind}{n}", "Correct", 1, "ideal", kind=kind, traits=(trait,))
        for trait, kind in enumerate(kinds)
        for n in range(300)
    ]
    chosen = choose(candidates, Composition(200, ideal=1), seed=3)
    assert 70 < sum(id_.startswith("Logical") for id_ in chosen.ids) < 130


def test_the_order_of_the_candidates_changes_nothing() -> None:
    candidates = pool("a", 60) + pool("b", 40)
    composition = Composition(200, 70)
    first = choose(candidates, composition, seed=1)
    random.Random(0).shuffle(candidates)
    assert choose(candidates, composition, seed=1) == first
    assert choose(candidates, composition, seed=2) != first


@settings(max_examples=sizes.examples(60), deadline=None)
@given(st.data())
def test_rows_and_questions_are_exact_whatever_the_pool(data: st.DataObject) -> None:
    questions = data.draw(st.integers(1, 12))
    candidates = [
        Candidate(f"{q}-{n}", benchmark, f"q{q}", "Correct" if c == "ideal" else type_, n % 5 + 1, c)
        for q in range(questions)
        for benchmark in [data.draw(st.sampled_from(["a", "b"]))]
        for n in range(data.draw(st.integers(1, 6)))
        for c in [data.draw(st.sampled_from(["ideal", "injected", "refined"]))]
        for type_ in [data.draw(st.sampled_from(TYPES))]
    ]
    rows = data.draw(st.integers(1, len(candidates)))
    wanted = data.draw(st.none() | st.integers(1, min(rows, questions)))
    ideal = data.draw(st.floats(0, 1))
    most = data.draw(st.integers(1, 7))
    rows_of = {key: min(n, most) for key, n in Counter((c.benchmark, c.question) for c in candidates).items()}
    try:
        composition = Composition(rows, wanted, ideal, rows_per_question=most)
        chosen = choose(candidates, composition, seed=0)
    except UserError:  # few questions may hold fewer rows than wanted
        shared = len({c.benchmark for c in candidates}) > 1
        some = wanted if wanted is not None else questions
        assert (shared and wanted) or sum(sorted(rows_of.values())[-some:]) < rows
        return
    picked = [c for c in candidates if c.id in chosen.ids]
    assert len(picked) == rows
    assert max(Counter((c.benchmark, c.question) for c in picked).values()) <= most
    if wanted is not None:
        assert len({(c.benchmark, c.question) for c in picked}) == wanted


def test_what_is_short_is_said_and_made_up_for() -> None:
    candidates = [c for c in pool("a", 50) if c.error_type != "Logical Fallacy"]
    chosen = choose(candidates, Composition(200, 50, ideal=0.5, refined=20), seed=0)
    assert len(chosen.ids) == 200
    assert chosen.shortfalls == {"a": {"refined": 20, "Logical Fallacy": 8}}


def test_one_benchmark_may_have_all_the_refined_rows() -> None:
    """More of them than it has room for beside its ideal rows are not taken."""
    candidates = [*pool("a", 60, refined=0.9), *pool("b", 60)]
    parts = {"a": (100, 40), "b": (100, 40)}
    chosen = choose(candidates, Composition(200, 80, 0.5, 90, parts), seed=0)
    rows = [c for c in candidates if c.id in chosen.ids]
    assert Counter(c.benchmark for c in rows) == {"a": 100, "b": 100}
    assert Counter(c.benchmark for c in rows if c.origin == "refined") == {"a": 50}
    assert Counter(c.benchmark for c in rows if c.origin == "ideal") == {"a": 50, "b": 50}
    assert chosen.shortfalls == {"b": {"refined": 40}}


def test_refined_rows_without_a_number_are_all_that_there_are() -> None:
    candidates = [*pool("a", 60, refined=0.1), *pool("b", 60)]
    chosen = choose(candidates, Composition(400, refined=None), seed=0)
    assert not chosen.shortfalls
    assert {c.id for c in candidates if c.origin == "refined"} <= chosen.ids
    assert len(chosen.ids) == 400


def test_a_rare_type_is_fully_used() -> None:
    """Questions that have it are drawn first."""
    common = [c for c in pool("a", 300) if c.error_type != "Logical Fallacy"]
    rare = [Candidate(f"r{n}", "a", f"a-{n}", "Logical Fallacy", 1, "injected") for n in range(0, 300, 30)]
    chosen = choose([*common, *rare], Composition(120, 60, ideal=0.1), seed=0)
    assert {c.id for c in rare} <= chosen.ids


def test_too_few_rows_are_an_error_with_the_number() -> None:
    candidates = pool("a", 10)
    with pytest.raises(UserError, match=rf"only {len(candidates)} could be made with at most 50 rows a question; ask"):
        choose(candidates, Composition(len(candidates) + 1, rows_per_question=50), seed=0)
    with pytest.raises(UserError, match="only 10 have a row"):
        choose(candidates, Composition(50, 11), seed=0)
    with pytest.raises(UserError, match=r"a: 50 rows are wanted of 1 questions, but only \d+"):
        choose(candidates, Composition(50, 1, rows_per_question=50), seed=0)


def test_no_question_has_more_rows_than_it_may() -> None:
    candidates = pool("a", 40) + pool("b", 40)
    for questions in (None, 60):
        for most in (5, 8):
            composition = Composition(60 * 5, questions, rows_per_question=most)
            chosen = choose(candidates, composition, seed=0)
            rows = [c for c in candidates if c.id in chosen.ids]
            assert len(rows) == 300
            assert max(Counter(c.question for c in rows).values()) <= most
            assert questions is None or len({c.question for c in rows}) == questions


def test_a_cap_that_bites_is_said() -> None:
    candidates = pool("a", 20)
    with pytest.raises(UserError, match=r"only 60 could be made with at most 3 rows a question; .*--rows-per-q"):
        choose(candidates, Composition(61, rows_per_question=3), seed=0)
    with pytest.raises(UserError, match="10 questions with at most 3 rows each are too few for 31"):
        Composition(31, 10, rows_per_question=3)
    # Four of ten questions have all the fallacies: more than two of each can't be had.
    rich = [Candidate(f"{q}-{n}", "a", f"{q}", "Logical Fallacy", n, "injected")
            for q in range(4) for n in range(9)]  # fmt: skip
    plain = [Candidate(f"{q}-i{n}", "a", f"{q}", "Correct", n, "ideal")
             for q in range(10) for n in range(9)]  # fmt: skip
    chosen = choose([*rich, *plain], Composition(20, ideal=0.1, rows_per_question=2), seed=0)
    assert len(chosen.ids) == 20
    assert chosen.shortfalls == {"a": dict.fromkeys((t for t in TYPES if t != "Logical Fallacy"), 1)}
    assert sum(c.id in chosen.ids for c in rich) == 8


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"rows": 0}, "1 or more"),
        ({"rows": 10, "questions": 11}, "each needs a row"),
        ({"rows": 10, "ideal": 1.2}, "between 0 and 1"),
        ({"rows": 10, "rows_per_question": 0}, "rows_per_question has to be 1 or more"),
        ({"rows": 10, "ideal": 0.5, "refined": 6}, "too many"),
        ({"rows": 10, "questions": 5, "per_benchmark": {"a": (9, 5)}}, "sums to 9 rows"),
        ({"rows": 10, "questions": 5, "per_benchmark": {"a": (10, 4)}}, "of 4 questions"),
    ],
)
def test_compositions_that_cannot_be(values: dict[str, object], expected: str) -> None:
    with pytest.raises(UserError, match=expected):
        Composition(**values)  # type: ignore[arg-type]


@given(st.integers(0, 100), st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 30)))
def test_sharing_out_is_full_and_even(wanted: int, room: dict[str, int]) -> None:
    given_ = split_evenly(wanted, room)
    assert sum(given_.values()) == min(wanted, sum(room.values()))
    assert all(0 <= given_[name] <= room[name] for name in room)
    unfilled = [given_[name] for name in room if given_[name] < room[name]]
    if unfilled:
        assert max(given_.values()) - min(unfilled) <= 1
