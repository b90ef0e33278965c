"""What the commands that train share: how they run, and what is said at the end."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import Model, find_adapter
from safe_stepwise.errors import UserError
from scripts.cli import warn
from scripts.recipe_options import read_options
from trainers.checkpoints import read_json
from trainers.config import Recipe, read_recipe
from trainers.data import kind_of
from trainers.lora import MODEL
from trainers.record import RECORD
from trainers.rows.base import fingerprint
from trainers.run import train


def trained(name: str, description: str, of: type[Recipe], arguments: Sequence[str]) -> None:
    """Train by a recipe that is one ``of`` these and print a summary.

    Raises ``UserError`` for what the user can mend.
    """
    config, options, resume = read_options(name, description, of, arguments)
    first = int(os.environ.get("RANK", 0)) == 0
    try:
        recipe = read_recipe(config, options, of)
        record = train(recipe, resume, warn)
    except UserError:
        if first:
            raise
        raise SystemExit(2) from None  # the first process says it for all
    except KeyboardInterrupt:
        if first:
            goes_on = "the same command" if resume else "--resume"
            print(f"interrupted; {goes_on} goes on", file=sys.stderr)
        raise SystemExit(130) from None
    if first:
        print(summary(record, recipe.output))


def summary(record: Mapping[str, Any], output: Path) -> str:
    """What was trained, how long it took, where it is, how to open it."""
    run_, curve, held = record["run"], record["curve"], record["held_out"]
    memory = run_["peak_memory_bytes"] / 2**30
    lines = [
        f"{record['dataset']['rows']:,} rows, {run_['steps']:,} steps of "
        f"{record['recipe']['effective_batch']} in {run_['seconds']:,.0f} s "
        f"({run_['seconds_per_step']:.1f} s a step, {memory:.1f} GiB at most, {run_['device']})",
        f"loss {curve[0]['loss']:.4f} at the first step, {curve[-1]['loss']:.4f} at the last",
    ]
    measured = [name.removesuffix("_before") for name in held if name.endswith("_before")]
    if held["rows"]:
        told = (f"{n} {held[f'{n}_before']:.4f} before, {held[f'{n}_after']:.4f} after" for n in measured)
        lines.append(f"{held['rows']} held-out rows: {'; '.join(told)}")
    if long := len(record["dataset"]["dropped_as_long"]):
        lines.append(f"left out as too long: {long:,} rows (ids in training.json)")
    base = record["base_model"]["name"]
    if "model" in record:
        return "\n".join([*lines, f"\n{output / MODEL}", f"\ntransformers:{output / MODEL}"])
    return "\n".join([*lines, f"\n{output}", f'\nPeftModel.from_pretrained(<{base}>, "{output}")'])


def forget_stale(recipe: Recipe) -> None:
    """Remove an adapter of other rows, another start or recipe, which `--resume` takes for done."""
    file = recipe.output / RECORD
    if not file.is_file():
        return
    made = read_json(file)
    rows = kind_of(recipe).open(recipe.dataset, "train", recipe.filters)[1]
    places = ("base_model", "dataset", "output", "start")
    same = all(made["recipe"].get(k) == v for k, v in recipe.plain().items() if k not in places)
    if recipe.start is not None:
        same &= made["start"]["revision"] == find_adapter(Model.read(recipe.start)).revision
    if not same or made["dataset"]["sha256"] != fingerprint(rows):
        shutil.rmtree(recipe.output)
