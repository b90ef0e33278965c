"""Refinement: where a verifier errs on steps that a generator really takes (SAFE v1, section 3.3).

Hard cases are mined from the loop's trajectories (`mining`), taken from the families of weaknesses
in turn (`weaknesses`), relabelled by a teacher, and written as rows with origin ``refined``
(`refined`). Kept are those whose step is none of the ideal ones and whose label a second witness
bears out (`witness`).
"""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from builders.steps.accepted import AcceptedSteps, mine_accepted, read_accepted
from builders.steps.features import check_row
from builders.steps.mining import Case, Mined, Refinement, RefinementStatistics, in_turn, mine
from builders.steps.questions import VerifiedSet, open_verified
from builders.steps.refined import REFINED, STATISTICS, line_of
from builders.steps.rows import Refused, StepRow
from builders.steps.weaknesses import FAMILIES
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
from safe_stepwise.store.files import write_atomically
from safe_stepwise.store.names import TRAIN

ANNOTATIONS = "annotations"


def refine(
    plan: Refinement, generator: Client | None, verifier: Client | None, teacher: Client | None
) -> RefinementStatistics:
    """Write ``OUTPUT/refined.jsonl`` and ``OUTPUT/refinement.json`` (again, if they are there).

    ``teacher`` None are the annotations: the checker's verdicts; without generator or verifier the
    plan names steps that were ``accepted``. A run that was killed resumes from the clients'
    response cache and ends in the same bytes.

    Raises ``UserError`` for what the user can mend.
    """
    verified = open_verified(plan.verified, plan.version)
    verified.of(plan.benchmarks)
    players = (client.engine for client in (generator, verifier) if client is not None)
    plan = replace(plan, limits=as_learnt(plan.limits, players))
    if verifier is not None:
        dropped = dropped_category([verifier.engine], plan.limits.drop_category)
        plan = replace(plan, limits=replace(plan.limits, drop_category=dropped))
    given = read_accepted(plan.accepted) if plan.accepted else None
    with files.exclusive(plan.output, owned=(REFINED, STATISTICS)):
        clients = generator, verifier, teacher
        mined, made = asyncio.run(_work(plan, verified, given, clients))
        statistics = _statistics(plan, verified, mined, made, _players(given, clients))
        kept = [one for one in made if isinstance(one, StepRow)]
        write_atomically(plan.output / REFINED, "".join(map(line_of, kept)).encode())
        content = asdict(statistics)
        if given is None:
            del content["accepted"]
        record = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
        write_atomically(plan.output / STATISTICS, f"{record}\n".encode())
    return statistics


Clients = tuple[Client | None, Client | None, Client | None]
"""Generator, verifier, teacher."""


@dataclass(frozen=True, slots=True)
class _Players:
    """Who made the steps and who labels them, for the record."""

    generator: str
    verifier: str
    clients: Clients
    simulated: bool
    accepted: dict[str, Any] | None


def _players(given: AcceptedSteps | None, clients: Clients) -> _Players:
    simulated = any(client.engine.simulated for client in clients if client is not None)
    if given is not None:
        simulated = simulated or given.simulated
        return _Players(given.generator, given.verifier, clients, simulated, given.record)
    generator, verifier, _ = clients
    assert generator is not None
    assert verifier is not None
    return _Players(generator.name, verifier.name, clients, simulated, None)


async def _work(
    plan: Refinement, verified: VerifiedSet, given: AcceptedSteps | None, named: Clients
) -> tuple[Mined, list[StepRow | Refused]]:
    clients = [client for client in named if client is not None]
    generator, verifier, teacher = named
    try:
        for client in clients:
            await check(client.engine)
        if given is not None:
            mined = mine_accepted(plan, verified, given)
        else:
            assert generator is not None
            assert verifier is not None
            mined = await mine(plan, verified, generator, verifier)
        return mined, await _relabelled(mined.cases, teacher, plan.rows)
    finally:
        for client in clients:
            await client.engine.close()


async def _relabelled(cases: Sequence[Case], teacher: Client | None, wanted: int) -> list[StepRow | Refused]:
    """Up to ``wanted`` rows, from the families in turn, and the cases that gave none."""
    # What is doubted takes no family's turn, and no teacher is asked: it could not help.
    made: list[StepRow | Refused] = [_refused(case, case.doubt) for case in cases if case.doubt]
    left = iter(in_turn(case for case in cases if not case.doubt))
    missing = wanted
    while missing and (batch := list(islice(left, missing))):
        # A teacher's request fails, is cached and retried on its own, so a batch may be large.
        made += await asyncio.gather(*(_relabel(case, teacher) for case in batch))
        missing = wanted - sum(isinstance(one, StepRow) for one in made)
    return made


async def _relabel(case: Case, teacher: Client | None) -> StepRow | Refused:
    """The row of a case: with the checker's verdict, or a teacher's that agrees with it."""
    try:
        feedback = case.found if teacher is None else await _verdict(case, teacher)
    except EngineError as error:
        return _refused(case, f"the teacher gave no reply: {error}")
    except FeedbackError as error:
        return _refused(case, f"the teacher's reply cannot be read: {error}")
    if feedback.error_type != case.found.error_type:
        return _refused(case, f"teacher and checker differ: {feedback.error_type}")
    row = case.row(feedback, _teacher_name(teacher))
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
    q, label = case.question, case.found.error_type
    return Refused(q.benchmark, q.id, label, case.step.number, reason, case.step.text)


def _teacher_name(teacher: Client | None) -> str:
    """What lands in the ``teacher`` column."""
    if teacher is None:
        return ANNOTATIONS
    return f"{teacher.name} prompts {verifying.prompt_digest()[:12]}"


def _statistics(
    plan: Refinement, verified: VerifiedSet, mined: Mined, made: Sequence[StepRow | Refused], players: _Players
) -> RefinementStatistics:
    clients = [client for client in players.clients if client is not None]
    kept = [one for one in made if isinstance(one, StepRow)]
    refused = Counter(r.reason.partition(":")[0] for r in made if isinstance(r, Refused))
    return RefinementStatistics(
        version=plan.version,
        seed=plan.seed,
        generator=players.generator,
        verifier=players.verifier,
        teacher=_teacher_name(players.clients[2]),
        simulated=players.simulated,
        limits=plan.limits,
        limit=plan.limit,
        questions=dict(sorted(mined.questions.items())),
        last_failure=_last_failure(mined, clients),
        tries=dict(sorted(mined.tries.items())),
        checked=mined.checked.total(),
        disagreements=len(mined.cases),
        mining_rate=mined.rate,
        families=_families(mined, kept),
        clusters=_clusters(mined, kept),
        wanted=plan.rows,
        rows=len(kept),
        refused=dict(sorted(refused.items())),
        verified=[
            {name: build[name] for name in ("benchmark", "split", "digest")}
            for build in verified.of(plan.benchmarks)
            if build["split"] == TRAIN
        ],
        prompts_sha256={
            "generator": generating.prompt_digest(plan.limits.prompt_set),
            "verifier": verifying.prompt_digest(dropped=plan.limits.drop_category, prompt_set=plan.limits.prompt_set),
        },
        code_sha256=code_digest(__name__, *modules_of(c.engine for c in clients)),
        accepted=players.accepted,
    )


def _last_failure(mined: Mined, clients: Sequence[Client]) -> str:
    """Why a question failed, as the client says that was asked for it."""
    if not mined.questions[FAILED]:
        return ""
    return next((client.last_error for client in clients if client.last_error), "no reason given")


def _families(mined: Mined, kept: Sequence[StepRow]) -> list[dict[str, Any]]:
    found = Counter(case.family for case in mined.cases)
    doubted = Counter(case.family for case in mined.cases if case.doubt)
    taken = Counter(row.family for row in kept)
    return [
        {
            **asdict(family),
            "disagreements": found[family.name],
            "doubted": doubted[family.name],
            "rows": taken[family.name],
        }
        for family in FAMILIES
    ]


def _clusters(mined: Mined, kept: Sequence[StepRow]) -> list[dict[str, Any]]:
    sizes = Counter(case.pattern for case in mined.cases)
    doubted = Counter(case.pattern for case in mined.cases if case.doubt)
    pattern_of = {case.id: case.pattern for case in mined.cases}
    taken = Counter(pattern_of[row.id] for row in kept)
    return [
        {
            **pattern._asdict(),
            "disagreements": size,
            "checked": mined.checked[pattern[1:]],
            "mining_rate": size / mined.checked[pattern[1:]],
            "doubted": doubted[pattern],
            "rows": taken[pattern],
        }
        for pattern, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]
