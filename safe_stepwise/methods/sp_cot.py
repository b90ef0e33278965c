"""Reasoning by a named shape of decomposition (SP-CoT as SG-FSM's appendix A.3 has it)."""

from safe_stepwise.methods.one_shot import OneShot

SP_COT = OneShot("sp_cot", "SP-CoT", ("sp_cot/sp_cot",))
