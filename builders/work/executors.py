"""Who makes a build's shards: processes of this command, or ranks (datatrove's, Slurm's, Ray's)."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from builders.work.pool import in_order
from builders.work.processes import wait_for
from builders.work.ranks import J, Work, survey
from builders.work.shards import Shard, process, stored
from builders.work.slurm import Slurm, submit_or_report
from safe_stepwise.errors import UserError
from safe_stepwise.store.progress import counts, telling

ENGINES = ("local", "datatrove-local", "slurm", "ray")


@dataclass(frozen=True, slots=True)
class Engine:
    """One of `ENGINES`, how many processes of this machine it has, how many ranks share the work.

    How many ranks a cluster runs at once is its own affair.
    """

    name: str = "local"
    workers: int = 1
    ranks: int = 1
    slurm: Slurm = field(default_factory=Slurm)


@dataclass(slots=True)
class Standing:
    """How a build stands, in rows of its input; ``failed`` are those that came to nothing."""

    done: int = 0
    cached: int = 0
    failed: int = 0
    word: str = "failed"
    """What the failed ones are called."""


def results(
    work: Work[J], engine: Engine, rows: Callable[[], int | None], standing: Standing
) -> Generator[tuple[J, Shard[Any]], None, None]:
    """Each chunk with its shard, in order; a progress bar tells how it stands.

    ``rows`` counts those of the input, where that can be told beforehand. ``standing`` counts as
    the results are drawn, but for what has failed, which its owner counts.

    Raises ``UserError`` and ``OSError`` of any rank as its own, ``RankError`` for any other error
    in one, and ``Submitted`` when the shards will only be there later.
    """
    total = rows() if engine.name == "local" else prepare(work, engine)

    def told() -> str:
        owed = "?" if total is None else max(total - standing.done, 0)
        made, failed = standing.done - standing.cached, {standing.word: standing.failed}
        stands = counts(made, standing.cached, owed, **failed)
        return "; ".join(filter(None, [stands, work.asker.progress()]))

    bar = telling(work.title, work.unit, total, lambda: standing.done, told)
    with bar, closing(_made(work, engine)) as made:
        for job, shard in made:
            yield job, shard
            standing.done += job.size
            standing.cached += job.size if shard.cached else 0


def prepare(work: Work[Any], engine: Engine) -> int:
    """Have ranks make every shard that is owed; returns how many rows the source has.

    Raises as `results`.
    """
    _require(engine)
    found = survey(work)
    ranks = min(engine.ranks, len(found.owed))
    if found.owed and engine.name == "slurm":
        submit_or_report(work, engine.slurm, ranks, found)
    elif found.owed:
        wait_for(work, engine.name, ranks, engine.workers, found)
    return found.rows


def _made(work: Work[J], engine: Engine) -> Generator[tuple[J, Shard[Any]], None, None]:
    if engine.name == "local":
        own = work.asker.own_processes
        return in_order(process, work.jobs(), workers=engine.workers, own_processes=own)
    # What ranks have made is gathered even where a reply failed again.
    return ((job, stored(job) or process(job)) for job in work.jobs())


def _require(engine: Engine) -> None:
    if engine.name not in ENGINES[1:]:
        raise ValueError(f"no distributed engine {engine.name!r}")
    for module in ("datatrove", "ray") if engine.name == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {engine.name} needs {module}: "
                "pip install -e '.[distributed]', or leave --engine out"
            ) from None
