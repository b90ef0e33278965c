"""Makes the record of a build of the verifier set, ``statistics/*.json``, and its summary."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from builders.steps import configs, probes
from builders.steps.rows import StepRow
from safe_stepwise.store import names
from safe_stepwise.store.grouping import grouped
from safe_stepwise.store.tables import fill, text_table
from safe_stepwise.taxonomy import ERROR_TYPES, TAXONOMY, category

Record = dict[str, Any]
"""The record of one build; every mapping counts rows unless it says otherwise."""


def chosen_rows(rows: configs.RowGroups) -> Record:
    """Count the chosen rows, given by split, for the record."""
    everything = [row for split_rows in rows.values() for row in split_rows]
    contexts = Counter(row.context for row in everything)
    questions = Counter(row.question_key for row in everything)
    mean = round(len(everything) / max(1, len(questions)), 2)
    return {
        **_sizes(everything),
        "splits": {split: _sizes(split_rows) for split, split_rows in rows.items()},
        # Rows, questions, and rows by origin of each benchmark (SAFE v1, Table 7).
        "benchmarks": {
            benchmark: {**_sizes(split_rows), **_by_origin(split_rows)}
            for benchmark, split_rows in sorted(grouped(everything, lambda row: row.question.benchmark).items())
        },
        "origins": {split: _by_origin(split_rows) for split, split_rows in rows.items()},
        "types": _types(rows),
        "positions": {
            str(n): _by_origin(group) for n, group in sorted(grouped(everything, lambda row: row.step.number).items())
        },
        # In how many rows a passage was changed, or exchanged for another.
        "contexts": {name: contexts[name] for name in names.CONTEXTS},
        "per_question": {"mean": mean, "most": max(questions.values(), default=0)},
        # What can be labelled without reading passages.
        "probes": probes.run_probes(everything),
        "preference": {split: configs.preference_counts(split_rows) for split, split_rows in rows.items()},
        "examples": _examples(rows[names.TRAIN]),
    }


def concerns(record: Record) -> Iterator[str]:
    """Yield a line for each aim that a set misses."""
    for probe in (*record["probes"], record["missing_evidence_probe"]):
        if probe.exceeds_aim:
            yield (
                f"{probe.score:.2f} of the set can be labelled without reading its passages ({probe.name}, "
                f"{probe.measure}), more than {probe.aim:.2f}"
            )


def summary(output: Path, record: Record) -> str:
    """Render the counts, the folder and how to load the set, for the terminal."""
    benchmarks = [("benchmark", "rows", "questions", *names.ORIGINS, "tried", "passing")]
    for name, sizes in record["benchmarks"].items():
        benchmarks.append((name, *sizes.values(), *record["trajectories"][name].values()))
    by_benchmark = record["types"].values()
    types = [("error type", *record["types"])]
    types += [(t.name, *(sum(counts.get(t.name, {}).values()) for counts in by_benchmark)) for t in ERROR_TYPES]
    probe_rows = [("without reading passages", "rows", "reached", "majority", "aim")]
    probe_rows += [probe.cells for probe in (*record["probes"], record["missing_evidence_probe"])]
    text = fill(
        Path(__file__).parent,
        "summary.jinja",
        record=record,
        benchmarks=text_table(benchmarks),
        types=text_table(types),
        probes=text_table(probe_rows),
        refused=sum(sum(reasons.values()) for reasons in record["refused"].values()),
        failed=sum(reasons.get(names.REQUEST_FAILED, 0) for reasons in record["refused"].values()),
        refused_file=names.REFUSED,
        request_failed=names.REQUEST_FAILED,
        output=output,
        folder=output / names.VERIFIER_STEPS,
    )
    return text.rstrip()


def counts(record: Record) -> Record:
    """Return the set's row counts for a release's lock."""
    return {name: record[name] for name in ("rows", "questions", "splits", "origins")}


def _examples(rows: Sequence[StepRow]) -> list[Record]:
    """Choose three rows for a card: an ideal one and two injected ones of different types."""
    ideal = [row for row in rows if row.origin == names.IDEAL and row.step.kind != "Final Answer"]
    injected = [row for row in rows if row.origin == names.INJECTED]
    different = [row for row in injected if _type(row) != _type(injected[0])]
    different.sort(key=lambda row: category(_type(row)) == category(_type(injected[0])))
    examples = [*(ideal[:1] or rows[:1]), *injected[:1], *different[:1]]
    labels = [{"error_type": _type(r), "error_category": category(_type(r)), "origin": r.origin} for r in examples]
    return [{**configs.step_row(row), **label} for row, label in zip(examples, labels, strict=True)]


def _types(rows: configs.RowGroups) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of rows by benchmark, then error type, then split."""
    numbers = Counter((row.question.benchmark, _type(row), split) for split in rows for row in rows[split])
    present = sorted({(benchmark, name) for benchmark, name, _ in numbers})
    return {
        benchmark: {
            entry.name: {split: numbers[benchmark, entry.name, split] for split in rows}
            for entry in TAXONOMY
            if (benchmark, entry.name) in present
        }
        for benchmark, _ in present
    }


def _sizes(rows: Sequence[StepRow]) -> dict[str, int]:
    return {"rows": len(rows), "questions": len({row.question_key for row in rows})}


def _by_origin(rows: Sequence[StepRow]) -> dict[str, int]:
    numbers = Counter(row.origin for row in rows)
    return {origin: numbers[origin] for origin in names.ORIGINS}


def _type(row: StepRow) -> str:
    return row.feedback.error_type
