"""An environment for multi-turn reinforcement learning: the model submits one step at a time, the checker answers.

It has the form of TRL's ``environment_factory`` (`GRPOTrainer`): public methods are tools, ``reset`` gets the columns
of a row, and ``get_reward`` scores the finished rollout. The rows are those of `rewards`.
"""

from dataclasses import replace
from typing import Any

from safe_stepwise.checking.rewards import AFTER_THE_ANSWER, MALFORMED, Judge, judge_for_row, label_step, split_steps
from safe_stepwise.records import Step
from safe_stepwise.steps import StepError, format_step, read_step
from safe_stepwise.store.sizes import MAX_STEP_CHARS
from safe_stepwise.store.thoughts import split_thought
from safe_stepwise.taxonomy import CORRECT

_NOT_ROW = ("prompt", "completion", "environment")
"""Columns that TRL adds to a row."""
_REMARKS = {
    MALFORMED: "it is not of the form `Step N: text (Attribution, Logical or Final Answer)` with the next number",
    AFTER_THE_ANSWER: "no question is open: its answer was given already",
}


class StepEnvironment:
    """A question that is answered step by step: a step that is proved wrong is rejected and may be written again.

    A step that is proved neither right nor wrong is accepted, but pays nothing. Even a wrong final answer ends the
    question; otherwise answers could be tried until one is accepted. The reward is that of the accepted steps
    (`rewards.JudgedTrajectory`); rejected steps count as steps that pay nothing.

    >>> environment = StepEnvironment()
    >>> environment.reset(question="Where was Ors Velt born?", answer="Oru", passages=["Ors Velt was born in Oru."])
    >>> environment.submit_step("Step 1: Ors Velt was born in Marn. (Attribution)")
    'rejected: Contradictory'
    >>> environment.submit_step("Step 1: Ors Velt was born in Oru. (Attribution)")
    'accepted'
    >>> environment.submit_step("Step 2: ####ANSWER: Oru (Final Answer)")
    'accepted'
    >>> environment.turn_rewards, round(environment.get_reward(), 3)
    ([0.0, 1.0, 1.0], 0.833)
    """

    def __init__(self) -> None:
        self.turn_rewards: list[float] = []
        """A reward for each turn, in order: 1 for a proved step, else 0."""
        self._judge: Judge | None = None
        self._accepted: list[Step] = []
        self._is_open = False

    def reset(self, **columns: Any) -> None:
        """Begin with the question of a row; raises ``UserError`` with all columns that the row lacks."""
        self.turn_rewards, self._accepted, self._is_open = [], [], False
        self._judge = judge_for_row({name: value for name, value in columns.items() if name not in _NOT_ROW})
        self._is_open = True

    def submit_step(self, step: str) -> str:
        """Submit the next step of the reasoning, and learn whether it is accepted.

        Args:
            step: One step, as in `Step 1: According to Passage 2, Oru lies on the Vel. (Attribution)`. The last one
                is `Step N: ####ANSWER: the answer (Final Answer)`; no step may follow it.

        Returns:
            "accepted", or "rejected" with the kind of error; then submit the step again, corrected.
        """
        label = self._label(step)
        self.turn_rewards.append(float(label == CORRECT))
        if label not in (None, CORRECT):
            return f"rejected: {_REMARKS.get(label, label)}"
        return "accepted"

    def _label(self, text: Any) -> str | None:
        """Label a step, keep it if it is accepted, and end the question with a final answer."""
        if not self._is_open:
            return AFTER_THE_ANSWER
        text = split_thought(text).text.strip() if isinstance(text, str) else ""
        if len(split_steps(text)) != 1 or len(text) > MAX_STEP_CHARS:
            return MALFORMED
        label = label_step(self._judge.label_step, self._accepted, text) if self._judge else None
        if label in (MALFORMED, AFTER_THE_ANSWER):
            return label
        try:
            step = read_step(text)
        except StepError:  # without a plan, no labeller has read it
            return MALFORMED
        self._is_open = step.kind != "Final Answer"
        if label in (None, CORRECT):
            self._accepted.append(step)
        return label

    def get_reward(self) -> float | None:
        """Return the reward (0-1) of the submitted steps; None without a row or (if it is labelled) its plan."""
        if self._judge is None:
            return None
        judged = self._judge.judge_trajectory("\n".join(map(format_step, self._accepted)))
        return replace(judged, steps=max(judged.steps, len(self.turn_rewards))).reward
