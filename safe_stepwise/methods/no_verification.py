"""Steps that nobody judges, every one in the right form being accepted (SAFE v1, section 4.1)."""

from safe_stepwise.methods.loop import GENERATE, Stepwise

NO_VERIFICATION = Stepwise("no_verification", "No verification", prompts=GENERATE, judged_by=None)
