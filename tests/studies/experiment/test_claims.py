"""A claim holds by its numbers, whichever way they fall."""

from __future__ import annotations

import pytest

from studies.experiment.experiment import list_arms
from studies.experiment.page import check_claims
from tests.studies.experiment.made import ADAPTER, DRAWN, experiment, gains_of, home, results, run, step

FOUND = results(run(0.4), run(0.6, ADAPTER), run(0.3, DRAWN))
STEPS = [step(n, "Contradictory" if n % 2 else "Correct") for n in range(20)]
TRUTH = {one.id: one.gold for one in STEPS}


@pytest.mark.parametrize(
    ("over_none", "over_chance", "holds"),
    [
        ((0.06, 0.009), (0.01, 0.04), [True, True]),
        ((0.06, 0.011), (0.01, 0.06), [False, False]),
        ((0.04, 0.001), (-0.2, 0.001), [False, False]),
        ((0.05, 0.0), (0.0, 0.0), [True, False]),
    ],
)
def test_by_points_and_by_p(
    over_none: tuple[float, float], over_chance: tuple[float, float], holds: list[bool]
) -> None:
    plain, learned, chance = list_arms(FOUND)
    gains = gains_of((learned, plain, *over_none), (learned, chance, *over_chance))
    found = [*check_claims(experiment(home(FOUND), {"": gains}))]
    assert [one.holds for one in found] == [*holds, None]
    assert [one.verdict for one in found] == [
        *("holds" if one else "**does not hold**" for one in holds),
        "not measured",
    ]
    assert found[0].measured.startswith(f"+{100 * over_none[0]:.1f} [")


@pytest.mark.parametrize(("missed", "holds"), [(0, True), (1, False), (3, False)])
def test_by_the_margin_over_the_probe(missed: int, holds: bool) -> None:
    """The probe misses two errors of ten, and flags no step that is right: F1 16 / 18.

    One that is missed is 18 / 19, .058 more; none is .111 more.
    """
    wrong = [one.id for one in STEPS if one.gold != "Correct"]
    probe = {**TRUTH, **dict.fromkeys(wrong[:2], "Correct")}
    said = {**TRUTH, **dict.fromkeys(wrong[:missed], "Correct")}
    plain, learned, chance = list_arms(FOUND)
    gains = gains_of((learned, plain, 0.1, 0.0), (learned, chance, 0.1, 0.0))
    of = experiment(home(FOUND, said=said), {"": gains}, STEPS, probe)
    *_, found = check_claims(of)
    assert found.holds is holds


def test_without_chance_nothing_is_said_of_it() -> None:
    pair = results(run(0.4), run(0.6, ADAPTER))
    plain, learned = list_arms(pair)
    gains = gains_of((learned, plain, 0.2, 0.0))
    found = [*check_claims(experiment(home(pair), {"": gains}))]
    assert [one.holds for one in found] == [True, None, None]
    assert found[1].measured == "–"
