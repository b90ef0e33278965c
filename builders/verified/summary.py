"""What a build is to say of itself: to the one who ran it, and to a release's lock."""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from builders.verified.collect import Build, source_of
from builders.verified.statistics import TRUTH, Known, Listed, Statistics
from builders.verified.teachers.published import lists_of
from builders.work.publishing import read_statistics
from safe_stepwise.store.names import LABELED, NOISE_LABELS, REJECTS, UNMATCHED, VERIFIED
from safe_stepwise.store.tables import table


def replaced(plan: Build) -> str:
    """What other settings made in the place of this build; empty if nothing.

    These are source, limit, teacher (its lists, too) and least confidence.
    """
    dataset = plan.output / VERIFIED
    for made in read_statistics(dataset, Statistics) if os.access(dataset, os.R_OK) else ():
        if (made["benchmark"], made["split"]) == (plan.benchmark, plan.split):
            least = made.get("min_confidence", 0.0)
            lists = [one["digest"] for one in (made.get("listed") or {}).get("lists", ())]
            before = (made["source"]["digest"], made["limit"], made["teacher"], lists, least)
            ours = [one.sha256 for one in lists_of(plan.teacher)]
            now = (source_of(plan).digest, plan.limit, plan.teacher.name, ours, plan.min_confidence)
            if before != now:
                return (
                    f"replaces the {plan.benchmark} {plan.split} in {plan.output}: "
                    f"{made['rows']:,} rows of {made['source']['name']}, by {made['teacher']}"
                )
    return ""


def summary(plan: Build, statistics: Statistics) -> str:
    """What was found, where it is, how to open it."""
    found = [(f"  {type_}", count) for type_, count in statistics.unverifiable.items()]
    rows: list[tuple[str, object]] = [
        (f"{plan.benchmark} {plan.split}", "rows"),
        ("read", statistics.rows),
        ("verified", statistics.verified),
        ("unverifiable", sum(statistics.unverifiable.values())),
        *found,
        ("not judged", statistics.unparsed),
        ("rejected", statistics.rejected),
    ]
    verified = plan.output / VERIFIED
    lines = [
        table(rows),
        *_remarks(plan, statistics),
        f"\n{verified}",
        f"{plan.output / NOISE_LABELS}",
        f'\nload_dataset("{verified}", "{plan.benchmark}{LABELED}", split="{plan.split}")',
    ]
    return "\n".join(lines)


def _remarks(plan: Build, statistics: Statistics) -> list[str]:
    lines = []
    if statistics.evaluation is not None:
        sample = statistics.evaluation
        lines.append(f"\nevaluation sample: {sample.rows} rows")
        if sample.left_out:
            lines[-1] += (
                f"; {sample.left_out} verified rows cannot have exactly {sample.passages} passages and were left out"
            )
    if statistics.listed is not None:
        lines += _by_lists(plan, statistics.listed)
    if statistics.known is not None:
        lines.append(f"\n{_agreed(statistics.known)}")
    if statistics.replies:
        counts = ", ".join(f"{number:,} {kind}" for kind, number in statistics.replies.items())
        lines.append(f"\nreplies of the teacher: {counts}")
    if statistics.replies.get("failed"):
        lines.append("run the same command again: only what failed is asked")
    if not statistics.verified:
        lines.append(
            f"\nno row was verified: {plan.split} is in {plan.benchmark}{LABELED}, but not in the "
            f"config {plan.benchmark}"
        )
    if statistics.rejected:
        lines.append(f"\nrejected rows, with reasons: {plan.output / REJECTS}")
    return lines


def _by_lists(plan: Build, found: Listed) -> Iterator[str]:
    """What became of the lists that labelled the rows, a line each, and of the rows."""
    yield ""
    for one in found.lists:
        again = f", {one.repeated:,} said again" if one.repeated else ""
        lacking = f"; {one.unmatched:,} have none, see {plan.output / UNMATCHED}"
        yield (
            f"{one.name}: {one.entries:,} entries{again}; {one.matched:,} have a row here"
            f"{lacking if one.unmatched else ''}"
        )
    if not found.rows:
        yield "no row is named, and all count as sound: are these lists of other questions?"
    yield (
        f"rows named: {found.rows:,} ({found.loosely:,} not by the exact text; texts of several "
        f"rows: {found.shared:,}); rows verified without a path: {found.pathless:,}"
    )


def _agreed(known: Known) -> str:
    found = known.agreement
    by = "the truth" if known.by == TRUTH else known.by
    if not found.rows:
        return f"agreement with {by}: none of the rows is in it"
    return (
        f"agreement with {by} on {found.rows:,} rows, {found.noise:,} of them noise: "
        f"precision {found.precision:.3f}, recall {found.recall:.3f}, F1 {found.f1:.3f}"
    )


def _counted(made: Statistics) -> tuple[int, ...]:
    unverifiable = sum(made.unverifiable.values())
    return made.rows, made.verified, unverifiable, made.unparsed, made.rejected


def overview(made: Sequence[Statistics]) -> str:
    """Several builds as a table, a line each."""
    header = ("benchmark", "split", "rows", "verified", "unverifiable", "not judged", "rejected")
    return table([header, *((s.benchmark, s.split, *_counted(s)) for s in made)])


def counts(made: Sequence[Statistics]) -> dict[str, Any]:
    """What a release's lock says of its builds, by ``BENCHMARK-SPLIT``."""
    return {
        f"{s.benchmark}-{s.split}": {
            "rows": s.rows,
            "verified": s.verified,
            "unverifiable": dict(s.unverifiable),
            "unparsed": s.unparsed,
            "rejected": s.rejected,
        }
        for s in made
    }
