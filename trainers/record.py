"""The record of a training, ``training.json``: its recipe, model, data and results."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safe_stepwise.engines.weights import Weights
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import TRAINING
from trainers import models
from trainers.config import CHANGEABLE, Recipe
from trainers.data import Data, Example, Joined
from trainers.rows.base import Kind

RECORD = TRAINING
_PLACES = (*CHANGEABLE, "base_model", "dataset", "plus", "start")
"""Keys of a recipe that name places (the record has the digest of their content), or don't decide what is learnt."""
_IN_ROWS = ("incomplete_evidence", "prompts", "verdict_order")
"""Keys that decide only which rows are trained on; the digest of the rows tells runs apart."""
LEARNT = ("loss", "mean_token_accuracy", "rewards/margins", "kl", "learning_rate", "grad_norm")
"""The figures of each step in the record; margin and KL are those of KTO."""


@dataclass(frozen=True, slots=True)
class Training:
    """A training to be run: recipe, base model and data; ``start`` is the adapter that it continues."""

    recipe: Recipe
    weights: Weights
    origin: str
    """Where the weights come from: folder, Hub, or a package's release."""
    start: Weights | None
    data: Data
    kind: Kind

    @property
    def contents(self) -> dict[str, str | None]:
        """The digests of what the recipe names by place, as a folder may have moved."""
        start = None if self.start is None else self.start.revision
        return {"base_model": self.weights.revision, "start": start, "dataset": self.data.sha256}

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides what is learnt: settings and digests."""
        settings = {key: value for key, value in self.recipe.plain().items() if key not in (*_PLACES, *_IN_ROWS)}
        for key in ("drop_from_prompt", "twins"):
            settings["filters"].pop(key, None)
        return settings | self.contents

    @property
    def header(self) -> dict[str, Any]:
        """The part of the record that is known before training; folders appear by name, without their path."""
        data, weights, plain = self.data, self.weights, self.recipe.plain()
        for key in ("dataset", "base_model", "output", "start"):
            if plain[key] and Path(plain[key]).expanduser().is_dir():
                plain[key] = Path(plain[key]).resolve().name
        plain["plus"] = [joined.source.name for joined in data.joined]
        return {
            "recipe": plain,
            "base_model": {
                "name": self.recipe.base_model_name or weights.name,
                "revision": weights.revision,
                "on_hub": weights.on_hub,
                "source": self.origin,
            },
            **({"start": {"name": self.start.name, "revision": self.start.revision}} if self.start else {}),
            "dataset": _dataset(data),
            "prompt_sha256": self.kind.prompt_digest(),
            **({"prompts": dict(prompts)} if (prompts := self.kind.recorded_prompts) else {}),
            "tokens": {
                "longest": data.longest,
                "limit": data.limit,
                "prompt": sum(example.prompt for example in data.train),
                "completion": sum(len(example.tokens) - example.prompt for example in data.train),
            },
        }

    def refuse_another(self, complete: Mapping[str, Any]) -> None:
        """Raise ``UserError`` if ``complete``, the record of the output, is of another training."""
        trained = {key: value for key, value in complete["recipe"].items() if key not in _PLACES}
        current = {key: value for key, value in sorted(self.recipe.plain().items()) if key in trained} | self.contents
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
    """Return the record's ``run``: devices, memory in bytes, steps, tokens and seconds.

    ``resumed`` is the step of the checkpoint that the run continued from.
    """
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
    """Return the digest of the adapter or model in ``output``, the optimizer, and the figures of each step."""
    name = "model" if (output / models.MODEL).is_dir() else "adapter"
    digest = sha256_of(output / (models.MODEL_WEIGHTS if name == "model" else models.WEIGHTS))
    keys, arguments = ("step", *LEARNT), trainer.args
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


def describe_joined(joined: Joined, train: Sequence[Example]) -> dict[str, Any]:
    """Return the record of a joined data set; ``rows`` counts rows trained on, ``sha256`` covers dropped ones too."""
    about = joined.source.about
    return {
        "name": joined.source.name,
        "revision": joined.source.revision,
        "rows": sum(example.id in joined.ids for example in train),
        "sha256": joined.sha256,
        "unverifiable": bool(about.get("unverifiable")),
        **{key: about.get(key) for key in ("teacher", "simulated")},
    }


def _dataset(data: Data) -> dict[str, Any]:
    undesirable = sum(not example.label for example in data.train)
    return {
        "name": data.source.name,
        "revision": data.source.revision,
        "sha256": data.sha256,
        "rows": len(data.train),
        **({"undesirable_rows": undesirable} if undesirable else {}),
        "dropped_as_long": list(data.dropped),
        "plus": [describe_joined(joined, data.train) for joined in data.joined],
        **{key: data.source.about.get(key) for key in ("version", "teacher", "simulated")},
    }
