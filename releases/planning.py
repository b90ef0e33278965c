"""What a release will cost: calls and tokens of each part, and GPU hours at a given speed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from releases.asked import Cost, One, Speed, asking, evaluated, times
from releases.manifest import OWN_PARTS, OWN_SET, BuildEntry, Manifest, StepsEntry
from releases.refining import PART as REFINEMENT
from safe_stepwise.errors import UserError
from safe_stepwise.store.names import GENERATOR
from safe_stepwise.store.tables import table


@dataclass(frozen=True, slots=True)
class Source:
    """What there is to know of a build beforehand.

    ``rows`` is None of a source that is not here. ``asks`` is whether a model verifies, ``work``
    what that takes at most (``calls, prompt, reply``), told from the rows. ``expected`` is what its
    benchmark says of one row's ``verification`` and one question's ``verifier_steps``.
    """

    name: str
    rows: int | None
    asks: bool
    expected: Mapping[str, One]
    work: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Training:
    """What the recipe of a part's adapter says: rows at most, and how often each is trained on."""

    part: str
    name: str
    """Of an adapter of a block; empty of the release's own."""
    base_model: str
    rows: int | None
    epochs: float


def expectations() -> Any:
    """What one row or question of each part takes, and the speeds to go by if none is given.

    Speeds are assumptions, and the report says so.
    """
    return yaml.safe_load(Path(__file__).with_name("expectations.yaml").read_text(encoding="utf-8"))


def foreseen(
    manifest: Manifest, sources: Sequence[Source], trainings: Sequence[Training], skip: Collection[str] = ()
) -> list[Cost]:
    """What each part of a release has to expect, at most where prompts depend on replies.

    ``sources`` are those of its builds, in order; rows of one that is not here are taken from
    ``expected_rows``. Parts to ``skip`` are left out. Raises ``UserError`` where the rows of a
    build are not known.
    """
    known = expectations()
    rows = [_rows(manifest, number, source) for number, source in enumerate(sources)]
    costs = [_verification(*one) for one in zip(manifest.builds, sources, rows, strict=True)]
    of = {b.benchmark: s.expected for b, s in zip(manifest.builds, sources, strict=True)}
    ones = {name: of[name]["verifier_steps"] for name in sorted(of)}
    costs += [replace(_steps(steps, ones), part=part) for part, steps in manifest.sets.items()]
    tokens = known["training"]["tokens_per_row"]
    learning = [_training(manifest, training, tokens) for training in trainings]
    own = next((cost for cost in learning if cost.part == "adapter"), None)
    costs += learning + (_refinement(manifest, rows, own, known) if own else [])
    builds = zip(manifest.builds, rows, strict=True)
    validation = [number for build, number in builds if build.split == "validation"]
    made = {name: one for name, one in manifest.evaluations.items() if name not in skip}
    samples = [min(number, manifest.evaluation_size) for number in validation]
    adapters = {name: tuple(block.adapters) for name, block in manifest.blocks.items()}
    costs += evaluated(made, samples, adapters, known["evaluation"])
    order = [*OWN_PARTS, *manifest.blocks]
    return sorted((c for c in costs if c.part not in skip), key=lambda c: order.index(c.part))


def told(costs: Sequence[Cost], speed: Speed, blocks: Collection[str] = ()) -> str:
    """The costs as a table, with their sum, and below it what each of ``blocks`` takes."""
    header = ("prompt tokens", "of them computed", "reply tokens", "trained on", "GPU hours")
    lines = [(f"{c.part}: {c.name}" if c.part in blocks else c.name, c.rows) for c in costs]
    rows = [(*line, *_sums([c], speed)) for line, c in zip(lines, costs, strict=True)]
    tables = [table([("part", "rows", "calls", *header), *rows, ("total", "", *_sums(costs, speed))])]
    if priced := [name for name in blocks if any(c.part == name for c in costs)]:
        parts = {name: [c for c in costs if c.part == name] for name in priced}
        own = {"(no block)": [c for c in costs if c.part not in blocks]}
        sums = [(name, *_sums(those, speed)) for name, those in {**own, **parts}.items()]
        tables.append(table([("block", "calls", *header), *sums]))
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
    fields = ("calls", "prompt", "computed", "reply", "trained")
    hours = sum(cost.hours(speed) for cost in costs)
    return (*(sum(getattr(cost, field) for cost in costs) for field in fields), f"{hours:,.1f}")


def lacking(manifest: Manifest, sources: Sequence[Source], skip: Collection[str] = ()) -> list[str]:
    """What the release can't be made without and is not here, a line each."""
    owed = [f"{source.name} is not here" for source in sources if source.rows is None]
    made = [name for name in manifest.sets if name not in skip]
    owed += [unmined for name in made if (unmined := no_refined(manifest, name))]
    corpora = [one.corpus for name, one in manifest.evaluations.items() if name not in skip]
    return owed + [f"{c.name} is not here" for c in dict.fromkeys(corpora) if c and not c.is_file()]


def no_refined(manifest: Manifest, part: str = OWN_SET) -> str | None:
    """What to do about refined rows of a set that come from nowhere; None if there are none."""
    steps = manifest.sets.get(part)
    if steps is None or not steps.refined or steps.refined_from or steps.refinement:
        return None
    where = OWN_SET if part == OWN_SET else f"blocks.{part}.{OWN_SET}"
    return (
        f"{where}.refined: {steps.refined} rows come from no file; name it as refined_from"
        f"{', or say with refinement how to mine them' if part == OWN_SET else ''}"
    )


def _rows(manifest: Manifest, number: int, source: Source) -> int:
    if source.rows is not None:
        return source.rows
    entry = manifest.builds[number]
    if entry.expected_rows is None:
        raise UserError(
            f"{manifest.path}: builds[{number}].input: {entry.input} is not here; bring it, or say "
            "how many rows it has with expected_rows"
        )
    return min(entry.expected_rows, entry.limit or entry.expected_rows)


def _verification(entry: BuildEntry, source: Source, rows: int) -> Cost:
    name = f"verify {entry.benchmark} {entry.split}"
    if not source.asks:
        return Cost(name, rows)
    if source.work is not None:
        work = source.work
        return Cost(name, rows, work["calls"], work["prompt"], work["prompt"], work["reply"])
    return times(name, rows, source.expected["verification"])


def _steps(entry: StepsEntry, known: Mapping[str, One]) -> Cost:
    if entry.teacher == "annotations":
        return Cost("verifier set", entry.rows)
    asked = dict.fromkeys(known, (entry.questions or entry.rows) // len(known))
    asked |= {name: number for name, (_, number) in (entry.per_benchmark or {}).items()}
    costs = [times(name, entry.pool or number, known[name]) for name, number in asked.items()]
    sums = {f: sum(getattr(c, f) for c in costs) for f in ("calls", "prompt", "computed", "reply")}
    return Cost("verifier set", entry.rows, **sums)


def _training(manifest: Manifest, training: Training, tokens_per_row: int) -> Cost:
    """What an adapter learns: a set of its block, the release's, or both."""
    sets, block = manifest.sets, manifest.blocks.get(training.part)
    own = sets.get(training.part)
    learns = block is None or block.learns_steps
    learnt = [one for one in (sets.get(OWN_SET) if learns else None, own) if one is not None]
    rows = 0
    for steps in learnt:
        kept = round(steps.rows * (1 - steps.test_share))
        rows += min(kept, training.rows or kept)
    kind = GENERATOR if training.part == GENERATOR else "adapter"
    name = f"{kind} {training.name} of" if training.name else f"{kind} of"
    trained = round(rows * training.epochs * tokens_per_row)
    return Cost(f"{name} {training.base_model}", rows, trained=trained, part=training.part)


def _refinement(manifest: Manifest, rows: Sequence[int], training: Cost, known: Mapping[str, Any]) -> list[Cost]:
    """What rounds of refinement take, at most; ``training`` is that of the release's adapter."""
    steps = manifest.verifier_steps
    if steps is None or (entry := steps.refinement) is None:
        return []
    pools = [n for b, n in zip(manifest.builds, rows, strict=True) if b.split == "train"]
    there = sum(min(number, steps.pool or number) for number in pools)
    questions = min(there, entry.limit or there) * entry.rounds
    name, mined = "refinement: ", entry.rows * entry.rounds
    learnt = training.rows * entry.rounds
    costs = [Cost(f"{name}train", learnt, trained=training.trained * entry.rounds)]
    one = known["evaluation"]["safe"]
    costs.append(asking(entry.generator, f"{name}run the loop", questions, one))
    if entry.teacher != "annotations":
        costs.append(asking(entry.teacher, f"{name}relabel", mined, known["refinement"]["relabel"]))
    return [replace(cost, part=REFINEMENT) for cost in costs]
