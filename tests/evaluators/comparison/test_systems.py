"""What systems are called, and which of them meet."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from evaluators.comparison.systems import System, common_options, has_sweep, name_systems, pair_systems, sort_systems
from safe_stepwise.methods import METHODS
from tests.scripts.test_toy_method import Scouting

NO, SELF, SAFE = "no_verification", "self_verification", "safe"


def system(method: str = SAFE, generator: str = "g", verifier: str = "v", **options: Any) -> System:
    players = {"generator": generator} | ({"verifier": verifier} if method == SAFE else {})
    return System.make(method, players, options)


def limited(method: str, steps: int, retries: int, **players: str) -> System:
    return system(method, max_steps=steps, max_retries=retries, **players)


def met(*systems: System) -> list[tuple[str, str]]:
    """Pairs by name, the first the better placed."""
    known = name_systems(systems)
    return [(known[a], known[b]) for a, b in pair_systems(sort_systems(systems))]


def test_names_say_what_differs() -> None:
    assert list(name_systems([system(NO), system()]).values()) == ["No verification", "SAFE"]
    known = name_systems([system(NO, max_steps=10, max_retries=3), limited(SAFE, 10, 1)])
    assert list(known.values()) == ["No verification, K=10, N=3", "SAFE, K=10, N=1"]
    known = name_systems([system(verifier="a"), system(verifier="b", feedback="guidance"), system(NO)])
    said = ["SAFE with a", "SAFE with b, feedback=guidance", "No verification"]
    assert list(known.values()) == said
    known = name_systems([system(feedback="full"), system(feedback="guidance")])
    assert list(known.values()) == ["SAFE, feedback=full", "SAFE, feedback=guidance"]


def test_to_lack_an_option_is_to_differ_from_who_has_it() -> None:
    """As a run with a limit of its own beside one without, or with a choice of the papers."""
    one, other = system(feedback="full"), system(feedback="full", max_tokens="verify 4096")
    assert list(name_systems([one, other]).values()) == ["SAFE", "SAFE, max_tokens=verify 4096"]
    assert list(name_systems([other]).values()) == ["SAFE"]
    # Another method lacks it by nature, which parts it from nobody.
    assert met(system(NO), system(SAFE, feedback="full")) == [("SAFE", "No verification")]
    assert list(name_systems([system(NO), system(feedback="full")]).values()) == ["No verification", "SAFE"]
    followed = [system(), system(tries_total=True), system(tries_total=True, last_rejected=True)]
    assert len(set(name_systems(followed).values())) == len(followed)
    assert len(met(*followed)) == 2  # the first and the last are two options apart


def test_common_options_are_the_papers_and_what_is_not_the_default() -> None:
    more = {"feedback": "guidance", "on_exhausted": "accept"}
    assert common_options([limited(NO, 10, 3), system(max_retries=3, max_steps=10, **more)]) == (
        "K=10, N=3, feedback=guidance"
    )
    assert common_options([limited(NO, 10, 3), limited(SAFE, 10, 1)]) == ""


def test_a_method_that_nobody_knows_goes_by_its_name() -> None:
    found = System.make("new", {"z": "b", "a": "c"}, {"y": [1, {"x": None}], "b": True})
    assert found.players == (("a", "c"), ("z", "b"))
    assert found.answering == "c"
    assert name_systems([found]) == {found: "new"}
    assert common_options([found]) == 'b, y=[1,{"x":null}]'
    assert sort_systems([found, system(NO, "c"), system(SAFE, "c")])[-1] == found
    assert len(pair_systems([found, system(NO, "c")])) == 1


def test_roles_and_options_stand_in_the_methods_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "scouting", Scouting())
    found = System.make("scouting", {"scout": "s", "writer": "w"}, {"looks": 2})
    assert found.players == (("writer", "w"), ("scout", "s"))
    assert (found.answering, found.title, found.is_baseline) == ("w", "Scouting", False)
    assert found.departures == {"looks"}
    other = System.make("scouting", {"scout": "t", "writer": "w"}, {"looks": 1})
    assert name_systems([found, other])[other] == "Scouting with t, looks=1"
    assert list(System.make(SAFE, {}, {"max_retries": 1, "max_steps": 2, "z": 0}).options) == [
        ("max_steps", 2), ("max_retries", 1), ("z", 0),
    ]  # fmt: skip


def test_only_those_meet_whose_answers_come_from_the_same_engine() -> None:
    assert met(system(NO), system()) == [("SAFE", "No verification")]
    assert met(system(NO, "other"), system()) == []


def test_a_sweep_meets_at_equal_options_and_beside_itself() -> None:
    grid = [limited(m, k, n) for m, k, n in product((NO, SELF, SAFE), (5, 7, 10), (0, 1, 3))]
    found = pair_systems(sort_systems(grid))
    across = [(a, b) for a, b in found if a.method != b.method]
    assert len(across) == 9 * 3
    assert all(a.options == b.options for a, b in across)
    within = [(a, b) for a, b in found if a.method == b.method]
    assert len(within) == 3 * (3 * 3 + 3 * 3)
    assert all(sum(x != y for x, y in zip(a.options, b.options, strict=True)) == 1
               for a, b in within)  # fmt: skip
    assert all(a.options > b.options for a, b in within)


def test_whoever_never_ran_alike_meets_the_closest() -> None:
    assert met(limited(NO, 13, 3), limited(SAFE, 10, 1)) == [("SAFE, K=10, N=1", "No verification, K=13, N=3")]
    assert met(limited(NO, 13, 3), limited(NO, 10, 3), limited(SAFE, 10, 1)) == [
        ("SAFE, K=10, N=1", "No verification, K=10, N=3"),
        ("SAFE, K=10, N=1", "No verification, K=13, N=3"),
        ("No verification, K=13, N=3", "No verification, K=10, N=3"),
    ]
    verified = [limited(SAFE, 5, 1, verifier="a"), limited(SAFE, 10, 3, verifier="b")]
    assert len(pair_systems(sort_systems(verified))) == 1


def test_methods_without_common_options_meet() -> None:
    plain = System.make("direct", {"generator": "g"}, {})
    grid = [limited(SAFE, k, 3) for k in (5, 10)]
    assert len(pair_systems(sort_systems([plain, *grid]))) == 3


def test_order_is_by_who_answers_then_shared_options_then_method() -> None:
    ordered = sort_systems([limited(SAFE, 5, 1), limited(NO, 10, 1), limited(NO, 5, 1),
                        limited(NO, 10, 1, generator="a")])  # fmt: skip
    assert [(s.answering, s.method, dict(s.options)["max_steps"]) for s in ordered] == [
        ("a", NO, 10), ("g", NO, 5), ("g", SAFE, 5), ("g", NO, 10),
    ]  # fmt: skip
    mixed = sort_systems([System.make("debate", {"generator": "g"}, {}), limited(SAFE, 5, 1),
                      limited(NO, 10, 1)])  # fmt: skip
    assert [s.method for s in mixed] == [NO, SAFE, "debate"]


def under(found: System, **conditions: Any) -> System:
    return System.make(found.method, dict(found.players), dict(found.options), conditions)


def test_conditions_are_part_of_a_system_and_its_name() -> None:
    plain, corpus = system(), under(system(), drop_gold=True, corpus="pages.jsonl@0123")
    assert len({plain, corpus, under(system(), drop_gold=True)}) == 3
    assert list(name_systems([plain, corpus]).values()) == [
        "SAFE", "SAFE, corpus=pages.jsonl@0123, drop_gold",
    ]  # fmt: skip
    # Told, too, where all have them; and never among what all have in common.
    assert name_systems([corpus])[corpus] == "SAFE, corpus=pages.jsonl@0123, drop_gold"
    assert common_options([corpus, under(system(NO), drop_gold=True)]) == ""
    assert corpus.as_json()["conditions"] == {"corpus": "pages.jsonl@0123", "drop_gold": True}


def test_a_condition_is_no_sweep_and_pairs_like_an_option() -> None:
    grid = [
        under(system(method), **conditions)
        for method in (NO, SAFE)
        for conditions in ({}, {"drop_gold": True}, {"drop_gold": True, "corpus": "c"})
    ]
    assert not has_sweep(grid)
    found = pair_systems(sort_systems(grid))
    across = [(a, b) for a, b in found if a.method != b.method]
    assert len(across) == 3
    assert all(a.conditions == b.conditions for a, b in across)
    # Neighbours alone: one of the two conditions is another, not both.
    within = {(a.conditions, b.conditions) for a, b in found if a.method == b.method}
    assert within == {((("drop_gold", True),), ()), ((("drop_gold", True),), (("corpus", "c"), ("drop_gold", True)))}


def test_a_name_that_was_given_says_all_that_differs() -> None:
    a = under(system(verifier="a", max_steps=5, max_retries=3), variant="verified")
    b = under(system(verifier="b", max_steps=5, max_retries=3), variant="+ noise")
    assert list(name_systems([a, b, system(NO)]).values()) == [
        "SAFE, verified", "SAFE, + noise", "No verification",
    ]  # fmt: skip
    more = under(system(verifier="b", max_steps=9, max_retries=3), variant="+ noise")
    assert name_systems([a, b, more])[b] == "SAFE, + noise, K=5, N=3"
    other = under(system(verifier="c", max_steps=5, max_retries=3), variant="+ noise")
    assert name_systems([a, b, other])[b] == "SAFE with b, + noise"
    assert name_systems([a, b, more])[a] == "SAFE, verified"


def test_a_name_that_was_given_and_an_option_of_that_name_are_told_once() -> None:
    def asked(evidence: bool, samples: int, variant: str) -> System:
        options = {"evidence": evidence, "samples": samples}
        return under(System.make("cot", {"generator": "g"}, options), variant=variant, passages="all")

    runs = [asked(False, 1, "plain"), asked(True, 1, "evidence"), asked(True, 5, "evidence")]
    assert list(name_systems(runs).values()) == [
        "CoT, plain", "CoT, evidence, samples=1", "CoT, evidence, samples=5",
    ]  # fmt: skip


def test_what_is_swept() -> None:
    assert not has_sweep([limited(SAFE, 5, 1), limited(NO, 7, 1)])
    assert has_sweep([limited(SAFE, 5, 1), limited(SAFE, 7, 1)])
    assert has_sweep([system(feedback="full"), system(feedback="guidance")])
