"""The public address of the checker as a reward: ``reward_funcs`` for GRPO, and verl's ``compute_score``."""

from safe_stepwise.checking.rewards import async_step_reward as async_step_reward
from safe_stepwise.checking.rewards import async_trajectory_reward as async_trajectory_reward
from safe_stepwise.checking.rewards import compute_score as compute_score
from safe_stepwise.checking.rewards import step_reward as step_reward
from safe_stepwise.checking.rewards import trajectory_reward as trajectory_reward
