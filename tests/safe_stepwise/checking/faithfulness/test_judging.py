"""The one door: the same bytes in any order and process, and hostile texts in linear time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from safe_stepwise.checking.faithfulness import house
from safe_stepwise.checking.faithfulness.grounds import Chain, ChainVerdict, Grounds, Rule, grounds_of_paths
from safe_stepwise.checking.faithfulness.judging import judge_chain
from safe_stepwise.checking.faithfulness.step_text import Stance, StepText
from safe_stepwise.records import Passage, Triple, canonical_json
from tests.benchmarks.bench_faithfulness import cases
from tests.growth import PARSED, POWER, TEXTS, exponent, too_slow

RULES: tuple[Rule, ...] = ("paper", "house")
PATH = (Triple("Dune Rain", "director", "Ors Velt"), Triple("Ors Velt", "spouse", "Ana Vorr"))
ASKED = "Who married the director of Dune Rain?"
GROUNDS = grounds_of_paths(ASKED, ["Ana Vorr"], [PATH], passages=[
    Passage("Dune Rain", ("Dune Rain is a film by Ors Velt.",), True)])  # fmt: skip
hostile = st.text(max_size=60) | st.text(
    st.characters(codec=None) | st.sampled_from("\ud800\udfff\u0301\x00 .,(\"'"), max_size=30
)


def judged(case: tuple[Grounds, Chain]) -> str:
    """A case by both rules, as the one text that it is written down as."""
    return canonical_json([judge_chain(*case, rule) for rule in RULES])


def digest() -> str:
    return hashlib.sha256("".join(map(judged, cases(40))).encode()).hexdigest()


def test_any_order_and_number_of_workers() -> None:
    asked = [*cases(40)]
    serial = [judged(case) for case in asked]
    places = Random(1).sample(range(40), 40)
    again = dict(zip(places, [judged(asked[n]) for n in places], strict=True))
    assert [again[n] for n in range(40)] == serial
    with ProcessPoolExecutor(2) as pool:
        assert [*pool.map(judged, asked[::-1])] == serial[::-1]
    assert len(set(serial)) > 10


def test_any_seed_of_hashes() -> None:
    """This process has drawn a seed of its own."""
    code = f"import {__name__} as it; print(it.digest())"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )  # fmt: skip
    assert told.stdout.strip() == digest()


def test_an_unknown_rule() -> None:
    with pytest.raises(ValueError, match="unknown rule 'mine'"):
        judge_chain(GROUNDS, Chain(("It is so.",), "Ana"), "mine")  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", RULES)
@given(steps=st.lists(hostile, max_size=4), answer=hostile)
@example(steps=["\ud800", "", "…", "(" * 500, "\x00"], answer="\udfff")
@example(steps=[*("Ana Vorr of " * 50,) * 2], answer="Ana " * 500)
def test_hostile_chains(rule: Rule, steps: list[str], answer: str) -> None:
    check_shape(judge_chain(GROUNDS, Chain(tuple(steps), answer), rule), len(steps))


@pytest.mark.parametrize("rule", RULES)
@given(names=st.lists(hostile, min_size=4, max_size=4), question=hostile)
def test_hostile_graphs(rule: Rule, names: list[str], question: str) -> None:
    a, b, c, d = names
    path = (Triple(a, b, c), Triple(c, d, a))
    grounds = grounds_of_paths(question, [c, d], [path, path[::-1]], [Triple(b, a, d)])
    told = Chain((f"{a} {b} {c}.", f"{c} {d} {a}"), a)
    check_shape(judge_chain(grounds, told, rule), 2)


def check_shape(found: ChainVerdict, steps: int) -> None:
    assert (found.fault == "") == (found.path == "faithful")
    assert found.first is None or found.steps[found.first - 1].fault == found.fault
    assert found.path == "unjudgeable" or len(found.steps) == steps
    assert (found.edits is None) == (found.path == "unjudgeable")
    assert found.distance is None or 0 <= found.distance <= 1
    assert all(step.score is None or 0 <= step.score <= 1 for step in found.steps)
    canonical_json(found)


@pytest.mark.parametrize("rule", RULES)
def test_steps_and_answers_take_linear_time(rule: Rule) -> None:
    def judge(text: str) -> None:
        told = (f"The director of Dune Rain is Ors Velt. {text}",)
        judge_chain(GROUNDS, Chain(told, text), rule)

    # The house rule parses each text.
    assert too_slow(judge, PARSED if rule == "house" else TEXTS) == []


KIN = grounds_of_paths(
    "Who is the father of the director of Dune Rain?", ["Vel"],
    [(PATH[0], Triple("Ors Velt", "father", "Vel"))],
)  # fmt: skip


@pytest.mark.parametrize(
    "unit", ["his father ", "Vel is its capital ", "Ors Velt is the father of Vel and ", "Vel, his son "]
)
def test_ends_named_again_and_again_take_linear_time(unit: str) -> None:
    """Well below the length from which on nothing is read."""

    def judge(size: int) -> None:
        text = (unit * size)[:size]
        told = (f"The director of Dune Rain is Ors Velt. {text}", text)
        judge_chain(KIN, Chain(told, text))

    assert exponent(judge, 2000) <= POWER


def test_a_fact_of_many_paths_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Triple] = []
    read = house.stance_on

    def stance_on(said: StepText, triple: Triple) -> Stance:
        asked.append(triple)
        return read(said, triple)

    monkeypatch.setattr(house, "stance_on", stance_on)
    paths = [(PATH[0], Triple("Ors Velt", "spouse", f"Ana Vorr {n}")) for n in range(50)]
    grounds = grounds_of_paths(ASKED, ["Ana Vorr 7"], paths)
    told = ("Dune Rain was directed by Ors Velt.", "Ors Velt's spouse is Ana Vorr 7.")
    assert judge_chain(grounds, Chain(told, "Ana Vorr 7")).path == "faithful"
    assert asked.count(PATH[0]) == len(told)


def test_names_take_linear_time() -> None:
    def judge(text: str) -> None:
        path = [Triple(text, "r", "Oru"), Triple("Oru", text, f"{text}z")]
        grounds = grounds_of_paths(text, [f"{text}z"], [path])
        judge_chain(grounds, Chain((f"{text} r Oru.", f"Oru {text} z."), text), "paper")

    assert too_slow(judge) == []
