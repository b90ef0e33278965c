"""Read the state of repos on the Hub, with time limits and errors that say what to do."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from releases.publish.folder import HUB_FILE, Artifact, LocalFile
from releases.publish.leaderboard import merge_card
from safe_stepwise.errors import UserError
from safe_stepwise.store import names, progress, terminal

TIMEOUT_S = 120.0
"""The longest wait for an answer of the Hub, in seconds; the client itself gives up after at most 83."""
MIN_BYTES_PER_S = 100_000
"""The slowest transfer of files in bytes per second, by which their size lengthens the wait."""
MAX_FILES = 100_000
"""The maximum number of files that a repo may list."""

shorten = partial(terminal.sanitize, limit=300)
"""Return a text from the Hub as it may be printed: one short line without credentials."""
State = Literal["new", "changed", "same", "gone"]


@dataclass(frozen=True)
class Remote:
    """The commits of a repo on the Hub."""

    head: str
    """The commit of ``main``."""
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Change:
    """The change of one file by publishing; ``size`` is that of the new content, in bytes."""

    path: str
    size: int
    state: State


@dataclass(frozen=True)
class Hub:
    """A client of the Hub with a time limit in seconds."""

    api: Any
    """An `HfApi`."""
    seconds: float = TIMEOUT_S

    def call(self, subject: str, method: str, *args: Any, size: int = 0, **options: Any) -> Any:
        """Call a method of the client, as `request` does."""
        return self.request(subject, lambda: getattr(self.api, method)(*args, **options), size)

    def request(self, subject: str, call: Callable[[], Any], size: int = 0) -> Any:
        """Return what ``call`` gets from the Hub; raise ``UserError`` for any error, or out of time (by the bytes)."""
        with access(subject):
            return progress.call_within(self.seconds + size / MIN_BYTES_PER_S, f"the Hub, about {subject}", call)


def connect(seconds: float = TIMEOUT_S) -> Hub:
    """Connect to the Hub of ``HF_ENDPOINT``."""
    from huggingface_hub import HfApi

    return Hub(HfApi(library_name="safe-stepwise"), seconds)


def read_remote(hub: Hub, artifact: Artifact) -> Remote | None:
    """Return a repo's commits; None if the token may see none; raise ``UserError`` if the Hub can't be read."""
    from huggingface_hub.errors import RepositoryNotFoundError

    def list_refs() -> Any:
        try:
            return hub.api.list_repo_refs(artifact.repo, repo_type=artifact.kind)
        except RepositoryNotFoundError:
            return None

    if (refs := hub.request(artifact.repo, list_refs)) is None:
        return None
    heads = {ref.name: ref.target_commit for ref in refs.branches}
    if "main" not in heads:
        raise UserError(f"{artifact.url}: has no branch main on the Hub; delete the repo there")
    return Remote(heads["main"], {ref.name: ref.target_commit for ref in refs.tags})


def diff(hub: Hub, artifact: Artifact, commit: str) -> tuple[Artifact, list[Change]]:
    """Compare an artifact with a commit; return it, with others' metadata in the card, and the changes."""
    remote_files = files_at(hub, artifact, commit)
    if names.README in remote_files:
        artifact = _with_card_of(hub, artifact, commit)
    changes = [Change(f.path, f.size, _state(f, remote_files.get(f.path))) for f in artifact.files]
    local_paths = {file.path for file in artifact.files} | {HUB_FILE}
    changes += [Change(p, f.size, "gone") for p, f in sorted(remote_files.items()) if p not in local_paths]
    return artifact, changes


def files_at(hub: Hub, artifact: Artifact, commit: str) -> dict[str, Any]:
    """List the files of a commit: `huggingface_hub`'s ``RepoFile`` by path."""
    from huggingface_hub.hf_api import RepoFile

    def list_tree() -> list[Any]:
        tree = hub.api.list_repo_tree(artifact.repo, repo_type=artifact.kind, revision=commit, recursive=True)
        return list(islice(tree, MAX_FILES + 1))

    entries = hub.request(artifact.repo, list_tree)
    if len(entries) > MAX_FILES:
        raise UserError(f"{artifact.url}: lists more than {MAX_FILES:,} files; look there")
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def _state(file: LocalFile, remote_file: Any) -> State:
    """Compare a file by size and digest: SHA-256 for files in LFS, git's digest for the rest."""
    if remote_file is None:
        return "new"
    is_same = file.size == remote_file.size and (
        remote_file.lfs.sha256 == file.sha256 if remote_file.lfs else remote_file.blob_id == file.git_oid
    )
    return "same" if is_same else "changed"


def _with_card_of(hub: Hub, artifact: Artifact, commit: str) -> Artifact:
    if artifact.card is None:
        return artifact
    place = f"{artifact.url}/README.md on the Hub"
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"repo_type": artifact.kind, "revision": commit, "local_dir": folder}
        path = hub.call(artifact.repo, "hf_hub_download", artifact.repo, names.README, **options)
        try:
            remote_card = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise UserError(f"{place}: not UTF-8 text; mend it there") from None
    local_card = artifact.card.read().decode()
    text = merge_card(local_card, remote_card, place).encode()
    if text == local_card.encode():
        return artifact
    card = LocalFile(names.README, text, len(text))
    return replace(artifact, files=tuple(card if f.path == names.README else f for f in artifact.files))


@contextmanager
def access(subject: str) -> Iterator[None]:
    """Raise any error of the client within as ``UserError`` of one line about ``subject``."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except (UserError, KeyboardInterrupt):
        raise
    except Exception as error:  # the client's errors have no common base
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HfHubHTTPError):
            cause = cause.__cause__
        raise UserError(f"{subject}: {_explain_error(error, cause)}") from error


def _explain_error(error: Exception, http: Any) -> str:
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
        return f"the Hub refused it ({status}): {shorten(http.server_message or 'no reason given')}"
    if status is not None:
        return f"the Hub answered {status}; nothing is lost, run the same command again"
    if isinstance(error, progress.WaitedTooLong):
        return f"the Hub can't be reached ({error}; see --timeout); run the same command again"
    line = (str(error).strip().splitlines() or [""])[0]
    cause = f"{type(error).__name__}: {shorten(line)}" if line else type(error).__name__
    return f"the Hub can't be reached ({cause}); nothing is lost, run the same command again"
