"""Builds ``safe-path-probe`` from questions with gold paths.

A question's split is decided by a hash of its words, so that equal questions are in one split; evaluation questions
are in test. The rows of a question are adjacent. Questions of all benchmarks are shuffled, so that the
first rows of a split are a sample of it.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path as File
from random import Random
from typing import Any

from builders.paths.corruptions import KINDS, Scope, corrupt_path
from builders.paths.questions import Questions
from builders.paths.relation_readers import check_graph
from builders.paths.sources import Derivation, ProbeBuild, find_gold, origins, verified_questions, with_paths
from builders.paths.world import COMPLETE, Path, PathQuestion, World
from builders.steps.composition import rank
from builders.steps.questions import open_verified
from builders.work import plans, publishing
from builders.work.columns import features
from builders.work.parquet import DatasetWriter, FilesByConfig
from safe_stepwise import prompts
from safe_stepwise.engines.base import conversation
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.graph_store import read_triples
from safe_stepwise.graphs.path_order import end_key, ends_in_question, find_unreached
from safe_stepwise.methods.paths import path_request, prompt_of
from safe_stepwise.records import Triple, canonical_json, identity
from safe_stepwise.store import names
from safe_stepwise.store.code import code_digest
from safe_stepwise.store.progress import show_progress
from safe_stepwise.store.tables import fill

CONFIGS = (names.PROBED, names.PROMPT_COMPLETION)


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """One path; ``position`` is the place of its error (from 1), None in the valid path."""

    question: PathQuestion
    path: Path
    corruption: names.Corruption
    position: int | None = None

    @property
    def id(self) -> str:
        """The SHA-256 of the row's content."""
        question, triples = self.question, [(triple.head, triple.relation, triple.tail) for triple in self.path]
        identifiers = [question.benchmark, question.id, question.question, question.answer]
        return identity([*identifiers, self.corruption, triples])


def valid_row(question: PathQuestion) -> ProbeRow:
    return ProbeRow(question, question.path, "valid")


def rows_of(
    question: PathQuestion, world: World, donors: Sequence[PathQuestion], seed: int
) -> Iterator[ProbeRow | tuple[names.Corruption, str]]:
    """Yield a question's rows, the valid one first; for a kind without a row, the kind and the reason."""
    paths = {question.path}
    yield valid_row(question)
    for kind in KINDS:
        chance = Random(f"{seed} {question.benchmark} {question.id} {kind}")
        draft = corrupt_path(kind, Scope(question, world, donors, chance))
        if isinstance(draft, str):
            yield kind, draft
        elif draft[0] in paths:
            yield kind, "another kind made the same path"
        else:
            paths.add(draft[0])
            yield ProbeRow(question, draft[0], kind, draft[1])


def config_features(config: str) -> Any:
    """Return the `datasets.Features` of a config."""
    if config == names.PROMPT_COMPLETION:
        return features("id", "turns")
    return features("probed_path", label=names.PATH_LABELS, corruption=names.CORRUPTIONS)


def columns_of(config: str, row: ProbeRow) -> dict[str, Any]:
    """Return the columns of a row in a config, with class labels as the numbers that `ClassLabel` stores."""
    question, is_valid = row.question, row.corruption == "valid"
    if config == names.PROMPT_COMPLETION:
        request = path_request(question.question, question.answer, row.path)
        verdict = json.dumps({"verdict": "YES" if is_valid else "NO"})
        return {"id": row.id, **conversation(request, verdict)}
    return {
        "id": row.id,
        "benchmark": question.benchmark,
        "question_id": question.id,
        "question": question.question,
        "answer": question.answer,
        "path": [{"head": t.head, "relation": t.relation, "tail": t.tail} for t in row.path],
        "label": names.PATH_LABELS.index("valid" if is_valid else "invalid"),
        "corruption": names.CORRUPTIONS.index(row.corruption),
        "position": row.position,
        "pair_id": valid_row(question).id,
    }


@dataclass(slots=True)
class Tally:
    """Counts as the rows are made."""

    read: int = 0
    """Questions with a path, before sampling."""
    row_counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Rows by split, benchmark and kind."""
    marked: Counter[str] = field(default_factory=Counter)
    """Rows that look wrong by their form, by kind."""
    rejects: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Benchmark, question, kind of corruption ("" for a whole question) and reason."""

    def leave_out(self, benchmark: str, id_: str, reason: str) -> None:
        """Add a whole question to the rejects."""
        self.rejects.append((benchmark, id_, "", reason))

    def add(self, split: str, row: ProbeRow) -> None:
        question = row.question
        self.row_counts[split, question.benchmark, row.corruption] += 1
        self.marked[row.corruption] += is_marked(question.question, question.answer, row.path)

    def count(self, *keys: str) -> int:
        """Count the rows of a split, benchmark and kind (any may be left out); ``valid`` rows are questions."""
        return sum(number for key, number in list(self.row_counts.items()) if set(keys) <= set(key))

    def fields(self) -> dict[str, Any]:
        """Return the counts for the record of a build, in rows unless a comment says otherwise."""
        splits, benchmarks, _ = (sorted(set(keys)) for keys in zip(*self.row_counts, strict=True))
        return {
            "rows": self.count(),
            "questions": self.count("valid"),
            "splits": {name: {"rows": self.count(name), "questions": self.count(name, "valid")} for name in splits},
            "benchmarks": {
                name: {
                    "questions": self.count(name, "valid"),
                    **{kind: n for kind in sorted(self.marked) if (n := self.count(name, kind))},
                }
                for name in benchmarks
            },
            # All rows, and those that look wrong by their form alone.
            "marked": {kind: {"rows": self.count(kind), "marked": n} for kind, n in sorted(self.marked.items())},
            # Questions without rows, by benchmark, and without a corruption, by its kind.
            "left_out": _nest((name, reason) for name, _, kind, reason in self.rejects if not kind),
            "refused": _nest((kind, reason) for _, _, kind, reason in self.rejects if kind),
        }


def _nest(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Count pairs by their first element, then by their second."""
    nested: dict[str, dict[str, int]] = {}
    for (outer, inner), number in sorted(Counter(pairs).items()):
        nested.setdefault(outer, {})[inner] = number
    return nested


def is_marked(question: str, answer: str, path: Sequence[Triple]) -> bool:
    """Return whether the form of a path shows that it is wrong, so that a model can reject it without knowledge.

    Its first triple names nothing of the question, one joins nothing that was named, or none names the answer.

    >>> oru = Triple("Ana Vorr", "place of birth", "Oru")
    >>> question = "In which country was Ana Vorr born?"
    >>> is_marked(question, "Oru", [oru]), is_marked(question, "Kelvia", [oru])
    (False, True)
    """
    ends = {end_key(end) for triple in path for end in (triple.head, triple.tail)}
    sought = end_key(answer)
    return find_unreached(path, ends_in_question(question, path)) is not None or sought not in ends | {"yes", "no"}


DATASET = publishing.Dataset(names.PATH_PROBE, names.PROBE_RECORD, config_features)
SPLITS = (names.TRAIN, names.VALIDATION, names.TEST)
_TENTHS = {8: names.VALIDATION, 9: names.TEST}
"""The tenths of all hashes that are not in train."""
_GROUP = 1_000
"""Rows written at a time."""


def build(
    plan: ProbeBuild, card: publishing.SingleCard, derivations: Mapping[str, Sequence[Derivation]]
) -> publishing.Record:
    """Build or replace ``OUTPUT/safe-path-probe``; return its record; raise ``UserError`` for bad input or folders."""
    if plan.over_graph:
        check_graph(plan.over_graph, plan.films)
    elif plan.films is not None:
        raise UserError("--kb and --questions go together: a knowledge graph and questions over it")
    opened = open_verified(plan.verified, plan.version)
    probe = _Probe(plan, derivations)
    verified = [name for name in plan.benchmarks if name != plan.over_graph]
    sources = origins(plan, opened.select_builds(verified) if verified or not plan.benchmarks else ())

    def make(folder: File) -> tuple[publishing.Record, bytes]:
        files, tally = probe.write(folder), probe.tally
        record = {
            "version": plan.version,
            "seed": plan.seed,
            "limit": plan.limit,
            "verified": sources,
            "files": files,
            "prompt_sha256": prompts.load(prompt_of("zero_shot")).digest,
            "libraries": plans.libraries(),
            "code_sha256": code_digest(__name__),
            **tally.fields(),
        }
        keys = ("benchmark", "question_id", "corruption", "reason")
        lines = (canonical_json(dict(zip(keys, reject, strict=True))) for reject in tally.rejects)
        return record, "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")

    return DATASET.build(plan, card, lambda: f"{probe.tally.count('valid')} questions done", make)


class _Probe:
    """Makes a probe, and counts its rows and rejects."""

    def __init__(self, plan: ProbeBuild, derivations: Mapping[str, Sequence[Derivation]]) -> None:
        self._plan, self._derivations = plan, derivations
        self.tally = Tally()

    def write(self, folder: File) -> FilesByConfig:
        """Write the Parquet files of every config; raise ``UserError`` if no question has a path."""
        plan, tally = self._plan, self.tally
        with show_progress("questions", "question", None, lambda: tally.read):
            questions = self._read_questions()
        if not questions:
            raise UserError(
                f"{plan.questions or plan.verified}: not one question has a path; take other benchmarks, or give "
                "--derivations for hotpotqa, --questions over a graph (and --kb, with the names of the questions)"
            )
        total = sum(map(len, questions.values()))

        shared = () if plan.films is None else read_triples(plan.films)
        worlds = {
            b: World(group, [Triple(*t) for t in shared] if b == plan.over_graph else (), b in COMPLETE)
            for b, group in questions.items()
            if b != plan.over_graph or plan.films is not None  # else each question has its own
        }
        writer = DatasetWriter(folder, [(config, split) for config in CONFIGS for split in SPLITS], config_features)
        with show_progress("paths", "question", total, lambda: tally.count("valid")):
            for split in SPLITS:
                chosen = [q for group in questions.values() for q in group if split_of(q) == split]
                rows = self._make_rows(sorted(chosen, key=lambda question: rank(plan.seed, question.key)), worlds)
                while batch := list(islice(rows, _GROUP)):
                    for row in batch:
                        tally.add(split, row)
                    for config in CONFIGS:
                        writer.add(config, split, [columns_of(config, row) for row in batch])
            return writer.close()

    def _read_questions(self) -> dict[str, list[PathQuestion]]:
        """Read the questions by benchmark, in a random order."""
        plan = self._plan
        by_benchmark: dict[str, dict[str, PathQuestion]] = defaultdict(dict)
        sources: list[Iterable[PathQuestion]] = [
            verified_questions(plan.verified, self._derivations, self.tally.leave_out, plan.benchmarks)
        ]
        if plan.questions is not None:
            place = plan.over_graph, [str(plan.questions)], names.TEST, plan.films
            rows = Questions(*place, keeps_rejects=plan.keep_rejects)
            for reject in map(json.loads, rows.rejects):
                self.tally.leave_out(plan.over_graph, reject["id"] or reject["location"], reject["reason"])
            sources.append(with_paths(find_gold(rows), self.tally.leave_out, keeps_graphs=plan.films is None))
        for source in sources:
            for question in source:
                self.tally.read += 1
                if question.key in by_benchmark[question.benchmark]:
                    self.tally.leave_out(question.benchmark, question.id, "another row asks the same")
                else:
                    by_benchmark[question.benchmark][question.key] = question
        return {
            name: sorted(group.values(), key=lambda question: rank(plan.seed, question.key))[: plan.limit]
            for name, group in sorted(by_benchmark.items())
            if group
        }

    def _make_rows(self, questions: Sequence[PathQuestion], worlds: Mapping[str, World]) -> Iterator[ProbeRow]:
        """Yield the rows of one split's questions; donors are of the same split and benchmark, and of like length."""
        alike: dict[object, list[PathQuestion]] = defaultdict(list)
        for question in questions:
            alike[question.benchmark, len(question.path)].append(question)
            alike[question.benchmark].append(question)
        for question in questions:
            name, donors = question.benchmark, alike[question.benchmark, len(question.path)]
            donors = donors if len(donors) > 1 else alike[name]
            # The entities of a question's own graph replace each other.
            world = worlds.get(name) or World([replace(question, paths=(*question.paths, question.facts))])
            for row in rows_of(question, world, donors, self._plan.seed):
                if isinstance(row, ProbeRow):
                    yield row
                else:
                    self.tally.rejects.append((name, question.id, *row))


def split_of(question: PathQuestion) -> str:
    """Return the split: "test" for evaluation questions (by id); else it depends only on benchmark and words."""
    if question.is_held_out:
        return names.TEST
    digest = hashlib.sha256(question.key.encode("utf-8", "replace")).digest()
    return _TENTHS.get(int.from_bytes(digest[:8], "big") % 10, names.TRAIN)


def summary(output: File, statistics: publishing.Record) -> str:
    """Render for the terminal the rows by benchmark and kind, the refused ones, and the folder."""
    rows = [
        (name, numbers["questions"], *(numbers.get(kind, 0) for kind in names.CORRUPTIONS))
        for name, numbers in statistics["benchmarks"].items()
    ]
    groups = (statistics["left_out"], statistics["refused"])
    left_out, refused = (sum(sum(reasons.values()) for reasons in group.values()) for group in groups)
    values = {
        "rows": [("benchmark", "questions", *names.CORRUPTIONS), *rows],
        "left_out": left_out,
        "refused": refused,
    }
    folder = File(__file__).parent / "templates"
    return fill(folder, "probe.txt", output=output, statistics=statistics, **values).rstrip()
