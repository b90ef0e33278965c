"""Compare our noise labels with published ones: scores, calibration, and the rows on which they differ.

Published labels map ids of rows to whether other people call the row unverifiable. *Calibration* is the share of our
labels that they confirm, by our labels' confidence. Half of the rows are held out: nobody develops checks on them.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from safe_stepwise.errors import UserError
from safe_stepwise.records import Label, Question
from safe_stepwise.store import files, terminal
from safe_stepwise.store.agreement import Outcome, measure_agreement
from studies.labels.agreement import build_score_rows, lacks_entities, score_agreement

Labelled = tuple[Question, Label]
HEADER = ("benchmark", "labels", "rows", "published", "found", "precision", "recall", "F1")
CALIBRATION = ("benchmark", "confidence", "noise", "confirmed", "sound", "confirmed")


def comparison(
    labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool], report: Callable[[str], object] = print
) -> list[tuple[object, ...]]:
    """Score our labels, and those of the baseline `lacks_entities`, on each benchmark; return rows under `HEADER`.

    ``report`` is called with a line about each benchmark without a published label. Raises ``UserError`` if none has.
    """
    rows: list[tuple[object, ...]] = []
    if not any(question.id in published for pairs in labelled.values() for question, _ in pairs):
        raise UserError("no id of the labelled rows is in the published labels: other rows?")
    for name, pairs in labelled.items():
        ours_by_id = {question.id: label.unverifiable for question, label in pairs}
        names = {question.id: lacks_entities(question) for question, _ in pairs}
        shared = sum(id_ in published for id_ in ours_by_id)
        if not shared:
            report(f"left out: {name}: none of its ids is in the published labels")
            continue
        for method, labels in (("verification", ours_by_id), ("names alone", names)):
            _, *scores = build_score_rows([score_agreement(published, labels, method)])[0]
            rows.append((name, method, shared, *scores))
    return rows


def calibration(labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]) -> list[tuple[object, ...]]:
    """Return rows under `CALIBRATION`: the share (0-1) of our labels that are confirmed, by their confidence."""
    rows: list[tuple[object, ...]] = []
    for name, pairs in labelled.items():
        pairs_in_both = [(published[question.id], label) for question, label in pairs if question.id in published]
        verdicts: Counter[Outcome] = Counter(
            (is_noise, label.noise_type, label.confidence) for is_noise, label in pairs_in_both
        )
        for bin_ in measure_agreement(verdicts).calibration:
            noise, sound = _share(bin_.noise_confirmed, bin_.noise), _share(bin_.sound_confirmed, bin_.sound)
            rows.append((name, bin_.confidence, bin_.noise, noise, bin_.sound, sound))
    return rows


def _share(count: int, rows: int) -> str:
    return f"{count / rows:.3f}" if rows else "-"


def is_held_out(id_: str) -> bool:
    """Whether a question belongs to the half that nobody reads to develop checks, by its id."""
    return sha256(id_.encode()).digest()[0] % 2 == 1


def halves(labelled: Mapping[str, Sequence[Labelled]]) -> dict[str, list[Labelled]]:
    """Split each benchmark's rows into those to develop checks on ("B, read") and held-out ones ("B, kept back")."""
    return {
        f"{name}, {half}": [row for row in rows if is_held_out(row[0].id) is held_out]
        for name, rows in labelled.items()
        for half, held_out in (("read", False), ("kept back", True))
    }


def disagreements(
    labelled: Mapping[str, Sequence[Labelled]], published: Mapping[str, bool]
) -> list[tuple[Question, Label]]:
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
