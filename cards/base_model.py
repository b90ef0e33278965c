"""The model that an adapter is for: its name, what its licence is and who says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cards.pages import hub_id, line
from cards.pages import metadata as header
from safe_stepwise.engines.packages import PACKAGE
from safe_stepwise.engines.weights import Model, find_model
from safe_stepwise.errors import UserError

_SPDX = frozenset(("apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0"))
"""Identifiers that packages use and the Hub has, but for capitals."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ID = re.compile(r"[a-z0-9][a-z0-9.+-]*")
_TASKS = {"CAUSAL_LM": "text-generation"}


@dataclass(frozen=True, slots=True)
class License:
    """The base model's licence: a Hub licence id, and who says so.

    ``name`` and ``link`` are those of a licence that the Hub calls ``other``.
    """

    id: str
    said_by: str
    name: str | None = None
    link: str | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise UserError(f"licence {self.id!r} is no id of the Hub, such as apache-2.0")


@dataclass(frozen=True, slots=True)
class Base:
    """The model that the adapter is for."""

    name: str
    revision: str
    on_hub: bool
    """Whether it was trained on as the Hub has it, at the commit ``revision``."""
    source: str
    """Where else it came from: ``folder``, another repo of the Hub, or in words."""

    @classmethod
    def read(cls, training: Mapping[str, Any]) -> Base:
        """The one that ``training.json`` names; raises ``KeyError`` for what it does not say."""
        said, recipe = training["base_model"], training["recipe"]
        renamed = recipe["base_model_name"] is not None and said["on_hub"]
        source = recipe["base_model"] if renamed else said["source"]
        return cls(said["name"], said["revision"], said["on_hub"] and not renamed, source)

    @property
    def repo(self) -> str | None:
        """Its id on the Hub, None of one that is known by a folder's name only."""
        return hub_id(self.name)

    @property
    def commit(self) -> str | None:
        """The commit that it was trained on, if it came from the Hub; else there is a digest."""
        return self.revision if self.on_hub and _COMMIT.fullmatch(self.revision) else None


def check_config(config: Mapping[str, Any], base: Base, recipe: Mapping[str, Any]) -> None:
    """Raise ``UserError`` for an ``adapter_config.json`` of another run than the recipe's."""
    for key, trained in (
        ("base_model_name_or_path", base.name),
        ("r", recipe["lora_rank"]),
        ("lora_alpha", recipe["lora_alpha"]),
        ("lora_dropout", recipe["lora_dropout"]),
    ):
        if config[key] != trained:
            raise UserError(
                f"adapter_config.json says {key} {config[key]!r}, training.json {trained!r}: "
                "they are of different runs"
            )


def adapter_header(base: Base, license: License | None, config: Mapping[str, Any]) -> dict[str, Any]:
    """What the header of any adapter's card says of its base model, and so of its licence."""
    if license is None:
        link = f"https://huggingface.co/{base.repo}" if base.repo else None
        said = {"license": "other", "license_name": "of-the-base-model", "license_link": link}
    else:
        said = {"license": license.id, "license_name": license.name, "license_link": license.link}
    return {
        "language": "en",
        "base_model": base.repo,
        "base_model_relation": "adapter" if base.repo else None,
        "library_name": "peft",
        "pipeline_tag": _TASKS.get(config["task_type"]),
        **said,
    }


def tuned_header(base: Base, license: License | None) -> dict[str, Any]:
    """The same of a model of which all weights were tuned."""
    said = adapter_header(base, license, {"task_type": "CAUSAL_LM"})
    relation = "finetune" if base.repo else None
    return {**said, "base_model_relation": relation, "library_name": "transformers"}


def license_of_base(base: str) -> License | None:
    """The base model's licence as the base model says it; None if it does not.

    ``base`` is what a recipe names: ``package:NAME``, a folder, or a model of the Hub.
    """
    if base.startswith(PACKAGE):
        return license_of_package(base.removeprefix(PACKAGE))
    model = Model.read(base)
    readme = find_model(model).folder / "README.md"
    return license_of(readme.read_text("utf-8"), model.name) if readme.is_file() else None


def license_of(readme: str, model: str) -> License | None:
    """The licence that a base model's own card names, None if it names none that is an id.

    >>> license_of("---\\nlicense: apache-2.0\\n---\\n# Qwen3", "Qwen/Qwen3-8B")
    License(id='apache-2.0', said_by='the model card of Qwen/Qwen3-8B', name=None, link=None)
    """
    said = header(readme)
    found, name, link = (said.get(key) for key in ("license", "license_name", "license_link"))
    if not isinstance(found, str) or not _ID.fullmatch(found):
        return None
    if isinstance(link, str) and "://" not in link:  # a file beside that card
        link = f"https://huggingface.co/{model}/blob/main/{link}" if hub_id(model) else None
    named = [line(said) if said else None for said in (name, link)]
    return License(found, f"the model card of {model}", *named)


def license_of_package(package: str) -> License | None:
    """The licence that an installed package with a base model in it names, None if it is no id."""
    from importlib.metadata import PackageNotFoundError, metadata, version

    try:
        said: Any = metadata(package)
    except PackageNotFoundError:
        return None
    found = str(said.get("License-Expression") or said.get("License") or "").strip().lower()
    if found not in _SPDX:
        return None
    return License(found, f"the metadata of {package} {version(package)} on PyPI")
