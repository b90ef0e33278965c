"""From verified questions to the step-level verifier set, ``safe-verifier-steps``.

Steps are made chunk by chunk into ``OUTPUT/.work/verifier-steps``; from all that passed, rows are
chosen, split by groups of questions, written beside the work and swapped in whole.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from builders.steps import configs, leakage, preference
from builders.steps.chunks import Maker, read_rows
from builders.steps.collect import Found, StepsBuild, enough, make, refuse_lost
from builders.steps.composition import Chosen, choose, rank
from builders.steps.configs import key_of
from builders.steps.features import config_features
from builders.steps.first import Taken, held_out
from builders.steps.lengths import check_lengths
from builders.steps.probes import probed_for_twins
from builders.steps.questions import OF_A_BUILD, VerifiedSet, open_verified, question_key
from builders.steps.refined import origin_of
from builders.steps.rewording import in_held_back_words
from builders.steps.rewriting import Rewriter, checkers_of
from builders.steps.rows import StepRow
from builders.steps.skeletons import unseen
from builders.steps.statistics import Rewording, StepStatistics, concerns, counted, examples
from builders.verified.chunks import code_of
from builders.work import publishing
from builders.work.plans import libraries
from safe_stepwise.errors import UserError
from safe_stepwise.methods import generator
from safe_stepwise.methods.verifier import prompt_digest
from safe_stepwise.records import Question
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import (
    MISSING,
    MISSING_TWINS,
    REFINED,
    REFUSED,
    STEPS,
    STEPS_RECORD,
    TEST,
    TRAIN,
    VERIFIER_STEPS,
)

LIBRARIES = ("matplotlib", "scikit-learn")
"""Those of the card's pictures and of the probes."""
DATASET = publishing.Dataset(VERIFIER_STEPS, STEPS_RECORD, config_features, REFUSED)


def build(
    plan: StepsBuild,
    maker: Maker,
    card: publishing.CardOfOne,
    warn: Callable[[str], object] = print,
    rewriter: Rewriter | None = None,
) -> StepStatistics:
    """Build ``OUTPUT/safe-verifier-steps`` (again, if it is there) and ``OUTPUT/refused.jsonl``.

    Killed at any instant, the same call resumes, and ends in the same bytes, for any number of
    workers. ``warn`` is told what may matter but stops nothing: labels that other code made. A
    ``rewriter`` words the chosen rows anew, where it can.

    Raises ``UserError`` for what the user can mend: folders, versions, too few rows, rows that are
    too long, a full disk.
    """
    if not 0 < plan.test_share < 1:
        raise UserError(f"--test-share {plan.test_share}: a share lies between 0 and 1")
    verified = open_verified(plan.verified, plan.version)
    plan = replace(plan, pool=enough(plan, verified))
    if plan.first is not None:
        plan.first.check(verified.builds)
    if others := _labelled_otherwise(verified):
        warn(f"{verified.folder}: other code than this one made the labels of {', '.join(others)}")
    found = Found()

    def make_rows(folder: Path) -> tuple[StepStatistics, bytes]:
        _check_kind(plan)
        maker.check()
        if rewriter is not None:
            rewriter.check()
        make(plan, verified, maker, found)
        statistics = _write(plan, verified, maker, found, folder, rewriter)
        return statistics, (plan.work / REFUSED).read_bytes()

    try:
        statistics = DATASET.build(plan, card, lambda: f"{found.standing.done} questions done", make_rows)
    finally:
        maker.close()
        if rewriter is not None:
            rewriter.close()
    for concern in concerns(statistics):
        warn(concern)
    return statistics


def _labelled_otherwise(verified: VerifiedSet) -> list[str]:
    return [
        f"{build['benchmark']} {build['split']}"
        for build in verified.builds
        if build["code_sha256"] != code_of(build["benchmark"], build["teacher"])
    ]


def _check_kind(plan: StepsBuild) -> None:
    """Raise ``UserError`` if checked steps would be put in the place of unchecked ones, or so."""
    place = plan.output / VERIFIER_STEPS
    for build in publishing.read_statistics(place):
        if bool(build.get("unverifiable")) != plan.unverifiable:
            there = "verified" if plan.unverifiable else "unverifiable"
            raise UserError(
                f"{place}: holds steps of {there} questions, which these would replace; choose another --output"
            )


def _write(
    plan: StepsBuild, verified: VerifiedSet, maker: Maker, found: Found, folder: Path, rewriter: Rewriter | None
) -> StepStatistics:
    """Choose, split and write the rows; returns the record of it all."""
    chosen, taken = _chosen(plan, found)
    picked = _picked(found, chosen.ids, plan.seed)
    test, together = _split(plan, [row for row in picked if row.id in chosen.ids])
    reworded = in_held_back_words(plan, verified, maker, [row for row in picked if key_of(row) in test])
    of = configs.by_config([reworded.get(row.id, row) for row in picked])
    of[STEPS], rewording = _reworded(plan, verified, rewriter, of[STEPS])
    rows, overlap = configs.without_copies({c: configs.by_split(r, test) for c, r in of.items()})
    train, held = ([row for parts in rows.values() for row in parts[s]] for s in (TRAIN, TEST))
    new = unseen(held, train)
    lengths = check_lengths([*train, *held], plan.max_length, plan.tokenizer, plan.prompt_set)
    files = configs.files(rows, new, folder, plan.seed, plan.prompt_set)
    return StepStatistics(
        version=plan.version,
        seed=plan.seed,
        teacher=maker.name if rewriter is None else rewriter.name,
        simulated=maker.simulated or (rewriter is not None and rewriter.simulated),
        unverifiable=plan.unverifiable,
        composition=plan.composition,
        test_share=plan.test_share,
        test_split=plan.test_split,
        pool=plan.pool,
        refined=origin_of(plan.refined, found.refined, _families(rows[STEPS])),
        rewording=rewording,
        rows_of=_told(plan, taken, together, test),
        missing_evidence=configs.sizes(rows[MISSING]),
        missing_evidence_twins=configs.sizes(rows[MISSING_TWINS]),
        wordings={name: configs.wordings(parts[TEST], new) for name, parts in rows.items()},
        overlap=overlap,
        shortfalls=chosen.shortfalls,
        groups=_groups(together, rows[STEPS]),
        lengths=lengths,
        verified=[{n: b[n] for n in OF_A_BUILD} for b in verified.of(plan.benchmarks)],
        files=files,
        examples=examples(rows[STEPS][TRAIN]),
        prompts=plan.prompt_set.plain,
        prompt_sha256=prompt_digest(prompt_set=plan.prompt_set),
        missing_evidence_prompt_sha256=prompt_digest(True, prompt_set=plan.prompt_set),
        libraries={**libraries(), **{name: installed_version(name) for name in LIBRARIES}},
        code_sha256=code_digest(__name__, maker.__module__),
        preference=preference.counts(rows[STEPS]),
        generator_prompt_sha256=generator.prompt_digest(plan.prompt_set),
        missing_evidence_probe=probed_for_twins([*train, *held]),
        **counted(rows[STEPS]),
        **_found_counts(found),
    )


def _chosen(plan: StepsBuild, found: Found) -> tuple[Chosen, Taken | None]:
    """The rows of a set; those of a first build that were not made are refused, not replaced."""
    if plan.first is None:
        return choose(found.candidates, plan.composition, plan.seed), None
    taken = plan.first.take(found.candidates, plan.seed)
    refuse_lost(plan, taken.refused, found)
    if not taken.ids:
        raise UserError(
            f"{plan.output}: not one row of {plan.first.name} could be made by this teacher; all "
            f"reasons are in {plan.work / REFUSED}"
        )
    return Chosen(taken.ids), taken


def _told(
    plan: StepsBuild, taken: Taken | None, together: Sequence[Sequence[str]], test: set[str]
) -> dict[str, Any] | None:
    """What came of the rows of a first build, if there is one."""
    if plan.first is None or taken is None:
        return None
    there = {key for group in together for key in group}
    before = {question_key(*question) for question in plan.first.tested}
    return plan.first.told(taken, len((before & there) - test))


def _reworded(
    plan: StepsBuild, verified: VerifiedSet, rewriter: Rewriter | None, steps: list[StepRow]
) -> tuple[list[StepRow], Rewording | None]:
    """The chosen rows in a model's words, where it can say the same."""
    if rewriter is None:
        return steps, None
    checkers = checkers_of(verified, plan.benchmarks, plan.pool, plan.seed, steps)
    return rewriter.reword(steps, checkers)


def _found_counts(found: Found) -> dict[str, Any]:
    """What was seen, refused and kept out, as fields of `StepStatistics`."""
    refused: dict[str, dict[str, int]] = defaultdict(dict)
    for (error_type, reason), number in sorted(found.refused.items()):
        refused[error_type][reason] = number
    return {
        "trajectories": {
            name: {"questions": found.seen[name], "passing": found.passing[name]} for name in sorted(found.seen)
        },
        "refused": dict(refused),
        "kept_out": {
            name: {"questions": number, "rows": found.kept_rows[name]}
            for name, number in sorted(found.kept_questions.items())
        },
    }


def _picked(found: Found, chosen: frozenset[str], seed: int) -> list[StepRow]:
    """The chosen rows, and those of incomplete evidence of their questions, in the draw's order."""
    questions = {(c.benchmark, c.question) for c in found.candidates if c.id in chosen}
    missing = {c.id for c in found.missing if (c.benchmark, c.question) in questions}
    rows: dict[str, StepRow] = {}
    for path in found.shards:
        for row in read_rows(path, chosen | missing):
            rows.setdefault(row.id, row)
    return [rows[id_] for id_ in sorted(rows, key=lambda id_: rank(seed, id_))]


def _split(plan: StepsBuild, steps: Sequence[StepRow]) -> tuple[set[str], list[list[str]]]:
    """The questions of the test split, and the groups that hold together."""
    sizes = Counter(key_of(row) for row in steps)
    # What a question was changed to comes first, so that its own passages stand in the end.
    asked = {key_of(row): row.question for row in sorted(steps, key=lambda r: r.context == "original")}
    documents = {key: leakage.document(question) for key, question in asked.items()}
    shown = {(row.question.benchmark, row.borrowed or "", key_of(row)) for row in steps}
    links = [(question_key(name, other), key) for name, other, key in shown if other]
    together = leakage.groups(documents, links)
    together.sort(key=lambda group: rank(plan.seed, group[0]))
    if plan.first is not None:
        return held_out(together, {question_key(*q) for q in plan.first.tested}), together
    if plan.test_split is not None:
        return _tested(plan, asked, together), together
    # Benchmark by benchmark, so that the test split has its share of each.
    of: dict[str, list[list[str]]] = defaultdict(list)
    for group in together:
        of[asked[group[0]].benchmark].append(group)
    test: set[str] = set()
    for _, groups in sorted(of.items()):
        rows_there = sum(sizes[key] for group in groups for key in group)
        for number in leakage.held_out(groups, sizes, round(plan.test_share * rows_there)):
            test.update(groups[number])
    return test, together


def _tested(plan: StepsBuild, asked: Mapping[str, Question], together: Sequence[Sequence[str]]) -> set[str]:
    """The questions of the benchmarks' own split, with whatever may not be parted from them."""
    wanted = {key for key, question in asked.items() if question.split == plan.test_split}
    if not wanted or len(wanted) == len(asked):
        there = ", ".join(sorted({question.split for question in asked.values()}))
        raise UserError(
            f"--test-split {plan.test_split}: the chosen rows are of questions of {there} alone; "
            "name another split, or verify more of this one than its evaluation sample takes"
        )
    return {key for group in together if not wanted.isdisjoint(group) for key in group}


def _families(rows: Mapping[str, Sequence[StepRow]]) -> Counter[str]:
    """The refined rows of a set by the weakness that they show."""
    return Counter(row.family for part in rows.values() for row in part if row.origin == REFINED)


def _groups(together: Sequence[Sequence[str]], rows: Mapping[str, Sequence[StepRow]]) -> dict[str, int]:
    """How many groups there are, and the questions of the largest, as far as they have rows."""
    there = {key_of(row) for part in rows.values() for row in part}
    sizes = [number for group in together if (number := sum(key in there for key in group))]
    return {"groups": len(sizes), "largest": max(sizes, default=0)}
