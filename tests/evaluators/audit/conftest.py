"""A browser for the tests of pages; they skip where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browsing import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as launched:
        yield launched
