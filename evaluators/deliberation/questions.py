"""The questions of an evaluation, with their graphs and gold paths, and the set to learn from."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol

from evaluators.deliberation.options import Labels, Options, SplitRule
from evaluators.outcomes import grouped
from safe_stepwise.errors import UserError
from safe_stepwise.graphs.knowledge import GraphKnowledge
from safe_stepwise.graphs.store import Convention, GraphStore
from safe_stepwise.methods.path_proposing import masked
from safe_stepwise.records import KGQuestion, RelationPath, identity
from safe_stepwise.store.files import sha256_of
from safe_stepwise.store.names import BY_TEMPLATE, PATHS, TEST, TRAIN, paths_set
from safe_stepwise.store.parquet import dataset_folder, parquet_files, read_rows

Gold = Mapping[str, tuple[RelationPath, ...]]
"""The right paths by topic entity; a topic without any is not in it."""
CONFIGS: Mapping[SplitRule, str] = {"question": PATHS, "template": PATHS + BY_TEMPLATE}
_COLUMNS = ("question", "template", "hops", "path", "best", "gold")


@dataclass(frozen=True, slots=True)
class Case:
    """A question, with its gold paths as far as they are known."""

    question: KGQuestion
    template: str
    """Its words around the topics (`methods.path_proposing.masked`)."""
    gold: Gold


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the paths that label it, the first one first."""

    question: str
    template: str
    hops: int
    paths: tuple[RelationPath, ...]


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
        files = parquet_files(self.folder, CONFIGS[self.unit])
        digests = {file.name: sha256_of(file) for file in files}
        return {"name": self.folder.name, "splits": self.unit, "sha256": digests}

    def examples(self, labels: Labels) -> list[Example]:
        """Return the examples of the train split; questions without such a label give none."""
        column = "gold" if labels == "gold" else "best"
        by_question: dict[str, Example] = {}
        for row in self.rows[TRAIN]:
            if row[column]:
                example = by_question.get(row["question"])
                paths = (*(example.paths if example else ()), tuple(row["path"]))
                unique = tuple(dict.fromkeys(paths))
                by_question[row["question"]] = Example(row["question"], row["template"], row["hops"], unique)
        return [*by_question.values()]

    def split_of(self, case: Case) -> str:
        """Return the split that holds a question's words or template; "" for neither."""
        return self._splits.get(case.question.question if self.unit == "question" else case.template, "")

    @cached_property
    def _splits(self) -> dict[str, str]:
        return {row[self.unit]: split for split, rows in self.rows.items() for row in rows}

    @cached_property
    def gold(self) -> dict[str, tuple[RelationPath, ...]]:
        """The gold paths of each template."""
        gold_rows = (row for rows in self.rows.values() for row in rows if row["gold"])
        by_template = grouped(gold_rows, itemgetter("template"))
        return {name: tuple(dict.fromkeys(tuple(row["path"]) for row in rows)) for name, rows in by_template.items()}


def read_set(folder: Path, benchmark: str, unit: SplitRule) -> PathsSet:
    """Read the set in a folder; raises ``UserError`` where there is none, or one of other rows."""
    name = paths_set(benchmark)
    dataset = dataset_folder(folder, name)
    if dataset is None or not parquet_files(dataset, CONFIGS[unit], TRAIN):
        raise UserError(
            f"--train {folder}: no {name} in it; build it with safe-stepwise build_paths "
            f"--benchmark {benchmark} --output {folder}"
        )
    rows: dict[str, list[Any]] = {TRAIN: [], TEST: []}
    for split, split_rows in rows.items():
        for file in parquet_files(dataset, CONFIGS[unit], split):
            split_rows += read_rows(file, dict, _COLUMNS)
    return PathsSet(dataset, unit, rows)


class Rows(Protocol):
    """Questions with their graphs, as a builder reads them; all methods raise ``UserError``."""

    @property
    def hops(self) -> int:
        """The maximum number of hops of a path."""

    @property
    def description(self) -> dict[str, Any]:
        """The sources of the rows, for the record."""

    def read(self) -> list[KGQuestion]:
        """Read all questions."""

    def graphs(self) -> Iterator[GraphStore]:
        """Yield the graph of each question, in order."""

    def gold(
        self,
        questions: Sequence[KGQuestion],
        by_template: Mapping[str, tuple[RelationPath, ...]],
        places: Collection[int],
    ) -> tuple[Sequence[Gold], str]:
        """Return the gold paths of each question, and their origin; ``by_template`` holds known ones."""


@dataclass(frozen=True, slots=True)
class Questions:
    """All questions of the files, and the places of those that the evaluation uses.

    It is made in two steps, so that faults of the files show before anything takes long: `chosen`, without gold paths,
    and `with_gold`.
    """

    rows: Rows
    all_cases: tuple[Case, ...]
    places: tuple[int, ...]
    train: PathsSet | None
    description: Mapping[str, Any]
    """The sources and choices, for the record."""
    convention: Convention
    note: str = ""
    """A warning for the user, if any."""

    @classmethod
    def chosen(cls, options: Options, rows: Rows) -> "Questions":
        """Choose questions by the options; raises ``UserError`` for faults of the files."""
        description = rows.description
        train = read_set(options.train, options.benchmark, options.splits) if options.train else None
        cases = tuple(Case(question, masked(question.question, question.topics), {}) for question in rows.read())
        places, splits, note = held_out(cases, train, options.held_out)
        selected_places = tuple(_limit_per_hop(cases, places, options.per_hop))[: options.limit]
        description = {
            **description,
            "train": train.description if train else None,
            "labels": options.labels,
            "held_out": options.held_out,
            "of_splits": splits,
            "limit": options.limit,
            "per_hop": options.per_hop,
        }
        return cls(rows, cases, selected_places, train, description, options.convention, note)

    def with_gold(self) -> "Questions":
        """Return these questions with gold paths, which may take long."""
        template_paths = self.train.gold if self.train else {}
        gold, origin = self.rows.gold([case.question for case in self.all_cases], template_paths, self.places)
        cases = tuple(replace(case, gold=paths) for case, paths in zip(self.all_cases, gold, strict=True))
        return replace(
            self, all_cases=cases, description={**self.description, "gold": origin, "convention": self.convention}
        )

    @property
    def cases(self) -> tuple[Case, ...]:
        """The chosen questions."""
        return tuple(self.all_cases[place] for place in self.places)

    @property
    def graph(self) -> str:
        """The identity of the graph and of how paths are walked."""
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
        chosen_places, hops = frozenset(self.places), self.rows.hops
        for place, (case, graph) in enumerate(zip(self.all_cases, self.rows.graphs(), strict=False)):
            if place in chosen_places:
                yield GraphKnowledge(graph, self.convention, max(hops, case.question.hops))


def held_out(cases: Sequence[Case], train: PathsSet | None, only: bool) -> tuple[list[int], dict[str, int], str]:
    """Return the places of the questions to use, the number of questions by split, and a warning.

    With ``only`` these are the questions of the set's test split; raises ``UserError`` where there are none.
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
    places = [place for place, split in enumerate(splits) if split == TEST]
    if not places:
        raise UserError(
            f"--held-out: none of the {len(cases):,} questions is in the test split of "
            f"{train.folder} (by {train.unit}); give the file that it was built of"
        )
    return places, counts, ""


def _limit_per_hop(cases: Sequence[Case], places: Iterable[int], limit: int | None) -> Iterator[int]:
    counts = Counter[int]()
    for place in places:
        hops = cases[place].question.hops
        counts[hops] += 1
        if limit is None or counts[hops] <= limit:
            yield place
