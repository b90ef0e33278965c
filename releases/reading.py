"""Read manifests strictly: a wrong, unknown or missing key is an error that names it (`store.boundary`).

Both kinds of manifests have `RecipeEntry`, the training of a model by a recipe.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from safe_stepwise.errors import UserError, at_place
from safe_stepwise.store import boundary
from trainers.config import Recipe, read_recipe

T = TypeVar("T")
R = TypeVar("R", bound=Recipe)
RECIPES = Path(__file__).parents[1] / "trainers" / "recipes"


def read_strictly(kind: type[T], values: Any, folder: Path) -> T:
    """Read a manifest with paths relative to ``folder``; raise ``UserError`` with each bad, unknown or missing key."""
    try:
        manifest: T = resolve_paths(boundary.read(kind, values, "", exact=True), folder)
    except ValueError as error:
        raise UserError(str(error)) from None
    return manifest


def resolve_paths(entry: Any, folder: Path) -> Any:
    """Return an entry of a manifest with its files' paths resolved against ``folder``."""
    if hasattr(entry, "resolve_input"):
        return entry.resolve_input(folder)
    if isinstance(entry, Path):
        return folder / entry
    if is_dataclass(entry) and not isinstance(entry, type):
        return replace(entry, **{f.name: resolve_paths(getattr(entry, f.name), folder) for f in fields(entry)})
    if isinstance(entry, Mapping):
        return {key: resolve_paths(value, folder) for key, value in entry.items()}
    return tuple(resolve_paths(value, folder) for value in entry) if isinstance(entry, tuple) else entry


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """A training; ``recipe`` is the name of a recipe in `RECIPES`, or a YAML file beside the manifest."""

    recipe: Path
    change: Mapping[str, Any] = field(default_factory=dict)
    """New values of the recipe's keys, such as ``filters.drop_category``."""

    def read(self, kind: type[R], **folders: str | list[str]) -> R:
        """Read the recipe, with the release's ``folders`` as values of its keys; raise ``UserError`` if it is bad."""
        options: dict[str, Any] = {**self.change, **folders}
        return read_recipe(self.file, options, kind)

    @property
    def file(self) -> Path:
        is_file = self.recipe.suffix in (".yaml", ".yml")
        return self.recipe if is_file else RECIPES / f"{self.recipe.name}.yaml"

    def check(self, place: str, kind: type[Recipe], *filled_keys: str, key: str = ".change") -> None:
        """Raise ``UserError`` with the manifest's key at fault: ``place``, or ``place + key`` for a bad recipe.

        The release fills the recipe's ``dataset``, ``output`` and ``filled_keys`` later.
        """
        if not self.file.is_file():
            recipes = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
            raise UserError(f"{place}.recipe: there is no {self.file}; name one of {recipes}, or a YAML file")
        with at_place(f"{place}{key}"):
            self.read(kind, **dict.fromkeys(("dataset", "output", *filled_keys), "of the release"))
