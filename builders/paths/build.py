"""From questions with gold paths to ``safe-path-probe``.

Questions are split by a hash of their words, so that one that two rows ask is in one split;
evaluation questions of the verified set are in test.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builders.paths import metaqa
from builders.paths.asked import Asked, Refuse
from builders.paths.features import config_features
from builders.paths.graph_questions import derived, read_films, with_paths
from builders.paths.origins import origins
from builders.paths.probing import ProbeBuild
from builders.paths.sources import Derivation, verified_questions
from builders.paths.statistics import ProbeStatistics, Tally
from builders.paths.writing import rank, reject, write
from builders.steps.questions import open_verified
from builders.work import publishing
from builders.work.plans import libraries
from safe_stepwise import prompts
from safe_stepwise.errors import UserError
from safe_stepwise.methods.paths import prompt_of
from safe_stepwise.records import Triple
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import PATH_PROBE, PROBE_RECORD
from safe_stepwise.store.progress import counts, telling


def build(
    plan: ProbeBuild, card: publishing.CardOfOne, derivations: Mapping[str, Sequence[Derivation]]
) -> ProbeStatistics:
    """Build ``OUTPUT/safe-path-probe`` (again, if it is there) and ``OUTPUT/rejects.jsonl``.

    Raises ``UserError`` for what the user can mend: folders, versions, files that are none.
    """
    if (plan.films is None) != (plan.questions is None):
        raise UserError("--kb and --questions go together: MetaQA's knowledge base and questions")
    opened = open_verified(plan.verified, plan.version)
    sources = origins(opened.of(plan.benchmarks), plan)
    tally, rejects = Tally(), list[str]()

    def refuse(benchmark: str, id_: str, reason: str) -> None:
        tally.left_out[benchmark, reason] += 1
        rejects.append(reject(benchmark, id_, "", reason))

    def make(folder: Path) -> tuple[ProbeStatistics, bytes]:
        with telling("questions", "question", None, lambda: tally.read, lambda: _read(tally)):
            questions, known = _asked(plan, derivations, refuse, tally)
        if not questions:
            raise UserError(
                f"{plan.verified}: not one question has a path; take other benchmarks, or give "
                "--derivations for hotpotqa, --kb and --questions for metaqa"
            )
        total = sum(map(len, questions.values()))
        standing = (lambda: tally.questions.total(), lambda: _told(tally, total))
        with telling("paths", "question", total, *standing):
            files = write(folder, questions, known, plan.seed, tally, rejects)
        statistics = ProbeStatistics(
            version=plan.version,
            seed=plan.seed,
            limit=plan.limit,
            verified=sources,
            files=files,
            prompt_sha256=prompts.load(prompt_of("zero_shot")).digest,
            libraries=libraries(),
            code_sha256=code_digest(__name__),
            **tally.fields(),
        )
        return statistics, "".join(f"{line}\n" for line in rejects).encode("utf-8", "backslashreplace")

    dataset = publishing.Dataset(PATH_PROBE, PROBE_RECORD, config_features)
    return dataset.build(plan, card, lambda: f"{tally.questions.total()} questions done", make)


def _read(tally: Tally) -> str:
    return counts(tally.read, 0, "?", **{"left out": tally.left_out.total()})


def _told(tally: Tally, total: int) -> str:
    made = tally.questions.total()
    return counts(made, 0, total - made, rows=tally.rows.total())


def _asked(
    plan: ProbeBuild, derivations: Mapping[str, Sequence[Derivation]], refuse: Refuse, tally: Tally
) -> tuple[dict[str, list[Asked]], dict[str, Iterable[Triple]]]:
    """The questions by benchmark, in the order of a draw, and whole knowledge bases."""
    found: dict[str, dict[str, Asked]] = defaultdict(dict)
    known: dict[str, Iterable[Triple]] = {}
    sources: list[Iterable[Asked]] = [verified_questions(plan.verified, derivations, refuse, plan.benchmarks)]
    if plan.films is not None and plan.questions is not None:
        triples, graph, questions = read_films(plan.films, plan.questions)
        known[metaqa.NAME] = triples
        sources.append(with_paths(graph, questions, derived(graph, questions), refuse))
    for source in sources:
        for one in source:
            tally.read += 1
            if one.key in found[one.benchmark]:
                refuse(one.benchmark, one.id, "another row asks the same")
            else:
                found[one.benchmark][one.key] = one
    drawn = {
        name: sorted(of.values(), key=lambda one: rank(plan.seed, one))[: plan.limit]
        for name, of in sorted(found.items())
        if of
    }
    return drawn, known
