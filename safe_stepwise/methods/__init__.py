"""How a question is answered: one file a method, and their registry."""

from safe_stepwise.methods.base import Method
from safe_stepwise.methods.cot import COT
from safe_stepwise.methods.direct import DIRECT
from safe_stepwise.methods.no_verification import NO_VERIFICATION
from safe_stepwise.methods.react import REACT
from safe_stepwise.methods.safe import SAFE
from safe_stepwise.methods.self_verification import SELF_VERIFICATION
from safe_stepwise.methods.sg_fsm import SG_FSM1, SG_FSM2
from safe_stepwise.methods.sg_fsm_safe import SG_FSM_SAFE
from safe_stepwise.methods.sp_cot import SP_COT

METHODS: dict[str, Method] = {
    method.name: method
    for method in (DIRECT, COT, SP_COT, REACT, SG_FSM1, SG_FSM2, NO_VERIFICATION, SELF_VERIFICATION, SG_FSM_SAFE, SAFE)
}
"""By name, in the order of tables: baselines first."""
