"""Choose the questions of an evaluation, with their graphs and gold paths, and read the set to learn from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter, itemgetter
from pathlib import Path
from random import Random
from typing import Any, Protocol

from evaluators.deliberation.options import Labels, Options, SplitRule
from evaluators.outcomes import grouped, numbered
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.graph_store import GraphStore
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath, identity
from safe_stepwise.store import files, names, parquet

GoldPaths = Mapping[str, tuple[RelationPath, ...]]
"""The right paths by topic entity, without topics that have none."""
CONFIGS: Mapping[SplitRule, str] = {"question": names.PATHS, "template": names.PATHS + names.BY_TEMPLATE}
_COLUMNS = ("question", "template", "hops", "path", "best", "gold")


@dataclass(frozen=True, slots=True)
class Case:
    """A question to evaluate, with its gold paths if they are known."""

    question: KGQuestion
    template: str
    """The question with its topics masked (`methods.path_proposing.masked`)."""
    gold_paths: GoldPaths


@dataclass(frozen=True, slots=True)
class PathExample:
    """A question with the paths that label it, from which baselines learn."""

    question: str
    template: str
    hops: int
    paths: tuple[RelationPath, ...]


def merge_examples(examples: Iterable[PathExample]) -> list[PathExample]:
    """Merge the examples of each question, as baselines leave out only one example of the question to answer."""
    groups = grouped(examples, attrgetter("question")).values()
    merged = (tuple(dict.fromkeys(path for example in group for path in example.paths)) for group in groups)
    return [replace(group[-1], paths=paths) for group, paths in zip(groups, merged, strict=True)]


@dataclass(frozen=True)
class PathsSet:
    """A set of ``build_paths``, split by question or by template."""

    folder: Path
    split_rule: SplitRule
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    """The rows by split."""

    @property
    def description(self) -> dict[str, Any]:
        """The set's name, split rule and digests, for the record."""
        paths = parquet.parquet_files(self.folder, CONFIGS[self.split_rule])
        digests = {file.name: files.sha256_of(file) for file in paths}
        return {"name": self.folder.name, "splits": self.split_rule, "sha256": digests}

    def examples(self, labels: Labels) -> list[PathExample]:
        """Return the examples of the train split, without questions that have no path with one of the labels."""
        column = "gold" if labels == "gold" else "best"
        rows = (row for row in self.rows[names.TRAIN] if row[column])
        return merge_examples(
            PathExample(row["question"], row["template"], row["hops"], (tuple(row["path"]),)) for row in rows
        )

    def split_of(self, case: Case) -> str:
        """Return the split with a case's question or template; "" if no split has it."""
        return self._splits.get(case.question.question if self.split_rule == "question" else case.template, "")

    @cached_property
    def _splits(self) -> dict[str, str]:
        return {row[self.split_rule]: split for split, rows in self.rows.items() for row in rows}

    @cached_property
    def gold_by_template(self) -> dict[str, tuple[RelationPath, ...]]:
        gold_rows = (row for rows in self.rows.values() for row in rows if row["gold"])
        by_template = grouped(gold_rows, itemgetter("template"))
        return {name: tuple(dict.fromkeys(tuple(row["path"]) for row in rows)) for name, rows in by_template.items()}


def read_set(folder: Path, benchmark: str, split_rule: SplitRule) -> PathsSet:
    """Read the set of paths in a folder; raise ``UserError`` if there is none for this benchmark."""
    name, config = names.paths_set(benchmark), CONFIGS[split_rule]
    dataset = parquet.dataset_folder(folder, name)
    if dataset is None or not parquet.parquet_files(dataset, config, names.TRAIN):
        raise UserError(
            f"--train {folder}: no {name} in it; build it with safe-stepwise build_paths "
            f"--benchmark {benchmark} --output {folder}"
        )
    rows: dict[str, list[Any]] = {names.TRAIN: [], names.TEST: []}
    for split, split_rows in rows.items():
        for file in parquet.parquet_files(dataset, config, split):
            split_rows += parquet.read_rows(file, dict, _COLUMNS)
    return PathsSet(dataset, split_rule, rows)


class QuestionRows(Protocol):
    """Questions with their graphs, as `builders.paths.questions` reads them."""

    @property
    def hops(self) -> int: ...  # the maximum number of relations in a path

    @property
    def description(self) -> dict[str, Any]: ...  # the sources of the rows, for the record

    @property
    def questions(self) -> Sequence[KGQuestion]:
        """All questions."""

    @property
    def rejects(self) -> Sequence[bytes]: ...  # lines of ``rejects.jsonl``: rows that can't be read, with the reasons

    def graphs(self) -> Iterator[GraphStore]: ...  # of each question, in order

    def find_gold_paths(
        self, by_template: Mapping[str, tuple[RelationPath, ...]], indices: Collection[int]
    ) -> tuple[Sequence[GoldPaths], str]:
        """Return the gold paths of each question, and their origin; ``by_template`` are those of the train set."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All cases, and the indices of those to evaluate; `choose` makes it without gold paths, `with_gold` adds them."""

    source: QuestionRows
    all_cases: tuple[Case, ...]
    indices: tuple[int, ...]
    train: PathsSet | None
    description: Mapping[str, Any]
    """The sources and choices, for the record."""
    note: str = ""
    """A warning for the user, if any."""

    @classmethod
    def choose(cls, options: Options, rows: QuestionRows) -> "QuestionSet":
        """Choose questions by the options; raise ``UserError`` for faults of the files."""
        train = read_set(options.train, options.benchmark, options.splits) if options.train else None
        cases = tuple(Case(q, masked(q.question, q.topics), {}) for q in rows.questions)
        indices, splits, note = select_held_out(cases, train, options.held_out)
        if options.draw:
            Random(options.seed).shuffle(indices)
        placed = numbered(indices, lambda index: cases[index].question.hops)
        limited = [index for (_, number), index in placed if options.per_hop is None or number < options.per_hop]
        selected = tuple(sorted(limited[: options.limit]))
        description = {
            **rows.description,
            "train": train.description if train else None,
            "of_splits": splits,
            **{name: getattr(options, name) for name in ("labels", "held_out", "limit", "per_hop", "draw")},
        }
        return cls(rows, cases, selected, train, description, note)

    def with_gold(self) -> "QuestionSet":
        """Return these questions with gold paths, which may take long."""
        by_template = self.train.gold_by_template if self.train else {}
        gold_paths, origin = self.source.find_gold_paths(by_template, self.indices)
        pairs = zip(self.all_cases, gold_paths, strict=True)
        cases = tuple(replace(case, gold_paths=paths) for case, paths in pairs)
        return replace(self, all_cases=cases, description={**self.description, "gold": origin})

    @property
    def cases(self) -> tuple[Case, ...]:
        return tuple(self.all_cases[index] for index in self.indices)

    @property
    def graph_identity(self) -> str:
        """A text that identifies the graph and the maximum length of paths."""
        graph = self.description["graph"] or self.description["sources"]
        return f"{graph} {self.description['max_hops']}"

    @property
    def learnt_from(self) -> dict[str, str]:
        """The set that baselines learn from, as a condition of a run; empty without one."""
        if self.train is None:
            return {}
        digest = identity(self.description["train"])[:8]
        return {"train": f"{self.train.folder.name} by {self.train.split_rule}@{digest}"}

    def knowledge(self) -> Iterator[GraphKnowledge]:
        """Yield the knowledge of each chosen case's graph, one at a time, as graphs are large."""
        chosen, hops = frozenset(self.indices), self.source.hops
        for index, (case, graph) in enumerate(zip(self.all_cases, self.source.graphs(), strict=False)):
            if index in chosen:
                yield GraphKnowledge(graph, max(hops, case.question.hops))


def select_held_out(
    cases: Sequence[Case], train: PathsSet | None, is_only: bool
) -> tuple[list[int], dict[str, int], str]:
    """Return the indices of the cases to use, the number of cases by split, and a warning or "".

    With ``is_only``, use only cases of the set's test split; raise ``UserError`` if there are none.
    """
    if train is None:
        return [*range(len(cases))], {}, ""
    splits = [train.split_of(case) for case in cases]
    counts = {split or "neither": splits.count(split) for split in dict.fromkeys(splits)}
    if not is_only:
        train_count = counts.get(names.TRAIN, 0)
        note = (
            f"{train_count:,} of {len(cases):,} questions are in the train split of {train.folder}; "
            "--held-out puts only those of its test split"
        )
        return [*range(len(cases))], counts, note if train_count else ""
    indices = [index for index, split in enumerate(splits) if split == names.TEST]
    if not indices:
        raise UserError(
            f"--held-out: none of the {len(cases):,} questions is in the test split of "
            f"{train.folder} (by {train.split_rule}); give the file that it was built of"
        )
    return indices, counts, ""
