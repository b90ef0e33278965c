"""What trains and measures an adapter of a release, and writes its card; no command itself."""

from pathlib import Path
from typing import Any

from builders.steps.first import find_steps
from builders.verified.lookup import annotated
from cards.models import license_of_base, model_card
from evaluators.verifier.command import Rooms, run_verifiers
from evaluators.verifier.options import Options
from releases import report
from releases.evaluations import OWN_ADAPTER
from releases.parts import Made
from safe_stepwise.engines.weights import Model, find_adapter, find_model
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import DATASETS, README, REPORT, RESULTS, STEPS_RECORD
from scripts.cli import warn
from scripts.release_adapters import Training
from trainers.checkpoints import read_json
from trainers.record import RECORD
from trainers.run import train

QUALITY = Path(REPORT) / "verifier"


def trained(training: Training, cache: Path | None, timeout: float | None) -> Made:
    """Train or go on training, measure if that is asked for, write the card."""
    record, spec = train(training.recipe, resume=True, warn=warn), training.entry.verifier
    if spec is not None:
        options = Options(
            str(training.output / DATASETS),
            spec.replace(OWN_ADAPTER, str(training.model)),
            training.home / QUALITY,
            cache=cache,
            timeout=timeout,
            allowance=training.allowance,
            incomplete_evidence=training.recipe.incomplete_evidence,
            drop_category=training.recipe.filters.unasked,
        )
        print(run_verifiers(options, Rooms(find_steps, annotated)))
    write_card(training)
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{training.folder}: {steps:,} steps, loss {loss:.4f}")


def write_card(training: Training) -> None:
    """The card of an adapter that is there, with all that has been measured of it so far."""
    folder, measured = training.folder, training.home / QUALITY / "verifier_quality.json"
    if not (folder / RECORD).is_file():
        return
    told: dict[str, Any] = {
        "version": training.version,
        "license": license_of_base(training.recipe.base_model),
        "steps": read_json(training.steps / STEPS_RECORD),
        "loops": _results(training),
        "first": (training.home / REPORT).relative_to(training.output).as_posix(),
    }
    record = read_json(folder / RECORD)
    quality = read_json(measured) if training.entry.verifier is not None else None
    if training.model != folder:
        weights = find_model(Model(str(training.model)))
    else:
        told["config"] = read_json(folder / "adapter_config.json")
        weights = find_adapter(Model(str(folder)))
    text = model_card(record, quality, weights=str(weights), **told)
    write_atomically(folder / README, text.encode())


def _results(training: Training) -> dict[str, Any]:
    """What the evaluations of the release, or of a block with this adapter, came to, by place."""
    places = [training.home / REPORT]
    if training.home == training.output:
        places = report.folders(training.output)
    found = {place: place / RESULTS for place in places if (place / RESULTS).is_file()}
    return {place.relative_to(training.output).as_posix(): read_json(file) for place, file in found.items()}
