"""SAFE: a trained verifier judges every step (SAFE v1, section 3.4)."""

from safe_stepwise.methods.loop import GENERATOR, VERIFIER, Stepwise

SAFE = Stepwise("safe", "SAFE", (GENERATOR, VERIFIER), judged_by=VERIFIER)
