"""The prompts that a model learnt: which set, and of all error types or without one category.

The latter is SAFE v2's Table 4 where a category is left out of the prompt, too. An adapter, or a
model that was tuned as a whole, tells it in its own record of training; of a model behind a server,
or one that we did not train, nothing is known.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safe_stepwise.engines.base import Allowance, Engine
from safe_stepwise.errors import UserError, one_of
from safe_stepwise.methods.prompt_sets import PAPER, PROMPTS
from safe_stepwise.records import VERDICT_ORDERS
from safe_stepwise.store.boundary import read_file
from safe_stepwise.store.names import TRAINING, TUNED
from safe_stepwise.taxonomy import DROPPABLE, Category


def taught(options: Any, judge: Engine, allowance: Allowance, role: str) -> Any:
    """A method's options with the ``drop_category`` that whoever judges in a role has learnt.

    Raises ``UserError`` where they say another, or where worked examples tell of what is dropped.
    """
    dropped = dropped_category([judge], options.drop_category)
    check_examples(dropped, allowance, role)
    return replace(options, drop_category=dropped)


def as_learnt(options: Any, engines: Iterable[Engine]) -> Any:
    """A method's options with the ``prompts`` and the ``verdict_order`` that these engines learnt.

    What is said where nothing is known stays. Raises ``UserError`` where one of them contradicts
    another, or what is said.
    """
    values = {"prompts": options.prompts, "verdict_order": options.verdict_order}
    sources = dict.fromkeys((name for name, value in values.items() if value), "what was asked for")
    for engine in engines:
        for name, learnt in _prompts_learnt(engine).items():
            if values[name] not in (None, learnt):
                raise UserError(
                    f"{engine.name}: was trained with {name} {learnt}, which is not that of "
                    f"{sources[name]} ({values[name]}); leave --option {name} out, or measure apart"
                )
            values[name], sources[name] = learnt, engine.name
    defaults = {"prompts": PAPER.name, "verdict_order": PAPER.verdict_order}
    # Of a run that keeps the paper's without a word, nothing is told.
    changes = {n: v for n, v in values.items() if getattr(options, n) or v != defaults[n]}
    return replace(options, **changes)


def dropped_category(engines: Iterable[Engine], requested: Category | None = None) -> Category | None:
    """The category that the prompt of these verifiers is to lack, None for none.

    It is what their adapters learnt, and what is ``requested`` of engines of which nothing is known.
    Raises ``UserError`` where one of them contradicts another, or what is said.
    """
    by_engine = {engine.name: learnt for engine in engines for learnt in _learnt(engine)}
    if not by_engine:
        return requested
    (name, learnt), *following = by_engine.items()
    if requested is not None and requested != learnt:
        raise UserError(
            f"{name}: was trained with a prompt {_lists(learnt)}, so drop_category can't be "
            f"{requested}; leave it out: the adapter says what it is"
        )
    for next_name, next_learnt in following:
        if next_learnt != learnt:
            raise UserError(
                f"{name} was trained with a prompt {_lists(learnt)}, {next_name} with one "
                f"{_lists(next_learnt)}; measure them apart"
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
    """Yield the category that an engine's model was trained without; nothing if we did not train it."""
    file, record = _record(engine)
    if record is None or file is None:
        return
    recipe = record.get("recipe")
    filters = recipe.get("filters") if isinstance(recipe, dict) else None
    if not isinstance(filters, dict) or not filters.get("drop_from_prompt"):
        yield None
    else:
        dropped = one_of(str(filters.get("drop_category")), DROPPABLE, f"{file}: drop_category")
        yield next(name for name in DROPPABLE if name == dropped)


def _prompts_learnt(engine: Engine) -> dict[str, str]:
    """The prompts that an engine's model says it learnt, by the names of options.

    A generator says nothing of the order of verdicts.
    """
    file, record = _record(engine)
    if record is None:
        return {}
    recorded = record.get("prompts")
    record_fields: Mapping[str, Any] = recorded if isinstance(recorded, dict) else {}
    choices = {
        "prompts": (PROMPTS, record_fields.get("prompts", PAPER.name)),
        "verdict_order": (VERDICT_ORDERS, record_fields.get("verdict_order", PAPER.verdict_order)),
    }
    if record_fields.get("role") == "generator":
        del choices["verdict_order"]
    return {name: one_of(str(value), values, f"{file}: {name}") for name, (values, value) in choices.items()}


def _record(engine: Engine) -> tuple[Path | None, Mapping[str, Any] | None]:
    """The record of training of an engine's adapter, or of its model; None where there is none."""
    weights: Any = getattr(engine, "adapter", None) or getattr(engine, "weights", None)
    folder = None if weights is None else weights.folder
    if folder is not None and folder.name == TUNED:
        folder = folder.parent
    file = None if folder is None else folder / TRAINING
    if file is None or not file.is_file():
        return None, None
    return file, read_file(
        dict[str, Any], file, "the record", "it should say how the model was trained: get or train it anew"
    )
