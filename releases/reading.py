"""Read manifests strictly: `boundary` finds wrong keys and values, and errors are in the words of YAML's types."""

import re
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
_TYPES = {
    "a text": "str",
    "a path": "str",
    "a whole number": "int",
    "a number": "float",
    "true or false": "bool",
    "a list": "list",
}
_WRONG_TYPE = re.compile(rf"(\S+?)(?:\[\d+\])? is not ({'|'.join(_TYPES)})")


def read_strictly(kind: type[T], values: Any, beside: Path) -> T:
    """Read a manifest, files ``beside`` it; raise ``UserError`` with every key that is missing, wrong or unknown."""
    try:
        manifest: T = locate(boundary.read(kind, values, "", exact=True), beside)
        return manifest
    except ValueError as error:
        faults = str(error)
    faults = re.sub(r"(\S+) is not there", r"\1: is missing", faults)
    faults = re.sub(r"(\S+: no such key;)", r"key \1", faults).replace("; keys: ", "; choose from ")
    faults = re.sub(r"^ is not an object", "the whole: has to be a mapping of keys", faults)
    faults = re.sub(r"(\S+\]) is not an object", r"\1: has to be a mapping of keys", faults)
    faults = re.sub(r"(\S+) is not an object", r"\1: has to be of type dict", faults)
    raise UserError(_WRONG_TYPE.sub(lambda fault: f"{fault[1]}: has to be of type {_TYPES[fault[2]]}", faults))


def locate(entry: Any, folder: Path) -> Any:
    """Return a part of a manifest with its files' paths resolved against ``folder``."""
    if hasattr(entry, "located"):
        return entry.located(folder)
    if isinstance(entry, Path):
        return folder / entry
    if is_dataclass(entry) and not isinstance(entry, type):
        return replace(entry, **{f.name: locate(getattr(entry, f.name), folder) for f in fields(entry)})
    if isinstance(entry, Mapping):
        return {key: locate(value, folder) for key, value in entry.items()}
    return tuple(locate(value, folder) for value in entry) if isinstance(entry, tuple) else entry


def need_positive(entry: object, prefix: str, *keys: str) -> None:
    """Raise ``UserError`` for a number of an entry that is below 1."""
    for key in keys:
        if (number := getattr(entry, key)) is not None and number < 1:
            raise UserError(f"{prefix}{key}: has to be 1 or more")


def need_seed(seed: int) -> None:
    """Raise ``UserError`` for a seed below 0, which numpy takes none of."""
    if seed < 0:
        raise UserError("seed: has to be 0 or more")


def need_share(share: float | None, place: str) -> None:
    """Raise ``UserError`` for a number that is no share between 0 and 1."""
    if share is not None and not 0 < share < 1:
        raise UserError(f"{place}: a share lies between 0 and 1")


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """A training: a recipe of `RECIPES` by its name, or a YAML file beside the manifest."""

    recipe: Path
    change: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the recipe that differ here, such as ``filters.drop_category``."""

    @property
    def changes(self) -> dict[str, Any]:
        """The keys that replace the file's."""
        return dict(self.change)

    def read(self, kind: type[R], **places: str | list[str]) -> R:
        """Read the recipe, with ``places`` in the release; raise ``UserError`` for a bad one."""
        options: dict[str, Any] = {**self.changes, **places}
        return read_recipe(self.file, options, kind)

    @property
    def file(self) -> Path:
        """The recipe's file."""
        is_file = self.recipe.suffix in (".yaml", ".yml")
        return self.recipe if is_file else RECIPES / f"{self.recipe.name}.yaml"

    def check(self, place: str, kind: type[Recipe], *places: str, key: str = ".change") -> None:
        """Raise ``UserError`` with the key that is wrong."""
        if not self.file.is_file():
            recipes = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
            raise UserError(f"{place}.recipe: there is no {self.file}; name one of {recipes}, or a YAML file")
        with at_place(f"{place}{key}"):
            self.read(kind, **dict.fromkeys(("dataset", "output", *places), "of the release"))
