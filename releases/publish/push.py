"""Publish a release on the Hub: plan, commit to each repo, load back, tag.

An *artifact* is what one repo of the Hub holds: a dataset, an adapter, the Space. A `RepoPlan` lists the changes that
publish it. Each step reads the Hub and does only what is missing, so the same command completes an interrupted run,
and a run with nothing to do writes nothing. No repo is tagged before all have loaded back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from releases import report
from releases.publish.folder import Artifact, FinishedRelease
from releases.publish.hub import Change, Hub, Remote, diff, read_remote, shorten
from releases.publish.leaderboard import metadata
from releases.publish.load_back import Pushed, load_back
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import version_key
from safe_stepwise.store.tables import text_table

MAX_LISTED = 12
"""The largest number of files of each state that a dry run lists by name."""


@dataclass(frozen=True)
class RepoPlan:
    """The changes that publish an artifact in its repo."""

    artifact: Artifact
    changes: Sequence[Change]
    remote: Remote | None = None
    tagged: str | None = None
    """The commit with the release's tag, if the release is published there."""

    @property
    def writes(self) -> list[Change]:
        """The changes of files that differ from the Hub's."""
        return [change for change in self.changes if change.state != "same"]

    @property
    def status(self) -> str:
        """A phrase for a dry run: whether the repo is published, or what pushing does to it."""
        if self.tagged is not None:
            return "published"
        if self.remote is None:
            return "to be created"
        return "to be changed" if self.writes else "unchanged, to be tagged"


def plan_release(hub: Hub, release: FinishedRelease) -> list[RepoPlan]:
    """Compare every artifact with the Hub; raise ``UserError`` for another or newer version, or an unread Hub."""
    return [plan_repo(hub, release, artifact) for artifact in release.artifacts]


def plan_repo(hub: Hub, release: FinishedRelease, artifact: Artifact) -> RepoPlan:
    """Compare one artifact with the Hub, as `plan_release` does."""
    if (repo := read_remote(hub, artifact)) is None:
        return _creation_plan(artifact)
    if (tagged := repo.tags.get(release.version)) is not None:
        plan = RepoPlan(*diff(hub, artifact, tagged), repo, tagged)
        for change in plan.writes:
            raise UserError(
                f"{artifact.url}: {release.version} is on the Hub with other content ({shorten(change.path)} is "
                f"{change.state}); a tag is never moved: give the release a new version"
            )
        return plan
    if newer := [tag for tag in repo.tags if _is_newer(tag, release.version)]:
        raise UserError(
            f"{artifact.url}: the Hub has {max(newer, key=version_key)} already, which is newer "
            f"than {release.version}; give the release a higher version"
        )
    return RepoPlan(*diff(hub, artifact, repo.head), repo)


def _creation_plan(artifact: Artifact) -> RepoPlan:
    return RepoPlan(artifact, [Change(file.path, file.size, "new") for file in artifact.files])


def dry_run(hub: Hub, release: FinishedRelease) -> str:
    """Describe what pushing a release would do; compare with the Hub if it can be reached."""
    try:
        plans, note = plan_release(hub, release), ""
    except UserError as error:
        if "can't be reached" not in str(error) and "HF_HUB_OFFLINE" not in str(error):
            raise
        plans = [*map(_creation_plan, release.artifacts)]
        note = f"not compared with the Hub: {error}"
    sections = [f"{release.root}: release {release.version}, checked; nothing was written (dry run)"]
    sections += [note] if note else []
    sections += [describe(plan, compared=not note) for plan in plans]
    if release.left_out:
        sections.append(f"stays here: {_list_names(release.left_out)}")
    if release.too_long:
        limit = f"more than {report.MAX_PACKED_BYTES:,} bytes of lines"
        sections.append(f"too long to be published ({limit}): {_list_names(release.too_long)}")
    return "\n\n".join([*sections, "add --push to publish this"])


def describe(plan: RepoPlan, compared: bool = True) -> str:
    """Render a repo's plan for a dry run: a table of files by state, with sizes in bytes."""
    rows: list[tuple[object, ...]] = [("file", "on the Hub", "bytes")]
    for state in ("new", "changed", "gone", "same"):
        files = [change for change in plan.changes if change.state == state]
        column = state if compared else "not compared"
        rows += [(shorten(change.path), column, change.size) for change in files[:MAX_LISTED]]
        if unlisted := files[MAX_LISTED:]:
            rows.append((f"... and {len(unlisted)} more", column, sum(c.size for c in unlisted)))
    status = plan.status if compared else "not compared"
    total = sum(file.size for file in plan.artifact.files)
    head = f"{plan.artifact.url}: {status}, {len(plan.artifact.files)} files, {total:,} bytes"
    return f"{head}\n{text_table(rows)}"


def _is_newer(tag: str, version: str) -> bool:
    try:
        return version_key(tag) > version_key(version)
    except UserError:  # a tag that is no version
        return False


def _list_names(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - MAX_LISTED} more" if names[MAX_LISTED:] else ""
    return ", ".join(names[:MAX_LISTED]) + suffix


@dataclass(frozen=True)
class Publisher:
    """The namespace to publish in, and the functions that write to the Hub and report."""

    hub: Hub
    token: str
    namespace: str
    private: bool
    report: Callable[[str], None]
    load_back: Callable[[Sequence[Pushed], Hub, str], list[str]] = load_back


def push(publisher: Publisher, release: FinishedRelease, plans: Sequence[RepoPlan]) -> list[str]:
    """Publish a release by its plans, as far as it is not; return its repos' addresses; raise ``UserError``."""
    pending = [plan for plan in plans if plan.tagged is None]
    if publisher.private:
        for artifact in (plan.artifact for plan in pending if plan.remote is not None):
            if not publisher.hub.call(artifact.url, "repo_info", artifact.repo, repo_type=artifact.kind).private:
                raise UserError(
                    f"{artifact.url}: is public already; make it private on the Hub, or leave out --private"
                )
    for plan in plans:
        if plan.tagged is not None:
            publisher.report(f"{plan.artifact.url}: {release.version} is published, nothing to do")
    for plan in pending:
        if plan.remote is None:
            create(publisher, plan.artifact)
    if pushed := [commit(publisher, release, plan) for plan in pending]:
        publisher.report(f"loading {len(pushed)} repos back from the Hub, by their commits")
        for line in publisher.load_back(pushed, publisher.hub, publisher.token):
            publisher.report(line)
    for item in pushed:
        tag(publisher, release.version, item)
    return [shorten(f"{publisher.hub.api.endpoint}/{plan.artifact.url}") for plan in plans]


def create(publisher: Publisher, artifact: Artifact) -> None:
    """Create an artifact's repo; all are created before any upload, so that a forbidden namespace shows at once."""
    sdk = None
    if artifact.kind == "space" and artifact.card is not None:
        sdk = metadata(artifact.card.read().decode(), artifact.folder)["sdk"]
    options: dict[str, Any] = {"repo_type": artifact.kind, "private": publisher.private, "space_sdk": sdk}
    publisher.hub.call(artifact.url, "create_repo", artifact.repo, **options, exist_ok=True)


def commit(publisher: Publisher, release: FinishedRelease, plan: RepoPlan) -> Pushed:
    """Commit all changes on top of the ``main`` that was planned for, if there are any; return artifact and commit."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    if (repo := plan.remote) is None:  # created a moment ago
        if (repo := read_remote(publisher.hub, plan.artifact)) is None:
            raise UserError(f"{plan.artifact.url}: was created but can't be seen; run this again")
        plan = RepoPlan(*diff(publisher.hub, plan.artifact, repo.head), repo)
    artifact, writes = plan.artifact, plan.writes
    if not writes:
        publisher.report(f"{artifact.url}: unchanged at {repo.head[:7]}")
        return Pushed(artifact, repo.head)
    contents = {file.path: file.content for file in artifact.files}
    operations = [
        CommitOperationDelete(change.path, is_folder=False)
        if change.state == "gone"
        else CommitOperationAdd(change.path, contents[change.path])
        for change in writes
    ]
    size = sum(change.size for change in writes if change.state != "gone")
    publisher.report(f"{artifact.url}: {len(writes)} files, {size:,} bytes to upload")
    result = publisher.hub.call(
        artifact.url,
        "create_commit",
        artifact.repo,
        operations,
        size=size,
        repo_type=artifact.kind,
        commit_message=f"Release {release.version}",
        commit_description=f"safe-stepwise; SHA-256 of its lock: {release.lock_sha256}",
        parent_commit=repo.head,
    )
    publisher.report(f"{artifact.url}: commit {shorten(result.oid[:7])}")
    return Pushed(artifact, str(result.oid))


def tag(publisher: Publisher, version: str, pushed: Pushed) -> None:
    """Tag a commit with the version; raise ``UserError`` if the tag is at another commit."""
    artifact = pushed.artifact
    message = f"safe-stepwise release {version}"
    options: dict[str, Any] = {"tag": version, "tag_message": message, "revision": pushed.commit}
    publisher.hub.call(artifact.url, "create_tag", artifact.repo, **options, repo_type=artifact.kind, exist_ok=True)
    repo = read_remote(publisher.hub, artifact)
    if repo is None or repo.tags.get(version) != pushed.commit:
        raise UserError(f"{artifact.url}: somebody else set {version} meanwhile; look there")
    publisher.report(f"{artifact.url}: tagged {version}")
