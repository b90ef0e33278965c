"""The public address of the checkers, which need no model: one goes by a question's plan, one by passages alone."""

from safe_stepwise.checking.checker import Checker as Checker
from safe_stepwise.checking.passage_checker import NO_STEP as NO_STEP
from safe_stepwise.checking.passage_checker import SEARCH as SEARCH
from safe_stepwise.checking.passage_checker import SOUND as SOUND
from safe_stepwise.checking.passage_checker import UNDECIDED as UNDECIDED
from safe_stepwise.checking.passage_checker import PassageVerdict as PassageVerdict
from safe_stepwise.checking.passage_checker import judge_steps as judge_steps
from safe_stepwise.checking.passage_checker import read_written_step as read_written_step
from safe_stepwise.checking.passage_checker import text_of as text_of
from safe_stepwise.checking.support import Finding as Finding
