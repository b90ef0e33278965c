"""The answer at once, from all passages (SG-FSM, appendix A.3)."""

from safe_stepwise.methods.one_shot import OneShot

DIRECT = OneShot("direct", "Direct", ("direct/direct",))
