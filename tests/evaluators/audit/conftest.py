"""A browser for the tests of pages; they skip where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browsing import chromium, visits


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    with visits(browser) as opened:
        yield opened
