"""Train by a recipe with TRL's trainers, in a locked output folder, resumable and with a record.

Rows with a label are learnt by KTO, others by SFT; an encoder learns to choose a class (`trainers.objectives`).

The published files are in ``OUTPUT``: ``adapter_model.safetensors``, ``adapter_config.json`` (or a folder ``model``,
if all weights were tuned), ``training.json`` (written last: an output that has it is complete) and ``log.jsonl``. The
adapter uses the base model's tokenizer, as vocabulary and template do not change. Checkpoints are in
``OUTPUT/.work/training``; they may be deleted once training is over.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store import files, names
from trainers import checkpoints, models, record
from trainers.config import Recipe
from trainers.data import read_data
from trainers.interruption import Interruption
from trainers.models import find_base
from trainers.objectives import CLASSIFICATION, KTO, SFT, Objective, trainer_arguments
from trainers.record import RECORD, TrainingRun
from trainers.rows.base import kind_of

LOG = "log.jsonl"
RUN = "run.json"
OUTPUTS = (names.WORK, models.MODEL, models.WEIGHTS, models.CONFIG, LOG, RECORD)
"""Names of everything that a run writes into its output folder."""


def train(recipe: Recipe, resume: bool = False, warn: Callable[[str], object] = print) -> Mapping[str, Any]:
    """Train by a recipe and write the adapter; return the content of ``training.json``.

    ``resume`` continues from the last complete checkpoint, or begins; for a complete output it returns its record.
    Under ``accelerate launch`` only the first process writes. ``warn`` gets messages that stop nothing. A first Ctrl-C
    or SIGTERM ends it as in `trainers.interruption`. Raises ``UserError`` for a missing library, model or data set,
    for rows that can't be trained on, and for an output that holds another run.
    """
    accumulation_steps = recipe.accumulation_steps(int(os.environ.get("WORLD_SIZE", 1)))
    models.need_libraries(recipe)
    models.quiet_libraries()
    is_first = int(os.environ.get("RANK", 0)) == 0
    complete_record = _read_complete_record(recipe, resume) if is_first else None
    weights, origin = find_base(recipe.base_model)
    start = models.find_start(recipe, weights)
    kind = kind_of(recipe)
    training = TrainingRun(recipe, weights, origin, start, read_data(recipe, weights, kind), kind)
    if complete_record is not None:
        training.require_same_training(complete_record)
        return complete_record
    sources = (training.data.source, *(extra.source for extra in training.data.extra_sets))
    digest = kind.set_digest()
    if is_first and {source.about.get(kind.rendered_by, digest) for source in sources} != {digest}:
        warn("the dataset was rendered with other prompts than this version's loop sends")
    with files.lock_folder(recipe.output, "run", OUTPUTS) if is_first else nullcontext():
        work = recipe.output / names.WORK / "training"
        if is_first:
            _begin_run(recipe, work, training.identity)
        try:
            return _train(training, accumulation_steps, work)
        finally:
            models.free_gpu()


def _train(training: TrainingRun, accumulation_steps: int, work: Path) -> Mapping[str, Any]:
    """Train and save the adapter; return the run's record, which is empty on all processes but the first."""
    import torch
    from accelerate import PartialState
    from transformers import set_seed

    recipe, weights, start, data = training.recipe, training.weights, training.start, training.data
    header = training.header
    objective = CLASSIFICATION if training.kind.classes else KTO if training.kind.labelled else SFT
    gpu = torch.cuda.is_available()
    dtype = models.compute_dtype(recipe.dtype, gpu)
    arguments = trainer_arguments(recipe, work, accumulation_steps, gpu, dtype)
    processes = PartialState()
    processes.wait_for_everyone()  # until the first process has removed stale checkpoints
    last = checkpoints.last_complete(work)
    # Read the mark now: newer checkpoints will replace this one.
    mark = {} if last is None else checkpoints.read_record(last / checkpoints.COMPLETION_MARK)
    set_seed(recipe.seed)
    model = objective.load(weights, recipe, dtype, processes.local_process_index if gpu else None)
    model.config.use_cache = False
    if start is not None:
        model = models.load_adapter(model, start)
    trainer = objective.trainer(recipe, model, weights, data, arguments)
    if start is not None:
        models.restore_adapter(trainer.model, start)
    progress = _add_progress(trainer, recipe, work, float(mark.get("seconds", 0)))
    held_out = objective.rows(recipe, data.held_out) if data.held_out else None
    before = _measure_before(trainer, held_out, objective, work, last)
    set_seed(recipe.seed)  # the evaluation used random numbers
    _run_to_end(trainer, None if last is None else str(last), processes.is_main_process)
    seconds = progress.seconds
    after = _measure(trainer, held_out, objective)
    measured: dict[str, float | None] = {"rows": len(data.held_out)}
    for name in objective.measures:
        measured |= {f"{name}_before": before.get(name), f"{name}_after": after.get(name)}
    training_record: Mapping[str, Any] = {}
    if processes.is_main_process:
        save = models.save_model if recipe.tuning == "full" else models.save_adapter
        save(trainer.model, recipe, weights, work)
        run = record.describe_run(trainer, processes.num_processes, dtype, mark.get("step"), seconds)
        result = record.describe_result(trainer, recipe.output)
        training_record = {**header, **result, "run": run, "held_out": measured, "libraries": models.versions()}
        checkpoints.write_record(recipe.output / RECORD, training_record)
    processes.wait_for_everyone()
    return training_record


def _add_progress(trainer: Any, recipe: Recipe, work: Path, before: float) -> Any:
    """Replace the library's progress bar with our bar, log and checkpoint marks; return that callback."""
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    from trainers.progress import Progress

    progress = Progress(recipe.output / LOG, work, before)
    for callback in (ProgressCallback, PrinterCallback):
        trainer.remove_callback(callback)
    trainer.add_callback(progress)
    return progress


def _run_to_end(trainer: Any, checkpoint: str | None, is_first: bool) -> None:
    """Train until all steps are done; after a signal, stop at the end of a step and raise ``KeyboardInterrupt``."""
    from trainers.progress import StopOnRequest

    with Interruption(is_first) as interruption:
        trainer.add_callback(StopOnRequest(interruption))
        trainer.train(resume_from_checkpoint=checkpoint)
    if interruption.stop_requested:
        raise KeyboardInterrupt


def _measure(trainer: Any, held_out: Any, objective: Objective) -> dict[str, float]:
    """Return the objective's measures of the held-out rows by name; {} without such rows."""
    if held_out is None:
        return {}
    figures = trainer.evaluate(held_out)
    return {name: measure(figures) for name, measure in objective.measures.items()}


def _measure_before(
    trainer: Any, held_out: Any, objective: Objective, work: Path, last: Path | None
) -> dict[str, float]:
    """Return the measures before training; a resumed run reads those that the first run wrote."""
    if held_out is None:
        return {}
    file = work / "held_out.json"
    if last is not None:
        return checkpoints.read_record(file)
    measures = _measure(trainer, held_out, objective)
    if trainer.is_world_process_zero():
        checkpoints.write_record(file, measures)
    return measures


def _read_complete_record(recipe: Recipe, resume: bool) -> Mapping[str, Any] | None:
    """Return a complete output's record, or None; without ``resume`` raise ``UserError`` if it is not empty."""
    if resume:
        file = recipe.output / RECORD
        return checkpoints.read_record(file) if file.is_file() else None
    try:
        is_empty = not recipe.output.exists() or not any(recipe.output.iterdir())
    except NotADirectoryError:
        raise UserError(f"{recipe.output}: is a file; choose another --output") from None
    if not is_empty:
        raise UserError(
            f"{recipe.output}: is not empty; add --resume to go on with what was begun there, or "
            "choose another --output"
        )
    return None


def _begin_run(recipe: Recipe, work: Path, identity: Mapping[str, Any]) -> None:
    """Write the run's identity and remove incomplete checkpoints; raise ``UserError`` if another run began there."""
    work.mkdir(parents=True, exist_ok=True)
    file = work / RUN
    if file.is_file():
        before = checkpoints.read_record(file)
        for key in sorted({*before, *identity}):
            if before.get(key) != identity.get(key):
                raise UserError(
                    f"{recipe.output}: was begun with another {key} ({before.get(key)}, now "
                    f"{identity.get(key)}); use that one, or choose another --output"
                )
    checkpoints.remove_stale(work, checkpoints.last_complete(work))
    checkpoints.write_record(file, identity)
