"""Compare our noise labels with published ones: scores, calibration, and the rows on which they differ.

Published labels map ids of rows to whether other people call the row unverifiable. *Calibration* is the share of our
labels that they confirm, by our labels' confidence. Half of the rows are held out: nobody develops checks on them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from builders.verified.lookup import Labelled
from safe_stepwise.errors import UserError
from safe_stepwise.store import files, terminal
from safe_stepwise.store.agreement import Agreement, Outcome, measure_agreement


def measure(labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]) -> dict[str, Agreement]:
    """Measure how our labels of each benchmark agree with published ones; raise ``UserError`` if none does."""
    agreements: dict[str, Agreement] = {}
    for name, pairs in labelled.items():
        shared = [(published[question.id], label) for question, label in pairs if question.id in published]
        if not shared:
            print(f"left out: {name}: none of its ids is in the published labels")
            continue
        outcomes: Counter[Outcome] = Counter((noise, label.noise_type, label.confidence) for noise, label in shared)
        agreements[name] = measure_agreement(outcomes)
    if not agreements:
        raise UserError("no id of the labelled rows is in the published labels: other rows?")
    return agreements


def build_tables(agreements: Mapping[str, Agreement]) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Build two tables: the scores of each benchmark, and the bins of its labels' confidence."""
    scores: list[tuple[object, ...]] = [("benchmark", "rows", "published", "found", "precision", "recall", "F1")]
    bins: list[tuple[object, ...]] = [("benchmark", "confidence", "noise", "confirmed", "sound", "confirmed")]
    for name, a in agreements.items():
        scores.append((name, a.rows, a.noise, a.found, f"{a.precision:.3f}", f"{a.recall:.3f}", f"{a.f1:.3f}"))
        for b in a.calibration:
            shares = _share(b.noise_confirmed, b.noise), _share(b.sound_confirmed, b.sound)
            bins.append((name, b.confidence, b.noise, shares[0], b.sound, shares[1]))
    return scores, bins


def _share(count: int, rows: int) -> str:
    return f"{count / rows:.3f}" if rows else "-"


def is_held_out(id_: str) -> bool:
    """Return whether a question belongs, by its id, to the half that is not used to develop checks."""
    return sha256(id_.encode()).digest()[0] % 2 == 1


def halves(labelled: Mapping[str, Sequence[Labelled]]) -> dict[str, list[Labelled]]:
    """Split each benchmark's rows into those to develop checks on ("B, read") and held-out ones ("B, kept back")."""
    return {
        f"{name}, {half}": [row for row in rows if is_held_out(row[0].id) is held_out]
        for name, rows in labelled.items()
        for half, held_out in (("read", False), ("kept back", True))
    }


def disagreements(labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]) -> list[Labelled]:
    """List the rows that either only our labels or only the published ones call unverifiable."""
    rows = (row for group in labelled.values() for row in group)
    return [(q, label) for q, label in rows if published.get(q.id, label.unverifiable) != label.unverifiable]


def list_disagreements(differ: Sequence[Labelled], show: int) -> str:
    """Render the disagreements as text: the first ``show`` rows of each of the two directions."""
    lines = []
    for unverifiable, title in ((False, "published as noise only"), (True, "found as noise only")):
        rows = [row for row in differ if row[1].unverifiable is unverifiable]
        first = f" (the first {show})" if 0 < show < len(rows) else ""
        lines.append(f"\n{title}: {len(rows)}{first}")
        for q, label in rows[:show]:
            lines.append("  " + terminal.printable(f"{q.benchmark} {q.id}: {q.question} -> {q.answer}"))
            lines.append("      " + terminal.printable(f"{label.noise_type}: {label.explanation}"))
    return "\n".join(lines)


def write_disagreements(differ: Sequence[Labelled], path: Path) -> None:
    """Write a JSON object for each row on which the labels differ; raise ``UserError`` if it can't be written."""
    rows = (
        {
            "benchmark": question.benchmark,
            "id": question.id,
            "question": question.question,
            "answer": question.answer,
            "published_unverifiable": not label.unverifiable,
            "noise_type": label.noise_type,
            "explanation": label.explanation,
        }
        for question, label in differ
    )
    with files.report_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_lines(path, (json.dumps(row, ensure_ascii=False) for row in rows))
