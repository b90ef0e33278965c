"""How a question is answered: one file a method, and their registry."""

from __future__ import annotations

from safe_stepwise.methods.base import Method
from safe_stepwise.methods.no_verification import NoVerification
from safe_stepwise.methods.safe import Safe
from safe_stepwise.methods.self_verification import SelfVerification

METHODS: dict[str, Method] = {
    method.name: method for method in (NoVerification(), SelfVerification(), Safe())
}
"""By name, in the order of tables: baselines first."""
