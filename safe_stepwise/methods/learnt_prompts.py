"""Adopt the prompts that a model was trained with: the prompt set, and the error category that its prompt lacks.

A verifier may be trained without one error category, in its rows and in its prompt (SAFE v2, Table 4). The training
record beside an adapter or a fully tuned model says so. Other models, and models behind a server, have no record.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Engine
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.methods.prompt_sets import PAPER, PROMPTS
from safe_stepwise.records import VERDICT_ORDERS
from safe_stepwise.store import boundary, names
from safe_stepwise.taxonomy import DROPPABLE, Category


def adopt_learnt_category(options: Any, judge: Client) -> Any:
    """Return a method's options with the ``drop_category`` that the verifier was trained with.

    It stays as requested if the verifier has no record of its training. Raises ``UserError`` if the options name
    another category, or if a category is dropped and the verifier's allowance has worked examples for its role.
    """
    dropped = dropped_category([judge.engine], options.drop_category)
    check_examples(dropped, judge.allowance)
    return replace(options, drop_category=dropped)


def adopt_learnt_prompts(options: Any, engines: Iterable[Engine]) -> Any:
    """Return a method's options with the ``prompts`` and ``verdict_order`` that its engines were trained with.

    Options stay as they are if no engine has a record. Raises ``UserError`` if an engine contradicts another or an
    option.
    """
    values = {"prompts": options.prompts, "verdict_order": options.verdict_order}
    sources = dict.fromkeys((name for name, value in values.items() if value), "what was asked for")
    for engine in _models_of(engines):
        for name, learnt in _prompts_learnt(engine).items():
            if values[name] not in (None, learnt):
                raise UserError(
                    f"{engine.name}: was trained with {name} {learnt}, which is not that of "
                    f"{sources[name]} ({values[name]}); leave --option {name} out, or measure apart"
                )
            values[name], sources[name] = learnt, engine.name
    defaults = {"prompts": PAPER.name, "verdict_order": PAPER.verdict_order}
    # A run that uses the paper's prompts by default keeps its options, and so its identity.
    changes = {n: v for n, v in values.items() if getattr(options, n) or v != defaults[n]}
    return replace(options, **changes)


def dropped_category(engines: Iterable[Engine], requested: Category | None = None) -> Category | None:
    """Return the error category that the prompt of these verifiers has to lack, or None.

    Their training records say which; ``requested`` counts if no engine has a record. Raises ``UserError`` if an engine
    contradicts another or the request.
    """
    by_engine = {engine.name: learnt for engine in _models_of(engines) for learnt in _learnt(engine)}
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


def check_examples(dropped: Category | None, allowance: Allowance) -> None:
    """Raise ``UserError`` if worked examples show a category that the prompt lacks."""
    role = prompts.load(PAPER.verify).role
    if dropped is not None and role in dict(allowance.examples or ()):
        raise UserError(
            f"--examples {role}: they show {dropped} errors, of which the verifier's prompt says "
            "nothing here; leave them out (--examples none beside --as-published)"
        )


def _models_of(engines: Iterable[Engine]) -> Iterator[Engine]:
    """Yield the engines, and in place of a cascade its stages."""
    for engine in engines:
        yield from getattr(engine, "stages", (engine,))


def _lists(dropped: Category | None) -> str:
    return f"without {dropped} errors" if dropped else "of all errors"


def _learnt(engine: Engine) -> Iterator[Category | None]:
    """Yield the category that an engine's model was trained without (or None); nothing if it has no record."""
    file, record = _record(engine)
    if record is None or file is None:
        return
    recipe = record.get("recipe")
    filters = recipe.get("filters") if isinstance(recipe, dict) else None
    if not isinstance(filters, dict) or not filters.get("drop_from_prompt"):
        yield None
    else:
        dropped = check_choice(str(filters.get("drop_category")), DROPPABLE, f"{file}: drop_category")
        yield next(name for name in DROPPABLE if name == dropped)


def _prompts_learnt(engine: Engine) -> dict[str, str]:
    """Return the prompt options in the training record of an engine's model, without a generator's verdict order."""
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
    return {name: check_choice(str(value), values, f"{file}: {name}") for name, (values, value) in choices.items()}


def _record(engine: Engine) -> tuple[Path | None, Mapping[str, Any] | None]:
    """Read the training record of an engine's adapter or model; return its path too, None if there is none."""
    weights: Any = getattr(engine, "adapter", None) or getattr(engine, "weights", None)
    folder = None if weights is None else weights.folder
    if folder is not None and folder.name == names.TUNED:
        folder = folder.parent
    file = None if folder is None else folder / names.TRAINING
    if file is None or not file.is_file():
        return None, None
    return file, boundary.read_file(
        dict[str, Any], file, "the record", "it should say how the model was trained: get or train it anew"
    )
