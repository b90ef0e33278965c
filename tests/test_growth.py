"""The measure of growth itself: a busy machine does not turn a line into a square, nor hide one."""

import itertools

import pytest

from tests import growth
from tests.growth import POWER, exponent


@pytest.mark.parametrize("power", [0.5, 1, 2, 3])
@pytest.mark.parametrize("disturbed", [1, 1.5, 2])
def test_the_power_is_found_whatever_else_the_machine_does(
    power: float, disturbed: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, delays = 0.0, itertools.cycle([1, disturbed, 1, 1, disturbed, 1, disturbed])

    def work(size: int) -> None:
        nonlocal now
        now += next(delays) * 1e-6 * size**power

    monkeypatch.setattr(growth.time, "process_time", lambda: now)
    assert exponent(work, 6_000, floor=0.0) == pytest.approx(power, abs=0.4)
    assert (exponent(work, 6_000, floor=0.0) > POWER) == (power > 1)
