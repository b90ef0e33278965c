"""Publish a release: what that would do, in words; one commit a repo, load back, tag, collection.

Every step asks the Hub what is there and does what is owed, so a run that was interrupted at any
point is completed by the same command, and one that has nothing to do writes nothing. Tags come
after all repos have loaded back: a release has all of its tags, or an interrupted run owes some.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from releases import report
from releases.publish.folder import Artifact, Collection, Release
from releases.publish.hub import Change, Hub, Remote, diff, remote, shorten
from releases.publish.leaderboard import metadata
from releases.publish.load_back import Pushed, load_back
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import version_key
from safe_stepwise.store.tables import text_table

MOST_LISTED = 12
"""Files of a state that a dry run lists; the rest are counted."""


@dataclass(frozen=True)
class RepoPlan:
    """One repo: what it is to hold, how that differs from what it holds, and how it stands."""

    artifact: Artifact
    changes: Sequence[Change]
    remote: Remote | None = None
    tagged: str | None = None
    """The commit that has the release's tag and content already."""

    @property
    def writes(self) -> list[Change]:
        """What differs."""
        return [change for change in self.changes if change.state != "same"]

    @property
    def standing(self) -> str:
        """In a word or two."""
        if self.tagged is not None:
            return "published"
        if self.remote is None:
            return "to be created"
        return "to be changed" if self.writes else "unchanged, to be tagged"


def plan_release(hub: Hub, release: Release) -> list[RepoPlan]:
    """Compare every artifact with the Hub; reads only.

    Raises UserError for a tag of this version that holds something else (a tag is never moved),
    for a newer version on the Hub (``main`` must not go back), and when the Hub can't be read.
    """
    return [plan_repo(hub, release, artifact) for artifact in release.artifacts]


def plan_repo(hub: Hub, release: Release, artifact: Artifact) -> RepoPlan:
    """The same of one artifact."""
    repo = remote(hub, artifact)
    if repo is None:
        return _creation_plan(artifact)
    tagged = repo.tags.get(release.version)
    if tagged is not None:
        plan = RepoPlan(*diff(hub, artifact, tagged), repo, tagged)
        for change in plan.writes:
            raise UserError(
                f"{artifact.url}: {release.version} is on the Hub with other content ({shorten(change.path)} is "
                f"{change.state}); a tag is never moved: give the release a new version"
            )
        return plan
    newer = [tag for tag in repo.tags if _newer(tag, release.version)]
    if newer:
        raise UserError(
            f"{artifact.url}: the Hub has {max(newer, key=version_key)} already, which is newer "
            f"than {release.version}; give the release a higher version"
        )
    return RepoPlan(*diff(hub, artifact, repo.head), repo)


def _creation_plan(artifact: Artifact) -> RepoPlan:
    """The plan of a repo that is not there."""
    return RepoPlan(artifact, [Change(file.path, file.size, "new") for file in artifact.files])


def dry_run(hub: Hub, release: Release) -> str:
    """What there is to say of a release that is not pushed; reads the Hub if it can."""
    try:
        plans, note = plan_release(hub, release), ""
    except UserError as error:
        if "can't be reached" not in str(error) and "HF_HUB_OFFLINE" not in str(error):
            raise
        plans = [*map(_creation_plan, release.artifacts)]  # as if the Hub had none of the repos
        note = f"not compared with the Hub: {error}"
    sections = [f"{release.root}: release {release.version}, checked; nothing was written (dry run)"]
    sections += [note] if note else []
    sections += [describe(plan, compared=not note) for plan in plans]
    if release.left_out:
        sections.append(f"stays here: {_shortened(release.left_out)}")
    if release.too_long:
        sections.append(
            f"too long to be published (more than {report.MOST:,} bytes of lines): {_shortened(release.too_long)}"
        )
    return "\n\n".join([*sections, "add --push to publish this"])


def describe(plan: RepoPlan, compared: bool = True) -> str:
    """One repo of a dry run: its files by state, with sizes in bytes."""
    rows: list[tuple[object, ...]] = [("file", "on the Hub", "bytes")]
    for state in ("new", "changed", "gone", "same"):
        files = [change for change in plan.changes if change.state == state]
        column = state if compared else "not compared"
        rows += [(shorten(change.path), column, change.size) for change in files[:MOST_LISTED]]
        if unlisted := files[MOST_LISTED:]:
            rows.append((f"... and {len(unlisted)} more", column, sum(c.size for c in unlisted)))
    standing = plan.standing if compared else "not compared"
    total = sum(file.size for file in plan.artifact.files)
    head = f"{plan.artifact.url}: {standing}, {len(plan.artifact.files)} files, {total:,} bytes"
    return f"{head}\n{text_table(rows)}"


def _newer(tag: str, version: str) -> bool:
    try:
        return version_key(tag) > version_key(version)
    except UserError:  # a tag of the user's own
        return False


def _shortened(names: Sequence[str]) -> str:
    suffix = f" and {len(names) - MOST_LISTED} more" if names[MOST_LISTED:] else ""
    return ", ".join(names[:MOST_LISTED]) + suffix


MOST_COLLECTIONS = 10_000
"""Of a namespace that are looked at."""
LoadBack = Callable[[Sequence[Pushed], Hub, str], list[str]]


@dataclass(frozen=True)
class Publisher:
    """Who publishes where, and who hears of it."""

    hub: Hub
    token: str
    namespace: str
    private: bool
    report: Callable[[str], None]
    load_back: LoadBack = load_back


def push(publisher: Publisher, release: Release, plans: Sequence[RepoPlan]) -> str:
    """Do what the plans say is owed; returns the address of the collection.

    Raises UserError, with everything done so far in place, when the Hub refuses something or what
    was pushed does not load back; the same call then completes it.
    """
    pending = [plan for plan in plans if plan.tagged is None]
    if publisher.private:
        # What is meant to be private must not end up in a repo that all can read.
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
    pushed = [commit(publisher, release, plan) for plan in pending]
    if pushed:
        publisher.report(f"loading {len(pushed)} repos back from the Hub, by their commits")
        for line in publisher.load_back(pushed, publisher.hub, publisher.token):
            publisher.report(line)
    for item in pushed:
        tag(publisher, release.version, item)
    return collect(publisher, release.collection, [plan.artifact for plan in plans])


def create(publisher: Publisher, artifact: Artifact) -> None:
    """Make the repo; first of all, so that a forbidden namespace shows before an upload."""
    sdk = None
    if artifact.kind == "space" and artifact.card is not None:
        sdk = metadata(artifact.card.read().decode(), artifact.folder)["sdk"]
    options: dict[str, Any] = {"repo_type": artifact.kind, "private": publisher.private, "space_sdk": sdk}
    publisher.hub.call(artifact.url, "create_repo", artifact.repo, **options, exist_ok=True)


def commit(publisher: Publisher, release: Release, plan: RepoPlan) -> Pushed:
    """One commit with all that differs, on top of the ``main`` that it was compared with.

    None is made where nothing differs, which is how a commit whose answer got lost is found again.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    if (repo := plan.remote) is None:  # created a moment ago
        repo = remote(publisher.hub, plan.artifact)
        if repo is None:
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
    """Name the commit, once and for all. Raises UserError if the tag names another one."""
    artifact = pushed.artifact
    message = f"safe-stepwise release {version}"
    options: dict[str, Any] = {"tag": version, "tag_message": message, "revision": pushed.commit}
    publisher.hub.call(artifact.url, "create_tag", artifact.repo, **options, repo_type=artifact.kind, exist_ok=True)
    repo = remote(publisher.hub, artifact)
    if repo is None or repo.tags.get(version) != pushed.commit:
        raise UserError(f"{artifact.url}: somebody else set {version} meanwhile; look there")
    publisher.report(f"{artifact.url}: tagged {version}")


def collect(publisher: Publisher, collection: Collection, artifacts: Sequence[Artifact]) -> str:
    """Put every repo into the namespace's collection, which is made if there is none."""
    hub, place = publisher.hub, f"collection {collection.title!r} of {publisher.namespace}"
    hub_collection = hub.request(place, lambda: _collection(hub.api, publisher, collection))
    items = {(item.item_type, item.item_id) for item in hub_collection.items}
    for artifact in artifacts:
        if (artifact.kind, artifact.repo) not in items:
            hub.call(place, "add_collection_item", hub_collection.slug, artifact.repo, artifact.kind, exists_ok=True)
    return shorten(f"{hub.api.endpoint}/collections/{hub_collection.slug}")


def _collection(api: Any, publisher: Publisher, collection: Collection) -> Any:
    """The namespace's collection of that title, with all of its items."""
    collections = islice(api.list_collections(owner=publisher.namespace), MOST_COLLECTIONS)
    for candidate in collections:
        if candidate.title == collection.title:
            return api.get_collection(candidate.slug)  # a listing shows the first few items only
    options = {"description": collection.about, "private": publisher.private}
    return api.create_collection(collection.title, namespace=publisher.namespace, **options, exists_ok=True)
