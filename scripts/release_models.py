"""What makes the parts of a release beside its datasets: Space, adapter, evaluation; no command."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from cards.adapter import adapter as card
from cards.base_model import license_of_base
from evaluators.run.options import Options
from releases.manifest import OWN_ADAPTER, AdapterEntry, EvaluationEntry, Manifest
from releases.parts import Made, Part
from releases.space import copy_space
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import (
    ADAPTER,
    DATASETS,
    README,
    REPORT,
    STEPS_RECORD,
    VERIFIER_STEPS,
)
from scripts import evaluate_verifier
from scripts.cli import warn
from trainers.base_model import find_base
from trainers.checkpoints import read_json
from trainers.config import Recipe, read_recipe
from trainers.machine import need_libraries
from trainers.run import train

CHECKOUT = Path(__file__).parents[1]


def model_parts(
    manifest: Manifest,
    output: Path,
    cache: Path | None,
    evaluate: Callable[[Options], str],
    timeout: float | None = None,
) -> list[Part]:
    """The parts that a manifest names beside the datasets; they go on from replies in ``cache``.

    ``evaluate`` carries an evaluation out, and returns what there is to say; ``timeout`` is how
    long, in seconds, a call to a server may take.
    """
    parts = [Part("space", partial(copy_space, CHECKOUT, output))]
    if (adapter := manifest.adapter) is not None:
        recipe = recipe_of(adapter, output)
        make = partial(_adapter, manifest, adapter, recipe, output, cache, timeout)
        parts.append(Part("adapter", make, partial(_check_training, recipe)))
    if (entry := manifest.evaluation) is not None:
        make = partial(_evaluation, entry, manifest.seed, output, cache, evaluate, timeout)
        parts.append(Part("evaluation", make))
    return parts


def recipe_of(entry: AdapterEntry, output: Path) -> Recipe:
    """The recipe of a release's adapter, on its own verifier set."""
    steps = output / DATASETS / VERIFIER_STEPS
    return read_recipe(entry.recipe, {"dataset": str(steps), "output": str(output / ADAPTER)})


def _check_training(recipe: Recipe) -> None:
    """Raise ``UserError`` if the libraries or the base model are missing, before hours of work."""
    need_libraries(recipe)
    find_base(recipe.base_model)


def _adapter(
    manifest: Manifest,
    entry: AdapterEntry,
    recipe: Recipe,
    output: Path,
    cache: Path | None,
    timeout: float | None,
) -> Made:
    """Train the adapter or go on training it, measure it if that is asked for, write its card."""
    record, folder = train(recipe, resume=True, warn=warn), output / ADAPTER
    quality = None
    if entry.verifier is not None:
        spec, place = entry.verifier.replace(OWN_ADAPTER, str(folder)), output / REPORT / "verifier"
        options = evaluate_verifier.Options(
            str(output / DATASETS),
            spec,
            place,
            cache=cache,
            timeout=timeout,
            incomplete_evidence=recipe.incomplete_evidence,
        )
        print(evaluate_verifier.evaluated(options))
        quality = read_json(place / "verifier_quality.json")
    text = card(
        record,
        quality,
        config=read_json(folder / "adapter_config.json"),
        version=manifest.version,
        license=license_of_base(recipe.base_model),
        steps=read_json(output / DATASETS / VERIFIER_STEPS / STEPS_RECORD),
    )
    write_atomically(folder / README, text.encode())
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{folder}: {steps:,} steps, loss {loss:.4f}")


def _evaluation(
    entry: EvaluationEntry,
    seed: int,
    output: Path,
    cache: Path | None,
    evaluate: Callable[[Options], str],
    timeout: float | None,
) -> Made:
    """The loop over the evaluation samples."""
    adapter = str(output / ADAPTER)

    def played(spec: str) -> str:
        return spec.replace(OWN_ADAPTER, adapter)

    options = Options(
        questions=str(output / DATASETS),
        output=output / REPORT,
        method=entry.methods,
        generator=(played(entry.generator),),
        verifier=(played(entry.verifier),),
        judge=None if entry.judge is None else played(entry.judge),
        limit=entry.limit,
        seed=seed,
        cache=cache,
        timeout=timeout,
    )
    return Made(evaluate(options))
