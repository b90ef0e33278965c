"""Builds ``safe-path-probe`` from questions with gold paths.

A question's split is decided by a hash of its words, so that equal questions are in one split; evaluation questions
are in test. The rows of a question stand together. Questions of all benchmarks are shuffled, so that the
first rows of a split are a sample of it.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from builders.paths import metaqa
from builders.paths.rows import CONFIGS, ProbeRow, Tally, columns_of, config_features, rows_of
from builders.paths.sources import Derivation, ProbeBuild, derive, origins, read_films, verified_questions, with_paths
from builders.paths.world import PathQuestion, World
from builders.steps.questions import open_verified
from builders.work import publishing
from builders.work.parquet import DatasetWriter, FilesByConfig
from builders.work.plans import libraries
from safe_stepwise import prompts
from safe_stepwise.errors import UserError
from safe_stepwise.methods.paths import prompt_of
from safe_stepwise.records import Triple, canonical_json
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.names import CORRUPTIONS, PATH_PROBE, PROBE_RECORD, TEST, TRAIN, VALIDATION
from safe_stepwise.store.progress import counts, show_progress
from safe_stepwise.store.tables import fill

DATASET = publishing.Dataset(PATH_PROBE, PROBE_RECORD, config_features)
SPLITS = (TRAIN, VALIDATION, TEST)
COMPLETE = ("metaqa", "synthetic")
"""Benchmarks whose graph states every true fact: what it lacks is false."""
_TENTHS = {8: VALIDATION, 9: TEST}
"""The tenths of all hashes that are not in train."""
_GROUP = 1_000
"""Rows written at a time."""


def build(
    plan: ProbeBuild, card: publishing.SingleCard, derivations: Mapping[str, Sequence[Derivation]]
) -> publishing.Record:
    """Build ``OUTPUT/safe-path-probe``, or replace it, and ``OUTPUT/rejects.jsonl``; return the record.

    Raises ``UserError`` for mistakes that the user can mend: folders, versions, files of another form.
    """
    if (plan.films is None) != (plan.questions is None):
        raise UserError("--kb and --questions go together: MetaQA's knowledge base and questions")
    opened = open_verified(plan.verified, plan.version)
    probe = _Probe(plan, derivations)
    sources = origins(plan, opened.select_builds(plan.benchmarks))

    def make(folder: Path) -> tuple[publishing.Record, bytes]:
        files, tally = probe.write(folder), probe.tally
        record = {
            "version": plan.version,
            "seed": plan.seed,
            "limit": plan.limit,
            "verified": sources,
            "files": files,
            "prompt_sha256": prompts.load(prompt_of("zero_shot")).digest,
            "libraries": libraries(),
            "code_sha256": code_digest(__name__),
            **tally.fields(),
        }
        return record, "".join(f"{line}\n" for line in probe.rejects).encode("utf-8", "backslashreplace")

    return DATASET.build(plan, card, lambda: f"{probe.tally.count('valid')} questions done", make)


class _Probe:
    """Makes a probe; counts its rows, and keeps the lines of its rejects."""

    def __init__(self, plan: ProbeBuild, derivations: Mapping[str, Sequence[Derivation]]) -> None:
        self._plan, self._derivations = plan, derivations
        self.tally, self.rejects = Tally(), list[str]()

    def write(self, folder: Path) -> FilesByConfig:
        """Write the Parquet files of every config; raise ``UserError`` if no question has a path."""
        plan, tally = self._plan, self.tally
        reading = (lambda: tally.read, lambda: counts(tally.read, 0, "?", **{"left out": tally.left_out.total()}))
        with show_progress("questions", "question", None, *reading):
            questions, triples = self._questions()
        if not questions:
            raise UserError(
                f"{plan.verified}: not one question has a path; take other benchmarks, or give "
                "--derivations for hotpotqa, --kb and --questions for metaqa"
            )
        total = sum(map(len, questions.values()))

        def describe() -> str:
            finished = tally.count("valid")
            return counts(finished, 0, total - finished, rows=tally.count())

        worlds = {
            b: World(group, triples if b == metaqa.NAME else (), b in COMPLETE) for b, group in questions.items()
        }
        writer = DatasetWriter(folder, [(config, split) for config in CONFIGS for split in SPLITS], config_features)
        with show_progress("paths", "question", total, lambda: tally.count("valid"), describe):
            for split in SPLITS:
                chosen = [q for group in questions.values() for q in group if split_of(q) == split]
                rows = self._rows(sorted(chosen, key=lambda question: rank(plan.seed, question)), worlds)
                while batch := list(islice(rows, _GROUP)):
                    for row in batch:
                        tally.add(split, row)
                    for config in CONFIGS:
                        writer.add(config, split, [columns_of(config, row) for row in batch])
            return writer.close()

    def _questions(self) -> tuple[dict[str, list[PathQuestion]], Iterable[Triple]]:
        """Read the questions by benchmark, in a random order, and MetaQA's whole knowledge base."""
        plan, triples = self._plan, tuple[Triple, ...]()
        by_benchmark: dict[str, dict[str, PathQuestion]] = defaultdict(dict)
        sources: list[Iterable[PathQuestion]] = [
            verified_questions(plan.verified, self._derivations, self._leave_out, plan.benchmarks)
        ]
        if plan.films is not None and plan.questions is not None:
            triples, graph, questions = read_films(plan.films, plan.questions)
            sources.append(with_paths(graph, questions, derive(graph, questions), self._leave_out))
        for source in sources:
            for question in source:
                self.tally.read += 1
                if question.key in by_benchmark[question.benchmark]:
                    self._leave_out(question.benchmark, question.id, "another row asks the same")
                else:
                    by_benchmark[question.benchmark][question.key] = question
        return {
            name: sorted(group.values(), key=lambda question: rank(plan.seed, question))[: plan.limit]
            for name, group in sorted(by_benchmark.items())
            if group
        }, triples

    def _leave_out(self, benchmark: str, id_: str, reason: str) -> None:
        self.tally.left_out[benchmark, reason] += 1
        self._reject(benchmark, id_, "", reason)

    def _reject(self, benchmark: str, id_: str, corruption: str, reason: str) -> None:
        """Add a line to the rejects; ``corruption`` is empty for a whole question."""
        line = {"benchmark": benchmark, "question_id": id_, "corruption": corruption, "reason": reason}
        self.rejects.append(canonical_json(line))

    def _rows(self, questions: Sequence[PathQuestion], worlds: Mapping[str, World]) -> Iterator[ProbeRow]:
        """Yield the rows of one split's questions; refused corruptions are counted and added to the rejects.

        Paths of other questions come from the same split and benchmark, and have the same length if possible.
        """
        alike: dict[object, list[PathQuestion]] = defaultdict(list)
        for question in questions:
            alike[question.benchmark, len(question.path)].append(question)
            alike[question.benchmark].append(question)
        for question in questions:
            name, donors = question.benchmark, alike[question.benchmark, len(question.path)]
            donors = donors if len(donors) > 1 else alike[name]
            for row in rows_of(question, worlds[name], donors, self._plan.seed, self.tally.refused_drafts):
                if isinstance(row, ProbeRow):
                    yield row
                else:
                    self.tally.refused[row] += 1
                    self._reject(name, question.id, *row)


def split_of(question: PathQuestion) -> str:
    """Return the split: "test" for evaluation questions (by id); else it depends on benchmark and words alone."""
    if question.is_held_out:
        return TEST
    digest = hashlib.sha256(question.key.encode("utf-8", "replace")).digest()
    return _TENTHS.get(int.from_bytes(digest[:8], "big") % 10, TRAIN)


def rank(seed: int, question: PathQuestion) -> bytes:
    """Return a random sort key that depends only on the seed and the question's words."""
    return hashlib.sha256(f"{seed}\0{question.key}".encode("utf-8", "replace")).digest()


def summary(output: Path, statistics: publishing.Record) -> str:
    """Render for the terminal the rows by benchmark and kind, the refused ones, and the folder."""
    rows = [
        (name, numbers["questions"], *(numbers.get(kind, 0) for kind in CORRUPTIONS))
        for name, numbers in statistics["benchmarks"].items()
    ]
    groups = (statistics["left_out"], statistics["refused"])
    left_out, refused = (sum(sum(reasons.values()) for reasons in group.values()) for group in groups)
    values = {"rows": [("benchmark", "questions", *CORRUPTIONS), *rows], "left_out": left_out, "refused": refused}
    folder = Path(__file__).parent / "templates"
    return fill(folder, "probe.txt", output=output, statistics=statistics, **values).rstrip()
