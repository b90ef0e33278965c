"""Put a release on the Hugging Face Hub; without --push, show what that would do.

safe-stepwise publish build/release --namespace my-name
safe-stepwise publish build/release --namespace my-name --push
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from releases.publish.checks import check_release
from releases.publish.folder import Release, read_release
from releases.publish.hub import SECONDS, connect
from releases.publish.leaderboard import listed
from releases.publish.plan import dry_run, plan_release
from releases.publish.push import Publisher, push
from safe_stepwise.errors import UserError
from safe_stepwise.store import progress
from scripts.cli import command, run, seconds


def main(arguments: Sequence[str]) -> None:
    """Show what a push would do, or push; raises ``UserError`` for what the user can mend."""
    parser = command("publish", "Publish a release that safe-stepwise regenerate made. A dry run unless --push.")
    add = parser.add_argument
    add("release", type=Path, metavar="DIR", help="made by safe-stepwise regenerate")
    owner = "the user or organization to publish under"
    add("--namespace", required=True, metavar="NS", help=owner)
    add("--push", action="store_true", help="write to the Hub")
    add("--private", action="store_true", help="make new repos and the collection private")
    limit = f"for an answer of the Hub (default {SECONDS:g}); uploads get 1 s for 100 kB more"
    add("--timeout", type=seconds, default=SECONDS, metavar="SECONDS", help=limit)
    boards = "without eval.yaml and .eval_results, by which the Hub lists the adapter's scores"
    add("--no-leaderboard", action="store_true", help=boards)
    options = parser.parse_args(arguments)
    from huggingface_hub import get_token

    release, token = read_release(options.release, options.namespace), get_token()
    if not options.no_leaderboard:
        release = listed(release, options.namespace)
    if options.push and not token:
        raise UserError("--push needs a token: set HF_TOKEN or run `hf auth login`")
    hub = connect(options.timeout)
    with _reading(release) as on_file:
        check_release(release, hub if options.push else None, on_file)
    if not options.push:
        print(dry_run(hub, release))
        return
    hub.ask(f"namespace {options.namespace}", hub.api.whoami)
    plans = plan_release(hub, release)
    publisher = Publisher(hub, str(token), options.namespace, options.private, tqdm.write)
    print(f"all repos are in {push(publisher, release, plans)}")


@contextmanager
def _reading(release: Release) -> Iterator[Callable[[str], None]]:
    """A bar over the files that are checked, once that takes more than a second."""
    total = sum(len(artifact.files) for artifact in release.artifacts)
    with progress.bar(total=total, unit="file", desc="check", delay=1) as bar:
        yield lambda _: (bar.update(), None)[1]


if __name__ == "__main__":
    run(main)
