"""What a push would do, in words."""

from __future__ import annotations

from collections.abc import Sequence

from releases.folder import Release
from releases.plan import RepoPlan, plan_release, unread_plan
from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import table

SHOWN = 12
"""Files of a state that a dry run lists; the rest are counted."""


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
