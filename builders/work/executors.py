"""Who makes a build's shards: processes of this command, or ranks (datatrove's, Slurm's, Ray's)."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from builders.work.plans import Plan, Slurm
from builders.work.processes import wait_for
from builders.work.ranks import J, Survey, Work, first_failure, new_attempt, python_path, rank_of, survey
from builders.work.shards import Shard, process, stored
from builders.work.workers import in_order
from safe_stepwise.errors import UserError
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.progress import counts, telling


class Submitted(Exception):
    """Work was handed to a scheduler, and there is nothing to gather yet: what to tell the user."""


@dataclass(slots=True)
class Standing:
    """How a build stands, in rows of its input; ``failed`` are those that came to nothing."""

    done: int = 0
    cached: int = 0
    failed: int = 0
    word: str = "failed"
    """What the failed ones are called."""


def results(
    work: Work[J], plan: Plan, rows: Callable[[], int | None], standing: Standing
) -> Generator[tuple[J, Shard[Any]], None, None]:
    """Each chunk with its shard, in order; a progress bar tells how it stands.

    ``rows`` counts those of the input, where that can be told beforehand. ``standing`` counts as the results are
    drawn, but for what has failed, which its owner counts.

    Raises ``UserError`` and ``OSError`` of any rank as its own, ``RankError`` for any other error in one, and
    ``Submitted`` when the shards will only be there later.
    """
    total = rows() if plan.engine == "local" else prepare(work, plan)

    def shown() -> str:
        owed = "?" if total is None else max(total - standing.done, 0)
        done = counts(standing.done - standing.cached, standing.cached, owed, **{standing.word: standing.failed})
        return "; ".join(filter(None, [done, work.annotator.progress()]))

    with telling(work.title, work.unit, total, lambda: standing.done, shown), closing(_made(work, plan)) as made:
        for job, shard in made:
            yield job, shard
            standing.done += job.size
            standing.cached += job.size if shard.cached else 0


def prepare(work: Work[Any], plan: Plan) -> int:
    """Have ranks make every shard that is owed; returns how many rows the source has.

    Raises as `results`.
    """
    _require(plan.engine)
    surveyed = survey(work)
    ranks = min(plan.ranks or plan.workers, len(surveyed.owed))
    if surveyed.owed and plan.engine == "slurm":
        _with_slurm(work, plan.slurm, ranks, surveyed)
    elif surveyed.owed:
        wait_for(work, plan, ranks, surveyed)
    return surveyed.rows


def _made(work: Work[J], plan: Plan) -> Generator[tuple[J, Shard[Any]], None, None]:
    if plan.engine == "local":
        own = work.annotator.own_processes
        return in_order(process, work.jobs(), workers=plan.workers, own_processes=own)
    # What ranks have made is gathered even where a reply failed again.
    return ((job, stored(job, job.path) or process(job)) for job in work.jobs())


def _require(engine: str) -> None:
    for module in ("datatrove", "ray") if engine == "ray" else ("datatrove",):
        try:
            importlib.import_module(module)
        except ImportError:
            raise UserError(
                f"--engine {engine} needs {module}: pip install -e '.[distributed]', or leave --engine out"
            ) from None


# Slurm, whose ranks run after this command


def _with_slurm(work: Work[Any], slurm: Slurm, ranks: int, owed: Survey) -> None:
    """Submit what is owed, or say how the last submission stands.

    Returns when that has made every shard, even ones in which replies failed.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "--engine slurm: there is no sbatch here; run this on a login node of a Slurm cluster, "
            "or choose --engine datatrove-local"
        )
    submissions = sorted((work.folder / "ranks").glob("*/submitted.json"))
    if submissions:
        _report(submissions[-1], owed)
    else:
        _submit(work, slurm, ranks, owed)


def _report(submission: Path, owed: Survey) -> None:
    job = json.loads(submission.read_text(encoding="utf-8"))["job"]
    missing = len(owed.missing())
    if not missing:
        return
    if _is_queued(job):
        raise UserError(
            f"Slurm job {job} still has {missing} chunks to make; run the same command again when "
            f"it has ended (squeue -j {job} tells, scancel {job} ends it)"
        )
    # Said once: the next run submits what is owed.
    submission.rename(submission.with_name("ended.json"))
    failure = first_failure(submission.parent)
    if failure is not None:
        raise failure
    raise UserError(
        f"Slurm job {job} has ended with {missing} chunks owed and no word why (its time limit?); "
        f"look into {submission.parent / 'slurm'}, and run the same command again to submit them"
    )


def _submit(work: Work[Any], slurm: Slurm, ranks: int, owed: Survey) -> NoReturn:
    from datatrove.executor.slurm import SlurmPipelineExecutor
    from loguru import logger

    partition = slurm.partition or os.environ.get("SBATCH_PARTITION")
    if partition is None:
        raise UserError("--engine slurm: name a partition, with --slurm-partition; sinfo lists them")
    logger.disable("datatrove")
    attempt = new_attempt(work)
    here = f"PYTHONPATH='{python_path()}' PATH='{Path(sys.executable).parent}':\"$PATH\""
    executor = SlurmPipelineExecutor(
        [rank_of(work, owed, attempt)],
        tasks=ranks,
        time=slurm.time,
        partition=partition,
        qos=None,  # datatrove's "normal" is not known to every cluster
        job_name=f"safe-{work.title.replace(' ', '-')}",
        env_command=f"export {here}",
        job_id_retriever=_job_id,
        logging_dir=str(attempt / "datatrove"),
        slurm_logs_folder=str(attempt / "slurm"),
        skip_completed=False,
    )
    # Else a second job waits for the first, for ever when that fails.
    executor.launch_merge_stats = lambda: None
    try:
        executor.launch_job()
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(f"sbatch did not take the job ({error}); see what it says above") from None
    content = json.dumps({"job": executor.job_id, "chunks": len(owed.owed), "ranks": ranks})
    write_atomically(attempt / "submitted.json", content.encode())
    raise Submitted(
        f"submitted Slurm job {executor.job_id}: {work.title}, {len(owed.owed)} chunks in "
        f"{ranks} ranks; its output will be in {attempt / 'slurm'}\n"
        "When it has ended (squeue tells), run the same command again to gather the result."
    )


def _job_id(output: str) -> str:
    """The number in what sbatch says, which may go on with a cluster's name.

    >>> _job_id("Submitted batch job 71 on cluster red")
    '71'
    """
    number = re.search(r"\d+", output)
    if number is None:
        raise UserError(f"sbatch named no job: {output!r}")
    return number[0]


def _is_queued(job: str) -> bool:
    try:
        queue = subprocess.run(["squeue", "--noheader", "--jobs", job], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(f"squeue cannot be run ({error.strerror}), so who knows of job {job}") from None
    if queue.returncode and "invalid job id" not in queue.stderr.lower():
        raise UserError(f"squeue does not say how job {job} stands: {queue.stderr.strip()}")
    return bool(queue.stdout.strip()) and not queue.returncode
