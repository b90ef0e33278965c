"""Put a release on the Hugging Face Hub; without --push, show what that would do.

python -m scripts.publish build/release --namespace my-name
python -m scripts.publish build/release --namespace my-name --push
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from releases.checks import check_release
from releases.folder import Release, read_release
from releases.hub import access
from releases.plan import RepoPlan, plan_release, unread_plan
from releases.push import Publisher, push
from safe_stepwise.errors import UserError
from scripts.cli import Parser, run, table

SHOWN = 12
"""Files of a state that a dry run lists; the rest are counted."""


def main(arguments: Sequence[str]) -> None:
    """Show what a push would do, or push; raises ``UserError`` for what the user can mend."""
    parser = Parser(
        prog="python -m scripts.publish",
        description="Publish a release that scripts.regenerate made. A dry run unless --push.",
        epilog=(
            "example:\n"
            "  python -m scripts.publish build/release --namespace my-name --push\n\n"
            "Checks digests, cards, secrets and leaks; makes one commit a repo; loads all of\n"
            "them back at those commits; only then sets the tag, which is never moved. The same\n"
            "command completes a run that was interrupted, and does nothing when all is there.\n"
            "The token is HF_TOKEN, or what `hf auth login` stored; a dry run needs none."
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("release", type=Path, metavar="DIR", help="made by scripts.regenerate")
    add(
        "--namespace", required=True, metavar="NS", help="the user or organization to publish under"
    )
    add("--push", action="store_true", help="write to the Hub")
    add("--private", action="store_true", help="make new repos and the collection private")
    options = parser.parse_args(arguments)
    from huggingface_hub import HfApi, get_token

    release, token = read_release(options.release, options.namespace), get_token()
    if options.push and not token:
        raise UserError("--push needs a token: set HF_TOKEN or run `hf auth login`")
    api = HfApi(library_name="safe-stepwise")
    with _reading(release) as on_file, access("the cards"):
        check_release(release, token, online=options.push, on_file=on_file)
    if not options.push:
        print(dry_run(api, release))
        return
    with access(f"namespace {options.namespace}"):
        api.whoami()
    plans = plan_release(api, release)
    publisher = Publisher(api, str(token), options.namespace, options.private, tqdm.write)
    print(f"all repos are in {push(publisher, release, plans)}")


def dry_run(api: object, release: Release) -> str:
    """What there is to say of a release that is not pushed; reads the Hub if it can."""
    try:
        plans, note = plan_release(api, release), ""
    except UserError as error:
        if "can't be reached" not in str(error) and "HF_HUB_OFFLINE" not in str(error):
            raise
        plans, note = unread_plan(release), f"not compared with the Hub: {error}"
    parts = [f"{release.root}: release {release.version}, checked; nothing was written (dry run)"]
    parts += [note] if note else []
    parts += [describe(plan, compared=not note) for plan in plans]
    if release.left_out:
        parts.append(f"stays here: {_shortened(release.left_out)}")
    return "\n\n".join([*parts, "add --push to publish this"])


def describe(plan: RepoPlan, compared: bool = True) -> str:
    """One repo of a dry run: its files by state, with sizes in bytes."""
    rows: list[tuple[object, ...]] = [("file", "on the Hub", "bytes")]
    for state in ("new", "changed", "gone", "same"):
        found = [change for change in plan.diff.changes if change.state == state]
        said = state if compared else "not compared"
        rows += [(change.path, said, change.size) for change in found[:SHOWN]]
        if found[SHOWN:]:
            rest = found[SHOWN:]
            rows.append((f"... and {len(rest)} more", said, sum(c.size for c in rest)))
    standing = plan.standing if compared else "not compared"
    total = sum(file.size for file in plan.artifact.files)
    head = f"{plan.artifact.url}: {standing}, {len(plan.artifact.files)} files, {total:,} bytes"
    return f"{head}\n{table(rows)}"


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if names[SHOWN:] else ""
    return ", ".join(names[:SHOWN]) + more


@contextmanager
def _reading(release: Release) -> Iterator[Callable[[str], None]]:
    """A bar over the files that are checked, once that takes more than a second."""
    total = sum(len(artifact.files) for artifact in release.artifacts)
    with tqdm(total=total, unit="file", desc="check", delay=1) as bar:
        yield lambda _: (bar.update(), None)[1]


if __name__ == "__main__":
    run(main)
