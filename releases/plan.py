"""What publishing a release would do, repo by repo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from releases.folder import Artifact, Release
from releases.hub import Change, Diff, Remote, diff, remote
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import version_key


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


def plan_release(api: Any, release: Release) -> list[RepoPlan]:
    """Compare every artifact with the Hub; reads only.

    Raises UserError for a tag of this version that holds something else (a tag is never moved),
    for a newer version on the Hub (``main`` must not go back), and when the Hub can't be read.
    """
    return [plan_repo(api, release, artifact) for artifact in release.artifacts]


def plan_repo(api: Any, release: Release, artifact: Artifact) -> RepoPlan:
    """The same of one artifact."""
    there = remote(api, artifact)
    if there is None:
        return RepoPlan(None, diff(api, artifact, None), None)
    tagged = there.tags.get(release.version)
    if tagged is not None:
        held = diff(api, artifact, tagged)
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
    return RepoPlan(there, diff(api, artifact, there.head), None)


def unread_plan(release: Release) -> list[RepoPlan]:
    """The plan when the Hub can't be asked: as if it had none of the repos."""
    return [RepoPlan(None, diff(None, a, None), None) for a in release.artifacts]


def _newer(tag: str, version: str) -> bool:
    try:
        return version_key(tag) > version_key(version)
    except UserError:  # a tag of the user's own
        return False


def _first(changes: Sequence[Change]) -> str:
    change = next(change for change in changes if change.state != "same")
    return f"{change.path} is {change.state}"
