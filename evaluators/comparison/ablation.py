"""Ablation tables: systems compared with a named reference (SAFE v1, Tables 4, 12; v2, 3-6).

| file | holds |
| --- | --- |
| ``ablation.md`` | variant × benchmark with Δ, the averages by who answers, paired tests |
| ``ablation.csv``, ``ablation_tests.csv`` | the same for machines |
| ``ablation.json`` | all numbers, shares 0-1 |
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators.comparison import comparing, score_tables
from evaluators.comparison.scores import Comparison, Row, render_results
from evaluators.comparison.systems import EVERY, System, count_differences, name_systems, system_of
from evaluators.outcomes import METRIC_NAMES, Metric, Outcome
from safe_stepwise.errors import check_choice
from safe_stepwise.store.files import json_bytes, write_files
from safe_stepwise.store.names import marked
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, fill, format_cell, percent

FILES = ("ablation.md", "ablation.csv", "ablation_tests.csv", "ablation.json")


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of each system: the first system of its method, or those that ``name`` fits.

    A name is that of a variant, of a system in tables, of a method, or a method's title. If it fits
    several, a system's reference is one of its own method, else the one that differs least from it,
    of equals the first. Systems that a variant's or system's name fits have no reference.
    """

    name: str
    order: tuple[System, ...]
    """All systems, those of the first run first."""

    def sort(self, systems: Iterable[System]) -> list[System]:
        """Sort systems by answerer, then in the order of the runs."""
        order = list(dict.fromkeys(system.answering for system in self.order))
        return sorted(systems, key=lambda s: (order.index(s.answering), self.order.index(s)))

    def pairs(self, systems: Sequence[System]) -> list[tuple[System, System]]:
        return [*self.counterparts(systems).items()]

    def counterparts(self, systems: Sequence[System]) -> dict[System, System]:
        labels = name_systems(systems)
        references = {
            system: self._counterpart(system, [s for s in systems if s.answering == system.answering], labels)
            for system in systems
        }
        return {system: match for system, match in references.items() if match not in (None, system)}

    def _counterpart(self, system: System, systems: Sequence[System], labels: Mapping[System, str]) -> System | None:
        exact = [s for s in systems if self.name in (s.variant, labels[s])] if self.name else []
        if system in exact:
            return None
        fit = exact or [s for s in systems if self.name in ("", s.method, s.title)]
        same_method = [s for s in fit if s.method == system.method]
        if not exact and (same_method or not self.name):
            return min(same_method, key=self._place)
        return min(same_method or fit, key=lambda s: (count_differences(system, s), self._place(s)), default=None)

    def _place(self, system: System) -> int:
        """Return the place in the order of the runs; a total stands at its first member."""
        return next(n for n, s in enumerate(self.order) if system in (s, s.answered_by(EVERY)))


def reference_names(systems: Sequence[System]) -> list[str]:
    labels = name_systems(systems)
    candidates = (name for s in systems for name in (s.variant, labels[s], s.method, s.title))
    return list(dict.fromkeys(filter(None, candidates)))


Ablations = Mapping[str, Comparison]
"""Comparisons of all systems with one reference each, by title."""


def make_ablations(outcomes: Sequence[Outcome], references: Sequence[str], seed: int = 0) -> Ablations:
    """Compare with each reference, or each method's first system; raise ``UserError`` for an unknown name."""
    order = tuple(dict.fromkeys(map(system_of, outcomes)))
    ablations = {}
    for name in references or ("",):
        if name:
            check_choice(name, reference_names(order), "--reference")
        reference = Reference(name, order)
        comparison = comparing.compare(outcomes, seed, paired=reference.pairs, ordered=reference.sort)
        against = reference.counterparts([row.system for row in comparison.rows])
        against |= reference.counterparts([row.system for row in comparison.totals])
        title = f"Against {name}" if name else "Against the first of each method"
        ablations[title] = replace(comparison, references=against)
    return ablations


def write(ablations: Ablations, folder: Path, published: Sequence[PublishedScore] = ()) -> None:
    """Write the tables into ``folder``; raises ``UserError`` where that can't be written."""
    first = next(iter(ablations.values()))
    text = fill(
        Path(__file__).parent / "templates",
        "ablation.md.jinja",
        comparison=first,
        ablations=ablations,
        published=published,
        published_lines=score_tables.published_lines(published, first.benchmarks),
        scores=score_tables.score_table,
        metric_of=lambda comparison: METRIC_NAMES[headline_metric(comparison)],
        averages=average_table,
        differences=score_tables.difference_table,
    )
    content = {title: render_results(comparison) for title, comparison in ablations.items()}
    files = {
        "ablation.md": text.encode(),
        "ablation.csv": csv_bytes(_stacked(ablations, score_tables.score_csv)),
        "ablation_tests.csv": csv_bytes(_stacked(ablations, score_tables.difference_csv)),
        "ablation.json": json_bytes(content, sort_keys=False),
    }
    write_files(folder, FILES, files)


def headline_metric(comparison: Comparison) -> Metric:
    """Return the metric that stands for a system: accuracy, or exact match where a system was not judged."""
    return "accuracy" if all(row.average["accuracy"] for row in comparison.rows) else "exact_match"


def average_table(comparison: Comparison) -> Table:
    """Return variants by answerer (SAFE v2, Tables 4 and 6): the average, and Δ in brackets."""
    metric = headline_metric(comparison)
    rows = (*comparison.rows, *comparison.totals)
    answering = list(dict.fromkeys(row.system.answering for row in rows))
    variants: dict[tuple[System, bool], dict[str, Row]] = {}
    for row in rows:
        key = row.system.answered_by(EVERY), row.simulated
        variants.setdefault(key, {})[row.system.answering] = row
    labels = name_systems([system for system, _ in variants])
    table: Table = [("method", *answering)]
    for (system, simulated), by_answerer in variants.items():
        by_name = {name: _average(comparison, row, metric) for name, row in by_answerer.items()}
        table.append([marked(labels[system], simulated), *[by_name.get(answerer, NOTHING) for answerer in answering]])
    return table


def _average(comparison: Comparison, row: Row, metric: Metric) -> object:
    reference = comparison.references_of(row.system).get(metric)
    gain = comparison.difference(row.system, reference, None, metric) if reference else None
    margin = f" ({percent(gain.estimate.value, '+')})" if gain else ""
    return format_cell(row.average[metric], lambda estimate: f"{percent(estimate.value)}{margin}")


def _stacked(ablations: Ablations, table: Callable[[Comparison], Table]) -> Table:
    tables = [(title, *table(comparison)) for title, comparison in ablations.items()]
    return [["against", *tables[0][1]], *([title, *row] for title, _, *rows in tables for row in rows)]
