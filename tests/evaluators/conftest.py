"""What the tests of all pages share; each folder starts its own browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browsing import visits


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    with visits(browser) as opened:
        yield opened
