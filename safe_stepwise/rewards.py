"""The public address of the checker as a reward: TRL's ``reward_funcs`` and environment, verl's ``compute_score``."""

from safe_stepwise.checking.environment import StepEnvironment as StepEnvironment
from safe_stepwise.checking.rewards import compute_score as compute_score
from safe_stepwise.checking.rewards import step_reward as step_reward
from safe_stepwise.checking.rewards import trajectory_reward as trajectory_reward
