"""A verifier set by its source: a folder, or a dataset of the Hub at a revision, pulled."""

from collections.abc import Sequence
from pathlib import Path

from builders.benchmarks.hub import HubSource, resolve_commit
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import STATISTICS, STEPS, TRAIN, VERIFIER_STEPS
from safe_stepwise.store.parquet import dataset_folder


def find_steps(source: str, split: str, configs: Sequence[str] = (STEPS,)) -> tuple[Path, str, str | None]:
    """The folder of a verifier set with this split (and train), the set's name and its commit.

    Of a set on the Hub the ``configs`` are pulled.

    Raises ``UserError`` for a dataset that is not pinned, or can't be pulled.
    """
    folder = Path(source)
    hub = None if folder.exists() else HubSource.read(source)
    if hub is None:
        return dataset_folder(folder, VERIFIER_STEPS) or folder, VERIFIER_STEPS, None
    from huggingface_hub import snapshot_download

    commit = resolve_commit(hub)
    splits = dict.fromkeys((split, TRAIN))
    wanted = [f"data/{config}/{name}-*.parquet" for config in configs for name in splits]
    files = [*wanted, f"{STATISTICS}/*.json"]
    try:
        found = snapshot_download(hub.repo, repo_type="dataset", revision=commit, allow_patterns=files)
    except Exception as error:  # the client's errors have no common base; none is ours
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{hub.repo}@{hub.revision}: can't be pulled ({reason})") from error
    return Path(found), hub.repo, commit
