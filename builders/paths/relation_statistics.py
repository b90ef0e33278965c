"""What a build of relation paths read and found, as ``statistics/paths.json`` keeps it and a command prints it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from builders.benchmarks.sources import InputSource
from builders.paths import kg_collect, relation_inputs, relation_rows
from builders.paths.negatives import KINDS, POSITIVE
from builders.work import plans, publishing
from safe_stepwise.records import RelationPath
from safe_stepwise.store import names, tables

RULES = ("shortest", "best_f1", "best")
"""Equation 1; all of the best F1, whatever their length; those with ties settled."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of weak supervision, of the topic entities with a gold path.

    ``recall`` (0-1): how many have their gold path among those that the rule names; ``precision``:
    how many of the named ones are gold; None where there are none.
    """

    recall: float | None
    precision: float | None
    paths: float | None
    """A topic entity, with or without a gold path."""


@dataclass(frozen=True, slots=True)
class HopAudit:
    """What was found of the questions of one number of hops (0: not known)."""

    topics: int
    """Topic entities of questions."""
    no_path: int
    """From which no path leads to an answer."""
    gold: int
    """With a gold path."""
    gold_exact: float | None
    """Share whose gold path yields the answer set exactly."""
    rules: Mapping[str, Rule]
    kto: Mapping[str, int]
    """Rows by kind."""
    gold_negatives: int
    """Rows that call a gold path wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStatistics(plans.BuildRecord):
    """What one build read and found; ``rows`` counts the questions that were read."""

    benchmark: str
    split: str
    sources: Sequence[InputSource]
    graph: relation_inputs.Graph | None
    test_share: float
    max_hops: int
    negatives: int
    rows: int
    rejected: int
    templates: Mapping[str, int]
    """By split of the configs that are split by template."""
    gold_paths: int
    """How many different ones there are."""
    hops: Mapping[str, HopAudit]
    positive_share: float | None
    """Of the rows of KTO (the paper: 1/4)."""
    neighbours: int
    """Rows of KTO that follow one of the same question."""
    license: str
    homepage: str
    citation: str
    caveat: str
    prompt_sha256: str
    simulated: bool = False


class Audit:
    """Counts the labels of all questions, by their number of hops."""

    def __init__(self) -> None:
        self._counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.neighbours = 0
        """Rows of KTO that follow one of the same question."""

    def add(self, topic: relation_rows.Labelled, judged: Mapping[RelationPath, str]) -> None:
        """Count one topic entity, and its rows of KTO."""
        counts, gold = self._counts[topic.searched["hops"]], topic.gold
        best_f1 = [c.path for c in topic.candidates if c.f1 == topic.top]
        named = zip(RULES, (topic.shortest, best_f1, topic.best), strict=True)
        counts.update(["topics", *judged.values()])
        counts["no path"] += not topic.candidates
        counts["gold"] += gold is not None
        counts["exact"] += any(c.path == gold and c.f1 == 1 for c in topic.candidates)
        counts["gold negatives"] += gold is not None and judged.get(gold, POSITIVE) != POSITIVE
        for rule, paths in named:
            counts[f"{rule} names"] += len(paths)
            if gold is not None:
                counts[f"{rule} names beside gold"] += len(paths)
                counts[f"{rule} names gold"] += gold in paths

    def by_hop(self) -> dict[str, HopAudit]:
        """The audit of each number of hops."""
        return {str(hops): _audited(counts) for hops, counts in sorted(self._counts.items())}

    def positive_share(self) -> float | None:
        """How many of the rows of KTO are to be preferred (0-1)."""
        counts = sum(self._counts.values(), Counter[str]())
        return _ratio(counts[POSITIVE], sum(counts[kind] for kind in KINDS))


def _audited(counts: Counter[str]) -> HopAudit:
    return HopAudit(
        topics=counts["topics"],
        no_path=counts["no path"],
        gold=counts["gold"],
        gold_exact=_ratio(counts["exact"], counts["gold"]),
        rules={
            rule: Rule(
                recall=_ratio(counts[f"{rule} names gold"], counts["gold"]),
                precision=_ratio(counts[f"{rule} names gold"], counts[f"{rule} names beside gold"]),
                paths=_ratio(counts[f"{rule} names"], counts["topics"]),
            )
            for rule in RULES
        },
        kto={kind: counts[kind] for kind in KINDS},
        gold_negatives=counts["gold negatives"],
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def summary(plan: kg_collect.PathsBuild, made: PathStatistics) -> str:
    """What was found, where it is, how to open it."""
    figure = partial(tables.shown, form=tables.decimal(3), missing="-")
    lines: list[tuple[object, ...]] = [("hops", "topics", "no path", "rule", "recall", "precision", "paths each")]
    for hops, audit in made.hops.items():
        for name, rule in audit.rules.items():
            figures = map(figure, (rule.recall, rule.precision, rule.paths))
            lines.append((hops, audit.topics, audit.no_path, name, *figures))
    return publishing.summary(
        Path(__file__).parent / "templates",
        "relations.txt",
        plan=plan,
        made=made,
        lines=lines,
        positive=figure(made.positive_share),
        place=plan.output / names.paths_set(plan.benchmark),
        config=f"{names.PROMPT_COMPLETION}{names.BY_TEMPLATE}",
    )
