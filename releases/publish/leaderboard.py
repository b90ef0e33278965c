"""Reads, checks and merges the headers of cards, and makes a dataset's tasks (`eval.yaml`) for Inspect and the Hub.

With ``eval.yaml``, ``inspect eval hf/NAMESPACE/NAME`` asks a model each row's prompt (column ``input``). Its tasks
have the fields of `inspect_ai._eval.task.hf.HFTask`. A task has one value, so each benchmark's sample is a task for
each measure. The Hub lists scores on the page of a dataset with such a file, once Hugging Face has listed that dataset
as a benchmark (https://huggingface.co/docs/hub/eval-results).
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from releases.publish.folder import Artifact, FinishedRelease, LocalFile
from safe_stepwise.errors import UserError
from safe_stepwise.store import boundary, names, terminal
from safe_stepwise.store.packaged import read_yaml

OWNED_KEYS = frozenset(read_yaml(Path(__file__).with_name("owned_keys.yaml")))
"""The keys of metadata that our cards decide: an older value on the Hub is dropped, even if ours has none."""
TASKS = "eval.yaml"
"""The Hub's file of tasks in a dataset's repo."""
_SCORERS = {"exact_match": "exact", "f1": "f1"}
"""Inspect's names of our measures that need no judge."""


def metadata(text: str, place: str) -> dict[str, Any]:
    """Read the YAML header of a card; raise ``UserError`` that names ``place`` if it can't be read."""
    block, _ = _split_card(text)
    try:
        data = boundary.parse_yaml(block.encode()) if block is not None else {}
    except ValueError as error:
        line = terminal.sanitize(error)
        raise UserError(f"{place}: its metadata is no YAML: {line}; mend it there") from None
    if not isinstance(data or {}, dict):
        raise UserError(f"{place}: its metadata is no mapping of keys to values; mend it there")
    return data or {}


def merge_card(card: str, remote_card: str, place: str) -> str:
    """Return our card with the Hub's further tags and keys (but `OWNED_KEYS`), or as it is if there are none."""
    local, remote = metadata(card, "our card"), metadata(remote_card, place)
    foreign = {k: v for k, v in remote.items() if k not in local and k not in OWNED_KEYS}
    tags = [t for t in _as_list(remote.get("tags")) if t not in ("synthetic", "simulated")]  # ours to decide
    added = [tag for tag in tags if tag not in _as_list(local.get("tags"))]
    foreign.pop("tags", None)
    if not foreign and not added:
        return card
    combined = {**local, **foreign}
    if added:
        combined["tags"] = [*_as_list(local.get("tags")), *added]
    return f"---\n{_dump_yaml(combined).decode()}---\n{_split_card(card)[1]}"


def check_card(artifact: Artifact) -> Any:
    """Parse an artifact's card with `huggingface_hub`; raise ``UserError`` if it is missing or bad."""
    from huggingface_hub import DatasetCard, ModelCard, SpaceCard

    place = f"{artifact.folder}/README.md"
    if artifact.card is None:
        raise UserError(f"{place}: missing; a repo is not published without its card")
    try:
        text = artifact.card.read().decode()
    except UnicodeDecodeError:
        raise UserError(f"{place}: not UTF-8 text") from None
    data = metadata(text, place)
    if not data or not _split_card(text)[1].strip():
        raise UserError(f"{place}: a card needs metadata (---) and words below it")
    if artifact.kind == "space" and not data.get("sdk"):
        raise UserError(f"{place}: a Space needs its sdk in the metadata, as: sdk: gradio")
    cards = {"dataset": DatasetCard, "model": ModelCard, "space": SpaceCard}
    try:
        return cards[artifact.kind](text)
    except (ValueError, TypeError, KeyError) as error:
        line = terminal.printable(str(error))
        raise UserError(f"{place}: can't be read as a card: {line}") from None


def _split_card(text: str) -> tuple[str | None, str]:
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    if (match := REGEX_YAML_BLOCK.search(text)) is None:
        return None, text
    return match[2], text[match.end() :]


def _as_list(tags: Any) -> list[Any]:
    return list(tags) if isinstance(tags, list) else [tags] if tags else []


def add_tasks(release: FinishedRelease) -> FinishedRelease:
    """Return the release with ``eval.yaml`` beside the verified benchmarks, made from the header of their card."""

    def with_tasks(artifact: Artifact) -> Artifact:
        if not artifact.folder.endswith(names.VERIFIED) or artifact.card is None:
            return artifact
        place = f"{artifact.folder}/{names.README}"
        text = render_tasks(samples(artifact.card.read().decode("utf-8", "replace"), place))
        files = [LocalFile(TASKS, text, len(text), place)] if text else []
        return replace(artifact, files=(*artifact.files, *files))

    return replace(release, artifacts=tuple(map(with_tasks, release.artifacts)))


def samples(card: str, place: str) -> list[tuple[str, str]]:
    """List (config, split) of each sample in a card's header; raise ``UserError`` if it can't be read."""
    configs = metadata(card, place).get("configs")
    try:
        return [
            (config["config_name"], file["split"])
            for config in configs or ()
            if config["config_name"].endswith(names.EVAL)
            for file in config["data_files"]
        ]
    except (KeyError, TypeError, AttributeError):
        return []  # `check_card` raises for it


def render_tasks(places: Sequence[tuple[str, str]]) -> bytes:
    """Render ``eval.yaml`` with a task for each sample and measure; empty without a sample."""
    tasks = [
        {
            "id": f"{config}_{measure}",
            "config": config,
            "split": split,
            "field_spec": {"input": names.INPUT, "target": "answer"},
            "solvers": [{"name": "generate"}],
            "scorers": [{"name": scorer}],
        }
        for config, split in places
        for measure, scorer in _SCORERS.items()
    ]
    header = read_yaml(Path(__file__).with_name(TASKS))
    return _dump_yaml({**header, "tasks": tasks}) if tasks else b""


def _dump_yaml(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100).encode()
