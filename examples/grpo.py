"""GRPO with the checker as its reward (`safe_stepwise.rewards`), on verified rows with labels.

    python -m examples.grpo --verified build/demo/datasets --model MODEL --output runs/grpo

It first prints the mean reward of ideal trajectories of those rows and of trajectories with one
error: a reward that can't tell these apart teaches nothing. Then it trains. The model writes whole
trajectories (or, with --reward step, the step after some ideal steps), and the checker rewards what
it can prove. Twenty steps of a tiny model take a minute on a CPU; at best it learns the format. For
a real run use a GPU, an instruction-tuned model and --steps 1000.

You can also train on published rows: load_dataset("NAMESPACE/safe-verified-multihop", "musique_labeled").
Needs `pip install 'safe-stepwise[train]'`, except for --steps 0.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from builders.steps.contexts import StepSource
from builders.steps.making import check_trajectory, inject
from builders.steps.proposals import Injector
from builders.steps.rows import TrajectoryError
from builders.verified.lookup import labelled
from safe_stepwise import prompts
from safe_stepwise.checking.checker import Checker
from safe_stepwise.checking.plans import PlanError
from safe_stepwise.checking.rewards import checker_of
from safe_stepwise.checking.writing import write_trajectory
from safe_stepwise.errors import UserError
from safe_stepwise.methods.generator import generator_request
from safe_stepwise.records import Label, Question, Step
from safe_stepwise.rewards import step_reward, trajectory_reward
from safe_stepwise.steps import format_step
from safe_stepwise.store.codec import label_row, question_row
from scripts.cli import run

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The trajectories of one question, as texts."""

    row: Mapping[str, Any]
    """The published row with its label, which the reward reads."""
    ideal: tuple[str, ...]
    injected: tuple[str, ...]
    """Those with one error that the checker confirms."""

    def rewards(self, texts: Sequence[str]) -> list[float]:
        """Return the rewards of texts, without those that the reward abstains from."""
        columns = {name: [value] * len(texts) for name, value in self.row.items()}
        return [reward for reward in trajectory_reward([""] * len(texts), texts, **columns) if reward is not None]


def trajectories(rows: Iterable[tuple[Question, Label]]) -> Iterator[Trajectories]:
    """Yield the trajectories of each question whose ideal trajectory passes the checker."""
    for question, label in rows:
        try:
            source = StepSource.build(question, label)
            ideal = write_trajectory(source.checker, 0)
            check_trajectory(source.checker, ideal)
        except (PlanError, TrajectoryError):
            continue
        injected, _ = inject(Injector(source, 0), ideal, "")
        steps = (row.step for row in injected if row.question == question)
        wrong = tuple(_text((*ideal[: step.number - 1], step, *ideal[step.number :])) for step in steps)
        yield Trajectories({**question_row(question), **label_row(label)}, (_text(ideal),), wrong)


def _text(steps: Iterable[Step]) -> str:
    return "\n".join(map(format_step, steps))


def main(arguments: Sequence[str]) -> None:
    options = _options(arguments)
    groups = [*trajectories(_pairs(options.verified, options.rows))]
    if not groups:
        raise UserError(f"{options.verified}: no verified row of it has a trajectory; build others")
    for name in ("ideal", "injected"):
        rewards = [reward for group in groups for reward in group.rewards(getattr(group, name))]
        print(f"mean reward of {len(rewards):,} {name} trajectories: {fmean(rewards):.3f}")
    if options.steps:
        make_rows = {"trajectory": _trajectory_rows, "step": _step_rows}[options.reward]
        train([row for group in groups for row in make_rows(group.row)], options)


def train(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Train by GRPO, save the model, and print the first and last rewards."""
    import torch
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    on_cpu = not torch.cuda.is_available()
    config = GRPOConfig(
        output_dir=str(options.output),
        max_steps=options.steps,
        per_device_train_batch_size=options.generations,
        num_generations=options.generations,
        max_completion_length=options.max_tokens,
        learning_rate=options.learning_rate,
        seed=options.seed,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=on_cpu,
        bf16=not on_cpu,
    )
    reward = {"trajectory": trajectory_reward, "step": step_reward}[options.reward]
    trainer = GRPOTrainer(options.model, reward, args=config, train_dataset=Dataset.from_list(rows))
    trainer.train()
    rewards = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    trainer.save_model()
    print(f"{len(rewards)} steps, reward {rewards[0]:.3f} at the first, {rewards[-1]:.3f} at the last")
    print(f"{options.output}: the model")


def _pairs(folder: Path, number: int) -> Iterator[Any]:
    for _, pairs in labelled(folder):
        yield from islice((pair for pair in pairs if pair[1].noise_type == "none"), number)


def _trajectory_rows(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield one row, whose prompt asks for a whole trajectory in one reply."""
    question = _checker(row).question
    turns = prompts.load("rewards/trajectory").messages(question=question.question, passages=question.passages)
    yield {"prompt": [asdict(turn) for turn in turns], **row}


def _step_rows(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a row for each step of the ideal trajectory, with the loop's prompt for that step."""
    checker = _checker(row)
    ideal = write_trajectory(checker, 0)
    for number in range(len(ideal)):
        request = generator_request(checker.question.question, checker.question.passages, ideal[:number])
        turns, previous = map(asdict, request.messages), map(format_step, ideal[:number])
        yield {"prompt": [*turns], "previous_steps": [*previous], **row}


def _checker(row: Mapping[str, Any]) -> Checker:
    checker = checker_of(row)
    assert checker is not None  # the row has an ideal trajectory
    return checker


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m examples.grpo", description=__doc__, formatter_class=form)
    parser.add_argument("--verified", type=Path, required=True, help="of build_verified, or a demo")
    parser.add_argument("--rows", type=int, default=50, help="questions of each benchmark (50)")
    parser.add_argument("--model", help="folder or Hub id of a model with a chat template")
    parser.add_argument("--output", type=Path, default=Path("runs/grpo"), help="(runs/grpo)")
    parser.add_argument("--reward", choices=("trajectory", "step"), default="trajectory")
    parser.add_argument("--steps", type=int, default=20, help="of training; 0: none (20)")
    parser.add_argument("--generations", type=int, default=4, help="completions a prompt (4)")
    parser.add_argument("--max-tokens", type=int, default=256, help="of a completion (256)")
    parser.add_argument("--learning-rate", type=float, default=1e-5, help="(1e-5)")
    parser.add_argument("--seed", type=int, default=0, help="(0)")
    options: argparse.Namespace = parser.parse_args(arguments)
    if options.steps and not options.model:
        raise UserError("--model: name one to train, or --steps 0 to see what the reward gives")
    return options


if __name__ == "__main__":
    run(main)
