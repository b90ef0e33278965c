"""A task for each verified question: the model answers in steps, and the checker rewards what it can prove.

The rows are those of `safe-verified-multihop`, config ``B_labeled``, that are verified and whose answer the checker
can derive. The task's data has all that the checker reads (answer, reasoning path, graph); the prompt has the passages
and the question alone.
"""

from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf

from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.rewards import COLUMNS, checker_of, judge_trajectory
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.records import NOISE_TYPES
from safe_stepwise.scoring import exact_match
from safe_stepwise.steps import StepError, final_answer, format_step, read_step

SOUND = NOISE_TYPES.index("none")


class SafeMultihopData(vf.TaskData):
    """A question's row, with the annotations that the checker reads."""

    benchmark: str
    row: dict[str, Any]


class SafeMultihopTask(vf.Task[SafeMultihopData]):
    """A question to answer, with the checker's reward and its metrics."""

    @vf.reward(weight=1.0)
    async def trajectory(self, trace: vf.Trace) -> float:
        return judge_trajectory(self._checker, trace.last_reply).reward

    @vf.metric
    async def abstained(self, trace: vf.Trace) -> float:
        labels = judge_trajectory(self._checker, trace.last_reply).labels
        return labels.count(None) / len(labels) if labels else 0.0

    @vf.metric
    async def exact_match(self, trace: vf.Trace) -> float:
        answers = [self.data.row["answer"], *self.data.row["aliases"]]
        last = trace.last_reply.strip().rpartition("\n")[2]
        try:
            answer = final_answer(read_step(last))
        except StepError:
            answer = ""
        return float(exact_match(answer, answers, self.data.benchmark))

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Return whether the ideal trajectory of the question gets the reward 1."""
        ideal = "\n".join(map(format_step, write_trajectory(self._checker, 0)))
        return judge_trajectory(self._checker, ideal).reward == 1

    @property
    def _checker(self) -> Checker:
        checker = checker_of(self.data.row)
        assert checker is not None  # `load` leaves out rows without one
        return checker


class SafeMultihopConfig(vf.TasksetConfig):
    """The questions to load."""

    source: str = "NAMESPACE/safe-verified-multihop"
    """A folder of `build_verified`, or a dataset on the Hub."""
    revision: str | None = None
    """The dataset's tag or commit on the Hub."""
    benchmark: str = "musique"
    split: str = "train"
    """``train`` or ``validation``."""


class SafeMultihopTaskset(vf.Taskset[SafeMultihopTask, SafeMultihopConfig]):
    """The verified questions of a benchmark's split, in their order."""

    def load(self) -> Iterator[SafeMultihopTask]:
        from datasets import load_dataset

        config, prompt = self.config, prompts.load("rewards/trajectory")
        rows = load_dataset(config.source, f"{config.benchmark}_labeled", split=config.split, revision=config.revision)
        for row in rows:
            columns = {name: row[name] for name in COLUMNS}
            checker = checker_of(columns) if row["noise_type"] == SOUND else None
            if checker is not None:
                question = checker.question
                data = SafeMultihopData(
                    id=question.id,
                    system_prompt=prompt.system,
                    prompt=prompt.render_user(question=question.question, passages=question.passages),
                    benchmark=config.benchmark,
                    row=columns,
                )
                yield SafeMultihopTask(data, config.task)
