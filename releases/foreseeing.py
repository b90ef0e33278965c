"""What a release would take, told before it is made."""

from collections.abc import Collection, Sequence
from typing import Any

from releases.paths_manifest import PathsManifest
from releases.stage import COUNTED, Cost, Forecast, Release, Speed, add_costs
from releases.stages import left_out, stages_of
from safe_stepwise.errors import UserError
from safe_stepwise.store.tables import text_table


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


def render_costs(parts: Sequence[tuple[str, Cost]], speed: Speed, blocks: Collection[str] = ()) -> str:
    """Costs by part as a table, with their sum, and below it what each of ``blocks`` takes."""
    header = ("prompt tokens", "of them computed", "reply tokens", "trained on", "GPU hours")
    costs = [cost for _, cost in parts]
    rows = [
        (f"{part}: {cost.name}" if part in blocks else cost.name, cost.rows, *_sums([cost], speed))
        for part, cost in parts
    ]
    tables = [text_table([("part", "rows", "calls", *header), *rows, ("total", "", *_sums(costs, speed))])]
    if priced := [name for name in blocks if any(part == name for part, _ in parts)]:
        by_block = {"(no block)": [cost for part, cost in parts if part not in blocks]}
        by_block |= {name: [cost for part, cost in parts if part == name] for name in priced}
        sums = [(name, *_sums(block, speed)) for name, block in by_block.items()]
        tables.append(text_table([("block", "calls", *header), *sums]))
        tables.append("What an earlier part asks in the same words is counted there.")
    return "\n\n".join(
        [
            *tables,
            "Calls and tokens are upper bounds where a model labels a benchmark, elsewhere what "
            "the papers' models and prompts take (small ones differ several times); GPU hours "
            f"are those at {speed.prompt:,.0f} prompt, {speed.reply:,.0f} reply and "
            f"{speed.train:,.0f} trained tokens a second of one GPU (--gpu-prompt, --gpu-reply, "
            "--gpu-train).",
        ]
    )


def _sums(costs: Sequence[Cost], speed: Speed) -> tuple[object, ...]:
    """Calls, tokens and GPU hours of parts together."""
    hours = sum(cost.hours(speed) for cost in costs)
    return (*(sum(getattr(cost, what) for cost in costs) for what in (*COUNTED, "trained")), f"{hours:,.1f}")
