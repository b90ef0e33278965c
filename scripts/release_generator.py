"""What trains the generator of a release, and writes its card; no command itself."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cards.models import license_of_base, model_card
from releases.manifest import Manifest
from releases.parts import Made, Part
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import DATASETS, GENERATOR, README, STEPS_RECORD, VERIFIER_STEPS
from scripts.cli import warn
from scripts.release_adapters import model_of
from trainers.base_model import find_base
from trainers.checkpoints import read_json
from trainers.config import GeneratorRecipe, read_recipe
from trainers.machine import need_libraries
from trainers.run import train


def generator_parts(manifest: Manifest, output: Path) -> Iterator[Part]:
    """The part that trains it, which goes on where it was stopped; none without a generator."""
    if manifest.generator is not None:
        make, check = partial(_trained, manifest, output), partial(_check, manifest, output)
        yield Part(GENERATOR, make, check)


def generator_of(manifest: Manifest, output: Path) -> Path:
    """What an engine loads of it; raises as `_recipe`."""
    return model_of(output / GENERATOR, _recipe(manifest, output))


def _recipe(manifest: Manifest, output: Path) -> GeneratorRecipe:
    """The recipe on the release's rows; raises ``UserError`` for one that is none."""
    entry, steps = manifest.generator, output / DATASETS / VERIFIER_STEPS
    assert entry is not None
    where = {"dataset": str(steps), "output": str(output / GENERATOR)}
    return read_recipe(entry.recipe, {**entry.change, **where}, GeneratorRecipe)


def _check(manifest: Manifest, output: Path) -> None:
    recipe = _recipe(manifest, output)
    if recipe.tuning != "full":
        raise UserError(f"{manifest.path}: generator: is kept as a model; set tuning: full")
    need_libraries(recipe)
    find_base(recipe.base_model)


def _trained(manifest: Manifest, output: Path) -> Made:
    recipe, folder = _recipe(manifest, output), output / GENERATOR
    record = train(recipe, resume=True, warn=warn)
    text = model_card(
        record,
        version=manifest.version,
        license=license_of_base(recipe.base_model),
        steps=read_json(output / DATASETS / VERIFIER_STEPS / STEPS_RECORD),
    )
    write_atomically(folder / README, text.encode())
    steps, loss = record["run"]["steps"], record["curve"][-1]["loss"]
    return Made(f"{folder}: {steps:,} steps, loss {loss:.4f}")
