"""Placeholder of the house's rule, until branch i16b has it."""

from safe_stepwise.checking.faithfulness.chains import Chain, ChainVerdict, Grounds
from safe_stepwise.checking.faithfulness.names import is_alike


def judge(grounds: Grounds, chain: Chain) -> ChainVerdict:
    """Nothing is judged yet."""
    right = any(is_alike(chain.answer, answer) for answer in grounds.answers)
    return ChainVerdict("house", "unjudgeable", right, fault="unread")
