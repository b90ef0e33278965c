"""Methods that answer questions: one file for each (or a line in a file of similar ones), and their registry."""

from safe_stepwise.methods.base import Method
from safe_stepwise.methods.ircot import IRCOT
from safe_stepwise.methods.loop import NO_VERIFICATION, SAFE, SELF_VERIFICATION
from safe_stepwise.methods.numbered_steps import COT_PLAN, FEW_SHOT_COT
from safe_stepwise.methods.one_shot import COT, DIRECT, SP_COT
from safe_stepwise.methods.react import REACT
from safe_stepwise.methods.sg_fsm import SG_FSM1, SG_FSM2
from safe_stepwise.methods.sg_fsm_safe import SG_FSM_SAFE
from safe_stepwise.methods.trace import TRACE

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *(DIRECT, COT, FEW_SHOT_COT, COT_PLAN, SP_COT, REACT, IRCOT, TRACE),
        *(SG_FSM1, SG_FSM2, NO_VERIFICATION, SELF_VERIFICATION, SG_FSM_SAFE, SAFE),
    )
}
"""All methods by name, in the order of tables: baselines first."""
