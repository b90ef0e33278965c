"""Describe a training run in its record, ``training.json``: the recipe, the models, the data and the results."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.players.encoding import VERSION
from safe_stepwise.store import files, names
from safe_stepwise.store.boundary import plain
from trainers import config, models
from trainers.data import Data, Example, ExtraSet
from trainers.rows.base import RowKind

RECORD = names.TRAINING
_NOT_COMPARED = (*config.CHANGEABLE, "base_model", "dataset", "plus", "start")
"""Keys of a recipe that don't decide what is learnt, or name folders and files (digests of their content do)."""
_COVERED_BY_ROWS = ("incomplete_evidence", "prompts", "verdict_order", "verifier_evidence")
_FILTERS_COVERED_BY_ROWS = ("drop_from_prompt", "twins")
"""Keys, and keys of ``filters``, that decide only the rows and their text: the digest of the rows tells runs apart."""
CURVE_FIELDS = ("loss", "mean_token_accuracy", "rewards/margins", "kl", "learning_rate", "grad_norm")
"""The figures that ``curve`` in the record has of each step; SFT logs no margins and no KL."""


@dataclass(frozen=True, slots=True)
class TrainingRun:
    """A run to begin or to resume: its recipe, base model and data."""

    recipe: config.Recipe
    weights: Weights
    origin: str
    """The source of the weights: folder, Hub, or a package's release."""
    start: Weights | None
    """The adapter that the run continues; None for a new one."""
    data: Data
    kind: RowKind

    @property
    def contents(self) -> dict[str, str | None]:
        """The digests of the models and rows that the recipe names, as folders may move; None without ``start``."""
        start = None if self.start is None else self.start.revision
        encoding = {"encoding": str(VERSION)} if self.kind.classes else {}
        return {"base_model": self.weights.revision, "start": start, "dataset": self.data.sha256, **encoding}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides what is learnt: settings and digests."""
        settings: dict[str, Any] = plain(self.recipe)
        for key in (*_NOT_COMPARED, *_COVERED_BY_ROWS):
            settings.pop(key, None)
        for key in _FILTERS_COVERED_BY_ROWS:
            settings["filters"].pop(key, None)
        return settings | self.contents

    @property
    def header(self) -> dict[str, Any]:
        """The fields of the record that are known before training; folders appear by name, without their path."""
        data, weights, recipe = self.data, self.weights, plain(self.recipe)
        for key in ("dataset", "base_model", "output", "start"):
            if recipe[key] and Path(recipe[key]).expanduser().is_dir():
                recipe[key] = Path(recipe[key]).resolve().name
        recipe["plus"] = [extra.source.name for extra in data.extra_sets]
        return {
            "recipe": recipe,
            "base_model": {
                "name": self.recipe.base_model_name or weights.name,
                "revision": weights.revision,
                "on_hub": weights.on_hub,
                "source": self.origin,
            },
            **({"start": {"name": self.start.name, "revision": self.start.revision}} if self.start else {}),
            "dataset": _describe_dataset(data),
            "prompt_sha256": self.kind.prompt_digest(),
            **({"prompts": dict(prompts)} if (prompts := self.kind.recorded_prompts) else {}),
            "tokens": {
                "longest": data.longest_example,
                "limit": data.max_tokens,
                "prompt": sum(example.prompt_length for example in data.train),
                "completion": sum(len(example.tokens) - example.prompt_length for example in data.train),
            },
        }

    def require_same_training(self, complete: Mapping[str, Any]) -> None:
        """Raise ``UserError`` if the output holds the result of a different training; ``complete`` is its record."""
        trained = {key: value for key, value in complete["recipe"].items() if key not in _NOT_COMPARED}
        recipe = sorted(plain(self.recipe).items())
        current = {key: value for key, value in recipe if key in trained} | self.contents
        trained |= {
            "base_model": complete["base_model"]["revision"],
            "start": complete.get("start", {}).get("revision"),
            "dataset": complete["dataset"]["sha256"],
        }
        for key in current:
            if trained[key] != current[key]:
                raise UserError(
                    f"{self.recipe.output}: was trained with another {key} ({trained[key]}, now {current[key]}); "
                    "use that one, choose another --output, or delete that folder"
                )


def describe_run(trainer: Any, devices: int, dtype: Any, resumed: int | None, seconds: float) -> dict[str, Any]:
    """Return the record's ``run``: devices, memory, steps, tokens, seconds; ``resumed`` is its checkpoint's step."""
    import torch

    steps, gpu = trainer.state.global_step, not trainer.args.use_cpu
    return {
        "devices": devices,
        "device": str(torch.cuda.get_device_name()) if gpu else f"CPU, {os.cpu_count()} cores",
        "dtype": str(dtype).removeprefix("torch."),
        "accumulation": trainer.args.gradient_accumulation_steps,
        "resumed_from_step": resumed,
        "peak_memory_bytes": models.peak_memory(gpu),
        "steps": steps,
        "seconds": round(seconds, 1),
        "seconds_per_step": round(seconds / max(steps, 1), 3),
        "rows_seen": len(trainer.train_dataset),
        "tokens": sum(trainer.train_dataset.with_format(None)["length"]),
    }


def describe_result(trainer: Any, output: Path) -> dict[str, Any]:
    """Return the record's ``adapter`` or ``model`` (digest and dtype), ``optimizer`` and ``curve`` after training."""
    name = "model" if (output / models.MODEL).is_dir() else "adapter"
    digest = files.sha256_of(output / (models.MODEL_WEIGHTS if name == "model" else models.WEIGHTS))
    keys, arguments = ("step", *CURVE_FIELDS), trainer.args
    history = [point for point in trainer.state.log_history if "loss" in point]
    return {
        name: {"sha256": digest, "dtype": models.dtype_of(trainer.model)},
        "optimizer": {  # clipping limits the gradient's norm
            "name": str(arguments.optim.value),
            "betas": [arguments.adam_beta1, arguments.adam_beta2],
            "epsilon": arguments.adam_epsilon,
            "clipping": arguments.max_grad_norm,
            "schedule": str(arguments.lr_scheduler_type.value),
        },
        "curve": [{key: point[key] for key in keys if key in point} for point in history],
    }


def describe_extra_set(dataset: ExtraSet, train: Sequence[Example]) -> dict[str, Any]:
    """Return the record of an extra data set; ``rows`` counts the rows that were trained on."""
    about = dataset.source.about
    return {
        "name": dataset.source.name,
        "revision": dataset.source.revision,
        "rows": sum(example.id in dataset.ids for example in train),
        "sha256": dataset.sha256,
        "unverifiable": bool(about.get("unverifiable")),
        **{key: about.get(key) for key in ("teacher", "simulated")},
    }


def _describe_dataset(data: Data) -> dict[str, Any]:
    undesirable = sum(not example.is_desirable for example in data.train)
    return {
        "name": data.source.name,
        "revision": data.source.revision,
        "sha256": data.sha256,
        "rows": len(data.train),
        **({"undesirable_rows": undesirable} if undesirable else {}),
        "dropped_as_long": list(data.dropped),
        "plus": [describe_extra_set(extra, data.train) for extra in data.extra_sets],
        **{key: data.source.about.get(key) for key in ("version", "teacher", "simulated")},
    }
