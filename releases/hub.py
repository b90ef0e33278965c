"""How things stand on the Hub, read only; and what its errors mean."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from releases.folder import KEPT, Artifact, LocalFile
from releases.readme import merged
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import README

State = Literal["new", "changed", "same", "gone"]


@dataclass(frozen=True)
class RemoteFile:
    """A file as the Hub lists it; ``digest`` is SHA-256 if it is a large one, else git's."""

    size: int
    digest: str
    large: bool


@dataclass(frozen=True)
class Remote:
    """A repo on the Hub."""

    head: str
    """The commit of ``main``."""
    tags: Mapping[str, str]
    """Commits by tag."""


@dataclass(frozen=True)
class Change:
    """What publishing does to one file; ``size`` is that of the new content, in bytes."""

    path: str
    size: int
    state: State


@dataclass(frozen=True)
class Diff:
    """An artifact against a commit of its repo."""

    artifact: Artifact
    """With its card as it would be pushed: ours, and what others added to its metadata."""
    changes: tuple[Change, ...]

    @property
    def writes(self) -> bool:
        """Whether anything differs."""
        return any(change.state != "same" for change in self.changes)


def remote(api: Any, artifact: Artifact) -> Remote | None:
    """The repo, or None when there is none that this token may see.

    Raises UserError for anything else, as when the Hub can't be reached: a blip is no absence.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    with access(artifact.repo):
        try:
            refs = api.list_repo_refs(artifact.repo, repo_type=artifact.kind)
        except RepositoryNotFoundError:
            return None
    heads = {ref.name: ref.target_commit for ref in refs.branches}
    if "main" not in heads:
        raise UserError(f"{artifact.url}: has no branch main on the Hub; delete the repo there")
    return Remote(heads["main"], {ref.name: ref.target_commit for ref in refs.tags})


def diff(api: Any, artifact: Artifact, commit: str | None) -> Diff:
    """Compare with a commit (None: with an empty repo); the repo's own metadata is kept."""
    there = {} if commit is None else files_at(api, artifact, commit)
    if commit is not None and README in there:
        artifact = _with_card_of(api, artifact, commit)
    changes = [Change(f.path, f.size, _state(f, there.get(f.path))) for f in artifact.files]
    ours = {file.path for file in artifact.files} | {KEPT}
    changes += [Change(p, f.size, "gone") for p, f in sorted(there.items()) if p not in ours]
    return Diff(artifact, tuple(changes))


def files_at(api: Any, artifact: Artifact, commit: str) -> dict[str, RemoteFile]:
    """Every file of a commit, by path."""
    from huggingface_hub.hf_api import RepoFile

    with access(artifact.repo):
        entries = list(
            api.list_repo_tree(
                artifact.repo, repo_type=artifact.kind, revision=commit, recursive=True
            )
        )
    return {
        entry.path: RemoteFile(
            entry.size, entry.lfs.sha256 if entry.lfs else entry.blob_id, bool(entry.lfs)
        )
        for entry in entries
        if isinstance(entry, RepoFile)
    }


def _state(file: LocalFile, there: RemoteFile | None) -> State:
    if there is None:
        return "new"
    if file.size != there.size:
        return "changed"
    return "same" if there.digest == (file.sha256 if there.large else file.git_oid) else "changed"


def _with_card_of(api: Any, artifact: Artifact, commit: str) -> Artifact:
    if artifact.card is None:
        return artifact
    with access(artifact.repo), tempfile.TemporaryDirectory() as folder:
        path = api.hf_hub_download(
            artifact.repo, README, repo_type=artifact.kind, revision=commit, local_dir=folder
        )
        theirs = Path(path).read_text(encoding="utf-8")
    ours = artifact.card.read().decode()
    text = merged(ours, theirs, f"{artifact.url}/README.md on the Hub").encode()
    if text == ours.encode():
        return artifact
    card = LocalFile(README, text, len(text))
    return replace(artifact, files=tuple(card if f.path == README else f for f in artifact.files))


@contextmanager
def access(what: str) -> Iterator[None]:
    """Turn whatever the client raises into one line about ``what``."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except Exception as error:  # the client's errors have no common base; none is ours
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HfHubHTTPError):
            cause = cause.__cause__
        raise UserError(f"{what}: {_meaning(error, cause)}") from error


def _meaning(error: Exception, http: Any) -> str:
    from huggingface_hub.errors import LocalTokenNotFoundError, OfflineModeIsEnabled

    status = http.response.status_code if http is not None else None
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set; unset it"
    if status == 401 or isinstance(error, LocalTokenNotFoundError):
        return "the Hub takes no such token; set HF_TOKEN or run `hf auth login`"
    if status == 403:
        return "this token may not write there; use one with write access to the namespace"
    if status == 404:
        return "not found on the Hub, or not for this token to see"
    if status in (409, 412):
        return "somebody else changed it meanwhile; run the same command again"
    if status is not None and status < 500 and status != 429:
        said = " ".join(str(http.server_message or "no reason given").split())
        return f"the Hub refused it ({status}): {said}"
    if status is not None:
        return f"the Hub answered {status}; nothing is lost, run the same command again"
    line = (str(error).strip().splitlines() or [""])[0]
    told = f"{type(error).__name__}: {line}" if line else type(error).__name__
    return f"the Hub can't be reached ({told}); nothing is lost, run the same command again"
