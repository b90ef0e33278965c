"""Choose the questions of an evaluation, with their graphs and gold paths, and read the set to learn from."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Protocol

from evaluators.deliberation.options import Labels, Options, SplitRule
from evaluators.outcomes import grouped
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.graphs.store import Convention, GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath, identity
from safe_stepwise.store import files, parquet
from safe_stepwise.store.names import BY_TEMPLATE, PATHS, TEST, TRAIN, paths_set

Gold = Mapping[str, tuple[RelationPath, ...]]
"""The right paths by topic entity, without topics that have none."""
CONFIGS: Mapping[SplitRule, str] = {"question": PATHS, "template": PATHS + BY_TEMPLATE}
_COLUMNS = ("question", "template", "hops", "path", "best", "gold")


@dataclass(frozen=True, slots=True)
class GraphQuestion:
    """A question, with its gold paths if they are known."""

    question: KGQuestion
    template: str
    """The question with its topics masked (`methods.path_proposing.masked`)."""
    gold: Gold


@dataclass(frozen=True, slots=True)
class PathExample:
    """A question with the paths that label it, the first one first."""

    question: str
    template: str
    hops: int
    paths: tuple[RelationPath, ...]


def merge_examples(examples: Iterable[PathExample]) -> list[PathExample]:
    """Merge the examples of each question, as one that comes twice would teach itself; each path stands once."""
    by_question: dict[str, PathExample] = {}
    for example in examples:
        earlier = by_question.get(example.question, example)
        by_question[example.question] = replace(example, paths=tuple(dict.fromkeys(earlier.paths + example.paths)))
    return [*by_question.values()]


@dataclass(frozen=True)
class PathsSet:
    """A set of ``build_paths``, split by question or by template."""

    folder: Path
    unit: SplitRule
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows by split."""

    @property
    def description(self) -> dict[str, Any]:
        """The set's name, kind of split and digests, for the record."""
        digests = {file.name: files.sha256_of(file) for file in parquet.parquet_files(self.folder, CONFIGS[self.unit])}
        return {"name": self.folder.name, "splits": self.unit, "sha256": digests}

    def examples(self, labels: Labels) -> list[PathExample]:
        """Return the examples of the train split, without questions that have no path with such a label."""
        column = "gold" if labels == "gold" else "best"
        rows = (row for row in self.rows[TRAIN] if row[column])
        return merge_examples(
            PathExample(row["question"], row["template"], row["hops"], (tuple(row["path"]),)) for row in rows
        )

    def split_of(self, case: GraphQuestion) -> str:
        """Return the split with a question's words or template; "" if no split has it."""
        return self._splits.get(case.question.question if self.unit == "question" else case.template, "")

    @cached_property
    def _splits(self) -> dict[str, str]:
        return {row[self.unit]: split for split, rows in self.rows.items() for row in rows}

    @cached_property
    def gold(self) -> dict[str, tuple[RelationPath, ...]]:
        gold_rows = (row for rows in self.rows.values() for row in rows if row["gold"])
        by_template = grouped(gold_rows, itemgetter("template"))
        return {name: tuple(dict.fromkeys(tuple(row["path"]) for row in rows)) for name, rows in by_template.items()}


def read_set(folder: Path, benchmark: str, unit: SplitRule) -> PathsSet:
    """Read the set in a folder; raise ``UserError`` if there is none for this benchmark."""
    name = paths_set(benchmark)
    dataset = parquet.dataset_folder(folder, name)
    if dataset is None or not parquet.parquet_files(dataset, CONFIGS[unit], TRAIN):
        raise UserError(
            f"--train {folder}: no {name} in it; build it with safe-stepwise build_paths "
            f"--benchmark {benchmark} --output {folder}"
        )
    rows: dict[str, list[Any]] = {TRAIN: [], TEST: []}
    for split, split_rows in rows.items():
        for file in parquet.parquet_files(dataset, CONFIGS[unit], split):
            split_rows += parquet.read_rows(file, dict, _COLUMNS)
    return PathsSet(dataset, unit, rows)


class QuestionRows(Protocol):
    """Questions with their graphs, as a builder reads them; all methods raise ``UserError``."""

    @property
    def hops(self) -> int:
        """The maximum number of hops of a path."""

    @property
    def description(self) -> dict[str, Any]:
        """The sources of the rows, for the record."""

    def read(self) -> list[KGQuestion]:
        """Read all questions."""

    @property
    def rejects(self) -> Sequence[bytes]:
        """The lines of ``rejects.jsonl``: rows that can't be read, with the reasons."""

    def graphs(self) -> Iterator[GraphStore]:
        """Yield the graph of each question, in order."""

    def gold(
        self,
        questions: Sequence[KGQuestion],
        by_template: Mapping[str, tuple[RelationPath, ...]],
        indices: Collection[int],
    ) -> tuple[Sequence[Gold], str]:
        """Return the gold paths of each question, and their origin; ``by_template`` holds those of the train set."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All questions, and the indices of those to use; `choose` makes it without gold paths, `with_gold` adds them."""

    rows: QuestionRows
    all_cases: tuple[GraphQuestion, ...]
    indices: tuple[int, ...]
    train: PathsSet | None
    description: Mapping[str, Any]
    """The sources and choices, for the record."""
    convention: Convention
    note: str = ""
    """A warning for the user, if any."""

    @classmethod
    def choose(cls, options: Options, rows: QuestionRows) -> "QuestionSet":
        """Choose questions by the options; raises ``UserError`` for faults of the files."""
        train = read_set(options.train, options.benchmark, options.splits) if options.train else None
        cases = tuple(GraphQuestion(q, masked(q.question, q.topics), {}) for q in rows.read())
        indices, splits, note = select_held_out(cases, train, options.held_out)
        if options.draw:
            Random(options.seed).shuffle(indices)
        selected = tuple(sorted([*_limit_per_hop(cases, indices, options.per_hop)][: options.limit]))
        description = {
            **rows.description,
            "train": train.description if train else None,
            "of_splits": splits,
            **{name: getattr(options, name) for name in ("labels", "held_out", "limit", "per_hop", "draw")},
        }
        return cls(rows, cases, selected, train, description, options.convention, note)

    def with_gold(self) -> "QuestionSet":
        """Return these questions with gold paths, which may take long."""
        template_paths = self.train.gold if self.train else {}
        gold, origin = self.rows.gold([case.question for case in self.all_cases], template_paths, self.indices)
        cases = tuple(replace(case, gold=paths) for case, paths in zip(self.all_cases, gold, strict=True))
        description = {**self.description, "gold": origin, "convention": self.convention}
        return replace(self, all_cases=cases, description=description)

    @property
    def cases(self) -> tuple[GraphQuestion, ...]:
        return tuple(self.all_cases[index] for index in self.indices)

    @property
    def graph(self) -> str:
        """A text that identifies the graph and the rules by which paths are followed."""
        graph = self.description["graph"] or self.description["sources"]
        return f"{graph} {self.description['max_hops']} {self.convention}"

    @property
    def learnt_from(self) -> dict[str, str]:
        """The set to learn from and its split, as a condition; empty without one."""
        if self.train is None:
            return {}
        return {"train": f"{self.train.folder.name} by {self.train.unit}@{identity(self.description['train'])[:8]}"}

    def knowledge(self) -> Iterator[GraphKnowledge]:
        """Yield the knowledge of each chosen question's graph, one at a time, as graphs are large."""
        chosen, hops = frozenset(self.indices), self.rows.hops
        for index, (case, graph) in enumerate(zip(self.all_cases, self.rows.graphs(), strict=False)):
            if index in chosen:
                yield GraphKnowledge(graph, self.convention, max(hops, case.question.hops))


def select_held_out(
    cases: Sequence[GraphQuestion], train: PathsSet | None, only: bool
) -> tuple[list[int], dict[str, int], str]:
    """Return the indices of the questions to use, the number of questions by split, and a warning or "".

    With ``only`` use the questions of the set's test split; raise ``UserError`` if there are none.
    """
    if train is None:
        return [*range(len(cases))], {}, ""
    splits = [train.split_of(case) for case in cases]
    counts = {split or "neither": splits.count(split) for split in dict.fromkeys(splits)}
    if not only:
        train_count = counts.get(TRAIN, 0)
        note = (
            f"{train_count:,} of {len(cases):,} questions are in the train split of {train.folder}; "
            "--held-out puts only those of its test split"
        )
        return [*range(len(cases))], counts, note if train_count else ""
    indices = [index for index, split in enumerate(splits) if split == TEST]
    if not indices:
        raise UserError(
            f"--held-out: none of the {len(cases):,} questions is in the test split of "
            f"{train.folder} (by {train.unit}); give the file that it was built of"
        )
    return indices, counts, ""


def _limit_per_hop(cases: Sequence[GraphQuestion], indices: Iterable[int], limit: int | None) -> Iterator[int]:
    counts = Counter[int]()
    for index in indices:
        hops = cases[index].question.hops
        counts[hops] += 1
        if limit is None or counts[hops] <= limit:
            yield index
