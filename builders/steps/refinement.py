"""Refinement: where a verifier errs on steps that a generator really takes (SAFE v1, section 3.3).

Hard cases are mined from the loop's trajectories (`mining`), taken from the families of weaknesses in turn
(`weaknesses`), relabelled by a teacher, and written as rows with origin ``refined`` (`refined`). Kept are those whose
step is none of the ideal ones and whose label a second witness bears out (`witness`).
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from builders.steps.mining import AcceptedSteps, Case, Mined, Refinement, in_turn, mine, mine_accepted, read_accepted
from builders.steps.questions import VerifiedSet, open_verified
from builders.steps.refined import REFINED, STATISTICS, by_family, line_of, write_refined
from builders.steps.rows import Refused, StepRow, check_row
from builders.work.templates import fill
from safe_stepwise import prompts
from safe_stepwise.engines.base import EngineError
from safe_stepwise.engines.client import Client, check
from safe_stepwise.feedback import FeedbackError, parse_feedback
from safe_stepwise.methods import generator as generating
from safe_stepwise.methods import verifier as verifying
from safe_stepwise.methods.scene import Scene
from safe_stepwise.methods.taught import as_learnt, dropped_category
from safe_stepwise.records import FAILED, Feedback
from safe_stepwise.store import files
from safe_stepwise.store.code import code_digest, modules_of
from safe_stepwise.store.names import TRAIN

ANNOTATIONS = "annotations"
SHOWN = 15
"""Patterns of errors in the summary; all of them are in the record."""

Record = dict[str, Any]
"""What a run found, as ``refinement.json`` has it."""


@dataclass(frozen=True, slots=True)
class _Players:
    """Who makes the steps, judges and labels them: without generator and verifier, steps are ``accepted``."""

    generator: Client | None
    verifier: Client | None
    teacher: Client | None
    accepted: AcceptedSteps | None

    @property
    def clients(self) -> list[Client]:
        return [client for client in (self.generator, self.verifier, self.teacher) if client is not None]

    @property
    def teacher_name(self) -> str:
        """What lands in the ``teacher`` column."""
        if self.teacher is None:
            return ANNOTATIONS
        return f"{self.teacher.name} prompts {verifying.prompt_digest()[:12]}"

    @property
    def record(self) -> Record:
        accepted = self.accepted
        simulated = any(client.engine.simulated for client in self.clients)
        if accepted is None:
            assert self.generator is not None
            assert self.verifier is not None
            names: Record = {"generator": self.generator.name, "verifier": self.verifier.name}
        else:
            generator = accepted.player("generator")
            names = {"generator": generator, "verifier": accepted.player("verifier") or generator}
            names["accepted"] = accepted.record
            simulated = simulated or accepted.simulated
        return {**names, "teacher": self.teacher_name, "simulated": simulated}


def refine(plan: Refinement, generator: Client | None, verifier: Client | None, teacher: Client | None) -> Record:
    """Write ``OUTPUT/refined.jsonl`` and ``OUTPUT/refinement.json`` (again, if they are there).

    ``teacher`` None are the annotations: the checker's verdicts; without generator or verifier the plan names steps
    that were ``accepted``. A run that was killed resumes from the clients' response cache and ends in the same bytes.

    Raises ``UserError`` for what the user can mend.
    """
    verified = open_verified(plan.verified, plan.version)
    verified.of(plan.benchmarks)
    engines = (client.engine for client in (generator, verifier) if client is not None)
    plan = replace(plan, limits=as_learnt(plan.limits, engines))
    if verifier is not None:
        dropped = dropped_category([verifier.engine], plan.limits.drop_category)
        plan = replace(plan, limits=replace(plan.limits, drop_category=dropped))
    accepted = read_accepted(plan.accepted) if plan.accepted else None
    players = _Players(generator, verifier, teacher, accepted)
    with files.exclusive(plan.output, owned=(REFINED, STATISTICS)):
        mined, made = asyncio.run(_work(plan, verified, players))
        kept = [row for row in made if isinstance(row, StepRow)]
        refused = Counter(r.reason.partition(":")[0] for r in made if isinstance(r, Refused))
        record = {**_record(plan, verified, players), **_counts(mined, kept), "refused": dict(sorted(refused.items()))}
        if mined.questions[FAILED]:
            errors = (client.last_error for client in players.clients if client.last_error)
            record["last_failure"] = next(errors, "no reason given")
        write_refined(plan.output, kept, record)
    return record


def summary(plan: Refinement, record: Record) -> str:
    """What a refinement found, where it is."""
    families = [family for family in record["families"] if family["disagreements"]]
    families.sort(key=lambda family: (-family["disagreements"], family["name"]))
    header = (*("verifier says", "checker says", "step", "plan"), *("differ", "of", "rate", "doubted", "rows"))
    rows = [(*c.values(),) for c in ({**c, "mining_rate": f"{c['mining_rate']:.1%}"} for c in record["clusters"])]
    numbers = ("name", "disagreements", "doubted", "rows")
    return fill(
        Path(__file__).with_name("refinement.jinja"),
        made=record,
        families=[("weakness", "differ", "doubted", "rows"), *(tuple(f[n] for n in numbers) for f in families)],
        absent=[family["name"] for family in record["families"] if not family["disagreements"]],
        header=header,
        clusters=rows,
        most=SHOWN,
        counts=[*record["questions"].items(), *record["tries"].items()],
        rows_file=plan.output / REFINED,
        record_file=plan.output / STATISTICS,
    )


async def _work(plan: Refinement, verified: VerifiedSet, players: _Players) -> tuple[Mined, list[StepRow | Refused]]:
    try:
        for client in players.clients:
            await check(client.engine)
        if players.accepted is not None:
            mined = mine_accepted(plan, verified, players.accepted)
        else:
            assert players.generator is not None
            assert players.verifier is not None
            mined = await mine(plan, verified, players.generator, players.verifier)
        return mined, await _relabelled(mined.cases, players, plan.rows)
    finally:
        for client in players.clients:
            await client.engine.close()


async def _relabelled(cases: Sequence[Case], players: _Players, wanted: int) -> list[StepRow | Refused]:
    """Up to ``wanted`` rows, from the families in turn, and the cases that gave none."""
    # What is doubted takes no family's turn, and no teacher is asked: it could not help.
    made: list[StepRow | Refused] = [_refused(case, case.doubt) for case in cases if case.doubt]
    left = iter(in_turn(case for case in cases if not case.doubt))
    missing = wanted
    while missing and (batch := list(islice(left, missing))):
        # A teacher's request fails, is cached and retried on its own, so a batch may be large.
        made += await asyncio.gather(*(_relabel(case, players) for case in batch))
        missing = wanted - sum(isinstance(row, StepRow) for row in made)
    return made


async def _relabel(case: Case, players: _Players) -> StepRow | Refused:
    """The row of a case: with the checker's verdict, or a teacher's that agrees with it."""
    try:
        feedback = case.verdict if players.teacher is None else await _verdict(case, players.teacher)
    except EngineError as error:
        return _refused(case, f"the teacher gave no reply: {error}")
    except FeedbackError as error:
        return _refused(case, f"the teacher's reply cannot be read: {error}")
    if feedback.error_type != case.verdict.error_type:
        return _refused(case, f"teacher and checker differ: {feedback.error_type}")
    row = case.row(feedback, players.teacher_name)
    try:
        check_row(row)
        line_of(row).encode()
    except ValueError as error:
        return _refused(case, f"not a valid row: {error}")
    return row


async def _verdict(case: Case, teacher: Client) -> Feedback:
    q = case.question
    request = verifying.verifier_request(q.question, q.passages, case.previous, case.step)
    scene = Scene(q, previous=case.previous, step=case.step)
    reads = partial(parse_feedback, data=prompts.data_of(request))
    return reads((await teacher.ask(replace(request, scene=scene, reads=reads))).text)


def _refused(case: Case, reason: str) -> Refused:
    return Refused.of(case.question, reason, case.step.text, case.verdict.error_type, case.step.number)


def _record(plan: Refinement, verified: VerifiedSet, players: _Players) -> Record:
    """What was asked of whom; ``simulated``: somebody is no model but a script or annotations at play."""
    prompt_set, dropped = plan.limits.prompt_set, plan.limits.drop_category
    return {
        "version": plan.version,
        "seed": plan.seed,
        "limits": plan.limits,
        "limit": plan.limit,
        "wanted": plan.rows,
        **players.record,
        "last_failure": "",
        "verified": [
            {name: build[name] for name in ("benchmark", "split", "digest")}
            for build in verified.of(plan.benchmarks)
            if build["split"] == TRAIN
        ],
        "prompts_sha256": {
            "generator": generating.prompt_digest(prompt_set),
            "verifier": verifying.prompt_digest(dropped=dropped, prompt_set=prompt_set),
        },
        "code_sha256": code_digest(__name__, *modules_of(client.engine for client in players.clients)),
    }


def _counts(mined: Mined, kept: Sequence[StepRow]) -> Record:
    """What was found: of every weakness and, largest first, of every cluster, a `Pattern` with its numbers.

    A cluster's mining rate is its share of the steps that the checker gives that label, of that kind and plan;
    ``doubted`` are those whose label no second rule bears out, or whose step is an ideal one.
    """
    doubted = [case for case in mined.cases if case.doubt]
    pattern_of = {case.id: case.pattern for case in mined.cases}
    sizes, doubts = Counter(case.pattern for case in mined.cases), Counter(case.pattern for case in doubted)
    rows = Counter(pattern_of[row.id] for row in kept)
    clusters = [
        {
            **pattern._asdict(),
            "disagreements": size,
            "checked": mined.checked[pattern[1:]],
            "mining_rate": size / mined.checked[pattern[1:]],
            "doubted": doubts[pattern],
            "rows": rows[pattern],
        }
        for pattern, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]
    families = {
        "disagreements": Counter(case.family for case in mined.cases),
        "doubted": Counter(case.family for case in doubted),
        "rows": Counter(row.family for row in kept),
    }
    return {
        "questions": dict(sorted(mined.questions.items())),
        "tries": dict(sorted(mined.tries.items())),
        "checked": mined.checked.total(),
        "disagreements": len(mined.cases),
        "mining_rate": mined.rate,
        "families": by_family(families),
        "clusters": clusters,
        "rows": len(kept),
    }
