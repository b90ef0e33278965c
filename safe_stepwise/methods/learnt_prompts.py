"""Adopt the prompts that a model was trained with: the prompt set, and the error category that its prompt lacks.

A verifier may be trained without one error category, in its rows and in its prompt (SAFE v2, Table 4). The training
record beside an adapter or a fully tuned model says so. Other models, and models behind a server, have no record.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from safe_stepwise import prompts
from safe_stepwise.engines.base import Allowance, Engine, models_of
from safe_stepwise.engines.client import Client
from safe_stepwise.errors import UserError, check_choice
from safe_stepwise.methods.prompt_sets import CHOICES, PAPER
from safe_stepwise.store import boundary, names
from safe_stepwise.taxonomy import DROPPABLE, Category


def adopt_learnt_prompts(options: Any, engines: Iterable[Engine], judge: Client | None = None) -> Any:
    """Return a method's options with the prompts that its engines were trained with.

    These are ``prompts``, ``verdict_order`` and ``verifier_evidence``. With a ``judge``, ``drop_category`` is that
    of its training, too. Options stay as they are if no engine has a record. Raises ``UserError`` if an engine
    contradicts another or an option, or if a category is dropped and the judge's allowance has worked examples for
    its role.
    """
    defaults = PAPER.choices
    values = _agree(engines, {name: getattr(options, name) for name in defaults})
    # A run that uses the paper's prompts by default keeps its options, and so its identity.
    changes: dict[str, Any] = {n: v for n, v in values.items() if getattr(options, n) or v != defaults[n]}
    if judge is not None:
        changes["drop_category"] = dropped_category([judge.engine], options.drop_category)
        check_examples(changes["drop_category"], judge.allowance)
    return replace(options, **changes)


def dropped_category(engines: Iterable[Engine], requested: Category | None = None) -> Category | None:
    """Return the error category that the prompt of these verifiers has to lack, or None.

    Their training records say which; ``requested`` counts if no engine has a record. Raises ``UserError`` if an engine
    contradicts another or the request.
    """
    dropped: Category | None = _agree(engines, {"drop_category": requested}).get("drop_category")
    return dropped


def _agree(engines: Iterable[Engine], requested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``requested`` that it or a record sets; raise ``UserError`` if two of these differ."""
    values = {name: (value, "what was asked for") for name, value in requested.items() if value is not None}
    for engine in (model for player in engines for model in models_of(player)):
        for name, learnt in _learnt(engine).items():
            value, source = values.setdefault(name, (learnt, engine.name)) if name in requested else (learnt, "")
            if value != learnt:
                raise UserError(
                    f"{engine.name}: was trained with {name} {learnt}, which is not that of "
                    f"{source} ({value}); leave the option {name} out, or evaluate them apart"
                )
    return {name: value for name, (value, _) in values.items()}


def check_examples(dropped: Category | None, allowance: Allowance) -> None:
    """Raise ``UserError`` if worked examples show a category that the prompt lacks."""
    role = prompts.load(PAPER.verify).role
    if dropped is not None and role in dict(allowance.examples or ()):
        raise UserError(
            f"--examples {role}: they show {dropped} errors, of which the verifier's prompt says "
            "nothing here; leave them out (--examples none beside --as-published)"
        )


def _learnt(engine: Engine) -> dict[str, Any]:
    """Return the options in the training record of an engine's model; a generator's has only ``prompts``."""
    if (file := _find_record(engine)) is None:
        return {}
    mend = "it should say how the model was trained: get or train it anew"
    record = boundary.read_file(dict[str, Any], file, "the record", mend)
    filters, recorded = _mapping(_mapping(record, "recipe"), "filters"), _mapping(record, "prompts")
    if recorded.get("role") == "encoder":  # reads no prompt
        return {}
    options = ["prompts"] if recorded.get("role") == "generator" else [*CHOICES]
    values = {name: (CHOICES[name], recorded.get(name, PAPER.choices[name])) for name in options}
    if filters.get("drop_from_prompt"):
        values["drop_category"] = DROPPABLE, filters.get("drop_category")
    learnt = {name: check_choice(str(value), choices, f"{file}: {name}") for name, (choices, value) in values.items()}
    return {"drop_category": None, **learnt}


def _mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    content = record.get(name)
    return content if isinstance(content, dict) else {}


def _find_record(engine: Engine) -> Path | None:
    """Find the training record of an engine's adapter or model."""
    weights: Any = getattr(engine, "adapter", None) or getattr(engine, "weights", None)
    if weights is None or weights.folder is None:
        return None
    folder = weights.folder.parent if weights.folder.name == names.TUNED else weights.folder
    file: Path = folder / names.TRAINING
    return file if file.is_file() else None
