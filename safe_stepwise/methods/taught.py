"""The prompt that a verifier learnt: of all error types, or without those of one category.

That is SAFE v2's Table 4 where a category is left out of the prompt, too. An adapter tells it in
its own record of training; of a model behind a server, or one without an adapter, nothing is known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from safe_stepwise.engines.allowance import Allowance
from safe_stepwise.engines.base import Engine
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.store.names import TRAINING
from safe_stepwise.store.parsing import read_record
from safe_stepwise.taxonomy import DROPPABLE, Category


def taught(options: Any, judge: Engine, allowance: Allowance, role: str) -> Any:
    """A method's options with the ``drop_category`` that whoever judges in a role has learnt.

    Raises ``UserError`` where they say another, or where worked examples tell of what is dropped.
    """
    dropped = dropped_category([judge], options.drop_category)
    check_examples(dropped, allowance, role)
    return replace(options, drop_category=dropped)


def dropped_category(engines: Iterable[Engine], said: Category | None = None) -> Category | None:
    """The category that the prompt of these verifiers is to lack, None for none.

    It is what their adapters learnt, and what is ``said`` of engines of which nothing is known.
    Raises ``UserError`` where one of them contradicts another, or what is said.
    """
    known = {engine.name: learnt for engine in engines for learnt in _learnt(engine)}
    if not known:
        return said
    (name, learnt), *others = known.items()
    if said is not None and said != learnt:
        raise UserError(
            f"{name}: was trained with a prompt {_lists(learnt)}, so drop_category can't be "
            f"{said}; leave it out: the adapter says what it is"
        )
    for other, its in others:
        if its != learnt:
            raise UserError(
                f"{name} was trained with a prompt {_lists(learnt)}, {other} with one "
                f"{_lists(its)}; measure them apart"
            )
    return learnt


def check_examples(dropped: Category | None, allowance: Allowance, role: str) -> None:
    """Raise ``UserError`` where worked examples speak of what a shorter prompt does not."""
    if dropped is not None and role in dict(allowance.examples or ()):
        raise UserError(
            f"--examples {role}: they show {dropped} errors, of which the verifier's prompt says "
            "nothing here; leave them out (--examples none beside --as-published)"
        )


def _lists(dropped: Category | None) -> str:
    return f"without {dropped} errors" if dropped else "of all errors"


def _learnt(engine: Engine) -> Iterator[Category | None]:
    """What an engine's adapter says; nothing if it has none, or none that we trained."""
    adapter: Any = getattr(engine, "adapter", None)
    if adapter is None or not (file := adapter.folder / TRAINING).is_file():
        return
    mend = "it should say how the adapter was trained: get or train it anew"
    recipe = read_record(file, mend).get("recipe")
    filters = recipe.get("filters") if isinstance(recipe, dict) else None
    if not isinstance(filters, dict) or not filters.get("drop_from_prompt"):
        yield None
    else:
        dropped = one_of(str(filters.get("drop_category")), DROPPABLE, f"{file}: drop_category")
        yield next(name for name in DROPPABLE if name == dropped)
