"""What makes the datasets of a release, and the release of all its parts; no command itself."""

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from builders.verified.build import build
from builders.verified.collect import Build
from builders.verified.summary import counts, overview
from builders.verified.teachers.choice import known_teacher
from builders.work.plans import libraries
from builders.work.shards import Annotator
from cards.datasets import CARDS
from cards.releases import read_release
from evaluators.audit.release import check_rows
from releases import parts
from releases.manifest import Manifest
from releases.needs import left_out
from releases.parts import Made, Part
from releases.refining import PART as REFINEMENT
from safe_stepwise.engines.client import IN_FLIGHT
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import DATASETS, LABELS
from scripts.asking import Asking
from scripts.release_plans import build_plans, check_plans, read_audits


def released(
    manifest: Manifest,
    output: Path,
    sets: Callable[..., Iterator[tuple[Part, Annotator]]],
    others: Sequence[Part],
    *,
    skip_training: bool = False,
    only: Sequence[str] = (),
    cache: Path | None = None,
    in_flight: int = IN_FLIGHT,
    timeout: float | None = None,
    **engine: Any,
) -> str:
    """Make a release or check a complete one; returns what there is to say.

    ``sets`` has the parts that make its verifier sets (`release_sets.sets`), ``others`` are those
    beside the datasets; ``only`` names those to make, with what they need;
    ``engine`` are the fields of a `Build` that say where it runs. Raises ``UserError`` as
    `parts.make` does, and ``Submitted`` when one of the builds was only handed to a scheduler.
    """
    skip = left_out(manifest, skip_training, only)
    teachers = partial(known_teacher, cache=cache, in_flight=in_flight, timeout=timeout)
    plans = build_plans(manifest, output / DATASETS, teachers)
    sources: list[Annotator] = [plan.teacher for plan in plans]
    asking = Asking(cache, in_flight, timeout, manifest.allowance)
    made = []
    for part, maker in sets(manifest, output, teachers, asking, skip, engine.get("workers", 1)):
        made.append(part)
        sources.append(maker)
    plans = [replace(plan, **engine) for plan in plans]
    datasets = Part("datasets", partial(_builds, plans, sources, manifest), partial(_check, manifest, output, plans))
    if manifest.audits:
        audit = partial(_audits, manifest, output / DATASETS)
        made.append(Part("audits", audit, follows=REFINEMENT))
    every = [datasets, *made, *others]
    try:
        return parts.make(manifest, output, every, skip, made_by(), read_release)
    finally:
        _close(sources)


def made_by() -> dict[str, Any]:
    """What the lock says of what made a release."""
    return {"code_sha256": release_code(), "libraries": {"python": platform.python_version(), **libraries()}}


def release_code() -> str:
    """Digest of all the code that makes releases."""
    return code_digest("scripts.regenerate", without=())


def _check(manifest: Manifest, output: Path, plans: Sequence[Build]) -> None:
    check_plans(manifest, output)
    for plan in plans:
        plan.teacher.check()


def _builds(plans: Sequence[Build], sources: Sequence[Annotator], manifest: Manifest) -> Made:
    audit = read_audits(manifest).get(LABELS)
    cards = {name: partial(card, audit=audit) for name, card in CARDS.items()}
    made = [build(plan, cards) for plan in plans]
    _close(sources)  # what comes next may want their memory
    return Made(overview(made), counts(made))


def _audits(manifest: Manifest, datasets: Path) -> Made:
    """Nothing but a look: cards have told of the audits, which have to be of these rows."""
    audits = read_audits(manifest)
    for entry in manifest.audits:
        check_rows(audits[entry.of].scores, entry.file, datasets)
    said = [f"audit of {of}: {a.scores['rows']:,} rows, all of this release" for of, a in audits.items()]
    return Made("\n".join(said), {f"audit-{of}": {"sha256": a.sha256} for of, a in audits.items()})


def _close(sources: Sequence[Annotator]) -> None:
    for source in sources:
        source.close()
