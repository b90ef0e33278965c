"""Ablation tables: systems compared with a named reference (SAFE v1, Tables 4, 12; v2, 3-6).

| file | holds |
| --- | --- |
| ``ablation.md`` | variant × benchmark with Δ, the averages by who answers, paired tests |
| ``ablation.csv``, ``ablation_tests.csv`` | the same for machines |
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators.comparison import comparing, score_tables
from evaluators.comparison.scores import Comparison, Row
from evaluators.comparison.systems import EVERY, System, count_differences, name_systems, system_of
from evaluators.outcomes import METRIC_NAMES, Outcome
from safe_stepwise.errors import check_choice
from safe_stepwise.store.files import write_files
from safe_stepwise.store.names import marked
from safe_stepwise.store.published_tables import PublishedScore
from safe_stepwise.store.tables import NOTHING, Table, csv_bytes, fill, format_cell, percent, signed

FILES = ("ablation.md", "ablation.csv", "ablation_tests.csv")


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


def compare_with(outcomes: Sequence[Outcome], name: str = "", seed: int = 0) -> Comparison:
    """Compare with the reference of a name, or each method's first system; raise ``UserError`` for an unknown name."""
    order = tuple(dict.fromkeys(map(system_of, outcomes)))
    if name:
        labels = name_systems(order)
        names = (name for s in order for name in (s.variant, labels[s], s.method, s.title))
        check_choice(name, list(dict.fromkeys(filter(None, names))), "--reference")
    reference = Reference(name, order)
    pairs = lambda systems: [*reference.counterparts(systems).items()]  # noqa: E731
    comparison = comparing.compare(outcomes, seed, paired=pairs, ordered=reference.sort)
    against = reference.counterparts([row.system for row in comparison.rows])
    against |= reference.counterparts([row.system for row in comparison.totals])
    return replace(comparison, references=against)


def title_of(reference: str) -> str:
    return f"Against {reference}" if reference else "Against the first of each method"


def write(comparison: Comparison, reference: str, folder: Path, published: Sequence[PublishedScore] = ()) -> None:
    """Write the tables into ``folder``; raises ``UserError`` where that can't be written."""
    differences = score_tables.difference_sheet(comparison)
    text = fill(
        Path(__file__).parent / "templates",
        "ablation.md.jinja",
        title=title_of(reference),
        comparison=comparison,
        published=published,
        published_lines=score_tables.published_lines(published, comparison.benchmarks),
        scores=score_tables.score_table(comparison, published),
        metric=METRIC_NAMES[comparison.headline],
        averages=average_table(comparison),
        differences=differences,
    )
    files = {
        "ablation.md": text.encode(),
        "ablation.csv": csv_bytes(score_tables.score_csv(comparison)),
        "ablation_tests.csv": differences.csv,
    }
    write_files(folder, FILES, files)


def average_table(comparison: Comparison) -> Table:
    """Return variants by answerer (SAFE v2, Tables 4 and 6): the average, and Δ in brackets."""
    rows = (*comparison.rows, *comparison.totals)
    answering = list(dict.fromkeys(row.system.answering for row in rows))
    variants: dict[tuple[System, bool], dict[str, Row]] = {}
    for row in rows:
        key = row.system.answered_by(EVERY), row.simulated
        variants.setdefault(key, {})[row.system.answering] = row
    labels = name_systems([system for system, _ in variants])
    table: Table = [("method", *answering)]
    for (system, simulated), by_answerer in variants.items():
        by_name = {name: _average(comparison, row) for name, row in by_answerer.items()}
        table.append([marked(labels[system], simulated), *[by_name.get(answerer, NOTHING) for answerer in answering]])
    return table


def _average(comparison: Comparison, row: Row) -> object:
    metric, reference = comparison.headline, comparison.reference_of(row.system)
    gain = comparison.difference(row.system, reference, None, metric) if reference else None
    margin = f" ({signed(gain.estimate.value)})" if gain else ""
    return format_cell(row.average[metric], lambda estimate: f"{percent(estimate.value)}{margin}")
