"""Stream the rows of a dataset on the Hugging Face Hub, always at one resolved commit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from safe_stepwise.errors import UserError
from safe_stepwise.store import progress, terminal

TIMEOUT = 300.0
"""Seconds to wait for an answer of the Hub, retries included."""
BATCH = 100
"""Rows fetched together within that time."""
_SOURCE = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SPLIT_NAMES = {"train": ("train",), "validation": ("validation", "dev"), "test": ("test",)}


@dataclass(frozen=True, slots=True)
class HubSource:
    """A dataset on the Hub: the parts of ``namespace/name[:config][@revision]``, None if left out."""

    repo: str
    config: str | None
    revision: str | None

    @classmethod
    def read(cls, source: str) -> HubSource | None:
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
    if source.revision is None:
        raise UserError(
            f"{source.dataset}: a Hub dataset must be pinned, so that the build can be repeated: "
            f"write {source.dataset}@<commit or tag> (and no file has that name)"
        )
    from huggingface_hub import HfApi

    def fetch() -> tuple[str | None, bool]:
        commit = HfApi().dataset_info(source.repo, revision=source.revision).sha
        return commit, not _is_pinned(source, commit)

    try:
        commit, moves = progress.call_within(TIMEOUT, f"the Hub, about {source.dataset}", fetch)
    except Exception as error:  # the client's errors have no common base; none of them is a `UserError`
        raise access_error(source, error) from error
    if commit is None:
        raise UserError(f"{source.dataset}@{source.revision}: the Hub names no commit of it; try again later")
    if moves:
        raise UserError(
            f"{source.dataset}@{source.revision}: {source.revision!r} is neither a tag nor a commit of 7 digits, "
            f"so it may move: write {source.dataset}@{commit}"
        )
    return commit


def stream(source: HubSource, split: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of train, validation (or "dev") or test in order; raise ``UserError`` if they can't be read."""
    commit = resolve_commit(source)
    if os.path.exists(source.repo):
        # `datasets` would read the folder instead, whatever the revision.
        raise UserError(f"{source.repo}: a local folder of that name hides the Hub dataset: run from another folder")
    return _stream(source, commit, split)


def _stream(source: HubSource, commit: str, split: str) -> Iterator[Mapping[str, Any]]:
    from datasets import load_dataset

    fetch = partial(progress.call_within, TIMEOUT, f"rows of {source.dataset}")
    try:
        splits = fetch(lambda: load_dataset(source.repo, source.config, revision=commit, streaming=True))
    except Exception as error:
        raise access_error(source, error) from error
    if (name := next((name for name in _SPLIT_NAMES[split] if name in splits), None)) is None:
        raise UserError(f"{source.dataset} has no {split} split, only {', '.join(splits)}")
    rows = iter(splits[name])
    try:
        while batch := fetch(lambda: list(islice(rows, BATCH))):
            yield from batch
    except Exception as error:
        raise access_error(source, error) from error


def _is_pinned(source: HubSource, commit: str | None) -> bool:
    from huggingface_hub import HfApi

    revision = source.revision or ""
    if commit is not None and len(revision) >= 7 and commit.startswith(revision):
        return True
    if _COMMIT.fullmatch(revision):
        return False
    tags = HfApi().list_repo_refs(source.repo, repo_type="dataset").tags
    return any(revision in (tag.name, tag.ref) for tag in tags)


def access_error(source: HubSource, error: Exception) -> UserError:
    """Return what a failed access to a dataset means for the user."""
    from huggingface_hub import errors

    name = f"{source.dataset}@{source.revision}"
    if isinstance(error, errors.RevisionNotFoundError):
        return UserError(f"{name}: the dataset has no such revision: write a commit or tag of it")
    if isinstance(error, errors.GatedRepoError):
        return UserError(f"{name}: gated: accept its terms on the Hub, then run `hf auth login`")
    if isinstance(error, errors.RepositoryNotFoundError):
        return UserError(f"{name}: no such dataset on the Hub (a private one needs `hf auth login`)")
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason = terminal.sanitize(lines[0])
    return UserError(f"{name}: can't be read from the Hub (is there a network?): {reason}")
