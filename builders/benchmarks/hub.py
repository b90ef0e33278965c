"""Stream the rows of a dataset on the Hugging Face Hub, always at one resolved commit."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store import progress, terminal

TIMEOUT = 300.0
"""Seconds to wait for an answer of the Hub, retries included."""
BATCH = 100
"""Rows fetched together within that time."""
_SOURCE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?")
_MOST_CHARS = 300
"""Characters of an error of the Hub that are shown."""
_SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "dev"), "test": ("test",)}


@dataclass(frozen=True, slots=True)
class HubSource:
    """A dataset on the Hub: the parts of ``namespace/name[:config][@revision]``, None if left out."""

    repo: str
    config: str | None
    revision: str | None

    @classmethod
    def read(cls, source: str) -> "HubSource | None":
        """Split a source into its parts; return None if the text does not have that form.

        >>> HubSource.read("hotpotqa/hotpot_qa:distractor@1908d6a")
        HubSource(repo='hotpotqa/hotpot_qa', config='distractor', revision='1908d6a')
        >>> HubSource.read("dev.json") is None
        True
        """
        match = _SOURCE.fullmatch(source)
        return cls(match["repo"], match["config"], match["revision"]) if match else None

    @property
    def dataset(self) -> str:
        """The source without its revision."""
        return self.repo if self.config is None else f"{self.repo}:{self.config}"


def resolve_commit(source: HubSource) -> str:
    """Return the SHA (40 hex digits) of a source's commit; raise ``UserError`` if it is not pinned or not found."""
    if (revision := source.revision) is None:
        raise UserError(
            f"{source.dataset}: no file or folder has that name, and a Hub dataset must be pinned, so that the build "
            f"can be repeated: write {source.dataset}@<commit or tag>"
        )
    from huggingface_hub import HfApi

    def fetch() -> tuple[str | None, bool]:
        commit = HfApi().dataset_info(source.repo, revision=revision).sha
        is_hash = commit is not None and len(revision) >= 7 and commit.startswith(revision)
        tags = [] if is_hash else HfApi().list_repo_refs(source.repo, repo_type="dataset").tags
        return commit, is_hash or any(revision in (tag.name, tag.ref) for tag in tags)

    try:
        commit, is_pinned = progress.call_within(TIMEOUT, f"the Hub, about {source.dataset}", fetch)
    except Exception as error:  # the client's errors have no common base; none of them is a `UserError`
        raise access_error(source, error) from error
    if commit is None or not is_pinned:
        raise UserError(
            f"{source.dataset}@{revision}: {revision!r} is neither a tag nor a commit of 7 digits, "
            f"so it may move: write {source.dataset}@{commit or '<commit>'}"
        )
    return commit


def stream(source: HubSource, split: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of train, validation (or "dev") or test in order; raise ``UserError`` if they can't be read."""
    from datasets import load_dataset

    commit = resolve_commit(source)
    if os.path.exists(source.repo):
        # `datasets` would read the folder instead, whatever the revision.
        raise UserError(f"{source.repo}: a local folder of that name hides the Hub dataset: run from another folder")
    fetch = partial(progress.call_within, TIMEOUT, f"rows of {source.dataset}")
    try:
        splits = fetch(lambda: load_dataset(source.repo, source.config, revision=commit, streaming=True))
        if name := next((name for name in _SPLIT_NAMES[split] if name in splits), ""):
            rows = iter(splits[name])
            while batch := fetch(lambda: list(islice(rows, BATCH))):
                yield from batch
            return
    except Exception as error:
        raise access_error(source, error) from error
    raise UserError(f"{source.dataset} has no {split} split, only {', '.join(splits)}")


def download(source: HubSource, patterns: Sequence[str]) -> tuple[Path, str]:
    """Download the files of a dataset that match a pattern, with the user's login; return their folder and the commit.

    Raises ``UserError`` for a dataset that is not pinned, or can't be pulled.
    """
    from huggingface_hub import snapshot_download

    commit = resolve_commit(source)
    try:
        pulled = snapshot_download(source.repo, repo_type="dataset", revision=commit, allow_patterns=[*patterns])
    except Exception as error:  # the client's errors have no common base; no `UserError` is among them
        raise access_error(source, error) from error
    return Path(pulled), commit


def access_error(source: HubSource, error: Exception) -> UserError:
    """Return what a failed access to a dataset means for the user."""
    reason = terminal.sanitize(" ".join(str(error).split())[:_MOST_CHARS] or type(error).__name__)
    login = "is there a network? private and gated ones need `hf auth login`"
    return UserError(f"{source.dataset}@{source.revision}: can't be read from the Hub ({login}): {reason}")
