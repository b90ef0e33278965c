"""What publishing a release would do, repo by repo, and that in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from releases import report
from releases.publish.folder import Artifact, Release
from releases.publish.hub import Change, Diff, Hub, Remote, diff, remote, told
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import version_key
from safe_stepwise.store.tables import table

SHOWN = 12
"""Files of a state that a dry run lists; the rest are counted."""


@dataclass(frozen=True)
class RepoPlan:
    """One repo: how it stands, and how it differs from the release."""

    remote: Remote | None
    diff: Diff
    tagged: str | None
    """The commit that has the release's tag and content already."""

    @property
    def artifact(self) -> Artifact:
        """What the repo is to hold."""
        return self.diff.artifact

    @property
    def standing(self) -> str:
        """In a word or two."""
        if self.tagged is not None:
            return "published"
        if self.remote is None:
            return "to be created"
        return "to be changed" if self.diff.writes else "unchanged, to be tagged"


def plan_release(hub: Hub, release: Release) -> list[RepoPlan]:
    """Compare every artifact with the Hub; reads only.

    Raises UserError for a tag of this version that holds something else (a tag is never moved),
    for a newer version on the Hub (``main`` must not go back), and when the Hub can't be read.
    """
    return [plan_repo(hub, release, artifact) for artifact in release.artifacts]


def plan_repo(hub: Hub, release: Release, artifact: Artifact) -> RepoPlan:
    """The same of one artifact."""
    there = remote(hub, artifact)
    if there is None:
        return RepoPlan(None, diff(hub, artifact, None), None)
    tagged = there.tags.get(release.version)
    if tagged is not None:
        held = diff(hub, artifact, tagged)
        if held.writes:
            raise UserError(
                f"{artifact.url}: {release.version} is on the Hub with other content "
                f"({_first(held.changes)}); a tag is never moved: give the release a new version"
            )
        return RepoPlan(there, held, tagged)
    newer = [tag for tag in there.tags if _newer(tag, release.version)]
    if newer:
        raise UserError(
            f"{artifact.url}: the Hub has {max(newer, key=version_key)} already, which is newer "
            f"than {release.version}; give the release a higher version"
        )
    return RepoPlan(there, diff(hub, artifact, there.head), None)


def dry_run(hub: Hub, release: Release) -> str:
    """What there is to say of a release that is not pushed; reads the Hub if it can."""
    try:
        plans, note = plan_release(hub, release), ""
    except UserError as error:
        if "can't be reached" not in str(error) and "HF_HUB_OFFLINE" not in str(error):
            raise
        # As if the Hub had none of the repos.
        plans = [RepoPlan(None, diff(None, a, None), None) for a in release.artifacts]
        note = f"not compared with the Hub: {error}"
    parts = [f"{release.root}: release {release.version}, checked; nothing was written (dry run)"]
    parts += [note] if note else []
    parts += [describe(plan, compared=not note) for plan in plans]
    if release.left_out:
        parts.append(f"stays here: {_shortened(release.left_out)}")
    if release.too_long:
        parts.append(
            f"too long to be published (more than {report.MOST:,} bytes of lines): {_shortened(release.too_long)}"
        )
    return "\n\n".join([*parts, "add --push to publish this"])


def describe(plan: RepoPlan, compared: bool = True) -> str:
    """One repo of a dry run: its files by state, with sizes in bytes."""
    rows: list[tuple[object, ...]] = [("file", "on the Hub", "bytes")]
    for state in ("new", "changed", "gone", "same"):
        found = [change for change in plan.diff.changes if change.state == state]
        said = state if compared else "not compared"
        rows += [(told(change.path), said, change.size) for change in found[:SHOWN]]
        if rest := found[SHOWN:]:
            rows.append((f"... and {len(rest)} more", said, sum(c.size for c in rest)))
    standing = plan.standing if compared else "not compared"
    total = sum(file.size for file in plan.artifact.files)
    head = f"{plan.artifact.url}: {standing}, {len(plan.artifact.files)} files, {total:,} bytes"
    return f"{head}\n{table(rows)}"


def _newer(tag: str, version: str) -> bool:
    try:
        return version_key(tag) > version_key(version)
    except UserError:  # a tag of the user's own
        return False


def _first(changes: Sequence[Change]) -> str:
    change = next(change for change in changes if change.state != "same")
    return f"{told(change.path)} is {change.state}"


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if names[SHOWN:] else ""
    return ", ".join(names[:SHOWN]) + more
