"""Steps that the generator judges itself (SAFE v1, section 4.1)."""

from safe_stepwise.methods.loop import Stepwise

SELF_VERIFICATION = Stepwise("self_verification", "Self-verification")
