"""Publish a release that safe-stepwise regenerate made, or a folder of builds. A dry run unless --push."""

from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from releases.publish.checks import check_release
from releases.publish.folder import read_release
from releases.publish.hub import TIMEOUT_S, connect
from releases.publish.leaderboard import add_tasks
from releases.publish.push import Publisher, dry_run, plan_release, push
from safe_stepwise.commands.values import Seconds
from safe_stepwise.errors import UserError
from safe_stepwise.store import progress
from scripts.cli import command, run


@dataclass(frozen=True, kw_only=True)
class Options:
    release: Path
    namespace: str
    push: bool = False
    private: bool = False
    timeout: Seconds = TIMEOUT_S
    no_leaderboard: bool = False


@command
def main(options: Options) -> str:
    """Push a release, or describe what that would do; raise ``UserError`` for a mistake of the user."""
    from huggingface_hub import get_token

    release, token = read_release(options.release, options.namespace), get_token()
    if not options.no_leaderboard:
        release = add_tasks(release)
    if options.push and not token:
        raise UserError("--push needs a token: set HF_TOKEN or run `hf auth login`")
    hub = connect(options.timeout)
    total = sum(len(artifact.files) for artifact in release.artifacts)
    with progress.bar(total=total, unit="file", desc="check", delay=1) as bar:
        check_release(release, hub if options.push else None, lambda _: bar.update())
    if not options.push:
        return dry_run(hub, release)
    hub.request(f"namespace {options.namespace}", hub.api.whoami)
    plans = plan_release(hub, release)
    publisher = Publisher(hub, str(token), options.namespace, options.private, tqdm.write)
    return "\n".join(["published:", *push(publisher, release, plans)])


if __name__ == "__main__":
    run(main)
