"""A card's metadata: whether it is sound, and what of it on the Hub is not ours to lose."""

from typing import Any

import yaml

from releases.publish.folder import Artifact
from safe_stepwise.errors import UserError
from safe_stepwise.store.boundary import parse_yaml
from safe_stepwise.store.terminal import printable, shown

OWNED_KEYS = frozenset(
    "language license license_name license_link size_categories task_categories task_ids "
    "pretty_name configs dataset_info annotations_creators source_datasets base_model "
    "base_model_relation library_name pipeline_tag model-index datasets metrics "
    "title emoji colorFrom colorTo sdk sdk_version python_version app_file pinned".split()
)
"""What a card of ours says or leaves unsaid on purpose: an old value of these does not survive."""
OWNED_TAGS = frozenset(("synthetic", "simulated"))
"""Tags that say what data is; they must go when it is no longer that."""


def metadata(text: str, where: str) -> dict[str, Any]:
    """The YAML block on top of a card. Raises UserError if that can't be read.

    >>> metadata("---\\nlicense: mit\\n---\\n# Words", "README.md")
    {'license': 'mit'}
    """
    block, _ = _parts(text)
    try:
        data = parse_yaml(block.encode()) if block is not None else {}
    except ValueError as error:
        line = shown(error)
        raise UserError(f"{where}: its metadata is no YAML: {line}; mend it there") from None
    if not isinstance(data or {}, dict):
        raise UserError(f"{where}: its metadata is no mapping of keys to values; mend it there")
    return data or {}


def merged(ours: str, theirs: str, where: str) -> str:
    """Our card, with the metadata that others added to the one on the Hub.

    Ours wins wherever it says something. Keys that no card of ours has are kept, and so are tags.
    The same bytes come back when there is nothing to keep, and from a second merge.

    >>> theirs = "---\\ndoi: x\\ntags: [b]\\n---\\nOld."
    >>> print(merged("---\\ntags: [a]\\n---\\nNew.", theirs, "hub"))
    ---
    tags:
    - a
    - b
    doi: x
    ---
    New.
    """
    mine, other = metadata(ours, "our card"), metadata(theirs, where)
    kept = {k: v for k, v in other.items() if k not in mine and k not in OWNED_KEYS}
    tags = [t for t in _listed(other.get("tags")) if t not in OWNED_TAGS]
    added = [tag for tag in tags if tag not in _listed(mine.get("tags"))]
    kept.pop("tags", None)
    if not kept and not added:
        return ours
    together = {**mine, **kept}
    if added:
        together["tags"] = [*_listed(mine.get("tags")), *added]
    block = yaml.safe_dump(together, sort_keys=False, allow_unicode=True, width=100).rstrip()
    _, body = _parts(ours)
    return f"---\n{block}\n---\n{body}"


def check_card(artifact: Artifact) -> Any:
    """The card, as huggingface_hub has it; raises UserError for what is missing or can't be one."""
    from huggingface_hub import DatasetCard, ModelCard, SpaceCard

    where = f"{artifact.folder}/README.md"
    if artifact.card is None:
        raise UserError(f"{where}: missing; a repo is not published without its card")
    try:
        text = artifact.card.read().decode()
    except UnicodeDecodeError:
        raise UserError(f"{where}: not UTF-8 text") from None
    data = metadata(text, where)
    if not data or not _parts(text)[1].strip():
        raise UserError(f"{where}: a card needs metadata (---) and words below it")
    if artifact.kind == "space" and not data.get("sdk"):
        raise UserError(f"{where}: a Space needs its sdk in the metadata, as: sdk: gradio")
    cards = {"dataset": DatasetCard, "model": ModelCard, "space": SpaceCard}
    try:
        return cards[artifact.kind](text)
    except (ValueError, TypeError, KeyError) as error:
        line = printable(str(error))
        raise UserError(f"{where}: can't be read as a card: {line}") from None


def _parts(text: str) -> tuple[str | None, str]:
    from huggingface_hub.repocard import REGEX_YAML_BLOCK

    found = REGEX_YAML_BLOCK.search(text)
    if found is None:
        return None, text
    return found[2], text[found.end() :]


def _listed(tags: Any) -> list[Any]:
    return list(tags) if isinstance(tags, list) else [tags] if tags else []
