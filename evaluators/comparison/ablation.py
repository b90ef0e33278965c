"""What a variant is worth: systems set against a named one (SAFE v1, Tables 4, 12; v2, 3-6).

| file | holds |
| --- | --- |
| ``ablation.md`` | variant × benchmark with Δ, the averages by who answers, paired tests |
| ``ablation.csv``, ``ablation_tests.csv`` | the same for machines |
| ``ablation.json`` | all numbers, shares 0-1 |
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators.comparison import score_tables
from evaluators.comparison.comparing import compare
from evaluators.comparison.score_tables import published_lines
from evaluators.comparison.scores import Comparison, Row, results
from evaluators.comparison.systems import EVERY, System, apart, names, system_of
from evaluators.outcomes import METRIC_NAMES, Metric, Outcome
from safe_stepwise.errors import one_of
from safe_stepwise.store.files import json_bytes, write_files
from safe_stepwise.store.names import marked
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, fill, percent

FILES = ("ablation.md", "ablation.csv", "ablation_tests.csv", "ablation.json")


@dataclass(frozen=True, slots=True)
class Reference:
    """What systems are set against: the first of their method, if no ``name`` says otherwise.

    A name is that of a variant, of a system as tables call it, of a method, or its title. Of
    several that it fits a system is set against one of its own method, else against the one that
    differs least from it, of equals the first; those that a variant's or a system's name fits are
    set against none.
    """

    name: str
    order: tuple[System, ...]
    """All systems, those of the first run first."""

    def sort(self, systems: Iterable[System]) -> list[System]:
        """By who answers, then as the runs have them."""
        who = list(dict.fromkeys(system.answering for system in self.order))
        return sorted(systems, key=lambda s: (who.index(s.answering), self.order.index(s)))

    def pairs(self, systems: Sequence[System]) -> list[tuple[System, System]]:
        """Each system with what it is set against."""
        return [*self.of(systems).items()]

    def of(self, systems: Sequence[System]) -> dict[System, System]:
        """What each is set against that is set against any."""
        told = names(systems)
        found = {
            system: self._of(system, [s for s in systems if s.answering == system.answering], told)
            for system in systems
        }
        return {s: other for s, other in found.items() if other is not None and other != s}

    def _of(self, system: System, systems: Sequence[System], told: Mapping[System, str]) -> System | None:
        named = [s for s in systems if self.name in (s.variant, told[s])] if self.name else []
        if system in named:
            return None
        fit = named or [s for s in systems if self.name in ("", s.method, s.title)]
        own = [s for s in fit if s.method == system.method]
        if not named and (own or not self.name):
            return min(own, key=self._place)
        return min(own or fit, key=lambda s: (apart(system, s), self._place(s)), default=None)

    def _place(self, system: System) -> int:
        """In the order of the runs; a total stands where the first that it is of does."""
        return next(n for n, s in enumerate(self.order) if system in (s, s.answered_by(EVERY)))


def known_names(systems: Sequence[System]) -> list[str]:
    """What a reference may be called."""
    told = names(systems)
    found = (name for s in systems for name in (s.variant, told[s], s.method, s.title))
    return list(dict.fromkeys(filter(None, found)))


@dataclass(frozen=True, slots=True)
class Ablation:
    """All systems set against one reference."""

    title: str
    comparison: Comparison


def ablations(outcomes: Sequence[Outcome], references: Sequence[str], seed: int = 0) -> list[Ablation]:
    """One for each reference, one against each method's first if none is named.

    Raises ``UserError`` for a name that nothing has.
    """
    order = tuple(dict.fromkeys(map(system_of, outcomes)))
    found = []
    for name in references or ("",):
        if name:
            one_of(name, known_names(order), "--reference")
        reference = Reference(name, order)
        comparison = compare(outcomes, seed, paired=reference.pairs, ordered=reference.sort)
        against = reference.of([row.system for row in comparison.rows])
        against |= reference.of([row.system for row in comparison.totals])
        title = f"Against {name}" if name else "Against the first of each method"
        found.append(Ablation(title, replace(comparison, references=against)))
    return found


def write(ablations: Sequence[Ablation], folder: Path, published: Sequence[PublishedScore] = ()) -> None:
    """Write the tables into ``folder``; raises ``UserError`` where that can't be written."""
    text = fill(
        Path(__file__).parent / "templates",
        "ablation.md.jinja",
        comparison=ablations[0].comparison,
        ablations=ablations,
        published=published,
        published_lines=published_lines(published, ablations[0].comparison.benchmarks),
        scores=score_tables.score_table,
        metric_of=lambda comparison: METRIC_NAMES[told_metric(comparison)],
        averages=average_table,
        differences=score_tables.difference_table,
    )
    content = {ablation.title: results(ablation.comparison) for ablation in ablations}
    files = {
        "ablation.md": text.encode(),
        "ablation.csv": csv_bytes(_joined(ablations, score_tables.score_csv)),
        "ablation_tests.csv": csv_bytes(_joined(ablations, score_tables.difference_csv)),
        "ablation.json": json_bytes(content, sort_keys=False),
    }
    write_files(folder, FILES, files)


def told_metric(comparison: Comparison) -> Metric:
    """What one number tells of each system: accuracy, exact match where one was not judged."""
    judged = all(row.average["accuracy"] for row in comparison.rows)
    return "accuracy" if judged else "exact_match"


def average_table(comparison: Comparison) -> Table:
    """Variants by who answers (SAFE v2, Tables 4 and 6): the average, and Δ in brackets."""
    metric = told_metric(comparison)
    rows = (*comparison.rows, *comparison.totals)
    answering = list(dict.fromkeys(row.system.answering for row in rows))
    variants: dict[tuple[System, bool], dict[str, Row]] = {}
    for row in rows:
        key = row.system.answered_by(EVERY), row.simulated
        variants.setdefault(key, {})[row.system.answering] = row
    told = names([system for system, _ in variants])
    table: Table = [("method", *answering)]
    for (system, simulated), by in variants.items():
        cells = [_average(comparison, by[who], metric) if who in by else NOTHING for who in answering]
        table.append([marked(told[system], simulated), *cells])
    return table


def _average(comparison: Comparison, row: Row, metric: Metric) -> str:
    value = row.average[metric]
    if value is None:
        return NOTHING
    other = comparison.against(row.system).get(metric)
    gain = comparison.difference(row.system, other, None, metric) if other else None
    return percent(value.value) + (f" ({percent(gain.estimate.value, '+')})" if gain else "")


def _joined(ablations: Sequence[Ablation], table: Callable[[Comparison], Table]) -> Table:
    """The tables one below the other, with what each is against."""
    tables = [(ablation.title, *table(ablation.comparison)) for ablation in ablations]
    header = ["against", *tables[0][1]]
    return [header, *([title, *row] for title, _, *rows in tables for row in rows)]
