"""Manifests are read strictly: `boundary` finds what is no such key or value, told in the words of YAML's types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from safe_stepwise.errors import UserError
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


def read_entry(kind: type[T], values: Any) -> T:
    """A whole manifest, or a part of one; raises ``UserError`` with every key that is missing, wrong or unknown."""
    try:
        return boundary.read(kind, values, "", exact=True)
    except ValueError as error:
        faults = str(error)
    faults = re.sub(r"(\S+) is not there", r"\1: is missing", faults)
    faults = re.sub(r"(\S+: no such key;)", r"key \1", faults).replace("; keys: ", "; choose from ")
    faults = re.sub(r"^ is not an object", "the whole: has to be a mapping of keys", faults)
    faults = re.sub(r"(\S+\]) is not an object", r"\1: has to be a mapping of keys", faults)
    faults = re.sub(r"(\S+) is not an object", r"\1: has to be of type dict", faults)
    raise UserError(_WRONG_TYPE.sub(lambda fault: f"{fault[1]}: has to be of type {_TYPES[fault[2]]}", faults))


def need_positive(entry: object, where: str, *keys: str) -> None:
    """Raise ``UserError`` for a number of an entry that is below 1."""
    for key in keys:
        if (number := getattr(entry, key)) is not None and number < 1:
            raise UserError(f"{where}{key}: has to be 1 or more")


def need_share(share: float | None, where: str) -> None:
    """Raise ``UserError`` for what is no share of a whole."""
    if share is not None and not 0 < share < 1:
        raise UserError(f"{where}: a share lies between 0 and 1")


@dataclass(frozen=True, slots=True)
class RecipeEntry:
    """What is trained: a recipe of ours by its name, or a YAML file beside the manifest."""

    recipe: Path
    change: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the recipe that are other here, as ``filters.drop_category``."""

    @property
    def changes(self) -> dict[str, Any]:
        """All that the recipe is told beside its file."""
        return dict(self.change)

    def read(self, kind: type[R], **places: str | list[str]) -> R:
        """The recipe where the release trains; raises ``UserError`` for one that is none."""
        options: dict[str, Any] = {**self.changes, **places}
        return read_recipe(self.recipe, options, kind)

    def checked(self, where: str, beside: Path, kind: type[Recipe], *places: str, key: str = ".change") -> Self:
        """With the file in the place of its name. Raises ``UserError`` with the key that is wrong."""
        own = self.recipe.suffix in (".yaml", ".yml")
        file = beside / self.recipe if own else RECIPES / f"{self.recipe}.yaml"
        if not file.is_file():
            known = ", ".join(sorted(recipe.stem for recipe in RECIPES.glob("*.yaml")))
            raise UserError(f"{where}.recipe: there is no {file}; name one of {known}, or a YAML file")
        entry = replace(self, recipe=file)
        try:
            entry.read(kind, **dict.fromkeys(("dataset", "output", *places), "of the release"))
        except UserError as error:
            raise UserError(f"{where}{key}: {error}") from None
        return entry
