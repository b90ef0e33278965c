"""What a build of relation paths read and found, as ``statistics/paths.json`` keeps it and a command prints it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from builders.benchmarks.sources import InputSource
from builders.paths.kg_collect import PathsBuild
from builders.paths.negatives import KINDS, POSITIVE
from builders.paths.relation_inputs import Graph
from builders.paths.relation_rows import Labelled
from builders.work import publishing
from builders.work.plans import BuildRecord
from safe_stepwise.records import RelationPath
from safe_stepwise.store.names import BY_TEMPLATE, PROMPT_COMPLETION, paths_set
from safe_stepwise.store.tables import decimal, shown

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
class PathStatistics(BuildRecord):
    """What one build read and found; ``rows`` counts the questions that were read."""

    benchmark: str
    split: str
    sources: Sequence[InputSource]
    graph: Graph | None
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


@dataclass(slots=True)
class _Tally:
    """Counts of one number of hops."""

    topics: int = 0
    no_path: int = 0
    gold: int = 0
    exact: int = 0
    found: Counter[str] = field(default_factory=Counter)
    """Topic entities whose gold path a rule names."""
    named: Counter[str] = field(default_factory=Counter)
    """Paths that a rule names, of those with a gold path."""
    all_named: Counter[str] = field(default_factory=Counter)
    kto: Counter[str] = field(default_factory=Counter)
    gold_negatives: int = 0


class Audit:
    """Counts the labels of all questions, by their number of hops."""

    def __init__(self) -> None:
        self._tallies: dict[int, _Tally] = defaultdict(_Tally)
        self.neighbours = 0
        """Rows of KTO that follow one of the same question."""

    def add(self, topic: Labelled, judged: Mapping[RelationPath, str]) -> None:
        """Count one topic entity, and its rows of KTO."""
        tally = self._tallies[topic.searched["hops"]]
        tally.topics += 1
        tally.no_path += not topic.candidates
        best_f1 = [c.path for c in topic.candidates if c.f1 == topic.top]
        named = dict(zip(RULES, (topic.shortest, best_f1, topic.best), strict=True))
        for rule, paths in named.items():
            tally.all_named[rule] += len(paths)
        if topic.gold is not None:
            tally.gold += 1
            tally.exact += any(c.path == topic.gold and c.f1 == 1 for c in topic.candidates)
            for rule, paths in named.items():
                tally.found[rule] += topic.gold in paths
                tally.named[rule] += len(paths)
        tally.kto.update(judged.values())
        tally.gold_negatives += topic.gold is not None and judged.get(topic.gold, POSITIVE) != POSITIVE

    def by_hop(self) -> dict[str, HopAudit]:
        """The audit of each number of hops."""
        return {str(hops): _audited(self._tallies[hops]) for hops in sorted(self._tallies)}

    def positive_share(self) -> float | None:
        """How many of the rows of KTO are to be preferred (0-1)."""
        kinds = sum((tally.kto for tally in self._tallies.values()), Counter[str]())
        return _ratio(kinds[POSITIVE], kinds.total())


def _audited(tally: _Tally) -> HopAudit:
    return HopAudit(
        topics=tally.topics,
        no_path=tally.no_path,
        gold=tally.gold,
        gold_exact=_ratio(tally.exact, tally.gold),
        rules={
            rule: Rule(
                _ratio(tally.found[rule], tally.gold),
                _ratio(tally.found[rule], tally.named[rule]),
                _ratio(tally.all_named[rule], tally.topics),
            )
            for rule in RULES
        },
        kto={kind: tally.kto[kind] for kind in KINDS},
        gold_negatives=tally.gold_negatives,
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def summary(plan: PathsBuild, made: PathStatistics) -> str:
    """What was found, where it is, how to open it."""
    figure = partial(shown, form=decimal(3), missing="-")
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
        place=plan.output / paths_set(plan.benchmark),
        config=f"{PROMPT_COMPLETION}{BY_TEMPLATE}",
    )
