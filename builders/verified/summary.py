"""What a build is to say of itself: to the one who ran it, and to a release's lock."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builders.verified import collect, statistics
from builders.verified.teachers.published import lists_of
from builders.work import publishing
from builders.work.publishing import read_statistics
from safe_stepwise.store import names, tables

FOLDER = Path(__file__).parent / "templates"


def replaced(plan: collect.Build) -> str:
    """What other settings made in the place of this build; empty if nothing.

    These are source, limit, teacher (its lists, too) and least confidence.
    """
    dataset = plan.output / names.VERIFIED
    for made in read_statistics(dataset, statistics.Statistics) if os.access(dataset, os.R_OK) else ():
        if (made["benchmark"], made["split"]) == (plan.benchmark, plan.split):
            least = made.get("min_confidence", 0.0)
            lists = [questions["digest"] for questions in (made.get("listed") or {}).get("lists", ())]
            before = (made["source"]["digest"], made["limit"], made["teacher"], lists, least)
            ours = [questions.sha256 for questions in lists_of(plan.teacher)]
            if before != (collect.source_of(plan).digest, plan.limit, plan.teacher.name, ours, plan.min_confidence):
                return (
                    f"replaces the {plan.benchmark} {plan.split} in {plan.output}: "
                    f"{made['rows']:,} rows of {made['source']['name']}, by {made['teacher']}"
                )
    return ""


def summary(plan: collect.Build, made: statistics.Statistics) -> str:
    """What was found, where it is, how to open it."""
    rows: list[tuple[str, object]] = [
        (f"{plan.benchmark} {plan.split}", "rows"),
        ("read", made.rows),
        ("verified", made.verified),
        ("unverifiable", sum(made.unverifiable.values())),
        *((f"  {type_}", count) for type_, count in made.unverifiable.items()),
        ("not judged", made.unparsed),
        ("rejected", made.rejected),
    ]
    return publishing.summary(FOLDER, "summary.txt", rows=rows, plan=plan, made=made, names=names)


def overview(builds: Sequence[statistics.Statistics]) -> str:
    """Several builds as a table, a line each."""
    header = ("benchmark", "split", "rows", "verified", "unverifiable", "not judged", "rejected")
    rows = (
        (s.benchmark, s.split, s.rows, s.verified, sum(s.unverifiable.values()), s.unparsed, s.rejected)
        for s in builds
    )
    return tables.text_table([header, *rows])


def counts(builds: Sequence[statistics.Statistics]) -> dict[str, Any]:
    """What a release's lock says of its builds, by ``BENCHMARK-SPLIT``."""
    return {
        f"{s.benchmark}-{s.split}": {
            "rows": s.rows,
            "verified": s.verified,
            "unverifiable": dict(s.unverifiable),
            "unparsed": s.unparsed,
            "rejected": s.rejected,
        }
        for s in builds
    }
