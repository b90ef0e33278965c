"""What a release would take, told before it is made."""

from typing import Any

from releases.paths_manifest import PathsManifest
from releases.pricing import Cost, Forecast, Speed, add_costs, render_costs
from releases.release import Release
from releases.stages import left_out, stages_of
from safe_stepwise.errors import UserError


def dry_run(release: Release[Any], speed: Speed) -> str:
    """What a release would take; raises ``UserError`` for the first part that is wrong.

    Sources that are at hand are read to the end, so a bad row or another digest shows here.
    """
    stages, forecast = stages_of(release), Forecast()
    skip = left_out(release, stages)
    costs: dict[tuple[str, str], list[Cost]] = {}
    for stage in stages:
        stage.look()
    made = [stage for stage in stages if stage.name not in skip]
    prefaces = [preface for stage in made if (preface := stage.preface(forecast))]
    notes = dict[str, None]()
    for stage in made:
        for cost in stage.price(forecast):
            costs.setdefault((stage.name, cost.name), []).append(cost)
            notes |= {stage.note: None} if stage.note else {}
    parts = [(part, add_costs(name, same)) for (part, name), same in costs.items()]
    text = render_costs(parts, speed, getattr(release.manifest, "blocks", ()))
    owed = dict.fromkeys(line for stage in made for line in stage.owed())
    return "\n".join(["\n\n".join([*prefaces, text, *notes]), *(f"still owed: {line}" for line in owed)])


def refuse_owed(release: Release[Any]) -> None:
    """Raise ``UserError`` if a dry run had to say that files of relation paths are missing, or are others."""
    if not isinstance(release.manifest, PathsManifest):
        return
    if owed := [line for stage in stages_of(release) for line in stage.owed()]:
        raise UserError(
            f"{release.file}: {len(owed)} of {len(release.manifest.sources)} files that it is made from "
            "are still owed (the lines above say how to get each); bring them and run this again"
        )
