"""From questions with gold paths to ``safe-path-probe``.

Questions are split by a hash of their words, so that one that two rows ask is in one split;
evaluation questions of the verified set are in test. The rows of a question stand together, in the
order of a draw of questions.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from builders.paths.asked import Asked
from builders.paths.features import CONFIGS, config_features, row_of
from builders.paths.metaqa import film_questions, read_films, read_questions
from builders.paths.origins import origins
from builders.paths.rows import ProbeRow, rows_of
from builders.paths.sources import Derivation, verified_questions
from builders.paths.statistics import ProbeStatistics, Tally
from builders.paths.world import World
from builders.steps.questions import open_verified
from builders.verified.statistics import libraries
from builders.work import publishing
from builders.work.parquet import SplitFiles, SplitWriter
from safe_stepwise import prompts
from safe_stepwise.errors import UserError
from safe_stepwise.methods.paths import prompt_of
from safe_stepwise.records import Triple, canonical_json
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import (
    PATH_PROBE,
    PROBE_RECORD,
    REJECTS,
    TEST,
    TRAIN,
    VALIDATION,
    WORK,
)
from safe_stepwise.store.progress import counts, telling

SPLITS = (TRAIN, VALIDATION, TEST)
_TENTHS = {8: VALIDATION, 9: TEST}
COMPLETE = ("metaqa", "synthetic")
"""Benchmarks whose graph is all there is."""
_GROUP = 1_000
"""Rows that are written at a time."""

Card = Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], Mapping[str, bytes]]
"""The dataset's README by file name, from its statistics and ``dataset_info``."""


@dataclass(frozen=True, slots=True)
class ProbeBuild:
    """What to build; ``films`` and ``questions`` are MetaQA's files, both or neither."""

    verified: Path
    output: Path
    films: Path | None = None
    questions: Path | None = None
    derivations: Path | None = None
    benchmarks: tuple[str, ...] = ()
    """All that are there, if none is named."""
    limit: int | None = None
    """Questions of a benchmark."""
    version: str = "v0.1.0"
    seed: int = 0

    @property
    def work(self) -> Path:
        """Where unfinished work lies."""
        return self.output / WORK / "path-probe"


def build(
    plan: ProbeBuild, card: Card, derivations: Mapping[str, Sequence[Derivation]]
) -> ProbeStatistics:
    """Build ``OUTPUT/safe-path-probe`` (again, if it is there) and ``OUTPUT/rejects.jsonl``.

    Raises ``UserError`` for what the user can mend: folders, versions, files that are none.
    """
    if (plan.films is None) != (plan.questions is None):
        raise UserError("--kb and --questions go together: MetaQA's knowledge base and questions")
    opened = open_verified(plan.verified, plan.version)
    sources = origins(opened.of([b for b in plan.benchmarks if b != "metaqa"]), plan)
    tally, rejects = Tally(), list[str]()

    def refuse(benchmark: str, id_: str, reason: str) -> None:
        tally.left_out[benchmark, reason] += 1
        rejects.append(_line(benchmark, id_, "", reason))

    def done() -> str:
        return f"{tally.questions.total()} questions done"

    with publishing.building(plan.output, (PATH_PROBE,), plan.version, plan.work, done):
        release = publishing.new_release(plan.work)
        asked, known = _asked(plan, derivations, refuse)
        if not asked:
            raise UserError(
                f"{plan.verified}: not one question has a path; take other benchmarks, or give "
                "--derivations for hotpotqa, --kb and --questions for metaqa"
            )
        total = sum(map(len, asked.values()))
        standing = (lambda: tally.questions.total(), lambda: _told(tally, total))
        with telling("paths", "question", total, *standing):
            files = _write(release / "data", asked, known, plan.seed, tally, rejects)
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
        _publish(plan, release, statistics, card, rejects)
        return statistics


def _told(tally: Tally, total: int) -> str:
    made = tally.questions.total()
    return counts(made, 0, total - made, rows=tally.rows.total())


def _asked(
    plan: ProbeBuild, derivations: Mapping[str, Sequence[Derivation]], refuse: Callable[..., object]
) -> tuple[dict[str, list[Asked]], dict[str, Iterable[Triple]]]:
    """The questions by benchmark, in the order of a draw, and whole knowledge bases."""
    found: dict[str, dict[str, Asked]] = defaultdict(dict)
    known: dict[str, Iterable[Triple]] = {}
    sources: list[Iterable[Asked]] = [
        verified_questions(plan.verified, derivations, refuse, plan.benchmarks)
    ]
    if plan.films is not None and plan.questions is not None:
        films = read_films(plan.films)
        known["metaqa"] = films.triples
        sources.append(film_questions(films, read_questions(plan.questions), refuse))
    for source in sources:
        for one in source:
            if one.key in found[one.benchmark]:
                refuse(one.benchmark, one.id, "another row asks the same")
            else:
                found[one.benchmark][one.key] = one
    drawn = {
        name: sorted(of.values(), key=lambda one: _rank(plan.seed, one))[: plan.limit]
        for name, of in sorted(found.items())
        if of
    }
    return drawn, known


def _rank(seed: int, asked: Asked) -> bytes:
    return hashlib.sha256(f"{seed}\0{asked.key}".encode("utf-8", "replace")).digest()


def split_of(asked: Asked) -> str:
    """The split of a question: by its words alone, but that evaluation questions are in test."""
    if asked.is_held_out:
        return TEST
    digest = hashlib.sha256(asked.key.encode("utf-8", "replace")).digest()
    return _TENTHS.get(int.from_bytes(digest[:8], "big") % 10, TRAIN)


def _write(
    folder: Path,
    asked: Mapping[str, Sequence[Asked]],
    known: Mapping[str, Iterable[Triple]],
    seed: int,
    tally: Tally,
    rejects: list[str],
) -> dict[str, dict[str, SplitFiles]]:
    """Write the files of every config; returns what they are, by config and split."""
    writers = {
        config: {s: SplitWriter(folder / config, s, config_features(config)) for s in SPLITS}
        for config in CONFIGS
    }
    for benchmark, questions in asked.items():
        world = World(questions, known.get(benchmark, ()), benchmark in COMPLETE)
        for split in SPLITS:
            own = [one for one in questions if split_of(one) == split]
            made = _made(own, world, seed, tally, rejects)
            for rows in _grouped(made, _GROUP):
                for row in rows:
                    tally.add(split, row)
                for config, of in writers.items():
                    content = [row_of(config, row) for row in rows]
                    schema = config_features(config).arrow_schema
                    of[split].add(pa.Table.from_pylist(content, schema=schema))
    return {
        config: {s: writer.close() for s, writer in of.items()} for config, of in writers.items()
    }


def _made(
    questions: Sequence[Asked], world: World, seed: int, tally: Tally, rejects: list[str]
) -> Iterator[ProbeRow]:
    """The rows of questions of one split; what was refused is counted and told."""
    alike: dict[int, list[Asked]] = defaultdict(list)
    for one in questions:
        alike[len(one.path)].append(one)
    for one in questions:
        same = alike[len(one.path)]
        donors = same if len(same) > 1 else questions
        for made in rows_of(one, world, donors, seed, tally.drawn):
            if isinstance(made, ProbeRow):
                yield made
            else:
                tally.refused[made.corruption, made.reason] += 1
                rejects.append(_line(one.benchmark, one.id, made.corruption, made.reason))


def _grouped(rows: Iterable[ProbeRow], size: int) -> Iterator[list[ProbeRow]]:
    group: list[ProbeRow] = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def _line(benchmark: str, id_: str, corruption: str, reason: str) -> str:
    told = {"benchmark": benchmark, "question_id": id_, "corruption": corruption, "reason": reason}
    return canonical_json(told)


def _publish(
    plan: ProbeBuild, release: Path, statistics: ProbeStatistics, card: Card, rejects: Sequence[str]
) -> None:
    """Write the record and the card, put all in place, and only then forget the work."""
    record = json.loads(json.dumps(asdict(statistics)))
    publishing.complete(
        release,
        PROBE_RECORD,
        statistics,
        lambda _, info: card(record, info),
        lambda _: {config: splits.values() for config, splits in record["files"].items()},
        config_features,
    )
    publishing.swap_in(release, plan.output / PATH_PROBE)
    lines = "".join(f"{line}\n" for line in rejects).encode("utf-8", "backslashreplace")
    publishing.publish_lines(plan.output / REJECTS, lines)
    publishing.forget(plan.work)
