"""Reasoning before the answer (chain of thought; SG-FSM, appendix A.3), or a vote of several."""

from safe_stepwise.methods.one_shot import OneShot
from safe_stepwise.methods.prompting import Samples

COT = OneShot("cot", "CoT", ("cot/cot",), Samples)
